/*
 * database.c
 *	  Shared state of databases: which ones wait for a worker, in which
 *	  ones workers are stopped, and which ones the launcher should check.
 *
 * If there are more databases than worker processes, they take turns.  A
 * database that should have a worker, but has none because no process is free,
 * is marked as waiting.  An idle worker in another database then exits
 * (turn.c).
 */
#include "base/compat.h"

#include "storage/ipc.h"
#include "storage/latch.h"

#include "ipc/shared.h"

/* ---- where workers are stopped ---- */

/* Are workers stopped in a database? */
bool
pj_database_is_stopped(Oid dboid)
{
	pj_assert_shared_locked();
	for (int i = 0; pj_area && i < pj_area->nstopped; i++)
		if (pj_area->stopped[i] == dboid)
			return true;
	return false;
}

/*
 * Stop workers in a database.  Returns false if they were already stopped;
 * raises an error if there is no room for another entry.
 */
bool
pj_forbid_workers(Oid dboid)
{
	bool		known;
	bool		full;

	pj_lock_shared(LW_EXCLUSIVE);
	known = pj_database_is_stopped(dboid);
	full = pj_area == NULL || pj_area->nstopped == MAX_STOPPED;
	if (!known && !full)
		pj_area->stopped[pj_area->nstopped++] = dboid;
	pj_waiting_remove(dboid);
	pj_unlock_shared();
	if (!known && full)
		ereport(ERROR,
				errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				errmsg("workers are stopped in too many databases"),
				errhint("Start them elsewhere with projector_worker_start, or set projector.enabled to off for this database."));
	return !known;
}

/* Allow workers in a database again. */
void
pj_allow_workers(Oid dboid)
{
	pj_lock_shared(LW_EXCLUSIVE);
	for (int i = 0; pj_area && i < pj_area->nstopped; i++)
		if (pj_area->stopped[i] == dboid)
			pj_area->stopped[i--] = pj_area->stopped[--pj_area->nstopped];
	pj_unlock_shared();
}

/* Returns the databases in which workers are stopped. */
int
pj_forbidden(Oid **dboids)
{
	int			n;

	*dboids = palloc(sizeof(Oid) * MAX_STOPPED);
	pj_lock_shared(LW_SHARED);
	n = pj_area ? pj_area->nstopped : 0;
	for (int i = 0; i < n; i++)
		(*dboids)[i] = pj_area->stopped[i];
	pj_unlock_shared();
	return n;
}

/* ---- waiting databases ---- */

static WaitingDatabase *
find_waiting(Oid dboid)
{
	pj_assert_shared_locked();
	for (int i = 0; pj_area && i < pj_area->nwaiting; i++)
		if (pj_area->waiting[i].dboid == dboid)
			return &pj_area->waiting[i];
	return NULL;
}

/*
 * Mark a database as waiting, if it has no worker and may have one.  If there
 * is no room for an entry, it still waits, unmarked.
 */
void
pj_waiting_add(Oid dboid)
{
	bool		serving;

	if (pj_area == NULL || find_waiting(dboid) != NULL ||
		pj_area->nwaiting == MAX_WAITING || pj_database_is_stopped(dboid) ||
		pj_slots_taken(dboid, &serving) > 0)
		return;
	pj_area->waiting[pj_area->nwaiting++] = (WaitingDatabase)
	{
		.dboid = dboid,.since = GetCurrentTimestamp()
	};
}

void
pj_waiting_remove(Oid dboid)
{
	WaitingDatabase *waiting = find_waiting(dboid);

	if (waiting != NULL)
		*waiting = pj_area->waiting[--pj_area->nwaiting];
}

/* A database should have a worker, but no process is free. */
void
pj_slot_wait(Oid dboid)
{
	pj_lock_shared(LW_EXCLUSIVE);
	pj_waiting_add(dboid);
	pj_unlock_shared();
}

/* A database is no longer waiting; it may have been dropped. */
void
pj_slot_wait_no_more(Oid dboid)
{
	pj_lock_shared(LW_EXCLUSIVE);
	pj_waiting_remove(dboid);
	pj_unlock_shared();
}

/*
 * Returns how many databases other than "but" wait for a worker; also which
 * one has waited longest, since when, and whether events are waiting in any of
 * them.
 */
int
pj_slot_waiting(Oid but, Oid *longest, TimestampTz *since, bool *urgent)
{
	int			n = 0;

	*longest = InvalidOid;
	*since = 0;
	*urgent = false;
	pj_lock_shared(LW_SHARED);
	for (int i = 0; pj_area && i < pj_area->nwaiting; i++)
	{
		const WaitingDatabase *waiting = &pj_area->waiting[i];

		if (waiting->dboid == but)
			continue;
		n++;
		*urgent = *urgent || waiting->urgent;
		if (*since != 0 && *since <= waiting->since)
			continue;
		*longest = waiting->dboid;
		*since = waiting->since;
	}
	pj_unlock_shared();
	return n;
}

/*
 * Returns since when a database has waited for a worker; 0 if it does not
 * wait.
 */
TimestampTz
pj_slot_waits_since(Oid dboid)
{
	WaitingDatabase *waiting;
	TimestampTz since;

	pj_lock_shared(LW_SHARED);
	waiting = find_waiting(dboid);
	since = waiting ? waiting->since : 0;
	pj_unlock_shared();
	return since;
}

/* ---- the launcher ---- */

static void
detach_launcher(int code, Datum arg)
{
	pj_lock_shared(LW_EXCLUSIVE);
	if (pj_control->launcher == MyProc)
		pj_control->launcher = NULL;
	pj_unlock_shared();
}

/* Register this process as the launcher. */
void
pj_launcher_attach(void)
{
	pj_lock_shared(LW_EXCLUSIVE);
	pj_control->launcher = MyProc;
	pj_unlock_shared();
	before_shmem_exit(detach_launcher, (Datum) 0);
}

bool
pj_launcher_runs(void)
{
	bool		runs;

	pj_lock_shared(LW_SHARED);
	runs = pj_control->launcher != NULL;
	pj_unlock_shared();
	return runs;
}

/* Tell the launcher that something has happened, possibly in one database. */
void
pj_wake_launcher(Oid dboid)
{
	WaitingDatabase *waiting;

	pj_lock_shared(LW_EXCLUSIVE);
	waiting = OidIsValid(dboid) ? find_waiting(dboid) : NULL;
	if (waiting != NULL && waiting->urgent)
	{
		pj_unlock_shared();		/* it already knows that events are waiting
								 * there */
		return;
	}
	if (OidIsValid(dboid))
	{
		if (waiting != NULL)
			waiting->urgent = true;
		if (pj_control->nchanged < MAX_CHANGED)
			pj_control->changed[pj_control->nchanged++] = dboid;
		else
			pj_control->changed_more = true;
	}
	if (pj_control->launcher != NULL)
		SetLatch(&pj_control->launcher->procLatch);
	pj_unlock_shared();
}

/*
 * For the launcher: get the next database that it was told about; InvalidOid
 * if there were too many.
 */
bool
pj_launcher_next_hint(Oid *dboid)
{
	bool		found;

	pj_lock_shared(LW_EXCLUSIVE);
	found = pj_control->nchanged > 0 || pj_control->changed_more;
	*dboid = InvalidOid;
	if (pj_control->nchanged > 0)
		*dboid = pj_control->changed[--pj_control->nchanged];
	else
		pj_control->changed_more = false;
	pj_unlock_shared();
	return found;
}
