/*
 * target.c
 *	  The tables a projection writes: what they must look like, and the only
 *	  SQL that names them.
 *
 * Names of tables and columns are spliced into SQL here and nowhere else, and
 * always quoted.
 */
#include "base/compat.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "catalog/catalog.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "nodes/value.h"
#include "partitioning/partdesc.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/reltrigger.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/varlena.h"

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
	if (!pg_class_ownercheck(RelationGetRelid(rel), owner))
		ereport(ERROR,
				errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				errmsg("\"%s\" must be owner of target table \"%s\"",
					   GetUserNameFromId(owner, false), name),
				errhint("A projection's owner must own the tables it writes."));
}

/*
 * A deferrable constraint could be checked after the projection's code has
 * ended, which its restricted context does not allow: whoever appends can
 * defer it.
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

/* Would some of its rows be gone after a crash?  The table is locked. */
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

/* What a target must be at all times, whatever the projection's kind. */
void
pj_target_check_storage(Relation rel)
{
	if (rel->rd_rel->relpersistence == RELPERSISTENCE_TEMP)
		ereport(ERROR,
				errcode(ERRCODE_WRONG_OBJECT_TYPE),
				errmsg("target \"%s\" is a temporary table",
					   RelationGetRelationName(rel)),
				errdetail("A read model must be there for every session."));
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
	pj_target_check_storage(rel);
	if (need == PJ_NEEDS_CHECKPOINT)
		check_checkpoint(rel);
	if (need == PJ_NEEDS_FOLD || need == PJ_NEEDS_LOG_FOLD)
		check_fold(rel, need == PJ_NEEDS_LOG_FOLD);
}

/* Does a table have rows, in its partitions perhaps? */
bool
pj_target_has_rows(Oid relid)
{
	ListCell   *cell;

	foreach(cell, find_all_inheritors(relid, AccessShareLock, NULL))
	{
		Relation	rel = table_open(lfirst_oid(cell), NoLock);
		TableScanDesc scan;
		TupleTableSlot *slot;
		bool		found;

		if (rel->rd_rel->relkind != RELKIND_RELATION)
		{
			table_close(rel, NoLock);
			continue;
		}
		slot = table_slot_create(rel, NULL);
		scan = table_beginscan(rel, GetActiveSnapshot(), 0, NULL);
		found = table_scan_getnextslot(scan, ForwardScanDirection, slot);
		table_endscan(scan);
		ExecDropSingleTupleTableSlot(slot);
		table_close(rel, NoLock);
		if (found)
			return true;
	}
	return false;
}

/* Can a name in the registry be read: is it "name" or "schema.name"? */
bool
pj_name_is_readable(const char *name)
{
	List	   *parts;

	return SplitIdentifierString(pstrdup(name), '.', &parts) &&
		parts != NIL && list_length(parts) <= 2;
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

/* Is a table one of the projection's targets? */
bool
pj_target_is(const PjProjection *projection, Oid relid)
{
	for (int i = 0; i < pj_target_count(projection); i++)
		if (pj_target_find(projection, i) == relid)
			return true;
	return false;
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

/*
 * A table's name, qualified and quoted; NULL if it is gone.  It need not be
 * locked, so that it may go at any time, and its schema with it.
 */
char *
pj_target_find_name(Oid relid)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	Form_pg_class table;
	char	   *schema,
			   *name = NULL;

	if (!HeapTupleIsValid(tuple))
		return NULL;
	table = (Form_pg_class) GETSTRUCT(tuple);
	schema = get_namespace_name(table->relnamespace);
	if (schema)
		name = quote_qualified_identifier(schema, NameStr(table->relname));
	ReleaseSysCache(tuple);
	return name;
}

/* The same; an error if it is gone. */
char *
pj_target_name(Oid relid)
{
	char	   *name = pj_target_find_name(relid);

	if (name == NULL)
		ereport(ERROR,
				errcode(ERRCODE_UNDEFINED_TABLE),
				errmsg("target table with OID %u has just been dropped",
					   relid));
	return name;
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
 * A column as text, written as its type writes it: a cast may be a function of
 * a user's, which need not tell all values apart.
 */
static char *
text_of(Oid relid, const char *alias, const char *column)
{
	Oid			type = get_atttype(relid, get_attnum(relid, column));
	const char *name = quote_identifier(column);

	if (type == TEXTOID || type == VARCHAROID)
		return psprintf("%s.%s", alias, name);
	if (getBaseType(type) == BPCHAROID)
		return psprintf("%s.%s::pg_catalog.text", alias, name);
	return psprintf("pg_catalog.concat(%s.%s)", alias, name);
}

/*
 * Is a column the id $n?  To the column's collation, or type, other ids may be
 * equal to it, but they are others.  The first comparison finds an index.
 */
static char *
is_id(Oid relid, const char *alias, const char *column, int n)
{
	return psprintf("%s.%s = $%d::%s AND %s COLLATE pg_catalog.\"C\""
					" OPERATOR(pg_catalog.=) $%d", alias,
					quote_identifier(column), n, column_type(relid, column),
					text_of(relid, alias, column), n);
}

static char *
of_tenant(Oid relid, const char *alias)
{
	return is_id(relid, alias, "tenant_id", 1);
}

/* A name for the table's rows that none of its columns has. */
static char *
row_alias(Oid relid)
{
	char	   *alias = "t";

	while (get_attnum(relid, alias) != InvalidAttrNumber)
		alias = psprintf("%s_", alias);
	return alias;
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
	char	   *alias = row_alias(relid);

	if (key == NULL)
		refuse_altered(projection, table);
	return psprintf("SELECT last_event_version::bigint, last_event_id::uuid"
					" FROM %s %s WHERE %s AND %s", table, alias,
					of_tenant(relid, alias), is_id(relid, alias, key, 2));
}

/* Removes the rows of tenant $1, or of its aggregate $2. */
char *
pj_target_delete_query(Oid relid, bool aggregate)
{
	char	   *alias = row_alias(relid);
	char	   *all = psprintf("DELETE FROM %s %s WHERE %s",
							   pj_target_name(relid), alias,
							   of_tenant(relid, alias));

	if (!aggregate)
		return all;
	return psprintf("%s AND %s", all,
					is_id(relid, alias, key_column(relid), 2));
}

/* A list of the columns that count, of those wanted, or of all. */
static char *
column_list(Relation rel, const char *alias, const Bitmapset *wanted,
			const PjProjection *projection)
{
	StringInfoData list;

	initStringInfo(&list);
	for (int i = 0; i < RelationGetNumberOfAttributes(rel); i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(RelationGetDescr(rel), i);
		const char *name = NameStr(attribute->attname);

		if (attribute->attisdropped || pj_options_ignore(&projection->options, name) ||
			(wanted && !bms_is_member(i + 1 - FirstLowInvalidHeapAttributeNumber,
									  wanted)))
			continue;
		appendStringInfo(&list, "%s%s.%s", list.len ? ", " : "", alias,
						 quote_identifier(name));
	}
	return list.data;
}

/* All columns in their places, with a null for each that was dropped. */
static char *
columns_in_place(Relation rel, const char *alias)
{
	StringInfoData list;

	initStringInfo(&list);
	for (int i = 0; i < RelationGetNumberOfAttributes(rel); i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(RelationGetDescr(rel), i);

		if (attribute->attisdropped)
			appendStringInfoString(&list, ", NULL");
		else
			appendStringInfo(&list, ", %s.%s", alias,
							 quote_identifier(NameStr(attribute->attname)));
	}
	return list.data;
}

/*
 * The columns by which a row is known again: those of the primary key, if all
 * of them count; else NULL.
 */
static Bitmapset *
identity_columns(Relation rel, const PjProjection *projection)
{
	Bitmapset  *key = RelationGetIndexAttrBitmap(rel,
												 INDEX_ATTR_BITMAP_PRIMARY_KEY);
	int			member = -1;

	while ((member = bms_next_member(key, member)) >= 0)
		if (pj_options_ignore(&projection->options,
					   get_attname(RelationGetRelid(rel),
								   member + FirstLowInvalidHeapAttributeNumber,
								   false)))
			return NULL;
	return bms_is_empty(key) ? NULL : key;
}

/*
 * The rows of tenant $1, or only that of key $2.  Columns: the key as text, null
 * if there is none by which rows are known again; all columns that count as
 * text, and the row as jsonb, both null unless "shown"; then the table's columns,
 * each in its place.
 */
char *
pj_target_rows_query(Relation rel, const PjProjection *projection, bool shown,
					 bool one_key)
{
	Oid			relid = RelationGetRelid(rel);
	char	   *alias = row_alias(relid);
	Bitmapset  *identity = identity_columns(rel, projection);
	char	   *query;

	query = psprintf("SELECT %s, %s, %s%s FROM %s %s WHERE %s",
					 identity ?
					 psprintf("ROW(%s)::pg_catalog.text",
							  column_list(rel, alias, identity, projection)) :
					 "NULL::pg_catalog.text",
					 shown ?
					 psprintf("ROW(%s)::pg_catalog.text",
							  column_list(rel, alias, NULL, projection)) :
					 "NULL::pg_catalog.text",
					 shown ? psprintf("pg_catalog.to_jsonb(%s)", alias) :
					 "NULL::pg_catalog.jsonb",
					 columns_in_place(rel, alias), pj_target_name(relid),
					 alias, of_tenant(relid, alias));
	if (!one_key)
		return query;
	if (pj_key_is_aggregate(projection->key))
		return psprintf("%s AND %s", query,
						is_id(relid, alias, pj_target_key(rel), 2));
	return psprintf("%s AND %s.%s = $2::%s", query, alias,
					quote_identifier(pj_target_key(rel)),
					column_type(relid, pj_target_key(rel)));
}

/* A row, if there is any of tenant $1. */
char *
pj_target_exists_query(Oid relid)
{
	char	   *alias = row_alias(relid);

	return psprintf("SELECT FROM %s %s WHERE %s LIMIT 1",
					pj_target_name(relid), alias, of_tenant(relid, alias));
}

/* The tenants a table has rows of. */
char *
pj_target_tenants_query(Oid relid)
{
	char	   *alias = row_alias(relid);

	return psprintf("SELECT DISTINCT %s COLLATE pg_catalog.\"C\" FROM %s %s"
					" WHERE %s.tenant_id IS NOT NULL",
					text_of(relid, alias, "tenant_id"), pj_target_name(relid),
					alias, alias);
}
