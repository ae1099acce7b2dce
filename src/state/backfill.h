/*
 * backfill.h
 *	  How far the pairs of a projection are that read the log first.
 */
#ifndef PJ_BACKFILL_H
#define PJ_BACKFILL_H

#include "base/compat.h"

#include "registry/projection.h"

typedef struct PjBackfill
{
	int64		left;			/* tenants that are not done */
	int64		total;			/* tenants that the projection has */
	double		done;			/* how much is done, from 0 to 1 */
} PjBackfill;

extern void pj_backfill_look(const PjProjection *projection, int64 upto,
							 PjBackfill *backfill);

#endif							/* PJ_BACKFILL_H */
