/*
 * pairs_scan.c
 *	  The rows of projector.pairs: one for each projection with each tenant of
 *	  the log and each that it has a cursor for, and one without a tenant for a
 *	  projection that has none.
 *
 * They come in the order of projection_name and tenant_id, which pairs_plan.c
 * promises, and by_pair.c needs.  The table belongs to the extension's owner,
 * and nobody else may read it but through the views.
 */
#include "base/compat.h"

#include "executor/executor.h"
#include "foreign/fdwapi.h"
#include "miscadmin.h"
#include "nodes/plannodes.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

#include "api/pairs_table.h"
#include "api/status_look.h"
#include "base/fetch.h"
#include "base/text.h"

static PjTable pairs_table = {"pairs", NULL};

typedef struct PairsScan
{
	MemoryContext context;		/* of a look; empty between scans */
	List	   *exprs;			/* the name and the tenant, if given */
	bool		has_name;
	bool		has_tenant;
	bool		needs[Pairs_natts + 1]; /* columns that somebody reads */
	bool		exact;			/* one of them is a count of each pair */
	PjStatusLook *look;			/* NULL before the first row */
	Datum		only;			/* the tenant that it is limited to, or 0 */
	Datum		status_names[PJ_STATUS_COUNT];
	Datum		mode_names[PJ_STRICT + 1];
	Datum		state_names[PJ_STOPPED + 1];

	/* where it stands */
	int			projection;
	bool		entered;		/* the projection's pairs have begun */
	int			tenant;			/* the next one in the log */
	bool		cursor_used;	/* the cursor's row has been returned */
	bool		any;			/* the projection has a pair */
	PjStatus	worst;			/* of the projection's pairs so far */
	int64		counted;		/* their events */
} PairsScan;

/* Take names as values; they live as long as the scan. */
static void
make_names(Datum *texts, const char *const *names, int n)
{
	for (int i = 0; i < n; i++)
		texts[i] = CStringGetTextDatum(names[i]);
}

void
pj_pairs_begin(ForeignScanState *node, int eflags)
{
	ForeignScan *plan = castNode(ForeignScan, node->ss.ps.plan);
	List	   *given = linitial(plan->fdw_private);
	PairsScan  *scan;
	ListCell   *lc;

	if (eflags & EXEC_FLAG_EXPLAIN_ONLY)
		return;
	if (RelationGetRelid(node->ss.ss_currentRelation) !=
		pj_relid(&pairs_table))
		ereport(ERROR,
				errcode(ERRCODE_WRONG_OBJECT_TYPE),
				errmsg("this foreign-data wrapper is for table projector.pairs only"));
	scan = palloc0(sizeof(PairsScan));
	scan->context = AllocSetContextCreate(CurrentMemoryContext,
										  "projector pairs",
										  ALLOCSET_DEFAULT_SIZES);
	scan->has_name = linitial_int(given) != 0;
	scan->has_tenant = lsecond_int(given) != 0;
	scan->exprs = ExecInitExprList(plan->fdw_exprs, &node->ss.ps);
	foreach(lc, (List *) lsecond(plan->fdw_private))
	{
		AttrNumber	column = lfirst_int(lc);

		if (column > 0)
			scan->needs[column] = true;
		else if (column == 0)
			memset(scan->needs, true, sizeof(scan->needs));
	}
	scan->exact = scan->needs[Pairs_why] || scan->needs[Pairs_lag_events] ||
		scan->needs[Pairs_pending] || scan->needs[Pairs_held] ||
		scan->needs[Pairs_error_count];
	make_names(scan->status_names, pj_status_names, PJ_STATUS_COUNT);
	make_names(scan->mode_names, pj_mode_names, PJ_STRICT + 1);
	make_names(scan->state_names, pj_state_names, PJ_STOPPED + 1);
	node->fdw_state = scan;
}

/* Evaluate what the look is limited to.  Returns false if it is null. */
static bool
evaluate_limit(ForeignScanState *node, int which, Datum *value)
{
	PairsScan  *scan = node->fdw_state;
	ExprState  *expr = list_nth(scan->exprs, which);
	bool		isnull;

	*value = ExecEvalExprSwitchContext(expr, node->ss.ps.ps_ExprContext,
									   &isnull);
	if (isnull)
		return false;
	*value = PointerGetDatum(DatumGetTextPCopy(*value));
	return true;
}

static void
set_needs(PjStatusNeeds *needs, const bool *columns)
{
	memset(needs, 0, sizeof(PjStatusNeeds));
	needs->why = columns[Pairs_why];
	for (int i = Pairs_stale; i <= Pairs_row_count; i++)
		needs->totals = needs->totals || columns[i];
	needs->digests = columns[Pairs_digest] || columns[Pairs_row_count];
	for (int i = Pairs_error_count; i <= Pairs_last_failed_at; i++)
		needs->errors = needs->errors || columns[i];
	needs->failing = columns[Pairs_failing_since];
}

/* Begin a look. */
static void
start_look(ForeignScanState *node)
{
	PairsScan  *scan = node->fdw_state;
	MemoryContext caller = MemoryContextSwitchTo(scan->context);
	PjStatusLook *look = palloc0(sizeof(PjStatusLook));
	Datum		name = 0;
	Datum		tenant = 0;
	int			n = 0;
	bool		possible = true;

	set_needs(&look->needs, scan->needs);
	if (scan->has_name)
		possible = evaluate_limit(node, n++, &name);
	if (scan->has_tenant)
		possible = evaluate_limit(node, n++, &tenant) && possible;
	if (possible)
		pj_status_look(look, node->ss.ps.state->es_snapshot, name, tenant);
	scan->look = look;
	scan->only = tenant;
	scan->projection = 0;
	scan->entered = false;
	MemoryContextSwitchTo(caller);
}

/* ---- which pair is next ---- */

static void
enter_projection(PairsScan *scan)
{
	PjStatusLook *look = scan->look;

	pj_by_pair_start(&look->pairs.cursors,
					 look->projections[scan->projection].id, scan->only);
	scan->entered = true;
	scan->tenant = 0;
	scan->cursor_used = scan->any = false;
	scan->worst = PJ_STATUS_COUNT;
	scan->counted = 0;
}

/*
 * The next tenant of the projection: of the log, of its cursors, or both.
 * Returns false after the last one.
 */
static bool
next_tenant(PairsScan *scan, Datum *tenant, int64 **last)
{
	PjStatusLook *look = scan->look;
	PjByPair   *cursors = &look->pairs.cursors;
	bool		in_log = scan->tenant < look->tenants.count;
	int			order = -1;
	bool		isnull;
	Datum		name = 0;

	if (scan->cursor_used)
		pj_by_pair_step(cursors);
	scan->cursor_used = false;
	if (!in_log && !cursors->at_row)
		return false;
	if (cursors->at_row)
	{
		name = pj_by_pair_get(cursors, cursors->tenant, &isnull);
		order = in_log ?
			pj_text_compare(look->tenants.tenants[scan->tenant], name) : 1;
		scan->cursor_used = order >= 0;
	}
	if (order > 0)
	{
		/* readers keep it, and the row will be gone */
		MemoryContext caller = MemoryContextSwitchTo(scan->context);

		*tenant = PointerGetDatum(DatumGetTextPCopy(name));
		MemoryContextSwitchTo(caller);
		return true;
	}
	*tenant = look->tenants.tenants[scan->tenant];
	*last = &look->tenants.last[scan->tenant++];
	return true;
}

/*
 * Find out how a pair is.  If no column needs the exact number of a pair's
 * events, they are counted only until the projection has PJ_MAX_COUNT of them.
 * The reason for its worst state is exact: that pair is counted again.
 */
static void
find_row(PairsScan *scan, const PjStatusProjection *projection, Datum tenant,
		 int64 *last, PjStatusRow *row)
{
	PjStatusLook *look = scan->look;

	look->limit = scan->exact ? PJ_MAX_COUNT :
		Max(PJ_MAX_COUNT - scan->counted, 1);
	pj_status_row(look, projection, tenant, last, row);
	scan->counted += row->lag_events;
	if (scan->needs[Pairs_worst_why] && look->limit < PJ_MAX_COUNT &&
		row->lag_events > 0 && row->state < scan->worst)
	{
		look->limit = PJ_MAX_COUNT;
		pj_outbox_look_back(&look->pairs.outbox, projection->id, tenant);
		pj_status_row(look, projection, tenant, last, row);
	}
}

/* The next pair.  Returns false after the last one. */
static bool
next_pair(PairsScan *scan, PjStatusRow *row)
{
	PjStatusLook *look = scan->look;

	for (; scan->projection < look->nprojections; scan->projection++)
	{
		const PjStatusProjection *projection =
		&look->projections[scan->projection];
		Datum		tenant = 0;
		int64		none = 0;
		int64	   *last = &none;

		CHECK_FOR_INTERRUPTS();
		if (!scan->entered)
			enter_projection(scan);
		if (next_tenant(scan, &tenant, &last) ||
			(!scan->any && !scan->has_tenant))
		{
			scan->any = true;
			find_row(scan, projection, tenant, last, row);
			return true;
		}
		scan->entered = false;
	}
	return false;
}

/* ---- the row ---- */

typedef struct Values
{
	Datum	   *values;
	bool	   *nulls;
} Values;

static void
set(Values *row, AttrNumber column, Datum value)
{
	row->values[column - 1] = value;
	row->nulls[column - 1] = false;
}

/* 0 stands for null. */
static void
set_unless_0(Values *row, AttrNumber column, Datum value)
{
	if (value != 0)
		set(row, column, value);
}

static void
set_string(Values *row, AttrNumber column, const char *value)
{
	if (value)
		set(row, column, CStringGetTextDatum(value));
}

static void
set_state(PairsScan *scan, const PjStatusRow *pair, Values *row)
{
	PjStatusLook *look = scan->look;

	set(row, Pairs_projection_name, pair->projection->name);
	set_unless_0(row, Pairs_tenant_id, pair->tenant);
	set(row, Pairs_kind, pair->projection->kind);
	set(row, Pairs_projection_mode, pair->projection->mode_name);
	set(row, Pairs_mode, scan->mode_names[pair->mode]);
	set(row, Pairs_state, scan->status_names[pair->state]);
	set(row, Pairs_rank, Int32GetDatum(pair->state));
	if (scan->needs[Pairs_why])
		set_string(row, Pairs_why, pj_status_why(look, pair));
	set(row, Pairs_worst, BoolGetDatum(pair->state < scan->worst));
	if (scan->needs[Pairs_worst_why] && pair->state < scan->worst)
		set_string(row, Pairs_worst_why, pj_status_why(look, pair));
	scan->worst = Min(scan->worst, pair->state);
	set(row, Pairs_cursor_state, scan->state_names[pair->cursor_state]);
	set(row, Pairs_last_log_seq, Int64GetDatum(pair->cursor.last_log_seq));
	set_unless_0(row, Pairs_paused_by, pair->cursor.paused_by);
	set_unless_0(row, Pairs_paused_at,
				 TimestampTzGetDatum(pair->cursor.paused_at));
	set_unless_0(row, Pairs_run_id, Int64GetDatum(pair->run.id));
	set_unless_0(row, Pairs_worker_pid, Int32GetDatum(pair->worker_pid));
}

static void
set_work(PjStatusRow *pair, Values *row)
{
	set(row, Pairs_lag_events, Int64GetDatum(pair->lag_events));
	set(row, Pairs_lag_share, Int64GetDatum(pair->lag_events));
	if (pair->has_lag_time)
		set(row, Pairs_lag_time, IntervalPGetDatum(&pair->lag_time));
	set_unless_0(row, Pairs_oldest_log_seq, Int64GetDatum(pair->oldest));
	set(row, Pairs_pending, Int64GetDatum(pair->outbox.pending));
	set(row, Pairs_held, Int64GetDatum(pair->outbox.held));
	set(row, Pairs_failed, Int64GetDatum(pair->outbox.failed));
	set(row, Pairs_dead, Int64GetDatum(pair->outbox.dead));
	set(row, Pairs_error_count, Int64GetDatum(pair->errors.count));
	set_string(row, Pairs_last_error, pair->errors.last);
	set_unless_0(row, Pairs_last_failed_at,
				 TimestampTzGetDatum(pair->errors.last_at));
}

static void
set_totals(const PjStatusRow *pair, Values *row)
{
	const PjPairTotals *totals = &pair->totals;

	set(row, Pairs_stale, BoolGetDatum(pair->stale));
	set(row, Pairs_applied_count, Int64GetDatum(totals->applied));
	set(row, Pairs_failed_count, Int64GetDatum(totals->failed));
	set(row, Pairs_dead_count, Int64GetDatum(totals->dead));
	set(row, Pairs_batch_count, Int64GetDatum(totals->batches));
	if (totals->apply_time)
		set(row, Pairs_apply_time, IntervalPGetDatum(totals->apply_time));
	set_unless_0(row, Pairs_last_applied_at,
				 TimestampTzGetDatum(totals->last_applied_at));
	if (totals->digest != 0)
	{
		set(row, Pairs_digest, totals->digest);
		set(row, Pairs_row_count, Int64GetDatum(totals->row_count));
	}
}

/* What view problems needs beyond that. */
static void
set_problems(PairsScan *scan, const PjStatusRow *pair, Values *row)
{
	const PjBrokenItem *failed = &pair->outbox.first_failed;
	const PjLocker *locker = pair->state == PJ_IS_REBUILDING &&
	pair->run.id == 0 ? pair->locker :
	pair->state == PJ_IS_WAITING ? pair->driver : NULL;

	set(row, Pairs_late, BoolGetDatum(pair->late));
	set(row, Pairs_awaits_log, BoolGetDatum(pair->awaits_log));
	set_unless_0(row, Pairs_dead_since,
				 TimestampTzGetDatum(pair->outbox.dead_since));
	if (pair->outbox.first_dead.log_seq != 0 && scan->needs[Pairs_dead_why])
		set_string(row, Pairs_dead_why,
				   pj_status_dead(&pair->outbox.first_dead));
	if (failed->log_seq != 0)
	{
		set_string(row, Pairs_failing_aggregate, failed->aggregate);
		set(row, Pairs_failing_sequence,
			Int64GetDatum(failed->sequence_number));
		set_unless_0(row, Pairs_failing_since,
					 TimestampTzGetDatum(pair->failing_since));
		if (scan->needs[Pairs_failing_why])
			set_string(row, Pairs_failing_why, pj_status_failing(pair));
	}
	if (locker)
	{
		set(row, Pairs_locker_pid, Int32GetDatum(locker->pid));
		set_unless_0(row, Pairs_locker_since,
					 TimestampTzGetDatum(locker->since));
	}
}

/*
 * The next row.  It is called in a context that is emptied for each.  Until
 * the extension is updated, the table may lack the last columns.
 */
TupleTableSlot *
pj_pairs_next(ForeignScanState *node)
{
	PairsScan  *scan = node->fdw_state;
	TupleTableSlot *slot = node->ss.ss_ScanTupleSlot;
	int			natts = slot->tts_tupleDescriptor->natts;
	PjStatusRow *pair = palloc(sizeof(PjStatusRow));
	Datum		values[Pairs_natts];
	bool		nulls[Pairs_natts];
	Values		row = {values, nulls};

	ExecClearTuple(slot);
	if (scan->look == NULL)
		start_look(node);
	if (!next_pair(scan, pair))
		return slot;
	memset(nulls, true, sizeof(nulls));
	set_state(scan, pair, &row);
	set_work(pair, &row);
	set_totals(pair, &row);
	set_problems(scan, pair, &row);
	memset(slot->tts_isnull, true, sizeof(bool) * natts);
	natts = Min(natts, Pairs_natts);
	memcpy(slot->tts_values, values, sizeof(Datum) * natts);
	memcpy(slot->tts_isnull, nulls, sizeof(bool) * natts);
	return ExecStoreVirtualTuple(slot);
}

void
pj_pairs_again(ForeignScanState *node)
{
	PairsScan  *scan = node->fdw_state;

	if (scan == NULL || scan->look == NULL)
		return;
	pj_status_look_end(scan->look);
	scan->look = NULL;
	MemoryContextReset(scan->context);
}

void
pj_pairs_end(ForeignScanState *node)
{
	pj_pairs_again(node);
}
