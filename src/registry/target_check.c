/*
 * target_check.c
 *	  What the target tables of a projection must look like.
 *
 * Every target has a column tenant_id and is logged.  A fold's target also has
 * a primary key of tenant_id and one other column, and columns for the stamps
 * that the runtime writes.
 */
#include "base/compat.h"

#include "access/genam.h"
#include "access/table.h"
#include "catalog/catalog.h"
#include "catalog/namespace.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "partitioning/partdesc.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/reltrigger.h"

#include "registry/target.h"

static void
check_relation(Relation rel, Oid owner)
{
	const char *name = RelationGetRelationName(rel);

	if (rel->rd_rel->relkind != RELKIND_RELATION &&
		rel->rd_rel->relkind != RELKIND_PARTITIONED_TABLE)
		ereport(ERROR,
				errcode(ERRCODE_WRONG_OBJECT_TYPE),
				errmsg("target \"%s\" is not a table", name),
				errhint("Name the table that holds the rows: views, sequences and foreign tables cannot be targets."));
	if (RelationGetNamespace(rel) == get_namespace_oid("projector", false) ||
		IsSystemRelation(rel))
		ereport(ERROR,
				errcode(ERRCODE_WRONG_OBJECT_TYPE),
				errmsg("target \"%s\" is not a table of yours", name));
	if (!pj_owns_table(RelationGetRelid(rel), owner))
		ereport(ERROR,
				errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				errmsg("\"%s\" must be owner of target table \"%s\"",
					   GetUserNameFromId(owner, false), name),
				errhint("A projection's owner must own the tables it writes."));
}

/*
 * A deferrable constraint might be checked only after the projection's code
 * has ended, outside the sandbox: any session that appends can defer it.
 */
static void
check_no_deferrable(Relation rel)
{
	TriggerDesc *triggers = rel->trigdesc;

	for (int i = 0; triggers && i < triggers->numtriggers; i++)
		if (triggers->triggers[i].tgdeferrable)
			ereport(ERROR,
					errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					errmsg("target table \"%s\" has a deferrable constraint",
						   RelationGetRelationName(rel)),
					errdetail("Constraints on a read model are checked while it is being written."),
					errhint("Make the constraint NOT DEFERRABLE."));
}

/* Is the table, or any of its partitions, unlogged?  The table is locked. */
static bool
is_unlogged(Relation rel)
{
	PartitionDesc parts;
	bool		found = false;

	if (rel->rd_rel->relkind != RELKIND_PARTITIONED_TABLE)
		return rel->rd_rel->relpersistence == RELPERSISTENCE_UNLOGGED;
	parts = RelationGetPartitionDesc(rel, false);
	for (int i = 0; i < parts->nparts && !found; i++)
	{
		Relation	part;

		if (parts->is_leaf[i])
		{
			found = get_rel_persistence(parts->oids[i]) ==
				RELPERSISTENCE_UNLOGGED;
			continue;
		}
		part = table_open(parts->oids[i], AccessShareLock);
		found = is_unlogged(part);
		table_close(part, NoLock);
	}
	return found;
}

/*
 * Check what every target must be at all times, whatever the projection's
 * kind.
 */
void
pj_target_check_storage(Relation rel)
{
	if (rel->rd_rel->relpersistence == RELPERSISTENCE_TEMP)
		ereport(ERROR,
				errcode(ERRCODE_WRONG_OBJECT_TYPE),
				errmsg("target \"%s\" is a temporary table",
					   RelationGetRelationName(rel)),
				errdetail("A read model must be visible to every session."));
	if (is_unlogged(rel))
		ereport(ERROR,
				errcode(ERRCODE_WRONG_OBJECT_TYPE),
				errmsg("target \"%s\" is an unlogged table, or a part of it is",
					   RelationGetRelationName(rel)),
				errdetail("It would be empty after a crash, while the offsets say that its events have been applied."),
				errhint("Make it a logged one: ALTER TABLE %s SET LOGGED.",
						pj_target_name(RelationGetRelid(rel))));
	check_no_deferrable(rel);
}

static void
check_column(Relation rel, const char *column, const char *why)
{
	if (get_attnum(RelationGetRelid(rel), column) == InvalidAttrNumber)
		ereport(ERROR,
				errcode(ERRCODE_UNDEFINED_COLUMN),
				errmsg("target table \"%s\" has no column \"%s\"",
					   RelationGetRelationName(rel), column),
				errhint("%s", why));
}

/*
 * Every row must have its tenant in the table: checks and queries by tenant
 * read it there.
 */
static void
check_tenant(Relation rel)
{
	AttrNumber	attno;

	check_column(rel, "tenant_id",
				 psprintf("Every row of a read model belongs to a tenant: ALTER TABLE %s ADD tenant_id text.",
						  pj_target_name(RelationGetRelid(rel))));
	attno = get_attnum(RelationGetRelid(rel), "tenant_id");
	if (pj_is_virtual(TupleDescAttr(RelationGetDescr(rel), attno - 1)))
		ereport(ERROR,
				errcode(ERRCODE_INVALID_TABLE_DEFINITION),
				errmsg("column \"tenant_id\" of target table \"%s\" is a virtual generated column",
					   RelationGetRelationName(rel)),
				errhint("Make it an ordinary column, or a stored one."));
}

/*
 * Returns the column of a primary key besides tenant_id, or NULL if the key is
 * not formed by these two.
 */
static char *
other_column(Oid relid, const Bitmapset *key)
{
	AttrNumber	tenant = get_attnum(relid, "tenant_id");
	int			member = -1;
	char	   *column = NULL;

	if (bms_num_members(key) != 2 ||
		!bms_is_member(tenant - FirstLowInvalidHeapAttributeNumber, key))
		return NULL;
	while ((member = bms_next_member(key, member)) >= 0)
	{
		AttrNumber	attno = member + FirstLowInvalidHeapAttributeNumber;

		if (attno != tenant)
			column = get_attname(relid, attno, false);
	}
	return column;
}

/*
 * Returns the column that forms the primary key together with tenant_id, or
 * NULL if the primary key looks different.  The table need not be locked.
 */
char *
pj_target_key_column(Oid relid)
{
	Oid			constraint;

	return other_column(relid,
						get_primary_key_attnos(relid, false, &constraint));
}

static void
check_column_type(Relation rel, const char *column, Oid type, const char *why)
{
	check_column(rel, column, why);
	if (get_atttype(RelationGetRelid(rel),
					get_attnum(RelationGetRelid(rel), column)) != type)
		ereport(ERROR,
				errcode(ERRCODE_DATATYPE_MISMATCH),
				errmsg("column \"%s\" of target table \"%s\" is not of type %s",
					   column, RelationGetRelationName(rel),
					   format_type_be(type)),
				errhint("%s", why));
	if (get_attgenerated(RelationGetRelid(rel),
						 get_attnum(RelationGetRelid(rel), column)))
		ereport(ERROR,
				errcode(ERRCODE_INVALID_TABLE_DEFINITION),
				errmsg("column \"%s\" of target table \"%s\" is a generated column",
					   column, RelationGetRelationName(rel)),
				errhint("%s", why));
}

/* For a hint: the clause that drops an existing primary key. */
static char *
drop_key(Relation rel)
{
	Oid			index = pj_primary_key(rel);

	return OidIsValid(index) ?
		psprintf(" DROP CONSTRAINT %s,", quote_identifier(get_rel_name(index))) :
		"";
}

/*
 * Are keys found by equality?  A key WITHOUT OVERLAPS has an index of another
 * kind.
 */
static bool
has_ordinary_key(Relation rel)
{
	Relation	index = index_open(pj_primary_key(rel), AccessShareLock);
	bool		ordinary = index->rd_rel->relam == BTREE_AM_OID;

	index_close(index, NoLock);
	return ordinary;
}

static void
check_key(Relation rel, const char *why)
{
	if (pj_target_key_column(RelationGetRelid(rel)) == NULL ||
		!has_ordinary_key(rel))
		ereport(ERROR,
				errcode(ERRCODE_INVALID_TABLE_DEFINITION),
				errmsg("primary key of target table \"%s\" is not of the form (tenant_id, key)",
					   RelationGetRelationName(rel)),
				errhint("%s ALTER TABLE %s%s ADD PRIMARY KEY (tenant_id, <key column>).",
						why, pj_target_name(RelationGetRelid(rel)),
						drop_key(rel)));
}

static void
check_checkpoint(Relation rel)
{
	static const char why[] =
	"Option \"checkpoint\" needs last_event_id uuid and last_event_version bigint in the first target.";

	check_column(rel, "last_event_id", why);
	check_column(rel, "last_event_version", why);
	check_key(rel, "Option \"checkpoint\" finds the row of an aggregate by tenant_id and one key column.");
}

/* Check what the runtime needs to maintain the rows of a fold. */
static void
check_fold(Relation rel, bool several)
{
	static const char why[] =
	"A fold's target has the columns last_event_id uuid and last_event_version bigint, which the runtime fills in.";

	if (rel->rd_rel->relkind != RELKIND_RELATION)
		ereport(ERROR,
				errcode(ERRCODE_WRONG_OBJECT_TYPE),
				errmsg("target table \"%s\" of a fold is partitioned",
					   RelationGetRelationName(rel)),
				errhint("Use an ordinary table, or write a handler."));
	check_key(rel, "A fold finds its row by tenant_id and one key column.");
	check_column_type(rel, "last_event_id", UUIDOID, why);
	check_column_type(rel, "last_event_version", INT8OID, why);
	if (several)
		check_column_type(rel, "last_log_seq", INT8OID,
						  "If key is not the aggregate, a fold's target needs last_log_seq bigint too: several aggregates meet in one row.");
}

static void
check_table(Relation rel, Oid owner, PjTargetNeed need)
{
	check_relation(rel, owner);
	check_tenant(rel);
	pj_target_check_storage(rel);
	if (need == PJ_NEEDS_CHECKPOINT)
		check_checkpoint(rel);
	if (need == PJ_NEEDS_FOLD || need == PJ_NEEDS_LOG_FOLD)
		check_fold(rel, need == PJ_NEEDS_LOG_FOLD);
}

/* Check that a table can be a projection's target, and return its OID. */
Oid
pj_target_check(const char *name, Oid owner, PjTargetNeed need)
{
	RangeVar   *rv = pj_parse_table(name);
	Oid			relid = RangeVarGetRelid(rv, AccessShareLock, true);

	if (!OidIsValid(relid))
		ereport(ERROR,
				errcode(ERRCODE_UNDEFINED_TABLE),
				errmsg("target table \"%s\" does not exist", name),
				errhint("Create the table first."));

	pj_target_recheck(relid, owner, need);
	return relid;
}

/* Like pj_target_check, for a table whose OID is known and that is locked. */
void
pj_target_recheck(Oid relid, Oid owner, PjTargetNeed need)
{
	Relation	rel = table_open(relid, NoLock);

	check_table(rel, owner, need);
	table_close(rel, NoLock);
}

/*
 * Check a fold's target again: it may have been altered, have a new owner, or
 * be another table of the same name.
 */
void
pj_target_check_fold(Relation rel, Oid owner, bool several)
{
	check_table(rel, owner, several ? PJ_NEEDS_LOG_FOLD : PJ_NEEDS_FOLD);
}

/*
 * Returns the column that identifies a fold's row within its tenant.  Every
 * batch asks, so the answer comes from the relation cache.
 */
char *
pj_target_key(Relation rel)
{
	char	   *column = other_column(RelationGetRelid(rel),
									  RelationGetIndexAttrBitmap(rel,
																 INDEX_ATTR_BITMAP_PRIMARY_KEY));

	if (column == NULL)
		column = pj_target_key_column(RelationGetRelid(rel));
	if (column == NULL)
		check_key(rel, "A fold finds its row by tenant_id and one key column.");
	return column;
}
