/*
 * target.c
 *	  The tables a projection writes: their names and oids.
 *
 * The registry has both.  The oid says which table it is, and the name what it
 * was called when the row was written; where the row has come from another
 * database the name counts.
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

RangeVar *
pj_parse_table(const char *name)
{
	return makeRangeVarFromNameList(pj_parse_name(name, "target table"));
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
 * The table of a name that is qualified, as all in the registry are; invalid if
 * there is none.  Nobody's rights are asked for, and nothing is locked.
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
		pj_target_refuse_altered(projection,
								 pj_target_noted_name(projection, i));
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
