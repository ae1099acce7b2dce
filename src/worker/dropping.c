/*
 * dropping.c
 *	  Stop workers before the extension is dropped.
 *
 * DROP EXTENSION locks our objects one by one, in an order of its own, while
 * workers hold locks on some and wait for others: this would be a deadlock.
 * So before it begins, an event trigger stops the workers of this database.
 * No worker can start until the transaction, or the subtransaction in which
 * this happened, has ended.
 */
#include "base/compat.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/pg_extension.h"
#include "catalog/pg_namespace.h"
#include "commands/event_trigger.h"
#include "commands/user.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "pgstat.h"
#include "storage/latch.h"
#include "utils/acl.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "ipc/shmem.h"

PG_FUNCTION_INFO_V1(projector_before_drop_extension);

/* How often to check whether the workers are gone. */
#define POLL_MS	10

/* The subtransaction that has stopped the workers, or invalid. */
static SubTransactionId forbidden_by = InvalidSubTransactionId;

/*
 * Allow workers again.  The launcher starts one if the extension still exists.
 */
static void
allow_again(void)
{
	forbidden_by = InvalidSubTransactionId;
	pj_allow_workers(MyDatabaseId);
	pj_wake_launcher(MyDatabaseId);
}

static void
at_end(XactEvent event, void *arg)
{
	if (forbidden_by != InvalidSubTransactionId &&
		(event == XACT_EVENT_COMMIT || event == XACT_EVENT_ABORT ||
		 event == XACT_EVENT_PREPARE))
		allow_again();
}

/*
 * If the DROP failed or was rolled back, the stop ends with its
 * subtransaction.
 */
static void
at_subtransaction_end(SubXactEvent event, SubTransactionId mine,
					  SubTransactionId parent, void *arg)
{
	if (forbidden_by != mine)
		return;
	if (event == SUBXACT_EVENT_COMMIT_SUB)
		forbidden_by = parent;
	else if (event == SUBXACT_EVENT_ABORT_SUB)
		allow_again();
}

/* ---- which statements ---- */

/* Get the extension's catalog row.  Returns false if there is none. */
static bool
find_extension(FormData_pg_extension * extension)
{
	Relation	rel = table_open(ExtensionRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;
	bool		found;

	ScanKeyInit(&key, Anum_pg_extension_extname, BTEqualStrategyNumber,
				F_NAMEEQ, CStringGetDatum("projector"));
	scan = systable_beginscan(rel, ExtensionNameIndexId, true, NULL, 1, &key);
	tuple = systable_getnext(scan);
	found = HeapTupleIsValid(tuple);
	if (found)
		memcpy(extension, GETSTRUCT(tuple),
			   offsetof(FormData_pg_extension, extrelocatable) + sizeof(bool));
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return found;
}

static bool
is_among(const char *name, const List *names)
{
	ListCell   *cell;

	foreach(cell, names)
		if (name && strcmp(strVal(lfirst(cell)), name) == 0)
		return true;
	return false;
}

/* Does DROP OWNED drop the extension, or the schema it was created in? */
static bool
may_drop_owned(const DropOwnedStmt *drop,
			   const FormData_pg_extension * extension)
{
	List	   *roles = roleSpecsToIds(drop->roles);
	bool		owner = false;
	ListCell   *cell;

	foreach(cell, roles)
	{
		if (!has_privs_of_role(GetUserId(), lfirst_oid(cell)))
			return false;
		owner = owner || lfirst_oid(cell) == extension->extowner ||
			(drop->behavior == DROP_CASCADE &&
			 pj_owns_schema(extension->extnamespace,
							lfirst_oid(cell)));
	}
	return owner;
}

/*
 * May the statement drop the extension?  The event trigger runs before
 * permissions are checked, and any user can issue such a statement.  One that
 * will be refused must not stop the workers.
 */
static bool
may_drop(Node *statement)
{
	DropStmt   *drop = (DropStmt *) statement;
	FormData_pg_extension extension;

	if (!(IsA(statement, DropOwnedStmt) || IsA(statement, DropStmt)) ||
		!find_extension(&extension))
		return false;
	if (IsA(statement, DropOwnedStmt))
		return may_drop_owned((DropOwnedStmt *) statement, &extension);
	if (drop->removeType == OBJECT_EXTENSION)
		return is_among("projector", drop->objects) &&
			pj_owns_extension(extension.oid, GetUserId());
	return drop->removeType == OBJECT_SCHEMA &&
		drop->behavior == DROP_CASCADE &&
		is_among(get_namespace_name(extension.extnamespace), drop->objects) &&
		pj_owns_schema(extension.extnamespace, GetUserId());
}

/* ---- stopping workers ---- */

/* Stop the workers, and wait until they are gone. */
static void
end_workers(void)
{
	bool		serving;

	while (pj_slot_count(MyDatabaseId, &serving) > 0)
	{
		(void) pj_end_workers(MyDatabaseId);
		(void) WaitLatch(MyLatch,
						 WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 POLL_MS, PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
}

/* Event trigger function: ddl_command_start. */
Datum
projector_before_drop_extension(PG_FUNCTION_ARGS)
{
	static bool registered = false;
	EventTriggerData *data = (EventTriggerData *) fcinfo->context;
	bool		serving;

	if (!CALLED_AS_EVENT_TRIGGER(fcinfo))
		ereport(ERROR,
				errcode(ERRCODE_E_R_I_E_EVENT_TRIGGER_PROTOCOL_VIOLATED),
				errmsg("%s must be called as an event trigger",
					   "projector.before_drop_extension"));
	if (!may_drop(data->parsetree) ||
		pj_slot_count(MyDatabaseId, &serving) == 0)
		PG_RETURN_NULL();
	if (!registered)
	{
		RegisterXactCallback(at_end, NULL);
		RegisterSubXactCallback(at_subtransaction_end, NULL);
	}
	registered = true;
	if (pj_forbid_workers(MyDatabaseId))
		forbidden_by = GetCurrentSubTransactionId();
	end_workers();
	PG_RETURN_NULL();
}
