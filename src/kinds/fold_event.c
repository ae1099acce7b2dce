/*
 * fold_event.c
 *	  Fold one event into a row, in memory.
 *
 * The runtime stamps each row with the last event folded into it.  An event
 * that a row has already seen is not folded again, even if offsets were lost.
 * A row's tenant and key are those of its events; a fold that changes them
 * fails.
 */
#include "base/compat.h"

#include "access/htup_details.h"
#include "executor/executor.h"
#include "funcapi.h"
#include "pgstat.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/uuid.h"

#include "base/errcodes.h"
#include "kinds/fold_batch.h"

/* ---- stamps and checks ---- */

/*
 * Has this event already been folded into the row?  Raises an error if the row
 * has seen a different event at the same position.
 */
bool
pj_fold_has_seen(const PjFoldBatch *batch, const PjFoldRow *row,
				 const PjEvent *event)
{
	const PjFoldColumns *columns = &batch->target.columns;
	int64		version;

	if (!row->present)
		return false;
	if (columns->log_seq)
		return !row->nulls[columns->log_seq - 1] &&
			DatumGetInt64(row->values[columns->log_seq - 1]) >=
			pj_event_log_seq(event);
	if (row->nulls[columns->version - 1])
		return false;
	version = DatumGetInt64(row->values[columns->version - 1]);
	if (version == pj_event_sequence(event) &&
		!row->nulls[columns->event_id - 1] &&
		memcmp(DatumGetUUIDP(row->values[columns->event_id - 1]),
			   DatumGetUUIDP(pj_event_id(event)), UUID_LEN) != 0)
		ereport(ERROR,
				errcode(ERRCODE_PJ_EVENT_MISMATCH),
				errmsg("row of aggregate \"%s\" has seen another event %lld",
					   TextDatumGetCString(pj_event_aggregate(event)),
					   (long long) version),
				errdetail("Its last_event_id is not that of the event in the log."),
				errhint("Compare the log with a backup, or rebuild the aggregate."));
	return version >= pj_event_sequence(event);
}

/*
 * Is the value acceptable as the row's tenant or key?  If the key is not the
 * aggregate, equal keys identify the same row, even if their text differs.
 */
static bool
is_own(PjFoldBatch *batch, AttrNumber attno, Datum value, Datum expected)
{
	return pj_fold_same(&batch->target, attno, value, expected) ||
		(attno == batch->target.columns.key && batch->kept->code->key &&
		 pj_fold_equal(&batch->target, attno, value, expected));
}

/* Raise an error if a fold has changed the tenant or the key. */
static void
check_own(PjFoldBatch *batch, AttrNumber attno, Datum *values, bool *nulls,
		  Datum expected)
{
	if (!nulls[attno - 1] &&
		is_own(batch, attno, values[attno - 1], expected))
		return;
	ereport(ERROR,
			errcode(ERRCODE_PJ_ISOLATION),
			errmsg("fold returned a row with another %s",
				   NameStr(TupleDescAttr(batch->target.desc, attno - 1)->attname)),
			errdetail("A row's tenant and key are those of the event."),
			errhint("Set both from the event when the row is null, and leave them alone otherwise."));
}

/* A row found by its key may belong to another tenant or aggregate. */
static void
check_found(PjFoldBatch *batch, AttrNumber attno, const PjFoldRow *row,
			Datum expected, Datum id)
{
	Form_pg_attribute attribute = TupleDescAttr(batch->target.desc, attno - 1);
	Oid			output;
	bool		varlena;

	if (is_own(batch, attno, row->values[attno - 1], expected))
		return;
	getTypeOutputInfo(attribute->atttypid, &output, &varlena);
	ereport(ERROR,
			errcode(ERRCODE_PJ_ISOLATION),
			errmsg("row of \"%s\" is that of \"%s\"",
				   TextDatumGetCString(id),
				   OidOutputFunctionCall(output, row->values[attno - 1])),
			errdetail("Column \"%s\" treats both as equal, but they are different ids.",
					  NameStr(attribute->attname)),
			errhint("Make the column of type text, with a collation that is deterministic."));
}

/* Raise an error if a row found by its key does not belong to the event. */
void
pj_fold_check_found(PjFoldBatch *batch, const PjFoldRow *row,
					const PjEvent *event)
{
	if (!row->stored || row->changed)
		return;
	check_found(batch, batch->target.columns.tenant, row, batch->target.tenant,
				pj_event_tenant(event));
	check_found(batch, batch->target.columns.key, row, row->key,
				pj_event_aggregate(event));
}

/* Put the event's stamp on a row. */
static void
stamp_row(const PjFoldBatch *batch, Datum *values, bool *nulls,
		  const PjEvent *event)
{
	const PjFoldColumns *columns = &batch->target.columns;

	/* the row points to the event's memory for this value */
	values[columns->event_id - 1] = pj_event_id(event);
	values[columns->version - 1] = event->values[PJ_EVENT_SEQUENCE_NUMBER];
	nulls[columns->event_id - 1] = nulls[columns->version - 1] = false;
	if (columns->log_seq)
	{
		values[columns->log_seq - 1] = event->values[PJ_EVENT_LOG_SEQ];
		nulls[columns->log_seq - 1] = false;
	}
}

/* ---- by a function ---- */

/* Clear the values of a row; they are no longer needed. */
static void
forget_values(PjFoldBatch *batch, PjFoldRow *row)
{
	for (int i = 0; i < batch->target.desc->natts; i++)
		pj_fold_set(&batch->target, row, i, (Datum) 0, true);
}

/* Call the fold's function.  Returns false if it returned null. */
static bool
call_function(PjFoldBatch *batch, PjFoldRow *row, const PjEvent *event,
			  Datum *values, bool *nulls)
{
	LOCAL_FCINFO(fcinfo, 2);
	bool		event_nulls[PJ_EVENT_COLUMNS] = {false};
	PgStat_FunctionCallUsage usage;
	HeapTupleHeader result;
	HeapTupleData tuple;

	InitFunctionCallInfoData(*fcinfo, &batch->function, 2, InvalidOid, NULL,
							 NULL);
	fcinfo->args[0].isnull = !row->present;
	if (row->present)
		fcinfo->args[0].value =
			HeapTupleGetDatum(heap_form_tuple(batch->target.desc, row->values,
											  row->nulls));
	fcinfo->args[1].isnull = false;
	fcinfo->args[1].value =
		HeapTupleGetDatum(heap_form_tuple(batch->event_desc,
										  (Datum *) event->values,
										  event_nulls));
	pgstat_init_function_usage(fcinfo, &usage);
	result = (HeapTupleHeader) DatumGetPointer(FunctionCallInvoke(fcinfo));
	pgstat_end_function_usage(&usage, true);
	if (fcinfo->isnull)
		return false;

	result = DatumGetHeapTupleHeader(PointerGetDatum(result));
	tuple.t_len = HeapTupleHeaderGetDatumLength(result);
	tuple.t_data = result;
	ItemPointerSetInvalid(&tuple.t_self);
	tuple.t_tableOid = InvalidOid;
	heap_deform_tuple(&tuple, batch->target.desc, values, nulls);
	return true;
}

/* Fold an event into its row by calling the function. */
static void
fold_by_function(PjFoldBatch *batch, PjFoldRow *row, const PjEvent *event)
{
	int			natts = batch->target.desc->natts;
	MemoryContext caller = MemoryContextSwitchTo(batch->per_event);
	Datum	   *values = palloc(sizeof(Datum) * natts);
	bool	   *nulls = palloc(sizeof(bool) * natts);
	HeapTuple	before = row->tuple;
	bool		present = call_function(batch, row, event, values, nulls);

	if (present)
	{
		check_own(batch, batch->target.columns.tenant, values, nulls,
				  batch->target.tenant);
		check_own(batch, batch->target.columns.key, values, nulls, row->key);
		stamp_row(batch, values, nulls, event);
	}
	MemoryContextSwitchTo(caller);

	/* store the new row as a tuple with its own memory */
	forget_values(batch, row);
	row->tuple = present ? heap_form_tuple(batch->target.desc, values, nulls) :
		NULL;
	if (present)
		heap_deform_tuple(row->tuple, batch->target.desc, row->values,
						  row->nulls);
	row->present = present;
	batch->target.bytes -= row->size;
	row->size = row->tuple ? row->tuple->t_len : 0;
	batch->target.bytes += row->size;
	if (before)
		heap_freetuple(before);
	MemoryContextReset(batch->per_event);
}

/* ---- by expressions ---- */

/*
 * Clear the columns that the runtime sets.  Their values will point to memory
 * that the row does not own.
 */
static void
disown_runtime_columns(PjFoldBatch *batch, PjFoldRow *row)
{
	const PjFoldColumns *columns = &batch->target.columns;

	pj_fold_set(&batch->target, row, columns->tenant - 1, (Datum) 0, true);
	pj_fold_set(&batch->target, row, columns->key - 1, (Datum) 0, true);
	pj_fold_set(&batch->target, row, columns->event_id - 1, (Datum) 0, true);
}

/* A new row starts from the columns' defaults. */
static void
start_row(PjFoldBatch *batch, PjFoldRow *row)
{
	PjFoldCode *code = batch->kept->code;
	TupleDesc	desc = batch->target.desc;

	for (int i = 0; i < desc->natts; i++)
	{
		Datum		value = (Datum) 0;
		bool		isnull = true;

		batch->at_column = i + 1;
		batch->at_default = true;
		if (code->defaults[i])
			value = ExecEvalExpr(code->defaults[i], code->econtext, &isnull);
		if (!isnull)
			value = datumCopy(value, TupleDescAttr(desc, i)->attbyval,
							  TupleDescAttr(desc, i)->attlen);
		pj_fold_set(&batch->target, row, i, value, isnull);
	}
	batch->at_column = 0;
	batch->at_default = false;
	disown_runtime_columns(batch, row);
	row->values[batch->target.columns.tenant - 1] = batch->target.tenant;
	row->values[batch->target.columns.key - 1] = row->key;
	row->nulls[batch->target.columns.tenant - 1] =
		row->nulls[batch->target.columns.key - 1] = false;
	row->present = true;
}

/* Fold an event into its row by evaluating the expressions. */
static void
fold_by_expressions(PjFoldBatch *batch, PjFoldRow *row, const PjEvent *event)
{
	PjFoldCode *code = batch->kept->code;
	TupleDesc	desc = batch->target.desc;
	Datum		values[MaxHeapAttributeNumber];
	bool		nulls[MaxHeapAttributeNumber];
	bool		kept[MaxHeapAttributeNumber];

	if (!row->present)
		start_row(batch, row);

	/* every expression sees the row as it was before this event */
	ExecClearTuple(code->row_slot);
	memcpy(code->row_slot->tts_values, row->values,
		   sizeof(Datum) * desc->natts);
	memcpy(code->row_slot->tts_isnull, row->nulls, sizeof(bool) * desc->natts);
	ExecStoreVirtualTuple(code->row_slot);
	pj_fold_set_event(code, event);
	for (int i = 0; i < code->ncolumns; i++)
	{
		batch->at_column = code->attnos[i];
		values[i] = ExecEvalExprSwitchContext(code->columns[i],
											  code->econtext, &nulls[i]);
	}
	batch->at_column = 0;

	for (int i = 0; i < code->ncolumns; i++)
	{
		int			place = code->attnos[i] - 1;
		Form_pg_attribute attribute = TupleDescAttr(desc, place);

		/* a value returned unchanged still points into the row, so keep it */
		kept[i] = !nulls[i] && !row->nulls[place] && !attribute->attbyval &&
			values[i] == row->values[place];
		if (!nulls[i] && !kept[i])
			values[i] = datumCopy(values[i], attribute->attbyval,
								  attribute->attlen);
	}
	for (int i = 0; i < code->ncolumns; i++)
		if (!kept[i])
			pj_fold_set(&batch->target, row, code->attnos[i] - 1, values[i],
						nulls[i]);
	stamp_row(batch, row->values, row->nulls, event);
	ResetExprContext(code->econtext);
}

/* Fold an event into its row. */
void
pj_fold_event(PjFoldBatch *batch, PjFoldRow *row, const PjEvent *event)
{
	if (OidIsValid(batch->kept->function))
		fold_by_function(batch, row, event);
	else
		fold_by_expressions(batch, row, event);
}
