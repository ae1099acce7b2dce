/*
 * run.c
 *	  Rebuilds and catch-ups in the background: workers process them batch
 *	  by batch, each batch in a transaction of its own.
 *
 * While a run is active, nothing else applies events of its pair: the run's id
 * is in the pair's cursor, which is always read under the pair's locks.
 * Appends continue and are queued if necessary.  A run that is still queued
 * has no effect on the pair.  The transaction that ends a run, for whatever
 * reason, removes the id again.
 *
 * A run has no process of its own.  Its state is in its row, its pair's cursor
 * and the offsets; any worker that gets the pair's locks processes its next
 * batch.  So an interrupted run always continues.  Its steps are:
 *
 * 1. It begins: its id is stored in the cursor.  From then on no other
 *    transaction starts to apply the pair's events.
 * 2. A rebuild is prepared, once transactions that had already started have
 *    ended: steps 1 to 3 of rebuild_steps.c.  A fold is not cleared, but built
 *    in a separate table (build_aside.c).
 * 3. Events are read and applied, one batch after the other.  Several workers
 *    can do this for a large build in a separate table (run_slices.c).
 * 4. It ends.  A separate table is merged into the live one.
 *
 * A rebuild in place that fails or is cancelled has already cleared what was
 * applied.  Therefore its cursor stays at 0 all the time, in state "replaying"
 * and with a handover of its own.  The next driver of the pair reads the log
 * from there, and the offsets show what has been applied.  A build in a
 * separate table is just dropped.
 */
#include "base/compat.h"

#include "miscadmin.h"
#include "storage/lockdefs.h"
#include "utils/builtins.h"
#include "utils/guc.h"

#include "apply/read_model.h"
#include "base/errcodes.h"
#include "base/guc.h"
#include "base/lock.h"
#include "base/subxact.h"
#include "feed/active_tenants.h"
#include "feed/pair_step.h"
#include "kinds/definition.h"
#include "kinds/kind.h"
#include "kinds/problem.h"
#include "log/log_read.h"
#include "log/tail.h"
#include "rebuild/build_aside.h"
#include "rebuild/build_merge.h"
#include "rebuild/clear.h"
#include "rebuild/rebuild_steps.h"
#include "rebuild/replay.h"
#include "rebuild/run.h"
#include "rebuild/run_slices.h"
#include "registry/projection.h"
#include "sandbox/deadline.h"
#include "sandbox/user_context.h"
#include "state/cursor.h"
#include "state/failure.h"

/* A run that is being processed. */
typedef struct Job
{
	PjRun	   *run;
	PjProjection *projection;
	PjPair		pair;
	bool		in_slice;		/* a batch of this slice is processed */
	PjRunSlice	slice;			/* or the one that has failed */
	PjRunResult result;
} Job;

/* ---- the steps of a run ---- */

/* Begin: from now on nothing else applies the pair's events. */
static void
begin_run(Job *job)
{
	PjRun	   *run = job->run;
	PjPair	   *pair = &job->pair;

	pj_refuse_shadow(pair);
	run->since = run->rebuild ? 0 : pair->last_log_seq;
	if (!run->rebuild && run->until == 0)
		run->until = pj_source_last_log_seq();
	run->total = pj_source_estimate(run->tenant, run->since,
									run->until ? run->until : PG_INT64_MAX,
									job->projection->event_types);
	pj_run_start(run);
	pj_cursor_set_run(pair, run->id);
}

/*
 * Lock the pair exclusively.  A transaction that started to apply events
 * before the run began may still hold the lock.  After that, others hold it
 * only briefly.
 */
static bool
lock_out_appends(Job *job)
{
	if (pj_lock_pair(job->projection->id, job->run->tenant, ExclusiveLock,
					 false))
		return true;
	job->result = PJ_RUN_WAITS;
	return false;
}

/*
 * Get the settled tail, which must reach "wanted".  If writers hold it back,
 * the run waits a little, between transactions.
 */
static bool
find_tail(Job *job, int64 wanted, int64 *tail)
{
	*tail = pj_tail(0);
	if (*tail >= wanted || job->run->age_ms > pj_tail_wait)
		return true;
	job->result = PJ_RUN_WAITS;
	return false;
}

/*
 * Prepare the place to build in.  In log order, events that are not settled
 * cannot be read.  Otherwise all visible events are read, up to the last
 * position drawn so far: some may have been applied before they were settled.
 * Events that commit later are queued.
 */
static void
prepare_rebuild(Job *job)
{
	PjRun	   *run = job->run;
	PjRebuild	rebuild = {.pair = &job->pair};
	int64		tail;

	if (!find_tail(job, job->projection->log_ordered ?
				   pj_source_last_log_seq() : 0, &tail) ||
		!lock_out_appends(job))
		return;
	pj_clear_check(job->projection, false);
	pj_aside_drop(run);			/* left over from an earlier attempt */
	pj_rebuild_note(&rebuild, tail, pj_source_last_log_seq());
	run->settled = rebuild.settled;
	run->until = rebuild.upto;
	run->aside = pj_aside_possible(job->projection);
	run->processed = run->last_log_seq = run->last_sequence = 0;
	run->last_aggregate = 0;
	run->definition = pj_definition_now(job->projection);
	run->slices = 0;
	if (run->aside)
	{
		pj_aside_make(job->projection, pj_aside_name(run->id));
		run->slices = pj_slices_cut(run, job->projection);
	}
	else
	{
		(void) pj_rebuild_forget(&rebuild);
		pj_cursor_restart(&job->pair, rebuild.upto);
		if (run->definition)
			pj_cursor_set_definition(&job->pair, run->definition);
	}
	run->prepared = true;
	pj_run_save(run);
}

/* End a run. */
static void
end_run(Job *job, const char *state, const ErrorData *error)
{
	pj_slices_end(job->run, &job->pair);
	pj_cursor_set_run(&job->pair, 0);
	pj_run_end(job->run, state, error);

	/* events appended in the meantime must still be read */
	if (pj_pair_reads_log(&job->pair))
		pj_active_add(job->run->tenant, pj_source_last_log_seq());
	job->result = PJ_RUN_MOVED;
}

/* End a run with an error. */
static void
fail_run(Job *job, const ErrorData *error)
{
	if (job->run->aside)
		pj_aside_drop(job->run);
	pj_pair_look(&job->pair, job->projection, job->run->tenant);
	end_run(job, "failed", error);
}

/*
 * Finish a rebuild: all events have been read.  "build" is NULL if it was done
 * in place.
 */
static void
finish_rebuild(Job *job, const PjDestination *build)
{
	PjRun	   *run = job->run;
	PjPair		aside = job->pair;

	if (build)
	{
		if (!lock_out_appends(job))
			return;
		aside.destination = build;
		if (run->slices > 0)
			pj_slices_finish(run, &aside);
		pj_long_call_begin(job->projection);
		pj_fold_merge(job->projection, build->table,
					  TextDatumGetCString(run->tenant));
		pj_long_call_end();
		pj_aside_take_over(job->projection, run);
		if (run->definition)
			pj_cursor_set_definition(&job->pair, run->definition);
	}
	else
		pj_cursor_forget_handover(&job->pair);
	if (job->projection->options.digest && !pj_is_fold(job->projection->kind))
		pj_model_refresh(&job->pair, run->settled);
	pj_replay_end(&job->pair, run->settled, &(PjCounts) {0});
	end_run(job, "completed", NULL);
}

/*
 * A batch has been applied.  Note if it was with another definition than the
 * ones before: then several have made the rows of the build.  (made_by.c does
 * it for a rebuild in place.)
 */
static void
note_definition(PjRun *run, const PjProjection *projection)
{
	const bytea *now = pj_definition_peek(projection);

	if (now && run->definition &&
		!pj_text_equal(PointerGetDatum(now), PointerGetDatum(run->definition)))
		run->definition = cstring_to_text("");
}

/*
 * Apply the next events of a rebuild, in the order of the log or of the
 * aggregates.  "build" is NULL if it is done in place.
 */
static void
replay_events(Job *job, const PjDestination *build)
{
	PjRun	   *run = job->run;
	PjPair		pair = job->pair;
	PjReplay	replay;
	int			n;

	pair.destination = build;
	pj_replay_init(&replay, &pair, run->until);
	replay.walk.aggregate = run->last_aggregate;
	replay.walk.sequence = run->last_sequence;
	replay.last_log_seq = run->last_log_seq;
	n = pj_replay_batch(&replay);
	if (n == 0)
	{
		finish_rebuild(job, build);
		return;
	}
	note_definition(run, job->projection);
	run->processed += n;
	run->last_log_seq = Max(run->last_log_seq, replay.last_log_seq);
	run->last_aggregate = replay.walk.aggregate;
	run->last_sequence = replay.walk.sequence;
	if (job->projection->log_ordered && !run->aside)
		job->pair.last_log_seq = run->last_log_seq;
	pj_cursor_save(&job->pair, &replay.counts);
	pj_run_save(run);
}

/* Start again: there is no place to build in any more. */
static void
start_again(Job *job)
{
	PjRun	   *run = job->run;

	if (!pj_try_lock_driver(run->projection_id, run->tenant, ExclusiveLock))
	{
		job->result = PJ_RUN_PASSED;	/* others work on other slices */
		return;
	}
	pj_slices_end(run, &job->pair);
	run->slices = 0;
	run->prepared = false;
	pj_run_save(run);
}

/*
 * Go on with a build: with a slice, or with the end, or with the next events
 * if there are no slices.
 */
static void
build_aside(Job *job)
{
	PjRun	   *run = job->run;
	PjDestination build;

	if (run->slices > 0 && job->slice.error)
		fail_run(job, job->slice.error);
	else if (!pj_aside_find(job->projection, pj_aside_name(run->id), &build))
		start_again(job);
	else if (job->in_slice)
		pj_slice_batch(run, &job->pair, &build, &job->slice);
	else if (run->slices > 0)
		finish_rebuild(job, &build);
	else
		replay_events(job, &build);
}

/* Apply the next batch of a catch-up, as a worker would, up to a limit. */
static void
catch_up(Job *job)
{
	PjRun	   *run = job->run;
	PjStep		step = {.projection_id = job->projection->id,
	.tenant = run->tenant,.pair = job->pair};
	PjBounds	bounds = {.limit = PG_INT32_MAX,.upto = run->until,
	.ordered = true};
	bool		settled = find_tail(job, run->until, &bounds.tail);
	PjProgress	progress;
	bool		worked;

	bounds.tail = Min(bounds.tail, run->until);
	progress = pj_step_ordered(&step, &bounds);
	worked = step.counts.applied + step.counts.failed > 0 || step.moved;
	run->processed += step.counts.applied + step.counts.failed;
	run->last_log_seq = step.pair.last_log_seq;
	pj_step_save(&step);
	if (worked || progress == PJ_MORE)
		job->result = PJ_RUN_MOVED;
	else if (step.busy || !settled ||
			 pj_projection_problem(job->projection) != NULL)
		job->result = PJ_RUN_WAITS;
	if (job->result == PJ_RUN_MOVED)
		pj_run_save(run);
	if (job->result == PJ_RUN_MOVED && !worked && progress != PJ_MORE)
		end_run(job, "completed", NULL);
}

/* ---- a batch ---- */

static bool
do_batch(void *arg)
{
	Job		   *job = arg;

	job->result = PJ_RUN_MOVED;
	if (!job->run->running)
		begin_run(job);
	else if (!job->run->rebuild)
		catch_up(job);
	else if (!job->run->prepared)
		prepare_rebuild(job);
	else if (job->run->aside)
		build_aside(job);
	else
		replay_events(job, NULL);
	return job->result != PJ_RUN_WAITS;
}

/*
 * Process a batch with a lock_timeout.  Another session may have locked rows
 * of the read model and stay idle.  A handler's code has a deadline; this
 * limits the rest of the batch.
 */
static bool
do_batch_without_hanging(void *arg)
{
	Job		   *job = arg;
	int			level = NewGUCNestLevel();
	char	   *limit = psprintf("%d", (int) Min(Max(job->projection->options.timeout / 1000, 1),
												 PG_INT32_MAX));
	bool		kept;

	(void) set_config_option("lock_timeout", limit, PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
	kept = do_batch(arg);
	AtEOXact_GUC(false, level);
	return kept;
}

/*
 * Find out what is next in a run that is cut into slices, and lock it.  Returns
 * false if others work on all of them.  For any step but a batch of a slice,
 * the driver lock must be exclusive.
 */
static bool
find_slice(Job *job)
{
	PjRun	   *run = job->run;
	PjSliceClaim claim;

	if (!pj_run_look(run->id, run) || run->slices == 0)
		return false;			/* it has ended, or starts again */
	claim = pj_slice_claim(run, &job->slice);
	job->in_slice = claim == PJ_SLICE_TAKEN;
	return job->in_slice ||
		(claim == PJ_SLICES_OVER &&
		 pj_try_lock_driver(run->projection_id, run->tenant, ExclusiveLock));
}

/*
 * Take the locks of a pair whose run is cut into slices, and those of a slice.
 * If there is nothing to do none may be left, because another worker needs the
 * pair for itself in order to end the run.
 */
static bool
lock_slice(Job *job)
{
	PjRun	   *run = job->run;

	if (!pj_pair_try_share(run->projection_id, run->tenant))
		return false;
	if (find_slice(job))
		return true;
	pj_pair_unshare(run->projection_id, run->tenant);
	return false;
}

/* Take the locks of a pair whose run is not cut. */
static bool
lock_pair(Job *job)
{
	PjRun	   *run = job->run;
	LOCKMODE	mode = job->projection->log_ordered ? ExclusiveLock : ShareLock;

	if (!pj_pair_try_lock(run->projection_id, run->tenant, mode) ||
		!pj_run_look(run->id, run))
		return false;
	if (run->slices == 0)
		return true;
	pj_unlock_pair(run->projection_id, run->tenant, mode);
	pj_unlock_driver(run->projection_id, run->tenant, ExclusiveLock);
	return lock_slice(job);		/* it was cut in the meantime */
}

/*
 * Take the locks of a run's pair, and read the run and the pair.  Returns
 * false if a lock is taken, the run has ended, or it must wait for another
 * run.  See pj_step_enter() for the order of the locks.
 */
static bool
enter_run(Job *job)
{
	PjRun	   *run = job->run;
	int32		id = run->projection_id;

	if (!pj_lock_projection(id, ShareLock, false))
		return false;
	job->projection = pj_projection_by_id(id);
	if (job->projection == NULL || job->projection->dormant ||
		(!run->running && pj_run_depends(run)) ||
		!(run->slices > 0 ? lock_slice(job) : lock_pair(job)))
		return false;
	pj_pair_look(&job->pair, job->projection, run->tenant);
	return true;
}

/* How often the next batch has been tried. */
static int
attempts_before(const Job *job)
{
	return job->in_slice ? job->slice.attempts : job->run->attempts;
}

static void
count_attempt(const Job *job)
{
	if (job->in_slice)
		pj_slice_count_attempt(&job->slice);
	else
		pj_run_count_attempt(job->run);
}

/*
 * A batch has failed.  After a transient error it is retried; otherwise the
 * run fails.
 */
static void
note_error(Job *job, ErrorData *error)
{
	/* read the row again: the batch was rolled back */
	if (!pj_run_look(job->run->id, job->run))
		elog(ERROR, "run %lld is gone", (long long) job->run->id);
	ereport(WARNING,
			errcode(error->sqlerrcode),
			errmsg("run %lld of projection \"%s\" for tenant \"%s\": %s",
				   (long long) job->run->id, job->projection->name,
				   TextDatumGetCString(job->run->tenant), error->message),
			error->context ? errcontext("%s", error->context) : 0);
	if (pj_failure_transient(error) && attempts_before(job) + 1 <
		PJ_TRANSIENT_FACTOR * job->projection->options.max_attempts)
	{
		count_attempt(job);
		job->result = PJ_RUN_ERRED;
		return;
	}
	if (job->in_slice &&
		!pj_try_lock_driver(job->run->projection_id, job->run->tenant,
							ExclusiveLock))
	{
		/* others are working on other slices: end the run after them */
		pj_slice_fail(&job->slice, error);
		job->result = PJ_RUN_MOVED;
		return;
	}
	fail_run(job, error);
}

/*
 * Process the next batch of a run.  An error ends the run, unless the whole
 * transaction is meant to end.
 */
PjRunResult
pj_run_batch(PjRun *run)
{
	Job			job = {.run = run};
	ErrorData  *error;
	bool		kept;

	if (!enter_run(&job))
		return PJ_RUN_PASSED;
	if (pj_projection_problem(job.projection) != NULL)
		return PJ_RUN_WAITS;
	pj_deadline_begin(0);
	pj_forget_cancel();
	error = pj_subtransaction(do_batch_without_hanging, &job, &kept);
	pj_deadline_disarm();		/* stop a timeout that an error has left
								 * running */
	pj_failure_name_timeout(error);
	if (error && !pj_failure_swallowed(error))
		ReThrowError(error);
	if (error && pj_projection_problem(job.projection) != NULL)
		return PJ_RUN_WAITS;	/* the projection can no longer run at all */
	if (error)
		note_error(&job, error);
	return job.result;
}

/* ---- announcing a batch ---- */

/*
 * Count an attempt of a run's next batch, which may crash the worker or the
 * server.  The announcement is this worker's alone: otherwise several workers
 * would count several attempts.  Returns PJ_RUN_MOVED if the batch was announced,
 * and PJ_RUN_ERRED if the run has failed because of too many attempts.
 */
PjRunResult
pj_run_announce(PjRun *run)
{
	Job			job = {.run = run};
	ErrorData	error = {.elevel = ERROR,.sqlerrcode = ERRCODE_PJ_SUSPECT,
	.message = "the worker or the server ended while a batch of the run was being applied"};

	if (!enter_run(&job))
		return PJ_RUN_PASSED;
	run->slice = job.in_slice ? job.slice.number : 0;
	if (pj_projection_problem(job.projection) != NULL ||
		!pj_keep_slice(run->id, run->slice))
		return PJ_RUN_WAITS;
	if (attempts_before(&job) < job.projection->options.max_attempts)
	{
		count_attempt(&job);
		return PJ_RUN_MOVED;
	}
	note_error(&job, &error);
	pj_run_end_announcement(run);
	return PJ_RUN_ERRED;
}

/*
 * Has this worker announced a batch of the run, and not processed it yet?  If
 * so, sets which slice it is of.  No lock of the run has been taken in this
 * transaction.
 */
bool
pj_run_is_announced(PjRun *run)
{
	for (run->slice = 0; run->slice <= run->slices; run->slice++)
		if (pj_slice_is_locked(run->id, run->slice))
			return true;
	run->slice = 0;
	return false;
}

/* The announced batch has been processed. */
void
pj_run_end_announcement(const PjRun *run)
{
	pj_release_slice(run->id, run->slice);
}
