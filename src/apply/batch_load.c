/*
 * batch_load.c
 *	  Load a batch: its aggregates' offsets, their events, and the events'
 *	  outbox items.
 *
 * Events whose order matters form a slice: those of an aggregate in sequence,
 * or all in log order.  A slice is cut before the first event that this driver
 * may not apply now.
 */
#include "base/compat.h"

#include "apply/batch.h"
#include "apply/replay_cache.h"
#include "state/failure.h"

/*
 * The maximum number of earlier events of an aggregate that are applied along
 * with a given event or claimed item.
 */
#define MAX_BACKLOG			32

/* Does the driver supply events, rather than items? */
static bool
has_given(const PjApplyRequest *request)
{
	return pj_is_append(request) || request->driver == PJ_BY_LOG;
}

/*
 * Do the given events come directly after the offsets?  Then there is nothing
 * to load, because all earlier ones have been applied.
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
 * Returns how many of a range's events to load: its own events, and some
 * before them.  A trial starts with the first event, so it needs more.
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
 * Do the claimed items come directly after the offsets?  Then no other events
 * need to be loaded, because all earlier ones have been applied.
 */
static bool
claims_suffice(const PjBatch *batch)
{
	const PjApplyRequest *request = batch->request;
	int			range = -1;
	int64		previous = 0;

	if (request->nclaims == 0 || batch->result->busy ||
		request->purpose == PJ_TO_TRY)
		return false;
	for (int c = 0; c < request->nclaims; c++)
	{
		const PjClaim *claim = &request->claims[c];

		if (claim->range != range)
			previous = batch->offsets[range = claim->range].last;
		if (pj_event_sequence(&claim->event) != previous + 1)
			return false;
		previous++;
	}
	return true;
}

/* Load the events of the claimed items alone, if that suffices. */
static bool
load_claimed(PjBatch *batch, PjEvent **events)
{
	const PjApplyRequest *request = batch->request;
	const PjEvent **known;

	if (!claims_suffice(batch))
		return false;
	known = palloc(sizeof(PjEvent *) * request->nclaims);
	for (int c = 0; c < request->nclaims; c++)
		known[c] = &request->claims[c].event;
	if (!pj_source_load_at(request->pair->tenant, known, request->nclaims,
						   batch->projection->event_types, events))
		return false;
	for (int c = 0; c < request->nclaims; c++)
		(*events)[c].range = request->claims[c].range;
	return true;
}

/*
 * Load the events of all ranges, starting at their offsets.  Items whose
 * events do not fit into the batch stay for the next one.
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
	if (load_claimed(batch, events))
		return request->nclaims;
	n = pj_source_load_some(request->pair->tenant, request->ranges,
							request->nranges, batch->projection->event_types,
							request->driver == PJ_BY_QUEUE &&
							request->purpose != PJ_TO_TRY ?
							PJ_BATCH_BYTES : SIZE_MAX, events, &cut);
	batch->result->incomplete = batch->result->incomplete || cut;
	return n;
}

/*
 * Load the events of all ranges, or use the given ones.  In log order some of
 * those may have been applied already.
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

/* In log order all events form one slice, whatever their aggregates. */
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

/*
 * Otherwise events are in the order of the ranges, and each range is a slice.
 */
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

/* Is the backlog short, and are all given events loaded? */
static bool
short_backlog(const PjBatch *batch, int s)
{
	const PjSlice *slice = &batch->slices[s];
	const PjRange *range = &batch->request->ranges[s];
	int			own = slice->first;

	if (range->upto <= batch->offsets[s].last)
		return true;			/* all were applied already */
	while (own < slice->end &&
		   pj_event_sequence(batch->events[own]) < range->from)
		own++;
	return own - slice->first <= MAX_BACKLOG &&
		slice->end > slice->first &&
		pj_event_sequence(batch->events[slice->end - 1]) == range->upto;
}

/* Copy the items of the claims.  Both lists are sorted in the same way. */
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
		 * Given events are applied with their aggregate's backlog only if it
		 * is short and not blocked.
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

/* Returns the current state of the pair, which an append has not read yet. */
static PjPair
pair_now(const PjBatch *batch)
{
	PjPair		pair = *batch->request->pair;

	if (pj_is_append(batch->request))
		pj_pair_look(&pair, pair.projection, pair.tenant);
	return pair;
}

/*
 * An event is a replayed one unless it is just being appended, or has been in
 * the outbox since then.
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

/* Mark the events that must be skipped. */
static void
mark_skips(PjBatch *batch)
{
	if (batch->projection->skips && pj_batch_is_read(batch))
		pj_failure_mark_skipped(batch->projection, batch->events,
								batch->nevents);
}

/*
 * Do we need to run our own SQL?  Not for new events that come directly after
 * their offsets, if those have rows.
 */
static bool
needs_sql(const PjBatch *batch)
{
	for (int i = 0; i < batch->request->nranges; i++)
		if (!batch->offsets[i].exists)
			return true;
	return pj_batch_is_read(batch);
}

/* Load what there is to apply. */
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
