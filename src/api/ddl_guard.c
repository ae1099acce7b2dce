/*
 * ddl_guard.c
 *	  Event triggers that prevent commands from breaking a live projection:
 *	  dropping a target or a column that it uses, and altering a target so
 *	  that it can no longer be one.
 *
 * The guard prevents mistakes; a user who wants such a change can set
 * projector.guard_ddl = off.  A projection whose target is gone stops and
 * reports that.  Functions can always be dropped, because migrations drop and
 * create them again.  A command is not refused for what was broken before it.
 * Otherwise nothing could be repaired step by step.
 *
 * The guard ignores dormant projections.  It does nothing in a binary upgrade,
 * and in a script made by pg_dump, which with --clean drops the tables before
 * the extension.  Such a script is recognized by its settings: it switches off
 * both check_function_bodies and row_security.  If the extension is dropped,
 * the triggers are gone before they could fire.  If the extension has a version
 * that the library does not know, the registry cannot be read, and nothing is
 * guarded: it must be possible to repair that.
 */
#include "base/compat.h"

#include "catalog/namespace.h"
#include "catalog/partition.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "commands/event_trigger.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "nodes/pg_list.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rls.h"
#include "utils/syscache.h"

#include "base/guc.h"
#include "base/statement.h"
#include "base/subxact.h"
#include "base/text.h"
#include "base/version.h"
#include "kinds/definition.h"
#include "registry/projection.h"
#include "registry/target.h"
#include "sandbox/user_context.h"

PG_FUNCTION_INFO_V1(projector_guard_start);
PG_FUNCTION_INFO_V1(projector_guard_drop);
PG_FUNCTION_INFO_V1(projector_guard_alter);

/*
 * What was dropped from the tables $1: a column, or null for the table itself.
 */
static PjStatement select_dropped = {
	.sql = "SELECT objid, CASE WHEN objsubid > 0"
	" THEN address_names[cardinality(address_names)] END,"
	" object_identity FROM pg_event_trigger_dropped_objects()"
	" WHERE classid = 'pg_class'::regclass AND objid = ANY ($1)"
	" /* projector */",
	.expect = SPI_OK_SELECT,
	.nargs = 1,
	.argtypes = {OIDARRAYOID},
};

/* Which of the tables $1 have been altered, or had a partition altered. */
static PjStatement select_altered = {
	.sql = "SELECT DISTINCT coalesce(a.relid, c.objid)"
	" FROM pg_event_trigger_ddl_commands() AS c"
	" LEFT JOIN LATERAL pg_partition_ancestors(c.objid) AS a ON true"
	" WHERE c.classid = 'pg_class'::regclass"
	" AND coalesce(a.relid, c.objid) = ANY ($1) /* projector */",
	.expect = SPI_OK_SELECT,
	.nargs = 1,
	.argtypes = {OIDARRAYOID},
};

/* A change to a target. */
typedef struct Change
{
	Oid			relid;
	char	   *column;			/* the dropped column, or NULL */
	char	   *identity;		/* identity of what was dropped */
	bool		gone;			/* the table itself was dropped */
} Change;

static const char guard_off[] =
"To do it nevertheless, SET projector.guard_ddl = off.";

static bool
is_inert(void)
{
	return !pj_guard_ddl || IsBinaryUpgrade ||
		(!check_function_bodies && !row_security) || !pj_version_is_served();
}

static bool
is_guarded(const PjProjection *projection)
{
	return !projection->dormant && projection->resolved;
}

/* Returns the targets of all projections that live in this database. */
static Datum
guarded_targets(int *n)
{
	PjProjection *projections;
	int			nprojections = pj_projections(&projections);
	int			room = 0;
	Oid		   *oids;

	for (int i = 0; i < nprojections; i++)
		room += pj_target_count(&projections[i]);
	oids = palloc(sizeof(Oid) * Max(room, 1));
	*n = 0;
	for (int i = 0; i < nprojections; i++)
		for (int t = 0; is_guarded(&projections[i]) &&
			 t < pj_target_count(&projections[i]); t++)
			oids[(*n)++] = projections[i].target_oids[t];
	return pj_oid_array(oids, *n);
}

/* Find the targets that the command has changed. */
static int
read_changes(PjStatement *stmt, Change **changes)
{
	Datum		values[1];
	int			n;
	bool		isnull;

	values[0] = guarded_targets(&n);
	if (n == 0)
		return 0;
	n = pj_execute(stmt, values, NULL);
	*changes = palloc0(sizeof(Change) * Max(n, 1));
	for (int i = 0; i < n; i++)
	{
		Change	   *change = &(*changes)[i];
		Datum		value;

		change->relid = DatumGetObjectId(pj_result(i, 1, &isnull));
		if (stmt != &select_dropped)
			continue;
		value = pj_result(i, 2, &isnull);
		change->gone = isnull;
		if (!isnull)
			change->column = TextDatumGetCString(value);
		change->identity = TextDatumGetCString(pj_result(i, 3, &isnull));
	}
	return n;
}

/* ---- checking a projection ---- */

/* Is this a column that the projection is known to use? */
static bool
uses_column(const PjProjection *projection, int target, const char *column)
{
	static const char *const stamps[] = {"last_event_id", "last_event_version",
	"last_log_seq"};
	bool		stamped = target == 0 &&
	(pj_is_fold(projection->kind) ||
	 projection->options.checkpoint == PJ_CHECKPOINT_CHECK);
	JsonbValue	value;

	if (strcmp(column, "tenant_id") == 0)
		return true;
	for (int i = 0; stamped && i < lengthof(stamps); i++)
		if (strcmp(column, stamps[i]) == 0 &&
			(i < 2 || !pj_key_is_aggregate(projection->key)))
			return true;
	return projection->fold_columns &&
		pj_json_member(projection->fold_columns, column, &value);
}

static void
refuse_drop(const PjProjection *projection, const Change *change)
{
	ereport(ERROR,
			errcode(ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST),
			errmsg("cannot drop %s %s because projection \"%s\" uses it",
				   change->gone ? "table" : "column", change->identity,
				   projection->name),
			errhint("Drop the projection with projector_drop(%s), or change it with projector_alter, first. %s",
					quote_literal_cstr(projection->name), guard_off));
}

/* What to check again. */
typedef struct Recheck
{
	const PjProjection *projection;
	int			target;			/* the target's index, or CODE */
} Recheck;

#define CODE (-1)

static bool
recheck(void *arg)
{
	Recheck    *what = arg;

	if (what->target == CODE)
		pj_definition_recheck_code(what->projection);
	else
	{
		LockRelationOid(what->projection->target_oids[what->target],
						AccessShareLock);
		pj_definition_recheck_target(what->projection, what->target);
	}
	return false;				/* roll back, so that no lock is left */
}

/*
 * Returns what is wrong with a projection's target, or with its code; NULL if
 * nothing is.
 */
static ErrorData *
find_error(const PjProjection *projection, int target)
{
	Recheck		what = {projection, target};
	bool		kept;
	ErrorData  *error = pj_subtransaction(recheck, &what, &kept);

	if (error &&
		ERRCODE_TO_CATEGORY(error->sqlerrcode) == ERRCODE_OPERATOR_INTERVENTION)
		ReThrowError(error);
	return error;
}

static bool
can_be_judged(const PjProjection *projection)
{
	return is_guarded(projection) && !projection->unreadable &&
		OidIsValid(pj_projection_role(projection));
}

/* ---- before the command ---- */

/* What was already wrong before the current command. */
static struct
{
	List	   *tables;			/* what it alters, if known: a table and the
								 * tables it is a partition of */
	MemoryContext context;
	List	   *targets;		/* ids of projections that could not use the
								 * table */
	List	   *codes;			/* ids of projections whose code did not fit */
} before;

static void
note_nothing(void)
{
	if (before.context == NULL)
		before.context = AllocSetContextCreate(TopMemoryContext,
											   "projector DDL guard",
											   ALLOCSET_SMALL_SIZES);
	MemoryContextReset(before.context);
	before.tables = before.targets = before.codes = NIL;
}

static void
note_id(List **ids, int32 id)
{
	MemoryContext caller = MemoryContextSwitchTo(before.context);

	*ids = lappend_int(*ids, id);
	MemoryContextSwitchTo(caller);
}

/* Returns the table that a command alters; invalid for other commands. */
static Oid
altered_table(Node *parsetree)
{
	RangeVar   *name = NULL;

	if (IsA(parsetree, AlterTableStmt))
		name = ((AlterTableStmt *) parsetree)->relation;
	else if (IsA(parsetree, RenameStmt))
		name = ((RenameStmt *) parsetree)->relation;
	else if (IsA(parsetree, AlterObjectSchemaStmt))
		name = ((AlterObjectSchemaStmt *) parsetree)->relation;
	return name ? RangeVarGetRelid(name, NoLock, true) : InvalidOid;
}

/*
 * Record which projections could not use the table even before it is altered.
 * The table's lock is released at once.  Otherwise two such commands would
 * both hold it, and each would wait for the other.
 */
static void
note_errors(Oid relid)
{
	PjProjection *projections;
	int			n = pj_projections(&projections);
	MemoryContext caller = MemoryContextSwitchTo(before.context);

	before.tables = list_make1_oid(relid);
	if (get_rel_relispartition(relid))
		before.tables = list_concat(before.tables,
									get_partition_ancestors(relid));
	MemoryContextSwitchTo(caller);
	for (int i = 0; i < n; i++)
		for (int t = 0; can_be_judged(&projections[i]) &&
			 t < pj_target_count(&projections[i]); t++)
		{
			if (!list_member_oid(before.tables, projections[i].target_oids[t]))
				continue;
			if (find_error(&projections[i], t))
				note_id(&before.targets, projections[i].id);
			if (find_error(&projections[i], CODE))
				note_id(&before.codes, projections[i].id);
		}
}

/* ---- after the command ---- */

/*
 * Has the command broken it?  If the state before the command is unknown, the
 * command has only dropped something.  That cannot be the reason for a missing
 * function.
 */
static bool
is_new(const ErrorData *error, const PjProjection *projection,
	   const Change *change, const List *noted)
{
	if (list_member_oid(before.tables, change->relid))
		return !list_member_int(noted, projection->id);
	return error->sqlerrcode != ERRCODE_UNDEFINED_FUNCTION;
}

static void
refuse_alter(const PjProjection *projection, const Change *change,
			 const ErrorData *error)
{
	ereport(ERROR,
			errcode(ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST),
			errmsg("cannot alter table %s because projection \"%s\" could not use it any more",
				   pj_target_name(change->relid), projection->name),
			errdetail_internal("%s", error->message),
			errhint("Change the projection with projector_alter, or drop it, first. %s",
					guard_off));
}

/*
 * Raise an error if the table could be this target before, but no longer can.
 */
static void
check_change(const PjProjection *projection, const Change *change, int target)
{
	ErrorData  *error;

	if (!can_be_judged(projection))
		return;
	error = find_error(projection, target);
	if (error && is_new(error, projection, change, before.targets))
		refuse_alter(projection, change, error);
	error = find_error(projection, CODE);
	if (error && is_new(error, projection, change, before.codes))
		refuse_alter(projection, change, error);
}

/* Check a change against all projections that write the table. */
static void
judge_change(const Change *change)
{
	PjProjection *projections;
	int			n = pj_projections(&projections);

	for (int i = 0; i < n; i++)
		for (int t = 0; is_guarded(&projections[i]) &&
			 t < pj_target_count(&projections[i]); t++)
		{
			if (projections[i].target_oids[t] != change->relid)
				continue;
			if (change->gone ||
				(change->column &&
				 uses_column(&projections[i], t, change->column)))
				refuse_drop(&projections[i], change);
			check_change(&projections[i], change, t);
		}
}

static void
check_called(FunctionCallInfo fcinfo)
{
	if (!CALLED_AS_EVENT_TRIGGER(fcinfo))
		ereport(ERROR,
				errcode(ERRCODE_E_R_I_E_EVENT_TRIGGER_PROTOCOL_VIOLATED),
				errmsg("not called as an event trigger"));
}

static void
judge(FunctionCallInfo fcinfo, PjStatement *stmt)
{
	Change	   *changes;
	int			n;
	PjContext	saved;

	check_called(fcinfo);
	if (is_inert())
		return;
	pj_enter_previous(&saved);
	n = read_changes(stmt, &changes);
	for (int i = 0; i < n; i++)
		judge_change(&changes[i]);
	pj_leave_internal(&saved);
}

/* Event trigger function, before a command: records what is already broken. */
Datum
projector_guard_start(PG_FUNCTION_ARGS)
{
	Oid			relid;
	PjContext	saved;

	check_called(fcinfo);
	note_nothing();
	if (is_inert())
		PG_RETURN_NULL();
	relid = altered_table(((EventTriggerData *) fcinfo->context)->parsetree);
	if (!OidIsValid(relid))
		PG_RETURN_NULL();
	pj_enter_previous(&saved);
	note_errors(relid);
	pj_leave_internal(&saved);
	PG_RETURN_NULL();
}

/* Event trigger function: refuses to drop what a live projection needs. */
Datum
projector_guard_drop(PG_FUNCTION_ARGS)
{
	judge(fcinfo, &select_dropped);
	PG_RETURN_NULL();
}

/*
 * Event trigger function: refuses to alter a target so that it cannot be one.
 */
Datum
projector_guard_alter(PG_FUNCTION_ARGS)
{
	judge(fcinfo, &select_altered);
	PG_RETURN_NULL();
}
