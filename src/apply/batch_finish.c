/*
 * batch_finish.c
 *	  What becomes of the outbox once a batch has been applied.
 *
 * Items of applied events go, and their failures are closed.  In log order
 * that is all.  Otherwise given events that could not be applied are queued,
 * and what waits behind a failed or dead event is marked as held, and released
 * once that is done with.
 */
#include "base/compat.h"

#include "utils/builtins.h"

#include "apply/batch.h"
#include "state/failure.h"

/* Is it one of the events that are just being appended? */
bool
pj_batch_is_new(const PjBatch *batch, int i)
{
	const PjApply *apply = batch->apply;

	return pj_is_append(apply) &&
		pj_event_sequence(batch->events[i]) >=
		apply->ranges[batch->slice_of[i]].from;
}

/* Remove the items of applied events, and close their failures. */
static void
settle_applied(PjBatch *batch)
{
	int			room = batch->nevents + batch->nstale + 1;
	const PjItem **gone = palloc(sizeof(PjItem *) * room);
	int64	   *closed = palloc(sizeof(int64) * room);
	int			ngone = 0,
				nclosed = 0;

	for (int s = 0; s < batch->nslices; s++)
	{
		const PjSlice *slice = &batch->slices[s];

		for (int i = slice->first; i < slice->applied_end; i++)
		{
			int64		log_seq = pj_event_log_seq(batch->events[i]);

			if (batch->items[i].status != PJ_NO_ROW)
				gone[ngone++] = &batch->items[i];
			if (!pj_batch_is_new(batch, i))
				closed[nclosed++] = log_seq;
		}
	}
	for (int i = 0; i < batch->nstale; i++)
		closed[nclosed++] = batch->stale[i];
	if (ngone > 0)
		pj_outbox_delete_rows(gone, ngone);
	if (batch->nstale > 0)
		pj_outbox_delete(batch->books, batch->stale, batch->nstale);
	if (nclosed > 0)
		pj_failure_resolve(batch->apply->pair, closed, nclosed, "applied");
}

/*
 * Queue given events that could not be applied.  One that failed has an item
 * already.
 */
static void
settle_unqueued(PjBatch *batch)
{
	PjApply    *apply = batch->apply;
	PjEvent   **unqueued = palloc(sizeof(PjEvent *) * Max(apply->ngiven, 1));
	int			n = 0;

	for (int i = 0, s = 0; i < apply->ngiven; i++)
	{
		while (!pj_text_equal(apply->ranges[s].aggregate,
							  pj_event_aggregate(&apply->given[i])))
			s++;
		if (pj_event_sequence(&apply->given[i]) <= batch->offsets[s].last)
			continue;
		unqueued[n++] = &apply->given[i];
		if (apply->driver == PJ_BY_LOG)
			apply->given[i].replay =
				pj_batch_is_reread(batch, &apply->given[i], apply->pair);
	}
	if (n > 0)
		pj_outbox_enqueue(batch->books, unqueued, n);
}

/*
 * A claimed item whose event was not loaded: it has been applied already, or
 * the projection no longer subscribes to its type, and the item can go.  Or
 * the event is not in the log, and the item fails.
 */
static void
settle_claim(PjBatch *batch, PjClaim *claim)
{
	PjEvent    *event = &claim->event;
	PjPosition	position;
	int64		log_seq = pj_event_log_seq(event);

	if (pj_event_sequence(event) <= batch->offsets[claim->range].last ||
		!pj_projection_wants(batch->projection, event))
	{
		pj_outbox_delete(batch->books, &log_seq, 1);
		pj_failure_resolve(batch->apply->pair, &log_seq, 1,
						   pj_projection_wants(batch->projection, event) ?
						   "applied" : "skipped");
		batch->apply->dropped++;
		batch->slices[claim->range].freed = true;
	}
	else if (!pj_source_position(pj_event_tenant(event),
								 pj_event_aggregate(event),
								 pj_event_sequence(event), &position))
	{
		(void) pj_failure_record_missing(batch->apply->pair, event,
										 claim->item.attempt_count);
		batch->apply->failed++;
		batch->apply->failed_at = pj_event_sequence(event);
	}
}

static void
settle_claims(PjBatch *batch)
{
	PjApply    *apply = batch->apply;

	/* both are sorted by aggregate and sequence */
	for (int c = 0, i = 0; c < apply->nclaims; c++)
	{
		PjClaim    *claim = &apply->claims[c];
		const PjSlice *slice = &batch->slices[claim->range];
		int64		sequence = pj_event_sequence(&claim->event);

		i = Max(i, slice->first);
		while (i < slice->loaded_end &&
			   pj_event_sequence(batch->events[i]) < sequence)
			i++;
		if (i == slice->loaded_end ||
			pj_event_sequence(batch->events[i]) != sequence)
			settle_claim(batch, claim);
	}
}

/*
 * Mark as held what waits behind a failed event, and release what waited for
 * one that has been applied.
 */
static void
settle_held(PjBatch *batch)
{
	PjApply    *apply = batch->apply;
	int64	   *held;
	Datum	   *released;
	int64	   *blocker;		/* of each slice: the event it waits for */
	int			nheld = 0,
				nreleased = 0;

	/* An append does not have the driver lock. */
	if (pj_is_append(apply))
		return;

	held = palloc(sizeof(int64) * (batch->nevents + apply->nclaims + 1));
	released = palloc(sizeof(Datum) * batch->nslices);
	blocker = palloc0(sizeof(int64) * batch->nslices);
	for (int s = 0; s < batch->nslices; s++)
	{
		const PjSlice *slice = &batch->slices[s];
		bool		freed = slice->freed;

		for (int i = slice->first; i < slice->applied_end; i++)
			freed = freed || batch->items[i].attempt_count > 0;
		for (int i = slice->applied_end; i < slice->loaded_end; i++)
		{
			const PjItem *item = &batch->items[i];

			if (item->status == PJ_FAILED || item->status == PJ_DEAD)
				blocker[s] = pj_event_sequence(batch->events[i]);
			else if (blocker[s] && !item->held)
				held[nheld++] = pj_event_log_seq(batch->events[i]);
		}
		if (freed && !blocker[s])
			released[nreleased++] = batch->offsets[s].aggregate;
	}

	/* claimed items whose events were not loaded, because there are many */
	for (int c = 0; c < apply->nclaims; c++)
	{
		int64		waits_for = blocker[apply->claims[c].range];

		if (waits_for &&
			waits_for < pj_event_sequence(&apply->claims[c].event))
			held[nheld++] = pj_event_log_seq(&apply->claims[c].event);
	}
	if (nheld > 0)
		apply->held += pj_outbox_hold(batch->books, held, nheld);
	if (nreleased > 0)
	{
		pj_outbox_release(batch->books, apply->pair->tenant, released,
						  nreleased);
		apply->released = true;
	}
}

/* See the top of this file.  After a conflict, the driver will try again. */
void
pj_batch_settle(PjBatch *batch)
{
	settle_applied(batch);
	if (batch->apply->conflict)
		return;
	if (batch->by_log)
		return;					/* the cursor says what is left */
	settle_unqueued(batch);
	settle_claims(batch);
	settle_held(batch);
}
