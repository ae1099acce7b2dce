/*
 * offset.c
 *	  The last event that a projection has applied for each aggregate.
 *
 * An event at or below the offset has been applied; one above it has not.  An
 * offset is moved by updating exactly the row version that was read.  If two
 * transactions apply the same event, one of them finds its row version
 * outdated and rolls back.
 *
 * Every applied event reads and writes one of these rows, and an inline append
 * does so for a single event.  So rows are updated without SPI, which would
 * cost as much as the handler itself.  Only triggers need SQL: pg_repack, for
 * example, has one while it copies a table.
 */
#include "base/compat.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"

#include "base/fetch.h"
#include "base/row.h"
#include "base/statement.h"
#include "sandbox/user_context.h"
#include "state/offset.h"
#include "state/offset_add.h"
#include "state/offset_table.h"

PjTable		pj_offsets_table = {"projection_offsets", "projection_offsets_pkey"};

static PjStatement insert_new = {
	.sql = "INSERT INTO projector.projection_offsets (projection_id,"
	" tenant_id, aggregate_id, last_sequence_number, last_event_id)"
	" SELECT $1, $2, m.* FROM unnest($3, $4, $5) AS m"
	" ON CONFLICT DO NOTHING",
	.expect = SPI_OK_INSERT,
	.nargs = 5,
	.argtypes = {INT4OID, TEXTOID, TEXTARRAYOID, INT8ARRAYOID, UUIDARRAYOID},
};

static PjStatement insert_new_one = {
	.sql = "INSERT INTO projector.projection_offsets (projection_id,"
	" tenant_id, aggregate_id, last_sequence_number, last_event_id)"
	" VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING",
	.expect = SPI_OK_INSERT,
	.nargs = 5,
	.argtypes = {INT4OID, TEXTOID, TEXTOID, INT8OID, UUIDOID},
};

static PjStatement move_one = {
	.sql = "UPDATE projector.projection_offsets"
	" SET last_sequence_number = $5, last_event_id = $6, error_count = 0,"
	" last_error = NULL, updated_at = now()"
	" WHERE projection_id = $1 AND tenant_id = $2 AND aggregate_id = $3"
	" AND last_sequence_number = $4",
	.expect = SPI_OK_UPDATE,
	.nargs = 6,
	.argtypes = {INT4OID, TEXTOID, TEXTOID, INT8OID, INT8OID, UUIDOID},
};

/*
 * INSERT ... ON CONFLICT DO UPDATE is not used, because it locks the row
 * before updating it.  If the attempt that was rolled back had updated the
 * same row, that would violate an assertion in heap_update().
 */
static PjStatement count_error = {
	.sql = "UPDATE projector.projection_offsets"
	" SET error_count = error_count + 1, last_error = $4, updated_at = now()"
	" WHERE projection_id = $1 AND tenant_id = $2 AND aggregate_id = $3"
	" RETURNING error_count",
	.expect = SPI_OK_UPDATE_RETURNING,
	.nargs = 4,
	.argtypes = {INT4OID, TEXTOID, TEXTOID, TEXTOID},
};

static PjStatement insert_error = {
	.sql = "INSERT INTO projector.projection_offsets (projection_id,"
	" tenant_id, aggregate_id, last_sequence_number, error_count, last_error)"
	" VALUES ($1, $2, $3, 0, 1, $4) ON CONFLICT DO NOTHING",
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

static PjStatement delete_tenant = {
	.sql = "DELETE FROM projector.projection_offsets"
	" WHERE projection_id = $1 AND tenant_id = $2",
	.expect = SPI_OK_DELETE,
	.nargs = 2,
	.argtypes = {INT4OID, TEXTOID},
};

static PjStatement delete_aggregate = {
	.sql = "DELETE FROM projector.projection_offsets"
	" WHERE projection_id = $1 AND tenant_id = $2 AND aggregate_id = $3",
	.expect = SPI_OK_DELETE,
	.nargs = 3,
	.argtypes = {INT4OID, TEXTOID, TEXTOID},
};

/*
 * Read the current offset.  If an open transaction has changed the row, the
 * offset is busy, and nothing else is known about it.
 */
static void
read_offset(PjFetch *fetch, const SnapshotData *dirty, PjOffset *offset)
{
	HeapTuple	tuple = pj_fetch_next(fetch, ForwardScanDirection);
	bool		isnull;

	offset->busy = HeapTupleIsValid(tuple) &&
		(TransactionIdIsValid(dirty->xmin) ||
		 TransactionIdIsValid(dirty->xmax));
	offset->exists = HeapTupleIsValid(tuple) && !offset->busy;
	offset->row = NULL;
	offset->last = 0;
	if (offset->exists)
	{
		offset->row = heap_copytuple(tuple);
		offset->last =
			DatumGetInt64(heap_getattr(tuple, Anum_last_sequence_number,
									   RelationGetDescr(fetch->heap),
									   &isnull));
	}
}

/* Read offsets.  The caller has filled in the aggregates. */
void
pj_offsets_load(int32 projection_id, Datum tenant, PjOffset *offsets, int n)
{
	SnapshotData dirty;
	ScanKeyData keys[3];
	PjFetch		fetch;

	InitDirtySnapshot(dirty);
	pj_key_int4(&keys[0], 1, projection_id);
	pj_key_text(&keys[1], 2, tenant);
	for (int i = 0; i < n; i++)
	{
		pj_key_text(&keys[2], 3, offsets[i].aggregate);
		if (i == 0)
			pj_fetch_begin(&fetch, &pj_offsets_table, &dirty, 3, keys);
		else
			pj_fetch_again(&fetch, 3, keys);
		read_offset(&fetch, &dirty, &offsets[i]);
	}
	if (n > 0)
		pj_fetch_end(&fetch);
}

/* Move an offset that has a row.  Returns false if the row is outdated. */
static bool
update_row(Relation heap, const PjOffsetMove *move, HeapTuple row)
{
	int			columns[] = {Anum_last_sequence_number, Anum_last_event_id,
	Anum_error_count, Anum_last_error, Anum_updated_at};
	Datum		values[] = {Int64GetDatum(move->to), move->event_id,
		Int32GetDatum(0), (Datum) 0,
	TimestampTzGetDatum(GetCurrentTransactionStartTimestamp())};
	bool		nulls[] = {false, false, false, true, false};
	PjRowChange change = {lengthof(columns), columns, values, nulls};

	return pj_row_update(heap, row, &change);
}

/* The same by SQL, for a table with triggers. */
static bool
update_row_by_sql(int32 projection_id, Datum tenant, const PjOffsetMove *move)
{
	Datum		values[6] = {Int32GetDatum(projection_id), tenant,
		move->from->aggregate, Int64GetDatum(move->from->last),
	Int64GetDatum(move->to), move->event_id};
	PjContext	saved;
	bool		moved;

	pj_enter_internal(&saved);
	moved = pj_execute(&move_one, values, NULL) == 1;
	pj_leave_internal(&saved);
	return moved;
}

static bool
update_rows(int32 projection_id, Datum tenant, const PjOffsetMove *moves,
			int n)
{
	Relation	heap = table_open(pj_relid(&pj_offsets_table), RowExclusiveLock);
	bool		triggers = heap->trigdesc != NULL;
	bool		ok = true;

	for (int i = 0; i < n && ok; i++)
	{
		PjOffset	now = *moves[i].from;

		if (!now.exists)
			continue;
		if (triggers)
		{
			ok = update_row_by_sql(projection_id, tenant, &moves[i]);
			continue;
		}
		if (now.row == NULL)
			pj_offsets_load(projection_id, tenant, &now, 1);
		ok = now.row != NULL && now.last == moves[i].from->last &&
			update_row(heap, &moves[i], now.row);
	}
	table_close(heap, NoLock);
	CommandCounterIncrement();
	return ok;
}

/* Insert rows for the offsets that have none. */
static bool
insert_rows(int32 projection_id, Datum tenant, const PjOffsetMove *moves,
			int n)
{
	Datum	   *aggregates = palloc(sizeof(Datum) * n);
	Datum	   *event_ids = palloc(sizeof(Datum) * n);
	int64	   *sequences = palloc(sizeof(int64) * n);
	Datum		values[5] = {Int32GetDatum(projection_id), tenant};
	int			count = 0;

	for (int i = 0; i < n; i++)
	{
		if (moves[i].from->exists)
			continue;
		aggregates[count] = moves[i].from->aggregate;
		sequences[count] = moves[i].to;
		event_ids[count++] = moves[i].event_id;
	}
	if (count == 0)
		return true;
	if (count == 1)
	{
		values[2] = aggregates[0];
		values[3] = Int64GetDatum(sequences[0]);
		values[4] = event_ids[0];
		return pj_execute(&insert_new_one, values, NULL) == 1;
	}
	values[2] = pj_text_array(aggregates, count);
	values[3] = pj_int8_array(sequences, count);
	values[4] = PointerGetDatum(construct_array(event_ids, count, UUIDOID,
												UUID_LEN, false,
												TYPALIGN_CHAR));
	return pj_execute(&insert_new, values, NULL) == count;
}

/* Do several of them have no row? */
static bool
several_are_new(const PjOffsetMove *moves, int n)
{
	int			count = 0;

	for (int i = 0; i < n && count < 2; i++)
		count += !moves[i].from->exists;
	return count > 1;
}

/*
 * Move the offsets of several aggregates.  Returns false if one of them was
 * not where the caller expected: another transaction has applied its events,
 * and the caller must roll back.  "alone" says that the caller has the pair to
 * itself.
 */
bool
pj_offsets_move(int32 projection_id, Datum tenant, const PjOffsetMove *moves,
				int n, bool alone)
{
	if (!update_rows(projection_id, tenant, moves, n))
		return false;
	if (alone && several_are_new(moves, n) &&
		pj_offsets_add(projection_id, tenant, moves, n))
		return true;
	return insert_rows(projection_id, tenant, moves, n);
}

/*
 * Record in an offset's row that an event after it has failed.  Returns how
 * many errors there were since an event was last applied.
 */
int
pj_offset_count_error(int32 projection_id, Datum tenant, Datum aggregate,
					  const char *error)
{
	Datum		values[4] = {Int32GetDatum(projection_id), tenant, aggregate,
	CStringGetTextDatum(error)};
	bool		isnull;

	while (pj_execute(&count_error, values, NULL) == 0)
		if (pj_execute(&insert_error, values, NULL) > 0)
			return 1;
	return DatumGetInt32(pj_result(0, 1, &isnull));
}

/* Delete a tenant's offsets, or that of one aggregate. */
void
pj_offsets_delete(int32 projection_id, Datum tenant, Datum aggregate)
{
	Datum		values[3] = {Int32GetDatum(projection_id), tenant, aggregate};

	pj_execute(aggregate ? &delete_aggregate : &delete_tenant, values, NULL);
}

/* Set offsets to 0; tenant and aggregate are 0 for all. */
int64
pj_offsets_reset(int32 projection_id, Datum tenant, Datum aggregate)
{
	Datum		values[3] = {Int32GetDatum(projection_id), tenant, aggregate};
	PjStatement *stmt = aggregate ? &reset_aggregate :
	tenant ? &reset_tenant : &reset_all;

	return pj_execute(stmt, values, NULL);
}
