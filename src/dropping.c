/*
 * dropping.c
 *	  Ending workers before the extension is dropped.
 *
 * DROP EXTENSION locks one object of ours after the other, in an order of its
 * own, while workers hold locks on some and ask for others: one of the two
 * would be killed as part of a deadlock.  So before it begins, an event trigger
 * ends the workers of this database and keeps others from being started until
 * the transaction has ended.
 */
#include "compat.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/pg_extension.h"
#include "commands/event_trigger.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "pgstat.h"
#include "storage/latch.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "shmem.h"

PG_FUNCTION_INFO_V1(projector_before_drop_extension);

/* How often to look whether the workers are gone. */
#define POLL_MS	10

static bool forbidden = false;	/* by this transaction */

/* Workers may run again, if there is something for them to run for. */
static void
at_end(XactEvent event, void *arg)
{
	if (!forbidden || (event != XACT_EVENT_COMMIT &&
					   event != XACT_EVENT_ABORT &&
					   event != XACT_EVENT_PREPARE))
		return;
	forbidden = false;
	pj_allow_workers(MyDatabaseId);
	pj_wake_launcher(MyDatabaseId);
}

/* Is the extension among the names? */
static bool
names_extension(const List *names)
{
	ListCell   *cell;

	foreach(cell, names)
		if (strcmp(strVal(lfirst(cell)), "projector") == 0)
			return true;
	return false;
}

/* The name of the schema that the extension was created in. */
static char *
extension_schema(void)
{
	Relation	rel = table_open(ExtensionRelationId, AccessShareLock);
	char	   *schema = NULL;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&key, Anum_pg_extension_extname, BTEqualStrategyNumber,
				F_NAMEEQ, CStringGetDatum("projector"));
	scan = systable_beginscan(rel, ExtensionNameIndexId, true, NULL, 1, &key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
		schema = get_namespace_name(((Form_pg_extension)
									 GETSTRUCT(tuple))->extnamespace);
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return schema;
}

/* Is the schema that the extension was created in among the names? */
static bool
names_its_schema(const List *names)
{
	char	   *schema = extension_schema();
	ListCell   *cell;

	foreach(cell, names)
		if (schema && strcmp(strVal(lfirst(cell)), schema) == 0)
			return true;
	return false;
}

/* May the statement drop the extension? */
static bool
may_drop(Node *statement)
{
	DropStmt   *drop = (DropStmt *) statement;

	if (IsA(statement, DropOwnedStmt))
		return true;
	if (!IsA(statement, DropStmt))
		return false;
	if (drop->removeType == OBJECT_EXTENSION)
		return names_extension(drop->objects);
	return drop->removeType == OBJECT_SCHEMA &&
		drop->behavior == DROP_CASCADE && names_its_schema(drop->objects);
}

/* End the workers, and wait until they are gone. */
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

/* Event trigger ddl_command_start. */
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
		RegisterXactCallback(at_end, NULL);
	registered = true;
	forbidden = pj_forbid_workers(MyDatabaseId) || forbidden;
	end_workers();
	PG_RETURN_NULL();
}
