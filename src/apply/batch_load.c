/*
 * batch_load.c
 *	  What a batch consists of: its aggregates' offsets, their events, and what
 *	  the outbox says of them.
 *
 * Events whose order matters form a slice: an aggregate's in sequence, or all
 * in log order.  A slice is cut before the first event that may not be applied
 * by this driver now.
 */
#include "base/compat.h"

#include "apply/batch.h"
#include "apply/replay_cache.h"
#include "state/failure.h"

/*
 * Given events and claimed items take at most this many earlier events of
 * their aggregate along at a time.
 */
#define MAX_BACKLOG			32

/* Does the driver come with events, rather than with items? */
static bool
has_given(const PjApplyRequest *request)
{
	return pj_is_append(request) || request->driver == PJ_BY_LOG;
}

/*
 * Do the given events follow directly upon the offsets?  Then there is
 * nothing to load: all before them have been applied.
 */
static bool
given_suffice(const PjBatch *batch)
{
	const PjApplyRequest *request = batch->request;
	int			range = -1;
	int64		previous = 0;

	if (request->ngiven == 0 || batch->result->busy)
		return false;
	for (int i = 0; i < request->ngiven; i++)
	{
		const PjEvent *event = &request->given[i];

		if (range < 0 ||
			!pj_text_equal(request->ranges[range].aggregate,
						   pj_event_aggregate(event)))
			previous = batch->offsets[++range].last;
		if (pj_event_sequence(event) != previous + 1)
			return false;
		previous++;
	}
	return true;
}

/*
 * How many of a range's events to load: the events it is for, and some before
 * them.  What is only tried begins with the first, so it needs more of them.
 */
static int
max_events(const PjBatch *batch, int range)
{
	if (batch->offsets[range].busy)
		return 0;
	if (batch->request->purpose == PJ_TO_TRY)
		return batch->projection->options.batch_size;
	return batch->request->ranges[range].own + MAX_BACKLOG + 1;
}

/*
 * Load the events of all ranges from their offsets on.  Items whose events are
 * too many for a batch stay for the next one.
 */
static int
load_ranges(PjBatch *batch, PjEvent **events)
{
	const PjApplyRequest *request = batch->request;
	bool		cut;
	int			n;

	for (int i = 0; i < request->nranges; i++)
	{
		PjRange    *range = &request->ranges[i];

		range->after = batch->offsets[i].last;
		range->max = max_events(batch, i);
	}
	n = pj_source_load_some(request->pair->tenant, request->ranges,
							request->nranges, batch->projection->event_types,
							request->driver == PJ_BY_QUEUE &&
							request->purpose != PJ_TO_TRY ?
							PJ_BATCH_BYTES : SIZE_MAX, events, &cut);
	batch->result->incomplete = batch->result->incomplete || cut;
	return n;
}

/*
 * Load the events of all ranges, or take the given ones.  In log order there
 * may be some among them that have been applied.
 */
static void
load_events(PjBatch *batch)
{
	const PjApplyRequest *request = batch->request;
	PjEvent    *events = request->given;
	int			n = batch->loaded ? load_ranges(batch, &events) :
	request->ngiven;

	batch->events = palloc(sizeof(PjEvent *) * Max(n, 1));
	batch->stale = palloc(sizeof(int64) * Max(n, 1));
	for (int i = 0; i < n; i++)
	{
		if (batch->by_log && pj_event_sequence(&events[i]) <=
			batch->offsets[events[i].range].last)
			batch->stale[batch->nstale++] = pj_event_log_seq(&events[i]);
		else
			batch->events[batch->nevents++] = &events[i];
	}
}

/* Events in log order are one slice, whichever aggregates they are of. */
static void
cut_one_slice(PjBatch *batch)
{
	int		   *last = palloc(sizeof(int) * batch->request->nranges);

	for (int i = 0; i < batch->request->nranges; i++)
		last[i] = -1;
	batch->nslices = 1;
	batch->slices[0].end = batch->slices[0].loaded_end = batch->nevents;
	for (int i = 0; i < batch->nevents; i++)
	{
		int			range = batch->events[i]->range;

		batch->slice_of[i] = 0;
		batch->offset_of[i] = range;
		batch->before[i] = last[range];
		last[range] = i;
	}
}

/* Otherwise they come in the order of the ranges: each has its slice. */
static void
cut_slice(PjBatch *batch, int s)
{
	PjSlice    *slice = &batch->slices[s];
	int			at = s > 0 ? batch->slices[s - 1].loaded_end : 0;

	slice->first = slice->applied_end = at;
	while (at < batch->nevents &&
		   pj_text_equal(pj_event_aggregate(batch->events[at]),
						 batch->offsets[s].aggregate))
	{
		batch->slice_of[at] = batch->offset_of[at] = s;
		batch->before[at] = at > slice->first ? at - 1 : -1;
		at++;
	}
	slice->end = slice->loaded_end = at;
	if (batch->loaded && at - slice->first == batch->request->ranges[s].max)
		batch->result->incomplete = true;
}

static void
cut_slices(PjBatch *batch)
{
	int			room = Max(batch->nevents, 1);

	batch->nslices = batch->request->nranges;
	batch->slices = palloc0(sizeof(PjSlice) * batch->nslices);
	batch->slice_of = palloc(sizeof(int) * room);
	batch->offset_of = palloc(sizeof(int) * room);
	batch->before = palloc(sizeof(int) * room);
	if (batch->by_log)
		cut_one_slice(batch);
	else
		for (int s = 0; s < batch->nslices; s++)
			cut_slice(batch, s);
}

/* May this event be applied by this driver now? */
static bool
may_apply(const PjBatch *batch, int i)
{
	const PjApplyRequest *request = batch->request;
	const PjItem *item = &batch->items[i];

	if (request->purpose == PJ_TO_TRY)
		return true;
	switch (item->status)
	{
		case PJ_NO_ROW:
			return true;
		case PJ_PENDING:
			return item->claimed;
		case PJ_FAILED:
		case PJ_DEAD:
			if (!item->claimed || (has_given(request) && !batch->by_log))
				return false;
			if (pj_event_log_seq(batch->events[i]) == request->retry)
				return true;
			return item->status == PJ_FAILED && item->due;
	}
	return false;
}

/* Are there but few events to take along, and all given ones at hand? */
static bool
short_backlog(const PjBatch *batch, int s)
{
	const PjSlice *slice = &batch->slices[s];
	const PjRange *range = &batch->request->ranges[s];
	int			own = slice->first;

	if (range->upto <= batch->offsets[s].last)
		return true;			/* all have been applied */
	while (own < slice->end &&
		   pj_event_sequence(batch->events[own]) < range->from)
		own++;
	return own - slice->first <= MAX_BACKLOG &&
		slice->end > slice->first &&
		pj_event_sequence(batch->events[slice->end - 1]) == range->upto;
}

/* Take over what the claims say.  Both are sorted alike. */
static void
items_from_claims(PjBatch *batch, bool *known)
{
	const PjApplyRequest *request = batch->request;

	for (int c = 0, i = 0; c < request->nclaims; c++)
	{
		const PjClaim *claim = &request->claims[c];
		const PjSlice *slice = &batch->slices[claim->range];
		int64		log_seq = pj_event_log_seq(&claim->event);

		i = Max(i, slice->first);
		while (i < slice->loaded_end &&
			   pj_event_log_seq(batch->events[i]) < log_seq)
			i++;
		if (i < slice->loaded_end &&
			pj_event_log_seq(batch->events[i]) == log_seq)
		{
			batch->items[i] = claim->item;
			known[i] = true;
		}
	}
}

/*
 * Find the events' items.  New events have none, and those of claims are
 * known.
 */
static void
find_items(PjBatch *batch)
{
	int			room = Max(batch->nevents, 1);
	PjEvent   **unknown = palloc(sizeof(PjEvent *) * room);
	int		   *place = palloc(sizeof(int) * room);
	bool	   *known = palloc0(sizeof(bool) * room);
	PjItem	   *items;
	int			n = 0;

	batch->items = palloc0(sizeof(PjItem) * room);
	items_from_claims(batch, known);
	for (int i = 0; i < batch->nevents; i++)
	{
		if (known[i] || pj_batch_is_new(batch, i))
			continue;
		unknown[n] = batch->events[i];
		place[n++] = i;
	}
	if (n == 0)
		return;
	items = palloc(sizeof(PjItem) * n);
	pj_outbox_claim_events(batch->books, unknown, n, items);
	for (int i = 0; i < n; i++)
		batch->items[place[i]] = items[i];
}

/* End each slice before the first event that may not be applied. */
static void
cut_blocked(PjBatch *batch)
{
	const PjApplyRequest *request = batch->request;
	PjApplyResult *result = batch->result;

	for (int s = 0; s < batch->nslices; s++)
	{
		PjSlice    *slice = &batch->slices[s];
		int			i = slice->first;

		while (i < slice->end && may_apply(batch, i))
			i++;
		slice->stopped = i < slice->end ||
			(!batch->by_log && batch->offsets[s].busy);

		/*
		 * Given events take their aggregate's backlog along only if that is
		 * short, and nothing holds it.
		 */
		if (has_given(request) && !batch->by_log &&
			(slice->stopped || !short_backlog(batch, s)))
		{
			slice->stopped = true;
			i = slice->first;
		}
		slice->end = i;
		result->blocked += slice->stopped;
	}
}

/* How the pair is doing; an append has not looked. */
static PjPair
pair_now(const PjBatch *batch)
{
	PjPair		pair = *batch->request->pair;

	if (pj_is_append(batch->request))
		pj_pair_look(&pair, pair.projection, pair.tenant);
	return pair;
}

/*
 * An event is replayed unless it is just being appended, or has been waiting
 * in the outbox ever since.
 */
static void
mark_replays(PjBatch *batch)
{
	PjPair		pair;
	bool		looked = false;

	for (int i = 0; i < batch->nevents; i++)
	{
		PjEvent    *event = batch->events[i];

		if (batch->items[i].status != PJ_NO_ROW || pj_batch_is_new(batch, i))
		{
			event->replay = batch->items[i].replay;
			continue;
		}
		if (!looked)
			pair = pair_now(batch);
		looked = true;
		event->replay = pj_batch_is_reread(batch, event, &pair);
	}
}

/* Events that an operator has decided to skip. */
static void
mark_skips(PjBatch *batch)
{
	if (batch->projection->skips && pj_batch_is_read(batch))
		pj_failure_mark_skipped(batch->projection, batch->events,
								batch->nevents);
}

/*
 * Is SQL of ours needed?  Not for new events that follow upon their offsets,
 * if those have rows.
 */
static bool
needs_sql(const PjBatch *batch)
{
	for (int i = 0; i < batch->request->nranges; i++)
		if (!batch->offsets[i].exists)
			return true;
	return pj_batch_is_read(batch);
}

/* Find out what there is to apply. */
void
pj_batch_load(PjBatch *batch)
{
	const PjApplyRequest *request = batch->request;
	PjApplyResult *result = batch->result;

	batch->offsets = palloc(sizeof(PjOffset) * request->nranges);
	for (int i = 0; i < request->nranges; i++)
		batch->offsets[i].aggregate = request->ranges[i].aggregate;
	if (request->cache)
		pj_offset_cache_load(request->cache->offsets, batch->offsets,
							 request->nranges);
	else
		pj_offsets_load(batch->books, request->pair->tenant, batch->offsets,
						request->nranges);
	for (int i = 0; i < request->nranges; i++)
		result->busy = result->busy || batch->offsets[i].busy;
	batch->loaded = !batch->by_log && !given_suffice(batch);
	if (needs_sql(batch))
		pj_batch_enter(batch);
	load_events(batch);
	cut_slices(batch);
	find_items(batch);
	cut_blocked(batch);
	mark_replays(batch);
	mark_skips(batch);
}
