/*
 * deadline.c
 *	  The time limit for a projection's code.
 *
 * Nobody is there to cancel a handler that never returns in a worker, so one
 * call may take no longer than the projection's timeout.  (In a client's
 * session its own statement_timeout applies.) The call is cancelled in the
 * same way as by statement_timeout.  Code can catch that error, so the time it
 * took decides, not the error it ends with.  Code that catches the error and
 * continues is cancelled again.  After a few times the worker exits: caution.c
 * describes what happens to the event then.  (Code that never checks for
 * interrupts, such as a loop in a C function, cannot be stopped this way.)
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
	bool		passed;			/* the last call exceeded its timeout */
} deadline;

/*
 * How often a call is cancelled again, and how many times before the worker
 * exits.
 */
#define AGAIN_MIN_MS	250
#define AGAIN_MAX_MS	1000
#define IGNORED_CANCELS	3

/*
 * A function that a worker runs between calls, but not more often than this.
 */
#define BETWEEN_MS		500

static void (*between_calls) (void) = NULL;
static TimestampTz between_at = 0;

static TimeoutId last_resort = MAX_TIMEOUTS;
static volatile sig_atomic_t ignored = false;

/* Signal handler: the call has ignored several cancels. */
static void
end_worker(void)
{
	ignored = true;
	ProcDiePending = true;
	InterruptPending = true;
	SetLatch(MyLatch);
}

/* Is this process exiting for that reason? */
bool
pj_deadline_ignored(void)
{
	return ignored;
}

/*
 * Cancel the call when its time is over, and repeat.  enable_timeouts() cannot
 * do this, because a repeated timeout cannot have a different first delay.
 */
static void
arm(int timeout_ms)
{
	TimestampTz end = TimestampTzPlusMilliseconds(deadline.start, timeout_ms);
	int			again = Max(Min(timeout_ms, AGAIN_MAX_MS), AGAIN_MIN_MS);

	if (last_resort == MAX_TIMEOUTS)
		last_resort = RegisterTimeout(USER_TIMEOUT, end_worker);
	pj_cancel_at(end, again);
	enable_timeout_at(last_resort,
					  TimestampTzPlusMilliseconds(end, again *
												  (IGNORED_CANCELS + 1)));
}

/* Register a function to be called between calls of projections' code. */
void
pj_between_calls(void (*hook) (void))
{
	between_calls = hook;
}

/* A call begins: start its timeout. */
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

/* The call has ended, with or without an error: stop its timeout. */
void
pj_deadline_disarm(void)
{
	DisableTimeoutParams timeouts[2] = {{.id = pj_cancel_timeout},
	{.id = last_resort}};

	if (deadline.timeout_ms == 0)
		return;
	disable_timeouts(timeouts, 2);
	deadline.passed = TimestampDifferenceExceeds(deadline.start,
												 GetCurrentTimestamp(),
												 deadline.timeout_ms);

	/* the pending cancel was meant for the call, which has ended */
	if (deadline.passed)
		QueryCancelPending = false;
	deadline.timeout_ms = 0;
}

/* The call has returned.  Raise an error if it took too long. */
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

/* Did the last call exceed its timeout? */
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
