/*
 * target.c
 *	  The tables a projection writes: what they must look like, and the only
 *	  SQL that names them.
 *
 * Names of tables and columns are spliced into SQL here and nowhere else, and
 * always quoted.
 */
#include "compat.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/catalog.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/value.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/reltrigger.h"
#include "utils/syscache.h"
#include "utils/varlena.h"

#include "target.h"

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
	if (rel->rd_rel->relpersistence == RELPERSISTENCE_TEMP)
		ereport(ERROR,
				errcode(ERRCODE_WRONG_OBJECT_TYPE),
				errmsg("target \"%s\" is a temporary table", name),
				errdetail("A read model must be there for every session."));
	if (rel->rd_rel->relpersistence == RELPERSISTENCE_UNLOGGED)
		ereport(ERROR,
				errcode(ERRCODE_WRONG_OBJECT_TYPE),
				errmsg("target \"%s\" is an unlogged table", name),
				errdetail("It would be empty after a crash, while its events count as applied."),
				errhint("ALTER TABLE %s SET LOGGED.",
						pj_target_name(RelationGetRelid(rel))));
	if (RelationGetNamespace(rel) == get_namespace_oid("projector", false) ||
		IsSystemRelation(rel))
		ereport(ERROR,
				errcode(ERRCODE_WRONG_OBJECT_TYPE),
				errmsg("target \"%s\" is not a table of yours", name));
	if (!pg_class_ownercheck(RelationGetRelid(rel), owner))
		ereport(ERROR,
				errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				errmsg("\"%s\" must be owner of target table \"%s\"",
					   GetUserNameFromId(owner, false), name),
				errhint("A projection's owner must own the tables it writes."));
}

/*
 * A deferred constraint would be checked after the projection's code has
 * ended, which its restricted context does not allow.
 */
static void
check_no_deferred(Relation rel)
{
	TriggerDesc *triggers = rel->trigdesc;

	for (int i = 0; triggers && i < triggers->numtriggers; i++)
		if (triggers->triggers[i].tginitdeferred)
			ereport(ERROR,
					errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					errmsg("target table \"%s\" has a deferred constraint",
						   RelationGetRelationName(rel)),
					errdetail("Constraints on a read model are checked while it is being written."),
					errhint("Alter the constraint to INITIALLY IMMEDIATE."));
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
 * The column that, with tenant_id, makes up the table's primary key, or NULL
 * if the key is of another form.
 */
static char *
key_column(Oid relid)
{
	AttrNumber	tenant = get_attnum(relid, "tenant_id");
	Oid			constraint;
	Bitmapset  *key = get_primary_key_attnos(relid, false, &constraint);
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
}

/* For a hint: a primary key that is there must go first. */
static char *
drop_key(Relation rel)
{
	Oid			index = RelationGetPrimaryKeyIndex(rel);

	return OidIsValid(index) ?
		psprintf(" DROP CONSTRAINT %s,", quote_identifier(get_rel_name(index))) :
		"";
}

static void
check_key(Relation rel, const char *why)
{
	if (key_column(RelationGetRelid(rel)) == NULL)
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

/* What the runtime needs to keep the rows itself. */
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
	check_column(rel, "tenant_id",
				 psprintf("Every row of a read model belongs to a tenant: ALTER TABLE %s ADD tenant_id text.",
						  pj_target_name(RelationGetRelid(rel))));
	check_no_deferred(rel);
	if (need == PJ_NEEDS_CHECKPOINT)
		check_checkpoint(rel);
	if (need == PJ_NEEDS_FOLD || need == PJ_NEEDS_LOG_FOLD)
		check_fold(rel, need == PJ_NEEDS_LOG_FOLD);
}

/* Take a name apart that may be qualified and quoted. */
List *
pj_parse_name(const char *name, const char *what)
{
	List	   *parts;
	List	   *result = NIL;
	ListCell   *cell;

	if (!SplitIdentifierString(pstrdup(name), '.', &parts) || parts == NIL)
		ereport(ERROR,
				errcode(ERRCODE_INVALID_NAME),
				errmsg("invalid name of a %s: \"%s\"", what, name),
				errhint("Write it as in SQL: name, schema.name, \"Name\"."));
	foreach(cell, parts)
		result = lappend(result, makeString(pstrdup(lfirst(cell))));
	return result;
}

static RangeVar *
parse_table(const char *name)
{
	return makeRangeVarFromNameList(pj_parse_name(name, "target table"));
}

/* Check that a table can be a projection's target, and return its oid. */
Oid
pj_target_check(const char *name, Oid owner, PjTargetNeed need)
{
	RangeVar   *rv = parse_table(name);
	Oid			relid = RangeVarGetRelid(rv, AccessShareLock, true);

	if (!OidIsValid(relid))
		ereport(ERROR,
				errcode(ERRCODE_UNDEFINED_TABLE),
				errmsg("target table \"%s\" does not exist", name),
				errhint("Create the table first."));

	pj_target_recheck(relid, owner, need);
	return relid;
}

/* The same for a table that is known and locked. */
void
pj_target_recheck(Oid relid, Oid owner, PjTargetNeed need)
{
	Relation	rel = table_open(relid, NoLock);

	check_table(rel, owner, need);
	table_close(rel, NoLock);
}

/* A column's type without its modifier: "character" would mean one of them. */
static char *
column_type(Oid relid, const char *column)
{
	return format_type_extended(get_atttype(relid, get_attnum(relid, column)),
								-1, FORMAT_TYPE_TYPEMOD_GIVEN);
}

/* The i'th target's name, as the registry has it. */
char *
pj_target_noted_name(const PjProjection *projection, int i)
{
	Datum	   *names;
	int			n;

	deconstruct_array(DatumGetArrayTypeP(projection->targets), TEXTOID, -1,
					  false, TYPALIGN_INT, &names, NULL, &n);
	return TextDatumGetCString(names[i]);
}

static void
refuse_altered(const PjProjection *projection, const char *table)
{
	ereport(ERROR,
			errcode(ERRCODE_UNDEFINED_TABLE),
			errmsg("target table %s of projection \"%s\" has been dropped or altered",
				   table, projection->name),
			errhint("Restore it, or change the projection with projector_alter."));
}

/*
 * The table of a name that is qualified, as all in the registry are; invalid if
 * there is none.  Nobody's rights are asked for, and nothing is locked.
 */
Oid
pj_target_by_name(const char *name)
{
	RangeVar   *rv = parse_table(name);
	Oid			schema = rv->schemaname ?
		get_namespace_oid(rv->schemaname, true) : InvalidOid;

	return OidIsValid(schema) ? get_relname_relid(rv->relname, schema) :
		InvalidOid;
}

/*
 * A projection's i'th target, counted from 0; invalid if it is gone.  Nothing
 * is locked.
 */
Oid
pj_target_find(const PjProjection *projection, int i)
{
	Oid			relid;

	if (!projection->resolved)
		return pj_target_by_name(pj_target_noted_name(projection, i));
	relid = projection->target_oids[i];
	return SearchSysCacheExists1(RELOID, ObjectIdGetDatum(relid)) ?
		relid : InvalidOid;
}

/* The same, locked; an error if it is gone. */
Oid
pj_target_oid(const PjProjection *projection, int i)
{
	Oid			relid = pj_target_find(projection, i);

	if (OidIsValid(relid))
		LockRelationOid(relid, AccessShareLock);

	/* with the lock it stays, if it is still there */
	if (!OidIsValid(relid) ||
		!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(relid)))
		refuse_altered(projection, pj_target_noted_name(projection, i));
	return relid;
}

/* A table's name, qualified and quoted. */
char *
pj_target_name(Oid relid)
{
	return quote_qualified_identifier(get_namespace_name(get_rel_namespace(relid)),
									  get_rel_name(relid));
}

/*
 * Check a fold's target again, as it is now: it may have been altered or given
 * away, or be another table of the same name.
 */
void
pj_target_check_fold(Relation rel, Oid owner, bool several)
{
	check_table(rel, owner, several ? PJ_NEEDS_LOG_FOLD : PJ_NEEDS_FOLD);
}

int
pj_target_count(const PjProjection *projection)
{
	return ArrayGetNItems(ARR_NDIM(DatumGetArrayTypeP(projection->targets)),
						  ARR_DIMS(DatumGetArrayTypeP(projection->targets)));
}

/* The role that owns a table. */
Oid
pj_target_owner(Oid relid)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	Oid			owner;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for relation %u", relid);
	owner = ((Form_pg_class) GETSTRUCT(tuple))->relowner;
	ReleaseSysCache(tuple);
	return owner;
}

/* The column that identifies a fold's row within its tenant. */
char *
pj_target_key(Relation rel)
{
	char	   *column = key_column(RelationGetRelid(rel));

	if (column == NULL)
		check_key(rel, "A fold finds its row by tenant_id and one key column.");
	return column;
}

/*
 * The query that reads the checkpoint of the row for ($1 tenant, $2 key) of
 * the projection's first target.
 */
char *
pj_target_checkpoint_query(const PjProjection *projection)
{
	Oid			relid = pj_target_oid(projection, 0);
	char	   *table = pj_target_name(relid);
	char	   *key = key_column(relid);

	if (key == NULL)
		refuse_altered(projection, table);
	return psprintf("SELECT last_event_version::bigint, last_event_id::uuid"
					" FROM %s WHERE tenant_id = $1::%s AND %s = $2::%s",
					table,
					column_type(relid, "tenant_id"), quote_identifier(key),
					column_type(relid, key));
}

/*
 * Is it tenant $1's row?  To the column's collation, or type, other tenants may
 * be equal to it, but they are others.
 */
static char *
of_tenant(Oid relid)
{
	return psprintf("t.tenant_id = $1::%s AND t.tenant_id::pg_catalog.text"
					" COLLATE pg_catalog.\"C\" = $1",
					column_type(relid, "tenant_id"));
}

/* Removes the rows of tenant $1, or of its aggregate $2. */
char *
pj_target_delete_query(Oid relid, bool aggregate)
{
	char	   *key = aggregate ? key_column(relid) : NULL;
	char	   *all = psprintf("DELETE FROM %s t WHERE %s",
							   pj_target_name(relid), of_tenant(relid));

	if (!aggregate)
		return all;
	return psprintf("%s AND t.%s = $2::%s", all, quote_identifier(key),
					column_type(relid, key));
}

/* The rows of tenant $1. */
char *
pj_target_rows_query(Oid relid)
{
	return psprintf("SELECT * FROM %s t WHERE %s", pj_target_name(relid),
					of_tenant(relid));
}

/* A list of columns, each with the table's alias t. */
static char *
column_list(Relation rel, const Bitmapset *wanted, const char **ignored)
{
	StringInfoData list;

	initStringInfo(&list);
	for (int i = 0; i < RelationGetNumberOfAttributes(rel); i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(RelationGetDescr(rel), i);
		bool		out = attribute->attisdropped;

		if (wanted && !bms_is_member(i + 1 - FirstLowInvalidHeapAttributeNumber,
									 wanted))
			out = true;
		for (int j = 0; ignored && ignored[j]; j++)
			out = out || strcmp(NameStr(attribute->attname), ignored[j]) == 0;
		if (!out)
			appendStringInfo(&list, "%st.%s", list.len ? ", " : "",
							 quote_identifier(NameStr(attribute->attname)));
	}
	return list.data;
}

/*
 * The rows of tenant $1 as text, with a key that tells which is which: the
 * primary key, or without one the row itself and which of its like it is.  Of
 * a key $2, only that row, if there is one.
 */
char *
pj_target_images_query(Oid relid, const PjProjection *projection,
					   const char *key_of_one)
{
	Relation	rel = table_open(relid, AccessShareLock);
	Oid			constraint;
	Bitmapset  *key = get_primary_key_attnos(relid, false, &constraint);
	char	   *row = psprintf("ROW(%s)::text",
							   column_list(rel, NULL,
										   projection->options.digest_ignore));
	char	   *name;
	char	   *query;

	if (key == NULL && RelationGetPrimaryKeyIndex(rel) != InvalidOid)
		key = RelationGetIndexAttrBitmap(rel, INDEX_ATTR_BITMAP_PRIMARY_KEY);
	name = key ? psprintf("ROW(%s)::text", column_list(rel, key, NULL)) :
		psprintf("%s || row_number() OVER (PARTITION BY %s)", row, row);
	query = psprintf("SELECT %s AS key, %s AS image, to_jsonb(t) AS js"
					 " FROM %s t WHERE %s%s", name, row,
					 pj_target_name(relid), of_tenant(relid),
					 key_of_one ? psprintf(" AND t.%s = $2::%s",
										   quote_identifier(key_of_one),
										   column_type(relid, key_of_one)) : "");
	table_close(rel, NoLock);
	return query;
}

/* The tenants a table has rows of. */
char *
pj_target_tenants_query(Oid relid)
{
	return psprintf("SELECT DISTINCT tenant_id::text COLLATE \"C\" FROM %s"
					" WHERE tenant_id IS NOT NULL", pj_target_name(relid));
}
