/*
 * replay.c
 *	  Read a tenant's log again from its start, and apply it.
 *
 * Events are read aggregate by aggregate, each in sequence, so that a row is
 * written once or twice and not once per event.  If the projection has log
 * order, they are read in that order.  A replay can be interrupted after any
 * batch and continued from the position in PjReplay.
 *
 * Unless the caller has set a snapshot, each batch is read with a new one.  An
 * event that commits in the meantime may or may not be read.  Either way it
 * also has an outbox item, and the offset shows whether it has been applied.
 */
#include "base/compat.h"

#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/memutils.h"

#include "apply/replay_cache.h"
#include "rebuild/replay.h"
#include "state/offset.h"
#include "state/outbox.h"

/* Raise an error in mode shadow, in which nothing may be applied. */
void
pj_refuse_shadow(const PjPair *pair)
{
	if (pair->mode == PJ_SHADOW)
		ereport(ERROR,
				errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("projection \"%s\" is in mode \"shadow\" for tenant \"%s\"",
					   pair->projection->name,
					   TextDatumGetCString(pair->tenant)),
				errhint("Change it first with projector_set_mode."));
}

/*
 * Prepare to read a pair's log up to a position.  The caller may change the
 * start and choose one aggregate.
 */
void
pj_replay_init(PjReplay *replay, PjPair *pair, int64 upto)
{
	static const PjOnError on_error[] = {
		[PJ_ON_REBUILD_ERROR_RAISE] = PJ_ERROR_RAISED,
		[PJ_ON_REBUILD_ERROR_HOLD] = PJ_ERROR_RECORDED,
		[PJ_ON_REBUILD_ERROR_SKIP] = PJ_ERROR_SKIPPED,
	};

	memset(replay, 0, sizeof(*replay));
	replay->pair = pair;
	replay->context = CurrentMemoryContext;
	replay->on_error = on_error[pair->projection->options.on_rebuild_error];
	replay->max = pair->projection->options.batch_size;
	replay->walk.tenant = pair->tenant;
	replay->walk.upto = upto;
	replay->walk.event_types = pair->projection->event_types;
}

/*
 * Keep in memory the rows that many batches would write.  The caller replays in
 * one transaction or subtransaction, and calls pj_replay_flush() at the end.
 * Does nothing if errors of single events are caught.
 */
void
pj_replay_in_memory(PjReplay *replay)
{
	MemoryContext caller = MemoryContextSwitchTo(replay->context);

	if (replay->pair->projection->log_ordered &&
		replay->on_error == PJ_ERROR_RAISED)
		replay->cache = pj_replay_cache_make(replay->pair);
	MemoryContextSwitchTo(caller);
}

/* Write the rows that are kept in memory. */
void
pj_replay_flush(PjReplay *replay)
{
	if (replay->cache)
		pj_replay_cache_flush(replay->cache);
}

/* Returns the next events; for log order, they are in that order. */
int
pj_replay_read(const PjReplay *replay, PjEvent **events)
{
	const PjProjection *projection = replay->pair->projection;
	bool		more;

	if (!projection->log_ordered)
		return pj_source_walk(&replay->walk, replay->max, events);
	return pj_source_load_log(replay->pair->tenant, replay->last_log_seq,
							  replay->walk.upto, projection->event_types,
							  replay->max, events, &more);
}

/* Apply events, which come after those of the last call. */
void
pj_replay_apply(PjReplay *replay, PjEvent *events, int n)
{
	bool		by_log = replay->pair->projection->log_ordered;
	PjApplyRequest request = {
		.pair = replay->pair,
		.driver = PJ_BY_LOG,
		.given = events,
		.ngiven = n,
		.on_error = replay->on_error,
		.rebuild = true,
		.cache = replay->cache,
	};
	PjApplyResult result;

	if (by_log)
		pj_events_sort(events, n);
	request.nranges = pj_events_ranges(events, n, &request.ranges);
	if (by_log)
		pj_events_sort_by_log(events, n);
	pj_apply(&request, &result);
	if (result.conflict)
		ereport(ERROR,
				errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				errmsg("projection \"%s\" is being applied by another transaction",
					   replay->pair->projection->name),
				errhint("Try again."));
	if (by_log && result.passed < pj_event_log_seq(&events[n - 1]))
		elog(ERROR, "events of a replay were left behind");
	pj_apply_count(&result, &replay->counts);
	if (replay->cache == NULL)
		return;
	replay->cache->last_log_seq = Max(replay->cache->last_log_seq,
									  result.last_log_seq);
	if (pj_replay_cache_is_full(replay->cache))
		pj_replay_cache_flush(replay->cache);
}

/*
 * Remove the events that the live read model's offsets have not reached,
 * whatever the pair's destination.  Returns how many are left, sorted by
 * aggregate.
 */
int
pj_replay_cut(const PjPair *pair, PjEvent *events, int n)
{
	PjRange    *ranges;
	PjOffset   *offsets;
	int			nranges,
				kept = 0;

	pj_events_sort(events, n);
	nranges = pj_events_ranges(events, n, &ranges);
	offsets = palloc(sizeof(PjOffset) * Max(nranges, 1));
	for (int i = 0; i < nranges; i++)
		offsets[i].aggregate = ranges[i].aggregate;
	pj_offsets_load(pair->projection->id, pair->tenant, offsets, nranges);
	for (int i = 0; i < n; i++)
		if (pj_event_sequence(&events[i]) <= offsets[events[i].range].last)
			events[kept++] = events[i];
	return kept;
}

/* Save the current position, in memory that outlives the batch. */
void
pj_replay_move_on(PjReplay *replay, const PjEvent *last)
{
	Datum		aggregate = pj_event_aggregate(last);
	MemoryContext caller;

	replay->last_log_seq = pj_event_log_seq(last);
	replay->walk.sequence = pj_event_sequence(last);
	if (replay->walk.aggregate &&
		pj_text_equal(replay->walk.aggregate, aggregate))
		return;
	caller = MemoryContextSwitchTo(replay->context);
	replay->walk.aggregate = datumCopy(aggregate, false, -1);
	MemoryContextSwitchTo(caller);
}

/*
 * Read the next events and apply them.  Returns how many were read; 0 if there
 * are no more.  The current memory context may be reset afterwards.
 */
int
pj_replay_batch(PjReplay *replay)
{
	PjEvent    *events;
	int			n = pj_replay_read(replay, &events);
	int			kept;

	if (n == 0)
		return 0;
	pj_replay_move_on(replay, &events[n - 1]);
	kept = replay->bounded ? pj_replay_cut(replay->pair, events, n) : n;
	if (kept > 0 && replay->apply)
		replay->apply(replay, events, kept);
	else if (kept > 0)
		pj_replay_apply(replay, events, kept);
	return n;
}

/*
 * Everything that was settled at the start, up to "tail", has been replayed:
 * move the cursor there and update the counters.
 */
void
pj_replay_end(PjPair *pair, int64 tail, const PjCounts *counts)
{
	/* resume a stopped pair, unless its dead event was not replayed */
	if (pair->state == PJ_STOPPED)
		pair->state = PJ_REPLAYING;
	pair->last_log_seq = Max(pair->last_log_seq, tail);
	if (pj_pair_caught_up(pair))
		pair->state = PJ_LIVE;
	if (pair->projection->log_ordered &&
		pj_outbox_has_dead(pair->projection->id, pair->tenant))
		pair->state = PJ_STOPPED;
	pj_cursor_save(pair, counts);
}
