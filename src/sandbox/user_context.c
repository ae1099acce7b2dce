/*
 * user_context.c
 *	  The role and the settings that code runs with.
 *
 * There are two contexts besides the caller's own.  Our own SQL runs as the
 * owner of schema projector, with only pg_catalog in search_path, so that
 * callers need no privileges on our tables and cannot inject their own
 * operators.  A projection's code runs as the projection's owner, in a
 * security-restricted operation, with fixed settings (settings.c), the
 * search_path that was stored at its creation, and the event's tenant.
 * command_guard.c lists what it may not do.
 *
 * After an error no context has to be left explicitly: the end of the
 * (sub)transaction restores role, settings and SPI.
 *
 * A projection's code can enter our own context again: with option
 * "may_append" it may append events.  What our own SQL does then does not
 * count as the projection's code.  We remember the subtransaction in which our
 * own context was entered.  If the code catches an error raised there, that
 * subtransaction has been aborted, and the entry no longer counts.
 */
#include "base/compat.h"

#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_namespace.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

#include "base/version.h"
#include "sandbox/deadline.h"
#include "sandbox/portals.h"
#include "sandbox/user_context.h"

PG_FUNCTION_INFO_V1(projector_is_replay);
PG_FUNCTION_INFO_V1(projector_tenant_id);

static PjUserCode *running = NULL;

/*
 * The subtransaction in which the running code entered our own context, or
 * invalid.
 */
static SubTransactionId internal = InvalidSubTransactionId;

/* Was the query cancelled while a projection's code ran? */
static bool cancelled = false;

/* Returns the owner of schema projector. */
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

/*
 * Start running our own SQL: become the owner of schema projector and connect
 * to SPI.  The caller's memory context stays current.  Raises an error if the
 * extension's version is not the library's.
 */
void
pj_enter_internal(PjContext *saved)
{
	pj_version_require_current();
	pj_enter_previous(saved);
}

/*
 * The same for what is also done for the release before: appends, views and
 * the guard of targets.  Such SQL must use only what that release has.
 */
void
pj_enter_previous(PjContext *saved)
{
	static const char path[] = "pg_catalog, pg_temp";
	MemoryContext caller;

	pj_version_require_served();
	GetUserIdAndSecContext(&saved->userid, &saved->sec_context);
	SetUserIdAndSecContext(schema_owner(),
						   saved->sec_context | SECURITY_LOCAL_USERID_CHANGE);
	saved->guc_level = NewGUCNestLevel();
	if (strcmp(namespace_search_path, path) != 0)
		pj_set_local("search_path", path);
	saved->internal = internal;
	internal = GetCurrentSubTransactionId();
	caller = CurrentMemoryContext;
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "could not connect to SPI");
	MemoryContextSwitchTo(caller);
}

void
pj_leave_internal(PjContext *saved)
{
	SPI_finish();
	internal = saved->internal;
	AtEOXact_GUC(false, saved->guc_level);
	SetUserIdAndSecContext(saved->userid, saved->sec_context);
}

/*
 * Did the server cancel the query?  Only errors from ProcessInterrupts()
 * count; a projection's code may raise the same SQLSTATE itself.
 */
bool
pj_is_cancel(const ErrorData *error)
{
	return error->elevel >= ERROR &&
		error->sqlerrcode == ERRCODE_QUERY_CANCELED && error->funcname &&
		strcmp(error->funcname, "ProcessInterrupts") == 0;
}

/*
 * Error context callback: remember a cancel while it is being raised.  The
 * code may catch it, and some languages raise it again as an error of their
 * own.
 */
static void
note_cancel(void *arg)
{
	MemoryContext caller;
	ErrorData  *error;

	if (geterrcode() != ERRCODE_QUERY_CANCELED)
		return;
	caller = MemoryContextSwitchTo(TopTransactionContext);
	error = CopyErrorData();
	cancelled = cancelled || pj_is_cancel(error);
	FreeErrorData(error);
	MemoryContextSwitchTo(caller);
}

/*
 * Was the query cancelled while a projection's code ran, since the last call
 * of pj_forget_cancel()?
 */
bool
pj_was_cancelled(void)
{
	return cancelled;
}

void
pj_forget_cancel(void)
{
	cancelled = false;
}

/*
 * Code must not escape a cancel by catching it.  Call this when the code has
 * returned.
 */
void
pj_raise_caught_cancel(void)
{
	if (cancelled && !pj_deadline_passed())
		ereport(ERROR,
				errcode(ERRCODE_QUERY_CANCELED),
				errmsg("canceling statement due to user request"));
}

static void
enter_user_code(const PjUserCode *code, PjContext *saved)
{
	GetUserIdAndSecContext(&saved->userid, &saved->sec_context);
	SetUserIdAndSecContext(code->owner,
						   saved->sec_context | SECURITY_LOCAL_USERID_CHANGE |
						   SECURITY_RESTRICTED_OPERATION);
	saved->guc_level = NewGUCNestLevel();
	saved->internal = internal;
}

/*
 * Apply the settings of the running code.  A fold can skip this if its
 * expressions depend on no setting and its table runs no users' code.
 */
void
pj_pin_user_code(void)
{
	if (running->pinned)
		return;
	running->pinned = true;
	pj_pin_settings();
	pj_settings_apply(running->settings);
	if (strcmp(namespace_search_path, running->search_path) != 0)
		pj_set_local("search_path", running->search_path);
	pj_set_local("projector.tenant_id", running->tenant);
}

/*
 * Run a projection's code.  Settings that it changes are rolled back, so that
 * nothing outlives the call.
 */
void
pj_run_user_code(PjUserCode *code, void (*body) (void *), void *arg)
{
	PjUserCode *outer = running;
	List	   *hidden = pj_portals_hide();
	PjContext	saved;
	ErrorContextCallback callback = {error_context_stack, note_cancel, NULL};

	enter_user_code(code, &saved);
	error_context_stack = &callback;
	PG_TRY();
	{
		if (outer == NULL)
			cancelled = false;	/* may be left from an earlier call */
		running = code;
		internal = InvalidSubTransactionId;
		if (!code->lazy)
			pj_pin_user_code();
		body(arg);
		pj_portals_drop_left();
	}
	PG_FINALLY();
	{
		pj_portals_show(hidden);
		running = outer;
		internal = saved.internal;
		pj_deadline_disarm();
	}
	PG_END_TRY();
	error_context_stack = callback.previous;

	pj_raise_caught_cancel();
	AtEOXact_GUC(false, saved.guc_level);
	SetUserIdAndSecContext(saved.userid, saved.sec_context);
}

/*
 * An event has been applied: the next one must see the same settings.  Each
 * call of a handler has a GUC nest level of its own.  A fold or a statement
 * must not change settings at all.
 */
void
pj_check_pinned(void)
{
	const char *name = running->pinned ?
	pj_changed_setting(running->settings) : NULL;

	if (name)
		ereport(ERROR,
				errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				errmsg("the code of projection \"%s\" changed setting \"%s\"",
					   running->projection, name),
				errdetail("The next event would be applied with it."),
				errhint("Use SET in the definition of the function, or \"settings\" of the projection."));
}

/* For handlers: is the event being replayed, rather than just appended? */
Datum
projector_is_replay(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(running != NULL && running->replay);
}

/*
 * Returns the tenant whose event is being applied.  Unlike a setting, it
 * cannot be forged in a session that has not loaded this library.
 */
Datum
projector_tenant_id(PG_FUNCTION_ARGS)
{
	if (running == NULL || running->tenant[0] == '\0')
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(running->tenant));
}

/* Set whether the running code's next event is a replayed one. */
void
pj_set_replay(bool replay)
{
	running->replay = replay;
}

/* Returns the projection's code that is running, or NULL. */
const PjUserCode *
pj_user_code(void)
{
	return running;
}

/* Is our own SQL running, called by a projection's code? */
static bool
is_internal(void)
{
	return internal != InvalidSubTransactionId &&
		SubTransactionIsActive(internal);
}

/*
 * Returns the projection's code if that code itself is executing now, not our
 * own SQL; else NULL.
 */
const PjUserCode *
pj_user_code_executing(void)
{
	return running == NULL || is_internal() ? NULL : running;
}

/* Raise an error if this function is called by a projection's code. */
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
 * Some work must see what other transactions have just committed, so it cannot
 * be done with an old snapshot.
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
