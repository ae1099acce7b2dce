/*
 * drain.c
 *	  projector_drain(): apply due events in the calling session.
 *
 * A drain goes through the pairs with work again and again, one batch each, so
 * that the backlog of one does not delay the others.  It does what a worker
 * does, but all in the caller's transaction.
 */
#include "base/compat.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/pg_list.h"
#include "storage/lockdefs.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

#include "apply/read_model.h"
#include "base/args.h"
#include "base/guc.h"
#include "base/lock.h"
#include "feed/due_pairs.h"
#include "feed/handover.h"
#include "feed/pair_step.h"
#include "ipc/operation.h"
#include "kinds/problem.h"
#include "log/tail.h"
#include "registry/identity.h"
#include "registry/projection.h"
#include "sandbox/user_context.h"
#include "state/delta.h"
#include "state/outbox.h"

PG_FUNCTION_INFO_V1(projector_drain);

/* Each pair takes three locks, held until the end of the transaction. */
#define MAX_PAIRS	64

/* So many of a projection are looked at: other sessions may hold some. */
#define MAX_LOOKED_AT	4096

/* The cursors of so many tenants follow the log. */
#define MAX_FOLLOWED	256

/* So many rows of inline appends are added up. */
#define MAX_ADDED_UP	1000

typedef struct DrainPair
{
	PjStep		step;
	bool		entered;		/* we hold its locks */
	bool		finished;
} DrainPair;

typedef struct Drain
{
	List	   *pairs;			/* list of DrainPair: those with work */
	int			entered;		/* number of pairs whose locks we hold */
	int64		left;			/* number of events still allowed */
	int64		upto;			/* later events are left to the next drain */
	PjScan		scan;
	MemoryContext batch;		/* reset after each batch */
} Drain;

/*
 * Set handovers.  A drain waits a little for transactions that prevent this.
 */
static void
hand_over(const int32 *ids, int n)
{
	int32		waits = pj_hand_over(ids, n, pj_tail_wait);

	if (waits)
		ereport(NOTICE,
				errmsg("projection \"%s\" is not drained yet",
					   pj_projection_by_id(waits)->name),
				errdetail("Transactions that append events were open when it was created, reset or switched on, and still are."),
				errhint("Call projector_drain again when they have ended."));
}

/* ---- the pairs ---- */

static void
add_pair(Drain *drain, const PjPair *pair)
{
	DrainPair  *dp = palloc0(sizeof(DrainPair));

	dp->step.projection_id = pair->projection->id;
	dp->step.tenant = pair->tenant;
	drain->pairs = lappend(drain->pairs, dp);
}

/* Add the pairs of a projection that have work. */
static void
add_pairs(Drain *drain, int32 projection_id)
{
	PjProjection *projection;
	PjPlace		place = {0};
	PjPair	   *pairs;
	int			n;

	/* With the lock it cannot change any more. */
	if (!pj_lock_projection(projection_id, ShareLock, false))
		return;
	projection = pj_projection_by_id(projection_id);
	if (projection == NULL)
		return;
	if (projection->dormant)
		ereport(NOTICE,
				errmsg("projection \"%s\" is dormant", projection->name),
				errhint("Run projector_adopt() to let projections run in this copy of their database."));
	else if (projection->mode != PJ_OFF && pj_projection_problem(projection))
		ereport(NOTICE,
				errmsg("projection \"%s\" has stopped: %s", projection->name,
					   pj_projection_problem(projection)),
				errhint("Repair the cause, or change the projection with projector_alter. The projection then continues automatically."));

	n = pj_pairs_due(&drain->scan, projection, &place, &pairs);
	for (int i = 0; i < n; i++)
		add_pair(drain, &pairs[i]);
}

/*
 * Take a pair's locks, unless we hold enough already.  A pair that another
 * session is working on is skipped.  Also find the log's tail, if needed.
 */
static bool
enter_pair(Drain *drain, DrainPair *dp)
{
	MemoryContext batch;

	if (dp->entered)
		return true;
	if (drain->entered == MAX_PAIRS)
		return false;
	batch = MemoryContextSwitchTo(GetMemoryChunkContext(dp));
	dp->entered = pj_step_enter(&dp->step);
	if (dp->entered && pj_pair_needs_tail(&dp->step.pair))
		pj_scan_log(&drain->scan);
	MemoryContextSwitchTo(batch);
	drain->entered += dp->entered;
	return dp->entered;
}

/* Apply one batch of a pair.  Returns how many events were applied. */
static int64
drain_batch(Drain *drain, DrainPair *dp)
{
	PjBounds	bounds = {
		.limit = Min(drain->left, PG_INT32_MAX),
		.upto = drain->upto,
	};
	int64		before = dp->step.counts.applied;

	dp->finished = !enter_pair(drain, dp);
	bounds.tail = Min(drain->scan.tail, drain->upto);
	dp->finished = dp->finished || pj_step(&dp->step, &bounds) != PJ_MORE;
	return dp->step.counts.applied - before;
}

/* Go through the pairs until none has work left. */
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
			int64		n;

			if (dp->finished || drain->left <= 0)
				continue;
			CHECK_FOR_INTERRUPTS();
			pj_operation_pair(dp->step.projection_id, dp->step.tenant);
			n = drain_batch(drain, dp);
			pj_operation_add(n);
			applied += n;
			drain->left -= n;
			busy = busy || !dp->finished;
			MemoryContextReset(drain->batch);
		}
	}
	MemoryContextSwitchTo(caller);
	return applied;
}

static void
save_pairs(Drain *drain)
{
	ListCell   *cell;

	foreach(cell, drain->pairs)
	{
		DrainPair  *dp = lfirst(cell);

		if (dp->entered)
			pj_step_save(&dp->step);
	}
}

/*
 * Some tenants for the cursors to follow, if nobody had to look at all of them.
 * Each drain of a session goes on where the one before has ended.
 */
static void
find_tenants(PjScan *scan)
{
	static text *after = NULL;
	MemoryContext caller;
	text	   *last = NULL;

	pj_source_tenants_after(PointerGetDatum(after), MAX_FOLLOWED, &scan->all);
	if (scan->all.count == MAX_FOLLOWED)
	{
		caller = MemoryContextSwitchTo(TopMemoryContext);
		last = DatumGetTextPCopy(scan->all.tenants[MAX_FOLLOWED - 1]);
		MemoryContextSwitchTo(caller);
	}
	if (after)
		pfree(after);
	after = last;
	scan->tail = pj_tail(0);
}

/* Let the cursors of pairs whose events are queued follow the log. */
static void
follow_log(Drain *drain, const int32 *ids, int n)
{
	PjScan	   *scan = &drain->scan;
	int			room = MAX_PAIRS;	/* new cursors are left to workers */

	scan->tail_wait = 0;
	if (scan->only)
		pj_scan_log(scan);
	else if (!scan->has_log)
		find_tenants(scan);
	for (int i = 0; i < n; i++)
		pj_follow_log(ids[i], &scan->all, scan->tail, false, &room);
}

/* Add up some of what inline appends have recorded. */
static void
add_up(int32 projection_id, Datum tenant)
{
	PjDeltaScan scan = {.projection_id = projection_id,.tenant = tenant};

	pj_deltas_restart(&scan);
	(void) pj_deltas_add_up(&scan, MAX_ADDED_UP, MAX_PAIRS);
	if (scan.other_layouts)
		pj_models_refresh_altered(projection_id, tenant);
}

/* ---- the function ---- */

/* Returns the projections to drain: all, or the one with that name. */
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

/* Does what a worker would do, in the calling session. */
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
	drain->scan.tail_wait = pj_tail_wait;
	drain->scan.only = tenant;
	drain->scan.limit = MAX_LOOKED_AT;
	drain->batch = AllocSetContextCreate(CurrentMemoryContext,
										 "projector batch",
										 ALLOCSET_DEFAULT_SIZES);
	n = drained_projections(name ? TextDatumGetCString(name) : NULL, &ids);

	pj_enter_internal(&saved);
	pj_operation_begin(PJ_DOES_DRAIN, name ? ids[0] : 0);
	pj_outbox_sweep();
	pj_identities_refresh();	/* so that a dump has the present names */

	/*
	 * otherwise a handler that appends events it subscribes to would never
	 * let us finish
	 */
	drain->upto = pj_source_last_log_seq();
	hand_over(ids, n);
	for (int i = 0; i < n; i++)
		add_pairs(drain, ids[i]);
	pj_operation_phase(PJ_PHASE_APPLYING);
	applied = drain_pairs(drain);
	save_pairs(drain);
	follow_log(drain, ids, n);
	add_up(name ? ids[0] : 0, tenant);
	pj_operation_end();
	pj_leave_internal(&saved);

	PG_RETURN_INT64(applied);
}
