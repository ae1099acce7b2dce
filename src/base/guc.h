/*
 * guc.h
 *	  Settings, and the clock that decides when retries are due.
 */
#ifndef PJ_GUC_H
#define PJ_GUC_H

#include "base/compat.h"
#include "datatype/timestamp.h"

#define PJ_MAX_WORKERS_PER_DATABASE 8

extern int	pj_tail_wait;
extern bool pj_verify_payload;
extern bool pj_enabled;
extern bool pj_autostart;
extern bool pj_guard_ddl;
extern int	pj_workers;
extern int	pj_naptime;
extern int	pj_retention;		/* in minutes */
extern int	pj_audit_retention; /* in minutes */
extern int	pj_progress_interval;
extern int	pj_progress_level;
extern int	pj_lag_warning;
extern int	pj_slice_events;
extern int	pj_metrics_tenants;

extern TimestampTz pj_now(void);
extern void pj_guc_init(void);

#endif							/* PJ_GUC_H */
