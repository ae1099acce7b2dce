/*
 * database.c
 *	  What is known of databases: which wait for a worker, in which none shall
 *	  run, and which the launcher should look at.
 *
 * If there are more databases than worker processes they take turns.  One that
 * should have a worker, and has none because there is no room, is noted as
 * waiting; a worker elsewhere that has nothing to do then leaves (turn.c).
 */
#include "base/compat.h"

#include "storage/ipc.h"
#include "storage/latch.h"

#include "ipc/shared.h"

/* ---- where none shall run ---- */

/* Shall no worker run in a database? */
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
 * Note that no workers shall run in a database.  Returns false if that was
 * known; raises an error if there is no room for another note.
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

/* Take that note back. */
void
pj_allow_workers(Oid dboid)
{
	pj_lock_shared(LW_EXCLUSIVE);
	for (int i = 0; pj_area && i < pj_area->nstopped; i++)
		if (pj_area->stopped[i] == dboid)
			pj_area->stopped[i--] = pj_area->stopped[--pj_area->nstopped];
	pj_unlock_shared();
}

/* The databases in which no workers shall run. */
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

/* ---- who waits ---- */

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
 * Note that a database waits, if it has no worker and may have one.  Those that
 * are too many to be noted wait too.
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

/* A database should have a worker, and there is no room for it. */
void
pj_slot_wait(Oid dboid)
{
	pj_lock_shared(LW_EXCLUSIVE);
	pj_waiting_add(dboid);
	pj_unlock_shared();
}

/* It does not wait any more; it may be gone. */
void
pj_slot_wait_no_more(Oid dboid)
{
	pj_lock_shared(LW_EXCLUSIVE);
	pj_waiting_remove(dboid);
	pj_unlock_shared();
}

/*
 * How many databases wait for a worker, not counting the one given; which for
 * how long, and whether events wait in one of them.
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

/* Since when a database waits for a worker; 0 if it does not. */
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

/* This process is the launcher. */
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

/* Tell the launcher that something happened, perhaps to one database. */
void
pj_wake_launcher(Oid dboid)
{
	WaitingDatabase *waiting;

	pj_lock_shared(LW_EXCLUSIVE);
	waiting = OidIsValid(dboid) ? find_waiting(dboid) : NULL;
	if (waiting != NULL && waiting->urgent)
	{
		pj_unlock_shared();		/* it knows that events wait there */
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
 * For the launcher: the next database it was told of; InvalidOid if there were
 * too many to tell.
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
