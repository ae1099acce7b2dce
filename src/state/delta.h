/*
 * delta.h
 *	  Counts and digests of inline appends.
 */
#ifndef PJ_DELTA_H
#define PJ_DELTA_H

#include "base/compat.h"

#include "state/cursor.h"
#include "state/digest.h"

extern void pj_delta_add(const PjPair *pair, const PjCounts *counts,
						 const PjDigest *digest, int64 log_seq);
extern int	pj_deltas_of_other_layouts(int32 projection_id, Datum tenant,
									   int32 **ids, Datum **tenants);
extern bool pj_deltas_add_up(int32 projection_id, Datum tenant,
							 int max_pairs);
extern void pj_deltas_sweep(void);

#endif							/* PJ_DELTA_H */
