/*
 * delta.h
 *	  Counts and digests of inline appends.
 */
#ifndef PJ_DELTA_H
#define PJ_DELTA_H

#include "base/compat.h"
#include "storage/itemptr.h"

#include "state/cursor.h"
#include "state/digest.h"

/* A scan of the rows that are to be added up. */
typedef struct PjDeltaScan
{
	/* of one projection and tenant, if not 0; set by the caller */
	int32		projection_id;
	Datum		tenant;

	ItemPointerData from;		/* where it stands */
	bool		left_some;		/* rows that could not be added up */
	bool		other_layouts;	/* their target has been altered */
} PjDeltaScan;

extern void pj_delta_add(const PjPair *pair, const PjCounts *counts,
						 const PjDigest *digest, int64 log_seq);

/* delta_sum.c */
extern int	pj_deltas_of_other_layouts(int32 projection_id, Datum tenant,
									   int32 **ids, Datum **tenants);
extern void pj_deltas_restart(PjDeltaScan *scan);
extern bool pj_deltas_add_up(PjDeltaScan *scan, int max_rows, int max_pairs);
extern void pj_deltas_sweep(void);

#endif							/* PJ_DELTA_H */
