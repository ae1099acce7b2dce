/*
 * replay_cache.c
 *	  What a replay in one transaction keeps in memory from batch to batch: the
 *	  offsets it moves, and a fold's rows.
 *
 * A row that is written in every batch leaves as many versions, which nobody can
 * prune before the transaction ends: reading it takes longer with every batch.
 * Only who replays in the order of the log writes a row in many batches.  It must
 * have the pair to itself, and every error must end the transaction or roll back
 * all of the replay: nothing takes back what is in memory.  Whoever reads offsets
 * or rows, and the end of the replay, come after a flush.
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

/* Is it time to write what is in it? */
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
 * Write all that is in it, and forget it.  The caller is in our own context, and
 * its memory context is reset soon.
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
