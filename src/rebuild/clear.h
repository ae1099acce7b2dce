/*
 * clear.h
 *	  Clear read models.
 */
#ifndef PJ_CLEAR_H
#define PJ_CLEAR_H

#include "base/compat.h"

#include "registry/projection.h"

extern int64 pj_clear(const PjProjection *projection, Datum tenant,
					  Datum aggregate);
extern bool pj_clear_by_aggregate(const PjProjection *projection);
extern void pj_clear_check(const PjProjection *projection, bool aggregate);
extern bool pj_clear_has_rows(const PjProjection *projection, Datum tenant);
extern int	pj_clear_tenants(const PjProjection *projection, Datum **tenants);

#endif							/* PJ_CLEAR_H */
