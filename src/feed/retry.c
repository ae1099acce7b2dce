/*
 * retry.c
 *	  Apply one queued event now, regardless of its next attempt time: for
 *	  an operator (api/repair.c), and for a worker that tries events one by
 *	  one after a crash (worker/caution.c).
 */
#include "base/compat.h"

#include "utils/builtins.h"

#include "apply/apply.h"
#include "base/guc.h"
#include "base/lock.h"
#include "feed/retry.h"
#include "log/tail.h"
#include "state/offset.h"
#include "state/outbox.h"

/* Returns the last event that has been applied for the item's aggregate. */
int64
pj_queued_offset(const PjQueuedEvent *item)
{
	PjOffset	offset = {.aggregate = item->aggregate};

	pj_offsets_load(item->pair.projection->id, item->pair.tenant, &offset, 1);
	return offset.last;
}

/*
 * Raise an error if the event has been applied: it can be neither retried nor
 * skipped.
 */
void
pj_queued_refuse_applied(const PjQueuedEvent *item)
{
	int64		offset = pj_queued_offset(item);

	if (offset >= item->sequence)
		ereport(ERROR,
				errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("event %lld of aggregate \"%s\" is not above the offset of projection \"%s\"",
					   (long long) item->sequence,
					   TextDatumGetCString(item->aggregate),
					   item->pair.projection->name),
				errdetail("The offset is %lld: the event has been applied or skipped.",
						  (long long) offset),
				errhint("To apply it again, use projector_rebuild."));
}

/* Returns the new state of a stopped pair when it is resumed. */
PjState
pj_state_when_set_going(const PjPair *pair)
{
	return pair->last_log_seq < pair->handover ?
		PJ_REPLAYING : PJ_LIVE;
}

/*
 * In log order, an event is applied after all earlier ones of its tenant.  If
 * one of those has failed, the event has to wait.
 */
static const char *
retry_in_log_order(PjQueuedEvent *item, int64 log_seq)
{
	PjStep		step = {.pair = item->pair,.moved = true};
	PjBounds	bounds = {.limit = PG_INT32_MAX,.tail = log_seq,
	.retry = log_seq,.counted = item->counted};
	bool		failed;

	/* an event that is not settled has to wait, too */
	if (!pj_tail_reaches(log_seq, pj_tail_wait))
		return "held";
	step.pair.paused = false;
	if (step.pair.state == PJ_STOPPED)
		step.pair.state = pj_state_when_set_going(&step.pair);
	while (pj_step(&step, &bounds) == PJ_MORE && step.counts.failed == 0)
		;

	/* the dead event that stopped the pair may still be there */
	if (item->pair.state == PJ_STOPPED &&
		step.pair.last_log_seq == item->pair.last_log_seq)
		step.pair.state = PJ_STOPPED;

	/* the cursor is just before the event that has failed */
	failed = step.counts.failed > 0 && step.pair.last_log_seq == log_seq - 1;
	pj_step_save(&step);
	if (step.pair.last_log_seq >= log_seq)
		return "applied";
	return failed ? "failed" : "held";
}

/*
 * Apply one queued event, and the earlier ones of its aggregate.  Returns the
 * result of projector_retry().
 */
const char *
pj_queued_retry(PjQueuedEvent *item)
{
	PjPair	   *pair = &item->pair;
	PjRange		range = {.aggregate = item->aggregate,.upto = item->sequence,
	.own = pair->projection->options.batch_size};
	PjClaim		claim;
	PjApplyRequest request = {
		.pair = pair,
		.driver = PJ_BY_RETRY,
		.ranges = &range,
		.nranges = 1,
		.claims = &claim,
		.nclaims = 1,
		.counted = item->counted,
	};
	PjApplyResult result;
	PjCounts	counts = {0};

	Assert(pj_pair_is_locked(pair->projection->id, pair->tenant, ShareLock));
	Assert(pj_driver_is_locked(pair->projection->id, pair->tenant));
	if (!pj_outbox_claim_one(pair->projection->id, pair->tenant,
							 item->aggregate, item->sequence, &claim))
		return "none";
	pj_queued_refuse_applied(item);
	request.retry = pj_event_log_seq(&claim.event);
	if (pair->projection->log_ordered)
		return retry_in_log_order(item, request.retry);

	do
	{
		pj_apply(&request, &result);
		pj_apply_count(&result, &counts);
	} while (result.incomplete && result.applied > 0 && result.failed == 0);
	pj_cursor_save(pair, &counts);

	if (result.failed > 0 && result.failed_at == item->sequence)
		return "failed";
	if (result.dropped > 0)
		return "none";
	return pj_queued_offset(item) >= item->sequence ? "applied" : "held";
}

/*
 * Apply the event that a step has announced.  The caller has entered the pair
 * and has called pj_enter_internal().
 */
void
pj_apply_announced(const PjStep *step)
{
	PjQueuedEvent item = {.pair = step->pair,
		.aggregate = step->announced_aggregate,
	.sequence = step->announced_sequence,.counted = true};

	(void) pj_queued_retry(&item);
}
