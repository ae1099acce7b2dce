/*
 * retry.h
 *	  Apply one queued event now.
 */
#ifndef PJ_RETRY_H
#define PJ_RETRY_H

#include "base/compat.h"

#include "feed/pair_step.h"

/* One event of a pair. */
typedef struct PjQueuedEvent
{
	PjPair		pair;
	Datum		aggregate;
	int64		sequence;
	bool		counted;		/* the attempt has been counted already */
} PjQueuedEvent;

extern int64 pj_queued_offset(const PjQueuedEvent *item);
extern void pj_queued_refuse_applied(const PjQueuedEvent *item);
extern PjState pj_state_when_set_going(const PjPair *pair);
extern const char *pj_queued_retry(PjQueuedEvent *item);
extern void pj_apply_announced(const PjStep *step);

#endif							/* PJ_RETRY_H */
