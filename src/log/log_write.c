/*
 * log_write.c
 *	  Write to the events table, and enforce its rules.
 *
 * An aggregate's sequence numbers are 1, 2, 3, ... without gaps, and log_seq
 * rises with them.  Both are checked against each new event's predecessor,
 * however the event was inserted (capture.c).  Events are never changed or
 * deleted; the hash of the payload reveals it if they are nevertheless.
 */
#include "base/compat.h"

#include "access/detoast.h"
#include "access/htup_details.h"
#include "access/stratnum.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"
#include "utils/snapmgr.h"
#include "utils/uuid.h"

#include "base/errcodes.h"
#include "base/fetch.h"
#include "base/statement.h"
#include "base/trigger.h"
#include "log/event.h"
#include "log/intake.h"
#include "log/log_table.h"
#include "log/log_write.h"
#include "sandbox/user_context.h"

/* The maximum length of tenant_id, aggregate_id and event_type. */
#define PJ_MAX_ID_BYTES	1000

PG_FUNCTION_INFO_V1(projector_events_before_insert);
PG_FUNCTION_INFO_V1(projector_events_append_only);

static PjTable events_by_id = {"events", "events_tenant_id_event_id_key"};

/*
 * An event with a new id can only conflict with one of the same aggregate.  The
 * key is not named nevertheless: while it is reindexed concurrently, there are
 * two indexes of it, and the new one would raise an error.
 */
static PjStatement insert_one = {
	.sql = "INSERT INTO projector.events (tenant_id, aggregate_id,"
	" sequence_number, event_type, payload, metadata)"
	" VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING",
	.expect = SPI_OK_INSERT,
	.fires_triggers = true,
	.nargs = 6,
	.argtypes = {TEXTOID, TEXTOID, INT8OID, TEXTOID, JSONBOID, JSONBOID},
};

static PjStatement insert_one_with_id = {
	.sql = "INSERT INTO projector.events (tenant_id, aggregate_id,"
	" sequence_number, event_type, payload, metadata, event_id)"
	" VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING",
	.expect = SPI_OK_INSERT,
	.fires_triggers = true,
	.nargs = 7,
	.argtypes = {TEXTOID, TEXTOID, INT8OID, TEXTOID, JSONBOID, JSONBOID,
	UUIDOID},
};

static PjStatement insert_many = {
	.sql = "INSERT INTO projector.events (tenant_id, aggregate_id,"
	" sequence_number, event_id, event_type, payload, metadata)"
	" SELECT $1, $2, $3 + n - 1, COALESCE(id, gen_random_uuid()), type,"
	" payload, metadata"
	" FROM unnest($4, $5, $6, $7) WITH ORDINALITY"
	" AS b (id, type, payload, metadata, n) ORDER BY n"
	" ON CONFLICT DO NOTHING",
	.expect = SPI_OK_INSERT,
	.fires_triggers = true,
	.nargs = 7,
	.argtypes = {TEXTOID, TEXTOID, INT8OID, UUIDARRAYOID, TEXTARRAYOID,
	JSONBARRAYOID, JSONBARRAYOID},
};

/* ---- writing ---- */

/* Is this row the i'th event? */
static bool
is_event(HeapTuple row, TupleDesc desc, const PjNewEvents *events, int i)
{
	Datum	   *columns;
	bool	   *nulls;

	pj_deform(row, desc, &columns, &nulls);
	return pj_text_equal(columns[Anum_aggregate_id - 1], events->aggregate) &&
		pj_text_equal(columns[Anum_event_type - 1], events->event_types[i]) &&
		DatumGetBool(DirectFunctionCall2(jsonb_eq, columns[Anum_payload - 1],
										 events->payloads[i])) &&
		DatumGetBool(DirectFunctionCall2(jsonb_eq, columns[Anum_metadata - 1],
										 events->metadatas[i]));
}

/* Is the i'th event, which has an id, in the log already? */
PjKnown
pj_source_known(const PjNewEvents *events, int i, int64 *sequence_number)
{
	Snapshot	snapshot = RegisterSnapshot(GetTransactionSnapshot());
	PjKnown		known = PJ_ID_UNKNOWN;
	ScanKeyData keys[2];
	PjFetch		fetch;
	HeapTuple	row;
	bool		isnull;

	pj_key_text(&keys[0], 1, events->tenant);
	ScanKeyInit(&keys[1], 2, BTEqualStrategyNumber, F_UUID_EQ,
				events->event_ids[i]);
	pj_fetch_begin(&fetch, &events_by_id, snapshot, 2, keys);
	row = pj_fetch_next(&fetch, ForwardScanDirection);
	if (row)
	{
		TupleDesc	desc = RelationGetDescr(fetch.heap);

		known = is_event(row, desc, events, i) ? PJ_ID_SAME : PJ_ID_DIFFERENT;
		*sequence_number = DatumGetInt64(heap_getattr(row,
													  Anum_sequence_number,
													  desc, &isnull));
	}
	pj_fetch_end(&fetch);
	UnregisterSnapshot(snapshot);
	return known;
}

static Datum
nullable_array(Datum *elems, int nelems, Oid type, int16 len, char align)
{
	bool	   *nulls = palloc(sizeof(bool) * nelems);
	int			lower = 1;

	for (int i = 0; i < nelems; i++)
		nulls[i] = (elems[i] == 0);
	return PointerGetDatum(construct_md_array(elems, nulls, 1, &nelems,
											  &lower, type, len, false,
											  align));
}

/*
 * Insert new events after an aggregate's last one, whose sequence number is
 * "after".  Returns how many were inserted: fewer than given if another
 * transaction was faster.
 */
int
pj_source_insert(const PjNewEvents *events, int64 after)
{
	Datum		values[7] = {events->tenant, events->aggregate,
	Int64GetDatum(after + 1)};
	int			n = events->count;

	if (n == 1)
	{
		values[3] = events->event_types[0];
		values[4] = events->payloads[0];
		values[5] = events->metadatas[0];
		values[6] = events->event_ids[0];
		return pj_execute(values[6] ? &insert_one_with_id : &insert_one,
						  values, NULL);
	}

	values[3] = nullable_array(events->event_ids, n, UUIDOID, UUID_LEN,
							   TYPALIGN_CHAR);
	values[4] = pj_text_array(events->event_types, n);
	values[5] = nullable_array(events->payloads, n, JSONBOID, -1,
							   TYPALIGN_INT);
	values[6] = nullable_array(events->metadatas, n, JSONBOID, -1,
							   TYPALIGN_INT);
	return pj_execute(&insert_many, values, NULL);
}

/* ---- the table's own rules ---- */

/*
 * Check an id or type.  Values up to the limit fit into all of our indexes.  A
 * restored value may be longer, because it was in the log before.
 */
static void
check_name(Datum value, const char *column, bool restored)
{
	Size		length = toast_raw_datum_size(value) - VARHDRSZ;

	if (length == 0)
		ereport(ERROR,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("%s of an event must not be empty", column));
	if (length > PJ_MAX_ID_BYTES && !restored)
		ereport(ERROR,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("%s of an event must not be longer than %d bytes",
					   column, PJ_MAX_ID_BYTES),
				errdetail("This one has %zu bytes.", length),
				errhint("Use a shorter one, such as a hash, and keep the long one in the payload."));
}

/* A projection's code may append only if option "may_append" allows it. */
static void
check_may_append(void)
{
	const PjUserCode *code = pj_user_code();

	if (code == NULL || (code->may_append && !code->replay))
		return;
	ereport(ERROR,
			errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			errmsg("projection \"%s\" cannot append events",
				   code->projection),
			code->may_append ?
			errdetail("The log is being replayed: what its code appended the first time is in the log already.") :
			errhint("Set the projection's option \"may_append\" if that is intended."));
}

/*
 * Check a new row, and fill in the payload's hash.  NULLs are left to the
 * columns' constraints.
 */
static void
check_row(Datum *columns, const bool *nulls, bool restored)
{
	pj_intake_row(restored);

	/* check this first, because the unique index's error is less helpful */
	if (!restored && !nulls[Anum_log_seq - 1] &&
		DatumGetInt64(columns[Anum_log_seq - 1]) > 0)
		pj_intake_check(DatumGetInt64(columns[Anum_log_seq - 1]));
	if (!nulls[Anum_tenant_id - 1])
		check_name(columns[Anum_tenant_id - 1], "tenant_id", restored);
	if (!nulls[Anum_aggregate_id - 1])
		check_name(columns[Anum_aggregate_id - 1], "aggregate_id", restored);
	if (!nulls[Anum_event_type - 1])
		check_name(columns[Anum_event_type - 1], "event_type", restored);
	if (!restored && !nulls[Anum_payload - 1])
		columns[Anum_payload_hash - 1] =
			pj_payload_hash(columns[Anum_payload - 1]);
}

/*
 * Complete a row that is inserted without SQL (log_insert.c).  It has all
 * columns but the hash.
 */
void
pj_source_complete_row(Datum *columns)
{
	static const bool nulls[Anum_recorded_at] = {false};

	check_may_append();
	check_row(columns, nulls, false);
}

/*
 * Trigger function: BEFORE INSERT, for each row.  Refuse values that are empty
 * or too long, and set or check the payload's hash.
 */
Datum
projector_events_before_insert(PG_FUNCTION_ARGS)
{
	TriggerData *trigdata = pj_trigger_data(fcinfo, "events_before_insert",
											&pj_events_table, PJ_BEFORE_ROW,
											TRIGGER_EVENT_INSERT);
	Datum	   *columns;
	bool	   *nulls;
	bool		restored;

	check_may_append();

	pj_deform(trigdata->tg_trigtuple, RelationGetDescr(trigdata->tg_relation),
			  &columns, &nulls);
	restored = !nulls[Anum_payload_hash - 1];
	check_row(columns, nulls, restored);
	if (nulls[Anum_payload - 1])
		return PointerGetDatum(trigdata->tg_trigtuple);
	if (restored)
	{
		if (!pj_payload_matches(columns[Anum_payload - 1],
								columns[Anum_payload_hash - 1]))
			ereport(ERROR,
					errcode(ERRCODE_PJ_EVENT_MISMATCH),
					errmsg("payload_hash does not match the payload"),
					errhint("Leave payload_hash out, and it is computed."));
		return PointerGetDatum(trigdata->tg_trigtuple);
	}

	nulls[Anum_payload_hash - 1] = false;
	return PointerGetDatum(heap_form_tuple(RelationGetDescr(trigdata->tg_relation),
										   columns, nulls));
}

/*
 * Trigger function: BEFORE UPDATE, DELETE or TRUNCATE, for each statement.
 * Raises an error.
 */
Datum
projector_events_append_only(PG_FUNCTION_ARGS)
{
	(void) pj_trigger_data(fcinfo, "events_append_only", &pj_events_table,
						   PJ_BEFORE_STATEMENT, PJ_ANY_EVENT);
	ereport(ERROR,
			errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			errmsg("events are append-only"),
			errdetail("An event is a fact: it cannot be changed or removed."),
			errhint("Append an event that corrects it."));
}
