/*
 * tenant.h
 *	  Check that a tenant exists.
 */
#ifndef PJ_TENANT_H
#define PJ_TENANT_H

#include "base/compat.h"

#include "state/cursor.h"

extern void pj_tenant_refuse(const PjPair *pair, Datum aggregate);
extern void pj_tenant_require(const PjPair *pair);

#endif							/* PJ_TENANT_H */
