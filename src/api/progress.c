/*
 * progress.c
 *	  What view progress shows beside the runs: operations of sessions, and
 *	  new read models that are filled from the log.
 *
 * The view calls these functions as the user who reads it.  So all users may
 * execute them, but they return rows only to users who may read the view.
 */
#include "base/compat.h"

#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "ipc/operation.h"
#include "log/log_read.h"
#include "registry/projection.h"
#include "sandbox/user_context.h"
#include "state/backfill.h"
#include "worker/control.h"

PG_FUNCTION_INFO_V1(projector_session_progress);
PG_FUNCTION_INFO_V1(projector_backfills);

static const char *const operation_names[] = {
	[PJ_DOES_REBUILD] = "rebuild",
	[PJ_DOES_CATCH_UP] = "catch_up",
	[PJ_DOES_RESET] = "reset",
	[PJ_DOES_VERIFY] = "verify",
	[PJ_DOES_PREVIEW] = "preview",
	[PJ_DOES_DRAIN] = "drain",
};

static const char *const phase_names[] = {
	[PJ_PHASE_PREPARING] = "preparing",
	[PJ_PHASE_CLEARING] = "clearing rows",
	[PJ_PHASE_REPLAYING] = "replaying events",
	[PJ_PHASE_APPLYING] = "applying events",
	[PJ_PHASE_READING] = "reading rows",
	[PJ_PHASE_COMPARING] = "comparing rows",
	[PJ_PHASE_OFFSETS] = "resetting offsets",
	[PJ_PHASE_OUTBOX] = "emptying the outbox",
	[PJ_PHASE_CURSORS] = "resetting cursors",
};

/* Lists the long operations that sessions of this database execute. */
Datum
projector_session_progress(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	PjOperationRow *rows;
	int			n;

	InitMaterializedSRF(fcinfo, 0);
	n = pj_may_see("progress") ? pj_operations(&rows) : 0;
	for (int i = 0; i < n; i++)
	{
		const PjOperationRow *row = &rows[i];
		Datum		values[10] = {Int32GetDatum(row->pid),
			CStringGetTextDatum(operation_names[row->operation]),
			CStringGetTextDatum(phase_names[row->phase]),
			Int32GetDatum(row->projection_id),
			row->tenant ? CStringGetTextDatum(row->tenant) : 0,
			Int64GetDatum(row->events_done), Int64GetDatum(row->events_total),
			Int64GetDatum(row->tenants_done),
			Int64GetDatum(row->tenants_total),
		TimestampTzGetDatum(row->started_at)};
		bool		nulls[10] = {[3] = row->projection_id == 0,
			[4] = row->tenant == NULL,[6] = row->events_total < 0,
		[7] = row->tenants_total < 0,[8] = row->tenants_total < 0};

		tuplestore_putvalues(result->setResult, result->setDesc, values,
							 nulls);
	}
	return (Datum) 0;
}

/* Add the row of a projection that reads the log first. */
static void
add_backfill(ReturnSetInfo *result, const PjProjection *projection,
			 int64 last_log_seq)
{
	PjBackfill	backfill;
	Datum		values[5];
	bool		nulls[5] = {false};
	bool		unknown;

	pj_backfill_look(projection, projection->handed_over ?
					 projection->handover_log_seq : last_log_seq, &backfill);

	/* before the handover it may have no cursors yet */
	unknown = backfill.left == 0;
	if (unknown && (projection->handed_over || projection->mode == PJ_OFF ||
					projection->mode == PJ_SHADOW || last_log_seq == 0))
		return;
	values[0] = Int32GetDatum(projection->id);
	values[1] = CStringGetTextDatum(projection->paused ? "paused" :
									projection->handed_over ? "running" :
									"queued");
	values[2] = Float8GetDatum(backfill.done);
	values[3] = Int64GetDatum(backfill.total - backfill.left);
	values[4] = Int64GetDatum(backfill.total);
	nulls[2] = nulls[3] = nulls[4] = unknown;
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

/* Lists the projections that read the log first for some tenants. */
Datum
projector_backfills(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	PjProjection *projections;
	PjContext	saved;
	int64		last_log_seq;
	int			n;

	InitMaterializedSRF(fcinfo, 0);
	if (!pj_may_see("progress"))
		return (Datum) 0;
	pj_enter_previous(&saved);
	n = pj_projections(&projections);
	last_log_seq = pj_source_last_log_seq();
	for (int i = 0; i < n; i++)
		if (!projections[i].dormant)
			add_backfill(result, &projections[i], last_log_seq);
	pj_leave_internal(&saved);
	return (Datum) 0;
}
