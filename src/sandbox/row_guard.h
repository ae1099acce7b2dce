/*
 * row_guard.h
 *	  Restrict a projection's code to the rows of its event's tenant.
 */
#ifndef PJ_ROW_GUARD_H
#define PJ_ROW_GUARD_H

#include "base/compat.h"
#include "executor/execdesc.h"
#include "utils/reltrigger.h"

#define PJ_ROWGUARD_NAME	"projector_guard"

extern void pj_rowguard_prepare(QueryDesc *query);
extern bool pj_rowguard_is(const Trigger *trigger);

#endif							/* PJ_ROW_GUARD_H */
