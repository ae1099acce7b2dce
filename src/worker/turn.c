/*
 * turn.c
 *	  Sharing worker processes between databases, if there are more
 *	  databases than processes.
 *
 * An idle worker exits if another database is waiting for one.  The launcher
 * then starts a worker for the database that has waited longest, and later one
 * for this database again.  Without the launcher nothing would start it again.
 * Then a worker does not exit while a retry is pending, sessions that leave
 * work start a worker themselves, and workers start those that other databases
 * are waiting for.
 */
#include "base/compat.h"

#include "miscadmin.h"
#include "utils/timestamp.h"

#include "base/guc.h"
#include "ipc/shmem.h"
#include "ipc/wakeup.h"
#include "worker/turn.h"

/* How long a worker must have been idle before it exits. */
#define IDLE_MS			5000

/* The same, if events are known to be waiting elsewhere. */
#define URGENT_IDLE_MS	1000

/*
 * Should this worker, idle since idle_since, exit for the benefit of another
 * database?  next_due is the time of the next retry.
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

/* Without the launcher: start a worker for a database that waits for one. */
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
