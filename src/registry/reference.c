/*
 * reference.c
 *	  Foreign keys of other tables that refer to a read model.
 *
 * A rebuild removes rows and writes them again.  A foreign key ON DELETE
 * CASCADE, SET NULL or SET DEFAULT changes the rows that refer to them, which
 * nothing brings back unless their table is a target too.  So such a key is
 * refused, when the projection is created and, because it may be added later,
 * when rows are about to be removed; unless option "writes" says that the table
 * is changed on purpose.
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
 * Is it the trigger of a foreign key that does something to rows whose
 * referenced row is deleted?
 */
static bool
has_action(const Trigger *trigger)
{
	return trigger->tgfoid == F_RI_FKEY_CASCADE_DEL ||
		trigger->tgfoid == F_RI_FKEY_SETNULL_DEL ||
		trigger->tgfoid == F_RI_FKEY_SETDEFAULT_DEL;
}

/* Partitions count as the table they are of. */
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

/* Check the keys that refer to one table. */
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
 * Refuse targets whose rows, when deleted, change rows of tables that are
 * neither targets nor named in "writes", with qualified names.
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
