/*
 * build_merge.c
 *	  Replace a fold's live rows by those of a build.
 *
 * Both tables are read side by side in the order of their primary key, and
 * differences are written to the target: as few rows as possible, with INSERT,
 * UPDATE and DELETE as in fold_row.c.  So the target remains the same table,
 * readers see all changes at once, and foreign keys to unchanged rows are not
 * affected.
 *
 * Rows are written one by one, so a row may get a unique value that another
 * row still has.  Then all rows that differ are deleted before the new ones
 * are inserted.  If triggers or foreign keys of other tables would see that,
 * the target is not built in a separate table at all.
 */
#include "base/compat.h"

#include "access/genam.h"
#include "access/nbtree.h"
#include "access/table.h"
#include "access/tableam.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "base/lock.h"
#include "base/subxact.h"
#include "kinds/fold_row.h"
#include "rebuild/build_merge.h"
#include "registry/target.h"
#include "state/failure.h"

/* Number of rows written at a time. */
#define CHUNK_ROWS	1000

/* One of the two tables, read in key order. */
typedef struct Side
{
	Relation	heap;
	Relation	index;
	IndexScanDesc scan;
	Snapshot	snapshot;
	TupleTableSlot *slot;
	bool		found;			/* the slot has a row */
} Side;

/* What a pass over the tables does. */
typedef enum MergePart
{
	MERGE_ALL,
	MERGE_REMOVE				/* delete rows that must go, and those that
								 * differ */
} MergePart;

typedef struct Merge
{
	const PjProjection *projection;
	Oid			aside;
	const char *tenant;
	MergePart	part;

	PjFoldTarget target;
	Side		live;
	Side		built;
	FmgrInfo   *compare;		/* compares two keys */
	Oid			collation;

	/*
	 * rows to be written next, and their new contents; NULL if the row must
	 * go
	 */
	PjFoldRow	rows[CHUNK_ROWS];
	HeapTuple	wanted[CHUNK_ROWS];
	int			nrows;
	MemoryContext chunk;		/* for these rows */
} Merge;

/* ---- reading ---- */

/*
 * Read the tenant's next row.  The index may return rows of other tenants that
 * its comparison treats as equal; skip them.
 */
static void
advance(Merge *merge, Side *side)
{
	AttrNumber	tenant = merge->target.columns.tenant;
	bool		isnull;

	do
	{
		CHECK_FOR_INTERRUPTS();
		side->found = index_getnext_slot(side->scan, ForwardScanDirection,
										 side->slot);
	} while (side->found &&
			 !pj_fold_same(&merge->target, tenant,
						   slot_getattr(side->slot, tenant, &isnull),
						   merge->target.tenant));
}

static void
begin_side(Merge *merge, Side *side, Oid relid)
{
	ScanKeyData key;

	side->heap = table_open(relid, AccessShareLock);
	side->index = index_open(pj_primary_key(side->heap),
							 AccessShareLock);
	side->slot = table_slot_create(side->heap, NULL);
	side->snapshot = RegisterSnapshot(GetLatestSnapshot());
	side->scan = pj_begin_index_scan(side->heap, side->index,
									 side->snapshot, 1);
	pj_fold_key(side->index, merge->target.columns.tenant,
				merge->target.tenant, &key);
	index_rescan(side->scan, &key, 1, NULL, 0);
	advance(merge, side);
}

static void
end_side(Side *side)
{
	index_endscan(side->scan);
	UnregisterSnapshot(side->snapshot);
	ExecDropSingleTupleTableSlot(side->slot);
	index_close(side->index, NoLock);
	table_close(side->heap, NoLock);
}

static Datum
key_of(const Merge *merge, const Side *side)
{
	bool		isnull;

	return slot_getattr(side->slot, merge->target.columns.key, &isnull);
}

/*
 * Which key comes first?  Less than 0: that of the build; greater: the live
 * one.
 */
static int
compare_sides(const Merge *merge)
{
	if (!merge->built.found)
		return 1;
	if (!merge->live.found)
		return -1;
	return DatumGetInt32(FunctionCall2Coll(merge->compare, merge->collation,
										   key_of(merge, &merge->built),
										   key_of(merge, &merge->live)));
}

/* Is every column that is stored the same? */
static bool
is_same_row(TupleDesc desc, const Datum *a, const bool *a_nulls,
			const Datum *b, const bool *b_nulls)
{
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(desc, i);

		if (attribute->attisdropped || pj_is_virtual(attribute))
			continue;
		if (a_nulls[i] != b_nulls[i] ||
			(!a_nulls[i] && !datum_image_eq(a[i], b[i], attribute->attbyval,
											attribute->attlen)))
			return false;
	}
	return true;
}

/* ---- writing ---- */

/* Set the new contents of a row that has been read and locked. */
static void
decide_row(Merge *merge, PjFoldRow *row, HeapTuple wanted)
{
	TupleDesc	desc = merge->target.desc;
	Datum	   *values;
	bool	   *nulls;

	if (wanted == NULL)
	{
		row->changed = row->stored;
		row->present = false;
		return;
	}
	values = palloc(sizeof(Datum) * desc->natts);
	nulls = palloc(sizeof(bool) * desc->natts);
	heap_deform_tuple(wanted, desc, values, nulls);
	row->changed = !row->stored ||
		!is_same_row(desc, values, nulls, row->values, row->nulls);
	row->present = true;
	memcpy(row->values, values, sizeof(Datum) * desc->natts);
	memcpy(row->nulls, nulls, sizeof(bool) * desc->natts);
}

/*
 * Write the rows that differ.  They are read again and locked, because another
 * session may have changed them by hand.
 */
static void
flush(Merge *merge)
{
	MemoryContext caller = MemoryContextSwitchTo(merge->chunk);

	merge->target.context = merge->chunk;
	pj_fold_load(&merge->target, merge->rows, merge->nrows);
	for (int i = 0; i < merge->nrows; i++)
		decide_row(merge, &merge->rows[i], merge->wanted[i]);
	pj_fold_write(&merge->target, merge->rows, merge->nrows);
	merge->nrows = 0;
	MemoryContextSwitchTo(caller);
	MemoryContextReset(merge->chunk);
}

/*
 * Add a row of one side that differs; "wanted" is a slot with its new
 * contents, or NULL.
 */
static void
add_row(Merge *merge, const Side *side, TupleTableSlot *wanted)
{
	MemoryContext caller = MemoryContextSwitchTo(merge->chunk);
	PjFoldRow  *row = &merge->rows[merge->nrows];
	Form_pg_attribute attribute =
	TupleDescAttr(merge->target.desc, merge->target.columns.key - 1);

	memset(row, 0, sizeof(*row));
	row->key = datumCopy(key_of(merge, side), attribute->attbyval,
						 attribute->attlen);
	merge->wanted[merge->nrows++] = wanted ? ExecCopySlotHeapTuple(wanted) :
		NULL;
	MemoryContextSwitchTo(caller);
	if (merge->nrows == CHUNK_ROWS)
		flush(merge);
}

/* ---- merging ---- */

static bool
slots_differ(const Merge *merge)
{
	TupleTableSlot *built = merge->built.slot;
	TupleTableSlot *live = merge->live.slot;

	slot_getallattrs(built);
	slot_getallattrs(live);
	return !is_same_row(merge->target.desc, built->tts_values,
						built->tts_isnull, live->tts_values,
						live->tts_isnull);
}

/* Read both sides once. */
static void
merge_sides(Merge *merge)
{
	begin_side(merge, &merge->live, RelationGetRelid(merge->target.heap));
	begin_side(merge, &merge->built, merge->aside);
	while (merge->live.found || merge->built.found)
	{
		int			order = compare_sides(merge);

		if (order > 0)
			add_row(merge, &merge->live, NULL);
		else if (order < 0 && merge->part == MERGE_ALL)
			add_row(merge, &merge->built, merge->built.slot);
		else if (order == 0 && slots_differ(merge))
			add_row(merge, &merge->live, merge->part == MERGE_ALL ?
					merge->built.slot : NULL);
		if (order >= 0)
			advance(merge, &merge->live);
		if (order <= 0)
			advance(merge, &merge->built);
	}
	if (merge->nrows > 0)
		flush(merge);
	end_side(&merge->built);
	end_side(&merge->live);
}

/*
 * The part that runs as the projection's owner, because it may fire triggers.
 */
static void
run_merge(void *arg)
{
	Merge	   *merge = arg;
	int			column = 0;

	PushActiveSnapshot(GetTransactionSnapshot());
	merge->chunk = AllocSetContextCreate(CurrentMemoryContext,
										 "projector merge",
										 ALLOCSET_DEFAULT_SIZES);
	pj_fold_open(&merge->target, merge->projection,
				 pj_target_oid(merge->projection, 0), InvalidOid,
				 merge->tenant);
	while (merge->target.index->rd_index->indkey.values[column] !=
		   merge->target.columns.key)
		column++;
	merge->compare = index_getprocinfo(merge->target.index, column + 1,
									   BTORDER_PROC);
	merge->collation = merge->target.index->rd_indcollation[column];
	merge->nrows = 0;
	merge_sides(merge);
	pj_fold_close(&merge->target);
	MemoryContextDelete(merge->chunk);
	PopActiveSnapshot();
}

static bool
merge_as_owner(void *arg)
{
	Merge	   *merge = arg;

	pj_run_as_owner(merge->projection, merge->tenant, run_merge, merge);
	return true;
}

/* Is this a conflict with a row that will be changed or deleted later? */
static bool
is_in_the_way(const ErrorData *error)
{
	return error->sqlerrcode == ERRCODE_UNIQUE_VIOLATION ||
		error->sqlerrcode == ERRCODE_EXCLUSION_VIOLATION;
}

/*
 * Delete all rows that differ, then write the new ones.  pj_aside_possible()
 * has made sure that no trigger or foreign key sees this.
 */
static void
merge_in_parts(Merge *merge)
{
	merge->part = MERGE_REMOVE;
	merge_as_owner(merge);
	merge->part = MERGE_ALL;
	merge_as_owner(merge);
}

/* Replace a tenant's rows in the target by those of the build. */
void
pj_fold_merge(const PjProjection *projection, Oid aside, const char *tenant)
{
	Merge	   *merge = palloc0(sizeof(Merge));
	ErrorData  *error;
	bool		kept;

	Assert(pj_pair_is_ours(projection->id, CStringGetTextDatum(tenant)));
	merge->projection = projection;
	merge->aside = aside;
	merge->tenant = tenant;
	merge->part = MERGE_ALL;
	error = pj_subtransaction(merge_as_owner, merge, &kept);
	if (error && !is_in_the_way(error))
		ReThrowError(error);
	if (error)
		merge_in_parts(merge);
	pfree(merge);
}
