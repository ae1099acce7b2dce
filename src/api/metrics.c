/*
 * metrics.c
 *	  What monitoring systems want to know, as rows of the views metrics and
 *	  metrics_by_tenant.  openmetrics.c prints the same.
 *
 * It is asked for every few seconds.  So it is collected without a look at each
 * pair (projection_look.c), and only a few pairs are shown.
 */
#include "base/compat.h"

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "funcapi.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "api/metrics.h"
#include "base/guc.h"
#include "base/text.h"
#include "log/log_read.h"
#include "sandbox/user_context.h"
#include "worker/control.h"

PG_FUNCTION_INFO_V1(projector_metrics_of_projections);
PG_FUNCTION_INFO_V1(projector_metrics_of_tenants);

/* ---- projections ---- */

static double
seconds_since(const PjStatusLook *look, TimestampTz time)
{
	return Max(0, look->now - time) / (double) USECS_PER_SEC;
}

/*
 * How late it is: the age of the oldest event that it has not applied.  Tenants
 * for which it is off, or in mode shadow, do not count.  A new projection has no
 * cursors until a worker has met it, so the time since then counts.
 */
static void
set_lag(const PjStatusLook *look, PjProjectionMetrics *metrics,
		int64 log_events)
{
	const PjStatusProjection *projection = metrics->projection;
	const PjProjectionLook *found = &metrics->look;

	metrics->is_new = !projection->handed_over && !projection->started &&
		log_events > 0 && pj_mode_applies(projection->mode);
	metrics->lag_events = metrics->lag_seconds = -1;
	if (projection->dormant || !found->modes.applies)
		return;
	metrics->lag_events = Min(PJ_MAX_COUNT, found->unread + found->items);
	metrics->lag_seconds = found->oldest_at == 0 ? 0 :
		seconds_since(look, found->oldest_at);
	if (metrics->is_new && metrics->lag_events == 0)
	{
		metrics->lag_events = Min(PJ_MAX_COUNT, log_events);
		metrics->lag_seconds = seconds_since(look, projection->created_at);
	}
}

/* Is there something that a worker would do, if there were one? */
static bool
has_work(PjStatusLook *look, const PjProjectionMetrics *metrics)
{
	const PjStatusProjection *projection = metrics->projection;

	if (projection->dormant || projection->paused || projection->problem)
		return false;
	return metrics->look.runs_active > 0 || metrics->look.has_work ||
		metrics->is_new ||
		pj_projection_look_has_items(&look->pairs, &metrics->look);
}

static void
collect_projections(PjStatusLook *look, PjMetrics *metrics)
{
	int			n = look->nprojections;
	PjProjectionLook *looks = palloc0(sizeof(PjProjectionLook) * Max(n, 1));

	for (int i = 0; i < n; i++)
	{
		const PjStatusProjection *projection = &look->projections[i];

		looks[i].id = projection->id;
		looks[i].mode = projection->mode;
		looks[i].log_ordered = projection->log_ordered;
		looks[i].created_at = projection->created_at;
		looks[i].types = projection->types;
		looks[i].ntypes = projection->ntypes;
	}
	pj_projections_look(&look->pairs, looks, n, pj_metrics_tenants);
	metrics->nprojections = n;
	metrics->projections = palloc0(sizeof(PjProjectionMetrics) * Max(n, 1));
	for (int i = 0; i < n; i++)
	{
		PjProjectionMetrics *one = &metrics->projections[i];

		one->projection = &look->projections[i];
		one->look = looks[i];
		set_lag(look, one, metrics->log_events);
		one->run_progress = one->look.run_total > 0 ?
			(double) one->look.run_processed / one->look.run_total :
			one->look.runs_active > 0 ? 0 : -1;
		one->lacks_worker = look->no_worker && has_work(look, one);
	}
}

/* ---- tenants ---- */

static int
compare_tenants(const void *a, const void *b)
{
	const PjTenantMetrics *x = a;
	const PjTenantMetrics *y = b;

	if (x->dead != y->dead)
		return x->dead < y->dead ? 1 : -1;
	if (x->lag_seconds != y->lag_seconds)
		return x->lag_seconds < y->lag_seconds ? 1 : -1;
	return pj_text_equal(x->projection_name, y->projection_name) ?
		pj_text_compare(x->tenant, y->tenant) :
		pj_text_compare(x->projection_name, y->projection_name);
}

static void
collect_tenant(PjStatusLook *look, const PjStatusProjection *projection,
			   Datum tenant, PjMetrics *metrics)
{
	PjTenantMetrics *one = &metrics->tenants[metrics->ntenants];
	int64		last = PG_INT64_MAX;
	PjStatusRow row;

	(void) pj_by_pair_find(&look->pairs.cursors, projection->id, tenant);
	pj_status_row(look, projection, tenant, &last, &row);
	if (row.state == PJ_IS_OK || row.state == PJ_IS_OFF ||
		row.state == PJ_IS_SHADOW)
		return;
	one->projection_name = projection->name;
	one->tenant = tenant;
	one->state = pj_status_names[row.state];
	one->lag_seconds = row.has_lag_time ?
		row.lag_time.time / (double) USECS_PER_SEC : 0;
	one->lag_events = row.lag_events;
	one->dead = row.outbox.dead;
	metrics->ntenants++;
}

/* The worst of the tenants that are not well. */
static void
collect_tenants(PjStatusLook *look, PjStatusLook *again, PjMetrics *metrics)
{
	int			room = pj_metrics_tenants * 5;
	Datum	   *tenants = palloc(sizeof(Datum) * (room + 1));

	metrics->ntenants = 0;
	metrics->tenants = palloc(sizeof(PjTenantMetrics) *
							  (pj_metrics_tenants + room + 1));
	for (int i = 0; i < metrics->nprojections; i++)
	{
		PjProjectionMetrics *one = &metrics->projections[i];
		int			n;

		if (one->projection->dormant || pj_metrics_tenants == 0)
			continue;
		n = pj_projection_look_tenants(&look->pairs, &one->look,
									   pj_metrics_tenants, tenants);
		for (int j = 0; j < n; j++)
			collect_tenant(again, one->projection, tenants[j], metrics);
		qsort(metrics->tenants, metrics->ntenants, sizeof(PjTenantMetrics),
			  compare_tenants);
		metrics->ntenants = Min(metrics->ntenants, pj_metrics_tenants);
	}
}

/* ---- all ---- */

/* Collect what there is, in the current memory context. */
void
pj_metrics_collect(PjMetrics *metrics, bool with_tenants)
{
	PjStatusLook *look = palloc0(sizeof(PjStatusLook));
	Snapshot	snapshot = GetActiveSnapshot();
	const PjAppender *appender;
	PjContext	saved;

	memset(metrics, 0, sizeof(PjMetrics));
	pj_status_look_begin(look, snapshot, 0, false);
	pj_enter_internal(&saved);
	metrics->log_events = pj_source_last_log_seq();
	pj_leave_internal(&saved);
	metrics->workers = look->nworkers;
	for (int i = 0; i < look->nworkers; i++)
		metrics->workers_busy += look->workers[i].activity != PJ_IDLE_WORKER;
	appender = pj_status_appender(look);
	metrics->tail_blocked = appender ? seconds_since(look, appender->since) : 0;
	metrics->has_latency = pj_latency_read(&metrics->latency);
	collect_projections(look, metrics);
	if (with_tenants)
	{
		/* its readers have not moved yet */
		PjStatusLook *again = palloc(sizeof(PjStatusLook));

		*again = *look;
		pj_pair_look_init(&again->pairs, snapshot, false);
		collect_tenants(look, again, metrics);
		pj_status_look_end(again);
	}
	pj_status_look_end(look);
}

/* ---- rows ---- */

/* A number is null if it is -1. */
static void
put_int8(Datum *values, bool *nulls, int i, int64 number)
{
	nulls[i] = number < 0;
	values[i] = Int64GetDatum(number);
}

static void
put_float8(Datum *values, bool *nulls, int i, double number)
{
	nulls[i] = number < 0;
	values[i] = Float8GetDatum(number);
}

enum
{
	COL_PROJECTION_NAME,
	COL_EVENTS_APPLIED_TOTAL,
	COL_EVENTS_FAILED_TOTAL,
	COL_EVENTS_DEAD_TOTAL,
	COL_BATCHES_TOTAL,
	COL_APPLY_SECONDS_TOTAL,
	COL_LAG_SECONDS,
	COL_LAG_EVENTS,
	COL_OUTBOX_PENDING,
	COL_OUTBOX_HELD,
	COL_OUTBOX_FAILED,
	COL_DEAD_EVENTS,
	COL_RUNS_ACTIVE,
	COL_RUNS_FAILED,
	COL_RUN_PROGRESS_RATIO,
	COL_PAUSED,
	COL_CANNOT_RUN,
	COL_WORK_WAITS_WITHOUT_WORKER,
	COL_LOG_EVENTS,
	COL_WORKERS,
	COL_WORKERS_BUSY,
	COL_TAIL_BLOCKED_SECONDS,
	COL_LATENCY_BOUNDS,
	COL_LATENCY_BUCKETS,
	COL_LATENCY_SUM,
	COL_LATENCY_COUNT,
	COL_COUNT
};

static void
put_projection(const PjProjectionMetrics *one, Datum *values, bool *nulls)
{
	const PjProjectionLook *look = &one->look;

	values[COL_PROJECTION_NAME] = one->projection->name;
	nulls[COL_PROJECTION_NAME] = false;
	put_int8(values, nulls, COL_EVENTS_APPLIED_TOTAL, look->applied);
	put_int8(values, nulls, COL_EVENTS_FAILED_TOTAL, look->failed);
	put_int8(values, nulls, COL_EVENTS_DEAD_TOTAL, look->dead);
	put_int8(values, nulls, COL_BATCHES_TOTAL, look->batches);
	put_float8(values, nulls, COL_APPLY_SECONDS_TOTAL, look->us / 1e6);
	put_float8(values, nulls, COL_LAG_SECONDS, one->lag_seconds);
	put_int8(values, nulls, COL_LAG_EVENTS, one->lag_events);
	put_int8(values, nulls, COL_OUTBOX_PENDING, look->outbox.pending);
	put_int8(values, nulls, COL_OUTBOX_HELD, look->outbox.held);
	put_int8(values, nulls, COL_OUTBOX_FAILED, look->outbox.failed);
	put_int8(values, nulls, COL_DEAD_EVENTS, look->outbox.dead);
	put_int8(values, nulls, COL_RUNS_ACTIVE, look->runs_active);
	put_int8(values, nulls, COL_RUNS_FAILED, look->runs_failed);
	put_float8(values, nulls, COL_RUN_PROGRESS_RATIO, one->run_progress);
	put_int8(values, nulls, COL_PAUSED, one->projection->paused);
	put_int8(values, nulls, COL_CANNOT_RUN, one->projection->problem != NULL);
	put_int8(values, nulls, COL_WORK_WAITS_WITHOUT_WORKER, one->lacks_worker);
}

static void
put_latency(const PjLatency *latency, Datum *values, bool *nulls)
{
	Datum		bounds[PJ_LATENCY_BUCKETS - 1];
	Datum		buckets[PJ_LATENCY_BUCKETS - 1];
	int64		count = 0;

	for (int i = 0; i < PJ_LATENCY_BUCKETS - 1; i++)
	{
		count += latency->counts[i];
		bounds[i] = Float8GetDatum(pj_latency_bounds[i]);
		buckets[i] = Int64GetDatum(count);
	}
	count += latency->counts[PJ_LATENCY_BUCKETS - 1];
	values[COL_LATENCY_BOUNDS] =
		PointerGetDatum(construct_array(bounds, PJ_LATENCY_BUCKETS - 1,
										FLOAT8OID, sizeof(float8),
										FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
	values[COL_LATENCY_BUCKETS] =
		PointerGetDatum(construct_array(buckets, PJ_LATENCY_BUCKETS - 1,
										INT8OID, sizeof(int64),
										FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
	nulls[COL_LATENCY_BOUNDS] = nulls[COL_LATENCY_BUCKETS] = false;
	put_float8(values, nulls, COL_LATENCY_SUM, latency->seconds);
	put_int8(values, nulls, COL_LATENCY_COUNT, count);
}

static void
put_database(const PjMetrics *metrics, Datum *values, bool *nulls)
{
	put_int8(values, nulls, COL_LOG_EVENTS, metrics->log_events);
	put_int8(values, nulls, COL_WORKERS, metrics->workers);
	put_int8(values, nulls, COL_WORKERS_BUSY, metrics->workers_busy);
	put_float8(values, nulls, COL_TAIL_BLOCKED_SECONDS, metrics->tail_blocked);
	if (metrics->has_latency)
		put_latency(&metrics->latency, values, nulls);
}

/* May this user see metrics?  The views call the functions as any user. */
static bool
may_see(void)
{
	return pj_may_see("metrics") || pj_may_see("metrics_by_tenant");
}

/* Returns a row for each projection, and one for the database. */
Datum
projector_metrics_of_projections(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	Datum		values[COL_COUNT];
	bool		nulls[COL_COUNT];
	PjMetrics	metrics;

	InitMaterializedSRF(fcinfo, 0);
	if (!may_see())
		return (Datum) 0;
	pj_metrics_collect(&metrics, false);
	for (int i = 0; i <= metrics.nprojections; i++)
	{
		memset(nulls, true, sizeof(nulls));
		if (i < metrics.nprojections)
			put_projection(&metrics.projections[i], values, nulls);
		else
			put_database(&metrics, values, nulls);
		tuplestore_putvalues(result->setResult, result->setDesc, values,
							 nulls);
	}
	return (Datum) 0;
}

/* Returns a row for each of the tenants that are worst off. */
Datum
projector_metrics_of_tenants(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	PjMetrics	metrics;

	InitMaterializedSRF(fcinfo, 0);
	if (!may_see())
		return (Datum) 0;
	pj_metrics_collect(&metrics, true);
	for (int i = 0; i < metrics.ntenants; i++)
	{
		const PjTenantMetrics *one = &metrics.tenants[i];
		Datum		values[6] = {one->projection_name, one->tenant,
			CStringGetTextDatum(one->state), Float8GetDatum(one->lag_seconds),
		Int64GetDatum(one->lag_events), Int64GetDatum(one->dead)};
		bool		nulls[6] = {0};

		tuplestore_putvalues(result->setResult, result->setDesc, values,
							 nulls);
	}
	return (Datum) 0;
}
