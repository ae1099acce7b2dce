/*
 * openmetrics.c
 *	  The metrics as text, in the format that Prometheus reads.
 *
 * A projection's metrics are named as the columns of view projector.metrics,
 * with "projector_" before them; the database's with "projector_database_", a
 * tenant's with "projector_tenant_".
 */
#include "base/compat.h"

#include <math.h>

#include "fmgr.h"
#include "lib/stringinfo.h"
#include "utils/builtins.h"

#include "api/metrics.h"

PG_FUNCTION_INFO_V1(projector_openmetrics);

static void
print_head(StringInfo out, const char *name, const char *type,
		   const char *help)
{
	appendStringInfo(out, "# HELP projector_%s %s\n# TYPE projector_%s %s\n",
					 name, help, name, type);
}

/* The value of a label, in quotes. */
static void
print_label(StringInfo out, const char *label, Datum value)
{
	appendStringInfo(out, "%s=\"", label);
	for (const char *c = TextDatumGetCString(value); *c; c++)
	{
		if (*c == '\n')
			appendStringInfoString(out, "\\n");
		else
		{
			if (*c == '"' || *c == '\\')
				appendStringInfoChar(out, '\\');
			appendStringInfoChar(out, *c);
		}
	}
	appendStringInfoChar(out, '"');
}

/* Whole numbers are printed without a fraction. */
static void
print_number(StringInfo out, double number)
{
	if (number == rint(number) && fabs(number) < 1e15)
		appendStringInfo(out, "%.0f", number);
	else
		appendStringInfo(out, "%.9g", number);
}

/* ---- projections ---- */

typedef double (*Getter) (const PjProjectionMetrics *one);

static double
applied(const PjProjectionMetrics *one)
{
	return one->look.applied;
}

static double
failed(const PjProjectionMetrics *one)
{
	return one->look.failed;
}

static double
dead(const PjProjectionMetrics *one)
{
	return one->look.dead;
}

static double
batches(const PjProjectionMetrics *one)
{
	return one->look.batches;
}

static double
apply_seconds(const PjProjectionMetrics *one)
{
	return one->look.us / 1e6;
}

static double
lag_seconds(const PjProjectionMetrics *one)
{
	return one->lag_seconds;
}

static double
lag_events(const PjProjectionMetrics *one)
{
	return one->lag_events;
}

static double
outbox_pending(const PjProjectionMetrics *one)
{
	return one->look.outbox.pending;
}

static double
outbox_held(const PjProjectionMetrics *one)
{
	return one->look.outbox.held;
}

static double
outbox_failed(const PjProjectionMetrics *one)
{
	return one->look.outbox.failed;
}

static double
dead_events(const PjProjectionMetrics *one)
{
	return one->look.outbox.dead;
}

static double
runs_active(const PjProjectionMetrics *one)
{
	return one->look.runs_active;
}

static double
runs_failed(const PjProjectionMetrics *one)
{
	return one->look.runs_failed;
}

static double
run_progress(const PjProjectionMetrics *one)
{
	return one->run_progress;
}

static double
paused(const PjProjectionMetrics *one)
{
	return one->projection->paused;
}

static double
cannot_run(const PjProjectionMetrics *one)
{
	return one->projection->problem != NULL;
}

static double
lacks_worker(const PjProjectionMetrics *one)
{
	return one->lacks_worker;
}

static const struct
{
	const char *name;
	const char *type;
	const char *help;
	Getter		get;
} of_projections[] =

{
	{"events_applied_total", "counter",
	"Events that have been applied, replays included.", applied},
	{"events_failed_total", "counter", "Attempts that failed.", failed},
	{"events_dead_total", "counter", "Events that have become dead.", dead},
	{"batches_total", "counter", "Batches that applied something.", batches},
	{"apply_seconds_total", "counter", "How long these batches took.",
	apply_seconds},
	{"lag_seconds", "gauge", "Age of the oldest event that is not applied.",
	lag_seconds},
	{"lag_events", "gauge", "Events that are not applied, up to 10000.",
	lag_events},
	{"outbox_pending", "gauge", "Queued events that wait for a worker, up to 10000.",
	outbox_pending},
	{"outbox_held", "gauge",
		"Queued events that wait for a failed or dead one, up to 10000.",
	outbox_held},
	{"outbox_failed", "gauge",
	"Queued events that failed and will be tried again, up to 10000.", outbox_failed},
	{"dead_events", "gauge", "Queued events that were given up, up to 10000.",
	dead_events},
	{"runs_active", "gauge", "Runs that are queued or at work.", runs_active},
	{"runs_failed", "gauge", "Tenants whose last run has failed.",
	runs_failed},
	{"run_progress_ratio", "gauge", "How much of the active runs is done.",
	run_progress},
	{"paused", "gauge", "Whether it is paused for all tenants.", paused},
	{"cannot_run", "gauge", "Whether something that it needs is missing.",
	cannot_run},
	{"work_waits_without_worker", "gauge",
	"Whether it has work, and the database has no worker.", lacks_worker},
};

static void
print_projections(StringInfo out, const PjMetrics *metrics)
{
	for (int m = 0; m < lengthof(of_projections); m++)
	{
		print_head(out, of_projections[m].name, of_projections[m].type,
				   of_projections[m].help);
		for (int i = 0; i < metrics->nprojections; i++)
		{
			const PjProjectionMetrics *one = &metrics->projections[i];
			double		value = of_projections[m].get(one);

			if (value < 0)
				continue;
			appendStringInfo(out, "projector_%s{", of_projections[m].name);
			print_label(out, "projection", one->projection->name);
			appendStringInfoString(out, "} ");
			print_number(out, value);
			appendStringInfoChar(out, '\n');
		}
	}
}

/* ---- tenants ---- */

static void
print_tenant(StringInfo out, const char *name, const PjTenantMetrics *one,
			 double value)
{
	appendStringInfo(out, "projector_%s{", name);
	print_label(out, "projection", one->projection_name);
	appendStringInfoChar(out, ',');
	print_label(out, "tenant", one->tenant);
	appendStringInfo(out, ",state=\"%s\"} ", one->state);
	print_number(out, value);
	appendStringInfoChar(out, '\n');
}

static void
print_tenants(StringInfo out, const PjMetrics *metrics)
{
	const PjTenantMetrics *tenants = metrics->tenants;

	print_head(out, "tenant_lag_seconds", "gauge",
			   "Age of the oldest event that is not applied, of tenants that are worst off.");
	for (int i = 0; i < metrics->ntenants; i++)
		print_tenant(out, "tenant_lag_seconds", &tenants[i],
					 tenants[i].lag_seconds);
	print_head(out, "tenant_lag_events", "gauge",
			   "Events that are not applied, up to 10000.");
	for (int i = 0; i < metrics->ntenants; i++)
		print_tenant(out, "tenant_lag_events", &tenants[i],
					 tenants[i].lag_events);
	print_head(out, "tenant_dead_events", "gauge",
			   "Queued events that were given up, up to 10000.");
	for (int i = 0; i < metrics->ntenants; i++)
		print_tenant(out, "tenant_dead_events", &tenants[i], tenants[i].dead);
}

/* ---- the database ---- */

static void
print_gauge(StringInfo out, const char *name, const char *help, double value)
{
	print_head(out, name, "gauge", help);
	appendStringInfo(out, "projector_%s ", name);
	print_number(out, value);
	appendStringInfoChar(out, '\n');
}

static void
print_latency(StringInfo out, const PjLatency *latency)
{
	static const char name[] = "database_apply_latency_seconds";
	uint64		count = 0;

	print_head(out, name, "histogram",
			   "Time from the append of an event until a worker has applied it.");
	for (int i = 0; i < PJ_LATENCY_BUCKETS; i++)
	{
		count += latency->counts[i];
		appendStringInfo(out, "projector_%s_bucket{le=\"", name);
		if (i < PJ_LATENCY_BUCKETS - 1)
			appendStringInfo(out, "%g", pj_latency_bounds[i]);
		else
			appendStringInfoString(out, "+Inf");
		appendStringInfo(out, "\"} " UINT64_FORMAT "\n", count);
	}
	appendStringInfo(out, "projector_%s_sum %.9g\nprojector_%s_count "
					 UINT64_FORMAT "\n", name, latency->seconds, name, count);
}

static void
print_database(StringInfo out, const PjMetrics *metrics)
{
	print_gauge(out, "database_log_events", "The position of the last event.",
				metrics->log_events);
	print_gauge(out, "database_workers", "Workers of this database.",
				metrics->workers);
	print_gauge(out, "database_workers_busy", "Workers that are not idle.",
				metrics->workers_busy);
	print_gauge(out, "database_tail_blocked_seconds",
				"Age of the oldest open transaction that has appended events.",
				metrics->tail_blocked);
	if (metrics->has_latency)
		print_latency(out, &metrics->latency);
}

/* Returns all metrics as text. */
Datum
projector_openmetrics(PG_FUNCTION_ARGS)
{
	StringInfoData out;
	PjMetrics	metrics;

	pj_metrics_collect(&metrics, true);
	initStringInfo(&out);
	print_projections(&out, &metrics);
	print_tenants(&out, &metrics);
	print_database(&out, &metrics);
	PG_RETURN_TEXT_P(cstring_to_text_with_len(out.data, out.len));
}
