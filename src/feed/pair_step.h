/*
 * pair_step.h
 *	  The next batch of one projection and tenant.
 */
#ifndef PJ_PAIR_STEP_H
#define PJ_PAIR_STEP_H

#include "base/compat.h"
#include "datatype/timestamp.h"

#include "log/log_read.h"
#include "state/cursor.h"

typedef enum PjProgress
{
	PJ_IDLE,					/* nothing was done */
	PJ_DONE,					/* something, and all there was */
	PJ_MORE						/* something, and there is more */
} PjProgress;

/* A pair being worked on. */
typedef struct PjStep
{
	/* set by the caller */
	int32		projection_id;
	Datum		tenant;
	int64		claim_after;	/* where to look for pending items; a hint,
								 * which is kept up to date */

	/* set by pj_step_enter() */
	PjPair		pair;

	/* set by pj_step(): a session that will not wake us held a lock */
	bool		busy;

	/* set by pj_step() if it was to announce one, and found it; else 0 */
	int64		announced;		/* log_seq */
	Datum		announced_aggregate;
	int64		announced_sequence;

	/* what is to be saved */
	bool		moved;			/* the cursor, or the state */
	PjCounts	counts;
} PjStep;

/* How far a step may go. */
typedef struct PjBounds
{
	int			limit;			/* events, if fewer than the batch size */
	int64		upto;			/* of queued items */
	int64		tail;			/* of the log */
	int64		retry;			/* as in PjApplyRequest, as are these two */
	bool		counted;
	bool		announce;
	bool		ordered;		/* somebody wants it now: read up to the tail,
								 * even if there is no handover yet */
} PjBounds;

extern bool pj_step_enter(PjStep *step);
extern PjProgress pj_step(PjStep *step, const PjBounds *bounds);
extern PjProgress pj_step_ordered(PjStep *step, const PjBounds *bounds);
extern void pj_step_save(PjStep *step);

#endif							/* PJ_PAIR_STEP_H */
