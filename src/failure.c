/*
 * failure.c
 *	  What happens to an event that fails: its item is tried again later, and
 *	  later still, until it is dead; the error is kept where people look.
 *
 * A failure is recorded by the transaction in which the attempt was rolled
 * back, so that event, attempt and record commit together.
 */
#include "compat.h"

#include "access/xact.h"
#include "utils/builtins.h"
#include "utils/errcodes.h"
#include "utils/timestamp.h"

#include "failure.h"
#include "guc.h"
#include "offset.h"
#include "outbox.h"
#include "statement.h"

/* Errors that may go away by themselves get this many times the attempts. */
#define TRANSIENT_FACTOR 4

static PjStatement record = {
	.sql = "INSERT INTO projector.projection_failures AS f (projection_id,"
	" tenant_id, aggregate_id, sequence_number, log_seq, event_id, event_type,"
	" error_code, error_message, error_detail, error_context, recoverable)"
	" VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)"
	" ON CONFLICT (projection_id, log_seq) WHERE resolved_at IS NULL"
	" DO UPDATE SET retry_count = f.retry_count + 1,"
	" error_code = excluded.error_code, error_message = excluded.error_message,"
	" error_detail = excluded.error_detail,"
	" error_context = excluded.error_context,"
	" recoverable = excluded.recoverable, last_failed_at = clock_timestamp()",
	.expect = SPI_OK_INSERT,
	.nargs = 12,
	.argtypes = {INT4OID, TEXTOID, TEXTOID, INT8OID, INT8OID, UUIDOID, TEXTOID,
	TEXTOID, TEXTOID, TEXTOID, TEXTOID, BOOLOID},
};

static PjStatement resolve = {
	.sql = "UPDATE projector.projection_failures"
	" SET resolved_at = clock_timestamp(), resolution = $3"
	" WHERE ctid = ANY (ARRAY (SELECT f.ctid FROM unnest($2) AS l"
	" CROSS JOIN LATERAL (SELECT ctid FROM projector.projection_failures"
	" WHERE projection_id = $1 AND log_seq = l AND resolved_at IS NULL"
	" LIMIT 1) f))",
	.expect = SPI_OK_UPDATE,
	.nargs = 3,
	.argtypes = {INT4OID, INT8ARRAYOID, TEXTOID},
};

/*
 * May this error be recorded as the event's?  Not if it says that somebody
 * wants the whole transaction to end.
 */
bool
pj_failure_swallowed(const ErrorData *error)
{
	switch (error->sqlerrcode)
	{
		case ERRCODE_QUERY_CANCELED:
		case ERRCODE_ADMIN_SHUTDOWN:
		case ERRCODE_CRASH_SHUTDOWN:
		case ERRCODE_CANNOT_CONNECT_NOW:
			return false;
		case ERRCODE_T_R_SERIALIZATION_FAILURE:
			return !IsolationUsesXactSnapshot();
		default:
			return true;
	}
}

/* May this error go away by itself? */
bool
pj_failure_transient(const ErrorData *error)
{
	switch (ERRCODE_TO_CATEGORY(error->sqlerrcode))
	{
		case ERRCODE_TRANSACTION_ROLLBACK:	/* class 40 */
		case ERRCODE_INSUFFICIENT_RESOURCES:	/* 53 */
		case ERRCODE_TO_CATEGORY(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE): /* 55 */
		case ERRCODE_TO_CATEGORY(ERRCODE_SYSTEM_ERROR): /* 58 */
			return true;
		default:
			return false;
	}
}

/* When to try again: twice as long after each attempt, up to a limit. */
static TimestampTz
next_attempt(const PjOptions *options, int attempts)
{
	int64		wait = options->retry_base;

	for (int i = 1; i < attempts && wait < options->retry_max; i++)
		wait *= 2;
	return pj_now() + Min(wait, options->retry_max);
}

/*
 * Record that an event has failed.  attempts_before says how often it had
 * been tried already.
 */
void
pj_failure_record(const PjProjection *projection, const PjEvent *event,
				  int attempts_before, const ErrorData *error)
{
	const PjOptions *options = &projection->options;
	int			attempts = attempts_before + 1;
	int			allowed = options->max_attempts *
		(pj_failure_transient(error) ? TRANSIENT_FACTOR : 1);
	bool		dead = attempts >= allowed;
	const char *message = error->message ? error->message : "unknown error";
	Datum		values[12] = {Int32GetDatum(projection->id),
		pj_event_tenant(event), pj_event_aggregate(event),
		event->values[PJ_EVENT_SEQUENCE_NUMBER],
		event->values[PJ_EVENT_LOG_SEQ], pj_event_id(event),
		pj_event_type(event),
		CStringGetTextDatum(unpack_sql_state(error->sqlerrcode)),
	CStringGetTextDatum(message)};
	char		nulls[] = "            ";

	/* of an event that is missing from the log, the id is not known */
	if (pj_event_id(event) == 0)
		nulls[5] = 'n';
	pj_outbox_fail(projection->id, event, dead, attempts,
				   next_attempt(options, attempts), message);
	pj_offset_count_error(projection->id, pj_event_tenant(event),
						  pj_event_aggregate(event), message);

	if (error->detail)
		values[9] = CStringGetTextDatum(error->detail);
	else
		nulls[9] = 'n';
	if (error->context)
		values[10] = CStringGetTextDatum(error->context);
	else
		nulls[10] = 'n';
	values[11] = BoolGetDatum(!dead);
	pj_execute(&record, values, nulls);
}

/* Close the open failures of events that are done with. */
void
pj_failure_resolve(const PjProjection *projection, const int64 *log_seqs,
				   int n, const char *resolution)
{
	Datum		values[3] = {Int32GetDatum(projection->id),
	pj_int8_array(log_seqs, n), CStringGetTextDatum(resolution)};

	pj_execute(&resolve, values, NULL);
}
