/*
 * fetch.c
 *	  Reading rows of our tables by index, without SPI.
 *
 * Every append looks up a row or two by key.  A query would cost several
 * times what the lookup costs, and could not look past the transaction's
 * snapshot, which the checks of a log must do.
 *
 * The caller gives the snapshot: GetLatestSnapshot() to see what is
 * committed now, whatever the isolation level, or a dirty one to see what
 * others are about to commit.
 */
#include "compat.h"

#include "access/relation.h"
#include "access/table.h"
#include "catalog/namespace.h"
#include "catalog/pg_collation.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

#include "fetch.h"

/* The oid of a table or index in schema projector. */
Oid
pj_relid(const char *name)
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

void
pj_key_text(ScanKey key, AttrNumber attno, Datum value)
{
	ScanKeyInit(key, attno, BTEqualStrategyNumber, F_TEXTEQ, value);
	key->sk_collation = C_COLLATION_OID;
}

/*
 * Start reading in the order of an index.  Rows come as the snapshot, which
 * must stay registered or static, sees them.
 */
void
pj_fetch_begin(PjFetch *fetch, const char *table, const char *index,
			   Snapshot snapshot, int nkeys, ScanKey keys)
{
	fetch->heap = table_open(pj_relid(table), AccessShareLock);
	fetch->index = index_open(pj_relid(index), AccessShareLock);

	/*
	 * systable_beginscan_ordered() wants keys by column of the table and maps
	 * them to the index's columns; ours name the latter.
	 */
	for (int i = 0; i < nkeys; i++)
		keys[i].sk_attno =
			fetch->index->rd_index->indkey.values[keys[i].sk_attno - 1];

	fetch->scan = systable_beginscan_ordered(fetch->heap, fetch->index,
											 snapshot, nkeys, keys);
}

HeapTuple
pj_fetch_next(PjFetch *fetch, ScanDirection direction)
{
	return systable_getnext_ordered(fetch->scan, direction);
}

void
pj_fetch_end(PjFetch *fetch)
{
	systable_endscan_ordered(fetch->scan);
	index_close(fetch->index, AccessShareLock);
	table_close(fetch->heap, AccessShareLock);
}
