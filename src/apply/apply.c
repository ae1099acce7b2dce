/*
 * apply.c
 *	  The one way in which events are applied, whatever the kind of the
 *	  projection and whoever asks.
 *
 * Apply means: for these aggregates, load the events after the offset from
 * the log, apply them in order, move the offset, all in the caller's
 * transaction.  Drivers differ in how they choose the aggregates and in what
 * becomes of events that cannot be applied now.
 *
 * What it guarantees:
 *
 *	- An event at or below its aggregate's offset is not applied again.
 *	- No event overtakes an earlier one of its aggregate, or, if the
 *	  projection is log-ordered, of its tenant.  Events whose order matters
 *	  form a slice: an aggregate's in sequence, or all in log order.  A slice
 *	  is cut before the first event that has a dead item, a failed one whose
 *	  retry is not due, or one claimed by somebody else, and ends with the
 *	  first event that fails.
 *	- Read model and offset change together: both happen in one
 *	  subtransaction (for strict appends in the caller's own).  The offset
 *	  moves first, by an update that names its old value, so that of two who
 *	  apply the same event only one gets to run its code.
 *	- A failed event costs no other aggregate anything.  What was applied
 *	  before it in the same subtransaction is rolled back and applied again
 *	  without it.
 *
 * The caller has the locks that lock.c asks of it.
 *
 * Most inline appends follow directly upon their aggregate's offset.  Then
 * there is nothing to load and nothing in the outbox, and no SQL of ours is
 * run at all.
 */
#include "base/compat.h"

#include "portability/instr_time.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

#include "apply/apply.h"
#include "apply/batch.h"
#include "apply/read_model.h"
#include "base/errcodes.h"
#include "base/subxact.h"
#include "ipc/waiters.h"
#include "kinds/kind.h"
#include "kinds/problem.h"
#include "sandbox/deadline.h"
#include "state/delta.h"
#include "state/failure.h"
#include "state/offset.h"
#include "state/outbox.h"

/* How often a batch is tried again that others get in the way of. */
#define MAX_TRIES			3

/* After two errors, events are applied in pieces of this size, at first. */
#define PIECE_AFTER_ERRORS	50

const char	pj_suspect_message[] =
"the worker or the server ended while the event was being applied";

/* ---- applying ---- */

/*
 * Check an event against its predecessor, or against the offset if it is the
 * first behind it.
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
		 !pj_source_complete(batch->apply->pair->tenant,
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
	pj_source_check_hash(event);
}

/*
 * Check events that have been read from the log, each in memory of its own.
 * Those that are passed over may be wrong in any way.
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

/* Move the offsets behind events lo .. hi - 1. */
static bool
move_offsets(PjBatch *batch, int lo, int hi)
{
	int			noffsets = batch->apply->nranges;
	PjOffsetMove *moves = palloc(sizeof(PjOffsetMove) * noffsets);
	bool	   *moved = palloc0(sizeof(bool) * noffsets);
	int			n = 0;

	/* each one to the last of its events */
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
	return pj_offsets_move(batch->books, batch->apply->pair->tenant, moves, n);
}

/* A piece of a batch being applied. */
typedef struct Piece
{
	PjBatch    *batch;
	PjWork		work;
	volatile bool moving;		/* its offsets are being moved */
} Piece;

static void
init_piece(Piece *piece, PjBatch *batch, int lo, int hi)
{
	piece->batch = batch;
	piece->work.projection = batch->projection;
	piece->work.tenant = batch->tenant;
	piece->work.table = pj_pair_table(batch->apply->pair);
	piece->work.events = batch->events;
	piece->work.lo = lo;
	piece->work.hi = hi;
	piece->work.at = lo;
	memset(&piece->work.digest, 0, sizeof(PjDigest));
	piece->moving = false;
	pj_deadline_begin(0);
	pj_forget_cancel();
}

/* The first event that is not passed over. */
static int
first_to_run(const PjWork *work)
{
	int			i = work->lo;

	while (i < work->hi && work->events[i]->skipped)
		i++;
	return i;
}

/*
 * Apply a piece.  Returns false if an offset was not where it should be.
 * What keeps the code from being run at all is blamed on the first event that
 * it is to be run for.
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
	return true;
}

/*
 * Apply events lo .. hi - 1 in a subtransaction.  Returns the error, if there
 * is one, with *failed_at telling the event; sets apply->conflict if an offset
 * was not where it should be.  Nothing is left behind in either case.
 */
static ErrorData *
try_events(PjBatch *batch, int lo, int hi, int *failed_at)
{
	Piece		piece;
	ErrorData  *error;
	bool		kept;

	init_piece(&piece, batch, lo, hi);
	error = pj_subtransaction(run_piece, &piece, &kept);
	pj_failure_name_timeout(error);
	if (error && piece.moving && pj_failure_transient(error))
		error = NULL;			/* not the event's: somebody is in the way */
	else if (error && !piece.moving && pj_failure_swallowed(error) &&
			 pj_projection_problem(batch->projection) != NULL)
		error = NULL;			/* nor this: it can no longer run at all */
	else if (error && (piece.moving || !pj_failure_swallowed(error)))
		ReThrowError(error);
	batch->apply->conflict = !error && !kept;
	if (kept)
		pj_digest_add(&batch->apply->digest, &piece.work.digest);
	*failed_at = piece.work.at;
	return error;
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
		batch->apply->last_log_seq =
			Max(batch->apply->last_log_seq,
				pj_event_log_seq(batch->events[i]));
		batch->apply->applied += !batch->events[i]->skipped;
		batch->apply->skipped += batch->events[i]->skipped;
	}
}

/*
 * Record that an event has failed, and stop its slice there, unless it is to
 * be passed over.
 */
static void
note_failed(PjBatch *batch, int i, ErrorData *error)
{
	PjSlice    *slice = &batch->slices[batch->slice_of[i]];
	bool		counted = batch->apply->counted &&
		pj_event_log_seq(batch->events[i]) == batch->apply->retry;
	PjOutcome	outcome;

	pj_batch_enter(batch);
	batch->apply->failed++;
	batch->apply->failed_at = pj_event_sequence(batch->events[i]);
	if (batch->apply->on_error == PJ_ERROR_SKIPPED)
	{
		if (pj_failure_transient(error))
			ReThrowError(error);	/* it is not the event's fault */
		pj_failure_pass_over(batch->apply->pair, batch->events[i], error);
		outcome = PJ_PASS_OVER;
	}
	else
		outcome = pj_failure_record(batch->apply->pair, batch->events[i],
									batch->items[i].attempt_count - counted,
									error);

	/* its offset has a row now, or a new version of it */
	if (batch->apply->on_error != PJ_ERROR_SKIPPED)
		batch->offsets[batch->offset_of[i]].exists = true;
	batch->offsets[batch->offset_of[i]].row = NULL;
	if (outcome == PJ_PASS_OVER)
	{
		batch->events[i]->skipped = true;
		return;
	}
	slice->end = i;
	slice->stopped = true;
	batch->apply->dead += outcome == PJ_GIVE_UP;

	/* what settle() finds there now */
	batch->items[i].status = PJ_FAILED;
}

/*
 * The events from "lo" on that may be applied next, up to the end of a run
 * of slices that were not cut, but no more than "max".
 */
static int
next_run(const PjBatch *batch, int lo, int max)
{
	int			hi = lo;

	while (hi < batch->nevents &&
		   hi < batch->slices[batch->slice_of[hi]].end && hi - lo < max)
		hi++;
	return hi;
}

/*
 * Of the events from "lo" on, the one at *failed_at has failed.  Apply those
 * before it, of which one may fail now.  Returns the error of the first that
 * fails, whose place *failed_at becomes, or PJ_UNKNOWN.
 */
static ErrorData *
apply_before(PjBatch *batch, int lo, ErrorData *error, int *failed_at)
{
	while (*failed_at > lo && !batch->apply->conflict)
	{
		int			hi = *failed_at;
		ErrorData  *again = try_events(batch, lo, hi, failed_at);

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
 * Apply all slices; whatever fails ends its slice and no other.  If it is not
 * known which event failed, half as many are tried, until it is one.  After
 * errors, pieces are small, and grow while all goes well.
 */
static void
apply_slices(PjBatch *batch)
{
	int			errors = 0;
	int			piece = batch->nevents;
	int			lo = 0;

	while (lo < batch->nevents && !batch->apply->conflict)
	{
		const PjSlice *slice = &batch->slices[batch->slice_of[lo]];
		int			hi = next_run(batch, lo, piece);
		int			failed_at;
		ErrorData  *error;

		if (hi == lo)
		{
			lo = slice->loaded_end;
			continue;
		}

		error = try_events(batch, lo, hi, &failed_at);
		if (error && failed_at == PJ_UNKNOWN && hi - lo == 1)
			failed_at = lo;
		if (error && failed_at != PJ_UNKNOWN)
			error = apply_before(batch, lo, error, &failed_at);
		if (batch->apply->conflict)
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
 * Count the attempt at the first event that can be applied, and apply nothing.
 * Should applying it end the process, it has been counted.
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
	outcome = pj_failure_record(batch->apply->pair, batch->events[i],
								batch->items[i].attempt_count, &error);
	slice->end = i;
	slice->stopped = true;
	batch->items[i].status = PJ_FAILED;
	if (outcome == PJ_TRY_AGAIN)
		batch->apply->announced = batch->events[i];
	else
		batch->apply->failed++;
	batch->apply->dead += outcome == PJ_GIVE_UP;
}

/* ---- strict ---- */

/* A strict append is applied now or not at all. */
static void
apply_strictly(PjBatch *batch)
{
	Piece		piece;

	if (batch->apply->blocked > 0)
		ereport(ERROR,
				errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("projection \"%s\" cannot apply the event now",
					   batch->projection->name),
				errdetail("Earlier events of its aggregate have not been applied for tenant \"%s\".",
						  batch->tenant),
				errhint("See projector.outbox; apply them with projector_retry or projector_drain."));
	init_piece(&piece, batch, 0, batch->nevents);
	if (!run_piece(&piece))
		ereport(ERROR,
				errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				errmsg("projection \"%s\" is being applied to the same aggregate by another transaction",
					   batch->projection->name),
				errhint("Try again."));
	pj_digest_add(&batch->apply->digest, &piece.work.digest);
	note_applied(batch, 0, batch->nevents);
}

static void
apply_once(PjApply *apply)
{
	PjBatch		batch = {
		.apply = apply,
		.projection = apply->pair->projection,
		.books = pj_pair_books(apply->pair),
		.kind = pj_kind(apply->pair->projection->kind),
		.tenant = TextDatumGetCString(apply->pair->tenant),
		.by_log = apply->pair->projection->log_ordered,
	};

	pj_batch_load(&batch);
	if (apply->driver == PJ_BY_STRICT_APPEND ||
		apply->on_error == PJ_ERROR_RAISED)
		apply_strictly(&batch);
	else if (apply->announce)
		announce_first(&batch);
	else
		apply_slices(&batch);

	pj_batch_settle(&batch);
	if (batch.by_log)
		apply->passed = batch.slices[0].applied_end < batch.nevents ?
			pj_event_log_seq(batch.events[batch.slices[0].applied_end]) - 1 :
			pj_event_log_seq(&apply->given[apply->ngiven - 1]);
	if (batch.entered)
		pj_leave_internal(&batch.saved);
}

/*
 * If somebody else moves an offset at the same time, what is left is tried
 * again a few times.
 */
static void
apply_repeatedly(PjApply *apply)
{
	apply->applied = apply->failed = apply->failed_at = 0;
	apply->skipped = apply->dropped = apply->held = 0;
	apply->dead = apply->last_log_seq = 0;
	apply->announced = NULL;
	memset(&apply->digest, 0, sizeof(PjDigest));
	apply->conflict = apply->released = false;
	for (int tries = 0; tries < MAX_TRIES && apply->nranges > 0; tries++)
	{
		apply->blocked = 0;
		apply->conflict = apply->incomplete = apply->busy = false;
		apply_once(apply);
		if (!apply->conflict)
			return;
	}
}

/*
 * Bring the digest up to date that is kept of the read model.  (An append must
 * not write what others write too: it leaves a note.)  If rows are hashed in
 * another way than they were, it must be found from the rows, for which one must
 * have the pair to oneself; so a note is left for whoever does that.  What is
 * not the live read model is nobody else's.
 */
static void
keep_digest(const PjApply *apply)
{
	const PjPair *pair = apply->pair;

	if (pj_digest_change(pj_pair_books(pair), pair->tenant, &apply->digest,
						 apply->last_log_seq))
		return;
	if (pair->destination)
		pj_model_refresh(pair, apply->last_log_seq);
	else
		pj_delta_add(pair, &(PjCounts) {0}, &apply->digest,
					 apply->last_log_seq);
}

/* See the top of this file. */
void
pj_apply(PjApply *apply)
{
	const PjProjection *projection = apply->pair->projection;
	instr_time	start,
				duration;

	INSTR_TIME_SET_CURRENT(start);
	pj_kinds_sweep();
	apply_repeatedly(apply);
	INSTR_TIME_SET_CURRENT(duration);
	INSTR_TIME_SUBTRACT(duration, start);
	apply->us = INSTR_TIME_GET_MICROSEC(duration);
	if (apply->applied + apply->skipped + apply->failed + apply->dropped > 0)
		pj_waiters_tell(projection->id, apply->pair->tenant);

	if (!pj_is_append(apply) && !pj_digest_is_zero(&apply->digest))
		keep_digest(apply);
}
