/*
 * build_aside.c
 *	  Build a fold's read model in a separate table, while readers still
 *	  see the live one.
 *
 * A build is another destination of the same projection (PjDestination).  Its
 * rows are in a table projector.build_N, where N is the id of the run.  The
 * table has exactly the columns of the target, including dropped ones, so that
 * both have the same tuple layout.  The build's offsets, items and failures
 * are kept under an id of their own and are seen only by the run.  All of this
 * is ordinary data, so a run continues after a crash.
 *
 * At the end the rows that differ are written to the target (build_merge.c),
 * and the build's bookkeeping replaces the live one, in one transaction.
 *
 * The table belongs to the projection's owner, as must every table with values
 * of users' types: ANALYZE, also when run by autovacuum, runs code of those
 * types as the table's owner.  The table is a member of the extension.  So it
 * is not dumped, where it would be useless; it is dropped with the extension;
 * and its owner cannot drop it.  The owner can alter it; then the build starts
 * again.
 */
#include "base/compat.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/heap.h"
#include "catalog/index.h"
#include "catalog/namespace.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_extension.h"
#include "catalog/pg_trigger.h"
#include "catalog/pg_type.h"
#include "catalog/toasting.h"
#include "commands/extension.h"
#include "commands/trigger.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "base/lock.h"
#include "base/statement.h"
#include "kinds/fold_row.h"
#include "rebuild/build_aside.h"
#include "registry/target.h"
#include "state/digest.h"
#include "state/failure.h"
#include "state/outbox.h"

/* A table with at most this many blocks of dead rows is not truncated. */
#define MAX_DEAD_BLOCKS	64

/* $1 is the projection, $2 the tenant. */
#define OF_BUILD(alias) \
	alias "projection_id = " PJ_BOOKS_OF_BUILD " AND " alias "tenant_id = $2"

/*
 * Delete the items of events that the build has applied or queued, and failed
 * items whose events the build did not find in the log.  (OFFSET 0 keeps the
 * planner from turning the subqueries into joins, so each is an index lookup
 * per row.)
 */
static PjStatement delete_items = {
	.sql = "DELETE FROM projector.apply_outbox o"
	" WHERE o.projection_id = $1 AND o.tenant_id = $2"
	" AND (o.status IN ('failed', 'dead') AND o.log_seq <= $3 OR EXISTS"
	" (SELECT FROM projector.projection_offsets a WHERE " OF_BUILD("a.")
	" AND a.aggregate_id = o.aggregate_id"
	" AND a.last_sequence_number >= o.sequence_number OFFSET 0) OR EXISTS"
	" (SELECT FROM projector.apply_outbox a WHERE " OF_BUILD("a.")
	" AND a.log_seq = o.log_seq OFFSET 0))",
	.expect = SPI_OK_DELETE,
	.nargs = 3,
	.argtypes = {INT4OID, TEXTOID, INT8OID},
};

#define TAKE_OVER(table) \
	{ \
		.sql = "UPDATE projector." table " SET projection_id = $1 WHERE " \
		OF_BUILD(""), \
		.expect = SPI_OK_UPDATE, \
		.nargs = 2, \
		.argtypes = {INT4OID, TEXTOID}, \
	}

static PjStatement take_over_items = TAKE_OVER("apply_outbox");
static PjStatement take_over_failures = TAKE_OVER("projection_failures");
static PjStatement take_over_digest = TAKE_OVER("projection_digests");

/* Offsets seldom differ, so most rows need not be written. */
static PjStatement delete_offsets = {
	.sql = "DELETE FROM projector.projection_offsets o"
	" WHERE o.projection_id = $1 AND o.tenant_id = $2 AND NOT EXISTS"
	" (SELECT FROM projector.projection_offsets a WHERE " OF_BUILD("a.")
	" AND a.aggregate_id = o.aggregate_id OFFSET 0)",
	.expect = SPI_OK_DELETE,
	.nargs = 2,
	.argtypes = {INT4OID, TEXTOID},
};

static PjStatement copy_offsets = {
	.sql = "INSERT INTO projector.projection_offsets AS o (projection_id,"
	" tenant_id, aggregate_id, last_sequence_number, last_event_id,"
	" error_count, last_error)"
	" SELECT $1, tenant_id, aggregate_id, last_sequence_number,"
	" last_event_id, error_count, last_error"
	" FROM projector.projection_offsets WHERE " OF_BUILD("")
	" ON CONFLICT (projection_id, tenant_id, aggregate_id) DO UPDATE"
	" SET last_sequence_number = excluded.last_sequence_number,"
	" last_event_id = excluded.last_event_id,"
	" error_count = excluded.error_count, last_error = excluded.last_error,"
	" updated_at = now()"
	" WHERE (o.last_sequence_number, o.last_event_id, o.error_count,"
	" o.last_error) IS DISTINCT FROM (excluded.last_sequence_number,"
	" excluded.last_event_id, excluded.error_count, excluded.last_error)",
	.expect = SPI_OK_INSERT,
	.nargs = 2,
	.argtypes = {INT4OID, TEXTOID},
};

#define FORGET(table) \
	{ \
		.sql = "DELETE FROM projector." table " WHERE " OF_BUILD(""), \
		.expect = SPI_OK_DELETE, \
		.nargs = 2, \
		.argtypes = {INT4OID, TEXTOID}, \
	}

static PjStatement forget[] = {
	FORGET("projection_offsets"),
	FORGET("apply_outbox"),
	FORGET("projection_failures"),
	FORGET("projection_digests"),
};

#define HAS_BOOKS(table) \
	"EXISTS (SELECT FROM projector." table \
	" WHERE projection_id = " PJ_BOOKS_OF_BUILD ")"

static PjStatement select_books = {
	.sql = "SELECT WHERE " HAS_BOOKS("projection_offsets")
	" OR " HAS_BOOKS("apply_outbox") " OR " HAS_BOOKS("projection_failures")
	" OR " HAS_BOOKS("projection_digests"),
	.expect = SPI_OK_SELECT,
	.nargs = 1,
	.argtypes = {INT4OID},
};

/* Is there a unique or exclusion constraint besides the primary key? */
static bool
has_other_keys(Relation target)
{
	List	   *indexes = RelationGetIndexList(target);
	ListCell   *cell;
	bool		found = false;

	foreach(cell, indexes)
	{
		Relation	index = index_open(lfirst_oid(cell), AccessShareLock);

		found = found || (!index->rd_index->indisprimary &&
						  (index->rd_index->indisunique ||
						   index->rd_index->indisexclusion));
		index_close(index, AccessShareLock);
	}
	return found;
}

/*
 * Are changes of single rows visible to others?  Row triggers see them, and so
 * do foreign keys of other tables that refer to this one, by their triggers.
 */
static bool
is_observed(Relation target)
{
	const TriggerDesc *triggers = target->trigdesc;

	for (int i = 0; triggers && i < triggers->numtriggers; i++)
	{
		const Trigger *trigger = &triggers->triggers[i];

		if (TRIGGER_FOR_ROW(trigger->tgtype) &&
			RI_FKey_trigger_type(trigger->tgfoid) != RI_TRIGGER_FK)
			return true;
	}
	return false;
}

/*
 * Can the read model be built in a separate table?  Not if option "clear"
 * names a function, which may clear more than the target.  Not if triggers
 * change rows before they are written, because they do not fire for the other
 * table.
 *
 * With a second unique key, two rows may have swapped values, so the merge may
 * have to delete rows and insert them again.  If row triggers or foreign keys
 * would see that, the target is rebuilt in place.
 *
 * If failing events are to be held or skipped, we must find out which event
 * fails.  That is only possible where the target's own constraints are
 * checked.
 */
bool
pj_aside_possible(const PjProjection *projection)
{
	Relation	target;
	bool		others;
	bool		possible;

	if (!pj_is_fold(projection->kind) || projection->options.clear)
		return false;
	target = table_open(pj_target_oid(projection, 0), AccessShareLock);
	others = has_other_keys(target);
	possible = !pj_fold_has_triggers(target) &&
		!(others && is_observed(target)) &&
		(projection->options.on_rebuild_error == PJ_ON_REBUILD_ERROR_RAISE ||
		 (!others && RelationGetFKeyList(target) == NIL));
	table_close(target, AccessShareLock);
	return possible;
}

/* ---- the table ---- */

/* Returns the name of the table that a run builds in. */
char *
pj_aside_name(int64 run_id)
{
	return psprintf("build_%lld", (long long) run_id);
}

static Oid
find_table(const char *name)
{
	return get_relname_relid(name, get_namespace_oid("projector", false));
}

/* Create a primary key like that of the target. */
static void
make_index(Relation target, Relation table)
{
	Relation	key = index_open(pj_primary_key(target),
								 AccessShareLock);
	HeapTuple	tuple = SearchSysCache1(INDEXRELID,
										ObjectIdGetDatum(RelationGetRelid(key)));
	bool		isnull;
	oidvector  *classes = (oidvector *)
	DatumGetPointer(SysCacheGetAttr(INDEXRELID, tuple, Anum_pg_index_indclass,
									&isnull));
	List	   *names = NIL;

	for (int i = 0; i < RelationGetDescr(key)->natts; i++)
		names = lappend(names,
						NameStr(TupleDescAttr(RelationGetDescr(key), i)->attname));
	pj_copy_index(table, psprintf("%s_pkey", RelationGetRelationName(table)),
				  key, names, classes->values);
	ReleaseSysCache(tuple);
	index_close(key, NoLock);
}

/* Make an object a member of our extension. */
static void
make_member(Oid class, Oid object)
{
	ObjectAddress address,
				extension;

	ObjectAddressSet(address, class, object);
	ObjectAddressSet(extension, ExtensionRelationId,
					 get_extension_oid("projector", false));
	recordDependencyOn(&address, &extension, DEPENDENCY_EXTENSION);
}

/*
 * Create the table.  It is marked as a new version of the target, like the
 * table that a rewriting ALTER TABLE creates, so that logical replication
 * ignores it.
 */
static void
make_table(Relation target, const char *name, Oid owner)
{
	Oid			relid;
	Relation	table;

	relid = heap_create_with_catalog(name,
									 get_namespace_oid("projector", false),
									 target->rd_rel->reltablespace, InvalidOid,
									 InvalidOid, InvalidOid, owner,
									 target->rd_rel->relam,
									 CreateTupleDescCopy(RelationGetDescr(target)),
									 NIL, RELKIND_RELATION,
									 RELPERSISTENCE_PERMANENT, false,
									 false, ONCOMMIT_NOOP, (Datum) 0, false,
									 true, true, RelationGetRelid(target),
									 NULL);
	CommandCounterIncrement();

	/* do not prevent users from dropping a column and then its type */
	deleteDependencyRecordsForClass(RelationRelationId, relid, TypeRelationId,
									DEPENDENCY_NORMAL);
	NewRelationCreateToastTable(relid, (Datum) 0);
	table = table_open(relid, AccessExclusiveLock);
	make_index(target, table);
	table_close(table, NoLock);

	make_member(RelationRelationId, relid);
	if (PJ_ROW_TYPES_ARE_MEMBERS)
	{
		make_member(TypeRelationId, get_rel_type_id(relid));
		make_member(TypeRelationId, get_array_type(get_rel_type_id(relid)));
	}
	CommandCounterIncrement();
}

/* Do both have the same columns at the same numbers? */
static bool
have_same_columns(TupleDesc a, TupleDesc b)
{
	if (a->natts != b->natts)
		return false;
	for (int i = 0; i < a->natts; i++)
	{
		Form_pg_attribute x = TupleDescAttr(a, i);
		Form_pg_attribute y = TupleDescAttr(b, i);

		if (x->attisdropped != y->attisdropped || x->attlen != y->attlen ||
			x->attalign != y->attalign || x->atttypid != y->atttypid ||
			x->atttypmod != y->atttypmod ||
			x->attcollation != y->attcollation ||
			strcmp(NameStr(x->attname), NameStr(y->attname)) != 0)
			return false;
	}
	return true;
}

/* Do both have the same primary key? */
static bool
have_same_key(Relation a, Relation b)
{
	Relation	x = index_open(pj_primary_key(a), AccessShareLock);
	Relation	y = index_open(pj_primary_key(b), AccessShareLock);
	int			natts = x->rd_index->indnatts;
	bool		same = natts == y->rd_index->indnatts &&
	memcmp(x->rd_index->indkey.values, y->rd_index->indkey.values,
		   sizeof(int16) * natts) == 0;

	index_close(x, NoLock);
	index_close(y, NoLock);
	return same;
}

static void
drop_table(const char *name)
{
	ObjectAddress address;

	ObjectAddressSet(address, RelationRelationId, find_table(name));
	if (!OidIsValid(address.objectId))
		return;
	LockRelationOid(address.objectId, AccessExclusiveLock);
	performDeletion(&address, DROP_CASCADE,
					PERFORM_DELETION_INTERNAL | PERFORM_DELETION_QUIETLY |
					PERFORM_DELETION_SKIP_EXTENSIONS);
	CommandCounterIncrement();
}

/*
 * Is the table still as we created it?  The projection's owner also owns the
 * table and may have altered it.  Nothing that the owner has added may run at
 * the end of the transaction, outside the sandbox.
 */
static bool
is_as_made(Relation table, Oid owner)
{
	return table->rd_rel->relowner == owner &&
		table->rd_rel->relpersistence == RELPERSISTENCE_PERMANENT &&
		table->trigdesc == NULL && table->rd_rules == NULL &&
		OidIsValid(pj_primary_key(table)) &&
		list_length(RelationGetIndexList(table)) == 1;
}

/* ---- the build ---- */

/* Is there no bookkeeping of any build of a projection? */
bool
pj_aside_is_blank(int32 projection_id)
{
	Datum		values[1] = {Int32GetDatum(projection_id)};

	return pj_execute(&select_books, values, NULL) == 0;
}

/* Delete the bookkeeping of a build. */
void
pj_aside_forget(int32 projection_id, Datum tenant)
{
	Datum		values[2] = {Int32GetDatum(projection_id), tenant};

	for (int i = 0; i < lengthof(forget); i++)
		pj_execute(&forget[i], values, NULL);
}

/*
 * All rows of a table that this transaction has created are dead.  Remove them
 * if there are many, so that later scans do not have to skip them.  No other
 * transaction can see the table, so its file can be truncated.
 */
void
pj_aside_empty(Oid aside)
{
	Relation	table = table_open(aside, AccessExclusiveLock);

	if (RelationGetNumberOfBlocks(table) > MAX_DEAD_BLOCKS)
		heap_truncate_one_rel(table);
	table_close(table, NoLock);
}

/* Create a table to build in. */
void
pj_aside_make(const PjProjection *projection, const char *name)
{
	Relation	target = table_open(pj_target_oid(projection, 0),
									AccessShareLock);

	make_table(target, name, pj_projection_owner(projection));
	table_close(target, NoLock);
}

/*
 * Find the destination of a build.  Returns false if the build cannot
 * continue: its table is gone, or the target has changed since the table was
 * created.
 */
bool
pj_aside_find(const PjProjection *projection, const char *name,
			  PjDestination *build)
{
	Relation	target,
				table;
	bool		alike;

	memset(build, 0, sizeof(PjDestination));
	build->books = pj_books_of_build(projection->id);
	build->table = find_table(name);
	if (!OidIsValid(build->table) || !pj_aside_possible(projection))
		return false;

	/* the locks keep others from altering the tables until we are done */
	target = table_open(pj_target_oid(projection, 0), RowExclusiveLock);
	table = try_table_open(build->table, RowExclusiveLock);
	alike = table != NULL &&
		is_as_made(table, pj_projection_owner(projection)) &&
		OidIsValid(pj_primary_key(target)) &&
		have_same_columns(RelationGetDescr(target), RelationGetDescr(table)) &&
		have_same_key(target, table);
	if (table)
		table_close(table, NoLock);
	table_close(target, NoLock);
	return alike;
}

/*
 * Replace the live bookkeeping by that of the build.  The rows have been
 * merged already.
 */
void
pj_aside_take_over(const PjProjection *projection, const PjRun *run)
{
	Datum		values[3] = {Int32GetDatum(projection->id), run->tenant,
	Int64GetDatum(run->until)};

	Assert(pj_pair_is_ours(projection->id, run->tenant));
	pj_failure_rebuilt(projection, run->tenant, 0, run->until);
	if (projection->log_ordered)
		pj_outbox_clear_upto(projection->id, run->tenant, run->until);
	else
		pj_execute(&delete_items, values, NULL);
	pj_outbox_release_tenant(projection->id, run->tenant);
	pj_execute(&take_over_items, values, NULL);
	pj_execute(&take_over_failures, values, NULL);
	pj_execute(&delete_offsets, values, NULL);
	pj_execute(&copy_offsets, values, NULL);
	pj_digest_forget(projection->id, run->tenant);
	pj_execute(&take_over_digest, values, NULL);
	pj_aside_drop(run);
}

/* Drop a build, or what is left of it. */
void
pj_aside_drop(const PjRun *run)
{
	drop_table(pj_aside_name(run->id));
	pj_aside_forget(run->projection_id, run->tenant);
}
