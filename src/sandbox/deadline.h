/*
 * deadline.h
 *	  The time limit for a projection's code.
 */
#ifndef PJ_DEADLINE_H
#define PJ_DEADLINE_H

#include "base/compat.h"

extern void pj_deadline_begin(int timeout_ms);
extern void pj_deadline_end(void);
extern bool pj_deadline_ignored(void);
extern void pj_between_calls(void (*hook) (void));
extern void pj_deadline_disarm(void);
extern bool pj_deadline_passed(void);
extern char *pj_deadline_message(void);

#endif							/* PJ_DEADLINE_H */
