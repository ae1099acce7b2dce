/*
 * command_guard.h
 *	  What a projection's code may not do.
 */
#ifndef PJ_COMMAND_GUARD_H
#define PJ_COMMAND_GUARD_H

#include "base/compat.h"

extern void pj_guard_init(void);

#endif							/* PJ_COMMAND_GUARD_H */
