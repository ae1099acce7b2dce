/*
 * definition_row.h
 *	  Write a projection's definition to the registry.
 */
#ifndef PJ_DEFINITION_ROW_H
#define PJ_DEFINITION_ROW_H

#include "base/compat.h"

#include "kinds/kind.h"

extern int	pj_definition_targets(const PjDefinition *definition);
extern void pj_definition_guard(const PjDefinition *definition);
extern void pj_definition_unguard(const PjProjection *projection,
								  const Oid *left, int nleft);
extern void pj_definition_lock_name(const char *name);
extern void pj_definition_refuse_existing(const char *name);
extern void pj_definition_insert(const PjDefinition *definition, Oid owner);
extern void pj_definition_replace(PjProjection *projection,
								  PjDefinition *definition, bool redefined);

#endif							/* PJ_DEFINITION_ROW_H */
