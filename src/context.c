/*
 * context.c
 *	  As whom, and with which settings, code runs.
 *
 * There are two contexts besides the caller's own.  Our own SQL runs as the
 * owner of schema projector with a search_path of pg_catalog alone, so that
 * callers need no privileges on our tables and cannot slip in operators of
 * their own.  A projection's code runs as the projection's owner, in a
 * security-restricted operation, with the search_path pinned at its creation
 * and projector.tenant_id set to the event's tenant.
 *
 * On error nobody needs to leave them: the end of the (sub)transaction
 * restores role, settings and SPI.
 *
 * While a projection's code runs, DDL, TRUNCATE and RESET ALL are refused.
 * An owner may alter its own tables, and so a handler could switch off the
 * row-level security that keeps it to its tenant; TRUNCATE does not ask a
 * policy; and RESET ALL would reset the tenant.
 */
#include "compat.h"

#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_namespace.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "tcop/cmdtag.h"
#include "tcop/utility.h"
#include "utils/guc.h"
#include "utils/syscache.h"

#include "context.h"
#include "deadline.h"

PG_FUNCTION_INFO_V1(projector_is_replay);

static PjUserCode *running = NULL;
static ProcessUtility_hook_type next_process_utility = NULL;

/* The owner of schema projector. */
static Oid
schema_owner(void)
{
	HeapTuple	tuple = SearchSysCache1(NAMESPACENAME,
										CStringGetDatum("projector"));
	Oid			owner;

	if (!HeapTupleIsValid(tuple))
		ereport(ERROR,
				errcode(ERRCODE_UNDEFINED_SCHEMA),
				errmsg("schema \"projector\" does not exist"),
				errhint("Run CREATE EXTENSION projector."));
	owner = ((Form_pg_namespace) GETSTRUCT(tuple))->nspowner;
	ReleaseSysCache(tuple);

	return owner;
}

static void
set_local(const char *name, const char *value)
{
	(void) set_config_option(name, value, PGC_SUSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
}

/*
 * Start running our own SQL: become the owner of schema projector and connect
 * to SPI.  Memory is allocated where the caller had it allocated.
 */
void
pj_enter_internal(PjContext *saved)
{
	static const char path[] = "pg_catalog, pg_temp";
	MemoryContext caller;

	GetUserIdAndSecContext(&saved->userid, &saved->sec_context);
	SetUserIdAndSecContext(schema_owner(),
						   saved->sec_context | SECURITY_LOCAL_USERID_CHANGE);
	saved->guc_level = NewGUCNestLevel();
	if (strcmp(namespace_search_path, path) != 0)
		set_local("search_path", path);
	caller = CurrentMemoryContext;
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "could not connect to SPI");
	MemoryContextSwitchTo(caller);
}

void
pj_leave_internal(PjContext *saved)
{
	SPI_finish();
	AtEOXact_GUC(false, saved->guc_level);
	SetUserIdAndSecContext(saved->userid, saved->sec_context);
}

/*
 * Run a piece of a projection's code.  Whatever settings it leaves behind are
 * rolled back: user code does not outlive its call.
 */
void
pj_run_user_code(PjUserCode *code, void (*body) (void *), void *arg)
{
	PjUserCode *outer = running;
	PjContext	saved;

	GetUserIdAndSecContext(&saved.userid, &saved.sec_context);
	SetUserIdAndSecContext(code->owner,
						   saved.sec_context | SECURITY_LOCAL_USERID_CHANGE |
						   SECURITY_RESTRICTED_OPERATION);
	saved.guc_level = NewGUCNestLevel();
	set_local("search_path", code->search_path);
	set_local("projector.tenant_id", code->tenant);

	PG_TRY();
	{
		running = code;
		body(arg);
	}
	PG_FINALLY();
	{
		running = outer;
		pj_deadline_disarm();
	}
	PG_END_TRY();

	AtEOXact_GUC(false, saved.guc_level);
	SetUserIdAndSecContext(saved.userid, saved.sec_context);
}

/* See the install script. */
Datum
projector_is_replay(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(running != NULL && running->replay);
}

/* The running code's next event is replayed, or not. */
void
pj_set_replay(bool replay)
{
	running->replay = replay;
}

/* The projection's code that is running, or NULL. */
const PjUserCode *
pj_user_code(void)
{
	return running;
}

/* A projection's code may not call this function. */
void
pj_refuse_in_user_code(const char *function)
{
	if (running != NULL)
		ereport(ERROR,
				errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				errmsg("projection \"%s\" cannot call %s",
					   running->projection, function),
				errdetail("A projection's code must not run or change projections."));
}

/*
 * Work that must see what others have just committed cannot be done with an
 * old snapshot.
 */
void
pj_require_read_committed(const char *function)
{
	if (IsolationUsesXactSnapshot())
		ereport(ERROR,
				errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
				errmsg("%s must run at isolation level READ COMMITTED",
					   function),
				errhint("Call it in a transaction of its own, or begin with BEGIN ISOLATION LEVEL READ COMMITTED."));
}

/* May a projection's code run this?  See the top of this file. */
static bool
is_refused(Node *statement)
{
	if (IsA(statement, TruncateStmt))
		return true;
	/* it would reset projector.tenant_id, without asking for privileges */
	if (IsA(statement, VariableSetStmt))
		return ((VariableSetStmt *) statement)->kind == VAR_RESET_ALL;
	return GetCommandLogLevel(statement) == LOGSTMT_DDL;
}

static void
restrict_utility(PlannedStmt *pstmt, const char *queryString,
				 bool readOnlyTree, ProcessUtilityContext context,
				 ParamListInfo params, QueryEnvironment *queryEnv,
				 DestReceiver *dest, QueryCompletion *qc)
{
	if (running != NULL && is_refused(pstmt->utilityStmt))
		ereport(ERROR,
				errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				errmsg("projection \"%s\" cannot run %s",
					   running->projection,
					   CreateCommandName(pstmt->utilityStmt)),
				errdetail("A projection's code may read and write rows, but not define objects, truncate tables or reset all settings."),
				errhint("Create what it needs beforehand; remove rows with DELETE."));

	if (next_process_utility)
		next_process_utility(pstmt, queryString, readOnlyTree, context,
							 params, queryEnv, dest, qc);
	else
		standard_ProcessUtility(pstmt, queryString, readOnlyTree, context,
								params, queryEnv, dest, qc);
}

void
pj_context_init(void)
{
	next_process_utility = ProcessUtility_hook;
	ProcessUtility_hook = restrict_utility;
}
