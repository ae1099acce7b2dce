/*
 * status.c
 *	  Information for the status views that is in no table: the list of
 *	  pairs, and what keeps projections waiting.
 *
 * The views call these functions as the user who reads the view.  So all users
 * may execute them, but they return rows only to users who may read one of the
 * views, because the list of tenants may be confidential.  Their queries run
 * as the extension's owner.
 */
#include "base/compat.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "funcapi.h"
#include "utils/tuplestore.h"

#include "base/statement.h"
#include "sandbox/user_context.h"
#include "worker/control.h"

PG_FUNCTION_INFO_V1(projector_pairs);
PG_FUNCTION_INFO_V1(projector_appenders);
PG_FUNCTION_INFO_V1(projector_lockers);
PG_FUNCTION_INFO_V1(projector_no_worker);

#define THIS_DATABASE \
	"(SELECT oid FROM pg_database WHERE datname = current_database())"

/* Tenants are found by a loose index scan. */
static PjStatement select_pairs = {
	.sql = "WITH RECURSIVE t (tenant_id) AS ("
	"(SELECT e.tenant_id FROM projector.events e"
	" ORDER BY e.tenant_id LIMIT 1)"
	" UNION ALL SELECT (SELECT e.tenant_id FROM projector.events e"
	" WHERE e.tenant_id > t.tenant_id ORDER BY e.tenant_id LIMIT 1)"
	" FROM t WHERE t.tenant_id IS NOT NULL)"
	" SELECT p.projection_id, t.tenant_id"
	" FROM projector.projections p CROSS JOIN t"
	" WHERE t.tenant_id IS NOT NULL"
	" UNION SELECT c.projection_id, c.tenant_id"
	" FROM projector.projection_cursors c",
	.expect = SPI_OK_SELECT,
};

/* A prepared transaction has no pid; its gid is found through its locks. */
static PjStatement select_appenders = {
	.sql = "SELECT k.pid, x.gid, coalesce(a.usename, x.owner)::text, a.state,"
	" coalesce(a.xact_start, x.prepared) FROM pg_locks k"
	" LEFT JOIN pg_stat_activity a ON a.pid = k.pid"
	" LEFT JOIN pg_locks n ON k.pid IS NULL AND n.pid IS NULL"
	" AND n.locktype = 'transactionid' AND n.granted"
	" AND n.virtualtransaction = k.virtualtransaction"
	" LEFT JOIN pg_prepared_xacts x ON x.transaction = n.transactionid"
	" WHERE k.locktype = 'relation' AND k.granted"
	" AND k.relation = 'projector.events'::regclass"
	" AND k.database = " THIS_DATABASE
	" AND k.mode IN ('RowExclusiveLock', 'ShareRowExclusiveLock',"
	" 'ExclusiveLock', 'AccessExclusiveLock')"
	" AND k.pid IS DISTINCT FROM pg_backend_pid() ORDER BY 5, 1",
	.expect = SPI_OK_SELECT,
};

/* See base/lock.c for the three lock classes and their keys. */
static PjStatement select_lockers = {
	.sql = "SELECT l.pid, a.usename::text, a.xact_start, l.objsubid::integer,"
	" CASE WHEN l.objsubid = 20554 THEN l.classid::bigint"
	" ELSE l.classid::bigint << 32 | l.objid::bigint END"
	" FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid"
	" WHERE l.locktype = 'advisory' AND l.granted"
	" AND l.mode = 'ExclusiveLock' AND l.objsubid IN (20554, 20555, 20556)"
	" AND l.database = " THIS_DATABASE
	" AND a.backend_type <> 'projector worker'"
	" AND l.pid <> pg_backend_pid()",
	.expect = SPI_OK_SELECT,
};

static PjStatement select_no_worker = {
	.sql = "SELECT CASE WHEN o.is_off THEN 'projector.enabled = off'"
	" WHEN o.waits THEN 'all background worker slots are in use'"
	" ELSE 'no worker runs here' END, CASE WHEN o.is_off"
	" THEN 'ALTER SYSTEM SET projector.enabled = on; SELECT pg_reload_conf()'"
	" WHEN o.waits THEN 'SELECT projector_drain()"
	"  -- and raise max_worker_processes, which needs a restart'"
	" ELSE 'SELECT projector_worker_start()' END"
	" FROM (SELECT current_setting('projector.enabled') = 'off' AS is_off,"
	" projector.worker_waits_since() IS NOT NULL AS waits) o"
	" WHERE NOT EXISTS (SELECT FROM projector.worker_activity())",
	.expect = SPI_OK_SELECT,
};

/* Return the rows of a statement, to users who may see them. */
static Datum
return_rows(FunctionCallInfo fcinfo, PjStatement *stmt)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	PjContext	saved;
	int			n;

	InitMaterializedSRF(fcinfo, 0);
	if (!pj_may_see_status())
		return (Datum) 0;
	pj_enter_internal(&saved);
	n = pj_execute(stmt, NULL, NULL);
	for (int i = 0; i < n; i++)
		tuplestore_puttuple(result->setResult, SPI_tuptable->vals[i]);
	pj_leave_internal(&saved);
	return (Datum) 0;
}

/* Lists every projection with every tenant it applies to. */
Datum
projector_pairs(PG_FUNCTION_ARGS)
{
	return return_rows(fcinfo, &select_pairs);
}

/* Lists the open transactions that have appended events, oldest first. */
Datum
projector_appenders(PG_FUNCTION_ARGS)
{
	return return_rows(fcinfo, &select_appenders);
}

/*
 * Lists the sessions, other than workers, that hold exclusive locks on a
 * projection or pair.
 */
Datum
projector_lockers(PG_FUNCTION_ARGS)
{
	return return_rows(fcinfo, &select_lockers);
}

/* Returns why no worker runs here and what to do; no row if one runs. */
Datum
projector_no_worker(PG_FUNCTION_ARGS)
{
	return return_rows(fcinfo, &select_no_worker);
}
