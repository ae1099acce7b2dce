/*
 * turn.c
 *	  Taking turns, where there are more databases than workers.
 *
 * A worker that has nothing to do leaves if another database waits for one.
 * The launcher then starts a worker for the database that has waited longest,
 * and by and by this one's turn comes again.  Without the launcher nobody
 * would: then a worker does not leave while a retry is to come, whoever
 * leaves work starts a worker, and workers start those that others wait for.
 */
#include "base/compat.h"

#include "miscadmin.h"
#include "utils/timestamp.h"

#include "base/guc.h"
#include "ipc/shmem.h"
#include "ipc/wakeup.h"
#include "worker/turn.h"

/* How long a worker has had nothing to do when it leaves. */
#define IDLE_MS			5000

/* And if events are known to wait elsewhere. */
#define URGENT_IDLE_MS	1000

/*
 * Should this worker, which has had nothing to do since then, leave for
 * another database?  next_due is when a failed event is to be tried again.
 */
bool
pj_turn_is_over(TimestampTz idle_since, TimestampTz next_due)
{
	TimestampTz now = GetCurrentTimestamp();
	TimestampTz since;
	Oid			longest;
	bool		urgent;

	if (pj_slot_waiting(MyDatabaseId, &longest, &since, &urgent) == 0)
		return false;
	if (next_due != DT_NOEND &&
		(!pj_launcher_runs() ||
		 !TimestampDifferenceExceeds(now, next_due, IDLE_MS)))
		return false;
	return TimestampDifferenceExceeds(idle_since, now,
									  urgent ? URGENT_IDLE_MS : IDLE_MS);
}

/* Without the launcher: start a worker where one is waited for. */
void
pj_turn_start_others(void)
{
	TimestampTz since;
	Oid			longest;
	bool		urgent;

	if (pj_autostart && pj_enabled && !pj_launcher_runs() &&
		pj_slot_waiting(MyDatabaseId, &longest, &since, &urgent) > 0)
		(void) pj_start_worker(longest, 1, NULL);
}
