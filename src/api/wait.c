/*
 * wait.c
 *	  Reading your own writes: waiting until an event, or all of a tenant's log
 *	  up to a position, has been applied.
 *
 * Each look takes a new snapshot.  Between looks the session sleeps, until a
 * transaction has committed that applies what the look has found missing, or
 * the log is settled as far as is waited for (waiters.c).  What comes without a
 * wake-up is found by looking from time to time: what a prepared transaction has
 * done, and anything at all on a standby.
 *
 * Up to where the log is settled is found out by each session when it begins to
 * wait.  After that one of them does it for all.
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
 * How often to look without having been woken: at first soon, then seldom.
 * Where nobody wakes us, and on a standby, always soon.
 */
#define LOOK_FIRST_MS	20
#define LOOK_MS			1000
#define LOOK_TAIL_MS	4000	/* until the log is settled so far */

/* How often the one who does it finds out up to where the log is settled. */
#define TAIL_MS			20

/* What is waited for: an event, or if aggregate is 0 a position in the log. */
typedef struct Wait
{
	const char *function;
	int32		projection_id;
	const char *name;
	Datum		tenant;
	Datum		aggregate;
	int64		position;		/* sequence_number or log_seq */
	TimestampTz until;

	bool		shared;			/* others can wake us */
	bool		looked;			/* not for the first time */
	long		interval;		/* look again after so many ms; 0 if we were
								 * woken, or have just begun */
	TimestampTz look_at;		/* which is then */
	int64		needs;			/* what would make a difference */
	bool		unsettled;		/* the log is not settled yet up to position */
} Wait;

#define UNAPPLIED(column, order) \
	"(SELECT " column " FROM projector.events" \
	" WHERE tenant_id = $2 AND aggregate_id = $3" \
	" AND sequence_number > o.last AND sequence_number <= $4" \
	" AND ($5 IS NULL OR event_type = ANY ($5))" \
	" ORDER BY sequence_number " order " LIMIT 1)"

/*
 * The offset; the first event behind it, up to $4, that is subscribed to; is
 * event $4 in the log; the first dead item up to it; and where the last such
 * event is in the log.
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

/* The first dead item up to $3.  (OFFSET has dead ones read, and no others.) */
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
 * The last event up to $3 that is subscribed to; the last pending item up to
 * $3; and is there another one up to $3, that has failed or is held?
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

/* An event between the cursor, $3, and $4 that is not at or below its offset. */
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

/* What a look has found. */
typedef struct Sight
{
	bool		applied;
	bool		blocked;
	int64		dead;			/* what blocks it, or 0 */
} Sight;

/* A column of the result, or 0 if it is null. */
static int64
int8_or_zero(int column)
{
	bool		isnull;
	Datum		value = pj_result(0, column, &isnull);

	return isnull ? 0 : DatumGetInt64(value);
}

/* Is the event in the log, and nothing up to it unapplied? */
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
 * Has all been applied that the cursor has not passed?  Where new events have
 * items we know without looking; where nothing is applied, the offsets say.
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
 * Is the log settled up to the position?  At first we find out; from then on
 * whoever does it for all tells us.
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

	/* what was settled before this look is seen by it */
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

/* An answer will not come by itself. */
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
				errdetail("What it waits for may depend on this transaction's end."),
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
				errhint("Mend its cause and use projector_requeue, or projector_skip."));
	else
		ereport(NOTICE,
				errmsg("the event at position %lld of the log is dead",
					   (long long) sight->dead),
				errhint("Mend its cause and use projector_requeue, or projector_skip."));
}

/* Look once.  Returns the answer, or NULL if there is none yet. */
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
				errhint("Repair the cause, or change the projection with projector_alter; it goes on by itself."));
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

/* Find out for all up to where the log is settled.  That wakes them. */
static void
tend_tail(void)
{
	PjContext	saved;

	pj_enter_internal(&saved);
	(void) pj_tail(0);
	pj_leave_internal(&saved);
}

/* When to look again if nobody wakes us. */
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

/* Sleep until there is reason to look.  Returns false if the time is over. */
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
 * Say so if what was waited for is not in the log: it may yet come, but more
 * often a name is misspelt.
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

/* Read what both functions have in common; "last" is the timeout's place. */
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
				errdetail("Which transactions are writing events is known to the primary alone."),
				errhint("Use projector_wait, for an aggregate."));
	wait.position = DatumGetInt64(pj_required(fcinfo, 2, "log_seq"));
	begin_wait(fcinfo, &wait, 3);
	PG_RETURN_TEXT_P(cstring_to_text(wait_for(&wait)));
}
