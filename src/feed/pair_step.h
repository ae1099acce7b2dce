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
	PJ_DONE,					/* something was done, and nothing is left */
	PJ_MORE						/* something was done, and there is more */
} PjProgress;

/* A pair being worked on. */
typedef struct PjStep
{
	/* set by the caller */
	int32		projection_id;
	Datum		tenant;
	int64		claim_after;	/* where to look for pending items; a hint
								 * that pj_step() updates */
	bool		holding;		/* the last batch marked items as held, and
								 * there are more; updated by pj_step() */

	/* set by pj_step_enter() */
	PjPair		pair;

	/* set by pj_step(): a lock was held by a session that will not wake us */
	bool		busy;

	/* set by pj_step() if asked to announce an event; 0 if there was none */
	int64		announced;		/* log_seq */
	Datum		announced_aggregate;
	int64		announced_sequence;

	/* what pj_step_save() will save */
	bool		moved;			/* the cursor or the state has changed */
	PjCounts	counts;
} PjStep;

/* The limits of a step. */
typedef struct PjBounds
{
	int			limit;			/* maximum number of events, if less than the
								 * batch size */
	int64		upto;			/* last position of queued items */
	int64		tail;			/* last position to read from the log */
	int64		retry;			/* this and the next two are as in
								 * PjApplyRequest */
	bool		counted;
	bool		announce;
	bool		ordered;		/* requested by a user: read up to the tail,
								 * even if there is no handover yet */
} PjBounds;

extern bool pj_step_enter(PjStep *step);
extern PjProgress pj_step(PjStep *step, const PjBounds *bounds);
extern PjProgress pj_step_ordered(PjStep *step, const PjBounds *bounds);
extern void pj_step_save(PjStep *step);

#endif							/* PJ_PAIR_STEP_H */
