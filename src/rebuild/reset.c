/*
 * reset.c
 *	  projector_reset(): set checkpoints back to 0, without changing the
 *	  read model.
 *
 * Afterwards the log is read again, and events are applied to a read model
 * that already contains them.  That is harmless only if the projection's code
 * is idempotent, which its author declares with option "idempotent".
 */
#include "base/compat.h"

#include "fmgr.h"

#include "base/args.h"
#include "base/statement.h"
#include "ipc/wakeup.h"
#include "log/log_read.h"
#include "rebuild/tenant.h"
#include "registry/projection.h"
#include "sandbox/user_context.h"
#include "state/audit.h"
#include "state/cursor.h"
#include "state/offset.h"
#include "state/outbox.h"
#include "state/run_row.h"

PG_FUNCTION_INFO_V1(projector_reset);

static PjStatement forget_handover = {
	.sql = "UPDATE projector.projections SET handover_log_seq = NULL"
	" WHERE projection_id = $1",
	.expect = SPI_OK_UPDATE,
	.nargs = 1,
	.argtypes = {INT4OID},
};

static PjStatement reset_cursors = {
	.sql = "UPDATE projector.projection_cursors"
	" SET last_log_seq = 0, state = 'replaying', updated_at = now()"
	" WHERE projection_id = $1",
	.expect = SPI_OK_UPDATE,
	.nargs = 1,
	.argtypes = {INT4OID},
};

static PjStatement reset_cursor = {
	.sql = "INSERT INTO projector.projection_cursors"
	" (projection_id, tenant_id, state) VALUES ($1, $2, 'replaying')"
	" ON CONFLICT (projection_id, tenant_id) DO UPDATE"
	" SET last_log_seq = 0, state = 'replaying', updated_at = now()",
	.expect = SPI_OK_INSERT,
	.nargs = 2,
	.argtypes = {INT4OID, TEXTOID},
};

static void
check_repeatable(const PjProjection *projection, bool force)
{
	/* a fold's rows are stamped with the events they have seen */
	if (projection->options.idempotent || force ||
		pj_is_fold(projection->kind))
		return;
	ereport(ERROR,
			errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			errmsg("projection \"%s\" cannot be reset safely",
				   projection->name),
			errdetail("Its events would be applied a second time to a read model that has them already."),
			errhint("Use projector_rebuild, or set option \"idempotent\" if its code is idempotent, or use force => true."));
}

/* Raise an error if this projection, or this pair, cannot be reset. */
static void
check_resettable(PjProjection *projection, Datum tenant, Datum aggregate)
{
	PjPair		pair = {.mode = projection->mode};

	pj_run_refuse(projection, tenant);
	if (tenant)
		pj_pair_look(&pair, projection, tenant);
	if (pair.mode == PJ_SHADOW)
		ereport(ERROR,
				errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("projection \"%s\" is in mode \"shadow\"",
					   projection->name),
				errhint("Change it first with projector_set_mode."));
	if (aggregate && projection->log_ordered)
		ereport(ERROR,
				errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				errmsg("projection \"%s\" cannot be reset for one aggregate",
					   projection->name),
				errdetail("It is applied in log order, and events of other aggregates come in between."),
				errhint("Reset the tenant."));
}

/*
 * Reset a tenant, or all tenants: the log is read again from the start up to a
 * new handover.
 */
static int64
reset_pair(const PjProjection *projection, Datum tenant)
{
	Datum		values[2] = {Int32GetDatum(projection->id), tenant};
	int64		count = pj_offsets_reset(projection->id, tenant, 0);

	pj_outbox_clear(projection->id, tenant, 0);
	pj_execute(tenant ? &reset_cursor : &reset_cursors, values, NULL);
	pj_execute(&forget_handover, values, NULL);
	return count;
}

/*
 * Reset one aggregate: queue its last event, which makes all earlier ones be
 * applied first.
 */
static int64
reset_aggregate(const PjProjection *projection, Datum tenant, Datum aggregate)
{
	PjRange		range = {.aggregate = aggregate};
	int64		count = pj_offsets_reset(projection->id, tenant, aggregate);
	PjEvent    *event;

	pj_outbox_clear(projection->id, tenant, aggregate);
	range.upto = pj_source_last_subscribed(tenant, aggregate,
										   projection->event_types);
	range.after = range.upto - 1;
	range.max = 1;
	if (range.upto > 0 &&
		pj_source_load(tenant, &range, 1, projection->event_types,
					   &event) == 1)
	{
		event->replay = true;
		pj_outbox_enqueue(projection->id, &event, 1);
	}
	return count;
}

/* Sets checkpoints back to 0.  Returns the number of offsets. */
Datum
projector_reset(PG_FUNCTION_ARGS)
{
	char	   *name = pj_required_name(fcinfo, 0, "name");
	Datum		tenant = pj_optional_text(fcinfo, 1, "tenant_id");
	Datum		aggregate = pj_optional_text(fcinfo, 2, "aggregate_id");
	bool		force = !PG_ARGISNULL(3) && PG_GETARG_BOOL(3);
	PjProjection *projection;
	PjContext	saved;
	int64		count;

	if (aggregate && !tenant)
		ereport(ERROR,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("an aggregate can be reset for one tenant only"),
				errhint("Give tenant_id too."));
	projection = pj_take_alone("projector_reset", name, tenant);
	check_repeatable(projection, force);

	pj_wake_at_commit();
	pj_enter_internal(&saved);
	check_resettable(projection, tenant, aggregate);
	if (tenant)
	{
		PjPair		pair;

		pj_pair_look(&pair, projection, tenant);
		pj_tenant_require(&pair);
		if (aggregate)
			pj_tenant_refuse(&pair, aggregate);
	}
	if (aggregate)
		count = reset_aggregate(projection, tenant, aggregate);
	else
		count = reset_pair(projection, tenant);
	pj_leave_internal(&saved);
	pj_audit_count(fcinfo, count);

	PG_RETURN_INT64(count);
}
