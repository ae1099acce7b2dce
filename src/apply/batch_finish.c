/*
 * batch_finish.c
 *	  Update the outbox after a batch has been applied.
 *
 * Items of applied events are deleted, and their failures closed.  In log
 * order that is all.  Otherwise given events that could not be applied are
 * queued.  Items that wait for a failed or dead event are marked as held, and
 * released once that event is done.  After a trial none of this happens; only
 * events that would fail are recorded.
 */
#include "base/compat.h"

#include "utils/builtins.h"

#include "apply/batch.h"
#include "state/failure.h"

/* Delete the items of applied events, and close their failures. */
static void
remove_applied(PjBatch *batch)
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
	if (nclosed > 0 && !pj_pair_is_trial(batch->request->pair))
		pj_failure_resolve(batch->request->pair, closed, nclosed, "applied");
}

/*
 * Queue given events that could not be applied.  One that failed has an item
 * already.
 */
static void
queue_unapplied(PjBatch *batch)
{
	const PjApplyRequest *request = batch->request;
	PjEvent   **unqueued = palloc(sizeof(PjEvent *) * Max(request->ngiven, 1));
	int			n = 0;

	for (int i = 0, s = 0; i < request->ngiven; i++)
	{
		PjEvent    *event = &request->given[i];

		while (!pj_text_equal(request->ranges[s].aggregate,
							  pj_event_aggregate(event)))
			s++;
		if (pj_event_sequence(event) <= batch->offsets[s].last)
			continue;
		unqueued[n++] = event;
		if (request->driver == PJ_BY_LOG)
			event->replay = pj_batch_is_reread(batch, event, request->pair);
	}
	if (n > 0)
		pj_outbox_enqueue(batch->books, unqueued, n);
}

/* ---- claimed items whose events were not loaded ---- */

/*
 * The item's event has been applied, or is not subscribed to: delete the item.
 */
static void
drop_claim(PjBatch *batch, const PjClaim *claim, bool wanted)
{
	int64		log_seq = pj_event_log_seq(&claim->event);

	pj_outbox_delete(batch->books, &log_seq, 1);
	pj_failure_resolve(batch->request->pair, &log_seq, 1,
					   wanted ? "applied" : "skipped");
	batch->result->dropped++;
	batch->slices[claim->range].freed = true;
}

/*
 * Finish a claimed item whose event was not loaded.  It has been applied
 * already, or the projection no longer subscribes to its type.  Otherwise the
 * event is missing from the log, and the item fails.
 */
static void
finish_claim(PjBatch *batch, const PjClaim *claim)
{
	const PjEvent *event = &claim->event;
	bool		wanted = pj_projection_wants(batch->projection, event);
	PjPosition	position;

	if (pj_event_sequence(event) <= batch->offsets[claim->range].last ||
		!wanted)
		drop_claim(batch, claim, wanted);
	else if (!pj_source_position(pj_event_tenant(event),
								 pj_event_aggregate(event),
								 pj_event_sequence(event), &position))
	{
		(void) pj_failure_record_missing(batch->request->pair, event,
										 claim->item.attempt_count);
		batch->result->failed++;
		batch->result->failed_at = pj_event_sequence(event);
	}
}

/*
 * Returns the first event of a claim's slice, from index i on, that is not
 * before the claimed one.  Claims and events are both sorted by aggregate and
 * sequence number.
 */
static int
next_loaded(const PjBatch *batch, const PjClaim *claim, int i)
{
	const PjSlice *slice = &batch->slices[claim->range];
	int64		sequence = pj_event_sequence(&claim->event);

	i = Max(i, slice->first);
	while (i < slice->loaded_end &&
		   pj_event_sequence(batch->events[i]) < sequence)
		i++;
	return i;
}

static void
finish_claims(PjBatch *batch)
{
	const PjApplyRequest *request = batch->request;

	for (int c = 0, i = 0; c < request->nclaims; c++)
	{
		const PjClaim *claim = &request->claims[c];

		i = next_loaded(batch, claim, i);
		if (i == batch->slices[claim->range].loaded_end ||
			pj_event_sequence(batch->events[i]) !=
			pj_event_sequence(&claim->event))
			finish_claim(batch, claim);
	}
}

/* ---- items that wait ---- */

/* Items to be held or released. */
typedef struct Marks
{
	int64	   *held;			/* log positions of items to be held */
	int			nheld;
	Datum	   *released;		/* aggregates whose items are released */
	int			nreleased;
} Marks;

/*
 * Find the items of one slice to be held or released.  Returns the sequence
 * number of the event that the slice waits for, or 0.
 */
static int64
mark_slice(const PjBatch *batch, int s, Marks *marks)
{
	const PjSlice *slice = &batch->slices[s];
	bool		freed = slice->freed;
	int64		blocker = 0;

	for (int i = slice->first; i < slice->applied_end; i++)
		freed = freed || batch->items[i].attempt_count > 0;
	for (int i = slice->applied_end; i < slice->loaded_end; i++)
	{
		const PjItem *item = &batch->items[i];

		if (item->status == PJ_FAILED || item->status == PJ_DEAD)
			blocker = pj_event_sequence(batch->events[i]);
		else if (blocker && !item->held)
			marks->held[marks->nheld++] = pj_event_log_seq(batch->events[i]);
	}
	if (freed && !blocker)
		marks->released[marks->nreleased++] = batch->offsets[s].aggregate;
	return blocker;
}

/* Find all items to be held or released. */
static void
find_marks(const PjBatch *batch, Marks *marks)
{
	const PjApplyRequest *request = batch->request;
	int64	   *blockers = palloc(sizeof(int64) * batch->nslices);

	marks->held = palloc(sizeof(int64) *
						 (batch->nevents + request->nclaims + 1));
	marks->released = palloc(sizeof(Datum) * batch->nslices);
	marks->nheld = marks->nreleased = 0;
	for (int s = 0; s < batch->nslices; s++)
		blockers[s] = mark_slice(batch, s, marks);

	/* claimed items whose events were not loaded because of the batch size */
	for (int c = 0; c < request->nclaims; c++)
	{
		const PjClaim *claim = &request->claims[c];
		int64		blocker = blockers[claim->range];

		if (blocker && blocker < pj_event_sequence(&claim->event))
			marks->held[marks->nheld++] = pj_event_log_seq(&claim->event);
	}
}

/*
 * Mark items that wait for a failed event as held, and release those that
 * waited for one that has been applied.  An append does not hold the driver
 * lock, so it does neither.
 */
static void
hold_and_release(PjBatch *batch)
{
	Datum		tenant = batch->request->pair->tenant;
	Marks		marks;

	if (pj_is_append(batch->request))
		return;
	find_marks(batch, &marks);
	if (marks.nheld > 0)
		batch->result->held += pj_outbox_hold(batch->books, tenant, marks.held,
											  marks.nheld);
	if (marks.nreleased > 0)
	{
		pj_outbox_release(batch->books, tenant, marks.released,
						  marks.nreleased);
		batch->result->released = true;
	}
}

/*
 * Update the outbox: see the top of this file.  After a conflict, the driver
 * will try again.
 */
void
pj_batch_finish(PjBatch *batch)
{
	remove_applied(batch);
	if (batch->result->conflict)
		return;
	if (batch->by_log)
		return;					/* the cursor shows what is left */
	queue_unapplied(batch);
	finish_claims(batch);
	hold_and_release(batch);
}

/* ---- trials ---- */

/*
 * Returns the verdict for the event at an index of the batch, if it is there.
 */
static PjVerdict
verdict_of(const PjBatch *batch, const PjSlice *slice, int i, int64 sequence)
{
	if (i == slice->loaded_end ||
		pj_event_sequence(batch->events[i]) != sequence)
		return PJ_UNTESTED;
	if (i < slice->applied_end)
		return PJ_WOULD_PASS;
	return batch->error && i == batch->failed_at ? PJ_WOULD_FAIL :
		PJ_UNTESTED;
}

/* Return the verdict for each claimed item, and record the failure. */
void
pj_batch_finish_try(PjBatch *batch)
{
	const PjApplyRequest *request = batch->request;
	int			room = Max(request->nclaims, 1);
	PjVerdict  *verdicts = palloc(sizeof(PjVerdict) * room);

	for (int c = 0, i = 0; c < request->nclaims; c++)
	{
		const PjClaim *claim = &request->claims[c];
		const PjSlice *slice = &batch->slices[claim->range];

		i = next_loaded(batch, claim, i);
		verdicts[c] = verdict_of(batch, slice, i,
								 pj_event_sequence(&claim->event));
		if (verdicts[c] == PJ_WOULD_FAIL)
			pj_failure_record_shadow(batch->request->pair, batch->events[i],
									 batch->error);
	}
	batch->result->verdicts = verdicts;
}
