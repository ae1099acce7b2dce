/*
 * fetch.c
 *	  Read rows of our tables by primary key, without SPI.
 *
 * Every append looks up a row or two by key.  A query would cost several times
 * as much, and could only use the transaction's snapshot, while checks of the
 * log need a newer one.
 *
 * The caller supplies the snapshot: GetLatestSnapshot() to see what is
 * committed now, whatever the isolation level, or a dirty one to see
 * uncommitted rows of others.
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
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "base/fetch.h"

static PjTable *tables = NULL;
static Oid	looking_up = InvalidOid;	/* table whose index is being looked
										 * up */

/*
 * Relation cache callback: forget the OID of a table that may have been
 * dropped.
 */
static void
table_changed(Datum arg, Oid relid)
{
	if (relid == InvalidOid || relid == looking_up)
		looking_up = InvalidOid;
	for (PjTable *table = tables; table; table = table->next)
		if (relid == InvalidOid || relid == table->relid)
		{
			table->relid = InvalidOid;
			table->changes++;
		}
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
 * Look up a table and its index.  An invalidation of the table may arrive
 * during the lookup of the index.  Then look up both again, because it may
 * have another index now.
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

/* Returns the OID of a table; also looks up its primary key. */
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

/* Returns the OID of a table's index. */
Oid
pj_indexid(PjTable *table)
{
	(void) pj_relid(table);
	return table->indexid;
}

/* Attribute numbers of keys are those of the index, starting at 1. */
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

/* Set two keys: greater than "after", and not greater than "upto". */
void
pj_key_int8_range(ScanKey keys, AttrNumber attno, int64 after, int64 upto)
{
	ScanKeyInit(&keys[0], attno, BTGreaterStrategyNumber, F_INT8GT,
				Int64GetDatum(after));
	ScanKeyInit(&keys[1], attno, BTLessEqualStrategyNumber, F_INT8LE,
				Int64GetDatum(upto));
}

/* Set a key: not later than a time. */
void
pj_key_time_upto(ScanKey key, AttrNumber attno, TimestampTz time)
{
	ScanKeyInit(key, attno, BTLessEqualStrategyNumber, F_TIMESTAMPTZ_LE,
				TimestampTzGetDatum(time));
}

void
pj_key_text(ScanKey key, AttrNumber attno, Datum value)
{
	ScanKeyInit(key, attno, BTEqualStrategyNumber, F_TEXTEQ, value);
	key->sk_collation = C_COLLATION_OID;
}

/* Set a key: greater than a value. */
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

/* Not greater than a value. */
void
pj_key_text_upto(ScanKey key, AttrNumber attno, Datum value)
{
	ScanKeyInit(key, attno, BTLessEqualStrategyNumber, F_TEXT_LE, value);
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
 * Get the columns of a row.  The arrays are as wide as the table is now,
 * because an operator may have added columns.
 */
void
pj_deform(HeapTuple tuple, TupleDesc desc, Datum **columns, bool **nulls)
{
	*columns = palloc(sizeof(Datum) * desc->natts);
	*nulls = palloc(sizeof(bool) * desc->natts);
	heap_deform_tuple(tuple, desc, *columns, *nulls);
}

/*
 * Start a scan in primary key order.  The snapshot must stay registered, or be
 * static.
 */
void
pj_fetch_begin(PjFetch *fetch, PjTable *table, Snapshot snapshot, int nkeys,
			   ScanKey keys)
{
	fetch->heap = table_open(pj_relid(table), AccessShareLock);

	/*
	 * The index must be opened after the table is locked: REINDEX
	 * CONCURRENTLY may have replaced it, and we receive that invalidation
	 * when we lock the table.
	 */
	fetch->index = index_open(pj_indexid(table), AccessShareLock);

	fetch->slot = table_slot_create(fetch->heap, NULL);
	fetch->scan = pj_begin_index_scan(fetch->heap, fetch->index, snapshot,
									  nkeys);
	index_rescan(fetch->scan, keys, nkeys, NULL, 0);
}

/* Restart the scan with other values for the same number of keys. */
void
pj_fetch_again(PjFetch *fetch, int nkeys, ScanKey keys)
{
	index_rescan(fetch->scan, keys, nkeys, NULL, 0);
}

/* Returns the next row, which belongs to the slot; NULL if there is none. */
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

/* A copy of the row with these keys as it is now, or NULL. */
HeapTuple
pj_fetch_copy(PjTable *table, int nkeys, ScanKey keys)
{
	Snapshot	snapshot;
	PjFetch		fetch;
	HeapTuple	row;

	CommandCounterIncrement();
	snapshot = RegisterSnapshot(GetLatestSnapshot());
	pj_fetch_begin(&fetch, table, snapshot, nkeys, keys);
	row = pj_fetch_next(&fetch, ForwardScanDirection);
	if (row)
		row = heap_copytuple(row);
	pj_fetch_end(&fetch);
	UnregisterSnapshot(snapshot);
	return row;
}
