/*
 * metrics.h
 *	  What monitoring systems want to know.
 */
#ifndef PJ_METRICS_H
#define PJ_METRICS_H

#include "base/compat.h"

#include "api/status_look.h"
#include "ipc/latency.h"
#include "state/projection_look.h"

/* A projection; what is not known, or does not apply, is -1. */
typedef struct PjProjectionMetrics
{
	const PjStatusProjection *projection;
	PjProjectionLook look;
	double		lag_seconds;
	int64		lag_events;
	double		run_progress;
	bool		is_new;			/* no worker has met it yet */
	bool		lacks_worker;	/* work waits, and there is no worker */
} PjProjectionMetrics;

/* A pair that is not well. */
typedef struct PjTenantMetrics
{
	Datum		projection_name;
	Datum		tenant;
	const char *state;
	double		lag_seconds;
	int64		lag_events;
	int64		dead;
} PjTenantMetrics;

typedef struct PjMetrics
{
	PjProjectionMetrics *projections;	/* in the order of their names */
	int			nprojections;
	PjTenantMetrics *tenants;	/* the worst first */
	int			ntenants;

	/* the database */
	int64		log_events;
	int			workers;
	int			workers_busy;
	double		tail_blocked;	/* seconds */
	bool		has_latency;
	PjLatency	latency;
} PjMetrics;

extern void pj_metrics_collect(PjMetrics *metrics, bool with_tenants);

#endif							/* PJ_METRICS_H */
