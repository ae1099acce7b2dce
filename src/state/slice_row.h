/*
 * slice_row.h
 *	  The rows of table projection_run_slices.
 */
#ifndef PJ_SLICE_ROW_H
#define PJ_SLICE_ROW_H

#include "base/compat.h"
#include "utils/snapshot.h"

#include "state/cursor.h"
#include "state/digest.h"
#include "state/run_row.h"

/* A slice of a run's aggregates. */
typedef struct PjRunSlice
{
	int64		run_id;
	int			number;			/* from 1 */
	Datum		after;			/* aggregates after this one; 0: the first */
	Datum		upto;			/* and up to this one; 0: the last */

	/* progress */
	bool		done;
	Datum		last_aggregate; /* 0 before the first */
	int64		last_sequence;
	int64		processed;
	PjCounts	counts;
	PjDigestSum sum;			/* of the slice's rows */
	bool		redefined;		/* a batch was applied with another definition
								 * than the one the run began with */
	int			attempts;		/* attempts of its next batch */
	ErrorData  *error;			/* with which the run is to end, or NULL */
} PjRunSlice;

extern void pj_slices_insert(const PjRun *run, Datum *bounds, int nbounds);
extern int	pj_slices_of(const PjRun *run, PjRunSlice **slices);
extern bool pj_slice_look(int64 run_id, int number, PjRunSlice *slice);
extern int64 pj_slices_processed(int64 run_id, Snapshot snapshot);
extern void pj_slice_save(const PjRunSlice *slice);
extern void pj_slice_count_attempt(const PjRunSlice *slice);
extern void pj_slice_fail(const PjRunSlice *slice, const ErrorData *error);
extern void pj_slices_delete(const PjRun *run);

#endif							/* PJ_SLICE_ROW_H */
