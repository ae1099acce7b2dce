/*
 * run_row.h
 *	  The rows of table projection_runs.
 */
#ifndef PJ_RUN_ROW_H
#define PJ_RUN_ROW_H

#include "base/compat.h"

#include "registry/projection.h"

/* A rebuild or catch-up of one projection and tenant in the background. */
typedef struct PjRun
{
	int64		id;
	int32		projection_id;
	Datum		tenant;
	bool		rebuild;		/* else it is a catch-up */
	bool		running;		/* else it is queued */
	int			attempts;		/* attempts of its next batch */
	int64		age_ms;			/* since it started */

	/* set when it starts */
	int64		since;			/* events after this one ... */
	int64		until;			/* ... up to this one; 0 if not yet known */
	int64		total;			/* estimated number of these events */

	/* rebuild only: set when there is a place to build in */
	bool		prepared;
	bool		aside;			/* that place is not the target itself */
	int64		settled;		/* the cursor's position in the end */
	bytea	   *definition;		/* hash of the definition it uses, or NULL */
	int			slices;			/* how many there are; 0 if it is not cut */

	/* not in the row: the next batch */
	int			slice;			/* process only this slice; 0 for any */
	int			max;			/* maximum number of events; 0 for the
								 * projection's batch size */
	int			events;			/* how many it has read */

	/* progress */
	int64		processed;
	int64		last_log_seq;
	Datum		last_aggregate; /* 0 before the first */
	int64		last_sequence;
} PjRun;

/* Returns how many events the run's next batch may have. */
static inline int
pj_run_limit(const PjRun *run, int batch_size)
{
	return run->max > 0 ? Min(run->max, batch_size) : batch_size;
}

extern int64 pj_run_insert(const PjRun *run, const char *requested_by);
extern bool pj_run_look(int64 id, PjRun *run);
extern int32 pj_run_projection(int64 id);
extern int	pj_runs_next(const PjRun *after, int limit, PjRun **runs);
extern bool pj_run_depends(const PjRun *run);
extern bool pj_run_is_active(const PjProjection *projection, Datum tenant);
extern int	pj_runs_of(const PjProjection *projection, PjRun **runs);
extern void pj_run_refuse(const PjProjection *projection, Datum tenant);
extern void pj_run_start(const PjRun *run);
extern void pj_run_save(const PjRun *run);
extern void pj_run_count_attempt(const PjRun *run);
extern void pj_run_end(const PjRun *run, const char *state,
					   const ErrorData *error);

#endif							/* PJ_RUN_ROW_H */
