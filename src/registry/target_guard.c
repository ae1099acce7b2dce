/*
 * target_guard.c
 *	  Which tables a projection's code may write, and what they must have.
 *
 * A projection writes its targets and the tables named in option "writes".  If
 * it wrote to any other table, a rebuild would not clear that table and
 * projector_verify would not check it.  command_guard.c calls this file for
 * each plan.
 *
 * Targets of handlers and statements have a trigger that rejects rows of other
 * tenants (row_guard.c).  A fold's target needs no trigger: the runtime writes
 * its rows.
 */
#include "base/compat.h"

#include "access/table.h"
#include "catalog/namespace.h"
#include "catalog/partition.h"
#include "catalog/pg_class.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/reltrigger.h"
#include "utils/syscache.h"

#include "base/errcodes.h"
#include "log/log_read.h"
#include "registry/target.h"
#include "registry/target_guard.h"
#include "sandbox/row_guard.h"

/* ---- the trigger ---- */

static const Trigger *
find_guard(Relation rel)
{
	const TriggerDesc *triggers = rel->trigdesc;

	for (int i = 0; triggers && i < triggers->numtriggers; i++)
		if (strcmp(triggers->triggers[i].tgname, PJ_ROWGUARD_NAME) == 0)
			return &triggers->triggers[i];
	return NULL;
}

static bool
is_guarded(Relation rel)
{
	const Trigger *guard = find_guard(rel);

	return guard && pj_rowguard_is(guard);
}

static void
run_on(const char *format, const char *table)
{
	char	   *command = psprintf(format, table);
	int			rc = SPI_execute(command, false, 0);

	if (rc < 0)
		elog(ERROR, "could not run \"%s\": %s", command,
			 SPI_result_code_string(rc));
}

/*
 * Does a target of a handler or statement have the trigger?  The table is not
 * locked, so the answer may soon be out of date.  check_state() checks again
 * before the table is written.
 */
bool
pj_guard_is_on(Oid relid)
{
	Relation	rel = RelationIdGetRelation(relid);
	bool		guarded;

	if (rel == NULL)
		return false;
	guarded = is_guarded(rel);
	RelationClose(rel);
	return guarded;
}

/* Create the trigger on a target, unless it exists. */
void
pj_guard_install(Oid relid)
{
	Relation	rel = table_open(relid, AccessShareLock);
	bool		guarded = is_guarded(rel);
	char	   *table = pj_target_name(relid);
	PjContext	saved;

	table_close(rel, NoLock);
	if (guarded)
		return;
	pj_enter_internal(&saved);
	run_on("CREATE OR REPLACE TRIGGER " PJ_ROWGUARD_NAME
		   " AFTER INSERT OR UPDATE OR DELETE ON %s"
		   " FOR EACH ROW WHEN (projector.in_projection())"
		   " EXECUTE FUNCTION projector.guard_tenant()", table);
	run_on("ALTER TABLE %s ENABLE ALWAYS TRIGGER " PJ_ROWGUARD_NAME, table);
	run_on("ALTER TRIGGER " PJ_ROWGUARD_NAME
		   " ON %s DEPENDS ON EXTENSION projector", table);
	pj_leave_internal(&saved);
}

/*
 * Drop the trigger from a table that is no longer a target.  This needs an
 * access exclusive lock.  If the lock is not available, leave the trigger: it
 * does no harm.
 */
void
pj_guard_remove(Oid relid)
{
	Relation	rel;
	PjContext	saved;

	if (!ConditionalLockRelationOid(relid, AccessExclusiveLock))
		return;
	rel = try_table_open(relid, NoLock);
	if (rel == NULL)
		return;
	if (find_guard(rel))
	{
		char	   *table = pj_target_name(relid);

		table_close(rel, NoLock);
		pj_enter_internal(&saved);
		run_on("DROP TRIGGER " PJ_ROWGUARD_NAME " ON %s", table);
		pj_leave_internal(&saved);
	}
	else
		table_close(rel, NoLock);
}

/* ---- writing ---- */

/*
 * A cache of targets that have passed the check, for a version of the
 * projection's registry row.  A relation cache invalidation of the table
 * removes its entry.
 */
#define NUM_APPROVED	16

typedef struct Approved
{
	Oid			relid;			/* invalid if this entry is free */
	int32		projection_id;
	uint64		version;		/* version of the registry row */
} Approved;

static Approved approved[NUM_APPROVED];

/* Relation cache callback. */
static void
relation_changed(Datum arg, Oid relid)
{
	for (int i = 0; i < NUM_APPROVED; i++)
		if (relid == InvalidOid || approved[i].relid == relid)
			approved[i].relid = InvalidOid;
}

static Approved *
find_approved(const PjProjection *projection, Oid relid)
{
	return &approved[(relid ^ projection->id) % NUM_APPROVED];
}

static bool
is_approved(const PjProjection *projection, Oid relid)
{
	const Approved *place = find_approved(projection, relid);

	return place->relid == relid &&
		place->projection_id == projection->id &&
		place->version == projection->version;
}

static void
approve(const PjProjection *projection, Oid relid)
{
	static bool registered = false;

	if (!registered)
		CacheRegisterRelcacheCallback(relation_changed, (Datum) 0);
	registered = true;
	*find_approved(projection, relid) =
		(Approved) {relid, projection->id, projection->version};
}

/*
 * A target may have been altered since it was declared.  Raise an error if it
 * must not be written in its current state.
 */
static void
check_state(const PjProjection *projection, Oid relid)
{
	Relation	rel = table_open(relid, AccessShareLock);

	pj_target_check_storage(rel);
	if (!pj_is_fold(projection->kind) && !is_guarded(rel))
		ereport(ERROR,
				errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("trigger \"%s\" of target table \"%s\" is missing or disabled",
					   PJ_ROWGUARD_NAME, RelationGetRelationName(rel)),
				errdetail("It restricts the projection to rows of its event's tenant."),
				errhint("Restore it with projector_alter(%s, '{}').",
						quote_literal_cstr(projection->name)));
	table_close(rel, NoLock);
}

/* Is the table named in option "writes"? */
static bool
is_declared(const char **names, Oid relid)
{
	for (int i = 0; names[i]; i++)
		if (pj_target_by_name(names[i]) == relid)
			return true;
	return false;
}

/* May the table be written, itself or as a partition of another table? */
static bool
may_write(const PjProjection *projection, Oid relid)
{
	List	   *tables = list_make1_oid(relid);
	ListCell   *cell;

	if (get_rel_relispartition(relid))
		tables = list_concat(tables, get_partition_ancestors(relid));
	foreach(cell, tables)
	{
		if (pj_target_is(projection, lfirst_oid(cell)))
		{
			check_state(projection, relid);
			/* a change of a partition does not invalidate its parent */
			if (get_rel_relkind(relid) != RELKIND_PARTITIONED_TABLE)
				approve(projection, relid);
			return true;
		}
		if (is_declared(projection->options.writes, lfirst_oid(cell)))
			return true;
	}

	/* append() checks whether the projection may append */
	return relid == pj_source_relid();
}

static void
check_write(const PjUserCode *code, Oid relid)
{
	const PjProjection *projection = code->definition;

	if (is_approved(projection, relid) || may_write(projection, relid))
		return;
	ereport(ERROR,
			errcode(ERRCODE_PJ_UNDECLARED),
			errmsg("projection \"%s\" wrote table \"%s\", which is not one of its targets",
				   projection->name, get_rel_name(relid)),
			errdetail("A rebuild would not clear it, and projector_verify would not check it."),
			errhint("Add it to \"targets\" with projector_alter, or to option \"writes\" if it is not part of the read model."));
}

/* Fill in the context in which a projection's code runs for a tenant. */
void
pj_user_code_init(PjUserCode *code, const PjProjection *projection,
				  const char *tenant)
{
	*code = (PjUserCode)
	{
		.projection = projection->name,
			.owner = pj_projection_owner(projection),
			.search_path = projection->search_path,
			.settings = projection->settings,
			.tenant = tenant,
			.may_append = projection->options.may_append,
			.check_write = check_write,
			.definition = projection,
	};
}

/* ---- option "writes" ---- */

/*
 * Look up a table for option "writes", using the caller's search_path; raises
 * an error if there is none.
 */
Oid
pj_guard_find_table(const char *name)
{
	RangeVar   *rv = makeRangeVarFromNameList(pj_parse_name(name, "table"));
	Oid			relid = RangeVarGetRelid(rv, NoLock, true);

	if (!OidIsValid(relid))
		ereport(ERROR,
				errcode(ERRCODE_UNDEFINED_TABLE),
				errmsg("table \"%s\" of option \"writes\" does not exist",
					   name),
				errhint("Create the table first."));
	return relid;
}

/*
 * Report the tables that a rebuild does not clear and verify does not compare.
 */
void
pj_guard_report_writes(const PjProjection *projection)
{
	for (int i = 0; projection->options.writes[i]; i++)
		ereport(NOTICE,
				errmsg("table %s is written by projection \"%s\", but is not covered",
					   projection->options.writes[i], projection->name),
				errdetail("Option \"writes\" names it: it is neither cleared nor compared."));
}
