/*
 * pair_step.c
 *	  The next batch of one projection and tenant, from whatever source.
 *
 * If a pair is behind (state "replaying" or "switching"), its log is read up
 * to the projection's handover first, and its queued items wait until then.
 * Otherwise queued items are applied.  In mode "follow" they are followed by
 * the events between the cursor and the settled tail of the log.  In log order
 * all events are read from the log, and the items only say which events to
 * expect.
 *
 * The cursor is kept in memory until it is saved, so that a transaction with
 * many batches writes it once.
 */
#include "base/compat.h"

#include "storage/lockdefs.h"
#include "utils/builtins.h"

#include "apply/apply.h"
#include "base/lock.h"
#include "feed/pair_step.h"
#include "feed/shadow.h"
#include "kinds/problem.h"
#include "state/failure.h"
#include "state/outbox.h"

/* ---- the log ---- */

/*
 * Move the cursor to a position, and change the state if that is the handover.
 */
static void
move_cursor(PjStep *step, int64 log_seq)
{
	PjPair	   *pair = &step->pair;

	if (log_seq > pair->last_log_seq)
	{
		pair->last_log_seq = log_seq;
		step->moved = true;
	}
	if (pj_pair_caught_up(pair))
	{
		pair->state = PJ_LIVE;
		step->moved = true;
	}
}

static void
note_result(PjStep *step, const PjApplyResult *result)
{
	pj_apply_count(result, &step->counts);
	if (result->announced)
	{
		step->announced = pj_event_log_seq(result->announced);
		step->announced_aggregate = pj_event_aggregate(result->announced);
		step->announced_sequence = pj_event_sequence(result->announced);
	}
	step->busy = step->busy || result->busy || result->conflict;
}

/* Apply events that were read from the log in log order. */
static void
apply_events(PjStep *step, const PjBounds *bounds, PjEvent *events, int n,
			 PjApplyResult *result)
{
	PjApplyRequest request = {
		.pair = &step->pair,
		.driver = PJ_BY_LOG,
		.given = events,
		.ngiven = n,
		.retry = bounds->retry,
		.counted = bounds->counted,
		.purpose = bounds->announce ? PJ_TO_ANNOUNCE : PJ_TO_APPLY,
	};

	pj_events_sort(events, n);
	request.nranges = pj_events_ranges(events, n, &request.ranges);
	if (step->pair.projection->log_ordered)
		pj_events_sort_by_log(events, n);
	pj_apply(&request, result);
	note_result(step, result);
}

/* Read the log up to "bound", aggregate by aggregate. */
static PjProgress
read_log(PjStep *step, const PjBounds *bounds, int64 bound, int limit)
{
	PjPair	   *pair = &step->pair;
	bool		behind = pj_pair_behind(pair);
	PjEvent    *events;
	int64		last = bound;
	int			n;
	bool		more;

	if (bound <= pair->last_log_seq && !behind)
		return PJ_IDLE;
	n = pj_source_load_log(pair->tenant, pair->last_log_seq, bound,
						   pair->projection->event_types, limit, &events,
						   &more);
	if (n > 0)
	{
		PjApplyResult result;

		last = pj_event_log_seq(&events[n - 1]);
		apply_events(step, bounds, events, n, &result);
		if (result.conflict)
			return PJ_IDLE;
	}
	move_cursor(step, more ? last : bound);

	/* after the handover, items may be waiting */
	if (more || (behind && !pj_pair_behind(pair)))
		return PJ_MORE;
	return n > 0 ? PJ_DONE : PJ_IDLE;
}

/*
 * Returns how far to read the log of a pair that is behind.  Events that are
 * not settled must wait; the projection's handover is always settled.
 */
static int64
behind_bound(const PjPair *pair, const PjBounds *bounds)
{
	if (pair->mode == PJ_FOLLOW)
		return bounds->tail;
	return pair->own_handover ? Min(pair->handover, bounds->tail) :
		pair->handover;
}

/* ---- the log, in log order ---- */

/* A part of the log, up to the first missing event. */
typedef struct LogPart
{
	PjEvent    *events;
	int			nevents;
	int64		upto;			/* the part's last position */
	bool		more;			/* there may be more events */
	bool		has_missing;	/* the event of the item below comes next, but
								 * is not in the log */
	PjClaim		missing;
} LogPart;

/*
 * In log order the items say which events to expect.  Find the first item, up
 * to a position, whose event is not in the log.  An item whose type is no
 * longer subscribed to is deleted: its append was in progress when the
 * subscription changed.
 */
static bool
find_missing(PjStep *step, int64 upto, const PjEvent *events, int n,
			 PjClaim *missing)
{
	const PjPair *pair = &step->pair;

	while (pj_outbox_astray(pair->projection->id, pair->tenant,
							pair->last_log_seq, upto, events, n, missing))
	{
		int64		log_seq = pj_event_log_seq(&missing->event);

		if (pj_projection_wants(pair->projection, &missing->event))
			return true;
		pj_outbox_delete(pair->projection->id, &log_seq, 1);
		pj_failure_resolve(pair, &log_seq, 1, "skipped");
	}
	return false;
}

/* The pair has reached an item whose event is not in the log. */
static void
fail_missing(PjStep *step, const PjClaim *missing, int64 retry)
{
	PjPair	   *pair = &step->pair;
	const PjEvent *event = &missing->event;

	if (missing->item.status != PJ_PENDING && !missing->item.due &&
		pj_event_log_seq(event) != retry)
		return;
	if (pj_failure_record_missing(pair, event,
								  missing->item.attempt_count) == PJ_GIVE_UP)
	{
		pair->state = PJ_STOPPED;
		step->counts.dead++;
	}
	step->moved = true;
	step->counts.failed++;
}

/* Read the next part of the log. */
static void
read_part(PjStep *step, const PjBounds *bounds, int limit, LogPart *part)
{
	const PjPair *pair = &step->pair;

	part->nevents = pj_source_load_log(pair->tenant, pair->last_log_seq,
									   bounds->tail,
									   pair->projection->event_types, limit,
									   &part->events, &part->more);
	part->upto = part->more ?
		pj_event_log_seq(&part->events[part->nevents - 1]) : bounds->tail;
	part->has_missing = find_missing(step, part->upto, part->events,
									 part->nevents, &part->missing);
	if (!part->has_missing)
		return;
	part->upto = pj_event_log_seq(&part->missing.event) - 1;
	while (part->nevents > 0 &&
		   pj_event_log_seq(&part->events[part->nevents - 1]) > part->upto)
		part->nevents--;
}

/*
 * Read the log up to its settled tail, in log order.  Stop before an event
 * that cannot be applied.
 */
static PjProgress
read_in_log_order(PjStep *step, const PjBounds *bounds, int limit)
{
	PjPair	   *pair = &step->pair;
	int64		before = pair->last_log_seq;
	PjApplyResult result = {0};
	LogPart		part;

	if (bounds->retry == 0 &&
		pj_outbox_blocked(pair->projection->id, pair->tenant))
		return PJ_IDLE;
	read_part(step, bounds, limit, &part);
	if (part.nevents > 0)
	{
		int64		last = pj_event_log_seq(&part.events[part.nevents - 1]);

		apply_events(step, bounds, part.events, part.nevents, &result);
		if (result.conflict)
			return PJ_IDLE;
		if (result.passed < last)
		{
			part.upto = result.passed;
			part.has_missing = false;	/* the missing one was not reached */
		}
	}
	move_cursor(step, part.upto);
	if (result.dead > 0)
	{
		pair->state = PJ_STOPPED;
		step->moved = true;
	}
	if (part.has_missing)
		fail_missing(step, &part.missing, bounds->retry);
	else if (part.more && pair->last_log_seq > before)
		return PJ_MORE;
	return result.applied + result.failed + part.has_missing > 0 ?
		PJ_DONE : PJ_IDLE;
}

/* ---- the queue ---- */

/*
 * Returns the last position of a pending item among these, or 0.  The next
 * claim starts there.  The caller uses it only if as many items were claimed
 * as it asked for.  Otherwise items may have become visible or due since at
 * any earlier position.
 */
static int64
last_pending(const PjClaim *claims, int n)
{
	int64		last = 0;

	for (int i = 0; i < n; i++)
		if (claims[i].item.status == PJ_PENDING)
			last = Max(last, pj_event_log_seq(&claims[i].event));
	return last;
}

/*
 * Claim the next items.  If many items are being marked as held, every second
 * batch takes the newest ones.  Otherwise new events of other aggregates would
 * wait until all these items are marked.
 */
static int
claim_items(PjStep *step, const PjBounds *bounds, int limit, bool newest,
			PjClaim **claims)
{
	const PjPair *pair = &step->pair;
	int			n;

	if (newest)
		return pj_outbox_claim_newest(pair->projection->id, pair->tenant,
									  limit, bounds->upto, claims);
	n = pj_outbox_claim(pair->projection->id, pair->tenant, limit,
						step->claim_after, bounds->upto, claims);
	step->claim_after = n == limit ? last_pending(*claims, n) : 0;
	return n;
}

static PjProgress
read_queue(PjStep *step, const PjBounds *bounds, int limit)
{
	PjPair	   *pair = &step->pair;
	int64		after = step->claim_after;
	bool		newest = step->holding && !bounds->announce;
	PjApplyRequest request = {
		.pair = pair,
		.driver = PJ_BY_QUEUE,
		.purpose = bounds->announce ? PJ_TO_ANNOUNCE : PJ_TO_APPLY,
	};
	PjApplyResult result;
	bool		worked;

	request.nclaims = claim_items(step, bounds, limit, newest,
								  &request.claims);
	request.nranges = pj_outbox_ranges(request.claims, request.nclaims,
									   &request.ranges);
	pj_apply(&request, &result);
	note_result(step, &result);
	step->holding = !newest && request.nclaims == limit && result.held > 0;
	if (newest)
		return PJ_MORE;			/* older items are left */
	if (result.incomplete)
		step->claim_after = 0;	/* some of these must be done again */
	worked = !result.conflict &&
		result.applied + result.skipped + result.failed + result.dropped +
		result.held > 0;
	if (after > 0 || (worked && (request.nclaims == limit ||
								 result.incomplete || result.released)))
		return PJ_MORE;
	return worked ? PJ_DONE : PJ_IDLE;
}

/* ---- a step ---- */

/*
 * Take the locks of a pair and read how it runs.  Returns false if a lock is
 * taken, or if the projection is gone.  No lock is waited for here.
 */
bool
pj_step_enter(PjStep *step)
{
	PjProjection *projection = pj_projection_by_id(step->projection_id);
	PjPair	   *pair = &step->pair;

	if (projection == NULL || projection->dormant ||
		!pj_lock_projection(projection->id, ShareLock, false))
		return false;
	projection = pj_projection_by_id(step->projection_id);
	if (projection == NULL ||
		!pj_pair_try_lock(projection->id, step->tenant,
						  projection->log_ordered ? ExclusiveLock :
						  ShareLock))
		return false;

	pj_pair_look(pair, projection, step->tenant);
	step->moved = false;
	memset(&step->counts, 0, sizeof(PjCounts));
	return true;
}

/* Apply the next batch of a pair that has been entered. */
PjProgress
pj_step(PjStep *step, const PjBounds *bounds)
{
	PjPair	   *pair = &step->pair;
	int			limit = Min(pair->projection->options.batch_size,
							bounds->announce && pair->mode != PJ_SHADOW ?
							1 : bounds->limit);
	PjProgress	progress;

	Assert(pj_driver_is_locked(pair->projection->id, pair->tenant));
	step->busy = false;
	step->announced = 0;
	if (pair->mode == PJ_OFF || pair->paused || pair->run_id != 0 ||
		pair->state == PJ_STOPPED ||
		pj_projection_problem(pair->projection) != NULL)
		return PJ_IDLE;
	if (pair->mode == PJ_SHADOW)
		return pj_shadow(pair, limit, bounds->upto, bounds->announce,
						 &step->busy) ? PJ_MORE : PJ_IDLE;
	if (pj_pair_behind(pair) && !pair->projection->handed_over &&
		!bounds->ordered)
		return PJ_IDLE;
	if (pair->projection->log_ordered)
		return read_in_log_order(step, bounds, limit);
	if (pj_pair_behind(pair))
		return read_log(step, bounds, behind_bound(pair, bounds), limit);

	progress = read_queue(step, bounds, limit);
	if (progress == PJ_IDLE && pair->mode == PJ_FOLLOW)
		return read_log(step, bounds, bounds->tail, limit);
	return pair->mode == PJ_FOLLOW ? PJ_MORE : progress;
}

/*
 * Like pj_step, on a user's request: regardless of mode and pauses, items are
 * applied and the log is read from the cursor on.
 */
PjProgress
pj_step_ordered(PjStep *step, const PjBounds *bounds)
{
	PjPair		as_is = step->pair;
	PjProgress	progress;

	Assert(bounds->ordered);
	step->pair.mode = PJ_FOLLOW;
	step->pair.paused = false;
	step->pair.run_id = 0;
	progress = pj_step(step, bounds);
	step->pair.mode = as_is.mode;
	step->pair.paused = as_is.paused;
	step->pair.run_id = as_is.run_id;
	return progress;
}

/* Save what has changed. */
void
pj_step_save(PjStep *step)
{
	if (step->moved || step->counts.applied + step->counts.failed > 0)
		pj_cursor_save(&step->pair, &step->counts);
	step->moved = false;
	memset(&step->counts, 0, sizeof(PjCounts));
}
