/*
 * drain.c
 *	  Applying queued events in the calling session: projector_drain().
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
#include "nodes/pg_list.h"
#include "storage/lockdefs.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

#include "apply.h"
#include "args.h"
#include "context.h"
#include "cursor.h"
#include "guc.h"
#include "lock.h"
#include "outbox.h"
#include "projection.h"
#include "statement.h"
#include "tail.h"

PG_FUNCTION_INFO_V1(projector_drain);

/* Each pair takes three locks until the end of the transaction. */
#define MAX_PAIRS	64

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
	List	   *pairs;			/* of DrainPair: those with something to do */
	int			entered;		/* how many of them we have entered */
	int64		left;			/* events still allowed */
	int64		upto;			/* what comes later is left to the next drain */
	MemoryContext batch;		/* reset after each batch */
} Drain;

/* If another drain is at it, it is left to that one. */
static PjStatement set_handover = {
	.sql = "UPDATE projector.projections SET handover_log_seq = $2"
	" WHERE ctid = ANY (ARRAY (SELECT ctid FROM projector.projections"
	" WHERE projection_id = $1 AND xmin = $3 FOR UPDATE SKIP LOCKED))",
	.expect = SPI_OK_UPDATE,
	.nargs = 3,
	.argtypes = {INT4OID, INT8OID, XIDOID},
};

/* ---- handover ---- */

static bool
needs_handover(const PjProjection *projection)
{
	return !projection->dormant && !projection->handed_over &&
		(projection->mode != PJ_OFF || projection->overrides) &&
		!TransactionIdIsCurrentTransactionId(projection->version);
}

/* A projection about to be handed over, as it was before we waited. */
typedef struct Handover
{
	int32		id;
	TransactionId version;
} Handover;

/*
 * Those of the drained projections that need a handover, locked.  With the
 * lock, the last change of the projection is known to be out: who starts
 * writing from now on goes by it.
 */
static int
begin_handovers(const int32 *ids, int n, Handover *handovers)
{
	int			count = 0;

	for (int i = 0; i < n; i++)
	{
		PjProjection *projection = pj_projection_by_id(ids[i]);

		if (projection == NULL || !needs_handover(projection) ||
			!pj_lock_projection(ids[i], ShareLock, false))
			continue;
		projection = pj_projection_by_id(ids[i]);
		if (projection == NULL || !needs_handover(projection))
			continue;
		handovers[count].id = projection->id;
		handovers[count++].version = projection->version;
	}
	return count;
}

/*
 * Note the position up to which events are read from the log, for all
 * projections that have none.  Nothing happens to one that has been changed
 * again while we waited.
 */
static void
hand_over(const int32 *ids, int n)
{
	Handover   *handovers = palloc(sizeof(Handover) * Max(n, 1));
	int64		last;

	n = begin_handovers(ids, n, handovers);
	if (n == 0)
		return;
	if (!pj_tail_writers_gone(pj_tail_wait))
	{
		ereport(NOTICE,
				errmsg("projection \"%s\" is not drained yet",
					   pj_projection_by_id(handovers[0].id)->name),
				errdetail("Transactions that append events were open when it was created, reset or switched on, and still are."),
				errhint("Call projector_drain again when they have ended."));
		return;
	}
	last = pj_source_last_log_seq();
	for (int i = 0; i < n; i++)
	{
		Datum		values[3] = {Int32GetDatum(handovers[i].id),
			Int64GetDatum(last),
		TransactionIdGetDatum(handovers[i].version)};

		if (pj_execute(&set_handover, values, NULL) == 1)
			pj_cursors_start(handovers[i].id);
	}
}

/* ---- batches ---- */

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
	pj_apply(&apply);
	dp->applied += apply.applied;
	dp->failed += apply.failed;
	if (apply.conflict)
		return false;
	pj_cursor_move(pair, last, false, 0, 0);
	return true;
}

/* Apply the next queued items.  Returns whether anything was done. */
static bool
read_queue(PjPair *pair, DrainPair *dp, int limit, int64 upto)
{
	PjApply		apply = {
		.pair = pair,
		.driver = PJ_BY_QUEUE,
	};

	apply.nclaims = pj_outbox_claim(pair->projection->id, pair->tenant, limit,
									upto, &apply.claims);
	apply.nranges = pj_outbox_ranges(apply.claims, apply.nclaims,
									 &apply.ranges);
	pj_apply(&apply);
	dp->applied += apply.applied;
	dp->failed += apply.failed;
	return !apply.conflict &&
		apply.applied + apply.failed + apply.dropped + apply.held > 0;
}

static bool
is_drained(const PjPair *pair)
{
	return pair->mode != PJ_OFF && !pair->paused && pair->run_id == 0 &&
		(pair->projection->handed_over || !pair->replaying);
}

/*
 * Take a pair's locks, unless we have enough of them.  One that is being
 * drained by somebody else is passed over.
 */
static bool
enter_pair(Drain *drain, DrainPair *dp)
{
	if (dp->entered)
		return true;
	if (drain->entered == MAX_PAIRS ||
		!pj_lock_pair(dp->projection_id, dp->tenant, ShareLock, false) ||
		!pj_lock_driver(dp->projection_id, dp->tenant, false))
		return false;
	drain->entered++;
	dp->entered = true;
	return true;
}

/* One batch of a pair.  Returns whether anything was done. */
static bool
drain_batch(Drain *drain, DrainPair *dp)
{
	PjPair		pair;
	int			limit;

	if (!enter_pair(drain, dp))
		return false;
	pj_pair_look(&pair, pj_projection_by_id(dp->projection_id), dp->tenant);
	if (!is_drained(&pair))
		return false;
	limit = Min(pair.projection->options.batch_size, drain->left);
	return pair.replaying ? read_log(&pair, dp, limit) :
		read_queue(&pair, dp, limit, drain->upto);
}

/* ---- the loop ---- */

static void
add_pair(Drain *drain, const PjPair *pair)
{
	DrainPair  *dp;

	if (!is_drained(pair))
		return;
	dp = palloc0(sizeof(DrainPair));
	dp->projection_id = pair->projection->id;
	dp->tenant = pair->tenant;
	drain->pairs = lappend(drain->pairs, dp);
}

/* Find the pairs of a projection that have something to do. */
static void
add_pairs(Drain *drain, int32 projection_id, Datum tenant)
{
	PjProjection *projection;
	PjPair		pair;
	Datum	   *tenants;
	int			n;

	/* Once we have the lock it stays as it is. */
	if (!pj_lock_projection(projection_id, ShareLock, false))
		return;
	projection = pj_projection_by_id(projection_id);
	if (projection == NULL)
		return;
	if (projection->dormant)
	{
		ereport(NOTICE,
				errmsg("projection \"%s\" is dormant", projection->name),
				errhint("Run projector_adopt() if projections shall run in this copy of their database."));
		return;
	}

	if (tenant != 0)
	{
		pj_pair_look(&pair, projection, tenant);
		add_pair(drain, &pair);
		return;
	}
	n = pj_cursors_behind(projection, &tenants);
	for (int i = 0; i < n; i++)
	{
		pj_pair_look(&pair, projection, tenants[i]);
		add_pair(drain, &pair);
	}

	/* those among them that have queued items too are there already */
	n = pj_outbox_tenants(projection->id, &tenants);
	for (int i = 0; i < n; i++)
	{
		pj_pair_look(&pair, projection, tenants[i]);
		if (!pair.replaying)
			add_pair(drain, &pair);
	}
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
		ListCell   *cell;

		busy = false;
		foreach(cell, drain->pairs)
		{
			DrainPair  *dp = lfirst(cell);
			int64		before = dp->applied;

			if (dp->finished || drain->left <= 0)
				continue;
			CHECK_FOR_INTERRUPTS();
			dp->finished = !drain_batch(drain, dp);
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
	ListCell   *cell;

	foreach(cell, drain->pairs)
	{
		DrainPair  *dp = lfirst(cell);
		PjPair		pair;
		bool		follows;

		if (!dp->entered)
			continue;
		pj_pair_look(&pair, pj_projection_by_id(dp->projection_id), dp->tenant);

		/* Events that come while it is off leave no trace but in the log. */
		follows = settled && pair.exists && !pair.replaying &&
			pair.mode != PJ_OFF && tail > pair.last_log_seq;
		if (follows || dp->applied + dp->failed > 0)
			pj_cursor_move(&pair, follows ? tail : 0, false, dp->applied,
						   dp->failed);
	}
}

/* The projections to drain: all, or the one of that name. */
static int
drained_projections(const char *name, int32 **ids)
{
	PjProjection *projections;
	int			n = pj_projections(&projections);

	if (name != NULL)
	{
		projections = pj_projection_find(name);
		pj_refuse_dormant(projections);
		n = 1;
	}
	*ids = palloc(sizeof(int32) * Max(n, 1));
	for (int i = 0; i < n; i++)
		(*ids)[i] = projections[i].id;
	return n;
}

/* See the install script. */
Datum
projector_drain(PG_FUNCTION_ARGS)
{
	Datum		name = pj_optional_text(fcinfo, 0, "name");
	Datum		tenant = pj_optional_text(fcinfo, 1, "tenant_id");
	Drain	   *drain = palloc0(sizeof(Drain));
	int32	   *ids;
	int			n;
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
	n = drained_projections(name ? TextDatumGetCString(name) : NULL, &ids);

	pj_enter_internal(&saved);
	pj_outbox_sweep();

	/* or a handler that appends what it subscribes to would keep us busy */
	drain->upto = pj_source_last_log_seq();
	hand_over(ids, n);
	for (int i = 0; i < n; i++)
		add_pairs(drain, ids[i], tenant);
	applied = drain_pairs(drain);
	move_cursors(drain);
	pj_leave_internal(&saved);

	PG_RETURN_INT64(applied);
}
