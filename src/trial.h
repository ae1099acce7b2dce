/*
 * trial.h
 *	  Replaying a log on trial, to see what read model it makes.
 */
#ifndef PJ_TRIAL_H
#define PJ_TRIAL_H

#include "compat.h"
#include "nodes/pg_list.h"

#include "cursor.h"
#include "digest.h"
#include "replay.h"

/* A row that is not the same in both. */
typedef struct PjDifference
{
	char	   *key;
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
	PjProjection replayed;		/* as it was applied */
	PjDigest	live_digest;
	PjDigest	rebuilt_digest;
	int64		ndifferences;
	List	   *differences;	/* of PjDifference: the first ones */
} PjTrial;

extern void pj_trial_enter(PjTrial *trial, PjProjection *projection,
						   Datum tenant);
extern void pj_trial_run(PjTrial *trial);
extern Datum pj_trial_row(const PjTrial *trial, Datum key);

#endif							/* PJ_TRIAL_H */
