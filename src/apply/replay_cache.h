/*
 * replay_cache.h
 *	  What a replay in one transaction keeps in memory from batch to batch.
 */
#ifndef PJ_REPLAY_CACHE_H
#define PJ_REPLAY_CACHE_H

#include "base/compat.h"

#include "kinds/kind.h"
#include "state/offset_cache.h"
#include "state/pair.h"

typedef struct PjReplayCache
{
	const PjPair *pair;
	PjOffsetCache *offsets;
	PjRowCache *rows;
	int64		last_log_seq;	/* of what has been applied */
} PjReplayCache;

extern PjReplayCache *pj_replay_cache_make(const PjPair *pair);
extern bool pj_replay_cache_is_full(const PjReplayCache *cache);
extern void pj_replay_cache_flush(PjReplayCache *cache);

#endif							/* PJ_REPLAY_CACHE_H */
