/*
 * pace.c
 *	  How fast a worker processes runs: projector.run_max_rate.
 *
 * A batch of n events uses up n / rate seconds from its start on, and the next
 * batch of any run is not due before that time has passed.  The worker does not
 * wait for it: it holds no locks then, and goes on with other work.  Time that
 * was not used is not saved up.
 *
 * Batches are cut so that each uses up about a tenth of a second.  So the work
 * is spread evenly, and a new rate has its effect soon.
 */
#include "base/compat.h"

#include "utils/timestamp.h"

#include "base/guc.h"
#include "worker/pace.h"

#define BATCHES_PER_SECOND	10

static TimestampTz next_at = 0; /* no batch of a run before this */

/* Returns how many events a batch of a run may have; 0 for any number. */
int
pj_pace_batch(void)
{
	if (pj_run_max_rate == 0)
		return 0;
	return Max(pj_run_max_rate / BATCHES_PER_SECOND, 1);
}

/* A batch of a run that began then has read so many events. */
void
pj_pace_used(TimestampTz started_at, int events)
{
	if (pj_run_max_rate > 0)
		next_at = Max(next_at, started_at) +
			(int64) events * USECS_PER_SEC / pj_run_max_rate;
}

/* May a batch of a run begin?  If not, *at is when it may. */
bool
pj_pace_is_due(TimestampTz *at)
{
	*at = next_at;
	return pj_run_max_rate == 0 || GetCurrentTimestamp() >= next_at;
}
