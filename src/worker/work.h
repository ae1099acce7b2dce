/*
 * work.h
 *	  What a worker does in one transaction: one batch.
 */
#ifndef PJ_WORK_H
#define PJ_WORK_H

#include "base/compat.h"

/* How long to leave a pair alone after an error that no event has caused. */
#define PJ_PENALTY_MS	1000

extern bool pj_work_look(void);
extern bool pj_work(bool *lazily);
extern void pj_work_failed(void);

#endif							/* PJ_WORK_H */
