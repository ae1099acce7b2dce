/*
 * replay.h
 *	  Read a tenant's log again, and apply it.
 */
#ifndef PJ_REPLAY_H
#define PJ_REPLAY_H

#include "base/compat.h"

#include "apply/apply.h"
#include "log/log_read.h"

typedef struct PjReplay
{
	/* set by pj_replay_init() */
	PjPair	   *pair;
	PjOnError	on_error;
	PjWalk		walk;			/* the current and the last position */
	int			max;			/* maximum number of events per batch */
	int64		last_log_seq;	/* of the last event read */
	MemoryContext context;		/* for what is kept between batches */
	bool		bounded;		/* replay no further than the offsets of the
								 * live read model */
	struct PjReplayCache *cache;	/* NULL unless pj_replay_in_memory() */

	/* applies events that have been read; NULL: pj_replay_apply() does */
	void		(*apply) (struct PjReplay *replay, PjEvent *events, int n);
	void	   *arg;			/* for that function */

	PjCounts	counts;			/* of the results */
} PjReplay;

extern void pj_replay_init(PjReplay *replay, PjPair *pair, int64 upto);
extern void pj_replay_in_memory(PjReplay *replay);
extern int	pj_replay_batch(PjReplay *replay);
extern void pj_replay_apply(PjReplay *replay, PjEvent *events, int n);
extern void pj_replay_flush(PjReplay *replay);
extern int	pj_replay_read(const PjReplay *replay, PjEvent **events);
extern void pj_replay_move_on(PjReplay *replay, const PjEvent *last);
extern int	pj_replay_cut(const PjPair *pair, PjEvent *events, int n);
extern void pj_replay_end(PjPair *pair, int64 tail, const PjCounts *counts);
extern void pj_refuse_shadow(const PjPair *pair);

#endif							/* PJ_REPLAY_H */
