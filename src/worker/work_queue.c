/*
 * work_queue.c
 *	  What a worker does next, and when it looks for work again.
 *
 * Work is found by a scan (feed/due_pairs.c) and done in rounds: one batch of
 * each pair with work, and one batch of a run, which counts as one more pair.
 * Pairs with more than one batch of work go into the next round, so that they
 * need not be found by a scan each time.
 *
 * The queue is local to the worker.  It may be lost at any time, because work
 * can always be found again.
 */
#include "base/compat.h"

#include "miscadmin.h"
#include "nodes/pg_list.h"
#include "storage/latch.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "base/guc.h"
#include "feed/active_tenants.h"
#include "feed/due_pairs.h"
#include "feed/handover.h"
#include "ipc/shmem.h"
#include "registry/projection.h"
#include "worker/work_queue.h"

/* How often to look for other pairs with work, while some have more to do. */
#define LOOK_MS				50

/* How often to check whether a writer that pairs wait for has ended. */
#define POLL_MIN_MS			5
#define POLL_MAX_MS			200

/* How long a hint for claims is used (see PjStep.claim_after). */
#define HINT_MS				1000
#define MAX_KNOWN_HINTS		64

/* A pair that is left alone for a while. */
typedef struct Penalty
{
	int32		projection_id;
	Datum		tenant;
	TimestampTz until;
} Penalty;

static struct
{
	/* this round, and the next one */
	MemoryContext context;		/* for both */
	List	   *round;			/* list of PjStep: pairs left in this round */
	List	   *again;			/* pairs for the next round */
	bool		runs;			/* this round still includes a run */
	bool		runs_again;		/* so does the next one */

	/* pairs to be left alone for a while */
	MemoryContext penalty_context;
	List	   *penalties;		/* list of Penalty */

	/* when to look for work again */
	bool		look_again;		/* before sleeping */
	TimestampTz looked_at;
	TimestampTz wake_at;		/* sleep no longer than this */
	TimestampTz next_due;		/* time of the next retry */
	uint32		wakeups;		/* number of wake-ups when we last looked */
	bool		penalized;		/* a pair with work is left alone */
	bool		polling;		/* a pair is blocked by a session that will
								 * not wake us */
	int			poll_ms;		/* the current interval for that */
	TimestampTz hints_at;		/* when claims last started from the beginning */
} queue;

/* The pair being worked on, in long-lived memory. */
static struct
{
	int32		projection_id;	/* 0 if there is none */
	Datum		tenant;
} current;

void
pj_queue_init(void)
{
	queue.context = AllocSetContextCreate(TopMemoryContext,
										  "projector round",
										  ALLOCSET_DEFAULT_SIZES);
	queue.penalty_context = AllocSetContextCreate(TopMemoryContext,
												  "projector penalties",
												  ALLOCSET_SMALL_SIZES);
	queue.look_again = true;
	queue.next_due = DT_NOEND;
}

/* ---- the current pair ---- */

/*
 * From now on this pair is blamed for an error, or for the end of the worker.
 */
void
pj_current_set(int32 projection_id, Datum tenant)
{
	MemoryContext caller = MemoryContextSwitchTo(TopMemoryContext);
	Datum		copy = PointerGetDatum(DatumGetTextPCopy(tenant));

	MemoryContextSwitchTo(caller);
	pj_current_clear();
	current.projection_id = projection_id;
	current.tenant = copy;
}

void
pj_current_clear(void)
{
	if (current.tenant)
		pfree(DatumGetPointer(current.tenant));
	current.projection_id = 0;
	current.tenant = 0;
}

/* Get the pair being worked on.  Returns false if there is none. */
bool
pj_current(int32 *projection_id, Datum *tenant)
{
	*projection_id = current.projection_id;
	*tenant = current.tenant;
	return current.projection_id != 0;
}

/* ---- pairs to leave alone ---- */

static void
forget_old_penalties(TimestampTz now)
{
	ListCell   *cell;

	foreach(cell, queue.penalties)
	{
		Penalty    *penalty = lfirst(cell);

		if (penalty->until > now)
			continue;
		queue.penalties = foreach_delete_current(queue.penalties, cell);
		pfree(DatumGetPointer(penalty->tenant));
		pfree(penalty);
	}
}

/* Leave the current pair alone for a while. */
void
pj_queue_penalize(int ms)
{
	TimestampTz now = GetCurrentTimestamp();
	MemoryContext caller = MemoryContextSwitchTo(queue.penalty_context);

	forget_old_penalties(now);
	if (current.projection_id != 0)
	{
		Penalty    *penalty = palloc(sizeof(Penalty));

		penalty->projection_id = current.projection_id;
		penalty->tenant =
			PointerGetDatum(DatumGetTextPCopy(current.tenant));
		penalty->until = TimestampTzPlusMilliseconds(now, ms);
		queue.penalties = lappend(queue.penalties, penalty);
	}
	MemoryContextSwitchTo(caller);
}

/* Must this pair, which has work, be left alone for now? */
bool
pj_queue_is_penalized(int32 projection_id, Datum tenant)
{
	TimestampTz now = GetCurrentTimestamp();
	ListCell   *cell;

	foreach(cell, queue.penalties)
	{
		Penalty    *penalty = lfirst(cell);

		if (penalty->projection_id != projection_id ||
			!pj_text_equal(penalty->tenant, tenant) ||
			penalty->until <= now)
			continue;
		queue.wake_at = Min(queue.wake_at, penalty->until);
		queue.penalized = true;
		return true;
	}
	return false;
}

/* ---- when to look again ---- */

/* Something has changed: look for work before sleeping. */
void
pj_queue_look_again(void)
{
	queue.look_again = true;
}

/*
 * Look again soon: a pair is blocked by a transaction that may end without
 * waking us.  The interval doubles each time.
 */
void
pj_queue_poll(void)
{
	queue.poll_ms = Min(Max(queue.poll_ms * 2, POLL_MIN_MS), POLL_MAX_MS);
	queue.polling = true;
	queue.wake_at = Min(queue.wake_at,
						TimestampTzPlusMilliseconds(GetCurrentTimestamp(),
													queue.poll_ms));
}

/* Is a pair with work left alone for now? */
bool
pj_queue_has_penalized(void)
{
	return queue.penalized;
}

/* Is there work that has to wait for something? */
bool
pj_queue_waits_for_others(void)
{
	return queue.polling || queue.penalized;
}

/* Returns when to look for work again, if nothing wakes us earlier. */
TimestampTz
pj_queue_wake_at(void)
{
	return queue.wake_at;
}

/* Returns the time of the next retry. */
TimestampTz
pj_queue_next_due(void)
{
	return queue.next_due;
}

/* Returns the number of wake-ups when we last looked for work. */
uint32
pj_queue_wakeups(void)
{
	return queue.wakeups;
}

/* ---- finding work ---- */

/* Returns where to start claiming, if known from the last round. */
static int64
claim_hint(List *known, const PjPair *pair)
{
	ListCell   *cell;

	foreach(cell, known)
	{
		PjStep	   *step = lfirst(cell);

		if (step->projection_id == pair->projection->id &&
			pj_text_equal(step->tenant, pair->tenant))
			return step->claim_after;
	}
	return 0;
}

/*
 * Returns the known starting points for claims, of a few pairs with more than
 * one batch of work.  From time to time it returns none, so that claims start
 * from the beginning.
 */
static List *
known_hints(void)
{
	TimestampTz now = GetCurrentTimestamp();
	List	   *known = NIL;
	ListCell   *cell;

	if (TimestampDifferenceExceeds(queue.hints_at, now, HINT_MS))
	{
		queue.hints_at = now;
		return NIL;
	}
	foreach(cell, queue.again)
	{
		PjStep	   *step = lfirst(cell);
		PjStep	   *copy;

		if (step->claim_after == 0 || list_length(known) == MAX_KNOWN_HINTS)
			continue;
		copy = palloc(sizeof(PjStep));
		*copy = *step;
		copy->tenant = PointerGetDatum(DatumGetTextPCopy(step->tenant));
		known = lappend(known, copy);
	}
	return known;
}

/* Add the pairs of a projection that have work. */
static void
add_pairs(PjScan *scan, int32 projection_id, List *known)
{
	PjProjection *projection = pj_projection_by_id(projection_id);
	PjPair	   *pairs;
	int			n = projection ? pj_pairs_due(scan, projection, &pairs) : 0;

	for (int i = 0; i < n; i++)
	{
		PjStep	   *step;
		MemoryContext caller;

		if (pj_queue_is_penalized(projection_id, pairs[i].tenant))
			continue;
		caller = MemoryContextSwitchTo(queue.context);
		step = palloc0(sizeof(PjStep));
		step->projection_id = projection_id;
		step->tenant = PointerGetDatum(DatumGetTextPCopy(pairs[i].tenant));
		step->claim_after = claim_hint(known, &pairs[i]);
		queue.round = lappend(queue.round, step);
		MemoryContextSwitchTo(caller);
	}
}

/* Reset what is known about when to look again. */
static void
begin_look(void)
{
	/* commits from now on wake us again */
	ResetLatch(MyLatch);
	queue.wakeups = pj_slot_wakeups();
	queue.looked_at = GetCurrentTimestamp();
	queue.wake_at = TimestampTzPlusMilliseconds(queue.looked_at, pj_naptime);
	queue.next_due = DT_NOEND;	/* in case of an error below */
	queue.look_again = false;
	if (!queue.polling)
		queue.poll_ms = 0;
	queue.polling = queue.penalized = false;
}

/*
 * Store the time of the next retry, which is given by a clock that tests may
 * move.
 */
static void
note_next_due(TimestampTz next_due)
{
	if (next_due != DT_NOEND)
		queue.next_due = GetCurrentTimestamp() + (next_due - pj_now());
	queue.wake_at = Min(queue.wake_at, queue.next_due);
}

/* Look for pairs with work, and begin a new round. */
void
pj_queue_fill(void)
{
	PjScan		scan = {.next_due = DT_NOEND,.hinted = true};
	List	   *known;
	int32	   *ids;
	int			n;
	bool		waits = false;

	begin_look();
	known = known_hints();
	MemoryContextReset(queue.context);
	queue.round = queue.again = NIL;

	n = pj_projection_ids(&ids);
	queue.runs = true;
	(void) pj_hand_over(ids, n, 0);
	pj_active_refresh();
	for (int i = 0; i < n; i++)
	{
		add_pairs(&scan, ids[i], known);
		waits = waits || pj_awaits_handover(ids[i]);
	}
	if (scan.has_log)
		pj_active_forget_read(&scan.all, scan.tail);
	if (waits || scan.unsettled)
		pj_queue_poll();
	note_next_due(scan.next_due);
}

/*
 * Begin a round with the pairs that have more work.  Returns false if there
 * are none, or if it is time to look for others.
 */
bool
pj_queue_refill(void)
{
	if ((queue.again == NIL && !queue.runs_again) ||
		TimestampDifferenceExceeds(queue.looked_at, GetCurrentTimestamp(),
								   LOOK_MS))
		return false;
	queue.round = queue.again;
	queue.again = NIL;
	queue.runs = queue.runs_again;
	return true;
}

/* ---- a round ---- */

/* Does the condition hold for one of the pairs left in this round? */
bool
pj_queue_any(bool (*condition) (int32 projection_id, Datum tenant))
{
	ListCell   *cell;

	foreach(cell, queue.round)
	{
		PjStep	   *step = lfirst(cell);

		if (condition(step->projection_id, step->tenant))
			return true;
	}
	return false;
}

/* Are pairs left in this round? */
bool
pj_queue_has_pairs(void)
{
	return queue.round != NIL;
}

/* Is neither a pair nor a run left in this round? */
bool
pj_queue_round_is_over(void)
{
	return queue.round == NIL && !queue.runs;
}

/* Is there nothing to do until something wakes us? */
bool
pj_queue_is_done(void)
{
	return queue.round == NIL && !queue.look_again;
}

/*
 * After an error that no pair has caused: drop the queue, and look for work
 * again after some time.
 */
void
pj_queue_abandon(int ms)
{
	queue.round = queue.again = NIL;
	queue.runs = queue.runs_again = queue.look_again = false;
	queue.wake_at = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), ms);
}

/* Take the next pair of this round; there must be one. */
PjStep *
pj_queue_next(void)
{
	PjStep	   *step = linitial(queue.round);

	queue.round = list_delete_first(queue.round);
	return step;
}

/* Put a pair with more work back, into this round or the next one. */
void
pj_queue_put_back(PjStep *step, bool at_once)
{
	MemoryContext caller = MemoryContextSwitchTo(queue.context);

	if (step->announced)
		step->announced_aggregate =
			PointerGetDatum(DatumGetTextPCopy(step->announced_aggregate));
	if (at_once)
		queue.round = lcons(step, queue.round);
	else
		queue.again = lappend(queue.again, step);
	MemoryContextSwitchTo(caller);
}

/* Is it the runs' turn in this round?  They get one turn. */
bool
pj_queue_take_runs(void)
{
	bool		runs = queue.runs;

	if (runs)
		queue.runs = queue.runs_again = false;
	return runs;
}

/* A batch of a run was processed: runs get a turn in the next round, too. */
void
pj_queue_put_back_runs(void)
{
	queue.runs_again = true;
}
