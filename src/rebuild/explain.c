/*
 * explain.c
 *	  Show which events have produced a row.
 *
 * A fold's row is folded again in memory from those of its events that have
 * been applied.  Nothing is written, and no other session has to wait.  If
 * triggers change rows as they are written, the events are replayed on trial
 * instead (dry_run.c).  For a handler or statement we do not know which events
 * have changed a row, so the aggregate's events are listed.
 */
#include "base/compat.h"

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"
#include "utils/memutils.h"
#include "utils/tuplestore.h"

#include "base/args.h"
#include "base/statement.h"
#include "kinds/fold_trace.h"
#include "rebuild/clear.h"
#include "rebuild/dry_run.h"
#include "rebuild/replay.h"
#include "registry/projection.h"
#include "sandbox/user_context.h"
#include "state/failure.h"

PG_FUNCTION_INFO_V1(projector_explain);

/* Columns of the result; the first ones are those of an event. */
#define NUM_COLUMNS		7
#define COLUMN_STATE	6

static PjStatement select_events = {
	.sql = "SELECT e.log_seq, e.aggregate_id, e.sequence_number, e.event_type,"
	" e.recorded_at, e.payload FROM projector.events e"
	" WHERE e.tenant_id = $1 AND e.aggregate_id = $2 AND e.sequence_number <="
	" (SELECT last_sequence_number FROM projector.projection_offsets o"
	" WHERE o.projection_id = $3 AND o.tenant_id = $1 AND o.aggregate_id = $2)"
	" AND ($4 IS NULL OR e.event_type = ANY ($4))"
	" AND NOT EXISTS (SELECT FROM projector.projection_failures f"
	" WHERE f.projection_id = $3 AND f.log_seq = e.log_seq"
	" AND " PJ_SKIP_DECIDED " OFFSET 0)"
	" ORDER BY e.sequence_number",
	.expect = SPI_OK_SELECT,
	.nargs = 4,
	.argtypes = {TEXTOID, TEXTOID, INT4OID, TEXTARRAYOID},
};

typedef struct Explanation
{
	PjProjection *projection;
	ReturnSetInfo *result;
	Datum		tenant;
	Datum		key;
	Datum		before;			/* the row before the last event, or 0 */
	MemoryContext context;
} Explanation;

static void
add_values(const Explanation *explanation, Datum *values, bool *nulls,
		   Datum state)
{
	values[COLUMN_STATE] = state;
	nulls[COLUMN_STATE] = state == 0;
	tuplestore_putvalues(explanation->result->setResult,
						 explanation->result->setDesc, values, nulls);
}

/* ---- in memory ---- */

static void
add_traced(void *arg, const PjEvent *event, Datum state)
{
	static const PjEventColumn columns[] = {PJ_EVENT_LOG_SEQ,
		PJ_EVENT_AGGREGATE_ID, PJ_EVENT_SEQUENCE_NUMBER, PJ_EVENT_EVENT_TYPE,
	PJ_EVENT_RECORDED_AT, PJ_EVENT_PAYLOAD};
	Datum		values[NUM_COLUMNS];
	bool		nulls[NUM_COLUMNS] = {false};

	for (int i = 0; i < lengthof(columns); i++)
		values[i] = event->values[columns[i]];
	add_values(arg, values, nulls, state);
}

/* Fold those of the events that have been applied. */
static void
trace_events(const PjPair *pair, PjFoldTrace *trace, PjEvent *events, int n)
{
	const PjProjection *projection = pair->projection;
	PjWork		work = {
		.projection = projection,
		.tenant = TextDatumGetCString(pair->tenant),
	};
	PjEvent   **pointers;

	work.hi = pj_replay_cut(pair, events, n);
	if (work.hi == 0)
		return;
	if (projection->log_ordered)
		pj_events_sort_by_log(events, work.hi);
	pointers = palloc(sizeof(PjEvent *) * work.hi);
	for (int i = 0; i < work.hi; i++)
	{
		events[i].skipped = false;
		pointers[i] = &events[i];
	}
	work.events = pointers;
	if (projection->skips)
		pj_failure_mark_skipped(projection, pointers, work.hi);
	pj_fold_trace(&work, trace);
}

static void
explain_in_memory(Explanation *explanation)
{
	PjFoldTrace trace = {.key = explanation->key,
		.context = CurrentMemoryContext,.watch = add_traced,
	.arg = explanation};
	MemoryContext batch = AllocSetContextCreate(CurrentMemoryContext,
												"projector explain",
												ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(batch);
	PjPair		pair = {.projection = explanation->projection,
	.tenant = explanation->tenant};
	PjReplay	replay;
	PjEvent    *events;
	int			n;

	pj_replay_init(&replay, &pair, PG_INT64_MAX);
	replay.context = caller;
	if (pj_clear_by_aggregate(explanation->projection))
	{
		replay.walk.aggregate = explanation->key;
		replay.walk.alone = true;
	}
	while ((n = pj_replay_read(&replay, &events)) > 0)
	{
		HeapTuple	before = trace.row;

		CHECK_FOR_INTERRUPTS();
		pj_replay_move_on(&replay, &events[n - 1]);
		trace_events(&pair, &trace, events, n);
		if (before && before != trace.row)
			heap_freetuple(before);
		MemoryContextReset(batch);
	}
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(batch);
}

/* ---- on trial ---- */

static bool
is_same_json(Datum a, Datum b)
{
	if (a == 0 || b == 0)
		return a == b;
	return compareJsonbContainers(&DatumGetJsonbP(a)->root,
								  &DatumGetJsonbP(b)->root) == 0;
}

/* Watch the events of the row.  Those of other rows leave it as it is. */
static void
choose_events(PjTrial *trial, PjEvent *events, int n, bool *watched)
{
	const Explanation *explanation = trial->watcher;
	PjEvent   **pointers = palloc(sizeof(PjEvent *) * n);
	PjWork		work = {
		.projection = trial->pair.projection,
		.tenant = TextDatumGetCString(trial->pair.tenant),
		.events = pointers,
		.hi = n,
	};

	for (int i = 0; i < n; i++)
		pointers[i] = &events[i];
	pj_fold_match(&work, explanation->key, watched);
}

/* An event has been replayed: did it change the row? */
static void
watch_event(PjTrial *trial, const PjEvent *event)
{
	Explanation *explanation = trial->watcher;
	Datum		now = pj_trial_row(trial, explanation->key);
	MemoryContext caller;

	/* every event changes the row's stamp; a deleted row has none */
	if (is_same_json(now, explanation->before))
		return;
	add_traced(explanation, event, now);
	caller = MemoryContextSwitchTo(explanation->context);
	if (explanation->before)
		pfree(DatumGetPointer(explanation->before));
	explanation->before = now ? PointerGetDatum(DatumGetJsonbPCopy(now)) : 0;
	MemoryContextSwitchTo(caller);
}

static void
run_trial(const PjDestination *place, void *arg)
{
	pj_trial_run(place, arg);
}

static void
explain_on_trial(Explanation *explanation)
{
	PjTrial		trial = {.bounded = true,.choose = choose_events,
	.watch = watch_event,.watcher = explanation};

	if (pj_clear_by_aggregate(explanation->projection))
		trial.aggregate = explanation->key;
	pj_trial_enter(&trial, explanation->projection, explanation->tenant);
	pj_trials(explanation->projection, run_trial, &trial);
}

/* ---- handlers and statements ---- */

/* Add row i of the last result. */
static void
add_event(const Explanation *explanation, int i)
{
	Datum		values[NUM_COLUMNS];
	bool		nulls[NUM_COLUMNS] = {false};

	for (int column = 0; column < COLUMN_STATE; column++)
		values[column] = pj_result(i, column + 1, &nulls[column]);
	add_values(explanation, values, nulls, (Datum) 0);
}

static void
list_events(const Explanation *explanation)
{
	const PjProjection *projection = explanation->projection;
	Datum		values[4] = {explanation->tenant, explanation->key,
	Int32GetDatum(projection->id), projection->event_types};
	int			n = pj_execute(&select_events, values,
							   projection->event_types ? NULL : "   n");

	for (int i = 0; i < n; i++)
		add_event(explanation, i);
}

/*
 * Find the projection.  A fold's rows can be traced without locking the pair.
 */
static PjProjection *
find_projection(const char *name, Datum tenant)
{
	PjProjection *projection = pj_projection_find(name);

	if (!pj_projection_is_own(projection) ||
		(pj_is_fold(projection->kind) && !pj_fold_can_trace(projection)))
		return pj_take_alone("projector_explain", name, tenant);
	pj_require_read_committed("projector_explain");
	pj_refuse_in_user_code("projector_explain");
	pj_refuse_dormant(projection);
	return projection;
}

/* Lists the events that have produced a row. */
Datum
projector_explain(PG_FUNCTION_ARGS)
{
	char	   *name = pj_required_name(fcinfo, 0, "name");
	Explanation explanation = {
		.result = (ReturnSetInfo *) fcinfo->resultinfo,
		.tenant = pj_required_text(fcinfo, 1, "tenant_id"),
		.key = pj_required_text(fcinfo, 2, "key"),
		.context = CurrentMemoryContext,
	};
	PjContext	saved;

	explanation.projection = find_projection(name, explanation.tenant);
	InitMaterializedSRF(fcinfo, 0);
	pj_enter_internal(&saved);
	if (!pj_is_fold(explanation.projection->kind))
		list_events(&explanation);
	else if (pj_fold_can_trace(explanation.projection))
		explain_in_memory(&explanation);
	else
		explain_on_trial(&explanation);
	pj_leave_internal(&saved);

	PG_RETURN_NULL();
}
