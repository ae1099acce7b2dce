/*
 * run_slices.h
 *	  Runs that several workers process at once.
 */
#ifndef PJ_RUN_SLICES_H
#define PJ_RUN_SLICES_H

#include "base/compat.h"

#include "state/pair.h"
#include "state/slice_row.h"

/* What there is to do for a worker that asks for a slice. */
typedef enum PjSliceClaim
{
	PJ_SLICE_TAKEN,				/* a batch of a slice, which is locked now */
	PJ_SLICES_BUSY,				/* nothing: others work on the rest */
	PJ_SLICES_OVER				/* the run's end: all slices are done, or one
								 * has failed */
} PjSliceClaim;

extern int	pj_slices_cut(const PjRun *run, const PjProjection *projection);
extern PjSliceClaim pj_slice_claim(const PjRun *run, PjRunSlice *slice);
extern void pj_slice_batch(PjRun *run, PjPair *pair, PjDestination *build,
						   PjRunSlice *slice);
extern void pj_slices_finish(PjRun *run, const PjPair *pair);
extern void pj_slices_end(PjRun *run, const PjPair *pair);

#endif							/* PJ_RUN_SLICES_H */
