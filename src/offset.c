/*
 * offset.c
 *	  The last event a projection applied for each aggregate.
 *
 * The offset decides: an event at or below it has been applied, one above it
 * has not.  It moves from a known value to the next by an update that names
 * the old one, so that of two who apply the same event one finds nothing to
 * update, and goes back.
 */
#include "compat.h"

#include "access/htup_details.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/uuid.h"

#include "fetch.h"
#include "offset.h"
#include "statement.h"

#define Anum_last_sequence_number 4

static PjStatement update_one = {
	.sql = "UPDATE projector.projection_offsets"
	" SET last_sequence_number = $5, last_event_id = $6, error_count = 0,"
	" last_error = NULL, updated_at = now()"
	" WHERE projection_id = $1 AND tenant_id = $2 AND aggregate_id = $3"
	" AND last_sequence_number = $4",
	.expect = SPI_OK_UPDATE,
	.nargs = 6,
	.argtypes = {INT4OID, TEXTOID, TEXTOID, INT8OID, INT8OID, UUIDOID},
};

static PjStatement insert_one = {
	.sql = "INSERT INTO projector.projection_offsets (projection_id,"
	" tenant_id, aggregate_id, last_sequence_number, last_event_id)"
	" VALUES ($1, $2, $3, $5, $6) ON CONFLICT DO NOTHING",
	.expect = SPI_OK_INSERT,
	.nargs = 6,
	.argtypes = {INT4OID, TEXTOID, TEXTOID, INT8OID, INT8OID, UUIDOID},
};

static PjStatement update_many = {
	.sql = "UPDATE projector.projection_offsets o"
	" SET last_sequence_number = m.next, last_event_id = m.event_id,"
	" error_count = 0, last_error = NULL, updated_at = now()"
	" FROM unnest($3, $4, $5, $6) AS m (aggregate_id, previous, next, event_id)"
	" WHERE o.projection_id = $1 AND o.tenant_id = $2"
	" AND o.aggregate_id = m.aggregate_id"
	" AND o.last_sequence_number = m.previous",
	.expect = SPI_OK_UPDATE,
	.nargs = 6,
	.argtypes = {INT4OID, TEXTOID, TEXTARRAYOID, INT8ARRAYOID, INT8ARRAYOID,
	UUIDARRAYOID},
};

static PjStatement insert_many = {
	.sql = "INSERT INTO projector.projection_offsets (projection_id,"
	" tenant_id, aggregate_id, last_sequence_number, last_event_id)"
	" SELECT $1, $2, m.aggregate_id, m.next, m.event_id"
	" FROM unnest($3, $4, $5, $6) AS m (aggregate_id, previous, next, event_id)"
	" ON CONFLICT DO NOTHING",
	.expect = SPI_OK_INSERT,
	.nargs = 6,
	.argtypes = {INT4OID, TEXTOID, TEXTARRAYOID, INT8ARRAYOID, INT8ARRAYOID,
	UUIDARRAYOID},
};

static PjStatement count_error = {
	.sql = "INSERT INTO projector.projection_offsets AS o (projection_id,"
	" tenant_id, aggregate_id, last_sequence_number, error_count, last_error)"
	" VALUES ($1, $2, $3, 0, 1, $4)"
	" ON CONFLICT (projection_id, tenant_id, aggregate_id) DO UPDATE"
	" SET error_count = o.error_count + 1, last_error = excluded.last_error,"
	" updated_at = now()",
	.expect = SPI_OK_INSERT,
	.nargs = 4,
	.argtypes = {INT4OID, TEXTOID, TEXTOID, TEXTOID},
};

#define RESET \
	"UPDATE projector.projection_offsets" \
	" SET last_sequence_number = 0, last_event_id = NULL, updated_at = now()" \
	" WHERE projection_id = $1"

static PjStatement reset_all = {
	.sql = RESET,
	.expect = SPI_OK_UPDATE,
	.nargs = 1,
	.argtypes = {INT4OID},
};

static PjStatement reset_tenant = {
	.sql = RESET " AND tenant_id = $2",
	.expect = SPI_OK_UPDATE,
	.nargs = 2,
	.argtypes = {INT4OID, TEXTOID},
};

static PjStatement reset_aggregate = {
	.sql = RESET " AND tenant_id = $2 AND aggregate_id = $3",
	.expect = SPI_OK_UPDATE,
	.nargs = 3,
	.argtypes = {INT4OID, TEXTOID, TEXTOID},
};

/* Look up offsets as they are now.  The caller has set the aggregates. */
void
pj_offsets_load(int32 projection_id, Datum tenant, PjOffset *offsets, int n)
{
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());

	for (int i = 0; i < n; i++)
	{
		ScanKeyData keys[3];
		PjFetch		fetch;
		HeapTuple	tuple;
		bool		isnull;

		pj_key_int4(&keys[0], 1, projection_id);
		pj_key_text(&keys[1], 2, tenant);
		pj_key_text(&keys[2], 3, offsets[i].aggregate);
		pj_fetch_begin(&fetch, "projection_offsets",
					   "projection_offsets_pkey", snapshot, 3, keys);
		tuple = pj_fetch_next(&fetch, ForwardScanDirection);
		offsets[i].exists = HeapTupleIsValid(tuple);
		offsets[i].last = !offsets[i].exists ? 0 :
			DatumGetInt64(heap_getattr(tuple, Anum_last_sequence_number,
									   RelationGetDescr(fetch.heap), &isnull));
		pj_fetch_end(&fetch);
	}
	UnregisterSnapshot(snapshot);
}

static uint64
move_one(int32 projection_id, Datum tenant, const PjOffsetMove *move)
{
	Datum		values[6] = {Int32GetDatum(projection_id), tenant,
		move->from->aggregate, Int64GetDatum(move->from->last),
	Int64GetDatum(move->to), move->event_id};

	return pj_execute(move->from->exists ? &update_one : &insert_one,
					  values, NULL);
}

/* Move those offsets that have a row, or those that have none. */
static uint64
move_many(int32 projection_id, Datum tenant, const PjOffsetMove *moves, int n,
		  bool exists)
{
	Datum	   *aggregates = palloc(sizeof(Datum) * n);
	Datum	   *event_ids = palloc(sizeof(Datum) * n);
	int64	   *previous = palloc(sizeof(int64) * n);
	int64	   *next = palloc(sizeof(int64) * n);
	int			count = 0;
	Datum		values[6];

	for (int i = 0; i < n; i++)
	{
		if (moves[i].from->exists != exists)
			continue;
		aggregates[count] = moves[i].from->aggregate;
		previous[count] = moves[i].from->last;
		next[count] = moves[i].to;
		event_ids[count++] = moves[i].event_id;
	}
	if (count == 0)
		return 0;

	values[0] = Int32GetDatum(projection_id);
	values[1] = tenant;
	values[2] = pj_text_array(aggregates, count);
	values[3] = pj_int8_array(previous, count);
	values[4] = pj_int8_array(next, count);
	values[5] = PointerGetDatum(construct_array(event_ids, count, UUIDOID,
												UUID_LEN, false,
												TYPALIGN_CHAR));
	return pj_execute(exists ? &update_many : &insert_many, values, NULL);
}

/*
 * Move the offsets of several aggregates.  Returns false if one of them was
 * not where the caller believes: somebody else has applied its events, and
 * the caller must roll back.
 */
bool
pj_offsets_move(int32 projection_id, Datum tenant, const PjOffsetMove *moves,
				int n)
{
	if (n == 1)
		return move_one(projection_id, tenant, &moves[0]) == 1;
	return move_many(projection_id, tenant, moves, n, true) +
		move_many(projection_id, tenant, moves, n, false) == n;
}

/* Note in the offset's row that an event behind it failed. */
void
pj_offset_count_error(int32 projection_id, Datum tenant, Datum aggregate,
					  const char *error)
{
	Datum		values[4] = {Int32GetDatum(projection_id), tenant, aggregate,
	CStringGetTextDatum(error)};

	pj_execute(&count_error, values, NULL);
}

/* Set offsets back to 0; tenant and aggregate are 0 for all. */
int64
pj_offsets_reset(int32 projection_id, Datum tenant, Datum aggregate)
{
	Datum		values[3] = {Int32GetDatum(projection_id), tenant, aggregate};
	PjStatement *stmt = aggregate ? &reset_aggregate :
		tenant ? &reset_tenant : &reset_all;

	return pj_execute(stmt, values, NULL);
}
