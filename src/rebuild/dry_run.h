/*
 * dry_run.h
 *	  Replay a log on trial.
 */
#ifndef PJ_DRY_RUN_H
#define PJ_DRY_RUN_H

#include "base/compat.h"

#include "rebuild/replay.h"
#include "state/cursor.h"
#include "state/digest.h"

/* A row that differs between the live and the rebuilt read model. */
typedef struct PjDifference
{
	const char *key;			/* identifies the row */
	const char *shown;			/* the key to display, if different */
	int64		number;			/* among rows with the same key */
	bool		in_live;
	bool		in_rebuilt;
	Datum		live;			/* jsonb, or 0 if there is no row */
	Datum		rebuilt;
} PjDifference;

typedef struct PjTrial
{
	/* what to replay */
	PjPair		pair;			/* its projection may be a modified copy of
								 * the registered one */
	Datum		aggregate;		/* 0 for all */
	bool		bounded;		/* replay only events that have been applied */
	int			max;			/* maximum number of differences to return */

	/*
	 * If not NULL, "choose" says which events are watched, and "watch" is
	 * called after each of those.  Triggers must keep rows from being cached.
	 */
	void		(*choose) (struct PjTrial *trial, PjEvent *events, int n,
						   bool *watched);
	void		(*watch) (struct PjTrial *trial, const PjEvent *event);
	void	   *watcher;		/* argument for those functions */

	/* results */
	const PjDestination *place; /* where events were replayed to */
	PjDigest	live_digest;
	PjDigest	rebuilt_digest;
	int64		ndifferences;
	PjDifference *differences;	/* the first "max" ones */
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
