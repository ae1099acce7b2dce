/*
 * control.c
 *	  SQL functions for workers: start them, stop them, show what they do.
 */
#include "base/compat.h"

#include "access/xlog.h"
#include "catalog/namespace.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "base/guc.h"
#include "ipc/shmem.h"
#include "ipc/wakeup.h"
#include "sandbox/user_context.h"
#include "worker/control.h"

PG_FUNCTION_INFO_V1(projector_worker_start);
PG_FUNCTION_INFO_V1(projector_worker_stop);
PG_FUNCTION_INFO_V1(projector_worker_waits_since);
PG_FUNCTION_INFO_V1(projector_worker_activity);

/* Starts a worker.  Returns how many this database has. */
Datum
projector_worker_start(PG_FUNCTION_ARGS)
{
	BackgroundWorkerHandle *handle;
	bool		serving;
	pid_t		pid;

	pj_refuse_in_user_code("projector_worker_start");

	/* a worker could not start, and we would wait for it */
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

/* Remove the stop marks of databases that have been dropped. */
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

/* Stops this database's workers.  Returns how many there were. */
Datum
projector_worker_stop(PG_FUNCTION_ARGS)
{
	pj_refuse_in_user_code("projector_worker_stop");
	forget_dropped();
	(void) pj_forbid_workers(MyDatabaseId);
	PG_RETURN_INT32(pj_end_workers(MyDatabaseId));
}

/*
 * Returns since when this database has waited for a worker because there was
 * no free worker process.
 */
Datum
projector_worker_waits_since(PG_FUNCTION_ARGS)
{
	TimestampTz since = pj_slot_waits_since(MyDatabaseId);

	if (since == 0)
		PG_RETURN_NULL();
	PG_RETURN_TIMESTAMPTZ(since);
}

static const char *const activity_names[] = {
	[PJ_IDLE_WORKER] = "idle",
	[PJ_LOOKING] = "looking",
	[PJ_APPLYING] = "applying",
	[PJ_IN_RUN] = "run",
	[PJ_AT_CHORES] = "chores",
};

/*
 * May this user read one of the status views, and so what this function shows?
 */
bool
pj_may_see_status(void)
{
	static const char *const views[] = {"status", "status_by_tenant",
	"problems"};
	Oid			schema = get_namespace_oid("projector", false);

	for (int i = 0; i < lengthof(views); i++)
	{
		Oid			relid = get_relname_relid(views[i], schema);

		if (OidIsValid(relid) &&
			pg_class_aclcheck(relid, GetUserId(), ACL_SELECT) == ACLCHECK_OK)
			return true;
	}
	return false;
}

/*
 * Lists the workers of this database: slot, pid, pair, activity, and since
 * when.
 */
Datum
projector_worker_activity(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	PjWorkerActivity *workers;
	int			n;

	InitMaterializedSRF(fcinfo, 0);
	n = pj_may_see_status() ? pj_activities(&workers) : 0;
	for (int i = 0; i < n; i++)
	{
		const PjWorkerActivity *worker = &workers[i];
		bool		no_pair = worker->projection_id == 0;
		Datum		values[6] = {Int32GetDatum(worker->slot),
			Int32GetDatum(worker->pid), Int32GetDatum(worker->projection_id),
			CStringGetTextDatum(worker->tenant),
			CStringGetTextDatum(activity_names[worker->activity]),
		TimestampTzGetDatum(worker->since)};
		bool		nulls[6] = {[2] = no_pair,[3] = no_pair};

		tuplestore_putvalues(result->setResult, result->setDesc, values,
							 nulls);
	}
	return (Datum) 0;
}
