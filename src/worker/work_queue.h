/*
 * work_queue.h
 *	  What a worker does next, and when it looks for work again.
 */
#ifndef PJ_WORK_QUEUE_H
#define PJ_WORK_QUEUE_H

#include "base/compat.h"
#include "datatype/timestamp.h"

#include "feed/pair_step.h"

extern void pj_queue_init(void);
extern void pj_queue_fill(void);
extern bool pj_queue_refill(void);
extern bool pj_queue_any(bool (*condition) (int32 projection_id,
											Datum tenant));
extern bool pj_queue_has_pairs(void);
extern bool pj_queue_round_is_over(void);
extern bool pj_queue_is_done(void);
extern void pj_queue_abandon(int ms);

extern PjStep *pj_queue_next(void);
extern void pj_queue_put_back(PjStep *step, bool at_once);
extern bool pj_queue_take_runs(void);
extern void pj_queue_put_back_runs(void);

extern void pj_queue_look_again(void);
extern void pj_queue_poll(void);
extern void pj_queue_penalize(int ms);
extern bool pj_queue_is_penalized(int32 projection_id, Datum tenant);
extern bool pj_queue_has_penalized(void);
extern bool pj_queue_waits_for_others(void);

extern TimestampTz pj_queue_wake_at(void);
extern TimestampTz pj_queue_next_due(void);
extern uint32 pj_queue_wakeups(void);

extern void pj_current_set(int32 projection_id, Datum tenant);
extern void pj_current_clear(void);
extern bool pj_current(int32 *projection_id, Datum *tenant);

#endif							/* PJ_WORK_QUEUE_H */
