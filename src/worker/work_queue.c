/*
 * work_queue.c
 *	  What a worker does next, and when it looks for work again.
 *
 * Work is found by looking (feed/due_pairs.c).  Pairs that have something to do
 * wait in two lines: those with new events, and those that are to be read from
 * the log first (the backlog).  A pair that has more to do than one batch goes
 * to the end of its line.  New events go first, but every few turns belong to
 * the backlog, and to runs, so that neither keeps the other waiting.
 *
 * A worker looks again when it was woken and when its lines are empty, but
 * never so often that looking is most of what it does.  A look finds some pairs
 * of each projection, and the next one goes on from there: however many there
 * are, a look is short, and so is the queue.  A projection that has many pairs
 * in it is left out until they are fewer, so that it does not keep the others
 * waiting.
 *
 * The queue is local to the worker.  It may be lost at any time, because work
 * can always be found again.
 */
#include "base/compat.h"

#include "lib/ilist.h"
#include "miscadmin.h"
#include "storage/latch.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "base/guc.h"
#include "feed/active_tenants.h"
#include "feed/due_pairs.h"
#include "feed/handover.h"
#include "ipc/shmem.h"
#include "ipc/wakeup.h"
#include "rebuild/run.h"
#include "registry/projection.h"
#include "worker/blame.h"
#include "worker/pace.h"
#include "worker/work_queue.h"

/*
 * While there is something to do: how often to look who else has something,
 * if woken and if not; and how many times as long as a look to work after it.
 */
#define WOKEN_LOOK_MS		5
#define LOOK_MS				50
#define WORK_PER_LOOK		8

/* A look finds so many pairs of a projection, for each reason there is. */
#define PAIRS_PER_LOOK		256

/*
 * A projection is not looked at while so many of its pairs are in the queue, or
 * so many of all.  Others are found later.
 */
#define MAX_OF_PROJECTION	256
#define MAX_QUEUED			4096

/* One turn of the backlog and runs comes after so many of new events. */
#define LIVE_TURNS			4

/* How often to check whether a writer that pairs wait for has ended. */
#define POLL_MIN_MS			5
#define POLL_MAX_MS			200

/* How long a hint for claims is used (see PjStep.claim_after). */
#define HINT_MS				1000

/* Two tenants of one hash are never in the queue at the same time. */
typedef struct EntryKey
{
	int32		projection_id;
	int32		unused;
	uint64		tenant;
} EntryKey;

typedef struct Entry
{
	EntryKey	key;
	dlist_node	node;
	bool		is_backlog;
	TimestampTz hinted_at;		/* when step.claim_after was set */
	PjStep		step;
	Datum		aggregate;		/* step.announced_aggregate, if it was kept */
} Entry;

/* Where the next look at a projection goes on. */
typedef struct Place
{
	int32		projection_id;	/* hash key */
	int			queued;			/* how many of its pairs are in the queue */
	PjPlace		place;
} Place;

static struct
{
	MemoryContext context;
	HTAB	   *entries;		/* of Entry: each is in one of these */
	dlist_head	live;
	dlist_head	backlog;
	dlist_head	taken;			/* by this turn */
	dlist_head *line;			/* this turn's */
	bool		runs;			/* there may be runs to go on with */
	bool		run_was_last;	/* the last turn beside new events was one */
	int			live_turns;		/* since then */
	HTAB	   *places;			/* of Place */
	uint32		first;			/* which projection the last look began with */

	/* when to look for work again */
	bool		look_again;		/* before sleeping */
	TimestampTz looked_at;
	TimestampTz next_look;		/* not before */
	TimestampTz wake_at;		/* sleep no longer than until then */
	TimestampTz next_due;		/* when a failed event is to be tried again */
	uint32		wakeups;		/* how often we had been woken when we looked */
	bool		penalized;		/* a pair is left alone that has work */
	bool		throttled;		/* there are runs, which are not due yet */
	bool		polling;		/* others block some pair, and do not wake us
								 * when they end */
	int			poll_ms;		/* how long to wait for them this time */
} queue;

static HTAB *
make_table(const char *name, Size keysize, Size entrysize)
{
	HASHCTL		ctl = {.keysize = keysize,.entrysize = entrysize,
	.hcxt = queue.context};

	return hash_create(name, 64, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

void
pj_queue_init(void)
{
	queue.context = AllocSetContextCreate(TopMemoryContext,
										  "projector queue",
										  ALLOCSET_DEFAULT_SIZES);
	queue.entries = make_table("projector queue", sizeof(EntryKey),
							   sizeof(Entry));
	queue.places = make_table("projector places", sizeof(int32),
							  sizeof(Place));
	dlist_init(&queue.live);
	dlist_init(&queue.backlog);
	dlist_init(&queue.taken);
	queue.look_again = true;
	queue.next_due = DT_NOEND;
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

/* Is a pair, which has something to do, left alone for now? */
bool
pj_queue_is_penalized(int32 projection_id, Datum tenant)
{
	TimestampTz until;

	if (!pj_is_penalized(projection_id, tenant, &until))
		return false;
	queue.wake_at = Min(queue.wake_at, until);
	queue.penalized = true;
	return true;
}

/* Has a pair work that is left alone for now? */
bool
pj_queue_has_penalized(void)
{
	return queue.penalized;
}

/* Is there work that has to wait for something? */
bool
pj_queue_waits_for_others(void)
{
	return queue.polling || queue.penalized || queue.throttled;
}

/*
 * There are runs.  If it is too early for the next batch of one
 * (projector.run_max_rate), there are none until then.
 */
static void
throttle_runs(void)
{
	TimestampTz at;

	if (!queue.runs || pj_pace_is_due(&at))
		return;
	queue.runs = false;
	queue.throttled = true;
	queue.wake_at = Min(queue.wake_at, at);
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

/* ---- the lines ---- */

static bool
is_empty(void)
{
	return dlist_is_empty(&queue.live) && dlist_is_empty(&queue.backlog);
}

static Place *
find_place(int32 projection_id)
{
	bool		found;
	Place	   *place = hash_search(queue.places, &projection_id, HASH_ENTER,
									&found);

	if (!found)
	{
		place->queued = 0;
		memset(&place->place, 0, sizeof(PjPlace));
	}
	return place;
}

/* Is there no room for more pairs of a projection? */
static bool
is_full(int32 projection_id)
{
	return hash_get_num_entries(queue.entries) >= MAX_QUEUED ||
		find_place(projection_id)->queued >= MAX_OF_PROJECTION;
}

/* Keep a copy of a name in place of another; 0 stands for none. */
static void
keep_name(Datum *kept, Datum name)
{
	MemoryContext caller = MemoryContextSwitchTo(queue.context);
	Datum		copy = name ? PointerGetDatum(DatumGetTextPCopy(name)) : 0;

	MemoryContextSwitchTo(caller);
	if (*kept)
		pfree(DatumGetPointer(*kept));
	*kept = copy;
}

static void
forget_entry(Entry *entry)
{
	Datum		tenant = entry->step.tenant;

	dlist_delete(&entry->node);
	find_place(entry->key.projection_id)->queued--;
	keep_name(&entry->aggregate, 0);
	hash_search(queue.entries, &entry->key, HASH_REMOVE, NULL);
	pfree(DatumGetPointer(tenant));
}

static void
forget_line(dlist_head *line)
{
	while (!dlist_is_empty(line))
		forget_entry(dlist_head_element(Entry, node, line));
}

/* Put a pair into its line, unless it is there. */
static void
enqueue(const PjPair *pair)
{
	EntryKey	key = {.projection_id = pair->projection->id,
	.tenant = pj_tenant_hash(pair->tenant)};
	MemoryContext caller;
	Datum		tenant;
	Entry	   *entry;

	if (hash_search(queue.entries, &key, HASH_FIND, NULL) != NULL)
		return;
	caller = MemoryContextSwitchTo(queue.context);
	tenant = PointerGetDatum(DatumGetTextPCopy(pair->tenant));
	MemoryContextSwitchTo(caller);
	entry = hash_search(queue.entries, &key, HASH_ENTER, NULL);
	find_place(key.projection_id)->queued++;
	entry->is_backlog = pj_pair_behind(pair) && pair->mode != PJ_SHADOW;
	entry->hinted_at = 0;
	entry->aggregate = 0;
	memset(&entry->step, 0, sizeof(PjStep));
	entry->step.projection_id = pair->projection->id;
	entry->step.tenant = tenant;
	dlist_push_tail(entry->is_backlog ? &queue.backlog : &queue.live,
					&entry->node);
}

/* Is something true of one of the pairs yet to do? */
bool
pj_queue_any(bool (*condition) (int32 projection_id, Datum tenant))
{
	HASH_SEQ_STATUS status;
	Entry	   *entry;
	bool		found = false;

	hash_seq_init(&status, queue.entries);
	while (!found && (entry = hash_seq_search(&status)) != NULL)
		found = condition(entry->step.projection_id, entry->step.tenant);
	if (found)
		hash_seq_term(&status);
	return found;
}

/* Is there a pair or a run to go on with? */
bool
pj_queue_has_work(void)
{
	return !is_empty() || queue.runs;
}

/* Is there nothing to do until something wakes us? */
bool
pj_queue_is_done(void)
{
	return !pj_queue_has_work() && !queue.look_again;
}

/* An error that is of no pair: forget what there is to do, for some time. */
void
pj_queue_abandon(int ms)
{
	forget_line(&queue.live);
	forget_line(&queue.backlog);
	queue.runs = queue.look_again = false;
	queue.wake_at = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), ms);
}

/* ---- finding work ---- */

/*
 * Find some pairs of a projection that have something to do.  Returns false if
 * tenants that it has to read were not looked at, because there is no room.
 */
static bool
add_pairs(PjScan *scan, int32 projection_id)
{
	PjProjection *projection = pj_projection_by_id(projection_id);
	Place	   *place;
	PjPlace		next;
	PjPair	   *pairs;
	int			n;

	if (projection == NULL)
		return true;
	if (is_full(projection_id))
	{
		scan->more = true;
		return !pj_may_read_log(projection);
	}
	place = find_place(projection_id);
	next = place->place;
	n = pj_pairs_due(scan, projection, &next, &pairs);
	keep_name(&place->place.behind, next.behind);
	keep_name(&place->place.pending, next.pending);
	keep_name(&place->place.failed, next.failed);
	for (int i = 0; i < n; i++)
		if (!pj_queue_is_penalized(projection_id, pairs[i].tenant))
			enqueue(&pairs[i]);
	return true;
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
	queue.polling = queue.penalized = queue.throttled = false;
}

/* Find out when to look again. */
static void
end_look(const PjScan *scan)
{
	TimestampTz now = GetCurrentTimestamp();

	/* by a clock that tests may move */
	if (scan->next_due != DT_NOEND)
		queue.next_due = now + (scan->next_due - pj_now());
	queue.wake_at = Min(queue.wake_at, queue.next_due);
	queue.next_look = now + Max(WORK_PER_LOOK * (now - queue.looked_at),
								WOKEN_LOOK_MS * 1000);
}

/* Look who has something to do. */
void
pj_queue_fill(void)
{
	PjScan		scan = {.next_due = DT_NOEND,.hinted = true,
	.limit = PAIRS_PER_LOOK};
	PjRun	   *runs;
	int32	   *ids;
	int			n;
	bool		waits = false;
	bool		complete = true;

	begin_look();
	forget_line(&queue.taken);
	n = pj_projection_ids(&ids);
	queue.runs = pj_runs_next(NULL, 1, &runs) > 0;
	throttle_runs();
	scan.more = pj_hand_over_some(ids, n);
	if (pj_active_refresh())
		scan.more = true;
	queue.first++;				/* each is the first to get what room there is */
	for (int i = 0; i < n; i++)
	{
		int32		id = ids[(queue.first + i) % n];

		complete = add_pairs(&scan, id) && complete;
		waits = waits || pj_awaits_handover(id);
	}

	/* what a projection that was left out has to read must not be forgotten */
	if (complete && scan.has_log)
		pj_active_checked(&scan.all, scan.tail);
	else if (complete)
		pj_active_none_reads();
	if (waits || scan.unsettled)
		pj_queue_poll();
	queue.look_again = scan.more;
	end_look(&scan);
}

/* Is it time to look? */
bool
pj_queue_look_is_due(void)
{
	TimestampTz now = GetCurrentTimestamp();

	if (is_empty() && !queue.runs)
		return true;
	return now >= queue.next_look &&
		(pj_slot_wakeups() != queue.wakeups ||
		 TimestampDifferenceExceeds(queue.looked_at, now, LOOK_MS));
}

/* ---- turns ---- */

/* A turn beside those of new events. */
static PjTurn
begin_other_turn(void)
{
	bool		is_run = queue.runs &&
	(!queue.run_was_last || dlist_is_empty(&queue.backlog));

	queue.live_turns = 0;
	queue.run_was_last = is_run;
	queue.line = &queue.backlog;
	return is_run ? PJ_TURN_RUN : PJ_TURN_BACKLOG;
}

/* Say what the next transaction is for.  The one before has ended. */
PjTurn
pj_queue_begin_turn(void)
{
	bool		others;

	throttle_runs();
	others = queue.runs || !dlist_is_empty(&queue.backlog);
	forget_line(&queue.taken);
	if (others && (queue.live_turns >= LIVE_TURNS ||
				   dlist_is_empty(&queue.live)))
		return begin_other_turn();
	queue.live_turns++;
	queue.line = &queue.live;
	return dlist_is_empty(&queue.live) ? PJ_TURN_NONE : PJ_TURN_LIVE;
}

/* Take the next pair of this turn, or NULL. */
PjStep *
pj_queue_next(void)
{
	Entry	   *entry;

	if (dlist_is_empty(queue.line))
		return NULL;
	entry = dlist_container(Entry, node, dlist_pop_head_node(queue.line));
	dlist_push_tail(&queue.taken, &entry->node);

	/* now and then, claims begin at the start */
	if (TimestampDifferenceExceeds(entry->hinted_at, GetCurrentTimestamp(),
								   HINT_MS))
	{
		entry->step.claim_after = 0;
		entry->hinted_at = GetCurrentTimestamp();
	}
	return &entry->step;
}

/*
 * The pair has more to do: at once, in the next transaction, or when it is its
 * turn again.
 */
void
pj_queue_put_back(PjStep *step, bool at_once)
{
	Entry	   *entry = (Entry *) ((char *) step - offsetof(Entry, step));

	queue.look_again = true;
	if (is_full(entry->key.projection_id) && !at_once)
		return;					/* let others in */
	if (step->announced)
	{
		keep_name(&entry->aggregate, step->announced_aggregate);
		step->announced_aggregate = entry->aggregate;
	}
	dlist_delete(&entry->node);
	if (at_once)
		dlist_push_head(queue.line, &entry->node);
	else
		dlist_push_tail(queue.line, &entry->node);
}

/* No run can be gone on with. */
void
pj_queue_no_runs(void)
{
	queue.runs = false;
}
