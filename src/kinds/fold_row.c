/*
 * fold_row.c
 *	  The rows of a fold: read by key, changed in memory, written once.
 *
 * The runtime, not the user's code, reads and writes these rows.  Like a
 * logical replication apply worker, it uses the table's primary key and the
 * executor's functions for single rows.  Constraints, row triggers, generated
 * columns and indexes work as for INSERT, UPDATE and DELETE, and nothing is
 * planned.  Row-level security policies are not applied; instead, we check
 * that a row's tenant and key are those of its events.
 *
 * No other session folds into the same rows at the same time: the offsets of
 * their aggregates are locked or, in log order, the pair is.  Row locks
 * protect against sessions that change rows by hand.
 */
#include "base/compat.h"

#include "access/genam.h"
#include "access/stratnum.h"
#include "access/sysattr.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "executor/executor.h"
#include "executor/nodeModifyTable.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "parser/parse_relation.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"
#include "utils/typcache.h"

#include "kinds/fold_row.h"
#include "kinds/fold_virtual.h"
#include "registry/target.h"

/*
 * Convert an id to its column's type, as a literal would be.  Converted back
 * it must give the same text: '1' and '01' are two ids, but as integers they
 * would share a row.
 */
Datum
pj_id_as(Datum value, Form_pg_attribute attribute)
{
	Oid			type = attribute->atttypid;
	char	   *id;
	char	   *back;
	Oid			function,
				ioparam;
	bool		varlena;
	Datum		result;

	if (type == TEXTOID || (type == VARCHAROID && attribute->atttypmod < 0))
		return value;
	id = TextDatumGetCString(value);
	getTypeInputInfo(type, &function, &ioparam);
	result = OidInputFunctionCall(function, id, ioparam,
								  attribute->atttypmod);
	getTypeOutputInfo(type, &function, &varlena);
	back = OidOutputFunctionCall(function, result);
	if (getBaseType(type) == BPCHAROID)
		back[bpchartruelen(back, strlen(back))] = '\0';
	if (strcmp(id, back) != 0)
		ereport(ERROR,
				errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
				errmsg("\"%s\" would become \"%s\" in column \"%s\"", id,
					   back, NameStr(attribute->attname)),
				errdetail("Column \"%s\" is of type %s, and different ids must not become one.",
						  NameStr(attribute->attname), format_type_be(type)),
				errhint("Make the column of type text, or write ids as the type does."));
	return result;
}

/* Find the columns; the table has been checked (target_check.c). */
void
pj_fold_columns(Relation heap, bool other_key, PjFoldColumns *columns)
{
	Oid			relid = RelationGetRelid(heap);

	columns->tenant = get_attnum(relid, "tenant_id");
	columns->key = get_attnum(relid, pj_target_key(heap));
	columns->event_id = get_attnum(relid, "last_event_id");
	columns->version = get_attnum(relid, "last_event_version");
	columns->log_seq = other_key ? get_attnum(relid, "last_log_seq") : 0;
}

/* ---- reading ---- */

/* Make a scan key for the index column that holds this column of the table. */
void
pj_fold_key(Relation index, AttrNumber attno, Datum value, ScanKey key)
{
	for (int i = 0; i < index->rd_index->indnkeyatts; i++)
	{
		Oid			equal;

		if (index->rd_index->indkey.values[i] != attno)
			continue;
		equal = get_opfamily_member(index->rd_opfamily[i],
									index->rd_opcintype[i],
									index->rd_opcintype[i],
									BTEqualStrategyNumber);
		ScanKeyEntryInitialize(key, 0, i + 1, BTEqualStrategyNumber,
							   InvalidOid, index->rd_indcollation[i],
							   get_opcode(equal), value);
		return;
	}
	elog(ERROR, "column %d is not in the primary key", attno);
}

/* Put a row in memory into the target's slot. */
static TupleTableSlot *
row_slot(PjFoldTarget *target, const PjFoldRow *row)
{
	int			natts = target->desc->natts;

	ExecClearTuple(target->slot);
	memcpy(target->slot->tts_values, row->values, sizeof(Datum) * natts);
	memcpy(target->slot->tts_isnull, row->nulls, sizeof(bool) * natts);
	return ExecStoreVirtualTuple(target->slot);
}

static void
read_row(PjFoldTarget *target, TupleTableSlot *slot, PjFoldRow *row)
{
	row->tuple = ExecCopySlotHeapTuple(slot);
	row->place = slot->tts_tid;
	row->stored = row->present = true;
	heap_deform_tuple(row->tuple, target->desc, row->values, row->nulls);
	if (target->virtual_columns)
	{
		pj_fold_virtual_compute(target, row, row_slot(target, row));
		ResetPerTupleExprContext(target->estate);
	}
}

/*
 * Lock a row that has been found.  Returns false if it has been changed since,
 * and must be searched for again.
 */
static bool
lock_row(PjFoldTarget *target, Snapshot snapshot, TupleTableSlot *slot)
{
	TM_FailureData failure;
	TM_Result	result = table_tuple_lock(target->store, &slot->tts_tid,
										  snapshot, slot,
										  GetCurrentCommandId(false),
										  LockTupleNoKeyExclusive,
										  LockWaitBlock, 0, &failure);

	if (result != TM_Ok && result != TM_Updated && result != TM_Deleted)
		elog(ERROR, "could not lock a row: %u", result);
	return result == TM_Ok;
}

/* Begin a scan of the primary key with the latest snapshot. */
static IndexScanDesc
begin_scan(PjFoldTarget *target)
{
	return pj_begin_index_scan(target->store, target->index,
							   RegisterSnapshot(GetLatestSnapshot()), 2);
}

static void
end_scan(IndexScanDesc scan)
{
	Snapshot	snapshot = scan->xs_snapshot;

	index_endscan(scan);
	UnregisterSnapshot(snapshot);
}

/* Make room for the values of rows, in the current memory context. */
void
pj_fold_make_room(PjFoldTarget *target, PjFoldRow *rows, int n)
{
	int			natts = target->desc->natts;
	Datum	   *values = palloc(sizeof(Datum) * natts * n);
	bool	   *nulls = palloc(sizeof(bool) * natts * n);
	bool	   *owned = palloc0(sizeof(bool) * natts * n);

	for (int i = 0; i < n; i++)
	{
		rows[i].values = values + (Size) i * natts;
		rows[i].nulls = nulls + (Size) i * natts;
		rows[i].owned = owned + (Size) i * natts;
	}
}

/*
 * Read the rows of these keys, where they exist, and lock them, so that other
 * sessions cannot change them by hand.  Rows that
 * are loaded already are skipped.
 */
void
pj_fold_load(PjFoldTarget *target, PjFoldRow *rows, int n)
{
	MemoryContext caller = MemoryContextSwitchTo(target->context);
	TupleTableSlot *slot = table_slot_create(target->store, NULL);
	IndexScanDesc scan;

	if (n > 0 && rows[0].values == NULL)
		pj_fold_make_room(target, rows, n);
	CommandCounterIncrement();
	scan = begin_scan(target);
	for (int i = 0; i < n; i++)
	{
		ScanKeyData keys[2];

		if (rows[i].loaded)
			continue;
		pj_fold_key(target->index, target->columns.tenant, target->tenant,
					&keys[target->index->rd_index->indkey.values[0] !=
						  target->columns.tenant]);
		pj_fold_key(target->index, target->columns.key, rows[i].key,
					&keys[target->index->rd_index->indkey.values[0] !=
						  target->columns.key]);
		for (;;)
		{
			rows[i].loaded = true;
			index_rescan(scan, keys, 2, NULL, 0);
			if (!index_getnext_slot(scan, ForwardScanDirection, slot))
				break;
			if (lock_row(target, scan->xs_snapshot, slot))
			{
				read_row(target, slot, &rows[i]);
				break;
			}
			end_scan(scan);
			scan = begin_scan(target);
		}
	}
	end_scan(scan);
	ExecDropSingleTupleTableSlot(slot);
	MemoryContextSwitchTo(caller);
}

/* ---- changing ---- */

/*
 * Set a column to a value.  The row takes ownership of the value's memory,
 * unless it is passed by value.
 */
void
pj_fold_set(PjFoldTarget *target, PjFoldRow *row, int place, Datum value,
			bool isnull)
{
	Form_pg_attribute attribute = TupleDescAttr(target->desc, place);

	if (row->owned[place])
	{
		target->bytes -= datumGetSize(row->values[place], false,
									  attribute->attlen);
		pfree(DatumGetPointer(row->values[place]));
	}
	row->values[place] = value;
	row->nulls[place] = isnull;
	row->owned[place] = !isnull && !attribute->attbyval;
	if (row->owned[place])
		target->bytes += datumGetSize(value, false, attribute->attlen);
}

/* Free a row's values, which are no longer needed or no longer up to date. */
void
pj_fold_forget(PjFoldTarget *target, PjFoldRow *row)
{
	for (int i = 0; i < target->desc->natts; i++)
		pj_fold_set(target, row, i, (Datum) 0, true);
	if (row->tuple)
		heap_freetuple(row->tuple);
	row->tuple = NULL;
	target->bytes -= row->size;
	row->size = 0;
	row->stored = row->present = row->changed = row->loaded = false;
}

/* ---- writing ---- */

/* Compute stored generated columns: the next event must see them. */
static void
compute_generated(PjFoldTarget *target, PjFoldRow *row, TupleTableSlot *slot)
{
	ExecComputeStoredGenerated(target->info, target->estate, slot, CMD_INSERT);
	for (int i = 0; i < target->desc->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(target->desc, i);

		if (!attribute->attisdropped &&
			attribute->attgenerated == ATTRIBUTE_GENERATED_STORED)
			pj_fold_set(target, row, i, slot->tts_isnull[i] ? (Datum) 0 :
						datumCopy(slot->tts_values[i], attribute->attbyval,
								  attribute->attlen), slot->tts_isnull[i]);
	}
}

/*
 * Compute a row's generated columns and check the constraints that depend on
 * the row alone.  This is done after every event.  Otherwise a later event of
 * the batch could hide that an earlier one violated a constraint, and the
 * result would depend on the size of the batch.
 */
void
pj_fold_check(PjFoldTarget *target, PjFoldRow *row)
{
	TupleConstr *constr = target->heap->rd_att->constr;
	TupleTableSlot *slot;

	if (!row->present || constr == NULL)
		return;
	slot = row_slot(target, row);
	if (constr->has_generated_stored)
		compute_generated(target, row, slot);
	pj_fold_virtual_compute(target, row, slot);
	ExecConstraints(target->info, slot, target->estate);
	ResetPerTupleExprContext(target->estate);
}

/* A row as it is stored. */
static TupleTableSlot *
stored_slot(PjFoldTarget *target, const PjFoldRow *row)
{
	TupleTableSlot *slot = row_slot(target, row);

	pj_fold_virtual_remove(target, slot);
	return slot;
}

/* Only the tid of slot "old" is used. */
static void
write_row(PjFoldTarget *target, EPQState *epqstate, TupleTableSlot *old,
		  PjFoldRow *row)
{
	old->tts_tid = row->place;
	if (row->stored && row->present)
		ExecSimpleRelationUpdate(target->store_info, target->estate, epqstate, old,
								 stored_slot(target, row));
	else if (row->stored)
		ExecSimpleRelationDelete(target->store_info, target->estate, epqstate, old);
	else if (row->present)
		ExecSimpleRelationInsert(target->store_info, target->estate,
								 stored_slot(target, row));
}

/* Write the rows that have changed. */
void
pj_fold_write(PjFoldTarget *target, PjFoldRow *rows, int n)
{
	EState	   *estate = target->estate;
	TupleTableSlot *old = MakeSingleTupleTableSlot(target->desc,
												   &TTSOpsVirtual);
	EPQState	epqstate;

	PushActiveSnapshot(GetLatestSnapshot());
	estate->es_snapshot = GetActiveSnapshot();
	estate->es_output_cid = GetCurrentCommandId(true);
	pj_recheck_init(&epqstate, estate);
	AfterTriggerBeginQuery();
	for (int i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (rows[i].changed)
			write_row(target, &epqstate, old, &rows[i]);
		ResetPerTupleExprContext(estate);
	}
	AfterTriggerEndQuery(estate);
	EvalPlanQualEnd(&epqstate);
	estate->es_snapshot = InvalidSnapshot;
	PopActiveSnapshot();
	ExecDropSingleTupleTableSlot(old);
	CommandCounterIncrement();
}

/*
 * Do triggers change rows as they are written?  Then the next event must see
 * the row that they produce.
 */
bool
pj_fold_has_triggers(Relation heap)
{
	const TriggerDesc *triggers = heap->trigdesc;

	return triggers && (triggers->trig_insert_before_row ||
						triggers->trig_update_before_row ||
						triggers->trig_delete_before_row);
}

/* Write a row, and read it back as triggers have left it. */
void
pj_fold_write_now(PjFoldTarget *target, PjFoldRow *row)
{
	pj_fold_write(target, row, 1);
	pj_fold_forget(target, row);
	pj_fold_load(target, row, 1);
}

/* ---- the target ---- */

/* Are two values of a key column equal? */
bool
pj_fold_equal(PjFoldTarget *target, AttrNumber attno, Datum a, Datum b)
{
	ScanKeyData key;

	pj_fold_key(target->index, attno, a, &key);
	return DatumGetBool(FunctionCall2Coll(&key.sk_func, key.sk_collation, b,
										  a));
}

/*
 * Are two values identical?  Equal values may have different representations.
 */
bool
pj_fold_same(PjFoldTarget *target, AttrNumber attno, Datum a, Datum b)
{
	Form_pg_attribute attribute = TupleDescAttr(target->desc, attno - 1);

	return datum_image_eq(a, b, attribute->attbyval, attribute->attlen);
}

/*
 * For triggers on certain columns: all columns except the key's count as
 * updated.
 */
static void
add_range(PjRanges *ranges, Relation heap, const PjFoldColumns *columns)
{
	Bitmapset  *updated = NULL;

	for (int i = 1; i <= RelationGetNumberOfAttributes(heap); i++)
		if (i != columns->tenant && i != columns->key &&
			!TupleDescAttr(RelationGetDescr(heap), i - 1)->attisdropped)
			updated = bms_add_member(updated,
									 i - FirstLowInvalidHeapAttributeNumber);
	pj_ranges_add(ranges, heap, updated);
}

/* Prepare to write rows of a relation; "number" is its range table index. */
static ResultRelInfo *
open_for_writing(Relation rel, Index number)
{
	ResultRelInfo *info = makeNode(ResultRelInfo);

	InitResultRelInfo(info, rel, number, NULL, 0);
	ExecOpenIndices(info, false);
	return info;
}

/*
 * Prepare to read and write rows of one tenant: those of the target "relid"
 * or, if "table" is valid, those of that table, which has the same columns.
 */
void
pj_fold_open(PjFoldTarget *target, const PjProjection *projection, Oid relid,
			 Oid table, const char *tenant)
{
	Form_pg_attribute attribute;
	PjRanges	ranges = {NIL, NIL};

	memset(target, 0, sizeof(*target));
	target->context = CurrentMemoryContext;
	target->heap = target->store = table_open(relid, RowExclusiveLock);
	if (OidIsValid(table))
		target->store = table_open(table, RowExclusiveLock);
	target->index = index_open(pj_primary_key(target->store),
							   RowExclusiveLock);
	target->desc = lookup_rowtype_tupdesc(target->heap->rd_rel->reltype, -1);
	pj_fold_columns(target->heap, !pj_key_is_aggregate(projection->key),
					&target->columns);
	attribute = TupleDescAttr(target->desc, target->columns.tenant - 1);
	target->tenant = pj_id_as(CStringGetTextDatum(tenant), attribute);

	target->estate = CreateExecutorState();
	add_range(&ranges, target->heap, &target->columns);
	if (target->store != target->heap)
		add_range(&ranges, target->store, &target->columns);
	pj_ranges_use(target->estate, &ranges);
	target->info = target->store_info = open_for_writing(target->heap, 1);
	if (target->store != target->heap)
		target->store_info = open_for_writing(target->store, 2);
	target->slot = MakeSingleTupleTableSlot(target->desc, &TTSOpsVirtual);
	pj_fold_virtual_open(target);
}

void
pj_fold_close(PjFoldTarget *target)
{
	ExecDropSingleTupleTableSlot(target->slot);
	ExecCloseIndices(target->info);
	if (target->store_info != target->info)
		ExecCloseIndices(target->store_info);
	ExecResetTupleTable(target->estate->es_tupleTable, false);
	ExecCloseResultRelations(target->estate);	/* relations opened for
												 * triggers */
	FreeExecutorState(target->estate);
	ReleaseTupleDesc(target->desc);
	index_close(target->index, NoLock);
	if (target->store != target->heap)
		table_close(target->store, NoLock);
	table_close(target->heap, NoLock);
}
