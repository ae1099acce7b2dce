/*
 * target.c
 *	  The target tables of a projection: their names and OIDs.
 *
 * The registry has both.  The OID identifies the table; the name is what it
 * was called when the registry row was written.  If the row comes from another
 * database, the name is used instead.
 */
#include "base/compat.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type.h"
#include "executor/tuptable.h"
#include "nodes/value.h"
#include "storage/lmgr.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/varlena.h"

#include "registry/target.h"

/* Does a table have rows, including those in its partitions? */
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

/* Can a name from the registry be parsed as "name" or "schema.name"? */
bool
pj_name_is_readable(const char *name)
{
	List	   *parts;

	return SplitIdentifierString(pstrdup(name), '.', &parts) &&
		parts != NIL && list_length(parts) <= 2;
}

/* Parse a name that may be qualified and quoted. */
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

RangeVar *
pj_parse_table(const char *name)
{
	return makeRangeVarFromNameList(pj_parse_name(name, "target table"));
}

/* Returns the i'th target's name, as stored in the registry. */
char *
pj_target_noted_name(const PjProjection *projection, int i)
{
	Datum	   *names;
	int			n;

	deconstruct_array(DatumGetArrayTypeP(projection->targets), TEXTOID, -1,
					  false, TYPALIGN_INT, &names, NULL, &n);
	return TextDatumGetCString(names[i]);
}

void
pj_target_refuse_altered(const PjProjection *projection, const char *table)
{
	ereport(ERROR,
			errcode(ERRCODE_UNDEFINED_TABLE),
			errmsg("target table %s of projection \"%s\" has been dropped or altered",
				   table, projection->name),
			errhint("Restore it, or change the projection with projector_alter."));
}

/*
 * Look up a table by qualified name; all names in the registry are qualified.
 * Returns InvalidOid if there is none.  No privileges are checked and nothing
 * is locked.
 */
Oid
pj_target_by_name(const char *name)
{
	RangeVar   *rv = pj_parse_table(name);
	Oid			schema = rv->schemaname ?
	get_namespace_oid(rv->schemaname, true) : InvalidOid;

	return OidIsValid(schema) ? get_relname_relid(rv->relname, schema) :
		InvalidOid;
}

/*
 * Returns a projection's i'th target, counted from 0; InvalidOid if it no
 * longer exists.  Nothing is locked.
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

/*
 * Returns a projection's i'th target, locked; raises an error if it no longer
 * exists.
 */
Oid
pj_target_oid(const PjProjection *projection, int i)
{
	Oid			relid = pj_target_find(projection, i);

	if (OidIsValid(relid))
		LockRelationOid(relid, AccessShareLock);

	/* we have the lock now, so check that it still exists */
	if (!OidIsValid(relid) ||
		!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(relid)))
		pj_target_refuse_altered(projection,
								 pj_target_noted_name(projection, i));
	return relid;
}

/*
 * Returns a table's name, qualified and quoted; NULL if the table no longer
 * exists.  The table need not be locked, so it and its schema may be dropped
 * at any time.
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

/*
 * Like pj_target_find_name, but raises an error if the table no longer exists.
 */
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

int
pj_target_count(const PjProjection *projection)
{
	return ArrayGetNItems(ARR_NDIM(DatumGetArrayTypeP(projection->targets)),
						  ARR_DIMS(DatumGetArrayTypeP(projection->targets)));
}

/* Returns the role that owns a table. */
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
