/*
 * run.h
 *	  Rebuilds and catch-ups in the background.
 */
#ifndef PJ_RUN_H
#define PJ_RUN_H

#include "base/compat.h"

#include "feed/pair_step.h"
#include "state/run_row.h"

/* What became of a run's batch. */
typedef enum PjRunResult
{
	PJ_RUN_PASSED,				/* nothing: somebody else is at it */
	PJ_RUN_WAITS,				/* nothing: somebody blocks it */
	PJ_RUN_ERRED,				/* nothing: it is to be tried again later */
	PJ_RUN_MOVED				/* something; it may have come to its end */
} PjRunResult;

extern PjRunResult pj_run_batch(PjRun *run);
extern bool pj_run_announce(PjRun *run);
extern void pj_run_abandon(const PjRun *run, const char *why);
extern void pj_runs_forget(const PjProjection *projection);
extern void pj_runs_settle(void);

#endif							/* PJ_RUN_H */
