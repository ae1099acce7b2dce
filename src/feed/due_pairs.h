/*
 * due_pairs.h
 *	  Which projections have work to do for which tenants.
 */
#ifndef PJ_DUE_PAIRS_H
#define PJ_DUE_PAIRS_H

#include "base/compat.h"
#include "datatype/timestamp.h"

#include "log/log_read.h"
#include "state/cursor.h"

/* A scan for work; zero before the first use. */
typedef struct PjScan
{
	/* set by the caller */
	int			tail_wait;		/* how long to wait for the log's tail, ms */
	bool		hinted;			/* look at active tenants only */
	Datum		only;			/* look at this tenant only, if there is one */
	int			limit;			/* find so many pairs of a projection at a
								 * time */

	/* what was found on the way */
	bool		more;			/* there are more pairs than the limit */
	TimestampTz next_due;		/* when the next retry is due */
	bool		unsettled;		/* a pair waits for events of a transaction
								 * that is still writing to the log */
	bool		has_log;		/* the two below are valid */
	int64		tail;
	PjTenants	all;			/* the tenants checked */
} PjScan;

/*
 * Where the next look at a projection's pairs begins: after these tenants, or
 * at the first if there is none.
 */
typedef struct PjPlace
{
	Datum		behind;
	Datum		pending;
	Datum		failed;
} PjPlace;

extern int	pj_projection_ids(int32 **ids);
extern bool pj_may_read_log(const PjProjection *projection);
extern void pj_scan_log(PjScan *scan);
extern int	pj_pairs_due(PjScan *scan, PjProjection *projection,
						 PjPlace *place, PjPair **pairs);
extern void pj_follow_log(int32 projection_id, const PjTenants *all,
						  int64 tail, bool brief, int *room);

#endif							/* PJ_DUE_PAIRS_H */
