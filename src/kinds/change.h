/*
 * change.h
 *	  Read the changes to a projection's definition.
 */
#ifndef PJ_CHANGE_H
#define PJ_CHANGE_H

#include "base/compat.h"
#include "utils/jsonb.h"

#include "kinds/kind.h"

extern bool pj_definition_change(PjDefinition *definition, Jsonb *changes);
extern void pj_projection_changed(const PjProjection *projection,
								  const PjDefinition *definition,
								  PjProjection *changed);

#endif							/* PJ_CHANGE_H */
