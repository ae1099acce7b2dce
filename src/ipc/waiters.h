/*
 * waiters.h
 *	  Sessions that wait for events to be applied.
 */
#ifndef PJ_WAITERS_H
#define PJ_WAITERS_H

#include "base/compat.h"

/* What a session needs, besides the log position of an event. */
#define PJ_NEEDS_ANYTHING	0
#define PJ_NEEDS_NEWS		PG_INT64_MAX

extern void pj_waiters_tell(int32 projection_id, Datum tenant);
extern void pj_waiters_tell_range(int32 projection_id, Datum tenant,
								  int64 first, int64 last);
extern void pj_waiters_tell_all(void);
extern void pj_waiters_settled(int64 tail);
extern bool pj_waiters_join(int32 projection_id, Datum tenant);
extern void pj_waiters_look(void);
extern bool pj_waiters_await(int64 needs, int64 tail);
extern bool pj_waiters_tends_tail(void);
extern bool pj_waiters_sleep(long ms);
extern void pj_waiters_leave(void);
extern void pj_waiters_init(void);

#endif							/* PJ_WAITERS_H */
