/*
 * prune.c
 *	  Removing what is history: resolved failures and finished runs.
 *
 * A worker does a little of it every minute (projector.retention), and anybody
 * who may call projector_prune() does all of it.  Decisions to skip an event
 * stay: every replay goes by them.
 */
#include "base/compat.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/timestamp.h"

#include "base/args.h"
#include "base/guc.h"
#include "base/statement.h"
#include "sandbox/user_context.h"
#include "state/failure.h"
#include "worker/prune.h"

PG_FUNCTION_INFO_V1(projector_prune);

/* So many rows are removed by one statement. */
#define BATCH_ROWS	1000

#define PRUNE(table, column, condition) \
	{ \
		.sql = "DELETE FROM projector." table " WHERE id = ANY (ARRAY" \
		" (SELECT id FROM projector." table " WHERE " column " < $1" \
		condition " ORDER BY " column " LIMIT $2 FOR UPDATE SKIP LOCKED))", \
		.expect = SPI_OK_DELETE, \
		.nargs = 2, \
		.argtypes = {TIMESTAMPTZOID, INT4OID}, \
	}

static PjStatement prune[] = {
	PRUNE("projection_failures", "resolved_at",
		  " AND (" PJ_SKIP_DECIDED ") IS NOT TRUE"),
	PRUNE("projection_runs", "finished_at", ""),
};

/* Remove some rows that are older than that; returns how many. */
static int64
prune_some(TimestampTz before)
{
	Datum		values[2] = {TimestampTzGetDatum(before),
	Int32GetDatum(BATCH_ROWS)};
	int64		count = 0;

	for (int i = 0; i < lengthof(prune); i++)
		count += pj_execute(&prune[i], values, NULL);
	return count;
}

/* What a worker does every now and then. */
void
pj_prune_a_little(void)
{
	if (pj_retention > 0)
		(void) prune_some(TimestampTzPlusMilliseconds(GetCurrentTimestamp(),
													  -(int64) pj_retention *
													  60 * 1000));
}

/* See the install script. */
Datum
projector_prune(PG_FUNCTION_ARGS)
{
	Datum		age = pj_required(fcinfo, 0, "older_than");
	TimestampTz now = GetCurrentTimestamp();
	TimestampTz before = DatumGetTimestampTz(DirectFunctionCall2(timestamptz_mi_interval,
																 TimestampTzGetDatum(now),
																 age));
	PjContext	saved;
	int64		count = 0;
	int64		n;

	if (before > now)
		ereport(ERROR,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("older_than must not be negative"));
	pj_refuse_in_user_code("projector_prune");
	pj_enter_internal(&saved);
	do
	{
		CHECK_FOR_INTERRUPTS();
		n = prune_some(before);
		count += n;
	} while (n > 0);
	pj_leave_internal(&saved);
	PG_RETURN_INT64(count);
}
