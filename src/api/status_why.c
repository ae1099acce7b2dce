/*
 * status_why.c
 *	  The state of a pair in words.
 */
#include "base/compat.h"

#include "utils/builtins.h"
#include "utils/formatting.h"
#include "utils/fmgrprotos.h"
#include "utils/timestamp.h"

#include "api/status_look.h"

const char *const pj_status_names[] = {
	[PJ_IS_DORMANT] = "dormant",
	[PJ_IS_OFF] = "off",
	[PJ_IS_PAUSED] = "paused",
	[PJ_IS_BLOCKED] = "blocked",
	[PJ_IS_FAILING] = "failing",
	[PJ_IS_REBUILDING] = "rebuilding",
	[PJ_IS_STARTING] = "starting",
	[PJ_HAS_NO_WORKER] = "no_worker",
	[PJ_IS_WAITING] = "waiting",
	[PJ_IS_LAGGING] = "lagging",
	[PJ_IS_SHADOW] = "shadow",
	[PJ_IS_OK] = "ok",
};

/* A time, in the session's time zone. */
static char *
time_text(TimestampTz time)
{
	text	   *format = cstring_to_text("YYYY-MM-DD HH24:MI:SS TZ");

	if (time == 0)
		return "";
	return TextDatumGetCString(DirectFunctionCall2(timestamptz_to_char,
												   TimestampTzGetDatum(time),
												   PointerGetDatum(format)));
}

static char *
text_or_nothing(Datum value)
{
	return value ? TextDatumGetCString(value) : "";
}

static char *
why_paused(const PjStatusRow *row)
{
	const PjCursorRow *cursor = &row->cursor;

	return psprintf("by %s since %s%s%s", text_or_nothing(cursor->paused_by),
					time_text(cursor->paused_at),
					cursor->pause_reason ? ": " : "",
					text_or_nothing(cursor->pause_reason));
}

/* A dead event. */
char *
pj_status_dead(const PjBrokenItem *item)
{
	return psprintf("event " INT64_FORMAT " of %s is dead: %s",
					item->sequence_number, item->aggregate,
					item->error ? item->error : "");
}

static char *
why_blocked(const PjStatusRow *row)
{
	const PjBrokenItem *item = &row->outbox.first_dead;

	if (row->projection->problem)
		return psprintf("cannot run: %s", row->projection->problem);

	/* it is stopped, and the event is not there any more */
	if (item->log_seq == 0)
		item = &row->outbox.first_failed;
	if (item->log_seq == 0)
		return "stopped at an event that is dead";
	return pj_status_dead(item);
}

/* The failed event that is to be looked at first. */
char *
pj_status_failing(const PjStatusRow *row)
{
	const PjBrokenItem *item = &row->outbox.first_failed;

	return psprintf("event " INT64_FORMAT " of %s failed: %s (attempt %d; the next at %s)",
					item->sequence_number, item->aggregate,
					item->error ? item->error : "", item->attempts,
					time_text(item->next_attempt_at));
}

static char *
why_locked(const PjLocker *locker)
{
	return psprintf("process %d (%s) has locked it since %s", locker->pid,
					locker->role ? locker->role : "",
					time_text(locker->since));
}

static char *
why_rebuilding(const PjStatusRow *row)
{
	const PjActiveRun *run = &row->run;

	if (run->id == 0)
		return why_locked(row->locker);
	if (run->queued)
		return psprintf("run " INT64_FORMAT ", %s, is queued", run->id,
						run->mode);
	return psprintf("run " INT64_FORMAT ", %s: " INT64_FORMAT " of about " INT64_FORMAT " events",
					run->id, run->mode, run->processed, run->total);
}

static char *
why_starting(PjStatusLook *look, const PjStatusRow *row)
{
	if (look->no_worker)
		return look->no_worker;
	if (row->projection->handed_over)
		return psprintf(INT64_FORMAT " events to read", row->lag_events);
	if (pj_status_appender(look))
		return psprintf("%s has been appending events since before the projection was changed",
						pj_status_appender(look)->name);
	return "a worker will begin soon";
}

static char *
why_waiting(PjStatusLook *look, const PjStatusRow *row)
{
	const PjAppender *appender;

	if (row->driver)
		return why_locked(row->driver);
	appender = pj_status_appender(look);
	return psprintf("%s has an open transaction that appends events, since %s",
					appender->name, time_text(appender->since));
}

static char *
why_lagging(const PjStatusRow *row)
{
	Interval	lag_time = row->lag_time;

	return psprintf(INT64_FORMAT " events, the oldest for %s",
					row->lag_events,
					DatumGetCString(DirectFunctionCall1(interval_out,
														IntervalPGetDatum(&lag_time))));
}

/* The reason for a pair's state; NULL if it is ok. */
char *
pj_status_why(PjStatusLook *look, const PjStatusRow *row)
{
	switch (row->state)
	{
		case PJ_IS_DORMANT:
			return row->tenant ?
				"this database is a copy: see projector_adopt()" :
				"see projector_adopt()";
		case PJ_IS_OFF:
			return "switched off";
		case PJ_IS_PAUSED:
			return why_paused(row);
		case PJ_IS_BLOCKED:
			return why_blocked(row);
		case PJ_IS_FAILING:
			return pj_status_failing(row);
		case PJ_IS_REBUILDING:
			return why_rebuilding(row);
		case PJ_IS_STARTING:
			return why_starting(look, row);
		case PJ_HAS_NO_WORKER:
			return look->no_worker;
		case PJ_IS_WAITING:
			return why_waiting(look, row);
		case PJ_IS_LAGGING:
			return why_lagging(row);
		case PJ_IS_SHADOW:
			return psprintf(INT64_FORMAT " would fail",
							row->outbox.would_fail);
		default:
			return NULL;
	}
}
