/*
 * offset_cache.h
 *	  Offsets that are moved in memory, and written once.
 */
#ifndef PJ_OFFSET_CACHE_H
#define PJ_OFFSET_CACHE_H

#include "base/compat.h"

#include "state/offset.h"

typedef struct PjOffsetCache PjOffsetCache;

extern PjOffsetCache *pj_offset_cache_make(int32 projection_id, Datum tenant);
extern void pj_offset_cache_load(PjOffsetCache *cache, PjOffset *offsets,
								 int n);
extern void pj_offset_cache_move(PjOffsetCache *cache,
								 const PjOffsetMove *moves, int n);
extern bool pj_offset_cache_is_full(const PjOffsetCache *cache);
extern bool pj_offset_cache_flush(PjOffsetCache *cache);

#endif							/* PJ_OFFSET_CACHE_H */
