/*
 * row_cache.h
 *	  Rows of a fold that are changed by many batches, and written once.
 */
#ifndef PJ_ROW_CACHE_H
#define PJ_ROW_CACHE_H

#include "base/compat.h"

#include "kinds/fold_batch.h"

extern PjRowCache *pj_row_cache_make(void);
extern bool pj_row_cache_can_keep(PjFoldBatch *batch);
extern void pj_row_cache_take(PjFoldBatch *batch);
extern void pj_row_cache_keep(PjFoldBatch *batch);
extern int	pj_row_cache_next(PjFoldBatch *batch, int max);
extern bool pj_row_cache_is_full(const PjRowCache *cache);
extern bool pj_row_cache_is_empty(const PjRowCache *cache);

#endif							/* PJ_ROW_CACHE_H */
