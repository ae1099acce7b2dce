/*
 * cursor.h
 *	  How far a projection has read one tenant's log, and how it is run there.
 */
#ifndef PJ_CURSOR_H
#define PJ_CURSOR_H

#include "base/compat.h"

#include "registry/projection.h"

typedef enum PjState
{
	PJ_LIVE,
	PJ_REPLAYING,				/* the log is to be read up to the handover */
	PJ_SWITCHING,				/* the same, after having been off */
	PJ_STOPPED					/* at a dead event, in log order */
} PjState;

/* What has been done for a pair. */
typedef struct PjCounts
{
	int64		applied;
	int64		failed;
	int64		dead;
	int64		batches;
	int64		us;				/* microseconds it took */
} PjCounts;

/* A projection and a tenant. */
typedef struct PjPair
{
	PjProjection *projection;
	Datum		tenant;
	PjMode		mode;			/* the tenant's own, or the projection's */
	bool		paused;
	int64		run_id;			/* of the active run, or 0 */
	int64		last_log_seq;
	PjState		state;
	int64		handover;		/* if it is behind: read the log up to here */
	bool		own_handover;	/* which is its own, and may not be settled */
	bool		exists;			/* there is a row */
} PjPair;

/* Is the log to be read before anything else? */
static inline bool
pj_pair_behind(const PjPair *pair)
{
	return pair->state == PJ_REPLAYING || pair->state == PJ_SWITCHING;
}

/* Do all of its events come from the log, and none from the outbox alone? */
static inline bool
pj_pair_reads_log(const PjPair *pair)
{
	return pair->mode == PJ_FOLLOW || pair->projection->log_ordered;
}

/* Is it read up to the log's tail, now? */
static inline bool
pj_pair_needs_tail(const PjPair *pair)
{
	return pj_pair_reads_log(pair) ||
		(pj_pair_behind(pair) && pair->own_handover);
}

/* It has come to its handover: from now on events come by themselves. */
static inline bool
pj_pair_caught_up(const PjPair *pair)
{
	return pj_pair_behind(pair) && pair->projection->handed_over &&
		pair->last_log_seq >= pair->handover;
}

extern void pj_pair_look(PjPair *pair, PjProjection *projection, Datum tenant);
extern void pj_cursors_start(const PjProjection *projection);
extern int64 pj_cursors_last(void);
extern int	pj_cursors_behind(const PjProjection *projection, Datum **tenants);
extern int	pj_cursors_unread(const PjProjection *projection, PjTenants *all,
							  int64 tail, Datum **tenants);
extern void pj_cursors_follow(const PjProjection *projection,
							  const PjTenants *all, int64 tail, int *room);
extern void pj_cursors_follow_some(const PjProjection *projection,
								   const PjTenants *all, int64 tail,
								   int *room);
extern void pj_cursor_set_run(const PjPair *pair, int64 run_id);
extern void pj_cursor_set_definition(const PjPair *pair, const bytea *hash);
extern void pj_cursor_forget_handover(PjPair *pair);
extern void pj_cursor_restart(PjPair *pair, int64 handover);
extern void pj_cursor_save(const PjPair *pair, const PjCounts *counts);

#endif							/* PJ_CURSOR_H */
