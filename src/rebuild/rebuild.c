/*
 * rebuild.c
 *	  Rebuild read models from the log, in the caller's transaction:
 *	  projector_rebuild() and related functions.
 *
 * rebuild_steps.c describes the steps and why they come in this order.
 * Appends continue in the meantime; those of inline projections are queued.
 * Readers see the old rows until the transaction commits.
 */
#include "base/compat.h"

#include "access/xact.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "apply/read_model.h"
#include "base/args.h"
#include "base/guc.h"
#include "base/lock.h"
#include "feed/handover.h"
#include "feed/pair_step.h"
#include "ipc/wakeup.h"
#include "kinds/definition.h"
#include "kinds/problem.h"
#include "log/log_read.h"
#include "log/tail.h"
#include "rebuild/clear.h"
#include "rebuild/rebuild.h"
#include "rebuild/rebuild_steps.h"
#include "rebuild/replay.h"
#include "rebuild/tenant.h"
#include "registry/projection.h"
#include "registry/target_guard.h"
#include "sandbox/user_context.h"
#include "state/audit.h"
#include "state/cursor.h"
#include "state/run_row.h"

PG_FUNCTION_INFO_V1(projector_rebuild);
PG_FUNCTION_INFO_V1(projector_catch_up);

/* ---- progress ---- */

/* Report progress now and then, for a user at a terminal. */
static void
report_progress(const PjReplay *replay, TimestampTz *reported_at)
{
	TimestampTz now = GetCurrentTimestamp();

	if (pj_progress_interval == 0 ||
		!TimestampDifferenceExceeds(*reported_at, now, pj_progress_interval))
		return;
	*reported_at = now;
	ereport(pj_progress_level,
			errmsg("projection \"%s\", tenant \"%s\": %lld events",
				   replay->pair->projection->name,
				   TextDatumGetCString(replay->pair->tenant),
				   (long long) replay->counts.applied));
}

/* ---- rebuild ---- */

/*
 * Read and apply all current events, with the memory of one batch at a time.
 */
static void
replay_all(PjReplay *replay)
{
	TimestampTz reported_at = GetCurrentTimestamp();
	MemoryContext batch = AllocSetContextCreate(CurrentMemoryContext,
												"projector rebuild",
												ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(batch);

	CommandCounterIncrement();
	replay->walk.snapshot = RegisterSnapshot(GetLatestSnapshot());
	pj_replay_in_memory(replay);
	while (pj_replay_batch(replay) > 0)
	{
		CHECK_FOR_INTERRUPTS();
		report_progress(replay, &reported_at);
		MemoryContextReset(batch);
	}
	pj_replay_flush(replay);
	UnregisterSnapshot(replay->walk.snapshot);
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(batch);
}

/* Read the state of a pair.  Raises an error if it cannot be rebuilt now. */
static void
look_at_pair(PjPair *pair, PjProjection *projection, Datum tenant)
{
	pj_pair_look(pair, projection, tenant);
	pj_run_refuse(projection, tenant);
	pj_refuse_shadow(pair);
}

/* Rebuild one tenant.  The caller has called pj_enter_internal(). */
static int64
rebuild_tenant(PjProjection *projection, Datum tenant)
{
	PjPair		pair;
	PjRebuild	rebuild = {.pair = &pair};
	PjReplay	replay;
	bytea	   *definition = pj_definition_now(projection);

	Assert(pj_pair_is_ours(projection->id, tenant));
	look_at_pair(&pair, projection, tenant);
	pj_tenant_require(&pair);	/* before its rows are deleted */

	/* in log order it is worth waiting a little for the tail to settle */
	pj_rebuild_note(&rebuild, pj_tail(projection->log_ordered ?
									  pj_tail_wait : 0), PG_INT64_MAX);
	(void) pj_rebuild_forget(&rebuild);
	if (definition)
		pj_cursor_set_definition(&pair, definition);

	/* replay everything, whatever state the pair was in */
	pj_replay_init(&replay, &pair, rebuild.upto);
	replay_all(&replay);
	pj_replay_end(&pair, rebuild.settled, &replay.counts);
	return replay.counts.applied;
}

/*
 * Rebuild one aggregate: its rows, its items, its offset.  The caller has
 * called pj_enter_internal().
 */
int64
pj_rebuild_aggregate(PjProjection *projection, Datum tenant,
					 Datum aggregate)
{
	PjPair		pair;
	PjRebuild	rebuild = {.pair = &pair,.aggregate = aggregate};
	PjReplay	replay;

	Assert(pj_pair_is_ours(projection->id, tenant));
	if (projection->log_ordered)
		ereport(ERROR,
				errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				errmsg("projection \"%s\" cannot be rebuilt for one aggregate",
					   projection->name),
				errdetail("It is applied in log order, and events of other aggregates come in between."),
				errhint("Rebuild the tenant."));
	look_at_pair(&pair, projection, tenant);
	pj_tenant_require(&pair);

	/* the cursor does not move, so no tail is needed */
	pj_rebuild_note(&rebuild, 0, PG_INT64_MAX);
	if (pj_rebuild_forget(&rebuild) == 0)
		pj_tenant_refuse(&pair, aggregate);
	pj_replay_init(&replay, &pair, rebuild.upto);
	replay.on_error = PJ_ERROR_RAISED;
	replay.walk.aggregate = aggregate;
	replay.walk.alone = true;
	replay_all(&replay);

	/* recompute it: the rows may have been changed by hand before */
	if (pj_digest_is_kept(projection))
		pj_model_refresh(&pair, pair.last_log_seq);
	return replay.counts.applied;
}

/*
 * Rebuild all tenants: those in the log, and those found only in the read
 * model.
 */
static int64
rebuild_tenants(PjProjection *projection)
{
	PjTenants	all;
	Datum	   *others;
	int			nothers;
	int64		applied = 0;
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "projector tenant",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller;

	pj_source_tenants(&all);
	nothers = pj_clear_tenants(projection, &others);
	caller = MemoryContextSwitchTo(context);
	for (int i = 0; i < all.count; i++)
	{
		applied += rebuild_tenant(projection, all.tenants[i]);
		MemoryContextReset(context);
	}
	for (int i = 0; i < nothers; i++)
	{
		if (pj_text_among(others[i], all.tenants, all.count))
			continue;
		pj_run_refuse(projection, others[i]);
		(void) pj_clear(projection, others[i], 0);
		MemoryContextReset(context);
	}
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(context);
	return applied;
}

static int64
rebuild_projection(const char *name, Datum tenant, Datum aggregate)
{
	PjProjection *projection = pj_take_alone("projector_rebuild", name, tenant);
	PjContext	saved;
	int64		applied;

	pj_refuse_problem(projection);
	pj_clear_check(projection, aggregate != 0);
	pj_guard_report_writes(projection);
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

/* Rebuild all projections of the caller, each after those it depends on. */
static int64
rebuild_all(Datum tenant)
{
	PjProjection **projections;
	int			n = pj_projections_in_order(&projections);
	int64		applied = 0;

	for (int i = 0; i < n; i++)
		if (pj_projection_is_own(projections[i]))
			applied += rebuild_projection(projections[i]->name, tenant, 0);
	return applied;
}

/*
 * Rebuilds a projection's read model, for all tenants, one, or one aggregate;
 * or those of all projections.
 */
Datum
projector_rebuild(PG_FUNCTION_ARGS)
{
	Datum		name = pj_optional_text(fcinfo, 0, "name");
	Datum		tenant = pj_optional_text(fcinfo, 1, "tenant_id");
	Datum		aggregate = pj_optional_text(fcinfo, 2, "aggregate_id");
	int64		applied;

	if (aggregate && !tenant)
		ereport(ERROR,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("an aggregate can be rebuilt for one tenant only"),
				errhint("Give tenant_id too."));
	if (aggregate && !name)
		ereport(ERROR,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("an aggregate can be rebuilt for one projection only"),
				errhint("Give the projection's name too."));
	applied = name ? rebuild_projection(TextDatumGetCString(name), tenant,
										aggregate) : rebuild_all(tenant);
	pj_audit_count(fcinfo, applied);

	PG_RETURN_INT64(applied);
}

/* ---- catch up ---- */

/* Apply queued items and events from the log, up to a position. */
static int64
catch_up_tenant(PjProjection *projection, Datum tenant, int64 upto)
{
	PjStep		step = {.projection_id = projection->id,.tenant = tenant};
	PjBounds	bounds = {.limit = PG_INT32_MAX,.upto = upto,.ordered = true};
	MemoryContext batch = AllocSetContextCreate(CurrentMemoryContext,
												"projector catch-up",
												ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = CurrentMemoryContext;
	int64		applied;
	PjProgress	progress;

	look_at_pair(&step.pair, projection, tenant);
	pj_tenant_require(&step.pair);
	bounds.tail = Min(pj_tail(pj_tail_wait), upto);
	do
	{
		MemoryContextSwitchTo(batch);
		progress = pj_step_ordered(&step, &bounds);
		CHECK_FOR_INTERRUPTS();
		MemoryContextSwitchTo(caller);
		MemoryContextReset(batch);
	} while (progress == PJ_MORE);
	pj_refuse_problem(projection);	/* raise an error if this has stopped it */
	applied = step.counts.applied;
	pj_step_save(&step);
	MemoryContextDelete(batch);
	return applied;
}

/* Applies queued items and events from the log, up to a position. */
Datum
projector_catch_up(PG_FUNCTION_ARGS)
{
	char	   *name = pj_required_name(fcinfo, 0, "name");
	Datum		tenant = pj_optional_text(fcinfo, 1, "tenant_id");
	int64		upto = PG_ARGISNULL(2) ? PG_INT64_MAX : PG_GETARG_INT64(2);
	PjProjection *projection;
	PjContext	saved;
	int64		applied = 0;

	if (upto < 1)
		ereport(ERROR,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("until_log_seq must be positive"));
	projection = pj_take_alone("projector_catch_up", name, tenant);
	pj_refuse_problem(projection);
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
	pj_audit_count(fcinfo, applied);

	PG_RETURN_INT64(applied);
}
