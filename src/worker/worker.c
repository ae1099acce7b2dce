/*
 * worker.c
 *	  A worker process: applies what there is to apply in one database.
 *
 * A worker goes round the pairs (projection, tenant) that have something to
 * do, one batch each, every batch in a transaction of its own.  After each
 * round it looks again who has something to do.  If nobody has it sleeps,
 * until an append wakes it, a retry falls due, or projector.naptime has passed.
 *
 * Several workers of a database are all alike: each passes over pairs that
 * another is working on.  No worker has any state that matters.  What it was
 * doing when it ended, however it ended, was not committed, and is done by the
 * next one.
 *
 * A worker leaves when somebody wants to drop, rename or copy its database, so
 * as not to be in his way, and when the extension is gone.
 *
 * An error that is not an event's own ends the batch and not the worker: it is
 * reported in the server's log, and the pair is left alone for a while.
 */
#include "base/compat.h"

#include "access/xact.h"
#include "commands/extension.h"
#include "libpq/pqsignal.h"
#include "miscadmin.h"
#include "nodes/pg_list.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lock.h"
#include "tcop/tcopprot.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/timeout.h"
#include "utils/timestamp.h"

#include "apply/read_model.h"
#include "base/guc.h"
#include "base/lock.h"
#include "feed/active_tenants.h"
#include "feed/due_pairs.h"
#include "feed/handover.h"
#include "feed/pair_step.h"
#include "feed/retry.h"
#include "ipc/shmem.h"
#include "ipc/wakeup.h"
#include "kinds/problem.h"
#include "log/log_read.h"
#include "log/tail.h"
#include "rebuild/run.h"
#include "registry/identity.h"
#include "registry/projection.h"
#include "sandbox/deadline.h"
#include "sandbox/user_context.h"
#include "state/delta.h"
#include "state/outbox.h"
#include "worker/caution.h"
#include "worker/prune.h"
#include "worker/turn.h"
#include "worker/worker.h"

PG_FUNCTION_INFO_V1(projector_worker_start);
PG_FUNCTION_INFO_V1(projector_worker_stop);
PG_FUNCTION_INFO_V1(projector_worker_waits_since);

/* How often to look whether somebody wants us out of the database. */
#define LEAVE_CHECK_MS		500

/* How long a pair is left alone after an error that was not an event's. */
#define PENALTY_MS			1000

/*
 * How often cursors follow the log, when there is nothing else to do and when
 * there is; and how often forgotten items are swept up.
 */
#define CHORES_MS			1000
#define BUSY_CHORES_MS		10000
#define SWEEP_MS			60000

/* So many pairs are looked at in one transaction: each takes locks. */
#define MAX_PAIRS			64

/* So many runs are tried, until one is found that nobody is working on. */
#define MAX_RUNS			32

/* How long one that has to wait for somebody is left alone. */
#define RUN_WAITS_MS		200

/* So many cursors are made at a time, for the same reason. */
#define MAX_NEW_CURSORS		64

/* The counts of so many pairs are added up in one transaction. */
#define MAX_ADDED_PAIRS		256

/* How often to look whether a writer has ended that all wait for. */
#define POLL_MIN_MS			5
#define POLL_MAX_MS			200

/* While some have more to do, how often to look who else has something. */
#define LOOK_MS				50

/* How long a claim's hint is trusted (see PjStep.claim_after). */
#define HINT_MS				1000
#define MAX_KNOWN_HINTS		64

/* A pair that must wait. */
typedef struct Penalty
{
	int32		projection_id;
	Datum		tenant;
	TimestampTz until;
} Penalty;

static struct
{
	MemoryContext round_context;	/* of the two below */
	List	   *round;			/* of PjStep: the pairs yet to do */
	bool		runs;			/* one of them is yet to do */
	bool		more_runs;		/* one has had a batch in this round */
	List	   *again;			/* those that have more to do */
	bool		rescan;			/* look for work before sleeping */
	uint32		wakeups;		/* how often we had been woken at the last look */
	MemoryContext penalty_context;	/* of the penalties */
	List	   *penalties;		/* of Penalty */
	PjStep	   *current;		/* being worked on */
	TimestampTz wake_at;		/* sleep no longer than until then */
	TimestampTz next_due;		/* when a failed event is to be tried again */
	TimestampTz busy_at;		/* when something was done */
	bool		penalized;		/* a pair is left alone that has work */
	bool		given_up;		/* the slot is free: see offer_slot() */
	bool		polling;		/* somebody is in the way */
	int			poll_ms;		/* how long to wait for him this time */
	TimestampTz looked_at;		/* for work */
	TimestampTz chores_at;
	int64		announced_run;	/* whose next batch has been announced */
	bool		adding_up;		/* what appends have noted, bit by bit */
	TimestampTz swept_at;
	TimestampTz hints_at;		/* when claims last began at the start */
} work;

/* ---- leaving ---- */

/* What happens between batches, and while sleeping. */
static void
check_leave(void)
{
	/* a cancel is for a batch, and there is none */
	QueryCancelPending = false;
	CHECK_FOR_INTERRUPTS();
	if (ConfigReloadPending)
	{
		ConfigReloadPending = false;
		ProcessConfigFile(PGC_SIGHUP);
	}
	if (!pj_enabled)
		pj_slot_absent();		/* perhaps in this database alone */
	if (!pj_enabled || pj_slot_surplus(pj_workers) ||
		pj_database_is_wanted(MyDatabaseId))
		proc_exit(0);
}

/*
 * What happens between two events of a batch: whoever wants the database waits
 * for no more than five seconds, and a batch may take longer.
 */
static void
check_wanted(void)
{
	if (pj_database_is_wanted(MyDatabaseId))
		ereport(FATAL,
				errcode(ERRCODE_ADMIN_SHUTDOWN),
				errmsg("projector worker leaves a database that somebody wants to drop, rename or copy"));
}

/* Leave if there is no extension here (any more). */
static void
check_extension(void)
{
	if (OidIsValid(get_extension_oid("projector", true)))
		return;
	pj_slot_absent();
	proc_exit(0);
}

/* ---- finding work ---- */

static int
projection_ids(int32 **ids)
{
	PjProjection *projections;
	int			n = pj_projections(&projections);

	*ids = palloc(sizeof(int32) * Max(n, 1));
	for (int i = 0; i < n; i++)
		(*ids)[i] = projections[i].id;
	return n;
}

static bool
is_same_pair(const PjStep *step, int32 projection_id, Datum tenant)
{
	return step->projection_id == projection_id &&
		pj_text_equal(step->tenant, tenant);
}

static bool
is_penalized(int32 projection_id, Datum tenant)
{
	TimestampTz now = GetCurrentTimestamp();
	ListCell   *cell;

	foreach(cell, work.penalties)
	{
		Penalty    *penalty = lfirst(cell);

		if (penalty->projection_id != projection_id ||
			!pj_text_equal(penalty->tenant, tenant) ||
			penalty->until <= now)
			continue;
		work.wake_at = Min(work.wake_at, penalty->until);
		work.penalized = true;
		return true;
	}
	return false;
}

/* Leave alone for a while what we have been working on. */
static void
penalize_current(int ms)
{
	TimestampTz now = GetCurrentTimestamp();
	MemoryContext caller = MemoryContextSwitchTo(work.penalty_context);
	ListCell   *cell;

	foreach(cell, work.penalties)
	{
		Penalty    *penalty = lfirst(cell);

		if (penalty->until > now)
			continue;
		work.penalties = foreach_delete_current(work.penalties, cell);
		pfree(DatumGetPointer(penalty->tenant));
		pfree(penalty);
	}
	if (work.current)
	{
		Penalty    *penalty = palloc(sizeof(Penalty));

		penalty->projection_id = work.current->projection_id;
		penalty->tenant = PointerGetDatum(DatumGetTextPCopy(work.current->tenant));
		penalty->until = TimestampTzPlusMilliseconds(now, ms);
		work.penalties = lappend(work.penalties, penalty);
	}
	MemoryContextSwitchTo(caller);
}

/* Where to begin claiming, if we know that from the last round. */
static int64
claim_hint(List *known, const PjPair *pair)
{
	ListCell   *cell;

	foreach(cell, known)
	{
		PjStep	   *step = lfirst(cell);

		if (is_same_pair(step, pair->projection->id, pair->tenant))
			return step->claim_after;
	}
	return 0;
}

/* Find the pairs of a projection that have something to do. */
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

		if (is_penalized(projection_id, pairs[i].tenant))
			continue;
		caller = MemoryContextSwitchTo(work.round_context);
		step = palloc0(sizeof(PjStep));
		step->projection_id = projection_id;
		step->tenant = PointerGetDatum(DatumGetTextPCopy(pairs[i].tenant));
		step->claim_after = claim_hint(known, &pairs[i]);
		work.round = lappend(work.round, step);
		MemoryContextSwitchTo(caller);
	}
}

/*
 * Look again soon: somebody is in the way who may end without waking us.  The
 * longer he is, the less often.
 */
static void
poll_soon(void)
{
	work.poll_ms = Min(Max(work.poll_ms * 2, POLL_MIN_MS), POLL_MAX_MS);
	work.polling = true;
	work.wake_at = Min(work.wake_at,
					   TimestampTzPlusMilliseconds(GetCurrentTimestamp(),
												   work.poll_ms));
}

/* When to look again, if nothing wakes us before. */
static void
plan_wake(const PjScan *scan)
{
	/* retries go by a clock that tests may move */
	if (scan->next_due != DT_NOEND)
		work.next_due = GetCurrentTimestamp() + (scan->next_due - pj_now());
	work.wake_at = Min(work.wake_at, work.next_due);
}

/*
 * What is known of where to begin claiming, for a few pairs that have more to
 * do than one batch.  Now and then, claims begin at the start.
 */
static List *
known_hints(void)
{
	TimestampTz now = GetCurrentTimestamp();
	List	   *known = NIL;
	ListCell   *cell;

	if (TimestampDifferenceExceeds(work.hints_at, now, HINT_MS))
	{
		work.hints_at = now;
		return NIL;
	}
	foreach(cell, work.again)
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

/* Find out whether there is reason for caution any more. */
static void
note_pairs(void)
{
	bool		suspects = work.penalized;
	ListCell   *cell;

	foreach(cell, work.round)
	{
		PjStep	   *step = lfirst(cell);

		suspects = suspects ||
			pj_caution_needed(step->projection_id, step->tenant);
	}
	pj_caution_look(suspects);
}

/* Begin a new round. */
static void
look_for_work(void)
{
	PjScan		scan = {.next_due = DT_NOEND,.hinted = true};
	int32	   *ids;
	int			n;
	bool		waits = false;
	List	   *known;

	/* what others commit from now on wakes us again */
	ResetLatch(MyLatch);
	work.wakeups = pj_slot_wakeups();
	work.looked_at = GetCurrentTimestamp();
	work.wake_at = TimestampTzPlusMilliseconds(GetCurrentTimestamp(),
											   pj_naptime);
	work.next_due = DT_NOEND;	/* if what follows fails, none is known */
	work.rescan = false;
	if (!work.polling)
		work.poll_ms = 0;
	work.polling = work.penalized = false;
	known = known_hints();
	MemoryContextReset(work.round_context);
	work.round = work.again = NIL;

	n = projection_ids(&ids);
	work.runs = true;
	(void) pj_hand_over(ids, n, 0);
	pj_active_look();
	for (int i = 0; i < n; i++)
	{
		add_pairs(&scan, ids[i], known);
		waits = waits || pj_awaits_handover(ids[i]);
	}
	if (scan.has_log)
		pj_active_settle(&scan.all, scan.tail);
	if (waits || scan.unsettled)
		poll_soon();
	plan_wake(&scan);
	note_pairs();
}

/* ---- working ---- */

static void
report_pair(const PjStep *step)
{
	char	   *activity = psprintf("projection \"%s\", tenant \"%s\"",
									step->pair.projection->name,
									TextDatumGetCString(step->tenant));

	pgstat_report_activity(STATE_RUNNING, activity);
}

/* The pair has more to do, at once or in the next round. */
static void
put_back(PjStep *step, bool at_once)
{
	MemoryContext caller = MemoryContextSwitchTo(work.round_context);

	if (at_once)
		work.round = lcons(step, work.round);
	else
		work.again = lappend(work.again, step);
	MemoryContextSwitchTo(caller);
}

/*
 * One event of a pair that is not trusted: first it is announced, and in the
 * next transaction applied.  See caution.c.
 */
static bool
work_with_caution(PjStep *step)
{
	PjBounds	bounds = {.limit = PG_INT32_MAX,.upto = PG_INT64_MAX,
	.announce = true};
	bool		idle;

	if (!pj_step_enter(step))
	{
		poll_soon();
		return false;
	}
	report_pair(step);
	if (step->announced)
	{
		work.rescan = true;
		pj_apply_announced(step);
		step->announced = 0;
		pj_caution_passed(step->projection_id, step->tenant,
						  step->pair.projection->options.batch_size);
		put_back(step, false);
		return true;
	}
	if (pj_pair_needs_tail(&step->pair))
		bounds.tail = pj_tail(0);
	idle = pj_step(step, &bounds) == PJ_IDLE && step->announced == 0;
	if (idle)
		pj_caution_idle(step->projection_id, step->tenant);
	else
		put_back(step, step->announced != 0);
	if (step->announced)
	{
		MemoryContext caller = MemoryContextSwitchTo(work.round_context);

		step->announced_aggregate =
			PointerGetDatum(DatumGetTextPCopy(step->announced_aggregate));
		MemoryContextSwitchTo(caller);
	}
	work.rescan = work.rescan || !idle;
	pj_step_save(step);
	return !idle;
}

/* One batch of the next pair.  Returns whether anything was done. */
static bool
work_on_next(void)
{
	PjStep	   *step = linitial(work.round);
	PjBounds	bounds = {.limit = PG_INT32_MAX,.upto = PG_INT64_MAX};
	PjProgress	progress = PJ_IDLE;

	work.round = list_delete_first(work.round);
	work.current = step;
	pj_caution_blame(step->projection_id, step->tenant);
	if (pj_caution_needed(step->projection_id, step->tenant))
		return work_with_caution(step);
	if (pj_step_enter(step))
	{
		report_pair(step);
		if (pj_pair_needs_tail(&step->pair))
			bounds.tail = pj_tail(0);
		progress = pj_step(step, &bounds);

		/* a failed event must be tried again at its time: find out when */
		work.rescan = work.rescan || progress == PJ_MORE || step->counts.failed > 0;
		if (step->busy || (pj_pair_behind(&step->pair) &&
						   step->pair.own_handover && progress != PJ_MORE))
			poll_soon();
		pj_step_save(step);
	}
	else
		poll_soon();			/* who wakes us at commit still has his locks */
	if (progress == PJ_MORE)
	{
		if (pj_pair_reads_log(&step->pair))
			pj_active_add(step->tenant, bounds.tail);
		put_back(step, false);
	}
	return progress != PJ_IDLE;
}

/*
 * One batch of a run.  Returns false if another may be tried: somebody else is
 * at work on this one, or in its way.
 */
static bool
work_on_run(PjRun *run)
{
	MemoryContext caller = MemoryContextSwitchTo(work.round_context);
	PjStep	   *step = palloc0(sizeof(PjStep));
	PjRunResult result;

	/* an error concerns this pair */
	step->projection_id = run->projection_id;
	step->tenant = PointerGetDatum(DatumGetTextPCopy(run->tenant));
	MemoryContextSwitchTo(caller);
	work.current = step;
	pgstat_report_activity(STATE_RUNNING,
						   psprintf("run %lld of projection %d, tenant \"%s\"",
									(long long) run->id, run->projection_id,
									TextDatumGetCString(run->tenant)));
	pj_caution_blame(step->projection_id, step->tenant);
	if (pj_caution_needed(step->projection_id, step->tenant) &&
		work.announced_run != run->id)
	{
		/* its batch comes in the next transaction */
		work.announced_run = pj_run_announce(run) ? run->id : 0;
		work.rescan = true;
		return true;
	}
	work.announced_run = 0;
	result = pj_run_batch(run);
	switch (result)
	{
		case PJ_RUN_PASSED:
			poll_soon();
			return false;
		case PJ_RUN_WAITS:
			penalize_current(RUN_WAITS_MS);
			poll_soon();
			return false;
		case PJ_RUN_ERRED:
			penalize_current(PENALTY_MS);
			break;
		case PJ_RUN_MOVED:
			if (pj_caution_needed(step->projection_id, step->tenant))
				pj_caution_idle(step->projection_id, step->tenant);
			break;
	}
	work.rescan = true;
	return true;
}

/* One batch of the first run that can be gone on with, if there is one. */
static bool
work_on_runs(void)
{
	PjRun	   *runs;
	PjRun	   *after = NULL;
	int			tried = 0;
	int			n;

	while (tried < MAX_RUNS && (n = pj_runs_next(after, MAX_RUNS, &runs)) > 0)
	{
		for (int i = 0; i < n && tried < MAX_RUNS; i++)
		{
			if (is_penalized(runs[i].projection_id, runs[i].tenant))
				continue;
			tried++;
			if (work_on_run(&runs[i]))
				return true;
		}
		after = &runs[n - 1];
	}
	return false;
}

/* Begin with those who have more to do, if it is too early to look again. */
static bool
go_on(void)
{
	if ((work.again == NIL && !work.more_runs) ||
		TimestampDifferenceExceeds(work.looked_at, GetCurrentTimestamp(),
								   LOOK_MS))
		return false;
	work.round = work.again;
	work.again = NIL;
	work.runs = work.more_runs;
	return true;
}

/*
 * Look for work if there is none, and do one batch.  Those that have more to
 * do need not be found again every time.  Runs take part like one more pair.
 */
static void
do_work(void)
{
	if (work.round == NIL && !work.runs && !go_on())
		look_for_work();
	if (work.runs)
	{
		work.runs = false;
		work.more_runs = work_on_runs();
		if (work.more_runs)
		{
			work.busy_at = GetCurrentTimestamp();
			return;
		}
	}
	for (int i = 0; i < MAX_PAIRS && work.round != NIL; i++)
	{
		if (!work_on_next())
			continue;
		work.busy_at = GetCurrentTimestamp();
		break;
	}
}

/* Is it time for what is done now and then, by one worker of the database? */
static bool
is_time_for_chores(void)
{
	TimestampTz now = GetCurrentTimestamp();
	bool		idle = work.round == NIL && !work.rescan;

	return TimestampDifferenceExceeds(work.chores_at, now, idle ?
									  CHORES_MS : BUSY_CHORES_MS) &&
		!pj_slot_surplus(1);
}

/*
 * Let cursors follow the log where events come by themselves, and sweep up
 * what dropped projections have left.  In a transaction of its own: the rows
 * it locks are not kept from others for as long as a batch takes.
 */
static void
do_chores(void)
{
	TimestampTz now = GetCurrentTimestamp();
	PjTenants	all;
	int64		tail;
	int32	   *ids;
	int			n = projection_ids(&ids);
	int			room = MAX_NEW_CURSORS;

	work.chores_at = now;
	pj_active_unfollowed(&all);
	if (all.count > 0)
	{
		tail = pj_tail(0);
		for (int i = 0; i < n; i++)
			pj_follow_log(ids[i], &all, tail, true, &room);
		pj_active_followed(tail);
	}
	pj_identities_refresh();
	if (pj_problems_report())
		work.rescan = true;
	pj_runs_settle();
	work.adding_up = true;
	pj_models_refresh_altered(0, 0);
	if (TimestampDifferenceExceeds(work.swept_at, now, SWEEP_MS))
	{
		work.swept_at = now;
		pj_outbox_sweep();
		pj_deltas_sweep();
		pj_prune_a_little();
	}
}

/*
 * Add up what appends have noted, a part of it at a time: batches come between,
 * and the locks of a part are soon released.
 */
static void
add_up_deltas(void)
{
	work.adding_up = false;		/* an error leaves it so */
	work.adding_up = pj_deltas_add_up(0, 0, MAX_ADDED_PAIRS);
}

/* Do something in a transaction. */
static void
run_transaction(void (*body) (void))
{
	PjContext	saved;

	SetCurrentStatementStartTimestamp();
	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
	check_extension();
	pj_enter_internal(&saved);
	body();
	pj_leave_internal(&saved);
	PopActiveSnapshot();
	CommitTransactionCommand();
	work.current = NULL;

	/* advisory locks that a projection's code has left behind */
	LockReleaseSession(USER_LOCKMETHOD);
	pgstat_report_stat(false);
	pgstat_report_activity(STATE_IDLE, NULL);
}

/* The slot is free, so whoever leaves work now starts another worker. */
static void
look_once_more(void)
{
	PjRun	   *runs;

	look_for_work();
	work.rescan = work.round != NIL || work.polling || work.penalized ||
		pj_runs_next(NULL, 1, &runs) > 0;
}

/* Leave: the next worker that comes here finds what there is to do. */
static void
leave_to_another(void)
{
	pj_slot_wait(MyDatabaseId);
	pj_wake_launcher(MyDatabaseId);
	proc_exit(0);
}

/*
 * Leave, if another database waits for a worker and there is nothing to do in
 * this one.  Returns if there is.
 */
static void
offer_slot(void)
{
	pj_turn_start_others();
	if (work.polling || work.penalized ||
		!pj_turn_is_over(work.busy_at, work.next_due) ||
		!pj_slot_give_up(work.wakeups))
		return;
	work.given_up = true;
	run_transaction(look_once_more);
	if (!work.rescan)
		proc_exit(0);
	if (!pj_slot_take_back())
		leave_to_another();
	work.given_up = false;
}

/* Sleep until there may be something to do. */
static void
sleep_until_woken(void)
{
	for (;;)
	{
		long		left = TimestampDifferenceMilliseconds(GetCurrentTimestamp(),
														   work.wake_at);
		int			events;

		if (left <= 0 || pj_slot_wakeups() != work.wakeups)
			return;
		events = WaitLatch(MyLatch,
						   WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						   Min(left, LEAVE_CHECK_MS), PG_WAIT_EXTENSION);

		/* it is reset by whoever looks for work, before he does */
		if (events & WL_LATCH_SET)
			return;
		check_leave();
		offer_slot();
		if (work.rescan)
			return;
	}
}

/* ---- the process ---- */

/* Settings that our work depends on, whatever the configuration says. */
static void
settle_settings(void)
{
	static const char *const settings[][2] = {
		{"application_name", "projector worker"},
		{"default_transaction_isolation", "read committed"},
		{"default_transaction_read_only", "off"},
	};

	for (int i = 0; i < lengthof(settings); i++)
		SetConfigOption(settings[i][0], settings[i][1], PGC_SUSET,
						PGC_S_OVERRIDE);
	pj_pin_session();
}

/* Clean up after an error, as PostgresMain() does. */
static void
recover(void)
{
	error_context_stack = NULL;
	HOLD_INTERRUPTS();
	disable_all_timeouts(false);
	QueryCancelPending = false;
	EmitErrorReport();
	AbortCurrentTransaction();
	MemoryContextSwitchTo(TopMemoryContext);
	FlushErrorState();
	LockReleaseSession(USER_LOCKMETHOD);
	RESUME_INTERRUPTS();

	/* nobody may run without a slot, and others wait for this one */
	if (work.given_up)
		leave_to_another();

	/* the others go on, or one that always fails would be all there is */
	penalize_current(PENALTY_MS);
	work.rescan = work.current != NULL;
	if (work.current == NULL)
	{
		work.round = work.again = NIL;
		work.runs = work.more_runs = false;
		work.wake_at = TimestampTzPlusMilliseconds(GetCurrentTimestamp(),
												   PENALTY_MS);
	}
	work.current = NULL;
	pgstat_report_activity(STATE_IDLE, NULL);
}

/* What is done once, before anything else. */
static void
begin(void)
{
	pj_caution_begin();

	/* a sequence may have been set back while the server was down */
	pj_publish_tail(pj_source_relid(), pj_cursors_last());
}

/* The entry point of a worker. */
void
projector_worker_main(Datum arg)
{
	sigjmp_buf	local_sigjmp_buf;
	Oid			dboid;
	uint32		generation;

	memcpy(&dboid, MyBgworkerEntry->bgw_extra, sizeof(Oid));
	memcpy(&generation, MyBgworkerEntry->bgw_extra + sizeof(Oid),
		   sizeof(uint32));
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	pqsignal(SIGINT, StatementCancelHandler);
	BackgroundWorkerUnblockSignals();
	if (!pj_slot_attach(DatumGetInt32(arg), generation))
		proc_exit(0);			/* we come too late */
	BackgroundWorkerInitializeConnectionByOid(dboid, InvalidOid, 0);
	settle_settings();

	work.round_context = AllocSetContextCreate(TopMemoryContext,
											   "projector round",
											   ALLOCSET_DEFAULT_SIZES);
	work.penalty_context = AllocSetContextCreate(TopMemoryContext,
												 "projector penalties",
												 ALLOCSET_SMALL_SIZES);
	work.rescan = true;
	work.next_due = DT_NOEND;
	work.chores_at = work.busy_at = GetCurrentTimestamp();

	pj_between_calls(check_wanted);
	run_transaction(begin);
	pj_slot_serving();
	pj_wake_launcher(InvalidOid);

	if (sigsetjmp(local_sigjmp_buf, 1) != 0)
		recover();
	PG_exception_stack = &local_sigjmp_buf;

	for (;;)
	{
		MemoryContextSwitchTo(TopMemoryContext);
		check_leave();
		if (is_time_for_chores())
			run_transaction(do_chores);
		if (work.adding_up)
			run_transaction(add_up_deltas);
		if (work.round == NIL && !work.rescan && !work.adding_up)
			sleep_until_woken();
		check_leave();
		run_transaction(do_work);
	}
}

/* ---- starting and stopping by hand ---- */

/* See the install script. */
Datum
projector_worker_start(PG_FUNCTION_ARGS)
{
	BackgroundWorkerHandle *handle;
	bool		serving;
	pid_t		pid;

	pj_refuse_in_user_code("projector_worker_start");

	/* it would not start, and we would wait for it */
	PreventCommandDuringRecovery("projector_worker_start()");
	if (!pj_enabled)
		ereport(ERROR,
				errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("workers are disabled"),
				errhint("Set projector.enabled to on."));
	pj_allow_workers(MyDatabaseId);
	if (pj_start_worker(MyDatabaseId, pj_workers, &handle))
		(void) WaitForBackgroundWorkerStartup(handle, &pid);
	if (pj_slot_count(MyDatabaseId, &serving) == 0)
		ereport(ERROR,
				errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				errmsg("could not start a worker"),
				errdetail("All background worker slots are in use."),
				errhint("You might need to increase max_worker_processes."));
	PG_RETURN_INT32(pj_slot_count(MyDatabaseId, &serving));
}

/* Of databases that are gone nobody needs to know that workers are stopped. */
static void
forget_dropped(void)
{
	Oid		   *stopped;
	int			n = pj_forbidden(&stopped);

	for (int i = 0; i < n; i++)
		if (!SearchSysCacheExists1(DATABASEOID,
								   ObjectIdGetDatum(stopped[i])))
			pj_allow_workers(stopped[i]);
}

/* See the install script. */
Datum
projector_worker_stop(PG_FUNCTION_ARGS)
{
	pj_refuse_in_user_code("projector_worker_stop");
	forget_dropped();
	(void) pj_forbid_workers(MyDatabaseId);
	PG_RETURN_INT32(pj_end_workers(MyDatabaseId));
}

/* See the install script. */
Datum
projector_worker_waits_since(PG_FUNCTION_ARGS)
{
	TimestampTz since = pj_slot_waits_since(MyDatabaseId);

	if (since == 0)
		PG_RETURN_NULL();
	PG_RETURN_TIMESTAMPTZ(since);
}
