/*
 * offset_add.c
 *	  Inserting offsets without SQL.
 *
 * A rebuild inserts an offset for each aggregate.  No other session does so at
 * the same time, so there are no conflicts to look for.  If there were one, the
 * primary key would raise an error.
 */
#include "base/compat.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "executor/tuptable.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

#include "base/row.h"
#include "state/offset_add.h"
#include "state/offset_table.h"

/* Rows inserted at a time. */
#define CHUNK	200

/* Does the table have no columns, triggers or indexes but ours? */
static bool
is_original(Relation heap)
{
	static const PjIndexShape key = {3, {Anum_projection_id, Anum_tenant_id,
	Anum_aggregate_id}, true};
	List	   *indexes = RelationGetIndexList(heap);
	bool		original = pj_row_is_ours(heap, Natts, 0) &&
	list_length(indexes) == 1 &&
	pj_index_is_ours(linitial_oid(indexes), &key);

	list_free(indexes);
	return original;
}

static HeapTuple
form_row(TupleDesc desc, int32 projection_id, Datum tenant,
		 const PjOffsetMove *move)
{
	Datum		values[Natts] = {
		[Anum_projection_id - 1] = Int32GetDatum(projection_id),
		[Anum_tenant_id - 1] = tenant,
		[Anum_aggregate_id - 1] = move->from->aggregate,
		[Anum_last_sequence_number - 1] = Int64GetDatum(move->to),
		[Anum_last_event_id - 1] = move->event_id,
		[Anum_error_count - 1] = Int32GetDatum(0),
		[Anum_updated_at - 1] =
		TimestampTzGetDatum(GetCurrentTransactionStartTimestamp()),
	};
	bool		nulls[Natts] = {[Anum_last_error - 1] = true};

	return heap_form_tuple(desc, values, nulls);
}

/* Insert the rows in these slots. */
static void
insert_rows(Relation heap, Relation index, TupleTableSlot **slots, int n)
{
	table_multi_insert(heap, slots, n, GetCurrentCommandId(true), 0, NULL);
	for (int i = 0; i < n; i++)
	{
		Datum		key[3];
		bool		nulls[3];

		for (int k = 0; k < 3; k++)
			key[k] = slot_getattr(slots[i], k + 1, &nulls[k]);
		index_insert(index, key, nulls, &slots[i]->tts_tid, heap,
					 UNIQUE_CHECK_YES, false, NULL);
		ExecClearTuple(slots[i]);
	}
}

/*
 * Insert rows for the offsets that have none.  Returns false if that must be
 * done by SQL.  The caller has the pair to itself.
 */
bool
pj_offsets_add(int32 projection_id, Datum tenant, const PjOffsetMove *moves,
			   int n)
{
	Relation	heap = table_open(pj_relid(&pj_offsets_table),
								  RowExclusiveLock);
	Relation	index;
	TupleTableSlot *slots[CHUNK];
	int			room = Min(n, CHUNK);
	int			filled = 0;
	bool		original = is_original(heap);

	if (original)
	{
		index = index_open(pj_indexid(&pj_offsets_table), RowExclusiveLock);
		for (int i = 0; i < room; i++)
			slots[i] = MakeSingleTupleTableSlot(RelationGetDescr(heap),
												&TTSOpsHeapTuple);
		for (int i = 0; i < n; i++)
		{
			if (moves[i].from->exists)
				continue;
			ExecStoreHeapTuple(form_row(RelationGetDescr(heap), projection_id,
										tenant, &moves[i]), slots[filled++],
							   true);
			if (filled == room)
			{
				insert_rows(heap, index, slots, filled);
				filled = 0;
			}
		}
		if (filled > 0)
			insert_rows(heap, index, slots, filled);
		for (int i = 0; i < room; i++)
			ExecDropSingleTupleTableSlot(slots[i]);
		index_close(index, NoLock);
		CommandCounterIncrement();
	}
	table_close(heap, NoLock);
	return original;
}
