/*
 * batch.c
 *	  Questions about a batch: where its events come from, and whether an
 *	  event is new or replayed.
 */
#include "base/compat.h"

#include "apply/batch.h"

/* Were the batch's events read from the log, by us or by the driver? */
bool
pj_batch_is_read(const PjBatch *batch)
{
	return batch->loaded || batch->request->driver == PJ_BY_LOG;
}

/* Is it one of the events that are just being appended? */
bool
pj_batch_is_new(const PjBatch *batch, int i)
{
	const PjApplyRequest *request = batch->request;

	return pj_is_append(request) &&
		pj_event_sequence(batch->events[i]) >=
		request->ranges[batch->slice_of[i]].from;
}

/*
 * Is this event a replayed one?  It has no item and is not just being
 * appended.  It is not a replay if the projection had been off, or follows the
 * log.
 */
bool
pj_batch_is_reread(const PjBatch *batch, const PjEvent *event,
				   const PjPair *pair)
{
	if (batch->request->rebuild)
		return true;
	switch (pair->state)
	{
		case PJ_SWITCHING:
			return false;
		case PJ_REPLAYING:
			return !batch->projection->handed_over ||
				pj_event_log_seq(event) <= pair->handover;
		default:
			return batch->request->driver != PJ_BY_LOG;
	}
}

/* Prepare to run our own SQL. */
void
pj_batch_enter(PjBatch *batch)
{
	if (!batch->entered)
		pj_enter_internal(&batch->saved);
	batch->entered = true;
}
