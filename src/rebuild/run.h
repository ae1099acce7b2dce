/*
 * run.h
 *	  Rebuilds and catch-ups in the background.
 */
#ifndef PJ_RUN_H
#define PJ_RUN_H

#include "base/compat.h"

#include "feed/pair_step.h"
#include "state/run_row.h"

/* The result of a run's batch. */
typedef enum PjRunResult
{
	PJ_RUN_PASSED,				/* nothing done: a lock is taken */
	PJ_RUN_WAITS,				/* nothing done: it is blocked */
	PJ_RUN_ERRED,				/* nothing done: retry later */
	PJ_RUN_MOVED				/* something was done; it may have ended */
} PjRunResult;

extern PjRunResult pj_run_batch(PjRun *run);
extern PjRunResult pj_run_announce(PjRun *run);
extern bool pj_run_is_announced(PjRun *run);
extern void pj_run_end_announcement(const PjRun *run);
extern void pj_run_abandon(const PjRun *run, const char *why);
extern void pj_runs_forget(const PjProjection *projection);
extern void pj_runs_settle(void);

#endif							/* PJ_RUN_H */
