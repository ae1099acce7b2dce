/*
 * rebuild_steps.h
 *	  The steps of a rebuild.
 */
#ifndef PJ_REBUILD_STEPS_H
#define PJ_REBUILD_STEPS_H

#include "base/compat.h"

#include "state/pair.h"

/* What is rebuilt: a pair, or one of its aggregates. */
typedef struct PjRebuild
{
	/* set by the caller */
	PjPair	   *pair;
	Datum		aggregate;		/* 0 for all */

	/* set by pj_rebuild_note() */
	bool		noted;
	int64		settled;		/* the settled tail at that time */
	int64		upto;			/* items and failures up to here are deleted,
								 * events up to here are read */
} PjRebuild;

extern void pj_rebuild_note(PjRebuild *rebuild, int64 tail, int64 last);
extern int64 pj_rebuild_forget(const PjRebuild *rebuild);
extern void pj_long_call_begin(const PjProjection *projection);
extern void pj_long_call_end(void);

#endif							/* PJ_REBUILD_STEPS_H */
