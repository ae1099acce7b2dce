/*
 * target_guard.h
 *	  Which tables a projection's code may write, and what they must have.
 */
#ifndef PJ_TARGET_GUARD_H
#define PJ_TARGET_GUARD_H

#include "base/compat.h"

#include "registry/projection.h"
#include "sandbox/user_context.h"

extern void pj_user_code_init(PjUserCode *code,
							  const PjProjection *projection,
							  const char *tenant);
extern bool pj_guard_is_on(Oid relid);
extern void pj_guard_install(Oid relid);
extern void pj_guard_remove(Oid relid);
extern Oid	pj_guard_find_table(const char *name);
extern void pj_guard_report_writes(const PjProjection *projection);

#endif							/* PJ_TARGET_GUARD_H */
