/*
 * failure.c
 *	  What happens when an event fails: it is retried with growing delays
 *	  until it is dead, and the error is recorded.
 *
 * A failure is recorded by the same transaction in which the attempt was
 * rolled back, so that event, attempt and record commit together.
 */
#include "base/compat.h"

#include "access/xact.h"
#include "utils/builtins.h"
#include "utils/errcodes.h"
#include "utils/timestamp.h"

#include "base/errcodes.h"
#include "base/fetch.h"
#include "base/guc.h"
#include "base/lock.h"
#include "base/statement.h"
#include "sandbox/deadline.h"
#include "sandbox/user_context.h"
#include "state/alert.h"
#include "state/failure.h"
#include "state/offset.h"
#include "state/outbox.h"

static PjStatement record = {
	.sql = "INSERT INTO projector.projection_failures AS f (projection_id,"
	" tenant_id, aggregate_id, sequence_number, log_seq, event_id, event_type,"
	" error_code, error_message, error_detail, error_context, recoverable,"
	" error_hint, metadata, traceparent, correlation_id)"
	" VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13,"
	" CASE WHEN $14 THEN '{\"shadow\": true}'::jsonb ELSE '{}' END,"
	" $15, $16)"
	" ON CONFLICT (projection_id, log_seq) WHERE resolved_at IS NULL"
	" DO UPDATE SET retry_count = f.retry_count"
	" + (NOT $14 AND NOT f.metadata ? 'shadow')::int,"
	" error_code = excluded.error_code, error_message = excluded.error_message,"
	" error_detail = excluded.error_detail,"
	" error_hint = excluded.error_hint,"
	" error_context = excluded.error_context,"
	" recoverable = excluded.recoverable, last_failed_at = clock_timestamp(),"
	" metadata = f.metadata - 'shadow' || excluded.metadata",
	.expect = SPI_OK_INSERT,
	.nargs = 16,
	.argtypes = {INT4OID, TEXTOID, TEXTOID, INT8OID, INT8OID, UUIDOID, TEXTOID,
		TEXTOID, TEXTOID, TEXTOID, TEXTOID, BOOLOID, TEXTOID, BOOLOID, TEXTOID,
	TEXTOID},
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

static PjStatement rebuilt = {
	.sql = "UPDATE projector.projection_failures"
	" SET resolved_at = clock_timestamp(), resolution = 'rebuilt'"
	" WHERE projection_id = $1 AND resolved_at IS NULL AND tenant_id = $2"
	" AND ($3 IS NULL OR aggregate_id = $3) AND log_seq <= $4",
	.expect = SPI_OK_UPDATE,
	.nargs = 4,
	.argtypes = {INT4OID, TEXTOID, TEXTOID, INT8OID},
};

/* The index has open failures only. */
static PjTable open_failures = {"projection_failures",
"projection_failures_open_idx"};

static PjStatement select_other_dead = {
	.sql = "SELECT FROM projector.apply_outbox WHERE projection_id = $1"
	" AND tenant_id = $2 AND (held OR status IN ('failed', 'dead'))"
	" AND status = 'dead' AND log_seq <> $3 AND $4 IS NOT NULL LIMIT 1",
	.expect = SPI_OK_SELECT,
	.nargs = 4,
	.argtypes = {INT4OID, TEXTOID, INT8OID, INT4OID},
};

static PjStatement select_other_failing = {
	.sql = "SELECT FROM projector.projection_failures WHERE projection_id = $1"
	" AND resolved_at IS NULL AND tenant_id = $2 AND log_seq <> $3"
	" AND retry_count + 1 >= $4 LIMIT 1",
	.expect = SPI_OK_SELECT,
	.nargs = 4,
	.argtypes = {INT4OID, TEXTOID, INT8OID, INT4OID},
};

static PjStatement select_skipped = {
	.sql = "SELECT l FROM unnest($2) AS l CROSS JOIN LATERAL"
	" (SELECT FROM projector.projection_failures"
	" WHERE projection_id = $1 AND log_seq = l AND " PJ_SKIP_DECIDED
	" LIMIT 1) f ORDER BY l",
	.expect = SPI_OK_SELECT,
	.nargs = 2,
	.argtypes = {INT4OID, INT8ARRAYOID},
};

/* An open failure becomes a skipped one ... */
static PjStatement skip_failed = {
	.sql = "UPDATE projector.projection_failures"
	" SET resolved_at = clock_timestamp(), resolution = 'skipped',"
	" metadata = metadata || jsonb_build_object('skip_reason', $3,"
	" 'skipped_by', $4)"
	" WHERE projection_id = $1 AND log_seq = $2 AND resolved_at IS NULL",
	.expect = SPI_OK_UPDATE,
	.nargs = 4,
	.argtypes = {INT4OID, INT8OID, TEXTOID, TEXTOID},
};

/* ... and if there is none, one is inserted. */
static PjStatement skip_new = {
	.sql = "INSERT INTO projector.projection_failures (projection_id,"
	" tenant_id, aggregate_id, sequence_number, log_seq, event_id, event_type,"
	" error_code, error_message, recoverable, resolved_at, resolution,"
	" metadata) VALUES ($1, $2, $3, $4, $5, $6, $7, '00000',"
	" 'skipped by an operator', false, clock_timestamp(), 'skipped',"
	" jsonb_build_object('skip_reason', $8, 'skipped_by', $9))"
	" ON CONFLICT DO NOTHING",
	.expect = SPI_OK_INSERT,
	.nargs = 9,
	.argtypes = {INT4OID, TEXTOID, TEXTOID, INT8OID, INT8OID, UUIDOID, TEXTOID,
	TEXTOID, TEXTOID},
};

/*
 * Delete the record if the event never failed; otherwise reopen the failure.
 */
static PjStatement unskip = {
	.sql = "WITH made AS (DELETE FROM projector.projection_failures"
	" WHERE projection_id = $1 AND log_seq = $2 AND " PJ_SKIP_DECIDED
	" AND error_code = '00000' RETURNING id),"
	" failed AS (UPDATE projector.projection_failures"
	" SET resolved_at = NULL, resolution = NULL,"
	" metadata = metadata - 'skip_reason' - 'skipped_by'"
	" WHERE projection_id = $1 AND log_seq = $2 AND " PJ_SKIP_DECIDED
	" AND error_code <> '00000' RETURNING id)"
	" SELECT id FROM made UNION ALL SELECT id FROM failed",
	.expect = SPI_OK_SELECT,
	.nargs = 2,
	.argtypes = {INT4OID, INT8OID},
};

static PjStatement note_skips = {
	.sql = "UPDATE projector.projections SET skips = EXISTS"
	" (SELECT FROM projector.projection_failures f"
	" WHERE f.projection_id IN ($1, " PJ_BOOKS_OF_BUILD ")"
	" AND " PJ_SKIP_DECIDED ")"
	" WHERE projection_id = $1",
	.expect = SPI_OK_UPDATE,
	.nargs = 1,
	.argtypes = {INT4OID},
};

static PjStatement note = {
	.sql = "UPDATE projector.projection_failures"
	" SET metadata = metadata || $2 WHERE id = $1",
	.expect = SPI_OK_UPDATE,
	.nargs = 2,
	.argtypes = {INT8OID, JSONBOID},
};

static PjStatement select_projection = {
	.sql = "SELECT projection_id FROM projector.projection_failures"
	" WHERE id = $1",
	.expect = SPI_OK_SELECT,
	.nargs = 1,
	.argtypes = {INT8OID},
};

/*
 * May this error be recorded as the event's?  Not if the whole transaction is
 * meant to end.
 *
 * A projection's code can raise any SQLSTATE, including those of a cancel or a
 * shutdown: for example, dblink passes on the error of a remote server.  A
 * shutdown of this server is FATAL and never gets here.  A real cancel is
 * recognized by the function that raised it, or was remembered when it was
 * raised, whatever error the code has turned it into.
 */
bool
pj_failure_swallowed(const ErrorData *error)
{
	if (pj_was_cancelled() || pj_is_cancel(error))
		return pj_deadline_passed();
	return error->sqlerrcode != ERRCODE_T_R_SERIALIZATION_FAILURE ||
		!IsolationUsesXactSnapshot();
}

/*
 * If code was cancelled because of its timeout, make the error say so,
 * whatever error the code has turned it into.  Call this before other code
 * runs.
 */
void
pj_failure_name_timeout(ErrorData *error)
{
	if (error == NULL || !pj_deadline_passed() ||
		!(pj_was_cancelled() || error->sqlerrcode == ERRCODE_QUERY_CANCELED))
		return;
	error->sqlerrcode = ERRCODE_QUERY_CANCELED;
	error->message = pj_deadline_message();
}

/* Is this error likely to go away without any change? */
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

/*
 * Returns the time of the next attempt.  The delay doubles after each attempt,
 * up to a limit.
 */
static TimestampTz
next_attempt(const PjOptions *options, int attempts)
{
	int64		wait = options->retry_base;

	for (int i = 1; i < attempts && wait < options->retry_max; i++)
		wait *= 2;
	return pj_now() + Min(wait, options->retry_max);
}

static const char *
message_of(const ErrorData *error)
{
	return error->message ? error->message : "unknown error";
}

static void
set_text(Datum *values, char *nulls, int i, const char *str)
{
	if (str)
		values[i] = CStringGetTextDatum(str);
	else
		nulls[i] = 'n';
}

/*
 * Returns the part of an error's context that concerns the projection.  Lines
 * after the one that names the event only describe the session that applied
 * it.
 */
static char *
own_context(const PjProjection *projection, const char *context)
{
	char	   *start = psprintf("projection \"%s\", event ", projection->name);
	char	   *copy;
	char	   *end;

	if (context == NULL)
		return NULL;
	copy = pstrdup(context);
	end = strstr(copy, start);
	end = end ? strchr(end, '\n') : NULL;
	if (end)
		*end = '\0';
	return copy;
}

/* Insert the record of a failure, or update the one that is open. */
static void
write_record(const PjPair *pair, const PjEvent *event,
			 const ErrorData *error, bool recoverable, bool shadow)
{
	Datum		values[16] = {Int32GetDatum(pj_pair_books(pair)),
		pj_event_tenant(event), pj_event_aggregate(event),
		event->values[PJ_EVENT_SEQUENCE_NUMBER],
		event->values[PJ_EVENT_LOG_SEQ], pj_event_id(event),
		pj_event_type(event),
		CStringGetTextDatum(unpack_sql_state(error->sqlerrcode)),
	CStringGetTextDatum(message_of(error))};
	char		nulls[] = "                ";

	/* the id of an event that is missing from the log is unknown */
	if (pj_event_id(event) == 0)
		nulls[5] = 'n';
	set_text(values, nulls, 9, error->detail);
	set_text(values, nulls, 10, own_context(pair->projection,
											error->context));
	values[11] = BoolGetDatum(recoverable);
	set_text(values, nulls, 12, error->hint);
	values[13] = BoolGetDatum(shadow);
	set_text(values, nulls, 14, pj_event_trace(event, "traceparent"));
	set_text(values, nulls, 15, pj_event_trace(event, "correlation_id"));
	pj_execute(&record, values, nulls);
}

/*
 * Is another event of the tenant in the same state?  Then an alert has been
 * sent already.
 */
static bool
has_other(PjStatement *stmt, const PjPair *pair, const PjEvent *event,
		  int errors)
{
	Datum		values[4] = {Int32GetDatum(pj_pair_books(pair)),
		pj_event_tenant(event), event->values[PJ_EVENT_LOG_SEQ],
	Int32GetDatum(errors)};

	return pj_execute(stmt, values, NULL) > 0;
}

/*
 * The event's last attempt has failed, and on_error is "skip": skip it, as an
 * operator would.
 */
static void
pass_over(const PjPair *pair, const PjEvent *event, int attempts)
{
	char	   *reason = psprintf("option \"on_error\" is \"skip\", attempts: %d",
								  attempts);

	(void) pj_failure_skip(pair, event, CStringGetTextDatum(reason),
						   "projector");
}

/*
 * Decide what to do with an event that has failed; attempts_before is the
 * number of earlier attempts.
 */
static PjOutcome
decide_outcome(const PjProjection *projection, const PjEvent *event,
			   int attempts_before, const ErrorData *error)
{
	const PjOptions *options = &projection->options;
	int			allowed = options->max_attempts *
	(pj_failure_transient(error) ? PJ_TRANSIENT_FACTOR : 1);
	bool		last = attempts_before + 1 >= allowed;

	/* a suspect may be tried in isolation max_attempts times */
	if (error->sqlerrcode == ERRCODE_PJ_SUSPECT)
		last = attempts_before == options->max_attempts ||
			attempts_before >= options->max_attempts * PJ_TRANSIENT_FACTOR;
	if (!last)
		return PJ_TRY_AGAIN;

	/* an event that is not in the log cannot be skipped */
	return options->on_error == PJ_ON_ERROR_SKIP && pj_event_id(event) != 0 ?
		PJ_PASS_OVER : PJ_GIVE_UP;
}

/* Send an alert, if this failure calls for one. */
static void
alert_failure(const PjPair *pair, const PjEvent *event, PjOutcome outcome,
			  int errors, const ErrorData *error)
{
	const PjProjection *projection = pair->projection;
	int			threshold = projection->options.error_threshold;

	if (outcome == PJ_PASS_OVER)
		pj_alert(projection, event, "skipped", errors, error);
	else if (outcome == PJ_GIVE_UP &&
			 !has_other(&select_other_dead, pair, event, 0))
		pj_alert(projection, event, "dead", errors, error);
	else if (errors == threshold &&
			 !has_other(&select_other_failing, pair, event, threshold))
		pj_alert(projection, event, "error_threshold", errors, error);
}

/*
 * Record that an event has failed, and decide what to do with it.
 * attempts_before is the number of earlier attempts.
 */
PjOutcome
pj_failure_record(const PjPair *pair, const PjEvent *event,
				  int attempts_before, const ErrorData *error)
{
	const PjProjection *projection = pair->projection;
	int32		books = pj_pair_books(pair);
	PjOutcome	outcome = decide_outcome(projection, event, attempts_before,
										 error);
	int			attempts = attempts_before + 1;
	const char *message = message_of(error);
	int			errors;

	if (outcome != PJ_PASS_OVER)
		pj_outbox_fail(books, event, outcome == PJ_GIVE_UP, attempts,
					   next_attempt(&projection->options, attempts), message);

	/* most suspects did not cause the crash, and will be applied */
	if (outcome == PJ_TRY_AGAIN && error->sqlerrcode == ERRCODE_PJ_SUSPECT)
		return outcome;
	errors = pj_offset_count_error(books, pj_event_tenant(event),
								   pj_event_aggregate(event), message);
	write_record(pair, event, error, outcome == PJ_TRY_AGAIN, false);
	if (outcome == PJ_PASS_OVER)
		pass_over(pair, event, attempts);
	alert_failure(pair, event, outcome, errors, error);
	return outcome;
}

/* Record that an item has failed because its event is not in the log. */
PjOutcome
pj_failure_record_missing(const PjPair *pair, const PjEvent *event,
						  int attempts_before)
{
	ErrorData	error = {.elevel = ERROR,
	.sqlerrcode = ERRCODE_PJ_EVENT_MISSING};

	error.message =
		psprintf("event %lld of aggregate \"%s\" of tenant \"%s\" is missing from the log",
				 (long long) pj_event_sequence(event),
				 TextDatumGetCString(pj_event_aggregate(event)),
				 TextDatumGetCString(pj_event_tenant(event)));
	return pj_failure_record(pair, event, attempts_before, &error);
}

/* Record that an event has failed in a rebuild and is skipped. */
void
pj_failure_pass_over(const PjPair *pair, const PjEvent *event,
					 const ErrorData *error)
{
	write_record(pair, event, error, false, false);
	(void) pj_failure_skip(pair, event,
						   CStringGetTextDatum("option \"on_rebuild_error\" is \"skip\""),
						   "projector");
}

/* Close the open failures of what was rebuilt; aggregate is 0 for all. */
void
pj_failure_rebuilt(const PjProjection *projection, Datum tenant,
				   Datum aggregate, int64 upto)
{
	Datum		values[4] = {Int32GetDatum(projection->id), tenant, aggregate,
	Int64GetDatum(upto)};

	pj_execute(&rebuilt, values, aggregate ? NULL : "  n ");
}

/* Record that an event would fail, in mode shadow. */
void
pj_failure_record_shadow(const PjPair *pair, const PjEvent *event,
						 const ErrorData *error)
{
	write_record(pair, event, error, true, true);
}

/* Are there open failures?  Of one event, or if log_seq is 0 of any. */
static bool
has_open(int32 books, int64 log_seq)
{
	ScanKeyData keys[2];

	pj_key_int4(&keys[0], 1, books);
	pj_key_int8(&keys[1], 2, log_seq);
	return pj_fetch_copy(&open_failures, log_seq ? 2 : 1, keys) != NULL;
}

/* Close the open failures of events that need no more work. */
void
pj_failure_resolve(const PjPair *pair, const int64 *log_seqs, int n,
				   const char *resolution)
{
	Datum		values[3] = {Int32GetDatum(pj_pair_books(pair))};

	/* usually there are none */
	if (!has_open(pj_pair_books(pair), n == 1 ? log_seqs[0] : 0))
		return;
	values[1] = pj_int8_array(log_seqs, n);
	values[2] = CStringGetTextDatum(resolution);
	pj_execute(&resolve, values, NULL);
}

/* Set the flag "skipped" of events that must be skipped. */
void
pj_failure_mark_skipped(const PjProjection *projection,
						PjEvent *const *events, int n)
{
	int64	   *log_seqs = palloc(sizeof(int64) * Max(n, 1));
	Datum		values[2] = {Int32GetDatum(projection->id)};
	int			found;

	for (int i = 0; i < n; i++)
		log_seqs[i] = pj_event_log_seq(events[i]);
	values[1] = pj_int8_array(log_seqs, n);
	found = pj_execute(&select_skipped, values, NULL);

	/* there are few, if any */
	for (int row = 0; row < found; row++)
	{
		bool		isnull;
		int64		log_seq = DatumGetInt64(pj_result(row, 1, &isnull));

		for (int i = 0; i < n; i++)
			if (log_seqs[i] == log_seq)
				events[i]->skipped = true;
	}
}

/*
 * Record that an event must be skipped.  Returns false if that was recorded
 * already.
 */
bool
pj_failure_skip(const PjPair *pair, const PjEvent *event, Datum reason,
				const char *who)
{
	Datum		books = Int32GetDatum(pj_pair_books(pair));
	Datum		by = CStringGetTextDatum(who);
	Datum		failed[4] = {books, event->values[PJ_EVENT_LOG_SEQ], reason,
	by};
	Datum		new[9] = {books,
		pj_event_tenant(event), pj_event_aggregate(event),
		event->values[PJ_EVENT_SEQUENCE_NUMBER],
		event->values[PJ_EVENT_LOG_SEQ], pj_event_id(event),
	pj_event_type(event), reason, by};

	return pj_execute(&skip_failed, failed, NULL) > 0 ||
		pj_execute(&skip_new, new, NULL) > 0;
}

/*
 * Undo pj_failure_skip().  Returns false if the event was not to be skipped.
 */
bool
pj_failure_unskip(const PjProjection *projection, int64 log_seq)
{
	Datum		values[2] = {Int32GetDatum(projection->id),
	Int64GetDatum(log_seq)};

	return pj_execute(&unskip, values, NULL) > 0;
}

/* Store in the registry whether any event must be skipped. */
void
pj_failure_note_skips(const PjProjection *projection)
{
	Datum		values[1] = {Int32GetDatum(projection->id)};

	Assert(pj_projection_is_locked(projection->id, ExclusiveLock));
	pj_execute(&note_skips, values, NULL);
}

/*
 * Returns the projection that a failure belongs to, or 0 if there is no such
 * failure.
 */
int32
pj_failure_projection(int64 failure_id)
{
	Datum		values[1] = {Int64GetDatum(failure_id)};
	bool		isnull;

	if (pj_execute(&select_projection, values, NULL) == 0)
		return 0;
	return DatumGetInt32(pj_result(0, 1, &isnull));
}

/* Store an operator's remarks with a failure. */
void
pj_failure_note(int64 failure_id, Datum remarks)
{
	Datum		values[2] = {Int64GetDatum(failure_id), remarks};

	pj_execute(&note, values, NULL);
}
