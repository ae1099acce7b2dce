/*
 * row.c
 *	  Updating and deleting rows of our tables without SPI.
 *
 * A batch of one event writes a few rows about itself.  For each, starting and
 * ending the executor would cost more than the update.
 */
#include "base/compat.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_am.h"
#include "catalog/pg_index.h"
#include "executor/executor.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "base/row.h"

/*
 * Is a table as we have created it?  If a user has added columns, constraints
 * or triggers, it must be changed by SQL.  Indexes do not matter.
 */
bool
pj_row_is_ours(Relation heap, int natts, int nchecks)
{
	TupleDesc	desc = RelationGetDescr(heap);

	return desc->natts == natts && heap->trigdesc == NULL &&
		(desc->constr ? desc->constr->num_check : 0) == nchecks;
}

/*
 * Is an index as we have created it?  Another of the same name may have further
 * columns, or may not be complete yet.
 */
bool
pj_index_is_ours(Oid indexid, const PjIndexShape *shape)
{
	Relation	index = index_open(indexid, AccessShareLock);
	Form_pg_index form = index->rd_index;
	bool		ours;

	ours = index->rd_rel->relam == BTREE_AM_OID &&
		form->indnatts == shape->nkeys &&
		form->indnkeyatts == shape->nkeys &&
		form->indisunique == shape->unique &&
		form->indimmediate && form->indisready && form->indisvalid &&
		shape->partial != heap_attisnull(index->rd_indextuple,
										 Anum_pg_index_indpred, NULL);
	for (int i = 0; i < shape->nkeys && ours; i++)
		ours = form->indkey.values[i] == shape->keys[i];
	index_close(index, AccessShareLock);
	return ours;
}

/* Add a row version to the indexes, unless it was a HOT update. */
static void
insert_index_entries(Relation heap, TupleTableSlot *slot,
					 PjUpdateIndexes update)
{
	EState	   *estate = CreateExecutorState();
	ResultRelInfo *info = makeNode(ResultRelInfo);

	InitResultRelInfo(info, heap, 1, NULL, 0);
	ExecOpenIndices(info, false);
	pj_insert_index_entries(info, slot, estate, update);
	ExecCloseIndices(info);
	FreeExecutorState(estate);
}

/*
 * Update exactly this version of a row.  Returns false if it is outdated.  The
 * active snapshot is older than our read of the row, so its line pointer cannot
 * have been reused.  The caller has found no triggers on the table.
 */
bool
pj_row_update(Relation heap, HeapTuple row, const PjRowChange *change)
{
	TupleDesc	desc = RelationGetDescr(heap);
	TupleTableSlot *slot = MakeSingleTupleTableSlot(desc, &TTSOpsHeapTuple);
	TM_FailureData failure;
	LockTupleMode lockmode;
	PjUpdateIndexes update;
	TM_Result	result;

	Assert(ActiveSnapshotSet());
	ExecStoreHeapTuple(heap_modify_tuple_by_cols(row, desc, change->count,
												 change->columns,
												 change->values,
												 change->nulls),
					   slot, true);
	result = table_tuple_update(heap, &row->t_self, slot,
								GetCurrentCommandId(true), InvalidSnapshot,
								InvalidSnapshot, true, &failure, &lockmode,
								&update);
	if (result == TM_Ok && update != TU_None)
		insert_index_entries(heap, slot, update);
	ExecDropSingleTupleTableSlot(slot);
	return result == TM_Ok;
}

/*
 * Delete a row that this transaction has locked; as above.  Returns false if it is not
 * there any more.  Nothing is waited for, but heap_delete() must be told that it
 * may wait: otherwise it takes our own lock for another transaction's.
 */
bool
pj_row_delete(Relation heap, ItemPointer place)
{
	TM_FailureData failure;

	return table_tuple_delete(heap, place, GetCurrentCommandId(true),
							  InvalidSnapshot, InvalidSnapshot, true,
							  &failure, false) == TM_Ok;
}
