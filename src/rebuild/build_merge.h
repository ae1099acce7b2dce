/*
 * build_merge.h
 *	  Replace a fold's live rows by those of a build.
 */
#ifndef PJ_BUILD_MERGE_H
#define PJ_BUILD_MERGE_H

#include "base/compat.h"

#include "registry/projection.h"

extern void pj_fold_merge(const PjProjection *projection, Oid aside,
						  const char *tenant);

#endif							/* PJ_BUILD_MERGE_H */
