/*
 * command_guard.c
 *	  What a projection's code may not do.
 *
 * It may read and write rows.  The following is refused, but only while such
 * code runs:
 *
 * - DDL.  An owner may alter its own tables, so a handler could disable the
 *   trigger that keeps it to its tenant.
 * - TRUNCATE, which applies no policy and fires no row trigger.
 * - Commands that change the session, because an inline append runs in a
 *   client's session.  SET CONSTRAINTS would outlive the call.  DISCARD,
 *   DEALLOCATE, UNLISTEN and commands on cursors and prepared statements would
 *   affect the client's own.  RESET ALL would reset the tenant.
 * - Writing a table that was not declared.  A rebuild would not clear it, and
 *   verify would not see it.  Every plan lists the tables it writes; triggers,
 *   cascades and functions run plans of their own.
 * - Writing a row of another tenant (row_guard.c).
 * - Using the client's cursors (portals.c) or its descriptors of large
 *   objects, and making errors fatal or the session end by a timeout.
 *
 * Not detected: sequences, large objects themselves, and what dblink or a
 * foreign data wrapper does elsewhere.
 */
#include "base/compat.h"

#include "catalog/namespace.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_class.h"
#include "executor/executor.h"
#include "fmgr.h"
#include "parser/parsetree.h"
#include "tcop/cmdtag.h"
#include "tcop/utility.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/regproc.h"

#include "base/errcodes.h"
#include "sandbox/command_guard.h"
#include "sandbox/row_guard.h"
#include "sandbox/user_context.h"

static ProcessUtility_hook_type next_process_utility = NULL;
static ExecutorStart_hook_type next_executor_start = NULL;
static object_access_hook_type next_object_access = NULL;

/* ---- commands ---- */

static bool
is_refused(Node *statement)
{
	switch (nodeTag(statement))
	{
		case T_TruncateStmt:
		case T_ConstraintsSetStmt:
		case T_DiscardStmt:
		case T_PrepareStmt:
		case T_DeallocateStmt:
		case T_DeclareCursorStmt:
		case T_FetchStmt:
		case T_ClosePortalStmt:
		case T_UnlistenStmt:
			return true;
		case T_VariableSetStmt:
			return ((VariableSetStmt *) statement)->kind == VAR_RESET_ALL;
		default:
			return GetCommandLogLevel(statement) == LOGSTMT_DDL;
	}
}

static void
check_write(const PjUserCode *code, Oid relid)
{
	if (code->check_write)
		code->check_write(code, relid);
	else
		ereport(ERROR,
				errcode(ERRCODE_PJ_UNDECLARED),
				errmsg("projection \"%s\" cannot write table \"%s\" now",
					   code->projection, get_rel_name(relid)),
				errdetail("Its code is not being applied to an event."));
}

/* COPY has no plan, so check its table here. */
static void
check_copy(const PjUserCode *code, const CopyStmt *copy)
{
	if (copy->is_from && copy->relation)
		check_write(code, RangeVarGetRelid(copy->relation, RowExclusiveLock,
										   false));
}

static void
guard_utility(PlannedStmt *pstmt, const char *queryString, bool readOnlyTree,
			  ProcessUtilityContext context, ParamListInfo params,
			  QueryEnvironment *queryEnv, DestReceiver *dest,
			  QueryCompletion *qc)
{
	const PjUserCode *code = pj_user_code_executing();

	if (code != NULL && is_refused(pstmt->utilityStmt))
		ereport(ERROR,
				errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				errmsg("projection \"%s\" cannot run %s", code->projection,
					   CreateCommandName(pstmt->utilityStmt)),
				errdetail("A projection's code may read and write rows, but not define objects, truncate tables or change the session."),
				GetCommandLogLevel(pstmt->utilityStmt) == LOGSTMT_DDL ?
				errhint("Create tables and other objects in a migration, before the projection is created.") : 0);
	if (code != NULL && IsA(pstmt->utilityStmt, CopyStmt))
		check_copy(code, (CopyStmt *) pstmt->utilityStmt);

	if (next_process_utility)
		next_process_utility(pstmt, queryString, readOnlyTree, context,
							 params, queryEnv, dest, qc);
	else
		standard_ProcessUtility(pstmt, queryString, readOnlyTree, context,
								params, queryEnv, dest, qc);
}

/* ---- functions ---- */

/*
 * Descriptors of large objects belong to the session.  With a client's
 * descriptor the code could read and write what its owner may not.
 */
static bool
is_session_function(Oid function)
{
	switch (function)
	{
		case F_LO_OPEN:
		case F_LO_CLOSE:
		case F_LOREAD:
		case F_LOWRITE:
		case F_LO_LSEEK:
		case F_LO_LSEEK64:
		case F_LO_TELL:
		case F_LO_TELL64:
		case F_LO_TRUNCATE:
		case F_LO_TRUNCATE64:
		case F_SETSEED:
			return true;
		default:
			return false;
	}
}

static void
guard_access(ObjectAccessType access, Oid classId, Oid objectId, int subId,
			 void *arg)
{
	const PjUserCode *code;

	if (next_object_access)
		next_object_access(access, classId, objectId, subId, arg);
	if (access != OAT_FUNCTION_EXECUTE || !is_session_function(objectId))
		return;
	code = pj_user_code_executing();
	if (code != NULL)
		ereport(ERROR,
				errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				errmsg("projection \"%s\" cannot call function %s",
					   code->projection, format_procedure(objectId)),
				errdetail("It would access state of the session."),
				errhint("For large objects, use lo_get and lo_put."));
}

/*
 * GUC check hook: with exit_on_error, an error in the code would end the
 * session, not just fail the event.
 */
static bool
check_exit_on_error(bool *newval, void **extra, GucSource source)
{
	if (!*newval || pj_user_code() == NULL)
		return true;
	GUC_check_errmsg("a projection's code cannot set \"exit_on_error\"");
	return false;
}

/*
 * GUC check hook: when transaction_timeout (17 and later) has passed, the
 * session ends.
 */
static bool
check_transaction_timeout(int *newval, void **extra, GucSource source)
{
	if (pj_user_code() == NULL)
		return true;
	GUC_check_errmsg("a projection's code cannot set \"transaction_timeout\"");
	return false;
}

/* ---- tables ---- */

/* Check every table that a plan writes. */
static void
check_plan(const PjUserCode *code, const PlannedStmt *plan)
{
	ListCell   *cell;

	foreach(cell, plan->resultRelations)
	{
		const RangeTblEntry *rte = rt_fetch(lfirst_int(cell), plan->rtable);

		/* a view with INSTEAD OF triggers stores no rows itself */
		if (rte->rtekind == RTE_RELATION && rte->relkind != RELKIND_VIEW)
			check_write(code, rte->relid);
	}
}

/*
 * ExecutorStart hook: runs after privileges have been checked and before
 * anything is written.
 */
static void
guard_executor(QueryDesc *query, int eflags)
{
	const PjUserCode *code = NULL;

	if (query->plannedstmt->resultRelations != NIL)
		code = pj_user_code_executing();
	if (next_executor_start)
		next_executor_start(query, eflags);
	else
		standard_ExecutorStart(query, eflags);
	if (code == NULL)
		return;
	check_plan(code, query->plannedstmt);
	pj_rowguard_prepare(query);
}

void
pj_guard_init(void)
{
	next_process_utility = ProcessUtility_hook;
	ProcessUtility_hook = guard_utility;
	next_executor_start = ExecutorStart_hook;
	ExecutorStart_hook = guard_executor;
	next_object_access = object_access_hook;
	object_access_hook = guard_access;
	pj_guard_bool_setting("exit_on_error", check_exit_on_error);
	pj_guard_int_setting("transaction_timeout", check_transaction_timeout);
}
