/*
 * log_write.c
 *	  Writing to the table of events: what it promises, and how that is kept.
 *
 * An aggregate's sequence numbers are 1, 2, 3, ... without gaps, and log_seq
 * rises with them.  Both are checked against each new event's predecessor,
 * wherever the event comes from (capture.c).  A predecessor whose transaction
 * is still open is waited for: until it commits nobody can know whether there
 * will be one.  Events are not changed or removed, and the payload's hash says
 * so if they are nevertheless.
 */
#include "base/compat.h"

#include "access/detoast.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/jsonb.h"
#include "utils/snapmgr.h"
#include "utils/uuid.h"

#include "base/errcodes.h"
#include "base/fetch.h"
#include "base/guc.h"
#include "base/statement.h"
#include "base/trigger.h"
#include "log/intake.h"
#include "log/log_read.h"
#include "log/log_table.h"
#include "sandbox/user_context.h"

/* The longest tenant_id, aggregate_id and event_type. */
#define PJ_MAX_ID_BYTES	1000

PG_FUNCTION_INFO_V1(projector_events_before_insert);
PG_FUNCTION_INFO_V1(projector_events_append_only);

/* An event with a new id can meet another in its aggregate only. */
static PjStatement insert_one = {
	.sql = "INSERT INTO projector.events (tenant_id, aggregate_id,"
	" sequence_number, event_type, payload, metadata)"
	" VALUES ($1, $2, $3, $4, $5, $6)"
	" ON CONFLICT (tenant_id, aggregate_id, sequence_number) DO NOTHING",
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

static PjStatement select_known = {
	.sql = "SELECT sequence_number, aggregate_id = $3 AND event_type = $4"
	" AND payload = $5 AND metadata = $6"
	" FROM projector.events WHERE tenant_id = $1 AND event_id = $2",
	.expect = SPI_OK_SELECT,
	.nargs = 6,
	.argtypes = {TEXTOID, UUIDOID, TEXTOID, TEXTOID, JSONBOID, JSONBOID},
};

/*
 * The events being inserted by pj_source_insert(), and the one before them:
 * whoever checks the order need not look that one up again.
 */
static const PjNewEvents *inserting = NULL;
static const PjPosition *inserting_after = NULL;

/* Is it the event behind which this session is inserting right now? */
static bool
is_inserted_after(Datum tenant, Datum aggregate, int64 sequence_number)
{
	return inserting != NULL &&
		inserting_after->sequence_number == sequence_number &&
		pj_text_equal(inserting->aggregate, aggregate) &&
		pj_text_equal(inserting->tenant, tenant);
}

/*
 * Find one event of an aggregate, or its last one if sequence_number is 0, as
 * things are now: whatever this transaction's snapshot, and after waiting for
 * the transaction that is adding it, if one is.
 */
bool
pj_source_position(Datum tenant, Datum aggregate, int64 sequence_number,
				   PjPosition *position)
{
	if (sequence_number > 0 &&
		is_inserted_after(tenant, aggregate, sequence_number))
	{
		*position = *inserting_after;
		return true;
	}

	for (;;)
	{
		SnapshotData dirty;
		ScanKeyData keys[3];
		PjFetch		fetch;
		HeapTuple	tuple;
		TransactionId wait_for;
		uint32		token;
		bool		found;

		InitDirtySnapshot(dirty);
		pj_key_text(&keys[0], 1, tenant);
		pj_key_text(&keys[1], 2, aggregate);
		pj_key_int8(&keys[2], 3, sequence_number);
		pj_fetch_begin(&fetch, &pj_events_table, &dirty,
					   sequence_number > 0 ? 3 : 2, keys);
		tuple = pj_fetch_next(&fetch, BackwardScanDirection);
		found = HeapTupleIsValid(tuple);
		wait_for = found ? dirty.xmin : InvalidTransactionId;
		token = found ? dirty.speculativeToken : 0;
		if (found && !TransactionIdIsValid(wait_for))
		{
			TupleDesc	desc = RelationGetDescr(fetch.heap);
			bool		isnull;

			position->sequence_number =
				DatumGetInt64(heap_getattr(tuple, Anum_sequence_number,
										   desc, &isnull));
			position->log_seq =
				DatumGetInt64(heap_getattr(tuple, Anum_log_seq, desc,
										   &isnull));
			position->visible =
				!IsolationUsesXactSnapshot() ||
				TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetXmin(tuple->t_data)) ||
				table_tuple_satisfies_snapshot(fetch.heap, fetch.slot,
											   GetTransactionSnapshot());
		}
		pj_fetch_end(&fetch);

		if (!TransactionIdIsValid(wait_for))
			return found;

		/*
		 * An INSERT ... ON CONFLICT that is not yet sure of its row may take it
		 * back, and then wait for us: do not wait for its transaction.
		 */
		if (token != 0)
			SpeculativeInsertionWait(wait_for, token);
		else
			XactLockTableWait(wait_for, NULL, NULL, XLTW_None);
	}
}

/* ---- writing ---- */

/* Is the i'th event in the log already? */
PjKnown
pj_source_known(const PjNewEvents *events, int i, int64 *sequence_number)
{
	Datum		values[6] = {events->tenant, events->event_ids[i],
		events->aggregate, events->event_types[i], events->payloads[i],
	events->metadatas[i]};
	bool		isnull;

	if (pj_execute(&select_known, values, NULL) == 0)
		return PJ_ID_UNKNOWN;
	*sequence_number = DatumGetInt64(pj_result(0, 1, &isnull));
	return DatumGetBool(pj_result(0, 2, &isnull)) ? PJ_ID_SAME : PJ_ID_DIFFERENT;
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

static int
insert_events(const PjNewEvents *events, int64 after)
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

/*
 * Insert new events behind an aggregate's last one and return how many were
 * inserted: fewer than given if somebody else was faster.
 */
int
pj_source_insert(const PjNewEvents *events, const PjPosition *last)
{
	const PjNewEvents *outer = inserting;
	const PjPosition *outer_after = inserting_after;
	int			inserted;

	PG_TRY();
	{
		inserting = events;
		inserting_after = last;
		inserted = insert_events(events, last->sequence_number);
	}
	PG_FINALLY();
	{
		inserting = outer;
		inserting_after = outer_after;
	}
	PG_END_TRY();
	return inserted;
}

/* ---- the table's own rules ---- */

/* sha256(convert_to(payload::text, 'UTF8')) */
static Datum
hash_payload(Datum payload)
{
	Jsonb	   *jb = DatumGetJsonbP(payload);
	StringInfoData str;
	char	   *utf8;
	int			len;
	bytea	   *image;
	Datum		hash;

	initStringInfo(&str);
	(void) JsonbToCString(&str, &jb->root, VARSIZE(jb));
	utf8 = pg_server_to_any(str.data, str.len, PG_UTF8);
	len = (utf8 == str.data) ? str.len : strlen(utf8);
	image = palloc(VARHDRSZ + len);
	SET_VARSIZE(image, VARHDRSZ + len);
	memcpy(VARDATA(image), utf8, len);
	hash = DirectFunctionCall1(sha256_bytea, PointerGetDatum(image));
	pfree(image);
	pfree(str.data);

	return hash;
}

static bool
hash_matches(Datum payload, Datum hash)
{
	bytea	   *expected = DatumGetByteaPP(hash_payload(payload));
	bytea	   *actual = DatumGetByteaPP(hash);

	return VARSIZE_ANY_EXHDR(expected) == VARSIZE_ANY_EXHDR(actual) &&
		memcmp(VARDATA_ANY(expected), VARDATA_ANY(actual),
			   VARSIZE_ANY_EXHDR(expected)) == 0;
}

/* Raise an error if an event read from the log has been tampered with. */
void
pj_source_check_hash(const PjEvent *event)
{
	if (!pj_verify_payload ||
		hash_matches(event->values[PJ_EVENT_PAYLOAD], event->payload_hash))
		return;
	ereport(ERROR,
			errcode(ERRCODE_PJ_EVENT_MISMATCH),
			errmsg("payload of event %lld of aggregate \"%s\" of tenant \"%s\" does not match its hash",
				   (long long) pj_event_sequence(event),
				   TextDatumGetCString(pj_event_aggregate(event)),
				   TextDatumGetCString(pj_event_tenant(event))),
			errdetail("The event has been changed since it was appended."));
}

/*
 * Check an id or type.  All of our indexes have room for what is no longer than
 * the limit; what was in the log before it is restored, keeps its length.
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

/* User code may not append unless its projection says that it does. */
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
 * BEFORE INSERT, for each row: refuse what is empty or too long, fill in the payload's
 * hash or check the one given.  NULLs are left to the columns' constraints.
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
	pj_intake_row(restored);

	/* before the index of positions is asked, whose error says less */
	if (!restored && !nulls[Anum_log_seq - 1] &&
		DatumGetInt64(columns[Anum_log_seq - 1]) > 0)
		pj_intake_check(DatumGetInt64(columns[Anum_log_seq - 1]));
	if (!nulls[Anum_tenant_id - 1])
		check_name(columns[Anum_tenant_id - 1], "tenant_id", restored);
	if (!nulls[Anum_aggregate_id - 1])
		check_name(columns[Anum_aggregate_id - 1], "aggregate_id", restored);
	if (!nulls[Anum_event_type - 1])
		check_name(columns[Anum_event_type - 1], "event_type", restored);

	if (nulls[Anum_payload - 1])
		return PointerGetDatum(trigdata->tg_trigtuple);
	if (!nulls[Anum_payload_hash - 1])
	{
		if (!hash_matches(columns[Anum_payload - 1],
						  columns[Anum_payload_hash - 1]))
			ereport(ERROR,
					errcode(ERRCODE_PJ_EVENT_MISMATCH),
					errmsg("payload_hash does not match the payload"),
					errhint("Leave payload_hash out, and it is computed."));
		return PointerGetDatum(trigdata->tg_trigtuple);
	}

	columns[Anum_payload_hash - 1] = hash_payload(columns[Anum_payload - 1]);
	nulls[Anum_payload_hash - 1] = false;
	return PointerGetDatum(heap_form_tuple(RelationGetDescr(trigdata->tg_relation),
										   columns, nulls));
}

/* BEFORE UPDATE, DELETE or TRUNCATE, for each statement: refuse. */
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
