/*
 * mode.c
 *	  How a projection runs: its mode and pauses, for all tenants and for
 *	  one.
 *
 * Changing these requires an exclusive lock on the projection (see
 * definition_row.c).
 */
#include "base/compat.h"

#include "fmgr.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "storage/lockdefs.h"
#include "utils/builtins.h"

#include "base/args.h"
#include "base/statement.h"
#include "ipc/wakeup.h"
#include "kinds/definition.h"
#include "log/log_read.h"
#include "registry/projection.h"
#include "sandbox/user_context.h"
#include "state/audit.h"
#include "state/cursor.h"
#include "state/outbox.h"
#include "state/run_row.h"

PG_FUNCTION_INFO_V1(projector_set_mode);
PG_FUNCTION_INFO_V1(projector_pause);
PG_FUNCTION_INFO_V1(projector_resume);

static PjStatement set_mode = {
	.sql = "UPDATE projector.projections SET mode = $2,"
	" handover_log_seq = CASE WHEN $3 THEN NULL ELSE handover_log_seq END"
	" WHERE projection_id = $1",
	.expect = SPI_OK_UPDATE,
	.nargs = 3,
	.argtypes = {INT4OID, TEXTOID, BOOLOID},
};

/* Tenants with a mode of their own are left out. */
static PjStatement switch_cursors = {
	.sql = "UPDATE projector.projection_cursors"
	" SET state = 'switching', updated_at = now()"
	" WHERE projection_id = $1 AND state = 'live' AND mode IS NULL",
	.expect = SPI_OK_UPDATE,
	.nargs = 1,
	.argtypes = {INT4OID},
};

static PjStatement set_tenant_mode = {
	.sql = "INSERT INTO projector.projection_cursors AS c"
	" (projection_id, tenant_id, mode, state)"
	" VALUES ($1, $2, $3, CASE WHEN NOT $4 THEN 'live'"
	" WHEN $5 THEN 'switching' ELSE 'replaying' END)"
	" ON CONFLICT (projection_id, tenant_id) DO UPDATE"
	" SET mode = excluded.mode, updated_at = now(),"
	" state = CASE WHEN $4 AND c.state = 'live' THEN 'switching'"
	" ELSE c.state END",
	.expect = SPI_OK_INSERT,
	.nargs = 5,
	.argtypes = {INT4OID, TEXTOID, TEXTOID, BOOLOID, BOOLOID},
};

static PjStatement pause_all = {
	.sql = "UPDATE projector.projections SET paused = $2, paused_by = $3,"
	" pause_reason = $4, paused_at = CASE WHEN $2 THEN clock_timestamp() END"
	" WHERE projection_id = $1",
	.expect = SPI_OK_UPDATE,
	.nargs = 4,
	.argtypes = {INT4OID, BOOLOID, TEXTOID, TEXTOID},
};

static PjStatement pause_tenant = {
	.sql = "INSERT INTO projector.projection_cursors"
	" (projection_id, tenant_id, state, paused_by, pause_reason, paused_at)"
	" VALUES ($1, $2, CASE WHEN $5 THEN 'live' WHEN $6 THEN 'switching'"
	" ELSE 'replaying' END, $3, $4, clock_timestamp())"
	" ON CONFLICT (projection_id, tenant_id) DO UPDATE"
	" SET paused_by = excluded.paused_by,"
	" pause_reason = excluded.pause_reason,"
	" paused_at = excluded.paused_at, updated_at = now()",
	.expect = SPI_OK_INSERT,
	.nargs = 6,
	.argtypes = {INT4OID, TEXTOID, TEXTOID, TEXTOID, BOOLOID, BOOLOID},
};

/* A run is not a pause by the user, and ends without a resume. */
static PjStatement resume_tenant = {
	.sql = "UPDATE projector.projection_cursors SET paused_by = NULL,"
	" pause_reason = NULL, paused_at = NULL, updated_at = now()"
	" WHERE projection_id = $1 AND tenant_id = $2 AND paused_by IS NOT NULL",
	.expect = SPI_OK_UPDATE,
	.nargs = 2,
	.argtypes = {INT4OID, TEXTOID},
};

#define MAX_TOLD_TENANTS 10

static PjStatement select_paused = {
	.sql = "SELECT tenant_id FROM projector.projection_cursors"
	" WHERE projection_id = $1 AND paused_by IS NOT NULL"
	" ORDER BY tenant_id LIMIT $2",
	.expect = SPI_OK_SELECT,
	.nargs = 2,
	.argtypes = {INT4OID, INT4OID},
};

/* ---- mode ---- */

/*
 * Must the log be read from the cursor up to a new handover?  Events appended
 * while a projection was off, or followed the log, are recorded only in the
 * log.
 */
static bool
needs_reading(PjMode before, PjMode after)
{
	return (before == PJ_OFF && after != PJ_OFF) ||
		(before == PJ_FOLLOW && pj_mode_queues(after));
}

/* Change the mode of all tenants that have no mode of their own. */
static void
set_mode_for_all(const PjProjection *projection, PjMode mode)
{
	bool		switched_on = needs_reading(projection->mode, mode);
	Datum		values[3] = {Int32GetDatum(projection->id),
		CStringGetTextDatum(pj_mode_names[mode]),
	BoolGetDatum(switched_on)};

	if (switched_on)
		pj_execute(&switch_cursors, values, NULL);
	if (projection->mode == PJ_SHADOW && mode != PJ_SHADOW)
		pj_outbox_untry(projection->id, 0);
	pj_registry_update(&set_mode, values, NULL);
}

/*
 * An unknown tenant may be one that will be added later, or a misspelt name.
 */
static void
notice_unknown(const PjProjection *projection, Datum tenant)
{
	PjPair		pair;

	pj_pair_look(&pair, (PjProjection *) projection, tenant);
	if (!pair.exists && !pj_source_has(tenant, 0))
		ereport(NOTICE,
				errmsg("tenant \"%s\" has no events yet",
					   TextDatumGetCString(tenant)),
				errdetail("The setting is stored for projection \"%s\", and takes effect once there are events.",
						  projection->name));
}

/* Change one tenant's mode; null removes its own mode. */
static void
set_mode_for_tenant(PjProjection *projection, Datum tenant, const char *mode)
{
	PjMode		after = mode ? pj_mode(mode) : projection->mode;
	PjPair		pair;
	bool		switched_on;
	Datum		values[5] = {Int32GetDatum(projection->id), tenant};

	notice_unknown(projection, tenant);
	pj_pair_look(&pair, projection, tenant);
	switched_on = needs_reading(pair.mode, after);
	if (pair.mode == PJ_SHADOW && after != PJ_SHADOW)
		pj_outbox_untry(projection->id, tenant);
	if (mode)
		values[2] = CStringGetTextDatum(mode);
	values[3] = BoolGetDatum(switched_on || pj_pair_behind(&pair));
	values[4] = BoolGetDatum(projection->started);
	pj_execute(&set_tenant_mode, values, mode ? NULL : "  n  ");

	pj_registry_note_overrides(projection, switched_on);
}

/* Changes a projection's mode, for all tenants or one. */
Datum
projector_set_mode(PG_FUNCTION_ARGS)
{
	Datum		tenant = pj_optional_text(fcinfo, 2, "tenant_id");
	const char *mode = PG_ARGISNULL(1) ? NULL :
	text_to_cstring(PG_GETARG_TEXT_PP(1));
	PjProjection *projection;
	PjContext	saved;

	pj_require_read_committed("projector_set_mode");
	pj_refuse_in_user_code("projector_set_mode");
	pj_wake_at_commit();
	if (mode == NULL && tenant == 0)
		ereport(ERROR,
				errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				errmsg("mode must not be null"),
				errhint("With a tenant_id, null removes the tenant's own mode."));
	projection = pj_projection_own(pj_required_name(fcinfo, 0, "name"),
								   ExclusiveLock);
	pj_refuse_dormant(projection);
	if (mode)
		pj_definition_check_mode(projection->name, pj_mode(mode),
								 projection->ordering);

	pj_enter_internal(&saved);
	if ((mode ? pj_mode(mode) : projection->mode) == PJ_SHADOW)
		pj_run_refuse(projection, tenant);	/* a run applies events */
	if (tenant)
		set_mode_for_tenant(projection, tenant, mode);
	else
		set_mode_for_all(projection, pj_mode(mode));
	pj_leave_internal(&saved);
	pj_audit(fcinfo, NULL, NULL);

	PG_RETURN_VOID();
}

/* ---- pause and resume ---- */

static void
set_paused(const PjProjection *projection, bool paused, Datum by, Datum reason)
{
	Datum		values[4] = {Int32GetDatum(projection->id),
	BoolGetDatum(paused), by, reason};
	char		nulls[] = "    ";

	if (by == 0)
		nulls[2] = 'n';
	if (reason == 0)
		nulls[3] = 'n';
	pj_registry_update(&pause_all, values, nulls);
}

/* Pauses a projection; events are queued until it is resumed. */
Datum
projector_pause(PG_FUNCTION_ARGS)
{
	Datum		tenant = pj_optional_text(fcinfo, 1, "tenant_id");
	Datum		reason = pj_optional(fcinfo, 2);
	Datum		by = CStringGetTextDatum(GetUserNameFromId(GetUserId(), false));
	PjProjection *projection;
	PjContext	saved;

	pj_refuse_in_user_code("projector_pause");
	projection = pj_projection_own(pj_required_name(fcinfo, 0, "name"),
								   ExclusiveLock);
	pj_enter_internal(&saved);
	if (tenant)
	{
		Datum		values[6] = {Int32GetDatum(projection->id), tenant, by,
			reason, BoolGetDatum(projection->handed_over),
		BoolGetDatum(projection->started)};

		notice_unknown(projection, tenant);
		pj_execute(&pause_tenant, values, reason ? NULL : "   n  ");
		pj_registry_note_overrides(projection, false);
	}
	else
		set_paused(projection, true, by, reason);
	pj_leave_internal(&saved);
	pj_audit(fcinfo, NULL, NULL);

	PG_RETURN_VOID();
}

/*
 * Resuming all tenants does not end the pauses of single ones: tell the user.
 */
static void
tell_paused_tenants(const PjProjection *projection)
{
	Datum		values[2] = {Int32GetDatum(projection->id),
	Int32GetDatum(MAX_TOLD_TENANTS + 1)};	/* one more, to see whether some
											 * are not listed */
	Datum	   *tenants;
	StringInfoData list;
	int			n;

	if (!projection->overrides)
		return;
	pj_execute(&select_paused, values, NULL);
	n = pj_result_texts(&tenants);
	if (n == 0)
		return;
	initStringInfo(&list);
	for (int i = 0; i < Min(n, MAX_TOLD_TENANTS); i++)
		appendStringInfo(&list, "%s\"%s\"", i ? ", " : "",
						 TextDatumGetCString(tenants[i]));
	ereport(NOTICE,
			errmsg("projection \"%s\" is still paused for some tenants",
				   projection->name),
			errdetail("They are %s%s.", list.data,
					  n > MAX_TOLD_TENANTS ? " and others" : ""),
			errhint("Resume them one by one: projector_resume(%s, tenant_id).",
					quote_literal_cstr(projection->name)));
}

/* Ends a pause. */
Datum
projector_resume(PG_FUNCTION_ARGS)
{
	Datum		tenant = pj_optional_text(fcinfo, 1, "tenant_id");
	PjProjection *projection;
	PjContext	saved;

	pj_refuse_in_user_code("projector_resume");
	pj_wake_at_commit();
	projection = pj_projection_own(pj_required_name(fcinfo, 0, "name"),
								   ExclusiveLock);
	pj_enter_internal(&saved);
	if (tenant)
	{
		Datum		values[2] = {Int32GetDatum(projection->id), tenant};

		bool		was_paused = pj_execute(&resume_tenant, values, NULL) > 0;

		pj_registry_note_overrides(projection, false);
		if (!was_paused && !pj_source_has(tenant, 0))
			ereport(NOTICE,
					errmsg("projection \"%s\" is not paused for tenant \"%s\", which has no events",
						   projection->name, TextDatumGetCString(tenant)));
		if (projection->paused)
			ereport(NOTICE,
					errmsg("projection \"%s\" is still paused for all tenants",
						   projection->name),
					errhint("End that pause with projector_resume(%s).",
							quote_literal_cstr(projection->name)));
	}
	else
	{
		set_paused(projection, false, 0, 0);
		tell_paused_tenants(projection);
	}
	pj_leave_internal(&saved);
	pj_audit(fcinfo, NULL, NULL);

	PG_RETURN_VOID();
}
