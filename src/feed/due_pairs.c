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

/* Find the log's tail and the tenants with events, once per scan. */
void
pj_scan_log(PjScan *scan)
{
	if (scan->has_log)
		return;
	scan->tail = pj_tail(scan->tail_wait);
	if (scan->hinted)
		pj_active_unread(&scan->all);
	else
		pj_source_tenants(&scan->all);
	scan->all.unread = palloc0(sizeof(bool) * Max(scan->all.count, 1));
	scan->has_log = true;
	for (int i = 0; i < scan->all.count; i++)
		scan->unsettled = scan->unsettled || scan->all.last[i] > scan->tail;
}

/* Is the pair running at all: not off, paused, stopped or in a run? */
static bool
is_applied(const PjPair *pair)
{
	return pair->mode != PJ_OFF && !pair->paused && pair->run_id == 0 &&
		pair->state != PJ_STOPPED;
}

/* May some tenant read its events from the log? */
static bool
may_read_log(const PjProjection *projection)
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

/* Add the pairs of these tenants for which is_due() is true. */
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
 * Returns the pairs of a projection that have work to do.  A pair that is
 * behind is left out until the projection's handover is set.
 */
int
pj_pairs_due(PjScan *scan, PjProjection *projection, PjPair **pairs)
{
	DuePairs	due = {.projection = projection};
	Datum	   *behind,
			   *unread = NULL,
			   *queued;
	int			nbehind,
				nunread = 0,
				nqueued;

	*pairs = NULL;
	if (projection->dormant || projection->paused ||
		(projection->mode == PJ_OFF && !projection->overrides) ||
		pj_projection_problem(projection) != NULL)
		return 0;

	nbehind = pj_cursors_behind(projection, &behind);
	if (may_read_log(projection))
	{
		pj_scan_log(scan);
		nunread = pj_cursors_unread(projection, &scan->all, scan->tail,
									&unread);
	}
	nqueued = pj_outbox_tenants(projection->id, &queued, &scan->next_due);

	/* one more, because add_due() fills in a pair before it checks it */
	due.pairs = palloc(sizeof(PjPair) * (nbehind + nunread + nqueued + 1));
	if (projection->handed_over)
		add_due(&due, behind, nbehind, is_due_behind);
	add_due(&due, unread, nunread, is_due_unread);
	nqueued = leave_out_unread(&due, queued, nqueued, unread, nunread);
	add_due(&due, queued, nqueued, is_due_queued);
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
