/*
 * shmem.c
 *	  Shared state: which worker processes there are, and how to wake them.
 *
 * It is small enough to be allocated by whichever process first needs it, so
 * the library need not be preloaded for workers to run.
 *
 * A slot is reserved by whoever starts a worker, and attached by the worker
 * itself.  The generation tells a worker that comes late that its slot has
 * been given up and taken by another.  A slot may also be taken by no worker
 * at all, as a note that none shall run in its database.
 *
 * No other lock is taken, and nothing is started, while the lock is held.
 */
#include "compat.h"

#include <signal.h>

#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "storage/shmem.h"
#include "storage/spin.h"
#include "utils/timestamp.h"

#include "shmem.h"

/* A worker that has not attached after so long is not coming. */
#define ATTACH_TIMEOUT_MS	15000

/* Databases the launcher is told of at a time; more are found by probing. */
#define MAX_CHANGED			16

/*
 * One apply worker.  Shared->lock protects every field but the last: shared to
 * read, exclusive to change.
 */
typedef struct WorkerSlot
{
	bool		in_use;
	bool		stop;			/* no worker, but a note that none shall run */
	bool		serving;		/* it has found the extension */
	bool		absent;			/* it has not, or may not run, and is gone */
	uint32		generation;		/* bumped each time the slot is taken */
	Oid			dboid;			/* database it serves */
	PGPROC	   *proc;			/* NULL until the worker has attached */
	TimestampTz reserved_at;	/* one that never attaches is given up */
	pg_atomic_uint32 wakeups;	/* how often it was told of work, by anybody */
} WorkerSlot;

typedef struct Shared
{
	LWLock		lock;
	PGPROC	   *launcher;		/* NULL unless it runs; under lock */
	int			nchanged;		/* likewise, as are these */
	Oid			changed[MAX_CHANGED];	/* databases to look at again */
	WorkerSlot	slots[PJ_MAX_WORKERS];

	/* A ring, and how many were ever put into it; under its own lock. */
	slock_t		hints_lock;
	uint64		nhints;
	uint64		hints[PJ_MAX_HINTS];	/* 0: too many to tell */
	Oid			hint_databases[PJ_MAX_HINTS];
} Shared;

static Shared *shared = NULL;
static int	my_slot = -1;
static uint32 my_generation;
static bool preloaded = false;
static shmem_request_hook_type next_shmem_request = NULL;

/* Find the shared state, or make it if this is the first process to ask. */
static void
attach(void)
{
	bool		found;

	if (shared != NULL)
		return;
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	shared = ShmemInitStruct("projector", sizeof(Shared), &found);
	if (!found)
	{
		memset(shared, 0, sizeof(Shared));
		for (int i = 0; i < PJ_MAX_WORKERS; i++)
			pg_atomic_init_u32(&shared->slots[i].wakeups, 0);
		LWLockInitialize(&shared->lock, LWLockNewTrancheId());
		SpinLockInit(&shared->hints_lock);
	}
	LWLockRelease(AddinShmemInitLock);
	LWLockRegisterTranche(shared->lock.tranche, "projector");
}

static void
lock_shared(LWLockMode mode)
{
	attach();
	LWLockAcquire(&shared->lock, mode);
}

static void
unlock_shared(void)
{
	LWLockRelease(&shared->lock);
}

/* ---- slots ---- */

/* Is the slot a worker's, present or to come?  The caller has the lock. */
static bool
is_taken(const WorkerSlot *slot)
{
	return slot->in_use && !slot->stop &&
		(slot->proc != NULL ||
		 !TimestampDifferenceExceeds(slot->reserved_at, GetCurrentTimestamp(),
									 ATTACH_TIMEOUT_MS));
}

/* The note that no worker shall run in a database.  Likewise. */
static WorkerSlot *
stop_note(Oid dboid)
{
	for (int i = 0; i < PJ_MAX_WORKERS; i++)
		if (shared->slots[i].in_use && shared->slots[i].stop &&
			shared->slots[i].dboid == dboid)
			return &shared->slots[i];
	return NULL;
}

static WorkerSlot *
free_slot(void)
{
	for (int i = 0; i < PJ_MAX_WORKERS; i++)
		if (!is_taken(&shared->slots[i]) && !shared->slots[i].stop)
			return &shared->slots[i];
	return NULL;
}

static int
count_taken(Oid dboid, bool *serving)
{
	int			n = 0;

	*serving = false;
	for (int i = 0; i < PJ_MAX_WORKERS; i++)
	{
		const WorkerSlot *slot = &shared->slots[i];

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
	slot->stop = slot->serving = slot->absent = false;
	slot->dboid = dboid;
	slot->proc = NULL;
	slot->reserved_at = GetCurrentTimestamp();
	slot->generation++;
}

/*
 * Reserve a slot for a worker that is about to be started, unless the
 * database has as many as it may have, or shall have none.  Returns -1 then.
 */
int
pj_slot_reserve(Oid dboid, int limit, uint32 *generation)
{
	WorkerSlot *slot = NULL;
	bool		serving;

	lock_shared(LW_EXCLUSIVE);
	if (stop_note(dboid) == NULL && count_taken(dboid, &serving) < limit)
		slot = free_slot();
	if (slot != NULL)
	{
		take_slot(slot, dboid);
		*generation = slot->generation;
	}
	unlock_shared();
	return slot == NULL ? -1 : slot - shared->slots;
}

/* Give a slot back, if it is still the one that was reserved. */
void
pj_slot_release(int slot, uint32 generation)
{
	lock_shared(LW_EXCLUSIVE);
	if (shared->slots[slot].generation == generation)
	{
		shared->slots[slot].in_use = false;
		shared->slots[slot].proc = NULL;
	}
	unlock_shared();
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

	lock_shared(LW_EXCLUSIVE);
	mine = shared->slots[slot].in_use &&
		shared->slots[slot].generation == generation;
	if (mine)
		shared->slots[slot].proc = MyProc;
	unlock_shared();
	if (mine)
	{
		my_slot = slot;
		my_generation = generation;
		before_shmem_exit(detach_slot, (Datum) 0);
	}
	return mine;
}

/* This worker has found the extension in its database … */
void
pj_slot_serving(void)
{
	lock_shared(LW_EXCLUSIVE);
	shared->slots[my_slot].serving = true;
	unlock_shared();
}

/* … or has not, or may not run there, and leaves. */
void
pj_slot_absent(void)
{
	lock_shared(LW_EXCLUSIVE);
	shared->slots[my_slot].absent = true;
	unlock_shared();
}

/* For the launcher: a database whose worker has left for that reason. */
bool
pj_slot_collect_absent(Oid *dboid)
{
	bool		found = false;

	lock_shared(LW_EXCLUSIVE);
	for (int i = 0; i < PJ_MAX_WORKERS && !found; i++)
	{
		WorkerSlot *slot = &shared->slots[i];

		if (slot->in_use || !slot->absent)
			continue;
		slot->absent = false;
		*dboid = slot->dboid;
		found = true;
	}
	unlock_shared();
	return found;
}

/* Does this worker's database have more than its share without it? */
bool
pj_slot_surplus(int limit)
{
	int			before = 0;
	bool		stopped;

	lock_shared(LW_SHARED);
	stopped = stop_note(MyDatabaseId) != NULL;
	for (int i = 0; i < my_slot; i++)
		before += is_taken(&shared->slots[i]) &&
			shared->slots[i].dboid == MyDatabaseId;
	unlock_shared();
	return stopped || before >= limit;
}

/* How many workers a database has, or is about to have. */
int
pj_slot_count(Oid dboid, bool *serving)
{
	int			n;

	lock_shared(LW_SHARED);
	n = count_taken(dboid, serving);
	unlock_shared();
	return n;
}

bool
pj_is_worker(void)
{
	return my_slot >= 0;
}

/* ---- hints ---- */

/* Tell workers which tenants have new events (see active.c). */
void
pj_hints_add(Oid dboid, const uint64 *hints, int n)
{
	attach();
	SpinLockAcquire(&shared->hints_lock);
	for (int i = 0; i < n; i++)
	{
		int			place = shared->nhints++ % PJ_MAX_HINTS;

		shared->hints[place] = hints[i];
		shared->hint_databases[place] = dboid;
	}
	SpinLockRelease(&shared->hints_lock);
}

/*
 * The hints for this database since *next, which is moved on.  Returns -1 if
 * some are lost.
 */
int
pj_hints_read(uint64 *next, uint64 *hints)
{
	int			n = 0;

	attach();
	SpinLockAcquire(&shared->hints_lock);
	if (shared->nhints - *next > PJ_MAX_HINTS)
	{
		*next = shared->nhints;
		n = -1;
	}
	for (; *next < shared->nhints; (*next)++)
	{
		int			place = *next % PJ_MAX_HINTS;

		if (shared->hint_databases[place] != MyDatabaseId || n < 0)
			continue;
		hints[n++] = shared->hints[place];
		if (hints[n - 1] == 0)
			n = -1;
	}
	SpinLockRelease(&shared->hints_lock);
	return n;
}

/* ---- waking and stopping workers ---- */

/* Tell a database's workers that there is something to do. */
void
pj_wake_workers(Oid dboid)
{
	lock_shared(LW_SHARED);
	for (int i = 0; i < PJ_MAX_WORKERS; i++)
	{
		WorkerSlot *slot = &shared->slots[i];

		if (!slot->in_use || slot->dboid != dboid || slot->proc == NULL)
			continue;
		pg_atomic_fetch_add_u32(&slot->wakeups, 1);
		SetLatch(&slot->proc->procLatch);
	}
	unlock_shared();
}

/*
 * How often this worker was told so.  The latch alone does not say: whatever
 * waits within a batch, for a lock or in a projection's code, resets it.
 */
uint32
pj_slot_wakeups(void)
{
	return pg_atomic_read_u32(&shared->slots[my_slot].wakeups);
}

/*
 * Tell a database's workers to end, and note that no others shall be started.
 * Returns how many there were.
 */
int
pj_stop_workers(Oid dboid)
{
	WorkerSlot *note;
	int			n = 0;

	lock_shared(LW_EXCLUSIVE);
	note = stop_note(dboid);
	if (note == NULL && (note = free_slot()) != NULL)
	{
		take_slot(note, dboid);
		note->stop = true;
	}
	for (int i = 0; i < PJ_MAX_WORKERS; i++)
	{
		WorkerSlot *slot = &shared->slots[i];

		if (!slot->in_use || slot->dboid != dboid || slot->proc == NULL)
			continue;
		kill(slot->proc->pid, SIGTERM);
		n++;
	}
	unlock_shared();
	return n;
}

/* Take that note back. */
void
pj_allow_workers(Oid dboid)
{
	WorkerSlot *note;

	lock_shared(LW_EXCLUSIVE);
	note = stop_note(dboid);
	if (note != NULL)
		note->in_use = note->stop = false;
	unlock_shared();
}

/* ---- the launcher ---- */

static void
detach_launcher(int code, Datum arg)
{
	lock_shared(LW_EXCLUSIVE);
	if (shared->launcher == MyProc)
		shared->launcher = NULL;
	unlock_shared();
}

/* This process is the launcher. */
void
pj_launcher_attach(void)
{
	lock_shared(LW_EXCLUSIVE);
	shared->launcher = MyProc;
	unlock_shared();
	before_shmem_exit(detach_launcher, (Datum) 0);
}

bool
pj_launcher_runs(void)
{
	bool		runs;

	lock_shared(LW_SHARED);
	runs = shared->launcher != NULL;
	unlock_shared();
	return runs;
}

/* Tell the launcher that something happened, perhaps to one database. */
void
pj_wake_launcher(Oid dboid)
{
	lock_shared(LW_EXCLUSIVE);
	if (OidIsValid(dboid) && shared->nchanged < MAX_CHANGED)
		shared->changed[shared->nchanged++] = dboid;
	if (shared->launcher != NULL)
		SetLatch(&shared->launcher->procLatch);
	unlock_shared();
}

/* For the launcher: the next database it was told of. */
bool
pj_launcher_next_hint(Oid *dboid)
{
	bool		found;

	lock_shared(LW_EXCLUSIVE);
	found = shared->nchanged > 0;
	if (found)
		*dboid = shared->changed[--shared->nchanged];
	unlock_shared();
	return found;
}

/* ---- loading the library ---- */

/* Was the library loaded when the server started? */
bool
pj_preloaded(void)
{
	return preloaded;
}

static void
request_shmem(void)
{
	if (next_shmem_request)
		next_shmem_request();
	RequestAddinShmemSpace(MAXALIGN(sizeof(Shared)));
}

void
pj_shmem_init(void)
{
	StaticAssertStmt(sizeof(Shared) < 4096,
					 "shared state must fit where nothing was reserved");

	preloaded = process_shared_preload_libraries_in_progress;
	if (!preloaded)
		return;
	next_shmem_request = shmem_request_hook;
	shmem_request_hook = request_shmem;
}
