/*
 * pair_look.c
 *	  What the views want to know of a pair: its cursor, counters and digest,
 *	  open failures, active run, and the events that it has yet to read.
 *
 * A view asks this for every pair there is, so nothing here is a query of its
 * own for a pair.  Tables are read by index, in step with the pairs
 * (by_pair.c); what has no index is read once, for all of them.
 */
#include "base/compat.h"

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "base/statement.h"
#include "base/text.h"
#include "sandbox/user_context.h"
#include "state/digest.h"
#include "state/pair_look.h"
#include "state/slice_row.h"

/* The columns that are looked at, by table. */
enum
{
	Cursor_tenant_id = 2,
	Cursor_last_log_seq = 3,
	Cursor_state = 4,
	Cursor_mode = 5,
	Cursor_paused_by = 6,
	Cursor_pause_reason = 7,
	Cursor_applied_count = 9,
	Cursor_failed_count = 10,
	Cursor_paused_at = 13,
	Cursor_dead_count = 14,
	Cursor_batch_count = 15,
	Cursor_apply_time = 16,
	Cursor_last_applied_at = 17,
	Cursor_definition_hash = 18,

	Digest_tenant_id = 2,
	Digest_digest = 3,
	Digest_row_count = 4,

	Failure_tenant_id = 3,
	Failure_error_message = 10,
	Failure_retry_count = 14,
	Failure_first_failed_at = 17,
	Failure_last_failed_at = 18,

	Run_id = 1,
	Run_tenant_id = 3,
	Run_mode = 4,
	Run_state = 5,
	Run_total_events = 8,
	Run_processed_events = 9,
	Run_slice_count = 25,

	Offset_tenant_id = 2,
	Offset_last_sequence_number = 4
};

static PjTable cursors_table = {"projection_cursors", "projection_cursors_pkey"};
static PjTable digests_table = {"projection_digests", "projection_digests_pkey"};
static PjTable failures_table = {"projection_failures", "projection_failures_tenant_idx"};
static PjTable open_failures = {"projection_failures", "projection_failures_open_idx"};
static PjTable runs_table = {"projection_runs", "projection_runs_active_idx"};
static PjTable offsets_table = {"projection_offsets", "projection_offsets_pkey"};
static PjTable items_table = {"apply_outbox", "apply_outbox_pkey"};

static PjStatement select_deltas = {
	.sql = "SELECT projection_id, tenant_id, sum(applied_count)::bigint,"
	" sum(failed_count)::bigint, sum(dead_count)::bigint,"
	" count(*) FILTER (WHERE applied_count > 0), sum(apply_time),"
	" max(last_applied_at) FILTER (WHERE applied_count > 0),"
	" CASE WHEN count(digest) > 0 THEN projector.digest_sum(digest) END,"
	" coalesce(sum(row_count) FILTER (WHERE digest IS NOT NULL), 0)::bigint"
	" FROM projector.projection_deltas WHERE $1 IS NULL OR tenant_id = $1"
	" GROUP BY projection_id, tenant_id ORDER BY projection_id, tenant_id",
	.expect = SPI_OK_SELECT,
	.as_caller = true,			/* as the cursors that they are added to */
	.nargs = 1,
	.argtypes = {TEXTOID},
};

static void
init_reader(PjPairLook *look, PjByPair *reader, PjTable *table,
			AttrNumber tenant, bool one_tenant)
{
	reader->table = table;
	reader->tenant = tenant;
	pj_by_pair_init(reader, look->snapshot, one_tenant);
}

/* Nothing is opened before it is asked. */
void
pj_pair_look_init(PjPairLook *look, Snapshot snapshot, bool one_tenant)
{
	look->snapshot = snapshot;
	look->context = CurrentMemoryContext;
	look->deltas = NULL;
	look->ndeltas = 0;
	init_reader(look, &look->cursors, &cursors_table, Cursor_tenant_id,
				one_tenant);
	init_reader(look, &look->digests, &digests_table, Digest_tenant_id,
				one_tenant);
	init_reader(look, &look->failures, &failures_table, Failure_tenant_id,
				one_tenant);
	init_reader(look, &look->runs, &runs_table, Run_tenant_id, one_tenant);
	init_reader(look, &look->offsets, &offsets_table, Offset_tenant_id,
				one_tenant);
	pj_outbox_look_init(&look->outbox, snapshot, one_tenant);
	pj_log_look_init(&look->log, snapshot);
}

void
pj_pair_look_end(PjPairLook *look)
{
	pj_by_pair_end(&look->cursors);
	pj_by_pair_end(&look->digests);
	pj_by_pair_end(&look->failures);
	pj_by_pair_end(&look->runs);
	pj_by_pair_end(&look->offsets);
	pj_outbox_look_end(&look->outbox);
	pj_log_look_end(&look->log);
}

/* ---- counters and digests ---- */

static void
read_delta(int row, PjDeltaSum *sum)
{
	bool		isnull;

	sum->projection_id = DatumGetInt32(pj_result(row, 1, &isnull));
	sum->tenant = PointerGetDatum(DatumGetTextPCopy(pj_result(row, 2,
															  &isnull)));
	sum->applied = DatumGetInt64(pj_result(row, 3, &isnull));
	sum->failed = DatumGetInt64(pj_result(row, 4, &isnull));
	sum->dead = DatumGetInt64(pj_result(row, 5, &isnull));
	sum->batches = DatumGetInt64(pj_result(row, 6, &isnull));
	sum->apply_time = palloc(sizeof(Interval));
	*sum->apply_time = *DatumGetIntervalP(pj_result(row, 7, &isnull));
	sum->last_applied_at = DatumGetTimestampTz(pj_result(row, 8, &isnull));
	if (isnull)
		sum->last_applied_at = 0;
	sum->digest = pj_result(row, 9, &isnull);
	sum->digest = isnull ? (Datum) 0 :
		PointerGetDatum(DatumGetTextPCopy(sum->digest));
	sum->row_count = DatumGetInt64(pj_result(row, 10, &isnull));
}

/* Add up what has been applied inline, for all pairs or those of a tenant. */
void
pj_pair_look_deltas(PjPairLook *look, Datum tenant)
{
	MemoryContext caller = MemoryContextSwitchTo(look->context);
	PjContext	saved;

	pj_enter_previous(&saved);
	look->ndeltas = pj_execute(&select_deltas, &tenant,
							   tenant ? NULL : "n");
	look->deltas = palloc_extended(sizeof(PjDeltaSum) * Max(look->ndeltas, 1),
								   MCXT_ALLOC_HUGE);
	for (int i = 0; i < look->ndeltas; i++)
		read_delta(i, &look->deltas[i]);
	pj_leave_internal(&saved);
	MemoryContextSwitchTo(caller);
}

static int
compare_deltas(const void *a, const void *b)
{
	const PjDeltaSum *x = a;
	const PjDeltaSum *y = b;

	return x->projection_id != y->projection_id ?
		(x->projection_id > y->projection_id ? 1 : -1) :
		pj_text_compare(x->tenant, y->tenant);
}

static const PjDeltaSum *
find_delta(PjPairLook *look, int32 projection_id, Datum tenant)
{
	PjDeltaSum	key = {.projection_id = projection_id,.tenant = tenant};

	return look->ndeltas == 0 ? NULL :
		bsearch(&key, look->deltas, look->ndeltas, sizeof(PjDeltaSum),
				compare_deltas);
}

static int64
get_int8(PjByPair *reader, AttrNumber column)
{
	bool		isnull;
	Datum		value = pj_by_pair_get(reader, column, &isnull);

	return isnull ? 0 : DatumGetInt64(value);
}

static Datum
get_pointer(PjByPair *reader, AttrNumber column)
{
	bool		isnull;
	Datum		value = pj_by_pair_get(reader, column, &isnull);

	return isnull ? (Datum) 0 : value;
}

/*
 * Tenants that are in the log, because a projection has read some of it for
 * them, in their order.
 */
int
pj_pair_look_known(PjPairLook *look, int32 projection_id, Datum **tenants)
{
	MemoryContext caller = MemoryContextSwitchTo(look->context);
	PjByPair   *reader = &look->cursors;
	int			room = 64;
	int			n = 0;

	*tenants = palloc(sizeof(Datum) * room);
	pj_by_pair_start(reader, projection_id, 0);
	for (; reader->at_row; pj_by_pair_step(reader))
	{
		CHECK_FOR_INTERRUPTS();
		if (get_int8(reader, Cursor_last_log_seq) == 0)
			continue;
		if (n == room)
		{
			room *= 2;
			*tenants = repalloc_huge(*tenants, sizeof(Datum) * room);
		}
		(*tenants)[n++] =
			PointerGetDatum(DatumGetTextPCopy(get_pointer(reader,
														  Cursor_tenant_id)));
	}
	MemoryContextSwitchTo(caller);
	return n;
}

/* The cursor's row, if the reader of cursors stands at one of this tenant. */
bool
pj_pair_look_cursor(PjPairLook *look, Datum tenant, PjCursorRow *row)
{
	PjByPair   *reader = &look->cursors;

	memset(row, 0, sizeof(PjCursorRow));
	if (!pj_by_pair_at(reader, tenant))
		return false;
	row->last_log_seq = get_int8(reader, Cursor_last_log_seq);
	row->state = get_pointer(reader, Cursor_state);
	row->mode = get_pointer(reader, Cursor_mode);
	row->paused_by = get_pointer(reader, Cursor_paused_by);
	row->pause_reason = get_pointer(reader, Cursor_pause_reason);
	row->paused_at = get_int8(reader, Cursor_paused_at);
	row->definition_hash = get_pointer(reader, Cursor_definition_hash);
	return true;
}

static void
add_delta(PjPairTotals *totals, const PjDeltaSum *delta)
{
	totals->applied += delta->applied;
	totals->failed += delta->failed;
	totals->dead += delta->dead;
	totals->batches += delta->batches;
	totals->apply_time =
		DatumGetIntervalP(DirectFunctionCall2(interval_pl,
											  IntervalPGetDatum(totals->apply_time),
											  IntervalPGetDatum(delta->apply_time)));
	totals->last_applied_at = Max(totals->last_applied_at,
								  delta->last_applied_at);
	if (delta->digest == 0)
		return;
	totals->digest = totals->digest == 0 ? delta->digest :
		DirectFunctionCall2(projector_digest_add, totals->digest,
							delta->digest);
	totals->row_count += delta->row_count;
}

/* What has been done; the cursor's part of it is as in the function above. */
void
pj_pair_look_totals(PjPairLook *look, int32 projection_id, Datum tenant,
					bool digests, PjPairTotals *totals)
{
	static Interval none = {0};
	PjByPair   *reader = &look->cursors;
	const PjDeltaSum *delta = find_delta(look, projection_id, tenant);

	memset(totals, 0, sizeof(PjPairTotals));
	totals->apply_time = &none;
	if (pj_by_pair_at(reader, tenant))
	{
		totals->applied = get_int8(reader, Cursor_applied_count);
		totals->failed = get_int8(reader, Cursor_failed_count);
		totals->dead = get_int8(reader, Cursor_dead_count);
		totals->batches = get_int8(reader, Cursor_batch_count);
		totals->apply_time =
			DatumGetIntervalP(get_pointer(reader, Cursor_apply_time));
		totals->last_applied_at = get_int8(reader, Cursor_last_applied_at);
	}
	if (digests && pj_by_pair_find(&look->digests, projection_id, tenant))
	{
		totals->digest = get_pointer(&look->digests, Digest_digest);
		totals->row_count = get_int8(&look->digests, Digest_row_count);
	}
	if (delta)
		add_delta(totals, delta);
}

/* ---- failures and runs ---- */

static char *
get_string(PjByPair *reader, AttrNumber column)
{
	bool		isnull;
	Datum		value = pj_by_pair_get(reader, column, &isnull);

	return isnull ? NULL : TextDatumGetCString(value);
}

/* How often the pair's events failed that are still to be applied. */
void
pj_pair_look_errors(PjPairLook *look, int32 projection_id, Datum tenant,
					PjErrors *errors)
{
	PjByPair   *reader = &look->failures;
	int			n = 0;

	memset(errors, 0, sizeof(PjErrors));
	if (!pj_by_pair_find(reader, projection_id, tenant))
		return;
	while (n++ < PJ_MAX_COUNT && pj_by_pair_at(reader, tenant))
	{
		TimestampTz at = get_int8(reader, Failure_last_failed_at);
		bool		isnull;

		CHECK_FOR_INTERRUPTS();
		errors->count += 1 +
			DatumGetInt32(pj_by_pair_get(reader, Failure_retry_count,
										 &isnull));
		if (errors->last == NULL || at > errors->last_at)
		{
			errors->last = get_string(reader, Failure_error_message);
			errors->last_at = at;
		}
		pj_by_pair_step(reader);
	}
}

/* Since when an event has failed; 0 if no open failure says so. */
TimestampTz
pj_pair_look_failed_since(PjPairLook *look, int32 projection_id,
						  int64 log_seq)
{
	TimestampTz since = 0;
	ScanKeyData keys[2];
	PjFetch		fetch;
	bool		isnull;

	pj_key_int4(&keys[0], 1, projection_id);
	pj_key_int8(&keys[1], 2, log_seq);
	pj_fetch_begin(&fetch, &open_failures, look->snapshot, 2, keys);
	if (pj_fetch_next(&fetch, ForwardScanDirection))
		since = DatumGetTimestampTz(slot_getattr(fetch.slot,
												 Failure_first_failed_at,
												 &isnull));
	pj_fetch_end(&fetch);
	return since;
}

/* The run of a pair that is queued or at work. */
void
pj_pair_look_run(PjPairLook *look, int32 projection_id, Datum tenant,
				 PjActiveRun *run)
{
	PjByPair   *reader = &look->runs;
	bool		isnull;

	memset(run, 0, sizeof(PjActiveRun));
	if (!pj_by_pair_find(reader, projection_id, tenant))
		return;
	run->id = get_int8(reader, Run_id);
	run->mode = get_string(reader, Run_mode);
	run->queued = strcmp(get_string(reader, Run_state), "queued") == 0;
	run->processed = get_int8(reader, Run_processed_events);
	if (DatumGetInt32(pj_by_pair_get(reader, Run_slice_count, &isnull)) > 0)
		run->processed += pj_slices_processed(run->id, look->snapshot);
	run->total = Max(get_int8(reader, Run_total_events), run->processed);
}

/* ---- events that are to be read ---- */

/* Is there an item of this event? */
static bool
has_item(PjFetch *items, bool *open, PjPairLook *look, int32 projection_id,
		 int64 log_seq)
{
	ScanKeyData keys[2];

	pj_key_int4(&keys[0], 1, projection_id);
	pj_key_int8(&keys[1], 2, log_seq);
	if (*open)
		pj_fetch_again(items, 2, keys);
	else
		pj_fetch_begin(items, &items_table, look->snapshot, 2, keys);
	*open = true;
	return pj_fetch_next(items, ForwardScanDirection) != NULL;
}

/* Has an aggregate's offset passed this event? */
static bool
is_applied(PjFetch *offsets, bool *open, PjPairLook *look,
		   const PjUnread *unread, const PjLogEntry *entry)
{
	ScanKeyData keys[3];
	bool		isnull;

	pj_key_int4(&keys[0], 1, unread->projection_id);
	pj_key_text(&keys[1], 2, unread->tenant);
	pj_key_text(&keys[2], 3, entry->aggregate);
	if (*open)
		pj_fetch_again(offsets, 3, keys);
	else
		pj_fetch_begin(offsets, &offsets_table, look->snapshot, 3, keys);
	*open = true;
	return pj_fetch_next(offsets, ForwardScanDirection) != NULL &&
		DatumGetInt64(slot_getattr(offsets->slot, Offset_last_sequence_number,
								   &isnull)) >= entry->sequence_number;
}

static void
note_unread(PjPairLook *look, PjUnread *unread, const PjLogEntry *entry)
{
	if (unread->count++ == 0)
	{
		unread->oldest = entry->log_seq;
		unread->oldest_at = pj_log_look_recorded_at(&look->log);
	}
}

/*
 * Count the events that a pair has yet to read from the log.  Of those after
 * its position, at most PJ_MAX_COUNT are read: if there are more, as many as
 * the limit are reported.
 */
void
pj_pair_look_unread(PjPairLook *look, PjUnread *unread)
{
	MemoryContext caller = MemoryContextSwitchTo(look->context);
	bool		offsets_matter = !unread->log_ordered &&
	pj_by_pair_find(&look->offsets, unread->projection_id, unread->tenant);
	bool		items_matter = !unread->log_ordered && unread->items;
	bool		items_open = false;
	bool		offsets_open = false;
	int			looked = 0;
	PjFetch		items;
	PjFetch		offsets;
	PjLogEntry	entry;

	unread->count = unread->oldest = unread->oldest_at = 0;
	pj_log_look_between(&look->log, unread->tenant, unread->after,
						PG_INT64_MAX);
	while (unread->count < unread->limit &&
		   pj_log_look_next(&look->log, &entry))
	{
		CHECK_FOR_INTERRUPTS();
		if (looked++ == PJ_MAX_COUNT)
		{
			unread->count = unread->limit;
			break;
		}
		if (unread->types && !pj_text_among(entry.event_type, unread->types,
											unread->ntypes))
			continue;
		if (items_matter && has_item(&items, &items_open, look,
									 unread->projection_id, entry.log_seq))
			continue;
		if (offsets_matter && is_applied(&offsets, &offsets_open, look,
										 unread, &entry))
			continue;
		note_unread(look, unread, &entry);
	}
	unread->looked = looked;
	if (items_open)
		pj_fetch_end(&items);
	if (offsets_open)
		pj_fetch_end(&offsets);
	MemoryContextSwitchTo(caller);
}

/* When the event at a position was recorded; 0 if there is none. */
TimestampTz
pj_pair_look_recorded_at(PjPairLook *look, Datum tenant, int64 log_seq)
{
	PjLogEntry	entry;

	pj_log_look_between(&look->log, tenant, log_seq - 1, log_seq);
	return pj_log_look_next(&look->log, &entry) ?
		pj_log_look_recorded_at(&look->log) : 0;
}
