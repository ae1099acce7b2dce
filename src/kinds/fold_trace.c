/*
 * fold_trace.c
 *	  Show how events have produced one row of a fold.  The row is folded
 *	  again in memory, with a callback after each event.  Nothing is
 *	  written.
 */
#include "base/compat.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/pg_type.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "kinds/fold_batch.h"
#include "kinds/fold_trace.h"
#include "registry/target.h"
#include "sandbox/user_context.h"

/* Returns the key of the traced row, in its column's type. */
static Datum
traced_key(PjFoldBatch *batch, Datum key)
{
	Form_pg_attribute attribute =
	TupleDescAttr(batch->target.desc, batch->target.columns.key - 1);
	Oid			input,
				ioparam;

	if (batch->kept->code->key == NULL)
		return pj_id_as(key, attribute);
	getTypeInputInfo(attribute->atttypid, &input, &ioparam);
	return OidInputFunctionCall(input, TextDatumGetCString(key), ioparam,
								attribute->atttypmod);
}

/* Returns a row as jsonb, in the format of projector_verify. */
static Datum
row_as_json(PjFoldBatch *batch, const PjFoldRow *row)
{
	FmgrInfo	to_jsonb;
	Oid			type = batch->target.heap->rd_rel->reltype;
	HeapTuple	tuple = heap_form_tuple(batch->target.desc, row->values,
										row->nulls);
	int			level = NewGUCNestLevel();
	Datum		json;

	fmgr_info(F_TO_JSONB, &to_jsonb);
	fmgr_info_set_expr((Node *) makeFuncExpr(F_TO_JSONB, JSONBOID,
											 list_make1(makeNullConst(type, -1, InvalidOid)),
											 InvalidOid, InvalidOid,
											 COERCE_EXPLICIT_CALL), &to_jsonb);
	pj_pin_settings();
	json = FunctionCall1(&to_jsonb, HeapTupleGetDatum(tuple));
	AtEOXact_GUC(false, level);
	return json;
}

/* Does an event belong to the row of this key? */
static bool
is_of_row(PjFoldBatch *batch, const PjEvent *event, Datum row_key)
{
	Datum		key;

	return pj_fold_event_key(batch, event, &key) &&
		pj_fold_equal(&batch->target, batch->target.columns.key, key,
					  row_key);
}

/* Fold the events that belong to the row. */
static void
trace_events(PjFoldBatch *batch, PjFoldTrace *trace, PjFoldRow *row)
{
	PjWork	   *work = batch->work;
	MemoryContext caller = CurrentMemoryContext;

	for (int i = work->lo; i < work->hi; i++)
	{
		const PjEvent *event = work->events[i];
		bool		before = row->present;

		CHECK_FOR_INTERRUPTS();
		work->at = i;
		if (event->skipped)
			continue;
		if (batch->kept->code->key && !is_of_row(batch, event, row->key))
			continue;
		if (pj_fold_has_seen(batch, row, event))
			continue;
		pj_fold_event(batch, row, event);
		pj_fold_check(&batch->target, row);
		if (!before && !row->present)
			continue;
		MemoryContextSwitchTo(batch->per_event);
		trace->watch(trace->arg, event,
					 row->present ? row_as_json(batch, row) : (Datum) 0);
		MemoryContextSwitchTo(caller);
		MemoryContextReset(batch->per_event);
	}
}

/* A batch being traced. */
typedef struct Tracing
{
	PjFoldBatch batch;
	PjFoldTrace *trace;
} Tracing;

/* The part that runs as the projection's owner. */
static void
run_trace(void *arg)
{
	Tracing    *tracing = arg;
	PjFoldBatch *batch = &tracing->batch;
	PjFoldTrace *trace = tracing->trace;
	PjFoldRow	row = {.present = trace->row != NULL,.tuple = NULL};
	MemoryContext caller;
	int			natts;

	pj_fold_begin(batch);
	natts = batch->target.desc->natts;
	row.key = traced_key(batch, trace->key);
	row.values = palloc(sizeof(Datum) * natts);
	row.nulls = palloc(sizeof(bool) * natts);
	row.owned = palloc0(sizeof(bool) * natts);
	if (trace->row)
		heap_deform_tuple(trace->row, batch->target.desc, row.values,
						  row.nulls);
	pj_set_replay(true);
	trace_events(batch, trace, &row);
	caller = MemoryContextSwitchTo(trace->context);
	trace->row = row.present ? heap_form_tuple(batch->target.desc, row.values,
											   row.nulls) : NULL;
	MemoryContextSwitchTo(caller);
	pj_fold_end(batch);
}

/*
 * Can rows be traced without writing them?  Not if triggers change rows as
 * they are written.
 */
bool
pj_fold_can_trace(const PjProjection *projection)
{
	Relation	target = table_open(pj_target_oid(projection, 0),
									AccessShareLock);
	bool		possible = !pj_fold_has_triggers(target);

	table_close(target, AccessShareLock);
	return possible;
}

/* Finding the events of a row. */
typedef struct Matching
{
	PjFoldBatch batch;
	Datum		key;			/* as text */
	bool	   *matches;
} Matching;

/* The part that runs as the projection's owner. */
static void
run_match(void *arg)
{
	Matching   *matching = arg;
	PjFoldBatch *batch = &matching->batch;
	PjWork	   *work = batch->work;
	Datum		key;

	pj_fold_begin(batch);
	pj_set_replay(true);
	key = traced_key(batch, matching->key);
	for (work->at = work->lo; work->at < work->hi; work->at++)
		matching->matches[work->at] = is_of_row(batch,
												work->events[work->at], key);
	pj_fold_end(batch);
}

/* Find out which events belong to the row of a key. */
void
pj_fold_match(PjWork *work, Datum key, bool *matches)
{
	Matching	matching = {
		.batch = {.work = work,.kept = pj_fold_find(work->projection)},
		.key = key,
		.matches = matches,
	};

	pj_kind_run(work, false, run_match, &matching);
}

/* Fold events that have been applied before into one row, in memory. */
void
pj_fold_trace(PjWork *work, PjFoldTrace *trace)
{
	Tracing		tracing = {
		.batch = {.work = work,.kept = pj_fold_find(work->projection)},
		.trace = trace,
	};

	pj_kind_run(work, false, run_trace, &tracing);
}
