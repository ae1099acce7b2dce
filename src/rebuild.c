/*
 * rebuild.c
 *	  Building read models anew from the log, in the caller's transaction:
 *	  projector_rebuild() and what belongs to it.
 *
 * A rebuild has its pair, or all pairs of its projection, to itself.  The
 * order matters:
 *
 *	1. Note up to where the log is settled.
 *	2. Remove the pair's queued items, and close its failures.
 *	3. Clear the read model, and forget the offsets.
 *	4. With a snapshot taken after that, read the events and apply them.
 *	5. Move the cursor to what was noted.
 *
 * An event that is committed after 2 keeps its item.  If it is read in 4
 * nevertheless, its offset says so when the item is met.  The other way round,
 * an event could be read by nobody and its item removed.
 *
 * Appends go on meanwhile; those of inline projections are queued.  Readers
 * see the old rows until the transaction commits.
 */
#include "compat.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/lockdefs.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "apply.h"
#include "args.h"
#include "clear.h"
#include "context.h"
#include "cursor.h"
#include "failure.h"
#include "guc.h"
#include "handover.h"
#include "lock.h"
#include "offset.h"
#include "outbox.h"
#include "projection.h"
#include "rebuild.h"
#include "source.h"
#include "step.h"
#include "tail.h"
#include "wakeup.h"

PG_FUNCTION_INFO_V1(projector_rebuild);
PG_FUNCTION_INFO_V1(projector_rebuild_all);
PG_FUNCTION_INFO_V1(projector_catch_up);
PG_FUNCTION_INFO_V1(projector_clear);

/* A pair being rebuilt. */
typedef struct Rebuild
{
	PjPair		pair;
	Datum		aggregate;		/* 0 for all */
	PjOnError	on_error;
	int64		upto;			/* in log order: read no further */
	int64		applied;
	int64		failed;
	MemoryContext batch;		/* reset after each batch */
	TimestampTz reported_at;
} Rebuild;

/* ---- telling people ---- */

/* Somebody at a terminal wants to see that it moves. */
static void
report_progress(Rebuild *rebuild)
{
	TimestampTz now = GetCurrentTimestamp();

	CHECK_FOR_INTERRUPTS();
	if (pj_progress_interval == 0 ||
		!TimestampDifferenceExceeds(rebuild->reported_at, now,
									pj_progress_interval))
		return;
	rebuild->reported_at = now;
	ereport(NOTICE,
			errmsg("projection \"%s\", tenant \"%s\": %lld events",
				   rebuild->pair.projection->name,
				   TextDatumGetCString(rebuild->pair.tenant),
				   (long long) rebuild->applied));
}

static void
refuse_shadow(const PjPair *pair)
{
	if (pair->mode == PJ_SHADOW)
		ereport(ERROR,
				errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("projection \"%s\" is in mode \"shadow\" for tenant \"%s\"",
					   pair->projection->name,
					   TextDatumGetCString(pair->tenant)),
				errhint("Change it first with projector_set_mode."));
}

/* ---- replaying ---- */

/* Apply the next events; in log order they are as they are in the log. */
static void
replay_events(Rebuild *rebuild, PjEvent *events, int n)
{
	PjApply		apply = {
		.pair = &rebuild->pair,
		.driver = PJ_BY_LOG,
		.given = events,
		.ngiven = n,
		.on_error = rebuild->on_error,
		.rebuild = true,
	};

	if (rebuild->pair.projection->log_ordered)
		pj_events_sort(events, n);
	apply.nranges = pj_events_ranges(events, n, &apply.ranges);
	if (rebuild->pair.projection->log_ordered)
		pj_events_sort_by_log(events, n);
	pj_apply(&apply);
	if (apply.conflict)
		ereport(ERROR,
				errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				errmsg("projection \"%s\" is being applied by another transaction",
					   rebuild->pair.projection->name),
				errhint("Try again."));
	rebuild->applied += apply.applied;
	rebuild->failed += apply.failed;
	report_progress(rebuild);
}

static void
replay_by_aggregate(Rebuild *rebuild)
{
	const PjProjection *projection = rebuild->pair.projection;
	PjEventScan scan;
	PjEvent    *events;
	int			n;

	pj_source_scan_begin(&scan, rebuild->pair.tenant, rebuild->aggregate,
						 projection->event_types);
	for (;;)
	{
		MemoryContext caller = MemoryContextSwitchTo(rebuild->batch);

		n = pj_source_scan_next(&scan, projection->options.batch_size,
								&events);
		if (n > 0)
			replay_events(rebuild, events, n);
		MemoryContextSwitchTo(caller);
		MemoryContextReset(rebuild->batch);
		if (n == 0)
			break;
	}
	pj_source_scan_end(&scan);
}

static void
replay_by_log(Rebuild *rebuild)
{
	const PjProjection *projection = rebuild->pair.projection;
	int64		after = 0;
	PjEvent    *events;
	int			n;

	do
	{
		MemoryContext caller = MemoryContextSwitchTo(rebuild->batch);

		n = pj_source_load_log(rebuild->pair.tenant, after, rebuild->upto,
							   projection->event_types,
							   projection->options.batch_size, &events);
		if (n > 0)
		{
			after = pj_event_log_seq(&events[n - 1]);
			replay_events(rebuild, events, n);
		}
		MemoryContextSwitchTo(caller);
		MemoryContextReset(rebuild->batch);
	} while (n > 0);
}

/* ---- rebuild ---- */

/*
 * The position up to which everything is settled.  In log order nothing
 * behind it can be read, so it is worth a little waiting.
 */
static int64
settled_tail(const PjPair *pair)
{
	if (!pair->projection->log_ordered)
		return pj_tail(0);
	return Max(pj_tail(pj_tail_wait), pair->last_log_seq);
}

static void
note_cursor(Rebuild *rebuild, int64 tail)
{
	PjPair	   *pair = &rebuild->pair;

	/* one that had stopped goes on, unless that event is still to come */
	if (pair->state == PJ_STOPPED && tail > pair->last_log_seq)
		pair->state = PJ_REPLAYING;
	pair->last_log_seq = Max(pair->last_log_seq, tail);
	if (pj_pair_behind(pair) && pair->projection->handed_over &&
		pair->last_log_seq >= pair->projection->handover_log_seq)
		pair->state = PJ_LIVE;
	pj_cursor_save(pair, rebuild->applied, rebuild->failed);
}

/* Rebuild one tenant.  The caller has the locks, and our own context. */
static int64
rebuild_tenant(PjProjection *projection, Datum tenant)
{
	Rebuild		rebuild = {.reported_at = GetCurrentTimestamp()};
	PjPair	   *pair = &rebuild.pair;
	const char *on_error = projection->options.on_rebuild_error;
	int64		tail;

	pj_pair_look(pair, projection, tenant);
	pj_pair_refuse_run(pair);
	refuse_shadow(pair);
	rebuild.on_error = strcmp(on_error, "raise") == 0 ? PJ_ERROR_RAISED :
		strcmp(on_error, "skip") == 0 ? PJ_ERROR_SKIPPED : PJ_ERROR_RECORDED;
	rebuild.batch = AllocSetContextCreate(CurrentMemoryContext,
										  "projector rebuild",
										  ALLOCSET_DEFAULT_SIZES);
	tail = settled_tail(pair);
	rebuild.upto = projection->log_ordered ? tail : PG_INT64_MAX;
	pj_outbox_clear_upto(projection->id, tenant, rebuild.upto);
	pj_failure_rebuilt(projection, tenant, 0, rebuild.upto);
	(void) pj_clear(projection, tenant, 0);
	pj_offsets_delete(projection->id, tenant, 0);

	/* all is replayed, whatever state the pair was in */
	if (projection->log_ordered)
		replay_by_log(&rebuild);
	else
		replay_by_aggregate(&rebuild);
	note_cursor(&rebuild, tail);
	MemoryContextDelete(rebuild.batch);
	return rebuild.applied;
}

/*
 * Rebuild one aggregate: its rows, its items, its offset.  The caller has the
 * locks, and our own context.
 */
int64
pj_rebuild_aggregate(PjProjection *projection, Datum tenant,
					 Datum aggregate)
{
	Rebuild		rebuild = {.aggregate = aggregate,
		.on_error = PJ_ERROR_RAISED,
	.reported_at = GetCurrentTimestamp()};

	if (projection->log_ordered)
		ereport(ERROR,
				errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				errmsg("projection \"%s\" cannot be rebuilt for one aggregate",
					   projection->name),
				errdetail("It is applied in the order of the log, in which other aggregates' events come between."),
				errhint("Rebuild the tenant."));
	pj_pair_look(&rebuild.pair, projection, tenant);
	pj_pair_refuse_run(&rebuild.pair);
	refuse_shadow(&rebuild.pair);
	rebuild.batch = AllocSetContextCreate(CurrentMemoryContext,
										  "projector rebuild",
										  ALLOCSET_DEFAULT_SIZES);
	pj_outbox_clear(projection->id, tenant, aggregate);
	pj_failure_rebuilt(projection, tenant, aggregate, PG_INT64_MAX);
	(void) pj_clear(projection, tenant, aggregate);
	pj_offsets_delete(projection->id, tenant, aggregate);
	replay_by_aggregate(&rebuild);
	MemoryContextDelete(rebuild.batch);
	return rebuild.applied;
}

/* All tenants: those in the log, and those in the read model alone. */
static int64
rebuild_tenants(PjProjection *projection)
{
	PjTenants	all;
	Datum	   *others;
	int			nothers;
	int64		applied = 0;

	pj_source_tenants(&all);
	nothers = pj_clear_tenants(projection, &others);
	for (int i = 0; i < all.count; i++)
		applied += rebuild_tenant(projection, all.tenants[i]);
	for (int i = 0; i < nothers; i++)
	{
		bool		known = false;

		for (int j = 0; j < all.count && !known; j++)
			known = pj_text_equal(all.tenants[j], others[i]);
		if (!known)
			(void) pj_clear(projection, others[i], 0);
	}
	return applied;
}

/* Take the locks of a pair, or of all pairs of the projection. */
static PjProjection *
lock_alone(const char *name, Datum tenant)
{
	PjProjection *projection = pj_projection_own(name, tenant ? ShareLock :
												 ExclusiveLock);

	pj_refuse_dormant(projection);
	if (tenant)
	{
		pj_lock_pair(projection->id, tenant, ExclusiveLock, true);
		pj_lock_driver(projection->id, tenant, true);
	}
	return projection;
}

static int64
rebuild_projection(const char *name, Datum tenant, Datum aggregate)
{
	PjProjection *projection = lock_alone(name, tenant);
	PjContext	saved;
	int64		applied;

	pj_clear_check(projection, aggregate != 0);
	pj_wake_at_commit();
	pj_enter_internal(&saved);
	if (aggregate)
		applied = pj_rebuild_aggregate(projection, tenant, aggregate);
	else if (tenant)
		applied = rebuild_tenant(projection, tenant);
	else
		applied = rebuild_tenants(projection);
	pj_leave_internal(&saved);
	return applied;
}

/* See the install script. */
Datum
projector_rebuild(PG_FUNCTION_ARGS)
{
	char	   *name = pj_required_name(fcinfo, 0, "name");
	Datum		tenant = pj_optional_text(fcinfo, 1, "tenant_id");
	Datum		aggregate = pj_optional_text(fcinfo, 2, "aggregate_id");

	if (aggregate && !tenant)
		ereport(ERROR,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("an aggregate can be rebuilt for one tenant only"),
				errhint("Give tenant_id too."));
	pj_require_read_committed("projector_rebuild");
	pj_refuse_in_user_code("projector_rebuild");
	PG_RETURN_INT64(rebuild_projection(name, tenant, aggregate));
}

/* ---- all projections ---- */

/* Has everything it depends on been dealt with? */
static bool
is_ready(const PjProjection *projection, PjProjection *projections, int n,
		 const bool *done)
{
	for (int d = 0; projection->options.depends_on[d]; d++)
		for (int i = 0; i < n; i++)
			if (!done[i] && strcmp(projections[i].name,
								   projection->options.depends_on[d]) == 0)
				return false;
	return true;
}

/* See the install script. */
Datum
projector_rebuild_all(PG_FUNCTION_ARGS)
{
	Datum		tenant = pj_optional_text(fcinfo, 0, "tenant_id");
	PjProjection *projections;
	int			n;
	bool	   *done;
	int			left;
	int64		applied = 0;

	pj_require_read_committed("projector_rebuild_all");
	pj_refuse_in_user_code("projector_rebuild_all");
	left = n = pj_projections(&projections);
	done = palloc0(sizeof(bool) * Max(n, 1));
	while (left > 0)
	{
		int			before = left;

		for (int i = 0; i < n; i++)
		{
			if (done[i] || !is_ready(&projections[i], projections, n, done))
				continue;
			applied += rebuild_projection(projections[i].name, tenant, 0);
			done[i] = true;
			left--;
		}
		if (left == before)
			elog(ERROR, "projections depend on each other in a circle");
	}
	PG_RETURN_INT64(applied);
}

/* ---- catch up ---- */

/* What waits and what the log has, up to a position. */
static int64
catch_up_tenant(PjProjection *projection, Datum tenant, int64 upto)
{
	PjStep		step = {.projection_id = projection->id,.tenant = tenant};
	PjBounds	bounds = {.limit = PG_INT32_MAX,.upto = upto};
	MemoryContext batch = AllocSetContextCreate(CurrentMemoryContext,
												"projector catch-up",
												ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = CurrentMemoryContext;
	PjMode		mode;
	int64		applied;
	PjProgress	progress;

	pj_pair_look(&step.pair, projection, tenant);
	pj_pair_refuse_run(&step.pair);
	refuse_shadow(&step.pair);
	bounds.tail = Min(pj_tail(pj_tail_wait), upto);

	/* an order: whatever the mode, the log is read from the cursor on */
	mode = step.pair.mode;
	step.pair.mode = PJ_FOLLOW;
	step.pair.paused = false;
	do
	{
		MemoryContextSwitchTo(batch);
		progress = pj_step(&step, &bounds);
		CHECK_FOR_INTERRUPTS();
		MemoryContextSwitchTo(caller);
		MemoryContextReset(batch);
	} while (progress == PJ_MORE);
	step.pair.mode = mode;
	applied = step.applied;
	pj_step_save(&step);
	MemoryContextDelete(batch);
	return applied;
}

/* See the install script. */
Datum
projector_catch_up(PG_FUNCTION_ARGS)
{
	char	   *name = pj_required_name(fcinfo, 0, "name");
	Datum		tenant = pj_optional_text(fcinfo, 1, "tenant_id");
	int64		upto = PG_ARGISNULL(2) ? PG_INT64_MAX : PG_GETARG_INT64(2);
	PjProjection *projection;
	PjContext	saved;
	int64		applied = 0;

	pj_require_read_committed("projector_catch_up");
	pj_refuse_in_user_code("projector_catch_up");
	projection = lock_alone(name, tenant);
	pj_wake_at_commit();
	pj_enter_internal(&saved);
	(void) pj_hand_over(&projection->id, 1, pj_tail_wait);
	projection = pj_projection_by_id(projection->id);
	if (tenant)
		applied = catch_up_tenant(projection, tenant, upto);
	else
	{
		PjTenants	all;

		pj_source_tenants(&all);
		for (int i = 0; i < all.count; i++)
			applied += catch_up_tenant(projection, all.tenants[i], upto);
	}
	pj_leave_internal(&saved);

	PG_RETURN_INT64(applied);
}

/* ---- clear ---- */

/* See the install script. */
Datum
projector_clear(PG_FUNCTION_ARGS)
{
	char	   *name = pj_required_name(fcinfo, 0, "name");
	Datum		tenant = pj_required_text(fcinfo, 1, "tenant_id");
	PjProjection *projection;
	PjPair		pair;

	pj_require_read_committed("projector_clear");
	pj_refuse_in_user_code("projector_clear");
	projection = lock_alone(name, tenant);
	pj_pair_look(&pair, projection, tenant);
	pj_pair_refuse_run(&pair);
	refuse_shadow(&pair);
	PG_RETURN_INT64(pj_clear(projection, tenant, 0));
}
