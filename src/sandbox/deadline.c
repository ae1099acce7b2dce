/*
 * deadline.c
 *	  How long a projection's code may run.
 *
 * A worker has nobody who would cancel a handler that never returns, so one
 * call of it may take no longer than the projection's timeout.  (In a client's
 * session its own statement_timeout counts.)  The call is cancelled as by
 * statement_timeout.  Code can catch that, so the time it took decides, not
 * the error it ends with.  Code that catches it and goes on is cancelled again,
 * and after a few times the worker ends itself: caution.c says what becomes of
 * the event.  (Code that never looks whether it is cancelled, such as a loop in
 * a C function, cannot be ended this way.)
 */
#include "base/compat.h"

#include <signal.h>

#include "miscadmin.h"
#include "storage/latch.h"
#include "utils/timeout.h"
#include "utils/timestamp.h"

#include "sandbox/deadline.h"

static struct
{
	int			timeout_ms;		/* 0 if there is none */
	TimestampTz start;
	bool		passed;			/* of the last call */
} deadline;

/* How often a call is cancelled again, and when the worker gives up. */
#define AGAIN_MIN_MS	250
#define AGAIN_MAX_MS	1000
#define IGNORED_CANCELS	3

/* What a worker does between calls, every now and then. */
#define BETWEEN_MS		500

static void (*between_calls) (void) = NULL;
static TimestampTz between_at = 0;

static TimeoutId last_resort = MAX_TIMEOUTS;
static volatile sig_atomic_t ignored = false;

/* Signal handler: the call has ignored that it was cancelled. */
static void
end_worker(void)
{
	ignored = true;
	ProcDiePending = true;
	InterruptPending = true;
	SetLatch(MyLatch);
}

/* Has this process been ended for that reason? */
bool
pj_deadline_ignored(void)
{
	return ignored;
}

/*
 * Cancel the call when its time is over, and again if need be.  Not by
 * enable_timeouts(), which takes no first time for a repeated timeout.
 */
static void
arm(int timeout_ms)
{
	TimestampTz end = TimestampTzPlusMilliseconds(deadline.start, timeout_ms);
	int			again = Max(Min(timeout_ms, AGAIN_MAX_MS), AGAIN_MIN_MS);

	if (last_resort == MAX_TIMEOUTS)
		last_resort = RegisterTimeout(USER_TIMEOUT, end_worker);
	enable_timeout_every(STATEMENT_TIMEOUT, end, again);
	enable_timeout_at(last_resort,
					  TimestampTzPlusMilliseconds(end, again *
												  (IGNORED_CANCELS + 1)));
}

/* Have a function called between calls of projections' code. */
void
pj_between_calls(void (*hook) (void))
{
	between_calls = hook;
}

/* A call begins. */
void
pj_deadline_begin(int timeout_ms)
{
	deadline.timeout_ms = timeout_ms;
	deadline.passed = false;
	if (timeout_ms == 0)
		return;
	deadline.start = GetCurrentTimestamp();
	if (between_calls &&
		TimestampDifferenceExceeds(between_at, deadline.start, BETWEEN_MS))
	{
		between_at = deadline.start;
		between_calls();
	}
	arm(timeout_ms);
}

/* It is over, one way or the other. */
void
pj_deadline_disarm(void)
{
	DisableTimeoutParams timeouts[2] = {{.id = STATEMENT_TIMEOUT},
	{.id = last_resort}};

	if (deadline.timeout_ms == 0)
		return;
	disable_timeouts(timeouts, 2);
	deadline.passed = TimestampDifferenceExceeds(deadline.start,
												 GetCurrentTimestamp(),
												 deadline.timeout_ms);

	/* what was cancelled is the call, and it has ended */
	if (deadline.passed)
		QueryCancelPending = false;
	deadline.timeout_ms = 0;
}

/* It has returned: an error if it took too long to do so. */
void
pj_deadline_end(void)
{
	int			timeout_ms = deadline.timeout_ms;

	pj_deadline_disarm();
	if (timeout_ms > 0 && deadline.passed)
		ereport(ERROR,
				errcode(ERRCODE_QUERY_CANCELED),
				errmsg("%s", pj_deadline_message()));
}

/* Did the last call take too long? */
bool
pj_deadline_passed(void)
{
	return deadline.passed;
}

char *
pj_deadline_message(void)
{
	return "the projection's code ran longer than its option \"timeout\" allows";
}
