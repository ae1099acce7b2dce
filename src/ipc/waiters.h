/*
 * waiters.h
 *	  Sessions that wait for events to be applied.
 */
#ifndef PJ_WAITERS_H
#define PJ_WAITERS_H

#include "base/compat.h"

extern void pj_waiters_tell(int32 projection_id, Datum tenant);
extern void pj_waiters_tell_all(void);
extern void pj_waiters_join(int32 projection_id, Datum tenant);
extern void pj_waiters_sleep(long ms);
extern void pj_waiters_leave(void);
extern void pj_waiters_init(void);

#endif							/* PJ_WAITERS_H */
