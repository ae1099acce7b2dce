/*
 * due_pairs.c
 *	  Which projections have work to do for which tenants.
 *
 * A pair has work for one of three reasons: its log must be read up to the
 * handover, it has due items in the outbox, or it reads events from the log
 * and there are some after its cursor.  The list is made without locks, so
 * each pair is checked again under its locks before work on it starts.
 */
#include "base/compat.h"

#include "storage/lockdefs.h"

#include "base/lock.h"
#include "feed/active_tenants.h"
#include "feed/due_pairs.h"
#include "kinds/problem.h"
#include "log/tail.h"
#include "state/outbox.h"

/*
 * Returns the ids of all projections.  Callers take locks while they go
 * through the list, which may replace the cached registry, so they need ids
 * and not pointers.
 */
int
pj_projection_ids(int32 **ids)
{
	PjProjection *projections;
	int			n = pj_projections(&projections);

	*ids = palloc(sizeof(int32) * Max(n, 1));
	for (int i = 0; i < n; i++)
		(*ids)[i] = projections[i].id;
	return n;
}

/* The one tenant of the scan, if it has events. */
static void
find_only_tenant(PjScan *scan)
{
	scan->all.tenants = palloc(sizeof(Datum));
	scan->all.last = palloc(sizeof(int64));
	scan->all.tenants[0] = scan->only;
	scan->all.last[0] = pj_source_last_of(scan->only);
	scan->all.count = scan->all.last[0] > 0 ? 1 : 0;
}

/* Find the log's tail and who has events, once per scan. */
void
pj_scan_log(PjScan *scan)
{
	if (scan->has_log)
		return;
	scan->tail = pj_tail(scan->tail_wait);
	if (scan->hinted)
		scan->unsettled = pj_active_unread(&scan->all, scan->tail);
	else if (scan->only)
		find_only_tenant(scan);
	else
		pj_source_tenants(&scan->all);
	scan->all.unread = palloc0(sizeof(bool) * Max(scan->all.count, 1));
	scan->has_log = true;
}

/* Is the pair running at all: not off, paused, stopped or in a run? */
static bool
is_applied(const PjPair *pair)
{
	return pair->mode != PJ_OFF && !pair->paused && pair->run_id == 0 &&
		pair->state != PJ_STOPPED;
}

/* May some tenant read its events from the log? */
bool
pj_may_read_log(const PjProjection *projection)
{
	return projection->log_ordered || projection->mode == PJ_FOLLOW ||
		projection->overrides;
}

/* Must the pair's log be read up to the handover? */
static bool
is_due_behind(const PjPair *pair)
{
	return pj_pair_behind(pair) && pair->mode != PJ_SHADOW;
}

/* Does the pair read events from the log after its cursor? */
static bool
is_due_unread(const PjPair *pair)
{
	return !pj_pair_behind(pair) && pj_pair_reads_log(pair);
}

/* May the pair apply due items, without reading its log first? */
static bool
is_due_queued(const PjPair *pair)
{
	return !pj_pair_behind(pair) || pair->mode == PJ_SHADOW;
}

/* Pairs of one projection that have work to do. */
typedef struct DuePairs
{
	PjProjection *projection;
	PjPair	   *pairs;
	int			count;
} DuePairs;

/* Those who may have something to do, for each reason. */
typedef struct Candidates
{
	Datum	   *behind;
	Datum	   *unread;
	Datum	   *queued;
	int			nbehind;
	int			nunread;
	int			nqueued;
} Candidates;

/* Add those of the tenants whose pairs are due for a reason. */
static void
add_due(DuePairs *due, const Datum *tenants, int n,
		bool (*is_due) (const PjPair *pair))
{
	for (int i = 0; i < n; i++)
	{
		PjPair	   *pair = &due->pairs[due->count];

		pj_pair_look(pair, due->projection, tenants[i]);
		if (is_applied(pair) && is_due(pair))
			due->count++;
	}
}

/*
 * Remove tenants that read the log and are already in the list of unread ones.
 */
static int
leave_out_unread(const DuePairs *due, Datum *queued, int nqueued,
				 const Datum *unread, int nunread)
{
	int			kept = 0;

	for (int i = 0; i < nqueued; i++)
	{
		PjPair		pair;

		if (pj_text_among(queued[i], unread, nunread))
		{
			pj_pair_look(&pair, due->projection, queued[i]);
			if (pj_pair_reads_log(&pair))
				continue;
		}
		queued[kept++] = queued[i];
	}
	return kept;
}

/*
 * The next look begins after the last of these tenants, or, if there were not
 * so many, from the first again.
 */
static void
move_place(PjScan *scan, Datum *place, const Datum *tenants, int n)
{
	*place = n < scan->limit ? 0 : tenants[n - 1];
	scan->more = scan->more || n == scan->limit;
}

/* Some tenants that have items which can be applied. */
static void
find_queued(PjScan *scan, int32 projection_id, PjPlace *place,
			Candidates *found)
{
	Datum	   *failed;
	bool	   *due;
	int			nfailed = 0;

	found->nqueued = pj_outbox_pending(projection_id, place->pending,
									   scan->limit, &found->queued);
	move_place(scan, &place->pending, found->queued, found->nqueued);
	if (pj_outbox_retry_is_due(projection_id, &scan->next_due))
	{
		nfailed = pj_outbox_failed(projection_id, place->failed, scan->limit,
								   &failed, &due);
		move_place(scan, &place->failed, failed, nfailed);
	}
	if (nfailed == 0)
		return;
	found->queued = repalloc(found->queued, sizeof(Datum) *
							 (found->nqueued + nfailed));
	for (int i = 0; i < nfailed; i++)
		if (due[i])
			found->queued[found->nqueued++] = failed[i];
	found->nqueued = pj_texts_unique(found->queued, found->nqueued);
}

/* Some of the tenants that may have something to do. */
static void
find_candidates(PjScan *scan, PjProjection *projection, PjPlace *place,
				Candidates *found)
{
	found->nbehind = pj_cursors_behind(projection, place->behind, scan->limit,
									   &found->behind);
	move_place(scan, &place->behind, found->behind, found->nbehind);
	find_queued(scan, projection->id, place, found);
}

/* The same, if only one tenant is of interest. */
static void
find_only_candidate(PjScan *scan, const PjProjection *projection,
					Candidates *found)
{
	found->behind = &scan->only;
	found->nbehind = 1;
	found->queued = &scan->only;
	found->nqueued = pj_outbox_has_due(projection->id, scan->only) ? 1 : 0;
}

/*
 * The pairs of a projection that have something to do, at most scan->limit for
 * each reason: the next look goes on at "place", which is where this one ended.
 * Its handover is set, or there is nothing for it but to wait.
 */
int
pj_pairs_due(PjScan *scan, PjProjection *projection, PjPlace *place,
			 PjPair **pairs)
{
	DuePairs	due = {.projection = projection};
	Candidates	found = {0};

	*pairs = NULL;
	if (projection->dormant || projection->paused ||
		(projection->mode == PJ_OFF && !projection->overrides) ||
		pj_projection_problem(projection) != NULL)
		return 0;

	if (scan->only)
		find_only_candidate(scan, projection, &found);
	else
		find_candidates(scan, projection, place, &found);
	if (pj_may_read_log(projection))
	{
		pj_scan_log(scan);
		found.nunread = pj_cursors_unread(projection, &scan->all, scan->tail,
										  &found.unread);
	}

	/* one more: a pair that turns out not to be due needs room too */
	due.pairs = palloc(sizeof(PjPair) * (found.nbehind + found.nunread +
										 found.nqueued + 1));
	add_due(&due, found.unread, found.nunread, is_due_unread);
	found.nqueued = leave_out_unread(&due, found.queued, found.nqueued,
									 found.unread, found.nunread);
	add_due(&due, found.queued, found.nqueued, is_due_queued);
	if (projection->handed_over)
		add_due(&due, found.behind, found.nbehind, is_due_behind);
	*pairs = due.pairs;
	return due.count;
}

/*
 * Move the cursors of a projection to the log's tail, where the capture
 * trigger queues new events.  "brief" says that the transaction ends soon.
 * *room is as in pj_cursors_follow() or pj_cursors_follow_some().
 */
void
pj_follow_log(int32 projection_id, const PjTenants *all, int64 tail,
			  bool brief, int *room)
{
	PjProjection *projection;

	if (all->count == 0 ||
		!pj_lock_projection(projection_id, ShareLock, false))
		return;

	/* with the lock it can no longer change */
	projection = pj_projection_by_id(projection_id);
	if (projection == NULL || projection->dormant ||
		!projection->handed_over || projection->log_ordered)
		return;
	if (brief)
		pj_cursors_follow(projection, all, tail, room);
	else
		pj_cursors_follow_some(projection, all, tail, room);
}
