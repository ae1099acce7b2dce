/*
 * run_slices.c
 *	  Runs that several workers process at once, each a slice of the
 *	  tenant's aggregates.
 *
 * A large run of a fold that is built aside is cut into slices when it is
 * prepared.  A slice is a range of aggregates, with its own place, counts,
 * digest and attempts, in a row of projection_run_slices.  Any worker processes
 * the next batch of any slice that nobody is working on.  When all slices are
 * done, one worker ends the run, as it ends one without slices.
 *
 * Invariant: two batches that run at the same time write no common row.
 *
 * - A fold that is cut has one row per aggregate (can_be_cut()), and an
 *   aggregate is in one slice only.  So the rows of the build, its offsets, its
 *   items and its failures belong to one slice each.
 * - The rows that a pair shares are not written by a batch of a slice.  What
 *   would go into the run's row, the cursor and the build's digest goes into the
 *   slice's row, and is added up in the end.
 *
 * Locks: a batch of a slice takes the pair's driver lock in ShareLock, and then
 * the slice's lock, both without waiting.  All other steps of a run, and all
 * other drivers, take the driver lock exclusively.  So they run alone, and a
 * session that waits for the driver lock, in order to cancel the run, say, gets
 * it when the present batches end: new ones do not overtake it.  The row of a
 * slice is read after its lock was taken.
 *
 * To end the run, a worker raises its own ShareLock to an exclusive one, without
 * waiting.  If two try at the same moment, neither gets it, and they try again
 * in their next transactions.
 *
 * What can happen:
 *
 * - A worker or the server ends in a batch.  The transaction is rolled back, and
 *   its locks are gone.  The slice's row says where to go on.
 * - An event fails.  With on_rebuild_error "raise" the run must fail, and the
 *   build be dropped, which others may be writing.  The worker notes the error in
 *   the slice's row, unless it is alone.  A noted error ends the run: nobody
 *   starts a batch any more, and the first worker that gets the driver lock ends
 *   the run with this error.  Other errors of events are recorded in the build's
 *   books, as without slices.
 * - A transient error is counted in the slice's row.  Batches of other slices do
 *   not reset this count.
 * - The table to build in is gone or was altered.  The worker that finds this
 *   needs the driver lock exclusively, too.  It deletes the slices, and the run
 *   is prepared again.
 * - The run is cancelled, or the projection dropped: the caller has locked out
 *   all batches, and deletes the slices.
 * - The events are not distributed as the sample said: slices have different
 *   sizes.  Nothing else depends on it.  The first slice has no lower bound and
 *   the last no upper bound, so new aggregates belong to a slice, too.
 * - The database is copied or restored: the rows come along.  Without the table
 *   to build in, the run is prepared again.
 */
#include "base/compat.h"

#include "access/table.h"
#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"

#include "apply/read_model.h"
#include "base/guc.h"
#include "base/lock.h"
#include "kinds/definition.h"
#include "log/log_sample.h"
#include "rebuild/replay.h"
#include "rebuild/run_slices.h"
#include "registry/target.h"

/*
 * A run has at most so many slices: several for each worker, because they are
 * not of the same size.
 */
#define MAX_SLICES		16

/* ---- cutting ---- */

/*
 * Has each aggregate a row of its own?  Not if two ids are equal as keys: in a
 * type in which different texts can be equal, or under a collation that is not
 * deterministic.
 */
static bool
has_distinct_keys(const PjProjection *projection)
{
	Oid			relid = pj_target_oid(projection, 0);
	char	   *column = pj_target_key_column(relid);
	Oid			type,
				collation;
	int32		typmod;

	if (column == NULL)
		return false;
	get_atttypetypmodcoll(relid, get_attnum(relid, column), &type, &typmod,
						  &collation);
	switch (type)
	{
		case TEXTOID:
		case VARCHAROID:
			return get_collation_isdeterministic(collation);
		case UUIDOID:
		case INT4OID:
		case INT8OID:
			return true;
		default:
			return false;
	}
}

/* Can a build of this projection be cut into slices of aggregates? */
static bool
can_be_cut(const PjProjection *projection)
{
	return pj_is_fold(projection->kind) && !projection->log_ordered &&
		pj_key_is_aggregate(projection->key) && has_distinct_keys(projection);
}

/*
 * Choose aggregates that cut a sample into parts of about the same size.
 * Returns how many there are; fewer than asked for if some aggregate is large.
 */
static int
choose_bounds(const PjSample *sample, int nslices, Datum *bounds)
{
	double		share = sample->events / nslices;
	double		sum = 0;
	int			n = 0;

	for (int i = 0; i < sample->count && n < nslices - 1; i++)
	{
		sum += sample->sampled[i].events;
		if (sum < share * (n + 1))
			continue;
		if (n == 0 || pj_text_compare(bounds[n - 1],
									  sample->sampled[i].aggregate) < 0)
			bounds[n++] = sample->sampled[i].aggregate;
	}
	return n;
}

/*
 * Cut a run that is built aside into slices, if that is possible and worth it.
 * Returns how many, or 0.
 */
int
pj_slices_cut(const PjRun *run, const PjProjection *projection)
{
	PjSample	sample;
	Datum		bounds[MAX_SLICES];
	int			nslices,
				nbounds;

	pj_slices_delete(run);		/* left over from an earlier attempt */
	if (!can_be_cut(projection))
		return 0;
	pj_source_sample(run->tenant, &sample);
	nslices = (int) Min(sample.events / pj_slice_events, MAX_SLICES);
	if (nslices < 2)
		return 0;
	nbounds = choose_bounds(&sample, nslices, bounds);
	if (nbounds == 0)
		return 0;
	pj_slices_insert(run, bounds, nbounds);
	return nbounds + 1;
}

/* ---- a batch ---- */

/*
 * Find a slice to work on, and lock it.  The caller holds the driver lock, so
 * that no slice is added or deleted.  Slices are taken in their order: so one
 * worker alone inserts rows in the order of their keys.
 */
PjSliceClaim
pj_slice_claim(const PjRun *run, PjRunSlice *slice)
{
	PjRunSlice *slices;
	int			n = pj_slices_of(run, &slices);
	bool		over = true;

	Assert(pj_driver_is_shared(run->projection_id, run->tenant));
	memset(slice, 0, sizeof(PjRunSlice));
	for (int i = 0; i < n; i++)
		if (slices[i].error)
		{
			*slice = slices[i];
			return PJ_SLICES_OVER;
		}
	for (int i = 0; i < n; i++)
	{
		if (slices[i].done)
			continue;
		over = false;
		if ((run->slice == 0 || run->slice == slices[i].number) &&
			pj_try_lock_slice(run->id, slices[i].number) &&
			pj_slice_look(run->id, slices[i].number, slice) &&
			!slice->done && slice->error == NULL)
			return PJ_SLICE_TAKEN;
	}
	memset(slice, 0, sizeof(PjRunSlice));
	return over ? PJ_SLICES_OVER : PJ_SLICES_BUSY;
}

static void
add_counts(PjCounts *sum, const PjCounts *more)
{
	sum->applied += more->applied;
	sum->failed += more->failed;
	sum->dead += more->dead;
	sum->batches += more->batches;
	sum->us += more->us;
}

/* Does the definition differ from the one the run began with? */
static bool
is_redefined(const PjRun *run, const PjProjection *projection)
{
	const bytea *now = pj_definition_peek(projection);

	return now && run->definition &&
		!pj_text_equal(PointerGetDatum(now), PointerGetDatum(run->definition));
}

/* Apply the next events of a slice. */
void
pj_slice_batch(PjRun *run, PjPair *pair, PjDestination *build,
			   PjRunSlice *slice)
{
	PjPair		aside = *pair;
	PjReplay	replay;
	int			n;

	Assert(pj_slice_is_locked(run->id, slice->number));
	build->digest = &slice->sum;
	aside.destination = build;
	pj_replay_init(&replay, &aside, run->until);
	replay.walk.aggregate = slice->last_aggregate;
	replay.walk.sequence = slice->last_sequence;
	replay.walk.end = slice->upto;
	if (slice->last_aggregate == 0 && slice->after)
	{
		/* after all events of the aggregate before */
		replay.walk.aggregate = slice->after;
		replay.walk.sequence = PG_INT64_MAX;
	}
	replay.max = pj_run_limit(run, replay.max);
	n = run->events = pj_replay_batch(&replay);
	if (n == 0)
		slice->done = true;
	else
	{
		slice->redefined = slice->redefined ||
			is_redefined(run, pair->projection);
		slice->processed += n;
		slice->sum.last_log_seq = Max(slice->sum.last_log_seq,
									  replay.last_log_seq);
		slice->last_aggregate = replay.walk.aggregate;
		slice->last_sequence = replay.walk.sequence;
		add_counts(&slice->counts, &replay.counts);
	}
	pj_slice_save(slice);
}

/* ---- the end ---- */

/*
 * All slices are done.  Store the digest of the build, and note if several
 * definitions have made its rows.  "pair" is that of the build.
 */
void
pj_slices_finish(PjRun *run, const PjPair *pair)
{
	PjRunSlice *slices;
	int			n = pj_slices_of(run, &slices);
	PjDigestSum sum = {0};

	for (int i = 0; i < n; i++)
	{
		pj_digest_add_change(&sum, &slices[i].sum.digest,
							 slices[i].sum.last_log_seq);
		if (slices[i].redefined)
			run->definition = cstring_to_text("");
	}
	if (sum.digest.layout == PJ_LAYOUTS_DIFFER)
		pj_model_refresh(pair, sum.last_log_seq);
	else if (!pj_digest_is_zero(&sum.digest))
		pj_digest_set(pj_pair_books(pair), pair->tenant, &sum.digest,
					  sum.last_log_seq);
}

/*
 * The run ends, for whatever reason, or is prepared again.  Add what the slices
 * have done to the run and to the pair's counters.
 */
void
pj_slices_end(PjRun *run, const PjPair *pair)
{
	PjRunSlice *slices;
	int			n;
	PjCounts	counts = {0};

	if (run->slices == 0)
		return;
	n = pj_slices_of(run, &slices);
	for (int i = 0; i < n; i++)
	{
		run->processed += slices[i].processed;
		run->last_log_seq = Max(run->last_log_seq,
								slices[i].sum.last_log_seq);
		add_counts(&counts, &slices[i].counts);
	}
	pj_cursor_save(pair, &counts);
	pj_run_save(run);
	pj_slices_delete(run);
}
