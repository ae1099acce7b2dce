/*
 * target_query.c
 *	  The only SQL that names the tables a projection writes.
 *
 * Names of tables and columns are spliced into SQL here and nowhere else, and
 * always quoted.
 */
#include "base/compat.h"

#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "registry/target.h"

/* A column's type without its modifier: "character" would mean one of them. */
static char *
column_type(Oid relid, const char *column)
{
	return format_type_extended(get_atttype(relid, get_attnum(relid, column)),
								-1, FORMAT_TYPE_TYPEMOD_GIVEN);
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
	char	   *key = pj_target_key_column(relid);
	char	   *alias = row_alias(relid);

	if (key == NULL)
		pj_target_refuse_altered(projection, table);
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
					is_id(relid, alias, pj_target_key_column(relid), 2));
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
