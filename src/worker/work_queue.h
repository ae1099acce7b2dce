/*
 * work_queue.h
 *	  What a worker does next, and when it looks for work again.
 */
#ifndef PJ_WORK_QUEUE_H
#define PJ_WORK_QUEUE_H

#include "base/compat.h"
#include "datatype/timestamp.h"

#include "feed/pair_step.h"

/* What a worker's next transaction is for. */
typedef enum PjTurn
{
	PJ_TURN_NONE,				/* there is nothing to do */
	PJ_TURN_LIVE,				/* batches of pairs: pj_queue_next() */
	PJ_TURN_BACKLOG,			/* batches of pairs of the backlog */
	PJ_TURN_RUN					/* a batch of a run */
} PjTurn;

extern void pj_queue_init(void);
extern bool pj_queue_look_is_due(void);
extern void pj_queue_fill(void);
extern bool pj_queue_any(bool (*condition) (int32 projection_id,
											Datum tenant));
extern bool pj_queue_has_work(void);
extern bool pj_queue_is_done(void);
extern void pj_queue_abandon(int ms);

extern PjTurn pj_queue_begin_turn(void);
extern PjStep *pj_queue_next(void);
extern void pj_queue_put_back(PjStep *step, bool at_once);
extern void pj_queue_no_runs(void);

extern void pj_queue_look_again(void);
extern void pj_queue_poll(void);
extern bool pj_queue_is_penalized(int32 projection_id, Datum tenant);
extern bool pj_queue_has_penalized(void);
extern bool pj_queue_waits_for_others(void);

extern TimestampTz pj_queue_wake_at(void);
extern TimestampTz pj_queue_next_due(void);
extern uint32 pj_queue_wakeups(void);

#endif							/* PJ_WORK_QUEUE_H */
