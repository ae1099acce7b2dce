/*
 * drain.c
 *	  Applying queued events in the calling session: projector_drain() and
 *	  projector_retry().
 *
 * A drain goes round the pairs that have something to do, one batch each, so
 * that a backlog of one does not delay the others.  A pair whose log is yet
 * to be read (state "replaying" or "switching") has it read up to the
 * projection's handover first; its queued items wait until then.
 *
 * The handover is the position up to which events come from the log; those
 * after it come by themselves, because whoever appends them knows the
 * projection as it is now.  It is set once every transaction that was writing
 * events when the projection was last changed has ended: such a transaction
 * may still go by what it knew before.
 */
#include "compat.h"

#include "access/transam.h"
#include "access/xact.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "storage/lockdefs.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

#include "apply.h"
#include "context.h"
#include "cursor.h"
#include "guc.h"
#include "lock.h"
#include "offset.h"
#include "outbox.h"
#include "projection.h"
#include "statement.h"
#include "tail.h"

PG_FUNCTION_INFO_V1(projector_drain);
PG_FUNCTION_INFO_V1(projector_retry);

/* Each pair takes three locks until the end of the transaction. */
#define MAX_PAIRS	64

/* How often a batch that is overtaken is tried again. */
#define MAX_TRIES	3

typedef struct DrainPair
{
	int32		projection_id;
	Datum		tenant;
	bool		entered;		/* its locks are ours */
	bool		finished;
	int64		applied;
	int64		failed;
} DrainPair;

typedef struct Drain
{
	DrainPair	pairs[MAX_PAIRS];
	int			npairs;
	int64		left;			/* events still allowed */
	MemoryContext batch;		/* reset after each batch */
} Drain;

static PjStatement set_handover = {
	.sql = "UPDATE projector.projections SET handover_log_seq = $2"
	" WHERE projection_id = $1 AND handover_log_seq IS NULL",
	.expect = SPI_OK_UPDATE,
	.nargs = 2,
	.argtypes = {INT4OID, INT8OID},
};

/* ---- handover ---- */

/*
 * Note the position up to which events are read from the log.  Returns false
 * if that cannot be known yet.
 */
static bool
hand_over(PjProjection *projection)
{
	int32		id = projection->id;
	TransactionId version = projection->version;
	Datum		values[2] = {Int32GetDatum(id)};

	if (TransactionIdIsCurrentTransactionId(version))
		return false;

	/* With the lock, the change of the projection is known to be out. */
	if (!pj_lock_projection(id, ShareLock, false))
		return false;
	projection = pj_projection_by_id(id);
	if (projection == NULL || projection->version != version)
		return false;
	if (!pj_tail_writers_gone(pj_tail_wait))
	{
		ereport(NOTICE,
				errmsg("projection \"%s\" is not drained yet",
					   projection->name),
				errdetail("Transactions that append events were open when it was created, reset or switched on, and still are."));
		return false;
	}
	values[1] = Int64GetDatum(pj_tail_last_log_seq());
	pj_execute(&set_handover, values, NULL);
	pj_cursors_start(projection);
	return true;
}

/* ---- batches ---- */

/* Apply one batch, again if somebody else gets in between. */
static void
apply_batch(PjApply *apply, DrainPair *dp)
{
	for (int tries = 0; tries < MAX_TRIES; tries++)
	{
		pj_apply(apply);
		dp->applied += apply->applied;
		dp->failed += apply->failed;
		if (!apply->conflict)
			return;
	}
}

/* Read the next piece of a pair's log.  Returns whether anything was done. */
static bool
read_log(PjPair *pair, DrainPair *dp, int limit)
{
	PjProjection *projection = pair->projection;
	PjEvent    *events;
	int64		last;
	PjApply		apply = {.pair = pair,.driver = PJ_BY_LOG};

	apply.ngiven = pj_source_load_log(pair->tenant, pair->last_log_seq,
									  projection->handover_log_seq,
									  projection->event_types, limit,
									  &events);
	if (apply.ngiven == 0)
	{
		pj_cursor_move(pair, projection->handover_log_seq, true, 0, 0);
		return true;
	}
	last = pj_event_log_seq(&events[apply.ngiven - 1]);
	pj_events_sort(events, apply.ngiven);
	apply.given = events;
	apply.nranges = pj_events_ranges(events, apply.ngiven, &apply.ranges);
	apply_batch(&apply, dp);
	if (apply.conflict)
		return false;
	pj_cursor_move(pair, last, false, 0, 0);
	return true;
}

/* Apply the next queued items.  Returns whether anything was done. */
static bool
read_queue(PjPair *pair, DrainPair *dp, int limit)
{
	PjApply		apply = {
		.pair = pair,
		.driver = PJ_BY_QUEUE,
		.limit = limit,
	};

	apply.nclaims = pj_outbox_claim(pair->projection->id, pair->tenant, limit,
									&apply.claims);
	apply.nranges = pj_outbox_ranges(apply.claims, apply.nclaims,
									 &apply.ranges);
	apply_batch(&apply, dp);
	return !apply.conflict &&
		apply.applied + apply.failed + apply.dropped + apply.held > 0;
}

static bool
is_drained(const PjPair *pair)
{
	return pair->mode != PJ_OFF && !pair->paused && pair->run_id == 0;
}

/* One batch of a pair.  Returns whether anything was done. */
static bool
drain_batch(DrainPair *dp, int64 left)
{
	PjProjection *projection = pj_projection_by_id(dp->projection_id);
	PjPair		pair;
	int			limit;

	if (!dp->entered)
	{
		if (projection == NULL ||
			!pj_lock_projection(dp->projection_id, ShareLock, false) ||
			!pj_lock_pair(dp->projection_id, dp->tenant, ShareLock, false) ||
			!pj_lock_driver(dp->projection_id, dp->tenant, false))
			return false;
		dp->entered = true;
		projection = pj_projection_by_id(dp->projection_id);
		if (projection == NULL)
			return false;
	}

	pj_pair_look(&pair, projection, dp->tenant);
	if (!is_drained(&pair))
		return false;
	limit = Min(projection->options.batch_size, left);
	if (!pair.replaying)
		return read_queue(&pair, dp, limit);
	return projection->handed_over && read_log(&pair, dp, limit);
}

/* ---- the loop ---- */

/* Take a pair in, unless there are enough or it would not be drained. */
static void
add_pair(Drain *drain, PjProjection *projection, Datum tenant)
{
	DrainPair  *dp = &drain->pairs[drain->npairs];
	PjPair		pair;

	if (drain->npairs == MAX_PAIRS)
		return;
	for (int i = 0; i < drain->npairs; i++)
		if (drain->pairs[i].projection_id == projection->id &&
			pj_text_equal(drain->pairs[i].tenant, tenant))
			return;
	pj_pair_look(&pair, projection, tenant);
	if (!is_drained(&pair))
		return;
	dp->projection_id = projection->id;
	dp->tenant = tenant;
	drain->npairs++;
}

/* Find the pairs of a projection that have something to do. */
static void
add_pairs(Drain *drain, PjProjection *projection, Datum tenant)
{
	Datum	   *tenants;
	int			n;

	if (projection->dormant)
		return;
	if (!projection->handed_over &&
		(projection->mode != PJ_OFF || projection->overrides))
	{
		int32		id = projection->id;

		hand_over(projection);
		projection = pj_projection_by_id(id);
	}

	if (tenant != 0)
	{
		add_pair(drain, projection, tenant);
		return;
	}
	n = pj_cursors_behind(projection, &tenants);
	for (int i = 0; i < n; i++)
		add_pair(drain, projection, tenants[i]);
	n = pj_outbox_tenants(projection->id, &tenants);
	for (int i = 0; i < n; i++)
		add_pair(drain, projection, tenants[i]);
}

/* Go round the pairs until none has anything to do. */
static int64
drain_pairs(Drain *drain)
{
	MemoryContext caller = MemoryContextSwitchTo(drain->batch);
	int64		applied = 0;
	bool		busy = true;

	while (busy)
	{
		busy = false;
		for (int i = 0; i < drain->npairs; i++)
		{
			DrainPair  *dp = &drain->pairs[i];
			int64		before = dp->applied;

			if (dp->finished || drain->left <= 0)
				continue;
			CHECK_FOR_INTERRUPTS();
			dp->finished = !drain_batch(dp, drain->left);
			busy = busy || !dp->finished;
			applied += dp->applied - before;
			drain->left -= dp->applied - before;
			MemoryContextReset(drain->batch);
		}
	}
	MemoryContextSwitchTo(caller);
	return applied;
}

/*
 * Let the cursors of the pairs follow the log's settled end, and note what
 * was done.
 */
static void
move_cursors(Drain *drain)
{
	int64		tail;
	bool		settled = pj_tail_settled(0, &tail);

	for (int i = 0; i < drain->npairs; i++)
	{
		DrainPair  *dp = &drain->pairs[i];
		PjPair		pair;
		bool		follows;

		if (!dp->entered)
			continue;
		pj_pair_look(&pair, pj_projection_by_id(dp->projection_id), dp->tenant);

		/* Events that come while it is off leave no trace but in the log. */
		follows = settled && !pair.replaying && pair.mode != PJ_OFF &&
			tail > pair.last_log_seq;
		if (follows || dp->applied + dp->failed > 0)
			pj_cursor_move(&pair, follows ? tail : 0, false, dp->applied,
						   dp->failed);
	}
}

/* See the install script. */
Datum
projector_drain(PG_FUNCTION_ARGS)
{
	Drain	   *drain = palloc0(sizeof(Drain));
	Datum		tenant = PG_ARGISNULL(1) ? (Datum) 0 : PG_GETARG_DATUM(1);
	PjProjection *projections;
	int			nprojections;
	int32	   *ids;
	PjContext	saved;
	int64		applied;

	pj_require_read_committed("projector_drain");
	pj_refuse_in_user_code("projector_drain");
	drain->left = PG_ARGISNULL(2) ? PG_INT64_MAX : PG_GETARG_INT64(2);
	if (drain->left < 1)
		ereport(ERROR,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("max_events must be positive"));
	drain->batch = AllocSetContextCreate(CurrentMemoryContext,
										 "projector batch",
										 ALLOCSET_DEFAULT_SIZES);

	if (!PG_ARGISNULL(0))
		pj_refuse_dormant(pj_projection_find(text_to_cstring(PG_GETARG_TEXT_PP(0))));
	pj_enter_internal(&saved);
	pj_outbox_sweep();

	/* by id: handing over changes the registry */
	nprojections = pj_projections(&projections);
	ids = palloc(sizeof(int32) * Max(nprojections, 1));
	for (int i = 0; i < nprojections; i++)
		ids[i] = projections[i].id;
	for (int i = 0; i < nprojections; i++)
	{
		PjProjection *projection = pj_projection_by_id(ids[i]);

		if (projection != NULL &&
			(PG_ARGISNULL(0) ||
			 strcmp(projection->name,
					text_to_cstring(PG_GETARG_TEXT_PP(0))) == 0))
			add_pairs(drain, projection, tenant);
	}
	applied = drain_pairs(drain);
	move_cursors(drain);
	pj_leave_internal(&saved);

	PG_RETURN_INT64(applied);
}

/* ---- one item ---- */

/*
 * Apply one queued event, and those of its aggregate before it.  The caller
 * has the pair's locks.
 */
static const char *
retry_item(PjPair *pair, Datum aggregate, int64 sequence_number)
{
	PjOffset	offset = {.aggregate = aggregate};
	PjRange		range = {.aggregate = aggregate,.upto = sequence_number};
	PjClaim		claim;
	DrainPair	dp = {0};
	PjApply		apply = {
		.pair = pair,
		.driver = PJ_BY_RETRY,
		.retry = sequence_number,
		.limit = pair->projection->options.batch_size,
		.ranges = &range,
		.nranges = 1,
		.claims = &claim,
		.nclaims = 1,
	};

	if (!pj_outbox_claim_one(pair->projection->id, pair->tenant, aggregate,
							 sequence_number, &claim))
		return "none";
	pj_offsets_load(pair->projection->id, pair->tenant, &offset, 1);
	if (offset.last >= sequence_number)
		ereport(ERROR,
				errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("event %lld of aggregate \"%s\" is not above the offset of projection \"%s\"",
					   (long long) sequence_number,
					   TextDatumGetCString(aggregate),
					   pair->projection->name),
				errdetail("The offset is %lld: the event has been applied or passed over.",
						  (long long) offset.last),
				errhint("To apply it again, rebuild the aggregate with projector_rebuild."));

	do
	{
		apply_batch(&apply, &dp);
	} while (apply.incomplete && apply.applied > 0 && apply.failed == 0);

	pj_cursor_move(pair, 0, false, dp.applied, dp.failed);
	if (apply.failed > 0 && apply.failed_at == sequence_number)
		return "failed";
	if (apply.dropped > 0)
		return "none";
	pj_offsets_load(pair->projection->id, pair->tenant, &offset, 1);
	return offset.last >= sequence_number ? "applied" : "held";
}

/* See the install script. */
Datum
projector_retry(PG_FUNCTION_ARGS)
{
	PjProjection *projection;
	PjContext	saved;
	PjPair		pair;
	const char *result;
	Datum		tenant;

	for (int i = 0; i < 4; i++)
		if (PG_ARGISNULL(i))
			ereport(ERROR,
					errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					errmsg("name, tenant_id, aggregate_id and sequence_number must not be null"));
	pj_require_read_committed("projector_retry");
	pj_refuse_in_user_code("projector_retry");
	projection = pj_projection_own(text_to_cstring(PG_GETARG_TEXT_PP(0)),
								   ShareLock);
	pj_refuse_dormant(projection);
	tenant = PG_GETARG_DATUM(1);

	pj_enter_internal(&saved);
	pj_lock_pair(projection->id, tenant, ShareLock, true);
	pj_lock_driver(projection->id, tenant, true);
	pj_pair_look(&pair, projection, tenant);
	if (pair.mode == PJ_OFF)
		ereport(ERROR,
				errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("projection \"%s\" is off for tenant \"%s\"",
					   projection->name, TextDatumGetCString(tenant)),
				errhint("Switch it on with projector_set_mode."));
	result = retry_item(&pair, PG_GETARG_DATUM(2), PG_GETARG_INT64(3));
	pj_leave_internal(&saved);

	PG_RETURN_TEXT_P(cstring_to_text(result));
}
