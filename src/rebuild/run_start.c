/*
 * run_start.c
 *	  Queue and cancel runs: projector_start_run() and
 *	  projector_cancel_run().
 */
#include "base/compat.h"

#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/lockdefs.h"
#include "utils/builtins.h"
#include "utils/tuplestore.h"

#include "base/args.h"
#include "ipc/wakeup.h"
#include "kinds/problem.h"
#include "log/log_read.h"
#include "rebuild/clear.h"
#include "rebuild/replay.h"
#include "rebuild/run.h"
#include "rebuild/tenant.h"
#include "registry/projection.h"
#include "sandbox/user_context.h"
#include "state/audit.h"
#include "state/cursor.h"

PG_FUNCTION_INFO_V1(projector_start_run);
PG_FUNCTION_INFO_V1(projector_cancel_run);

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
	PjProjection *projection = pj_take_alone("projector_start_run", name, 0);
	PjTenants	all;
	Datum	   *others = NULL;
	int			nothers = 0;
	PjContext	saved;

	pj_refuse_problem(projection);
	if (order->rebuild)
		pj_clear_check(projection, false);
	if (order->rebuild && !order->tenant)
		nothers = pj_clear_tenants(projection, &others);
	pj_enter_internal(&saved);
	if (order->tenant)
	{
		PjPair		pair;

		pj_pair_look(&pair, projection, order->tenant);
		pj_tenant_require(&pair);
		queue_run(order, projection, order->tenant);
	}
	else
	{
		pj_source_tenants(&all);
		for (int i = 0; i < all.count; i++)
			queue_run(order, projection, all.tenants[i]);

		/* tenants found only in the read model */
		for (int i = 0; i < nothers; i++)
			if (!pj_text_among(others[i], all.tenants, all.count))
				queue_run(order, projection, others[i]);
	}

	/* appends must check which tenants have a run */
	pj_registry_note_overrides(projection, false);
	pj_leave_internal(&saved);
}

/* All projections that the caller owns, in the order of "depends_on". */
static void
queue_all(const Order *order)
{
	PjProjection **projections;
	int			n = pj_projections_in_order(&projections);

	for (int i = 0; i < n; i++)
		if (pj_projection_is_own(projections[i]))
			queue_runs(order, projections[i]->name);
}

/* Queues runs for workers, and returns their ids. */
Datum
projector_start_run(PG_FUNCTION_ARGS)
{
	static const char *const modes[] = {"catch_up", "rebuild"};
	Datum		name = pj_optional_text(fcinfo, 0, "name");
	const char *mode = pj_required_name(fcinfo, 2, "mode");
	Order		order = {
		.rebuild = strcmp(mode, "rebuild") == 0,
		.tenant = pj_optional_text(fcinfo, 1, "tenant_id"),
		.by = GetUserNameFromId(GetUserId(), false),
		.result = (ReturnSetInfo *) fcinfo->resultinfo,
	};

	if (strcmp(mode, modes[0]) != 0 && strcmp(mode, modes[1]) != 0)
		ereport(ERROR,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("invalid mode of a run \"%s\"", mode),
				errhint("Possible values are \"%s\", \"%s\".",
						modes[0], modes[1]));
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
	pj_audit_count(fcinfo, tuplestore_tuple_count(order.result->setResult));

	PG_RETURN_NULL();
}

/* ---- cancelling ---- */

/*
 * Lock the projection of a run and return it, if the caller may manage it.
 * Raises an error if there is no such run; returns NULL if it has ended.
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

/* Cancels a run.  Returns false if it has ended. */
Datum
projector_cancel_run(PG_FUNCTION_ARGS)
{
	int64		id = DatumGetInt64(pj_required(fcinfo, 0, "run_id"));
	char	   *why = psprintf("cancelled by %s",
							   GetUserNameFromId(GetUserId(), false));
	PjProjection *projection;
	PjRun		run;
	PjContext	saved;
	char	   *name;
	bool		active;

	pj_require_read_committed("projector_cancel_run");
	pj_refuse_in_user_code("projector_cancel_run");
	projection = lock_run(id, &run);
	if (projection == NULL)
		PG_RETURN_BOOL(false);
	name = pstrdup(projection->name);

	/* waits for the current batch, if a worker is processing one */
	pj_pair_lock(projection->id, run.tenant, ShareLock);
	pj_wake_at_commit();
	pj_hint_at_commit(run.tenant);
	pj_enter_internal(&saved);
	active = pj_run_look(id, &run);
	if (active)
		pj_run_abandon(&run, why);
	pj_leave_internal(&saved);
	pj_audit(fcinfo, name, active ? "true" : "false");

	PG_RETURN_BOOL(active);
}
