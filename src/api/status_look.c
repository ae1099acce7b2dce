/*
 * status_look.c
 *	  One look at how things are: what is found out once, however many pairs are
 *	  looked at.
 *
 * Those are the projections and why they cannot run, the workers, the sessions
 * that keep others waiting, and the tenants of the log.  Queries run as the
 * extension's owner: reading a view needs no other privilege.
 */
#include "base/compat.h"

#include "catalog/pg_type.h"
#include "funcapi.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "api/status_look.h"
#include "base/lock.h"
#include "base/statement.h"
#include "base/text.h"
#include "kinds/definition.h"
#include "kinds/problem.h"
#include "sandbox/user_context.h"
#include "worker/control.h"

PG_FUNCTION_INFO_V1(projector_appenders);
PG_FUNCTION_INFO_V1(projector_no_worker);

#define THIS_DATABASE \
	"(SELECT oid FROM pg_database WHERE datname = current_database())"

static PjStatement select_projections = {
	.sql = "SELECT projection_id, name, kind, mode, ordering, event_types,"
	" handover_log_seq IS NOT NULL, started, paused, paused_by, pause_reason,"
	" paused_at, definition_hash, home, created_at FROM projector.projections"
	" WHERE $1 IS NULL OR name = $1 ORDER BY name",
	.expect = SPI_OK_SELECT,
	.nargs = 1,
	.argtypes = {TEXTOID},
};

/* A prepared transaction has no process, but a number of its own. */
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
	" AND k.pid IS DISTINCT FROM pg_backend_pid() ORDER BY 5, 1"
	" /* projector */",
	.expect = SPI_OK_SELECT,
	.joins_sets = true,
};

/* See base/lock.c for the classes, $1 to $3, and their keys. */
static PjStatement select_lockers = {
	.sql = "SELECT l.objsubid::integer, CASE WHEN l.objsubid = $1"
	" THEN l.classid::bigint"
	" ELSE l.classid::bigint << 32 | l.objid::bigint END,"
	" l.pid, a.usename::text, a.xact_start"
	" FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid"
	" WHERE l.locktype = 'advisory' AND l.granted"
	" AND l.mode = 'ExclusiveLock' AND l.objsubid IN ($1, $2, $3)"
	" AND l.database = " THIS_DATABASE
	" AND a.backend_type <> 'projector worker'"
	" AND l.pid <> pg_backend_pid() ORDER BY 1, 2, 5 /* projector */",
	.expect = SPI_OK_SELECT,
	.nargs = 3,
	.argtypes = {INT4OID, INT4OID, INT4OID},
	.joins_sets = true,
};

static PjStatement select_no_worker = {
	.sql = "SELECT CASE WHEN o.is_off THEN 'projector.enabled = off'"
	" WHEN o.waits THEN 'all background worker slots are in use'"
	" ELSE 'no worker runs here' END, CASE WHEN o.is_off AND o.here THEN"
	" format('ALTER DATABASE %I SET projector.enabled = on',"
	" current_database()) WHEN o.is_off"
	" THEN 'ALTER SYSTEM SET projector.enabled = on; SELECT pg_reload_conf()'"
	" WHEN o.waits THEN 'SELECT projector_drain()"
	"  -- and raise max_worker_processes, which needs a restart'"
	" ELSE 'SELECT projector_worker_start()' END"
	" FROM (SELECT current_setting('projector.enabled') = 'off' AS is_off,"
	" EXISTS (SELECT FROM pg_settings WHERE name = 'projector.enabled'"
	" AND source = 'database') AS here,"
	" projector.worker_waits_since() IS NOT NULL AS waits) o"
	" WHERE NOT EXISTS (SELECT FROM projector.worker_activity())",
	.expect = SPI_OK_SELECT,
};

static Datum
copy_datum(Datum value, bool isnull)
{
	return isnull ? (Datum) 0 :
		PointerGetDatum(PG_DETOAST_DATUM_COPY(value));
}

/* A copy of a column of the last result; 0 if it is null. */
static Datum
result_copy(int row, int column)
{
	bool		isnull;
	Datum		value = pj_result(row, column, &isnull);

	return copy_datum(value, isnull);
}

static char *
result_string(int row, int column)
{
	bool		isnull;
	Datum		value = pj_result(row, column, &isnull);

	return isnull ? NULL : TextDatumGetCString(value);
}

/* A number, a time or a boolean; 0 if it is null. */
static Datum
result_value(int row, int column)
{
	bool		isnull;
	Datum		value = pj_result(row, column, &isnull);

	return isnull ? (Datum) 0 : value;
}

/* ---- projections ---- */

static void
read_types(PjStatusProjection *projection, Datum event_types)
{
	bool	   *nulls;
	int			n;
	int			kept = 0;

	if (event_types == 0)
		return;
	deconstruct_array(DatumGetArrayTypeP(event_types), TEXTOID, -1, false,
					  TYPALIGN_INT, &projection->types, &nulls, &n);
	for (int i = 0; i < n; i++)
		if (!nulls[i])
			projection->types[kept++] = projection->types[i];
	projection->ntypes = pj_texts_unique(projection->types, kept);
}

static void
read_projection(int row, PjStatusProjection *projection)
{
	memset(projection, 0, sizeof(PjStatusProjection));
	projection->id = DatumGetInt32(result_value(row, 1));
	projection->name = result_copy(row, 2);
	projection->kind = result_copy(row, 3);
	projection->mode_name = result_copy(row, 4);
	projection->mode = pj_mode(result_string(row, 4));
	projection->log_ordered = strcmp(result_string(row, 5), "log") == 0;
	read_types(projection, result_copy(row, 6));
	projection->handed_over = DatumGetBool(result_value(row, 7));
	projection->started = DatumGetBool(result_value(row, 8));
	projection->paused = DatumGetBool(result_value(row, 9));
	projection->paused_by = result_copy(row, 10);
	projection->pause_reason = result_copy(row, 11);
	projection->paused_at = DatumGetTimestampTz(result_value(row, 12));
	projection->definition_hash = result_copy(row, 13);
	projection->dormant = strcmp(result_string(row, 14), pj_home()) != 0;
	projection->created_at = DatumGetTimestampTz(result_value(row, 15));
}

/* Whether it can run, and what its definition is by now. */
static void
examine(PjStatusProjection *projection, const PjStatusNeeds *needs)
{
	PjProjection *found = pj_projection_by_id(projection->id);
	const char *problem;

	if (found == NULL)
		return;
	problem = found->dormant ? NULL : pj_projection_problem(found);
	if (problem)
		projection->problem = pstrdup(problem);
	if (needs->totals)
		projection->definition_now =
			PointerGetDatum(pj_definition_now(found));
}

static void
look_at_projections(PjStatusLook *look, Datum name)
{
	look->nprojections = pj_execute(&select_projections, &name,
									name ? NULL : "n");
	look->projections = palloc(sizeof(PjStatusProjection) *
							   Max(look->nprojections, 1));
	for (int i = 0; i < look->nprojections; i++)
		read_projection(i, &look->projections[i]);
}

/* ---- sessions ---- */

static void
look_at_lockers(PjStatusLook *look)
{
	Datum		classes[] = {Int32GetDatum(PJ_LOCK_PROJECTION),
	Int32GetDatum(PJ_LOCK_PAIR), Int32GetDatum(PJ_LOCK_DRIVER)};

	look->nlockers = pj_execute(&select_lockers, classes, NULL);
	look->lockers = palloc(sizeof(PjLocker) * Max(look->nlockers, 1));
	for (int i = 0; i < look->nlockers; i++)
	{
		PjLocker   *locker = &look->lockers[i];

		locker->class = DatumGetInt32(result_value(i, 1));
		locker->key = DatumGetInt64(result_value(i, 2));
		locker->pid = DatumGetInt32(result_value(i, 3));
		locker->role = result_string(i, 4);
		locker->since = DatumGetTimestampTz(result_value(i, 5));
	}
}

static int
compare_lockers(const void *a, const void *b)
{
	const PjLocker *x = a;
	const PjLocker *y = b;

	if (x->class != y->class)
		return x->class > y->class ? 1 : -1;
	return x->key == y->key ? 0 : x->key > y->key ? 1 : -1;
}

/* Who has a lock of this class and key exclusively, or NULL. */
const PjLocker *
pj_status_locker(const PjStatusLook *look, int class, int64 key)
{
	PjLocker	wanted = {.class = class,.key = key};

	return look->nlockers == 0 ? NULL :
		bsearch(&wanted, look->lockers, look->nlockers, sizeof(PjLocker),
				compare_lockers);
}

static PjAppender *
read_appender(int row)
{
	PjAppender *appender = palloc(sizeof(PjAppender));
	char	   *gid = result_string(row, 2);
	char	   *role = result_string(row, 3);

	appender->name = gid ?
		psprintf("prepared transaction %s", quote_literal_cstr(gid)) :
		psprintf("process %d (%s)", DatumGetInt32(result_value(row, 1)),
				 role ? role : "");
	appender->since = DatumGetTimestampTz(result_value(row, 5));
	return appender;
}

/* The oldest open transaction that has appended events, or NULL. */
const PjAppender *
pj_status_appender(PjStatusLook *look)
{
	MemoryContext caller;
	PjContext	saved;

	if (look->appender_known)
		return look->appender;
	caller = MemoryContextSwitchTo(look->context);
	pj_enter_previous(&saved);
	if (pj_execute(&select_appenders, NULL, NULL) > 0)
		look->appender = read_appender(0);
	pj_leave_internal(&saved);
	MemoryContextSwitchTo(caller);
	look->appender_known = true;
	return look->appender;
}

/* ---- the look ---- */

/*
 * List the tenants of the log.  A projection that has been handed over has a
 * cursor for most of them.
 */
static void
list_tenants(PjStatusLook *look, Datum tenant)
{
	Datum	   *known = NULL;
	int			nknown = 0;

	for (int i = 0; i < look->nprojections && nknown == 0 && !tenant; i++)
		if (look->projections[i].handed_over)
			nknown = pj_pair_look_known(&look->pairs,
										look->projections[i].id, &known);
	pj_log_look_tenants(&look->pairs.log, tenant, known, nknown,
						&look->tenants);
}

/*
 * Begin a look at pairs of all projections, or of one.  What is needed has been
 * set.
 */
void
pj_status_look_begin(PjStatusLook *look, Snapshot snapshot, Datum name,
					 bool one_tenant)
{
	PjContext	saved;

	look->context = CurrentMemoryContext;
	look->limit = PJ_MAX_COUNT;
	look->now = GetCurrentTimestamp();
	look->appender_known = false;
	look->appender = NULL;
	pj_enter_previous(&saved);
	look_at_projections(look, name);
	look_at_lockers(look);
	look->no_worker = pj_execute(&select_no_worker, NULL, NULL) > 0 ?
		result_string(0, 1) : NULL;
	pj_leave_internal(&saved);
	for (int i = 0; i < look->nprojections; i++)
		examine(&look->projections[i], &look->needs);
	look->nworkers = pj_activities(&look->workers);

	pj_pair_look_init(&look->pairs, snapshot, one_tenant);
}

/* Begin a look at all pairs, or those of one projection, one tenant, or both. */
void
pj_status_look(PjStatusLook *look, Snapshot snapshot, Datum name,
			   Datum tenant)
{
	pj_status_look_begin(look, snapshot, name, tenant != 0);
	if (look->needs.totals)
		pj_pair_look_deltas(&look->pairs, tenant);
	list_tenants(look, tenant);
}

void
pj_status_look_end(PjStatusLook *look)
{
	pj_pair_look_end(&look->pairs);
}

/* ---- functions that views call ---- */

/* Return what a statement returns, to those who may see it. */
static Datum
return_rows(FunctionCallInfo fcinfo, PjStatement *stmt)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	PjContext	saved;
	int			n;

	InitMaterializedSRF(fcinfo, 0);
	if (!pj_may_see_status())
		return (Datum) 0;
	pj_enter_previous(&saved);
	n = pj_execute(stmt, NULL, NULL);
	for (int i = 0; i < n; i++)
		tuplestore_puttuple(result->setResult, SPI_tuptable->vals[i]);
	pj_leave_internal(&saved);
	return (Datum) 0;
}

/* The open transactions that have appended events, the oldest first. */
Datum
projector_appenders(PG_FUNCTION_ARGS)
{
	return return_rows(fcinfo, &select_appenders);
}

/* Why no worker runs here, and what to do; no row if one runs. */
Datum
projector_no_worker(PG_FUNCTION_ARGS)
{
	return return_rows(fcinfo, &select_no_worker);
}
