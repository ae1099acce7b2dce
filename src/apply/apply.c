/*
 * apply.c
 *	  Apply events.  All kinds of projections and all drivers use this
 *	  file.
 *
 * To apply means: for some aggregates, load the events after the offset from
 * the log, apply them in order, and move the offset, all in the caller's
 * transaction.  Drivers differ in how they choose the aggregates, and in what
 * they do with events that cannot be applied now.
 *
 * Guarantees:
 *
 * - An event at or below its aggregate's offset is not applied again.
 * - No event is applied before an earlier one of its aggregate or, if the
 *   projection is log-ordered, of its tenant.  Events whose order matters form
 *   a slice: those of an aggregate in sequence, or all in log order.  A slice
 *   is cut before the first event whose item is dead, is failed and not due,
 *   or is claimed by another transaction.  It ends with the first event that
 *   fails.
 * - Read model and offset change together, in one subtransaction (for strict
 *   appends in the caller's own).  The offset moves first, by an update of its
 *   old version.  So if two transactions apply the same event, only one of
 *   them runs its code.
 * - A failed event does not affect other aggregates.  What was applied before
 *   it in the same subtransaction is rolled back and applied again without it.
 * - Mode "shadow" uses the same code, and everything is rolled back.
 *
 * The caller holds the locks that lock.c requires (see assert_locks()).
 *
 * Most inline appends come directly after their aggregate's offset.  Then
 * there is nothing to load and nothing in the outbox, and none of our own SQL
 * runs.
 */
#include "base/compat.h"

#include "portability/instr_time.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "apply/apply.h"
#include "apply/batch.h"
#include "apply/made_by.h"
#include "apply/read_model.h"
#include "base/errcodes.h"
#include "base/lock.h"
#include "ipc/latency.h"
#include "ipc/waiters.h"
#include "kinds/kind.h"
#include "state/delta.h"
#include "state/failure.h"

/* How often a batch is tried if other transactions move its offsets. */
#define MAX_TRIES			3

/* After two errors, events are applied in pieces of this size at first. */
#define PIECE_AFTER_ERRORS	50

const char	pj_suspect_message[] =
"the worker or the server ended while the event was being applied";

/* Note the log position of an applied event. */
static void
note_position(PjApplyResult *result, int64 log_seq)
{
	if (result->first_log_seq == 0 || log_seq < result->first_log_seq)
		result->first_log_seq = log_seq;
	result->last_log_seq = Max(result->last_log_seq, log_seq);
}

/*
 * Note how long new events have waited.  Those that the append applies itself
 * have not waited, and those that are read again were applied before.
 */
static void
note_latencies(const PjBatch *batch, int lo, int hi)
{
	TimestampTz now;

	if (pj_is_append(batch->request) || batch->request->rebuild ||
		batch->request->pair->destination || lo == hi)
		return;
	now = GetCurrentTimestamp();
	for (int i = lo; i < hi; i++)
	{
		const PjEvent *event = batch->events[i];

		if (!event->replay && !event->skipped)
			pj_latency_note(DatumGetTimestampTz(event->values[PJ_EVENT_RECORDED_AT]),
							now);
	}
}

/* Events lo .. hi - 1 have been applied. */
static void
note_applied(PjBatch *batch, int lo, int hi)
{
	for (int i = lo; i < hi; i++)
	{
		PjOffset   *offset = &batch->offsets[batch->offset_of[i]];

		batch->slices[batch->slice_of[i]].applied_end = i + 1;
		offset->last = pj_event_sequence(batch->events[i]);
		offset->exists = true;
		offset->row = NULL;
		note_position(batch->result, pj_event_log_seq(batch->events[i]));
		batch->result->applied += !batch->events[i]->skipped;
		batch->result->skipped += batch->events[i]->skipped;
	}
	note_latencies(batch, lo, hi);
}

/*
 * Record that an event has failed.  Its slice stops there, unless the event is
 * skipped.
 */
static void
note_failed(PjBatch *batch, int i, ErrorData *error)
{
	PjSlice    *slice = &batch->slices[batch->slice_of[i]];
	bool		counted = batch->request->counted &&
	pj_event_log_seq(batch->events[i]) == batch->request->retry;
	PjOutcome	outcome;

	pj_batch_enter(batch);
	batch->result->failed++;
	batch->result->failed_at = pj_event_sequence(batch->events[i]);
	if (batch->request->on_error == PJ_ERROR_SKIPPED)
	{
		if (pj_failure_transient(error))
			ReThrowError(error);	/* the event did not cause it */
		pj_failure_pass_over(batch->request->pair, batch->events[i],
							 error);
		outcome = PJ_PASS_OVER;
	}
	else
		outcome = pj_failure_record(batch->request->pair, batch->events[i],
									batch->items[i].attempt_count - counted,
									error);

	/* its offset now has a row, or a new row version */
	if (batch->request->on_error != PJ_ERROR_SKIPPED)
		batch->offsets[batch->offset_of[i]].exists = true;
	batch->offsets[batch->offset_of[i]].row = NULL;
	if (outcome == PJ_PASS_OVER)
	{
		batch->events[i]->skipped = true;
		return;
	}
	slice->end = i;
	slice->stopped = true;
	batch->result->dead += outcome == PJ_GIVE_UP;

	/* for pj_batch_finish() */
	batch->items[i].status = PJ_FAILED;
}

/*
 * Returns the end of the events from "lo" on that may be applied next, at most
 * "max".  They can span several slices, up to the end of the first that was
 * cut.
 */
static int
next_end(const PjBatch *batch, int lo, int max)
{
	int			hi = lo;

	while (hi < batch->nevents &&
		   hi < batch->slices[batch->slice_of[hi]].end && hi - lo < max)
		hi++;
	return hi;
}

/*
 * Of the events from "lo" on, the one at *failed_at has failed.  Apply those
 * before it, one of which may fail now.  Returns the error of the first that
 * fails and sets *failed_at to its index, or to PJ_UNKNOWN.
 */
static ErrorData *
apply_before(PjBatch *batch, int lo, ErrorData *error, int *failed_at)
{
	while (*failed_at > lo && !batch->result->conflict)
	{
		int			hi = *failed_at;
		ErrorData  *again = pj_batch_apply_piece(batch, lo, hi, failed_at);

		if (again == NULL)
		{
			*failed_at = hi;
			break;
		}
		error = again;
		if (*failed_at == PJ_UNKNOWN && hi - lo == 1)
			*failed_at = lo;
	}
	return error;
}

/*
 * Apply all slices.  A failed event only ends its own slice.  If it is not
 * known which event failed, half as many are tried, until it is a single one.
 * After errors, pieces are small, and grow as long as there are no more.
 */
static void
apply_slices(PjBatch *batch)
{
	int			errors = 0;
	int			piece = batch->nevents;
	int			lo = 0;

	while (lo < batch->nevents && !batch->result->conflict)
	{
		const PjSlice *slice = &batch->slices[batch->slice_of[lo]];
		int			hi = next_end(batch, lo, piece);
		int			failed_at;
		ErrorData  *error;

		if (hi == lo)
		{
			lo = slice->loaded_end;
			continue;
		}

		error = pj_batch_apply_piece(batch, lo, hi, &failed_at);
		if (error && failed_at == PJ_UNKNOWN && hi - lo == 1)
			failed_at = lo;
		if (error && failed_at != PJ_UNKNOWN)
			error = apply_before(batch, lo, error, &failed_at);
		if (batch->result->conflict)
			return;
		if (error && failed_at == PJ_UNKNOWN)
		{
			piece = (hi - lo) / 2;
			continue;
		}
		piece = Min(piece * 2, batch->nevents);
		if (error)
		{
			hi = failed_at;
			if (++errors > 1)
				piece = Min(piece, PIECE_AFTER_ERRORS);
		}
		note_applied(batch, lo, hi);
		lo = hi;
		if (error)
			note_failed(batch, lo, error);
	}
}

/*
 * Count an attempt of the first event that can be applied, and apply nothing.
 * If applying it later crashes the process, it has been counted.
 */
static void
announce_first(PjBatch *batch)
{
	ErrorData	error = {.elevel = ERROR,.sqlerrcode = ERRCODE_PJ_SUSPECT,
	.message = (char *) pj_suspect_message};
	int			i = 0;
	PjSlice    *slice;
	PjOutcome	outcome;

	while (i < batch->nevents && i >= batch->slices[batch->slice_of[i]].end)
		i++;
	if (i == batch->nevents)
		return;
	slice = &batch->slices[batch->slice_of[i]];
	pj_batch_enter(batch);
	outcome = pj_failure_record(batch->request->pair, batch->events[i],
								batch->items[i].attempt_count, &error);
	slice->end = i;
	slice->stopped = true;
	batch->items[i].status = PJ_FAILED;
	if (outcome == PJ_TRY_AGAIN)
		batch->result->announced = batch->events[i];
	else
		batch->result->failed++;
	batch->result->dead += outcome == PJ_GIVE_UP;
}

/* ---- trying ---- */

/*
 * Of the events from "lo" on, those before "hi" fail if they are applied
 * together.  Find the first that fails.  Trials are rolled back, so each one
 * starts with the first event.  Returns its error.
 */
static ErrorData *
find_failing(PjBatch *batch, int lo, int hi, ErrorData *error, int *failed_at)
{
	int			passes = lo;	/* events before this one do not fail */

	while (*failed_at == PJ_UNKNOWN && hi - passes > 1)
	{
		int			middle = passes + (hi - passes) / 2;
		ErrorData  *found = pj_batch_apply_piece(batch, lo, middle, failed_at);

		if (batch->result->conflict)
			return NULL;
		if (found)
		{
			hi = middle;
			error = found;
			continue;
		}
		passes = middle;
		*failed_at = PJ_UNKNOWN;
	}
	if (*failed_at == PJ_UNKNOWN)
		*failed_at = hi - 1;
	return error;
}

/* Try the events of the batch's only slice, and find the first that fails. */
static void
try_events(PjBatch *batch)
{
	PjSlice    *slice = &batch->slices[0];
	int			failed_at;
	ErrorData  *error;

	Assert(batch->nslices == 1);
	if (slice->end == slice->first)
		return;
	error = pj_batch_apply_piece(batch, slice->first, slice->end, &failed_at);
	if (error)
		error = find_failing(batch, slice->first, slice->end, error,
							 &failed_at);
	if (batch->result->conflict)
		return;
	slice->applied_end = error ? failed_at : slice->end;
	batch->failed_at = failed_at;
	batch->error = error;
}

/* ---- strict ---- */

/* A strict append is applied now, or fails. */
static void
apply_strictly(PjBatch *batch)
{
	if (batch->result->blocked > 0)
		ereport(ERROR,
				errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("projection \"%s\" cannot apply the event now",
					   batch->projection->name),
				errdetail("Earlier events of its aggregate have not been applied for tenant \"%s\".",
						  batch->tenant),
				errhint("See projector.outbox; apply them with projector_retry or projector_drain."));
	if (!pj_batch_run_all(batch))
		ereport(ERROR,
				errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				errmsg("projection \"%s\" is being applied to the same aggregate by another transaction",
					   batch->projection->name),
				errhint("Try again."));
	note_applied(batch, 0, batch->nevents);
}

static void
apply_once(const PjApplyRequest *request, PjApplyResult *result)
{
	PjBatch		batch = {
		.request = request,
		.result = result,
		.projection = request->pair->projection,
		.books = pj_pair_books(request->pair),
		.kind = pj_kind(request->pair->projection->kind),
		.tenant = TextDatumGetCString(request->pair->tenant),

		/* a trial is of one aggregate only */
		.by_log = request->pair->projection->log_ordered &&
		request->purpose != PJ_TO_TRY,
	};

	pj_batch_load(&batch);
	if (request->purpose == PJ_TO_TRY)
		try_events(&batch);
	else if (request->driver == PJ_BY_STRICT_APPEND ||
			 request->on_error == PJ_ERROR_RAISED)
		apply_strictly(&batch);
	else if (request->purpose == PJ_TO_ANNOUNCE)
		announce_first(&batch);
	else
		apply_slices(&batch);

	if (request->purpose != PJ_TO_TRY)
		pj_batch_finish(&batch);
	else if (!result->conflict)
		pj_batch_finish_try(&batch);
	if (batch.by_log)
		result->passed = batch.slices[0].applied_end < batch.nevents ?
			pj_event_log_seq(batch.events[batch.slices[0].applied_end]) - 1 :
			pj_event_log_seq(&request->given[request->ngiven - 1]);
	if (batch.entered)
		pj_leave_internal(&batch.saved);
}

/*
 * Apply.  If another transaction moves an offset at the same time, try the
 * rest again a few times.  Counts add up over the tries; the flags are those
 * of the last one.
 */
static void
apply_repeatedly(const PjApplyRequest *request, PjApplyResult *result)
{
	for (int tries = 0; tries < MAX_TRIES && request->nranges > 0; tries++)
	{
		result->blocked = 0;
		result->conflict = result->incomplete = result->busy = false;
		apply_once(request, result);
		if (!result->conflict)
			return;
	}
}

/*
 * Update the stored digest of the read model.  (An append adds a delta
 * instead, so that it does not update a row that others update.) If the
 * table's layout has changed, the digest must be recomputed from the rows,
 * under an exclusive lock on the pair.  So a delta is added, and the
 * recomputation is done later.  A build is used only by its run, so its digest
 * is recomputed here.  The slices of a build have a digest each.
 */
void
pj_apply_keep_digest(const PjPair *pair, const PjDigest *by, int64 log_seq)
{
	if (pair->destination && pair->destination->digest)
	{
		pj_digest_add_change(pair->destination->digest, by, log_seq);
		return;
	}
	if (pj_digest_change(pj_pair_books(pair), pair->tenant, by, log_seq))
		return;
	if (pair->destination)
		pj_model_refresh(pair, log_seq);
	else
		pj_delta_add(pair, &(PjCounts) {0}, by, log_seq);
}

/* Wake sessions that wait for the events that are done. */
static void
tell_waiters(const PjPair *pair, const PjApplyResult *result)
{
	if (result->failed + result->dropped + result->held > 0)
		pj_waiters_tell(pair->projection->id, pair->tenant);
	else if (result->applied + result->skipped > 0)
		pj_waiters_tell_range(pair->projection->id, pair->tenant,
							  pair->projection->log_ordered ? 0 :
							  result->first_log_seq,
							  Max(result->last_log_seq, result->passed));
}

/*
 * An append holds the pair's lock; all others hold its driver lock, too.  For a
 * slice of a build they hold that in ShareLock, and the slice's lock.
 */
static void
assert_locks(const PjApplyRequest *request)
{
	int32		id PG_USED_FOR_ASSERTS_ONLY = request->pair->projection->id;
	Datum		tenant PG_USED_FOR_ASSERTS_ONLY = request->pair->tenant;

	Assert(pj_pair_is_locked(id, tenant, ShareLock));
	Assert(pj_is_append(request) || pj_driver_is_locked(id, tenant) ||
		   (request->pair->destination && request->pair->destination->digest &&
			pj_driver_is_shared(id, tenant)));
}

/*
 * Does a driver make rows of the live read model?  (An append has noted their
 * definition before.)
 */
static bool
makes_rows(const PjApplyRequest *request)
{
	return request->purpose == PJ_TO_APPLY && request->nranges > 0 &&
		request->pair->destination == NULL && !pj_is_append(request);
}

/*
 * Apply the requested events, and return the results: see the top of this
 * file.
 */
void
pj_apply(const PjApplyRequest *request, PjApplyResult *result)
{
	const PjPair *pair = request->pair;
	instr_time	start,
				duration;

	assert_locks(request);
	Assert(request->cache == NULL || request->on_error == PJ_ERROR_RAISED);
	INSTR_TIME_SET_CURRENT(start);
	memset(result, 0, sizeof(*result));
	pj_kinds_sweep();
	if (makes_rows(request))
		pj_made_by_note(request->pair);
	apply_repeatedly(request, result);
	if (makes_rows(request))
		pj_made_by_note(request->pair); /* it may have changed meanwhile */
	INSTR_TIME_SET_CURRENT(duration);
	INSTR_TIME_SUBTRACT(duration, start);
	result->us = INSTR_TIME_GET_MICROSEC(duration);
	if (pj_pair_is_trial(pair))
		return;
	tell_waiters(pair, result);
	if (!pj_is_append(request) && !pj_digest_is_zero(&result->digest))
		pj_apply_keep_digest(pair, &result->digest, result->last_log_seq);
}
