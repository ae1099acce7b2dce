/*
 * reference.c
 *	  Foreign keys in other tables that refer to a read model.
 *
 * A rebuild deletes rows and writes them again.  A foreign key with ON DELETE
 * CASCADE, SET NULL or SET DEFAULT then changes the referencing rows, and
 * nothing restores them unless their table is a target too.  So such a key is
 * refused when the projection is created.  It may be added later, so it is
 * also refused when rows are about to be deleted.  It is accepted if option
 * "writes" names the referencing table.
 */
#include "base/compat.h"

#include "access/table.h"
#include "catalog/partition.h"
#include "catalog/pg_inherits.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/reltrigger.h"

#include "registry/reference.h"
#include "registry/target.h"

/*
 * Is this the trigger of a foreign key that changes or deletes referencing
 * rows when the referenced row is deleted?
 */
static bool
has_action(const Trigger *trigger)
{
	return trigger->tgfoid == F_RI_FKEY_CASCADE_DEL ||
		trigger->tgfoid == F_RI_FKEY_SETNULL_DEL ||
		trigger->tgfoid == F_RI_FKEY_SETDEFAULT_DEL;
}

/* Returns the root of a partition, or the table itself. */
static Oid
root_of(Oid relid)
{
	return get_rel_relispartition(relid) ?
		llast_oid(get_partition_ancestors(relid)) : relid;
}

/* Is the table named in option "writes"? */
static bool
is_written(Oid relid, const char **writes)
{
	for (int i = 0; writes[i]; i++)
	{
		Oid			written = pj_target_by_name(writes[i]);

		if (OidIsValid(written) && root_of(written) == relid)
			return true;
	}
	return false;
}

static void
refuse_reference(const Trigger *trigger, Relation target,
				 const char *projection)
{
	ereport(ERROR,
			errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			errmsg("rows of table \"%s\" refer to target \"%s\" of projection \"%s\" and would not survive a rebuild",
				   get_rel_name(root_of(trigger->tgconstrrelid)),
				   RelationGetRelationName(target), projection),
			errdetail("Foreign key \"%s\" deletes or changes them when rows of the target are deleted, and a rebuild does that.",
					  get_constraint_name(trigger->tgconstraint)),
			errhint("Make the foreign key ON DELETE NO ACTION, name the table in \"targets\" if the projection fills it, or in option \"writes\" if its rows may go."));
}

/* Check the foreign keys that refer to one table. */
static void
check_table(Oid relid, const List *roots, const char *projection,
			const char **writes)
{
	Relation	rel = table_open(relid, AccessShareLock);
	const TriggerDesc *triggers = rel->trigdesc;

	for (int i = 0; triggers && i < triggers->numtriggers; i++)
	{
		const Trigger *trigger = &triggers->triggers[i];
		Oid			root;

		if (!has_action(trigger))
			continue;
		root = root_of(trigger->tgconstrrelid);
		if (!list_member_oid(roots, root) && !is_written(root, writes))
			refuse_reference(trigger, rel, projection);
	}
	table_close(rel, NoLock);
}

/*
 * Raise an error if deleting rows of the targets would change rows of a table
 * that is neither a target nor named in "writes".  The names in "writes" are
 * qualified.
 */
void
pj_references_check(const List *targets, const char *projection,
					const char **writes)
{
	List	   *roots = NIL;
	ListCell   *cell,
			   *part;

	foreach(cell, targets)
		roots = lappend_oid(roots, root_of(lfirst_oid(cell)));
	foreach(cell, targets)
	{
		List	   *parts = find_all_inheritors(lfirst_oid(cell),
												AccessShareLock, NULL);

		foreach(part, parts)
			check_table(lfirst_oid(part), roots, projection, writes);
	}
}
