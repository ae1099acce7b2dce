/*
 * rebuild.h
 *	  Rebuild read models from the log.
 */
#ifndef PJ_REBUILD_H
#define PJ_REBUILD_H

#include "base/compat.h"

#include "registry/projection.h"

extern int64 pj_rebuild_aggregate(PjProjection *projection, Datum tenant,
								  Datum aggregate);

#endif							/* PJ_REBUILD_H */
