/*
 * replay_cache.c
 *	  What a replay in one transaction keeps in memory from batch to batch: the
 *	  offsets it moves, and a fold's rows.
 *
 * A row that is written in every batch leaves as many versions, which cannot be
 * pruned before the transaction ends: reading it takes longer with every batch.
 * A replay writes a row in many batches only if it is in log order.
 *
 * The replay must have the pair to itself.  An error must roll back all of it,
 * because what is in memory is not rolled back.  The cache must be flushed before
 * anything reads the offsets or rows, and at the end.
 */
#include "base/compat.h"

#include "utils/builtins.h"

#include "apply/apply.h"
#include "apply/replay_cache.h"
#include "base/lock.h"
#include "kinds/row_cache.h"
#include "sandbox/user_context.h"

/* Make one, in the current memory context; it lives as long as that. */
PjReplayCache *
pj_replay_cache_make(const PjPair *pair)
{
	PjReplayCache *cache = palloc0(sizeof(PjReplayCache));

	Assert(pj_pair_is_ours(pair->projection->id, pair->tenant));
	cache->pair = pair;
	cache->offsets = pj_offset_cache_make(pj_pair_books(pair), pair->tenant);
	if (pj_is_fold(pair->projection->kind))
		cache->rows = pj_row_cache_make();
	return cache;
}

/* Must the cache be flushed? */
bool
pj_replay_cache_is_full(const PjReplayCache *cache)
{
	return pj_offset_cache_is_full(cache->offsets) ||
		(cache->rows && pj_row_cache_is_full(cache->rows));
}

static void
flush_rows(PjReplayCache *cache)
{
	const PjPair *pair = cache->pair;
	PjWork		work = {
		.projection = pair->projection,
		.tenant = TextDatumGetCString(pair->tenant),
		.table = pj_pair_table(pair),
		.trial = pj_pair_is_trial(pair),
		.cache = cache->rows,
		.at = PJ_UNKNOWN,
	};

	pj_kind(pair->projection->kind)->flush(&work);
	if (!work.trial && !pj_digest_is_zero(&work.digest))
		pj_apply_keep_digest(pair, &work.digest, cache->last_log_seq);
}

/*
 * Write all rows and offsets, and forget them.  The caller is in our own context,
 * in a short-lived memory context.
 */
void
pj_replay_cache_flush(PjReplayCache *cache)
{
	if (!pj_offset_cache_flush(cache->offsets))
		ereport(ERROR,
				errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				errmsg("projection \"%s\" is being applied by another transaction",
					   cache->pair->projection->name),
				errhint("Try again."));
	if (cache->rows && !pj_row_cache_is_empty(cache->rows))
		flush_rows(cache);
}
