/*
 * fetch.c
 *	  Reading rows of our tables by primary key, without SPI.
 *
 * Every append looks up a row or two by key.  A query would cost several
 * times what the lookup costs, and could not look past the transaction's
 * snapshot, which the checks of a log must do.
 *
 * The caller gives the snapshot: GetLatestSnapshot() to see what is
 * committed now, whatever the isolation level, or a dirty one to see what
 * others are about to commit.
 */
#include "base/compat.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/tableam.h"
#include "catalog/namespace.h"
#include "catalog/pg_collation.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"

#include "base/fetch.h"

static PjTable *tables = NULL;
static Oid	looking_up = InvalidOid;	/* a table whose index is not known
										 * yet */

/* Relation cache callback: forget the oid of a table that may be gone. */
static void
table_changed(Datum arg, Oid relid)
{
	if (relid == InvalidOid || relid == looking_up)
		looking_up = InvalidOid;
	for (PjTable *table = tables; table; table = table->next)
		if (relid == InvalidOid || relid == table->relid)
			table->relid = InvalidOid;
}

static Oid
lookup_relation(const char *name)
{
	Oid			relid = get_relname_relid(name,
										  get_namespace_oid("projector", false));

	if (!OidIsValid(relid))
		ereport(ERROR,
				errcode(ERRCODE_UNDEFINED_TABLE),
				errmsg("relation \"projector.%s\" does not exist", name),
				errhint("Run CREATE EXTENSION projector."));
	return relid;
}

/*
 * Find a table and its index.  While the index is looked up we may hear that
 * the table has changed: then it may have another one by now.
 */
static void
look_up(PjTable *table)
{
	Oid			indexid = InvalidOid;

	do
	{
		looking_up = lookup_relation(table->name);
		if (table->index_name)
			indexid = lookup_relation(table->index_name);
	} while (!OidIsValid(looking_up));
	table->indexid = indexid;
	table->relid = looking_up;
}

/* The oid of a table, and with it that of its primary key. */
Oid
pj_relid(PjTable *table)
{
	if (!table->registered)
	{
		if (tables == NULL)
			CacheRegisterRelcacheCallback(table_changed, (Datum) 0);
		table->next = tables;
		tables = table;
		table->registered = true;
	}
	if (!OidIsValid(table->relid))
		look_up(table);
	return table->relid;
}

/* The oid of its index. */
Oid
pj_indexid(PjTable *table)
{
	(void) pj_relid(table);
	return table->indexid;
}

/*
 * Keys name columns of the index, counted from 1.
 */
void
pj_key_int4(ScanKey key, AttrNumber attno, int32 value)
{
	ScanKeyInit(key, attno, BTEqualStrategyNumber, F_INT4EQ,
				Int32GetDatum(value));
}

void
pj_key_int8(ScanKey key, AttrNumber attno, int64 value)
{
	ScanKeyInit(key, attno, BTEqualStrategyNumber, F_INT8EQ,
				Int64GetDatum(value));
}

/* Two keys: greater than one value, and not greater than the other. */
void
pj_key_int8_range(ScanKey keys, AttrNumber attno, int64 after, int64 upto)
{
	ScanKeyInit(&keys[0], attno, BTGreaterStrategyNumber, F_INT8GT,
				Int64GetDatum(after));
	ScanKeyInit(&keys[1], attno, BTLessEqualStrategyNumber, F_INT8LE,
				Int64GetDatum(upto));
}

void
pj_key_text(ScanKey key, AttrNumber attno, Datum value)
{
	ScanKeyInit(key, attno, BTEqualStrategyNumber, F_TEXTEQ, value);
	key->sk_collation = C_COLLATION_OID;
}

/* Greater than a value. */
void
pj_key_text_after(ScanKey key, AttrNumber attno, Datum value)
{
	ScanKeyInit(key, attno, BTGreaterStrategyNumber, F_TEXT_GT, value);
	key->sk_collation = C_COLLATION_OID;
}

/* Not less than a value. */
void
pj_key_text_from(ScanKey key, AttrNumber attno, Datum value)
{
	ScanKeyInit(key, attno, BTGreaterEqualStrategyNumber, F_TEXT_GE, value);
	key->sk_collation = C_COLLATION_OID;
}

/* Less than a value. */
void
pj_key_text_before(ScanKey key, AttrNumber attno, Datum value)
{
	ScanKeyInit(key, attno, BTLessStrategyNumber, F_TEXT_LT, value);
	key->sk_collation = C_COLLATION_OID;
}

/*
 * Take a row apart.  The arrays are as wide as the table is now: an operator
 * may have added columns to it.
 */
void
pj_deform(HeapTuple tuple, TupleDesc desc, Datum **columns, bool **nulls)
{
	*columns = palloc(sizeof(Datum) * desc->natts);
	*nulls = palloc(sizeof(bool) * desc->natts);
	heap_deform_tuple(tuple, desc, *columns, *nulls);
}

/*
 * Start reading in the order of the primary key.  Rows come as the snapshot,
 * which must stay registered or static, sees them.
 */
void
pj_fetch_begin(PjFetch *fetch, PjTable *table, Snapshot snapshot, int nkeys,
			   ScanKey keys)
{
	fetch->heap = table_open(pj_relid(table), AccessShareLock);

	/*
	 * Not before: REINDEX CONCURRENTLY may have put another index in its
	 * place, of which we hear when we lock the table.
	 */
	fetch->index = index_open(pj_indexid(table), AccessShareLock);

	fetch->slot = table_slot_create(fetch->heap, NULL);
	fetch->scan = index_beginscan(fetch->heap, fetch->index, snapshot, nkeys,
								  0);
	index_rescan(fetch->scan, keys, nkeys, NULL, 0);
}

/* Start again with as many keys, for another row. */
void
pj_fetch_again(PjFetch *fetch, int nkeys, ScanKey keys)
{
	index_rescan(fetch->scan, keys, nkeys, NULL, 0);
}

/* The next row, which belongs to the slot; NULL if there is none. */
HeapTuple
pj_fetch_next(PjFetch *fetch, ScanDirection direction)
{
	bool		copied;

	if (!index_getnext_slot(fetch->scan, direction, fetch->slot))
		return NULL;
	return ExecFetchSlotHeapTuple(fetch->slot, false, &copied);
}

void
pj_fetch_end(PjFetch *fetch)
{
	index_endscan(fetch->scan);
	ExecDropSingleTupleTableSlot(fetch->slot);
	index_close(fetch->index, AccessShareLock);
	table_close(fetch->heap, AccessShareLock);
}
