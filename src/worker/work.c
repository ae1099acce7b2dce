/*
 * work.c
 *	  What a worker does in one transaction: batches of some pairs, or one of a
 *	  run.
 *
 * Small batches of several pairs share a transaction, so that many tenants with
 * a few events each do not cost a commit each.  It ends after a few
 * milliseconds, or with a pair that has more to do than one batch.  After an
 * error, pairs are done one by one for a while: what is rolled back with one
 * must be done again.
 *
 * Other workers and drains may work on the same pair.  A worker skips what it
 * cannot lock at once, and tries again later.
 */
#include "base/compat.h"

#include "access/transam.h"
#include "access/xact.h"
#include "pgstat.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "feed/active_tenants.h"
#include "feed/pair_step.h"
#include "feed/retry.h"
#include "ipc/shmem.h"
#include "log/tail.h"
#include "rebuild/run.h"
#include "registry/projection.h"
#include "worker/blame.h"
#include "worker/caution.h"
#include "worker/work.h"
#include "worker/work_queue.h"

/*
 * The maximum number of pairs tried in one transaction, because each takes
 * locks.
 */
#define MAX_PAIRS			64

/* A transaction ends when so much time has passed, and something was done. */
#define TURN_US				3000

/* After an error, so many transactions are of one pair only. */
#define TURNS_ALONE			64

/* So many runs are tried, until one is found that nobody is working on. */
#define MAX_RUNS			32

/* How long to leave a run alone that waits for a transaction. */
#define RUN_WAITS_MS		200

static int	turns_alone = 0;	/* how many are left of them */

/* What became of a pair's batch. */
typedef enum Outcome
{
	NOTHING,					/* nothing was done */
	SOMETHING,
	COMMIT						/* so much that the transaction should end */
} Outcome;

/* ---- looking ---- */

/* Is there a run that is not trusted, among those that are next? */
static bool
any_run_is_suspect(void)
{
	PjRun	   *runs;
	int			n = pj_runs_next(NULL, MAX_RUNS, &runs);

	for (int i = 0; i < n; i++)
		if (pj_caution_needed(runs[i].projection_id, runs[i].tenant))
			return true;
	return false;
}

/* Look for work, and check whether caution is still needed. */
static void
look_for_work(void)
{
	pj_activity_set(PJ_LOOKING, 0, 0);
	pj_queue_fill();
	if (pj_caution_is_on())
		pj_caution_end_if_over(pj_queue_has_penalized() ||
							   pj_queue_any(pj_caution_needed) ||
							   any_run_is_suspect());
}

/*
 * Look for work without doing any.  Returns true if there is some, or may be
 * once other transactions have ended.
 */
bool
pj_work_look(void)
{
	look_for_work();
	return pj_queue_has_work() || pj_queue_waits_for_others();
}

/* An error has ended a transaction: find its pairs again, one by one. */
void
pj_work_failed(void)
{
	turns_alone = TURNS_ALONE;
	pj_queue_look_again();
}

/* ---- a pair ---- */

/* Report what the worker does, for our views and pg_stat_activity. */
static void
report_pair(const PjStep *step)
{
	pj_activity_set(PJ_APPLYING, step->projection_id, step->tenant);
	pgstat_report_activity(STATE_RUNNING,
						   psprintf("projection \"%s\", tenant \"%s\"",
									step->pair.projection->name,
									TextDatumGetCString(step->tenant)));
}

/* Find the settled tail of the log, if the pair's batch needs it. */
static void
find_tail(const PjStep *step, PjBounds *bounds)
{
	if (pj_pair_needs_tail(&step->pair))
		bounds->tail = pj_tail(0);
}

/* Apply the event that the previous transaction has announced. */
static void
apply_announced(PjStep *step)
{
	pj_queue_look_again();
	pj_apply_announced(step);
	step->announced = 0;
	pj_caution_passed(step->projection_id, step->tenant,
					  step->pair.projection->options.batch_size);
	pj_queue_put_back(step, false);
}

/*
 * Process one event of a pair that is not trusted: announce it, and apply it
 * in the next transaction (see caution.c).  The pair has been entered.
 */
static Outcome
work_with_caution(PjStep *step)
{
	PjBounds	bounds = {.limit = PG_INT32_MAX,.upto = PG_INT64_MAX,
	.announce = true};
	bool		idle;

	if (step->announced)
	{
		apply_announced(step);
		return COMMIT;
	}
	find_tail(step, &bounds);
	idle = pj_step(step, &bounds) == PJ_IDLE && step->announced == 0;
	if (idle && step->pair.run_id == 0)
		pj_caution_idle(step->projection_id, step->tenant);
	else if (!idle)
	{
		pj_queue_put_back(step, step->announced != 0);
		pj_queue_look_again();
	}
	pj_step_save(step);
	return idle ? NOTHING : COMMIT;
}

/* One batch of a pair that has been entered. */
static Outcome
work_on_pair(PjStep *step)
{
	PjBounds	bounds = {.limit = PG_INT32_MAX,.upto = PG_INT64_MAX};
	PjProgress	progress;

	find_tail(step, &bounds);
	progress = pj_step(step, &bounds);

	/* find the time of the next retry */
	if (progress == PJ_MORE || step->counts.failed > 0)
		pj_queue_look_again();
	if (step->busy || (pj_pair_behind(&step->pair) &&
					   step->pair.own_handover && progress != PJ_MORE))
		pj_queue_poll();
	pj_step_save(step);
	if (progress == PJ_MORE)
	{
		if (pj_pair_reads_log(&step->pair))
			pj_active_add(step->tenant, bounds.tail);
		pj_queue_put_back(step, false);
		return COMMIT;
	}
	return progress == PJ_IDLE ? NOTHING : SOMETHING;
}

/* One batch of a pair. */
static Outcome
work_on_step(PjStep *step)
{
	pj_current_set(step->projection_id, step->tenant);
	if (!pj_step_enter(step))
	{
		/* the session that woke us at commit may still hold its locks */
		pj_queue_poll();
		return NOTHING;
	}
	report_pair(step);
	if (pj_caution_needed(step->projection_id, step->tenant))
		return work_with_caution(step);
	return work_on_pair(step);
}

/* One batch each of some pairs.  Returns whether anything was done. */
static bool
work_on_pairs(void)
{
	TimestampTz end = GetCurrentTimestamp() + TURN_US;
	bool		alone = turns_alone > 0;
	bool		worked = false;

	turns_alone -= alone;
	for (int i = 0; i < MAX_PAIRS; i++)
	{
		PjStep	   *step = pj_queue_next();
		Outcome		outcome = step ? work_on_step(step) : COMMIT;

		worked = worked || (step && outcome != NOTHING);
		if (outcome == COMMIT ||
			(worked && (alone || GetCurrentTimestamp() >= end)))
			break;
	}
	return worked;
}

/* ---- runs ---- */

static void
report_run(const PjRun *run)
{
	pj_activity_set(PJ_IN_RUN, run->projection_id, run->tenant);
	pgstat_report_activity(STATE_RUNNING,
						   psprintf("run %lld of projection %d, tenant \"%s\"",
									(long long) run->id, run->projection_id,
									TextDatumGetCString(run->tenant)));
}

/*
 * Process one batch of a run, or announce it, if the run is not trusted: then
 * its batch follows in the next transaction.  Returns false if another run may
 * be tried: this one is locked, or has to wait.  An announcement stays until the
 * batch has been processed.
 */
static bool
work_on_run(PjRun *run)
{
	bool		cautious = pj_caution_needed(run->projection_id, run->tenant);
	bool		announced = cautious && pj_run_is_announced(run);

	pj_current_set(run->projection_id, run->tenant);
	report_run(run);
	switch (cautious && !announced ? pj_run_announce(run) : pj_run_batch(run))
	{
		case PJ_RUN_PASSED:
			pj_queue_poll();
			return false;
		case PJ_RUN_WAITS:
			pj_penalize(RUN_WAITS_MS);
			pj_queue_poll();
			return false;
		case PJ_RUN_ERRED:
			pj_penalize(PJ_PENALTY_MS);
			break;
		case PJ_RUN_MOVED:
			if (!announced)
				break;
			pj_run_end_announcement(run);

			/* another slice may have caused the crash */
			if (run->slices == 0)
				pj_caution_idle(run->projection_id, run->tenant);
			break;
	}
	pj_queue_look_again();
	return true;
}

/* Process one batch of the first run that is not blocked, if there is one. */
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
			if (pj_queue_is_penalized(runs[i].projection_id, runs[i].tenant))
				continue;
			tried++;
			if (work_on_run(&runs[i]))
				return true;
		}
		after = &runs[n - 1];
	}
	return false;
}

/*
 * Look for work if it is time, and do some.  Returns whether there was any.
 * *lazily says that the transaction need not be flushed when it commits: nobody
 * waits for the backlog, and if it is lost in a crash it is done again.
 */
bool
pj_work(bool *lazily)
{
	PjTurn		turn;

	if (pj_queue_look_is_due())
	{
		look_for_work();

		/*
		 * It may have made cursors, without the pairs' locks.  If we went on
		 * to a run, whose pair's cursor another worker has just made, we
		 * might wait for each other.
		 */
		if (TransactionIdIsValid(GetTopTransactionIdIfAny()))
			return true;
	}
	turn = pj_queue_begin_turn();
	if (turn == PJ_TURN_RUN)
	{
		if (work_on_runs())
			return true;
		pj_queue_no_runs();
		turn = pj_queue_begin_turn();
	}
	*lazily = turn == PJ_TURN_BACKLOG;
	return work_on_pairs();
}
