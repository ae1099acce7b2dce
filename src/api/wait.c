/*
 * wait.c
 *	  Reading your own writes: wait until an event, or a tenant's log up to
 *	  a position, has been applied.
 *
 * Each check uses a new snapshot.  Between checks the session sleeps.  It is
 * woken when a transaction commits that applies what the last check found
 * missing, or when the log is settled as far as the session needs (waiters.c).
 * Some changes come without a wake-up and are found by checking periodically:
 * those of a prepared transaction, and everything on a standby.
 *
 * A session that begins to wait computes the log's settled tail.  While sessions
 * wait, one of them computes it for all.
 */
#include "base/compat.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "base/args.h"
#include "base/statement.h"
#include "ipc/waiters.h"
#include "kinds/problem.h"
#include "log/log_read.h"
#include "log/tail.h"
#include "registry/projection.h"
#include "sandbox/user_context.h"
#include "state/cursor.h"
#include "state/outbox.h"

PG_FUNCTION_INFO_V1(projector_wait);
PG_FUNCTION_INFO_V1(projector_wait_log);

/*
 * How often to check without a wake-up: soon at first, then less often.  Where
 * no process can wake us, and on a standby, always soon.
 */
#define LOOK_FIRST_MS	20
#define LOOK_MS			1000
#define LOOK_TAIL_MS	4000	/* until the log is settled so far */

/* How often the session that tends the tail computes it. */
#define TAIL_MS			20

/* A longer timeout may be beyond the last possible time. */
#define MAX_TIMEOUT_YEARS	1000

/* What to wait for: an event or, if aggregate is 0, a log position. */
typedef struct Wait
{
	const char *function;
	int32		projection_id;
	const char *name;
	Datum		tenant;
	Datum		aggregate;
	int64		position;		/* sequence_number or log_seq */
	TimestampTz until;

	bool		shared;			/* commits can wake this session */
	bool		looked;			/* it has checked before */
	long		interval;		/* ms until it checks without a wake-up; 0
								 * after a wake-up and at the start */
	TimestampTz look_at;		/* when it does that */
	int64		needs;			/* see waiters.c */
	bool		unsettled;		/* the log is not settled up to position */
} Wait;

#define UNAPPLIED(column, order) \
	"(SELECT " column " FROM projector.events" \
	" WHERE tenant_id = $2 AND aggregate_id = $3" \
	" AND sequence_number > o.last AND sequence_number <= $4" \
	" AND ($5 IS NULL OR event_type = ANY ($5))" \
	" ORDER BY sequence_number " order " LIMIT 1)"

/*
 * The offset; the first subscribed event after it, up to $4; whether event $4
 * is in the log; the first dead item up to it; and the log position of the last
 * subscribed event after the offset, up to $4.
 */
static PjStatement look_at_event = {
	.sql = "SELECT o.last, e.first, EXISTS (SELECT FROM projector.events"
	" WHERE tenant_id = $2 AND aggregate_id = $3 AND sequence_number = $4),"
	" (SELECT sequence_number FROM projector.apply_outbox"
	" WHERE projection_id = $1 AND tenant_id = $2 AND aggregate_id = $3"
	" AND (held OR status IN ('failed', 'dead')) AND status = 'dead'"
	" AND sequence_number <= $4 ORDER BY sequence_number LIMIT 1)"
	", e.last_log_seq"
	" FROM (SELECT coalesce((SELECT last_sequence_number"
	" FROM projector.projection_offsets WHERE projection_id = $1"
	" AND tenant_id = $2 AND aggregate_id = $3), 0) AS last) o"
	" CROSS JOIN LATERAL (SELECT " UNAPPLIED("sequence_number", "ASC")
	" AS first, " UNAPPLIED("log_seq", "DESC") " AS last_log_seq) e",
	.expect = SPI_OK_SELECT,
	.nargs = 5,
	.argtypes = {INT4OID, TEXTOID, TEXTOID, INT8OID, TEXTARRAYOID},
};

/*
 * The first dead item up to $3.  OFFSET keeps the planner from reading all items
 * in log order.
 */
static PjStatement look_for_dead = {
	.sql = "SELECT min(log_seq) FROM (SELECT log_seq"
	" FROM projector.apply_outbox WHERE projection_id = $1"
	" AND status = 'dead' AND tenant_id = $2 AND log_seq <= $3"
	" OFFSET 0) dead",
	.expect = SPI_OK_SELECT,
	.nargs = 3,
	.argtypes = {INT4OID, TEXTOID, INT8OID},
};

/*
 * The last subscribed event up to $3; the last pending item up to $3; and
 * whether there is an item up to $3 that has failed or is held.
 */
static PjStatement look_at_log = {
	.sql = "SELECT (SELECT log_seq FROM projector.events"
	" WHERE tenant_id = $2 AND log_seq <= $3"
	" AND ($4 IS NULL OR event_type = ANY ($4))"
	" ORDER BY log_seq DESC LIMIT 1),"
	" (SELECT log_seq FROM projector.apply_outbox WHERE projection_id = $1"
	" AND tenant_id = $2 AND status = 'pending' AND NOT held"
	" AND log_seq <= $3 ORDER BY log_seq DESC LIMIT 1),"
	" EXISTS (SELECT FROM projector.apply_outbox WHERE projection_id = $1"
	" AND tenant_id = $2 AND (held OR status IN ('failed', 'dead'))"
	" AND log_seq <= $3)",
	.expect = SPI_OK_SELECT,
	.nargs = 4,
	.argtypes = {INT4OID, TEXTOID, INT8OID, TEXTARRAYOID},
};

/* An event between the cursor, $3, and $4 that is above its offset. */
static PjStatement find_unapplied = {
	.sql = "SELECT FROM projector.events e LEFT JOIN LATERAL"
	" (SELECT last_sequence_number FROM projector.projection_offsets o"
	" WHERE o.projection_id = $1 AND o.tenant_id = $2"
	" AND o.aggregate_id = e.aggregate_id LIMIT 1) o ON true"
	" WHERE e.tenant_id = $2 AND e.log_seq > $3 AND e.log_seq <= $4"
	" AND ($5 IS NULL OR e.event_type = ANY ($5))"
	" AND e.sequence_number > coalesce(o.last_sequence_number, 0) LIMIT 1",
	.expect = SPI_OK_SELECT,
	.nargs = 5,
	.argtypes = {INT4OID, TEXTOID, INT8OID, INT8OID, TEXTARRAYOID},
};

/* The result of a check. */
typedef struct Sight
{
	bool		applied;
	bool		blocked;
	int64		dead;			/* the dead event that blocks it, or 0 */
} Sight;

/* A column of the result, or 0 if it is null. */
static int64
int8_or_zero(int column)
{
	bool		isnull;
	Datum		value = pj_result(0, column, &isnull);

	return isnull ? 0 : DatumGetInt64(value);
}

/* Is the event in the log, and everything up to it applied? */
static void
see_event(Wait *wait, const PjPair *pair, Sight *sight)
{
	const PjProjection *projection = pair->projection;
	Datum		values[5] = {Int32GetDatum(projection->id), wait->tenant,
		wait->aggregate, Int64GetDatum(wait->position),
	projection->event_types};
	bool		in_log;
	bool		isnull;

	pj_execute(&look_at_event, values,
			   projection->event_types ? NULL : "    n");
	in_log = DatumGetBool(pj_result(0, 3, &isnull));
	sight->applied = int8_or_zero(1) >= wait->position ||
		(int8_or_zero(2) == 0 && in_log);
	wait->needs = in_log ? int8_or_zero(5) : PJ_NEEDS_ANYTHING;
	sight->dead = int8_or_zero(4);
	sight->blocked = sight->dead != 0 || pair->state == PJ_STOPPED;
}

/*
 * Has everything after the cursor been applied?  If new events have items, the
 * items show that.  If the projection is not being applied, compare with the
 * offsets.
 */
static bool
is_applied_behind_cursor(const Wait *wait, const PjPair *pair)
{
	const PjProjection *projection = pair->projection;
	Datum		values[5] = {Int32GetDatum(projection->id), wait->tenant,
		Int64GetDatum(pair->last_log_seq), Int64GetDatum(wait->position),
	projection->event_types};

	if (projection->dormant || pair->mode == PJ_OFF)
		return pj_execute(&find_unapplied, values,
						  projection->event_types ? NULL : "    n") == 0;
	return !pj_pair_behind(pair) && !pj_pair_reads_log(pair);
}

/*
 * Is the log settled up to the position?  The first check computes the tail.
 * After that the session that tends it does.
 */
static bool
is_settled(const Wait *wait)
{
	if (pj_tail_is_known_to_reach(wait->position))
		return true;
	return (!wait->looked || !wait->shared) && pj_tail(0) >= wait->position;
}

/*
 * Has the log been settled up to the position, read by whoever reads it, and
 * nothing been left behind?
 */
static void
see_log(Wait *wait, const PjPair *pair, Sight *sight)
{
	const PjProjection *projection = pair->projection;
	Datum		values[4] = {Int32GetDatum(projection->id), wait->tenant,
	Int64GetDatum(wait->position), projection->event_types};
	int64		last,
				pending;
	bool		held;
	bool		isnull;

	/* the snapshots of these queries see everything settled before */
	wait->unsettled = !is_settled(wait);
	pj_execute(&look_for_dead, values, NULL);
	sight->dead = int8_or_zero(1);
	sight->blocked = sight->dead != 0 || pair->state == PJ_STOPPED;
	sight->applied = false;
	wait->needs = PJ_NEEDS_NEWS;
	if (wait->unsettled)
		return;

	pj_execute(&look_at_log, values, projection->event_types ? NULL : "   n");
	last = int8_or_zero(1);
	pending = int8_or_zero(2);
	held = DatumGetBool(pj_result(0, 3, &isnull));
	sight->applied = pending == 0 && !held &&
		(pair->last_log_seq >= last || is_applied_behind_cursor(wait, pair));
	if (held || pj_pair_behind(pair))
		wait->needs = PJ_NEEDS_ANYTHING;
	else
		wait->needs = pending != 0 ? pending : last;
}

/* Raise an error if waiting would be in vain. */
static void
refuse_idle(const Wait *wait, const PjPair *pair)
{
	pj_refuse_dormant(pair->projection);
	if (pair->mode == PJ_OFF || pair->mode == PJ_SHADOW)
		ereport(ERROR,
				errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("projection \"%s\" is in mode \"%s\" for tenant \"%s\"",
					   wait->name, pj_mode_names[pair->mode],
					   TextDatumGetCString(wait->tenant)),
				errdetail("Nothing is applied in this mode."),
				errhint("Change it with projector_set_mode."));
	if (TransactionIdIsValid(GetTopTransactionIdIfAny()))
		ereport(ERROR,
				errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
				errmsg("%s cannot wait in a transaction that has written",
					   wait->function),
				errdetail("The event may not be applied before this transaction ends."),
				errhint("Commit first, and call it as a statement of its own."));
}

static void
tell_blocked(const Wait *wait, const PjPair *pair, const Sight *sight)
{
	if (sight->dead == 0)
		ereport(NOTICE,
				errmsg("projection \"%s\" has stopped for tenant \"%s\"",
					   wait->name, TextDatumGetCString(wait->tenant)),
				errhint("See projector.outbox for the event it stopped at."));
	else if (wait->aggregate)
		ereport(NOTICE,
				errmsg("event %lld of aggregate \"%s\" is dead",
					   (long long) sight->dead,
					   TextDatumGetCString(wait->aggregate)),
				errhint("Repair the cause and use projector_requeue, or use projector_skip."));
	else
		ereport(NOTICE,
				errmsg("the event at position %lld of the log is dead",
					   (long long) sight->dead),
				errhint("Repair the cause and use projector_requeue, or use projector_skip."));
}

/* Check once.  Returns the answer, or NULL if there is none yet. */
static const char *
look(Wait *wait)
{
	PjProjection *projection = pj_projection_by_id(wait->projection_id);
	PjContext	saved;
	PjPair		pair;
	Sight		sight;

	if (projection == NULL)
		ereport(ERROR,
				errcode(ERRCODE_UNDEFINED_OBJECT),
				errmsg("projection \"%s\" has been dropped", wait->name));
	pj_enter_internal(&saved);
	pj_pair_look(&pair, projection, wait->tenant);
	if (wait->aggregate)
		see_event(wait, &pair, &sight);
	else
		see_log(wait, &pair, &sight);
	pj_leave_internal(&saved);

	if (sight.applied)
		return "applied";
	refuse_idle(wait, &pair);
	if (pj_projection_problem(projection) != NULL)
	{
		ereport(NOTICE,
				errmsg("projection \"%s\" has stopped: %s", wait->name,
					   pj_projection_problem(projection)),
				errhint("Repair the cause, or change the projection with projector_alter. The projection then continues automatically."));
		return "blocked";
	}
	if (sight.blocked)
	{
		tell_blocked(wait, &pair, &sight);
		return "blocked";
	}
	if (pair.paused)
		return "paused";
	return NULL;
}

/* Compute the settled tail for all sessions.  That wakes them. */
static void
tend_tail(void)
{
	PjContext	saved;

	pj_enter_internal(&saved);
	(void) pj_tail(0);
	pj_leave_internal(&saved);
}

/* Set the time of the next check without a wake-up. */
static void
set_next_look(Wait *wait)
{
	if (wait->interval == 0 || !wait->shared || RecoveryInProgress())
		wait->interval = LOOK_FIRST_MS;
	else
		wait->interval = Min(wait->interval * 2, wait->unsettled ?
							 LOOK_TAIL_MS : LOOK_MS);
	wait->look_at = TimestampTzPlusMilliseconds(GetCurrentTimestamp(),
												wait->interval);
	wait->looked = true;
}

/* Sleep until the next check.  Returns false after the timeout. */
static bool
sleep_until_look(Wait *wait)
{
	set_next_look(wait);
	if (!pj_waiters_await(wait->needs, wait->unsettled ? wait->position : 0))
		return true;
	for (;;)
	{
		bool		tends = wait->unsettled && pj_waiters_tends_tail();
		TimestampTz now = GetCurrentTimestamp();
		long		ms = TimestampDifferenceMilliseconds(now,
														 Min(wait->until,
															 wait->look_at));

		if (now >= wait->until)
			return false;
		if (now >= wait->look_at)
			return true;
		if (pj_waiters_sleep(Max(tends ? Min(ms, TAIL_MS) : ms, 1)))
		{
			wait->interval = 0;
			return true;
		}
		if (tends && wait->shared)
			tend_tail();
	}
}

/*
 * Tell the user if what was waited for is not in the log.  It may still come,
 * but more often a name is misspelt.
 */
static void
tell_unknown(const Wait *wait, const char *answer)
{
	if (wait->aggregate && strcmp(answer, "timeout") != 0)
		return;
	if (!pj_source_has(wait->tenant, 0))
		ereport(NOTICE,
				errmsg("tenant \"%s\" has no events",
					   TextDatumGetCString(wait->tenant)));
	else if (wait->aggregate && !pj_source_has(wait->tenant, wait->aggregate))
		ereport(NOTICE,
				errmsg("aggregate \"%s\" of tenant \"%s\" has no events",
					   TextDatumGetCString(wait->aggregate),
					   TextDatumGetCString(wait->tenant)));
}

static const char *
wait_for(Wait *wait)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "projector wait",
												  ALLOCSET_SMALL_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);
	const char *volatile answer = NULL;

	PG_TRY();
	{
		wait->shared = pj_waiters_join(wait->projection_id, wait->tenant);
		do
		{
			MemoryContextReset(context);
			pj_waiters_look();
			answer = look(wait);
		} while (answer == NULL && sleep_until_look(wait));
	}
	PG_FINALLY();
	{
		pj_waiters_leave();
	}
	PG_END_TRY();
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(context);
	if (answer == NULL)
		answer = "timeout";
	tell_unknown(wait, answer);
	return answer;
}

/*
 * Read the arguments that both functions share; "last" is the index of the
 * timeout.
 */
static void
begin_wait(FunctionCallInfo fcinfo, Wait *wait, int last)
{
	Interval   *timeout = DatumGetIntervalP(pj_required(fcinfo, last,
														"timeout"));
	TimestampTz now = GetCurrentTimestamp();

	wait->name = pj_required_name(fcinfo, 0, "name");
	wait->tenant = pj_required_text(fcinfo, 1, "tenant_id");
	pj_require_read_committed(wait->function);
	pj_refuse_in_user_code(wait->function);
	if (wait->position < 1)
		ereport(ERROR,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("%s must be positive",
					   wait->aggregate ? "sequence_number" : "log_seq"));
	if (timeout->month / 12 > MAX_TIMEOUT_YEARS ||
		timeout->day / 366 > MAX_TIMEOUT_YEARS)
		ereport(ERROR,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("timeout must not be above %d years",
					   MAX_TIMEOUT_YEARS));
	wait->until = DatumGetTimestampTz(DirectFunctionCall2(timestamptz_pl_interval,
														  TimestampTzGetDatum(now),
														  IntervalPGetDatum(timeout)));
	if (wait->until < now)
		ereport(ERROR,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("timeout must not be negative"));
	wait->projection_id = pj_projection_find(wait->name)->id;
}

/* Waits until a projection has applied an event. */
Datum
projector_wait(PG_FUNCTION_ARGS)
{
	Wait		wait = {.function = "projector_wait"};

	wait.aggregate = pj_required_text(fcinfo, 2, "aggregate_id");
	wait.position = DatumGetInt64(pj_required(fcinfo, 3, "sequence_number"));
	begin_wait(fcinfo, &wait, 4);
	PG_RETURN_TEXT_P(cstring_to_text(wait_for(&wait)));
}

/* Waits until a projection has applied a tenant's events up to a position. */
Datum
projector_wait_log(PG_FUNCTION_ARGS)
{
	Wait		wait = {.function = "projector_wait_log"};

	if (RecoveryInProgress())
		ereport(ERROR,
				errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("projector_wait_log cannot be used on a standby"),
				errdetail("Only the primary knows which transactions are writing events."),
				errhint("Use projector_wait, for an aggregate."));
	wait.position = DatumGetInt64(pj_required(fcinfo, 2, "log_seq"));
	begin_wait(fcinfo, &wait, 3);
	PG_RETURN_TEXT_P(cstring_to_text(wait_for(&wait)));
}
