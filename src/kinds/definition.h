/*
 * definition.h
 *	  Check a projection's definition.
 */
#ifndef PJ_DEFINITION_H
#define PJ_DEFINITION_H

#include "base/compat.h"

#include "kinds/kind.h"

extern void pj_definition_check(PjDefinition *definition, Oid owner);
extern void pj_definition_check_name(const char *name);
extern void pj_definition_check_circle(const char *name,
									   const char **dependencies);
extern void pj_definition_check_mode(const char *name, PjMode mode,
									 PjOrdering ordering);
extern void pj_definition_recheck_target(const PjProjection *projection,
										 int target);
extern void pj_definition_recheck_code(const PjProjection *projection);
extern Datum pj_definition_types(const PjDefinition *definition);
extern PjDefinition pj_definition_of(const PjProjection *projection);

/* option_check.c */
extern void pj_definition_check_options(const PjDefinition *definition,
										const PjOptions *options);

/* definition_hash.c */
extern bytea *pj_definition_hash(const PjDefinition *definition);
extern const bytea *pj_definition_peek(const PjProjection *projection);
extern bytea *pj_definition_now(const PjProjection *projection);
extern void pj_definitions_sweep(void);

#endif							/* PJ_DEFINITION_H */
