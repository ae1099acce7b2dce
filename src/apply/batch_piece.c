/*
 * batch_piece.c
 *	  Apply some of a batch's events, all or none: check them, move their
 *	  aggregates' offsets, run the projection's code.
 *
 * This is the only place where a projection's code runs for events.  The
 * offsets move first: only the transaction that moves them may run the code.
 */
#include "base/compat.h"

#include "utils/builtins.h"
#include "utils/memutils.h"

#include "apply/batch.h"
#include "apply/replay_cache.h"
#include "base/errcodes.h"
#include "base/subxact.h"
#include "kinds/kind.h"
#include "kinds/problem.h"
#include "sandbox/deadline.h"
#include "state/failure.h"
#include "state/offset.h"

/* ---- checking ---- */

/*
 * Check an event against its predecessor, or against the offset if it is the
 * first one after it.
 */
static void
check_event(PjBatch *batch, int i)
{
	const PjSlice *slice = &batch->slices[batch->slice_of[i]];
	const PjOffset *offset = &batch->offsets[batch->offset_of[i]];
	PjEvent    *event = batch->events[i];
	PjEvent    *before = batch->before[i] >= slice->applied_end ?
	batch->events[batch->before[i]] : NULL;
	int64		previous = before ? pj_event_sequence(before) : offset->last;

	if (pj_event_sequence(event) != previous + 1 &&
		(batch->projection->event_types == 0 ||
		 !pj_source_complete(batch->request->pair->tenant,
							 offset->aggregate, previous,
							 pj_event_sequence(event))))
		ereport(ERROR,
				errcode(ERRCODE_PJ_EVENT_MISSING),
				errmsg("event %lld of aggregate \"%s\" of tenant \"%s\" is missing from the log",
					   (long long) previous + 1,
					   TextDatumGetCString(offset->aggregate),
					   batch->tenant),
				errdetail("The next one found is event %lld.",
						  (long long) pj_event_sequence(event)));
	if (before && pj_event_log_seq(event) <= pj_event_log_seq(before))
		ereport(ERROR,
				errcode(ERRCODE_PJ_SEQUENCE_VIOLATION),
				errmsg("event %lld of aggregate \"%s\" of tenant \"%s\" comes before its predecessor in the log",
					   (long long) pj_event_sequence(event),
					   TextDatumGetCString(offset->aggregate),
					   batch->tenant));
	pj_event_check_hash(event);
}

/*
 * Check events that were read from the log; memory is freed after each.
 * Skipped ones are not checked.
 */
static void
check_events(PjBatch *batch, PjWork *work)
{
	MemoryContext context,
				caller;

	if (!pj_batch_is_read(batch))
		return;
	context = AllocSetContextCreate(CurrentMemoryContext, "projector check",
									ALLOCSET_DEFAULT_SIZES);
	caller = MemoryContextSwitchTo(context);
	for (work->at = work->lo; work->at < work->hi; work->at++)
	{
		if (!work->events[work->at]->skipped)
			check_event(batch, work->at);
		MemoryContextReset(context);
	}
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(context);
}

/* ---- applying ---- */

/* Put moves in the order of their keys, which is that of the table's index. */
static void
reverse_moves(PjOffsetMove *moves, int n)
{
	for (int i = 0; i < n / 2; i++)
	{
		PjOffsetMove move = moves[i];

		moves[i] = moves[n - 1 - i];
		moves[n - 1 - i] = move;
	}
}

/* Move the offsets past events lo .. hi - 1. */
static bool
move_offsets(PjBatch *batch, int lo, int hi)
{
	int			noffsets = batch->request->nranges;
	PjOffsetMove *moves = palloc(sizeof(PjOffsetMove) * noffsets);
	bool	   *moved = palloc0(sizeof(bool) * noffsets);
	int			n = 0;

	/* move each one to the last of its events */
	for (int i = hi - 1; i >= lo; i--)
	{
		int			o = batch->offset_of[i];

		if (moved[o])
			continue;
		moved[o] = true;
		moves[n].from = &batch->offsets[o];
		moves[n].to = pj_event_sequence(batch->events[i]);
		moves[n++].event_id = pj_event_id(batch->events[i]);
	}
	if (batch->request->cache)
	{
		pj_offset_cache_move(batch->request->cache->offsets, moves, n);
		return true;
	}
	reverse_moves(moves, n);
	return pj_offsets_move(batch->books, batch->request->pair->tenant, moves,
						   n, batch->request->rebuild);
}

/* A piece of a batch being applied. */
typedef struct Piece
{
	PjBatch    *batch;
	PjWork		work;
	volatile bool moving;		/* its offsets are being moved */
	bool		done;			/* nothing has failed */
} Piece;

static void
init_piece(Piece *piece, PjBatch *batch, int lo, int hi)
{
	piece->batch = batch;
	piece->work.projection = batch->projection;
	piece->work.tenant = batch->tenant;
	piece->work.table = pj_pair_table(batch->request->pair);
	piece->work.trial = pj_pair_is_trial(batch->request->pair);
	piece->work.cache = batch->request->cache ?
		batch->request->cache->rows : NULL;
	piece->work.events = batch->events;
	piece->work.lo = lo;
	piece->work.hi = hi;
	piece->work.at = lo;
	memset(&piece->work.digest, 0, sizeof(PjDigest));
	piece->moving = piece->done = false;
	pj_deadline_begin(0);
	pj_forget_cancel();
}

/* Returns the first event that is not skipped. */
static int
first_to_run(const PjWork *work)
{
	int			i = work->lo;

	while (i < work->hi && work->events[i]->skipped)
		i++;
	return i;
}

/*
 * Apply a piece.  Returns false if it must be rolled back: an offset was not
 * where it should be, or this is a trial.
 *
 * An error that prevents the code from running at all is blamed on the first
 * event that it should run for.
 */
static bool
run_piece(void *arg)
{
	Piece	   *piece = arg;
	PjBatch    *batch = piece->batch;
	PjWork	   *work = &piece->work;

	check_events(batch, work);
	work->at = work->lo;
	piece->moving = true;
	if (!move_offsets(batch, work->lo, work->hi))
		return false;
	piece->moving = false;
	work->at = first_to_run(work);
	if (work->at < work->hi)
		batch->kind->apply(work);
	piece->done = true;
	return batch->request->purpose != PJ_TO_TRY;
}

/*
 * Apply events lo .. hi - 1 in a subtransaction.  Returns the error, if any,
 * and sets *failed_at to the event.  Sets result->conflict if an offset was
 * not where it should be.  In both cases, and in a trial, everything is rolled
 * back.
 */
ErrorData *
pj_batch_apply_piece(PjBatch *batch, int lo, int hi, int *failed_at)
{
	Piece		piece;
	ErrorData  *error;
	bool		kept;

	init_piece(&piece, batch, lo, hi);
	error = pj_subtransaction(run_piece, &piece, &kept);
	pj_failure_name_timeout(error);
	if (error && piece.moving && pj_failure_transient(error))
		error = NULL;			/* not the event's fault: another transaction
								 * has moved the offset */
	else if (error && !piece.moving && pj_failure_swallowed(error) &&
			 pj_projection_problem(batch->projection) != NULL)
		error = NULL;			/* not the event's fault: the projection can
								 * no longer run */
	else if (error && (piece.moving || !pj_failure_swallowed(error)))
		ReThrowError(error);
	batch->result->conflict = !error && !piece.done;
	if (kept)
		pj_digest_add(&batch->result->digest, &piece.work.digest);
	*failed_at = piece.work.at;
	return error;
}

/*
 * Apply all events of a batch in the caller's own transaction; errors are
 * passed on.  Returns false if an offset was not where it should be.
 */
bool
pj_batch_run_all(PjBatch *batch)
{
	Piece		piece;

	init_piece(&piece, batch, 0, batch->nevents);
	if (!run_piece(&piece))
		return false;
	pj_digest_add(&batch->result->digest, &piece.work.digest);
	return true;
}
