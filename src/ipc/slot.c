/*
 * slot.c
 *	  The worker processes: which ones exist, what they do, and how to wake
 *	  and stop them.
 *
 * The process that starts a worker reserves a slot for it, and the worker
 * attaches to the slot.  If a worker starts late, its slot may have been given
 * to another; it notices this by the slot's generation.  There are as many
 * slots as the server can have worker processes, so slots never run out before
 * processes do.
 *
 * The slot also contains what the worker is doing, for the views.  Only the
 * worker writes this, and often, so it has a spinlock of its own.
 */
#include "base/compat.h"

#include <signal.h>

#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/latch.h"

#include "base/guc.h"
#include "ipc/shared.h"

/* A worker that has not attached after this time is considered failed. */
#define ATTACH_TIMEOUT_MS	15000

static int	my_slot = -1;
static uint32 my_generation;
static bool given_up = false;	/* the slot may belong to another worker by
								 * now */

/* ---- slots ---- */

/* Is the slot used by a worker, or reserved for one that is starting? */
static bool
is_taken(const WorkerSlot *slot)
{
	pj_assert_shared_locked();
	return slot->in_use &&
		(slot->proc != NULL ||
		 !TimestampDifferenceExceeds(slot->reserved_at, GetCurrentTimestamp(),
									 ATTACH_TIMEOUT_MS));
}

static WorkerSlot *
free_slot(void)
{
	for (int i = 0; i < pj_nslots; i++)
		if (!is_taken(&pj_area->slots[i]))
			return &pj_area->slots[i];
	return NULL;
}

/*
 * Returns how many slots of a database are taken, and whether one of the
 * workers is serving.
 */
int
pj_slots_taken(Oid dboid, bool *serving)
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
write_activity(SlotActivity *doing, PjActivity activity, int32 projection_id,
			   const char *tenant, int length)
{
	TimestampTz now = GetCurrentTimestamp();

	SpinLockAcquire(&doing->lock);
	doing->activity = activity;
	doing->projection_id = projection_id;
	doing->since = now;
	doing->tenant_length = length;
	if (length > 0)
		memcpy(doing->tenant, tenant, length);
	SpinLockRelease(&doing->lock);
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
	write_activity(&slot->doing, PJ_IDLE_WORKER, 0, NULL, 0);
	pj_hints_reset(&slot->hints);
}

/* ---- a worker's own slot ---- */

/*
 * Reserve a slot for a worker that is about to be started.  Returns -1 if the
 * database already has as many as allowed, or workers are stopped there.
 */
int
pj_slot_reserve(Oid dboid, int limit, uint32 *generation)
{
	WorkerSlot *slot = NULL;
	bool		serving;

	pj_lock_shared(LW_EXCLUSIVE);
	if (!pj_database_is_stopped(dboid) &&
		pj_slots_taken(dboid, &serving) < limit)
	{
		slot = free_slot();
		if (slot == NULL)
			pj_waiting_add(dboid);
	}
	if (slot != NULL)
	{
		take_slot(slot, dboid);
		*generation = slot->generation;
	}
	pj_unlock_shared();
	return slot == NULL ? -1 : slot - pj_area->slots;
}

/* Release a slot, if it is still the one that was reserved. */
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

/* Attach to the slot that was reserved for this worker. */
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
		pj_waiting_remove(pj_area->slots[slot].dboid);
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
 * Does the slot still belong to this worker?  Not if the worker has given it
 * up and another one has taken it.
 */
static bool
is_mine(void)
{
	pj_assert_shared_locked();
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

/* ... or has not found it, or may not run there, and exits. */
void
pj_slot_absent(void)
{
	pj_lock_shared(LW_EXCLUSIVE);
	if (is_mine())
		pj_area->slots[my_slot].absent = true;
	pj_unlock_shared();
}

/*
 * Free this worker's slot, unless there were wake-ups since "wakeups" was
 * read.  From then on a session that leaves work finds no worker here, and
 * starts one.  So this worker checks for work again, and then exits or takes
 * the slot back.
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
	given_up = idle;
	return idle;
}

/*
 * Take the slot back, unless another worker has it, or serves this database.
 */
bool
pj_slot_take_back(void)
{
	WorkerSlot *slot = &pj_area->slots[my_slot];
	bool		mine;
	bool		serving;

	pj_lock_shared(LW_EXCLUSIVE);
	mine = !slot->in_use && is_mine() &&
		pj_slots_taken(MyDatabaseId, &serving) == 0;
	if (mine)
	{
		slot->in_use = true;
		pj_hints_reset(&slot->hints);
		pj_waiting_remove(MyDatabaseId);
	}
	pj_unlock_shared();
	given_up = !mine;
	return mine;
}

/* For the launcher: get a database whose worker has exited as absent. */
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
 * Does this worker's database have its full share of workers without it?  A
 * worker without a slot is always surplus, because no other process knows
 * about it.
 */
bool
pj_slot_surplus(int limit)
{
	int			before = 0;
	bool		unwanted;

	pj_lock_shared(LW_SHARED);
	unwanted = pj_database_is_stopped(MyDatabaseId) || !is_mine() ||
		!pj_area->slots[my_slot].in_use;
	for (int i = 0; i < my_slot; i++)
		before += is_taken(&pj_area->slots[i]) &&
			pj_area->slots[i].dboid == MyDatabaseId;
	pj_unlock_shared();
	return unwanted || before >= limit;
}

/*
 * Returns how many workers a database has, including those that are starting.
 */
int
pj_slot_count(Oid dboid, bool *serving)
{
	int			n;

	pj_lock_shared(LW_SHARED);
	n = pj_slots_taken(dboid, serving);
	pj_unlock_shared();
	return n;
}

/* Does a slot belong to another worker of this database? */
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

/* Returns the slot of this worker. */
int
pj_slot_mine(void)
{
	return my_slot;
}

/* ---- what workers do ---- */

/*
 * Store what this worker is doing.  projection_id and tenant are 0 if it works
 * on no pair.
 */
void
pj_activity_set(PjActivity activity, int32 projection_id, Datum tenant)
{
	text	   *name = tenant ? DatumGetTextPP(tenant) : NULL;
	int			length = name ? VARSIZE_ANY_EXHDR(name) : 0;

	if (my_slot < 0 || given_up)
		return;
	if (length > MAX_TENANT)
		length = pg_mbcliplen(VARDATA_ANY(name), length, MAX_TENANT);
	write_activity(&pj_area->slots[my_slot].doing, activity, projection_id,
				   name ? VARDATA_ANY(name) : NULL, length);
}

static void
read_activity(WorkerSlot *slot, PjWorkerActivity *worker)
{
	SlotActivity *doing = &slot->doing;
	int			length;

	worker->slot = slot - pj_area->slots;
	worker->pid = slot->proc->pid;
	SpinLockAcquire(&doing->lock);
	worker->activity = doing->activity;
	worker->projection_id = doing->projection_id;
	worker->since = doing->since;
	length = doing->tenant_length;
	memcpy(worker->tenant, doing->tenant, length);
	SpinLockRelease(&doing->lock);
	worker->tenant[length] = '\0';
}

/*
 * Get what the workers of this database are doing.  Returns how many there
 * are.  The launcher cannot see that projector.enabled is off for a database,
 * so it starts a worker there from time to time.  This worker exits when it
 * has read the setting, so it is not one of them.
 */
int
pj_activities(PjWorkerActivity **workers)
{
	int			n = 0;

	pj_shmem_attach();
	*workers = palloc(sizeof(PjWorkerActivity) * Max(pj_nslots, 1));
	for (int i = 0; i < pj_nslots; i++)
		(*workers)[i].tenant = palloc(MAX_TENANT + 1);
	pj_lock_shared(LW_SHARED);
	for (int i = 0; i < pj_nslots; i++)
	{
		WorkerSlot *slot = &pj_area->slots[i];

		if (slot->in_use && slot->proc != NULL &&
			slot->dboid == MyDatabaseId && (slot->serving || pj_enabled))
			read_activity(slot, &(*workers)[n++]);
	}
	pj_unlock_shared();
	return n;
}

/* ---- waking and stopping workers ---- */

/*
 * Tell a database's workers that there is work.  Returns true if there are
 * any, or some are starting.
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
	found = found || pj_database_is_stopped(dboid);
	pj_unlock_shared();
	return found;
}

/*
 * Returns how often this worker was woken.  The latch is not enough: anything
 * that waits within a batch, for a lock or in a projection's code, resets it.
 */
uint32
pj_slot_wakeups(void)
{
	return pg_atomic_read_u32(&pj_area->slots[my_slot].wakeups);
}

/* Terminate a database's workers.  Returns how many there are. */
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
