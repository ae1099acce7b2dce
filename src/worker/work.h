/*
 * work.h
 *	  What a worker does in one transaction: one batch.
 */
#ifndef PJ_WORK_H
#define PJ_WORK_H

#include "base/compat.h"

/* How long a pair is left alone after an error that was not an event's. */
#define PJ_PENALTY_MS	1000

extern bool pj_work_look(void);
extern bool pj_work(void);
extern void pj_work_failed(void);

#endif							/* PJ_WORK_H */
