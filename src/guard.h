/*
 * guard.h
 *	  What a projection's code may not do.
 */
#ifndef PJ_GUARD_H
#define PJ_GUARD_H

#include "compat.h"

extern void pj_guard_init(void);

#endif							/* PJ_GUARD_H */
