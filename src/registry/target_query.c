/*
 * target_query.c
 *	  All SQL that contains the names of target tables.
 *
 * Names of tables and columns are inserted into SQL only in this file, and are
 * always quoted.  The comment in each statement is for those who find it in
 * pg_stat_statements.
 */
#include "base/compat.h"

#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "registry/target.h"

/*
 * Returns a column's type without its modifier.  ("character" would mean
 * character(1).)
 */
static char *
column_type(Oid relid, const char *column)
{
	return format_type_extended(get_atttype(relid, get_attnum(relid, column)),
								-1, FORMAT_TYPE_TYPEMOD_GIVEN);
}

/*
 * Returns an expression for a column as text, using the type's output
 * function.  A cast may call a user's function, which might map different
 * values to the same text.
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
 * Returns a condition: the column equals the id $n.  The column's collation or
 * type may treat different ids as equal, so the text is compared as well.  The
 * first comparison can use an index.
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

/* Returns an alias for the table that none of its columns has as a name. */
static char *
row_alias(Oid relid)
{
	char	   *alias = "t";

	while (get_attnum(relid, alias) != InvalidAttrNumber)
		alias = psprintf("%s_", alias);
	return alias;
}

/*
 * Returns the query that reads the checkpoint of the row for ($1 tenant, $2
 * key) of the projection's first target.
 */
char *
pj_target_checkpoint_query(const PjProjection *projection)
{
	Oid			relid = pj_target_oid(projection, 0);
	char	   *table = pj_target_name(relid);
	char	   *key = pj_target_key_column(relid);
	char	   *alias = row_alias(relid);

	if (key == NULL)
		pj_target_refuse_altered(projection, table);
	return psprintf("SELECT /* projector */"
					" last_event_version::bigint, last_event_id::uuid"
					" FROM %s %s WHERE %s AND %s", table, alias,
					of_tenant(relid, alias), is_id(relid, alias, key, 2));
}

/*
 * Returns the command that deletes the rows of tenant $1, or of its aggregate
 * $2.
 */
char *
pj_target_delete_query(Oid relid, bool aggregate)
{
	char	   *alias = row_alias(relid);
	char	   *all = psprintf("DELETE /* projector */ FROM %s %s WHERE %s",
							   pj_target_name(relid), alias,
							   of_tenant(relid, alias));

	if (!aggregate)
		return all;
	return psprintf("%s AND %s", all,
					is_id(relid, alias, pj_target_key_column(relid), 2));
}

/*
 * Returns a list of the wanted columns, or of all, without the ignored ones.
 */
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

/*
 * Returns all columns in order of their numbers, with a null for each that was
 * dropped.
 */
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
 * Returns the columns that identify a row: those of the primary key, if none
 * of them is ignored; else NULL.
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
 * Returns the query for the rows of tenant $1, or only for the one with key
 * $2.  Its columns are: the key as text, null if no key identifies the rows;
 * all columns that are not ignored as text, and the row as jsonb, both null
 * unless "shown"; then the table's columns, each at its own number.
 */
char *
pj_target_rows_query(Relation rel, const PjProjection *projection, bool shown,
					 bool one_key)
{
	Oid			relid = RelationGetRelid(rel);
	char	   *alias = row_alias(relid);
	Bitmapset  *identity = identity_columns(rel, projection);
	char	   *query;

	query = psprintf("SELECT /* projector */ %s, %s, %s%s FROM %s %s WHERE %s",
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

/* Returns the query that finds any one row of tenant $1. */
char *
pj_target_exists_query(Oid relid)
{
	char	   *alias = row_alias(relid);

	return psprintf("SELECT /* projector */ FROM %s %s WHERE %s LIMIT 1",
					pj_target_name(relid), alias, of_tenant(relid, alias));
}

/* Returns the query for the tenants that have rows in a table. */
char *
pj_target_tenants_query(Oid relid)
{
	char	   *alias = row_alias(relid);

	return psprintf("SELECT /* projector */ DISTINCT %s"
					" COLLATE pg_catalog.\"C\" FROM %s %s"
					" WHERE %s.tenant_id IS NOT NULL",
					text_of(relid, alias, "tenant_id"), pj_target_name(relid),
					alias, alias);
}
