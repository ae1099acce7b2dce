/*
 * foldmerge.h
 *	  A fold's rows that were built aside take the place of the live ones.
 */
#ifndef PJ_FOLDMERGE_H
#define PJ_FOLDMERGE_H

#include "compat.h"

#include "projection.h"

extern void pj_fold_merge(const PjProjection *projection, Oid aside,
						  const char *tenant);

#endif							/* PJ_FOLDMERGE_H */
