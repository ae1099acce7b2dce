/*
 * verify.h
 *	  Proving that a read model is what the log implies.
 */
#ifndef PJ_VERIFY_H
#define PJ_VERIFY_H

#include "base/compat.h"

#include "registry/projection.h"

extern PjProjection *pj_verify_lock(const char *function, const char *name,
									Datum tenant);

#endif							/* PJ_VERIFY_H */
