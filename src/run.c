/*
 * run.c
 *	  Rebuilds and catch-ups in the background: projector_start_run() queues
 *	  them, workers do them, batch by batch, each in a transaction of its own.
 *
 * While a run is at work its pair is not applied otherwise: its number is in
 * the pair's cursor, which everyone looks at under the pair's locks.  Appends
 * go on, and are queued if need be.  A run that is still queued is in nobody's
 * way.  Whatever becomes of a run, the transaction that ends it takes the
 * number out again.
 *
 * A run has no process.  What there is of it is in its row, its pair's cursor
 * and the offsets; any worker that gets the pair's locks does its next batch.
 * So a run that was interrupted, however it was, goes on by itself.  Its steps:
 *
 *	1. It starts: the number goes into the cursor.  From then on nobody starts
 *	   to apply the pair's events.
 *	2. A rebuild is prepared, once those who had started have ended.  That is
 *	   rebuild.c's order: note the tail, settle what is queued, clear.  A fold
 *	   is not cleared: it is built aside (aside.c).
 *	3. Events are read and applied, one batch after the other.
 *	4. It ends.  What was built aside takes the live one's place.
 *
 * A rebuild in place that fails or is cancelled has forgotten what was applied.
 * Therefore its cursor stands at 0 all the time, with the state "replaying" and
 * a handover of its own: whoever applies the pair afterwards reads on from
 * there, and the offsets say what is done.  A build aside is just dropped.
 */
#include "compat.h"

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/lockdefs.h"
#include "utils/builtins.h"
#include "utils/tuplestore.h"

#include "active.h"
#include "apply.h"
#include "args.h"
#include "aside.h"
#include "clear.h"
#include "context.h"
#include "cursor.h"
#include "definition.h"
#include "failure.h"
#include "foldmerge.h"
#include "guc.h"
#include "lock.h"
#include "model.h"
#include "offset.h"
#include "outbox.h"
#include "projection.h"
#include "replay.h"
#include "run.h"
#include "source.h"
#include "statement.h"
#include "step.h"
#include "subxact.h"
#include "tail.h"
#include "wakeup.h"

PG_FUNCTION_INFO_V1(projector_start_run);
PG_FUNCTION_INFO_V1(projector_cancel_run);

/* Projections whose flag "overrides" is out of date. */
static PjStatement select_overridden = {
	.sql = "SELECT projection_id FROM projector.projections p WHERE overrides"
	" AND NOT EXISTS (SELECT FROM projector.projection_cursors c"
	" WHERE c.projection_id = p.projection_id AND (c.mode IS NOT NULL"
	" OR c.paused_by IS NOT NULL OR c.run_id IS NOT NULL))"
	" AND NOT EXISTS (SELECT FROM projector.projection_runs r"
	" WHERE r.projection_id = p.projection_id"
	" AND r.state IN ('queued', 'running'))",
	.expect = SPI_OK_SELECT,
};

/* A run being worked on. */
typedef struct Job
{
	PjRun	   *run;
	PjProjection *projection;
	PjPair		pair;
	PjRunResult result;
} Job;

/* ---- the steps of a run ---- */

/* It starts: from now on nobody else applies the pair's events. */
static void
start(Job *job)
{
	PjRun	   *run = job->run;
	PjPair	   *pair = &job->pair;

	pj_refuse_shadow(pair);
	run->since = run->rebuild ? 0 : pair->last_log_seq;
	if (!run->rebuild)
	{
		run->settled = pj_tail(0);
		if (run->until == 0)
			run->until = pj_source_last_log_seq();
	}
	run->total = pj_source_estimate(run->tenant, run->since,
									run->until ? run->until : PG_INT64_MAX,
									job->projection->event_types);
	pj_run_start(run);
	pj_run_save(run);
	pj_cursor_set_run(pair, run->id);
}

/*
 * Have the pair to ourselves.  Who had started to apply events before the run
 * did may still have the lock; nobody else takes it any more for long.
 */
static bool
lock_alone(Job *job)
{
	if (pj_lock_pair(job->projection->id, job->run->tenant, ExclusiveLock,
					 false))
		return true;
	job->result = PJ_RUN_WAITS;
	return false;
}

/* Forget what was applied, in the order that rebuild.c explains. */
static void
clear_in_place(Job *job)
{
	PjRun	   *run = job->run;
	PjProjection *projection = job->projection;

	pj_outbox_clear_upto(projection->id, run->tenant, run->until);
	pj_failure_rebuilt(projection, run->tenant, 0, run->until);
	(void) pj_clear(projection, run->tenant, 0);
	pj_offsets_delete(projection->id, run->tenant, 0);
	pj_cursor_restart(&job->pair, run->until);
}

/*
 * Make a place to build in.  In log order what is not settled cannot be read.
 * Otherwise all is read that is there, up to the last position drawn so far:
 * some of it may have been applied before it was settled.  What is committed
 * later is queued.
 */
static void
prepare(Job *job)
{
	PjRun	   *run = job->run;

	if (!lock_alone(job))
		return;
	pj_clear_check(job->projection, false);
	run->settled = Max(pj_tail(0), job->pair.last_log_seq);
	run->until = job->projection->log_ordered ? run->settled :
		pj_source_last_log_seq();
	run->aside = pj_aside_possible(job->projection);
	run->processed = run->last_log_seq = run->last_sequence = 0;
	run->last_aggregate = 0;
	if (run->aside)
		pj_aside_make(job->projection, run);
	else
		clear_in_place(job);
	run->prepared = true;
	run->definition = pj_definition_now(job->projection);
	pj_run_save(run);
}

/* It has come to its end. */
static void
end(Job *job, const char *state, const ErrorData *error)
{
	pj_cursor_set_run(&job->pair, 0);
	pj_run_end(job->run, state, error);

	/* what has come meanwhile is still to be read */
	if (pj_pair_reads_log(&job->pair))
		pj_active_add(job->run->tenant, pj_source_last_log_seq());
	job->result = PJ_RUN_ENDED;
}

/* All events have been read. */
static void
finish_rebuild(Job *job, const PjProjection *aside)
{
	PjRun	   *run = job->run;

	if (run->aside && !lock_alone(job))
		return;
	if (run->aside)
	{
		pj_fold_merge(job->projection, aside->aside,
					  TextDatumGetCString(run->tenant));
		pj_aside_take_over(job->projection, run);
	}
	else
		pj_cursor_forget_handover(&job->pair);
	if (job->projection->options.digest && !pj_is_fold(job->projection->kind))
		pj_model_refresh(job->projection, run->tenant, run->settled);
	pj_replay_end(&job->pair, run->settled, &(PjCounts) {0}, run->definition);
	end(job, "completed", NULL);
}

/* The next events of a rebuild. */
static void
replay(Job *job)
{
	PjRun	   *run = job->run;
	PjPair		pair = job->pair;
	PjProjection aside;
	PjReplay	replay;
	int			n;

	if (run->aside)
	{
		if (!pj_aside_find(job->projection, run, &aside))
		{
			run->prepared = false;
			pj_run_save(run);
			return;				/* from the start */
		}
		pair.projection = &aside;
	}
	pj_replay_init(&replay, &pair, run->until);
	replay.walk.aggregate = run->last_aggregate;
	replay.walk.sequence = run->last_sequence;
	replay.last_log_seq = run->last_log_seq;
	n = pj_replay_batch(&replay);
	if (n == 0)
	{
		finish_rebuild(job, &aside);
		return;
	}
	run->processed += n;
	run->last_log_seq = Max(run->last_log_seq, replay.last_log_seq);
	run->last_aggregate = replay.walk.aggregate;
	run->last_sequence = replay.walk.sequence;
	if (job->projection->log_ordered && !run->aside)
		job->pair.last_log_seq = run->last_log_seq;
	pj_cursor_save(&job->pair, &replay.counts);
	pj_run_save(run);
}

/* The next batch of a catch-up: what a worker does, up to a limit. */
static void
catch_up(Job *job)
{
	PjRun	   *run = job->run;
	PjStep		step = {.projection_id = job->projection->id,
	.tenant = run->tenant,.pair = job->pair};
	PjBounds	bounds = {.limit = PG_INT32_MAX,.upto = run->until,
	.tail = Min(run->settled, run->until),.ordered = true};
	PjMode		mode = job->pair.mode;
	PjProgress	progress;

	step.pair.mode = PJ_FOLLOW;
	step.pair.paused = false;
	step.pair.run_id = 0;
	progress = pj_step(&step, &bounds);
	run->processed += step.counts.applied + step.counts.failed;
	run->last_log_seq = step.pair.last_log_seq;
	step.pair.mode = mode;
	pj_step_save(&step);
	if (step.busy && progress != PJ_MORE)
	{
		job->result = PJ_RUN_WAITS;
		return;
	}
	pj_run_save(run);
	if (progress != PJ_MORE)
		end(job, "completed", NULL);
}

static bool
do_batch(void *arg)
{
	Job		   *job = arg;

	job->result = PJ_RUN_MOVED;
	if (!job->run->running)
		start(job);
	else if (!job->run->rebuild)
		catch_up(job);
	else if (!job->run->prepared)
		prepare(job);
	else
		replay(job);
	return job->result != PJ_RUN_WAITS;
}

/*
 * Take the locks of a run's pair, and look at both.  Returns false if somebody
 * else is at work on it, or it has ended.
 */
static bool
enter(Job *job)
{
	PjRun	   *run = job->run;
	int32		id = run->projection_id;

	if (!pj_lock_projection(id, ShareLock, false))
		return false;
	job->projection = pj_projection_by_id(id);
	if (job->projection == NULL || job->projection->dormant ||
		!pj_lock_pair(id, run->tenant, job->projection->log_ordered ?
					  ExclusiveLock : ShareLock, false) ||
		!pj_lock_driver(id, run->tenant, false) ||
		!pj_run_look(run->id, run))
		return false;
	pj_pair_look(&job->pair, job->projection, run->tenant);
	return true;
}

/*
 * A batch has failed.  What may go away by itself is tried again; otherwise the
 * run has failed.
 */
static void
note_error(Job *job, const ErrorData *error)
{
	/* the row is as it was before the batch */
	if (!pj_run_look(job->run->id, job->run))
		elog(ERROR, "run %lld is gone", (long long) job->run->id);
	ereport(WARNING,
			errcode(error->sqlerrcode),
			errmsg("run %lld of projection \"%s\" for tenant \"%s\": %s",
				   (long long) job->run->id, job->projection->name,
				   TextDatumGetCString(job->run->tenant), error->message),
			error->context ? errcontext("%s", error->context) : 0);
	if (pj_failure_transient(error) && job->run->attempts + 1 <
		PJ_TRANSIENT_FACTOR * job->projection->options.max_attempts)
	{
		pj_run_count_attempt(job->run);
		job->result = PJ_RUN_ERRED;
		return;
	}
	if (job->run->aside)
		pj_aside_drop(job->run);
	pj_pair_look(&job->pair, job->projection, job->run->tenant);
	end(job, "failed", error);
}

/*
 * Do the next batch of a run.  An error ends the run, if it is not one that
 * says that somebody wants the whole transaction to end.
 */
PjRunResult
pj_run_batch(PjRun *run)
{
	Job			job = {.run = run};
	ErrorData  *error;
	bool		kept;

	if (!enter(&job))
		return PJ_RUN_PASSED;
	error = pj_subtransaction(do_batch, &job, &kept);
	if (error && !pj_failure_swallowed(error))
		ReThrowError(error);
	if (error)
		note_error(&job, error);
	return job.result;
}

/* ---- ending runs from outside ---- */

/*
 * End a run that has not come to its end.  The caller has the driver lock of
 * its pair, or the projection's lock exclusively.
 */
void
pj_run_abandon(const PjRun *run, const char *why)
{
	PjProjection *projection = pj_projection_by_id(run->projection_id);
	ErrorData	error = {.sqlerrcode = ERRCODE_QUERY_CANCELED,
	.message = (char *) why};
	PjPair		pair;

	if (run->aside)
		pj_aside_drop(run);
	if (run->running)
	{
		pj_pair_look(&pair, projection, run->tenant);
		pj_cursor_set_run(&pair, 0);
	}
	pj_run_end(run, "cancelled", &error);
}

/* A projection is dropped: nothing of its runs is to be left. */
void
pj_runs_forget(const PjProjection *projection)
{
	PjRun	   *runs;
	int			n = pj_runs_of(projection, &runs);

	for (int i = 0; i < n; i++)
		if (runs[i].aside)
			pj_aside_drop(&runs[i]);
}

/*
 * Runs have ended: where no tenant is run in a way of its own any more, appends
 * need not look.  If somebody is at work on the projection it can wait.
 */
void
pj_runs_settle(void)
{
	int			n = pj_execute(&select_overridden, NULL, NULL);
	int32	   *ids = palloc(sizeof(int32) * Max(n, 1));

	for (int i = 0; i < n; i++)
	{
		bool		isnull;

		ids[i] = DatumGetInt32(pj_result(i, 1, &isnull));
	}
	for (int i = 0; i < n; i++)
	{
		PjProjection *projection;

		if (!pj_lock_projection(ids[i], ExclusiveLock, false))
			continue;
		projection = pj_projection_by_id(ids[i]);
		if (projection && !projection->dormant)
			pj_registry_note_overrides(projection, false);
	}
}

/* ---- starting ---- */

typedef struct Order
{
	bool		rebuild;
	Datum		tenant;			/* 0 for all */
	int64		until;			/* 0 for the log's end */
	const char *by;
	ReturnSetInfo *result;
} Order;

static void
queue_run(const Order *order, PjProjection *projection, Datum tenant)
{
	PjRun		run = {.projection_id = projection->id,.tenant = tenant,
	.rebuild = order->rebuild,.until = order->until};
	PjPair		pair;
	Datum		value;
	bool		isnull = false;
	int64		id;

	pj_pair_look(&pair, projection, tenant);
	pj_refuse_shadow(&pair);
	id = pj_run_insert(&run, order->by);
	if (id == 0)
		pj_run_refuse(projection, tenant);
	value = Int64GetDatum(id);
	tuplestore_putvalues(order->result->setResult, order->result->setDesc,
						 &value, &isnull);
}

/* Queue the runs of a projection. */
static void
queue_runs(const Order *order, const char *name)
{
	PjProjection *projection = pj_projection_own(name, ExclusiveLock);
	PjTenants	all;
	Datum	   *others = NULL;
	int			nothers = 0;
	PjContext	saved;

	pj_refuse_dormant(projection);
	if (order->rebuild)
		pj_clear_check(projection, false);
	if (order->rebuild && !order->tenant)
		nothers = pj_clear_tenants(projection, &others);
	pj_enter_internal(&saved);
	if (order->tenant)
		queue_run(order, projection, order->tenant);
	else
	{
		pj_source_tenants(&all);
		for (int i = 0; i < all.count; i++)
			queue_run(order, projection, all.tenants[i]);

		/* those that are in the read model alone */
		for (int i = 0; i < nothers; i++)
			if (!pj_text_among(others[i], all.tenants, all.count))
				queue_run(order, projection, others[i]);
	}

	/* appends must look who has a run */
	pj_registry_note_overrides(projection, false);
	pj_leave_internal(&saved);
}

/* All projections the caller may look after, in the order of "depends_on". */
static void
queue_all(const Order *order)
{
	PjProjection **projections;
	int			n = pj_projections_in_order(&projections);

	for (int i = 0; i < n; i++)
		if (pj_projection_is_own(projections[i]))
			queue_runs(order, projections[i]->name);
}

/* See the install script. */
Datum
projector_start_run(PG_FUNCTION_ARGS)
{
	static const char *const modes[] = {"catch_up", "rebuild", NULL};
	Datum		name = pj_optional_text(fcinfo, 0, "name");
	const char *mode = pj_choose(pj_required_name(fcinfo, 1, "mode"), modes,
								 "mode of a run");
	Order		order = {
		.rebuild = strcmp(mode, "rebuild") == 0,
		.tenant = pj_optional_text(fcinfo, 2, "tenant_id"),
		.by = GetUserNameFromId(GetUserId(), false),
		.result = (ReturnSetInfo *) fcinfo->resultinfo,
	};

	if (!PG_ARGISNULL(3))
		order.until = PG_GETARG_INT64(3);
	if (!PG_ARGISNULL(3) && order.rebuild)
		ereport(ERROR,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("a rebuild goes to the end of the log"),
				errhint("until_log_seq is for mode \"catch_up\"."));
	if (!PG_ARGISNULL(3) && order.until < 1)
		ereport(ERROR,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("until_log_seq must be positive"));
	pj_require_read_committed("projector_start_run");
	pj_refuse_in_user_code("projector_start_run");
	pj_wake_at_commit();
	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	if (name)
		queue_runs(&order, TextDatumGetCString(name));
	else
		queue_all(&order);

	PG_RETURN_NULL();
}

/* ---- cancelling ---- */

/*
 * The projection of a run, locked, for those who may look after it.  An error
 * if there is no such run; NULL if it has ended.
 */
static PjProjection *
lock_run(int64 id, PjRun *run)
{
	PjProjection *projection;
	PjContext	saved;
	bool		active;
	int32		projection_id;

	pj_enter_internal(&saved);
	projection_id = pj_run_projection(id);
	active = projection_id != 0 && pj_run_look(id, run);
	pj_leave_internal(&saved);
	projection = projection_id ? pj_projection_by_id(projection_id) : NULL;
	if (projection == NULL)
		ereport(ERROR,
				errcode(ERRCODE_UNDEFINED_OBJECT),
				errmsg("run %lld does not exist", (long long) id),
				errhint("The runs are listed in projector.runs."));
	projection = pj_projection_own(projection->name, ShareLock);
	return active ? projection : NULL;
}

/* See the install script. */
Datum
projector_cancel_run(PG_FUNCTION_ARGS)
{
	int64		id = DatumGetInt64(pj_required(fcinfo, 0, "run_id"));
	char	   *why = psprintf("cancelled by %s",
							   GetUserNameFromId(GetUserId(), false));
	PjProjection *projection;
	PjRun		run;
	PjContext	saved;
	bool		active;

	pj_require_read_committed("projector_cancel_run");
	pj_refuse_in_user_code("projector_cancel_run");
	projection = lock_run(id, &run);
	if (projection == NULL)
		PG_RETURN_BOOL(false);

	/* its batch, if a worker is at one, is waited for */
	pj_lock_pair(projection->id, run.tenant, ShareLock, true);
	pj_lock_driver(projection->id, run.tenant, true);
	pj_wake_at_commit();
	pj_hint_at_commit(run.tenant);
	pj_enter_internal(&saved);
	active = pj_run_look(id, &run);
	if (active)
		pj_run_abandon(&run, why);
	pj_leave_internal(&saved);

	PG_RETURN_BOOL(active);
}
