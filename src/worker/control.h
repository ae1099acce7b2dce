/*
 * control.h
 *	  SQL functions for workers.
 */
#ifndef PJ_CONTROL_H
#define PJ_CONTROL_H

#include "base/compat.h"

extern bool pj_may_see_status(void);

#endif							/* PJ_CONTROL_H */
