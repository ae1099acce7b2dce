/*
 * subxact.h
 *	  Run a function in a subtransaction.
 */
#ifndef PJ_SUBXACT_H
#define PJ_SUBXACT_H

#include "base/compat.h"

extern ErrorData *pj_subtransaction(bool (*body) (void *), void *arg,
									bool *kept);

#endif							/* PJ_SUBXACT_H */
