/*
 * dry_run.h
 *	  Replaying a log on trial, to see what read model it makes.
 */
#ifndef PJ_DRY_RUN_H
#define PJ_DRY_RUN_H

#include "base/compat.h"

#include "rebuild/replay.h"
#include "state/cursor.h"
#include "state/digest.h"

/* A row that is not the same in both. */
typedef struct PjDifference
{
	const char *key;			/* what it is known by */
	const char *shown;			/* to people, if that is something else */
	int64		number;			/* of rows with that key */
	bool		in_live;
	bool		in_rebuilt;
	Datum		live;			/* jsonb, or 0 if there is none */
	Datum		rebuilt;
} PjDifference;

typedef struct PjTrial
{
	/* what to replay */
	PjPair		pair;			/* its projection need not be the registered
								 * one */
	Datum		aggregate;		/* 0 for all */
	bool		bounded;		/* what has been applied, and no more */
	int			max;			/* so many differences are wanted */

	/* called after each batch, if not NULL; a batch is one event then */
	void		(*watch) (struct PjTrial *trial, const PjReplay *replay);
	void	   *watcher;		/* whatever that needs */

	/* what came of it */
	const PjDestination *place; /* where it was replayed to */
	PjDigest	live_digest;
	PjDigest	rebuilt_digest;
	int64		ndifferences;
	PjDifference *differences;	/* the first ones */
	int			nshown;
} PjTrial;

extern void pj_trial_enter(PjTrial *trial, PjProjection *projection,
						   Datum tenant);
extern void pj_trials(PjProjection *projection,
					  void (*body) (const PjDestination *place, void *arg),
					  void *arg);
extern void pj_trial_run(const PjDestination *place, PjTrial *trial);
extern Datum pj_trial_row(const PjTrial *trial, Datum key);

#endif							/* PJ_DRY_RUN_H */
