/*
 * shadow.h
 *	  Mode "shadow": try events without applying them.
 */
#ifndef PJ_SHADOW_H
#define PJ_SHADOW_H

#include "base/compat.h"

#include "state/cursor.h"

extern bool pj_shadow(PjPair *pair, int limit, int64 upto, bool announce,
					  bool *busy);

#endif							/* PJ_SHADOW_H */
