/*
 * identity.h
 *	  The owner and the target tables of a projection.
 */
#ifndef PJ_IDENTITY_H
#define PJ_IDENTITY_H

#include "base/compat.h"

#include "registry/projection.h"

extern bool pj_identity_note(const PjProjection *projection);
extern bool pj_identity_is_complete(const PjProjection *projection);
extern void pj_identity_adopt(const PjProjection *projection);
extern void pj_identities_refresh(void);

#endif							/* PJ_IDENTITY_H */
