/*
 * slot.c
 *	  Which worker processes there are, who waits for one, and how to wake and
 *	  stop them.
 *
 * A slot is reserved by whoever starts a worker, and attached by the worker
 * itself.  The generation tells a worker that comes late that its slot has
 * been given up and taken by another.  There are as many slots as the server
 * may have worker processes, so what is scarce is processes.
 *
 * If there are more databases than that they take turns.  One that should have
 * a worker, and has none because there is no room, is noted as waiting; a
 * worker elsewhere that has nothing to do then leaves (pj_slot_give_up()).
 */
#include "base/compat.h"

#include <signal.h>

#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/latch.h"

#include "ipc/shared.h"

/* A worker that has not attached after so long is not coming. */
#define ATTACH_TIMEOUT_MS	15000

static int	my_slot = -1;
static uint32 my_generation;

/* ---- slots ---- */

/* Is the slot a worker's, present or to come?  The caller has the lock. */
static bool
is_taken(const WorkerSlot *slot)
{
	return slot->in_use &&
		(slot->proc != NULL ||
		 !TimestampDifferenceExceeds(slot->reserved_at, GetCurrentTimestamp(),
									 ATTACH_TIMEOUT_MS));
}

/* Shall no worker run in a database?  The caller has the lock. */
static bool
is_stopped(Oid dboid)
{
	for (int i = 0; pj_area && i < pj_area->nstopped; i++)
		if (pj_area->stopped[i] == dboid)
			return true;
	return false;
}

static WorkerSlot *
free_slot(void)
{
	for (int i = 0; i < pj_nslots; i++)
		if (!is_taken(&pj_area->slots[i]))
			return &pj_area->slots[i];
	return NULL;
}

static int
count_taken(Oid dboid, bool *serving)
{
	int			n = 0;

	*serving = false;
	for (int i = 0; i < pj_nslots; i++)
	{
		const WorkerSlot *slot = &pj_area->slots[i];

		if (!is_taken(slot) || slot->dboid != dboid)
			continue;
		n++;
		*serving = *serving || slot->serving;
	}
	return n;
}

static void
take_slot(WorkerSlot *slot, Oid dboid)
{
	slot->in_use = true;
	slot->serving = slot->absent = false;
	slot->dboid = dboid;
	slot->proc = NULL;
	slot->reserved_at = GetCurrentTimestamp();
	slot->generation++;
}

/* ---- who waits ---- */

static WaitingDatabase *
find_waiting(Oid dboid)
{
	for (int i = 0; pj_area && i < pj_area->nwaiting; i++)
		if (pj_area->waiting[i].dboid == dboid)
			return &pj_area->waiting[i];
	return NULL;
}

/*
 * Note that a database waits, if it has no worker and may have one.  Those that
 * are too many to be noted wait all the same.  The caller has the lock.
 */
static void
add_waiting(Oid dboid)
{
	bool		serving;

	if (pj_area == NULL || find_waiting(dboid) != NULL ||
		pj_area->nwaiting == MAX_WAITING || is_stopped(dboid) ||
		count_taken(dboid, &serving) > 0)
		return;
	pj_area->waiting[pj_area->nwaiting++] = (WaitingDatabase)
	{
		.dboid = dboid,.since = GetCurrentTimestamp()
	};
}

static void
remove_waiting(Oid dboid)
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
	add_waiting(dboid);
	pj_unlock_shared();
}

/* It does not wait any more; it may be gone. */
void
pj_slot_wait_no_more(Oid dboid)
{
	pj_lock_shared(LW_EXCLUSIVE);
	remove_waiting(dboid);
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

/* ---- a worker's own slot ---- */

/*
 * Reserve a slot for a worker that is about to be started, unless the
 * database has as many as it may have, or shall have none.  Returns -1 then.
 */
int
pj_slot_reserve(Oid dboid, int limit, uint32 *generation)
{
	WorkerSlot *slot = NULL;
	bool		serving;

	pj_lock_shared(LW_EXCLUSIVE);
	if (!is_stopped(dboid) && count_taken(dboid, &serving) < limit)
	{
		slot = free_slot();
		if (slot == NULL)
			add_waiting(dboid);
	}
	if (slot != NULL)
	{
		take_slot(slot, dboid);
		*generation = slot->generation;
	}
	pj_unlock_shared();
	return slot == NULL ? -1 : slot - pj_area->slots;
}

/* Give a slot back, if it is still the one that was reserved. */
void
pj_slot_release(int slot, uint32 generation)
{
	pj_lock_shared(LW_EXCLUSIVE);
	if (pj_area->slots[slot].generation == generation)
	{
		pj_area->slots[slot].in_use = false;
		pj_area->slots[slot].proc = NULL;
	}
	pj_unlock_shared();
}

static void
detach_slot(int code, Datum arg)
{
	pj_slot_release(my_slot, my_generation);
	pj_wake_launcher(InvalidOid);
	my_slot = -1;
}

/* Take the slot that was reserved for this worker. */
bool
pj_slot_attach(int slot, uint32 generation)
{
	bool		mine;

	pj_lock_shared(LW_EXCLUSIVE);
	mine = slot < pj_nslots && pj_area->slots[slot].in_use &&
		pj_area->slots[slot].generation == generation;
	if (mine)
	{
		pj_area->slots[slot].proc = MyProc;
		remove_waiting(pj_area->slots[slot].dboid);
	}
	pj_unlock_shared();
	if (mine)
	{
		my_slot = slot;
		my_generation = generation;
		before_shmem_exit(detach_slot, (Datum) 0);
	}
	return mine;
}

/*
 * Is this worker's slot its own?  It is not if the worker has given it up and
 * another has taken it.  The caller has the lock.
 */
static bool
is_mine(void)
{
	return pj_area->slots[my_slot].generation == my_generation;
}

/* This worker has found the extension in its database ... */
void
pj_slot_serving(void)
{
	pj_lock_shared(LW_EXCLUSIVE);
	if (is_mine())
		pj_area->slots[my_slot].serving = true;
	pj_unlock_shared();
}

/* ... or has not, or may not run there, and leaves. */
void
pj_slot_absent(void)
{
	pj_lock_shared(LW_EXCLUSIVE);
	if (is_mine())
		pj_area->slots[my_slot].absent = true;
	pj_unlock_shared();
}

/*
 * Free this worker's slot, unless it has been told of work since it counted
 * its wake-ups.  From then on whoever leaves work here finds no worker, and
 * sees to it that one is started; so this one looks once more, and leaves or
 * takes the slot back.
 */
bool
pj_slot_give_up(uint32 wakeups)
{
	WorkerSlot *slot = &pj_area->slots[my_slot];
	bool		idle;

	pj_lock_shared(LW_EXCLUSIVE);
	idle = is_mine() && pg_atomic_read_u32(&slot->wakeups) == wakeups;
	if (idle)
		slot->in_use = false;
	pj_unlock_shared();
	return idle;
}

/* Take it back, unless somebody else has it, or serves this database. */
bool
pj_slot_take_back(void)
{
	WorkerSlot *slot = &pj_area->slots[my_slot];
	bool		mine;
	bool		serving;

	pj_lock_shared(LW_EXCLUSIVE);
	mine = !slot->in_use && is_mine() &&
		count_taken(MyDatabaseId, &serving) == 0;
	if (mine)
	{
		slot->in_use = true;
		remove_waiting(MyDatabaseId);
	}
	pj_unlock_shared();
	return mine;
}

/* For the launcher: a database whose worker has left as absent. */
bool
pj_slot_collect_absent(Oid *dboid)
{
	bool		found = false;

	pj_lock_shared(LW_EXCLUSIVE);
	for (int i = 0; i < pj_nslots && !found; i++)
	{
		WorkerSlot *slot = &pj_area->slots[i];

		if (slot->in_use || !slot->absent)
			continue;
		slot->absent = false;
		*dboid = slot->dboid;
		found = true;
	}
	pj_unlock_shared();
	return found;
}

/*
 * Does this worker's database have more than its share without it?  A worker
 * that has no slot is always one too many: nobody knows of it.
 */
bool
pj_slot_surplus(int limit)
{
	int			before = 0;
	bool		unwanted;

	pj_lock_shared(LW_SHARED);
	unwanted = is_stopped(MyDatabaseId) || !is_mine() ||
		!pj_area->slots[my_slot].in_use;
	for (int i = 0; i < my_slot; i++)
		before += is_taken(&pj_area->slots[i]) &&
			pj_area->slots[i].dboid == MyDatabaseId;
	pj_unlock_shared();
	return unwanted || before >= limit;
}

/* How many workers a database has, or is about to have. */
int
pj_slot_count(Oid dboid, bool *serving)
{
	int			n;

	pj_lock_shared(LW_SHARED);
	n = count_taken(dboid, serving);
	pj_unlock_shared();
	return n;
}

/* Is a slot that of a worker of this database, other than the caller? */
bool
pj_slot_is_other(int slot)
{
	bool		other;

	pj_lock_shared(LW_SHARED);
	other = slot != my_slot && slot >= 0 && slot < pj_nslots &&
		is_taken(&pj_area->slots[slot]) &&
		pj_area->slots[slot].dboid == MyDatabaseId;
	pj_unlock_shared();
	return other;
}

bool
pj_is_worker(void)
{
	return my_slot >= 0;
}

/* The slot of this worker. */
int
pj_slot_mine(void)
{
	return my_slot;
}

/* ---- waking and stopping workers ---- */

/*
 * Tell a database's workers that there is something to do.  Returns whether
 * there are any, or some are on their way.
 */
bool
pj_wake_workers(Oid dboid)
{
	bool		found = false;

	pj_lock_shared(LW_SHARED);
	for (int i = 0; i < pj_nslots; i++)
	{
		WorkerSlot *slot = &pj_area->slots[i];

		if (!is_taken(slot) || slot->dboid != dboid)
			continue;
		found = true;
		pg_atomic_fetch_add_u32(&slot->wakeups, 1);
		if (slot->proc != NULL)
			SetLatch(&slot->proc->procLatch);
	}
	found = found || is_stopped(dboid);
	pj_unlock_shared();
	return found;
}

/*
 * How often this worker was told so.  The latch alone does not say: whatever
 * waits within a batch, for a lock or in a projection's code, resets it.
 */
uint32
pj_slot_wakeups(void)
{
	return pg_atomic_read_u32(&pj_area->slots[my_slot].wakeups);
}

/* Tell a database's workers to end.  Returns how many there are. */
int
pj_end_workers(Oid dboid)
{
	int			n = 0;

	pj_lock_shared(LW_SHARED);
	for (int i = 0; i < pj_nslots; i++)
	{
		WorkerSlot *slot = &pj_area->slots[i];

		if (!slot->in_use || slot->dboid != dboid || slot->proc == NULL)
			continue;
		kill(slot->proc->pid, SIGTERM);
		n++;
	}
	pj_unlock_shared();
	return n;
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
	known = is_stopped(dboid);
	full = pj_area == NULL || pj_area->nstopped == MAX_STOPPED;
	if (!known && !full)
		pj_area->stopped[pj_area->nstopped++] = dboid;
	remove_waiting(dboid);
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
