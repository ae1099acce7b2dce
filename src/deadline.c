/*
 * deadline.c
 *	  How long a projection's code may run.
 *
 * A worker has nobody who would cancel a handler that never returns, so one
 * call of it may take no longer than the projection's timeout.  (In a client's
 * session its own statement_timeout counts.)  The call is cancelled as by
 * statement_timeout.  Code can catch that, so the time it took decides, not
 * the error it ends with.
 */
#include "compat.h"

#include "miscadmin.h"
#include "utils/timeout.h"
#include "utils/timestamp.h"

#include "deadline.h"

static struct
{
	int			timeout_ms;		/* 0 if there is none */
	TimestampTz start;
	bool		passed;			/* of the last call */
} deadline;

/* A call begins. */
void
pj_deadline_begin(int timeout_ms)
{
	deadline.timeout_ms = timeout_ms;
	deadline.passed = false;
	if (timeout_ms == 0)
		return;
	deadline.start = GetCurrentTimestamp();
	enable_timeout_after(STATEMENT_TIMEOUT, timeout_ms);
}

/* It is over, one way or the other. */
void
pj_deadline_disarm(void)
{
	if (deadline.timeout_ms == 0)
		return;
	disable_timeout(STATEMENT_TIMEOUT, false);
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
