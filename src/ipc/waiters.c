/*
 * waiters.c
 *	  Sessions that wait for events to be applied, and how they are woken.
 *
 * A transaction that changes what a pair (projection, tenant) has applied
 * registers the pair.  When it has committed and its changes are visible, it
 * wakes sessions that wait for the pair, and they check again.  Each waiting
 * session has an entry in shared memory that says what it needs, so that a
 * commit wakes only the sessions it may concern:
 *
 *	- the log position of an event: a commit wakes the session if it has applied
 *	  that event, or has moved the cursor past it;
 *	- news: a commit wakes the session if the pair has failed or stopped, or its
 *	  mode has changed.  Sessions whose position is not settled yet need this;
 *	- anything: every commit of the pair wakes the session.
 *
 * During a check an entry says "anything".  After the check the session enters
 * what it needs, unless a commit has woken it since the check began: then it
 * checks again.  So no wake-up is lost.
 *
 * Computing the log's settled tail means reading who holds locks on the events
 * table.  Of the sessions of a database that wait for the tail, one computes it
 * for all: it tends the tail.  The others are woken when the tail has reached
 * their position, whichever process finds that out.  A session that tends the
 * tail and stops waiting hands this task on to another one.  If it is stuck,
 * another one takes the task after a second.
 *
 * COMMIT PREPARED wakes nobody, so a waiting session also checks periodically.
 * If there is no shared memory for the entries, that is all it does.
 */
#include "base/compat.h"

#include "access/xact.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "port/atomics.h"
#include "storage/dsm.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "storage/shmem.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "ipc/waiters.h"

/* A transaction that changes more pairs than this wakes all sessions. */
#define MAX_TOLD		16

/* A session that has not tended the tail for this long is stuck. */
#define TEND_TIMEOUT_MS	1000

/*
 * One waiting session.  Fields are changed under the lock, held exclusively;
 * "woken" is set under the lock, held in any mode.
 */
typedef struct Waiter
{
	PGPROC	   *proc;			/* NULL if the entry is not in use */
	Oid			dboid;
	uint32		pair;			/* hash of the pair it waits for */
	int64		needs;			/* see the top of this file */
	int64		tail;			/* it waits until the log is settled up to
								 * here; 0 if it is */
	bool		tends;			/* computes the tail for its database */
	TimestampTz tended_at;
	pg_atomic_uint32 woken;		/* since its last check began */
} Waiter;

/*
 * The entries follow in memory if the library is preloaded.  Otherwise they are
 * in dynamic shared memory.
 */
typedef struct Waiters
{
	LWLock		lock;
	dsm_handle	handle;			/* under AddinShmemInitLock */
	pg_atomic_uint32 count;		/* entries in use; changed under the lock */
	pg_atomic_uint32 ntail;		/* those that wait for the tail */
} Waiters;

/* What a transaction has changed of a pair. */
typedef struct Told
{
	uint32		pair;
	bool		news;
	int64		first;			/* lowest log position that may be applied */
	int64		last;			/* highest one */
} Told;

static Waiters *shared = NULL;
static Waiter *entries = NULL;	/* one for each backend, or NULL */
static Waiter *mine = NULL;
static int64 unshared_tail = 0; /* "tail" of a session without an entry */

static Told told[MAX_TOLD];
static int	ntold = 0;
static bool tell_all = false;

static bool preloaded = false;

/* ---- shared memory ---- */

static Size
entries_size(void)
{
	return mul_size(sizeof(Waiter), pj_max_backends());
}

static Size
control_size(void)
{
	return MAXALIGN(sizeof(Waiters));
}

static void
init_entries(Waiter *all)
{
	memset(all, 0, entries_size());
	for (int i = 0; i < MaxBackends; i++)
		pg_atomic_init_u32(&all[i].woken, 0);
}

static void
init_control(Waiters *control)
{
	LWLockInitialize(&control->lock, LWLockNewTrancheId());
	control->handle = DSM_HANDLE_INVALID;
	pg_atomic_init_u32(&control->count, 0);
	pg_atomic_init_u32(&control->ntail, 0);
}

/* Find or make the entries in dynamic shared memory; NULL if that is full. */
static Waiter *
map_entries(Waiters *control)
{
	dsm_segment *segment;
	bool		found = control->handle != DSM_HANDLE_INVALID;

	if (found)
		segment = dsm_attach(control->handle);
	else
		segment = dsm_create(entries_size(), DSM_CREATE_NULL_IF_MAXSEGMENTS);
	if (segment == NULL)
		return NULL;
	dsm_pin_mapping(segment);
	if (!found)
	{
		init_entries(dsm_segment_address(segment));
		dsm_pin_segment(segment);
		control->handle = dsm_segment_handle(segment);
	}
	return dsm_segment_address(segment);
}

static void
leave_at_exit(int code, Datum arg)
{
	pj_waiters_leave();
}

/*
 * Find or make the entries.  This may fail, so it must happen before the
 * transaction ends.
 */
static void
attach(void)
{
	Waiters    *control;
	bool		found;

	if (entries != NULL)
		return;
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	control = ShmemInitStruct("projector waiters", preloaded ?
							  add_size(control_size(), entries_size()) :
							  control_size(), &found);
	if (!found)
		init_control(control);
	if (!found && preloaded)
		init_entries((Waiter *) ((char *) control + control_size()));
	if (shared == NULL)
	{
		LWLockRegisterTranche(control->lock.tranche, "projector_waiters");
		before_shmem_exit(leave_at_exit, 0);
	}
	shared = control;
	entries = preloaded ? (Waiter *) ((char *) control + control_size()) :
		map_entries(control);
	LWLockRelease(AddinShmemInitLock);
}

static uint32
hash_pair(int32 projection_id, Datum tenant)
{
	text	   *name = DatumGetTextPP(tenant);
	uint32		hash = hash_bytes((const unsigned char *) VARDATA_ANY(name),
								  VARSIZE_ANY_EXHDR(name));

	return hash_combine(hash, projection_id);
}

/* ---- telling ---- */

static void
note_told(int32 projection_id, Datum tenant, bool news, int64 first,
		  int64 last)
{
	uint32		pair = hash_pair(projection_id, tenant);
	int			i = 0;

	attach();
	while (i < ntold && told[i].pair != pair)
		i++;
	if (i == MAX_TOLD)
		tell_all = true;
	else if (i == ntold)
		told[ntold++] = (Told) {pair, news, first, last};
	else
	{
		told[i].news |= news;
		told[i].first = Min(told[i].first, first);
		told[i].last = Max(told[i].last, last);
	}
}

/* After the commit, wake all sessions that wait for a pair. */
void
pj_waiters_tell(int32 projection_id, Datum tenant)
{
	note_told(projection_id, tenant, true, 0, 0);
}

/*
 * After the commit, wake the sessions that wait for an event of a pair between
 * these log positions: it may have been applied.
 */
void
pj_waiters_tell_range(int32 projection_id, Datum tenant, int64 first,
					  int64 last)
{
	note_told(projection_id, tenant, false, first, last);
}

/* After the commit, wake all waiting sessions of this database. */
void
pj_waiters_tell_all(void)
{
	attach();
	tell_all = true;
}

/* Has this transaction changed something that a session needs? */
static bool
is_told(const Waiter *waiter)
{
	for (int i = 0; i < ntold; i++)
		if (told[i].pair == waiter->pair &&
			(told[i].news || waiter->needs == PJ_NEEDS_ANYTHING ||
			 (told[i].first <= waiter->needs &&
			  waiter->needs <= told[i].last)))
			return true;
	return tell_all;
}

/* Wake a session.  The caller holds the lock. */
static void
wake(Waiter *waiter)
{
	if (pg_atomic_exchange_u32(&waiter->woken, 1) == 0)
		SetLatch(&waiter->proc->procLatch);
}

static void
wake_told(void)
{
	if ((ntold == 0 && !tell_all) || entries == NULL)
		return;
	pg_memory_barrier();		/* read "count" after the commit is visible */
	if (pg_atomic_read_u32(&shared->count) == 0)
		return;
	LWLockAcquire(&shared->lock, LW_SHARED);
	for (int i = 0; i < MaxBackends; i++)
		if (entries[i].proc && entries[i].dboid == MyDatabaseId &&
			is_told(&entries[i]))
			wake(&entries[i]);
	LWLockRelease(&shared->lock);
}

/* The log of this database is settled up to here: wake who waits for that. */
void
pj_waiters_settled(int64 tail)
{
	attach();
	if (entries == NULL || pg_atomic_read_u32(&shared->ntail) == 0)
		return;
	LWLockAcquire(&shared->lock, LW_SHARED);
	for (int i = 0; i < MaxBackends; i++)
		if (entries[i].proc && entries[i].dboid == MyDatabaseId &&
			entries[i].tail != 0 && entries[i].tail <= tail)
			wake(&entries[i]);
	LWLockRelease(&shared->lock);
}

/* ---- tending the tail ---- */

/* The entry of this database that tends the tail, or NULL; under the lock. */
static Waiter *
find_tending(void)
{
	for (int i = 0; i < MaxBackends; i++)
		if (entries[i].proc && entries[i].tends &&
			entries[i].dboid == MyDatabaseId)
			return &entries[i];
	return NULL;
}

/* Have a session tend the tail.  The caller holds the lock. */
static void
tend(Waiter *waiter)
{
	waiter->tends = true;
	waiter->tended_at = GetCurrentTimestamp();
}

/* Have another waiting session tend the tail.  The caller holds the lock. */
static void
hand_on(void)
{
	mine->tends = false;
	for (int i = 0; i < MaxBackends; i++)
	{
		Waiter	   *waiter = &entries[i];

		if (waiter->proc == NULL || waiter == mine || waiter->tail == 0 ||
			waiter->dboid != MyDatabaseId)
			continue;
		tend(waiter);
		SetLatch(&waiter->proc->procLatch);
		return;
	}
}

/*
 * Tend the tail if no session does, or the one that does is stuck.  The caller
 * holds the lock.
 */
static void
tend_if_needed(void)
{
	Waiter	   *other = find_tending();

	if (other == mine)
		return;
	if (other &&
		!TimestampDifferenceExceeds(other->tended_at, GetCurrentTimestamp(),
									TEND_TIMEOUT_MS))
		return;
	if (other)
		other->tends = false;
	tend(mine);
}

/* Does this session tend the tail?  Then it computes it now and then. */
bool
pj_waiters_tends_tail(void)
{
	bool		tends;

	if (mine == NULL)
		return unshared_tail != 0;
	LWLockAcquire(&shared->lock, LW_EXCLUSIVE);
	tends = mine->tends;
	if (tends)
		mine->tended_at = GetCurrentTimestamp();
	LWLockRelease(&shared->lock);
	return tends;
}

/* ---- waiting ---- */

/* Set the position to wait for, or 0.  The caller holds the lock. */
static void
set_tail(int64 tail)
{
	if (tail != 0 && mine->tail == 0)
		pg_atomic_fetch_add_u32(&shared->ntail, 1);
	if (tail == 0 && mine->tail != 0)
		pg_atomic_fetch_sub_u32(&shared->ntail, 1);
	mine->tail = tail;
	if (tail != 0)
		tend_if_needed();
	else if (mine->tends)
		hand_on();
}

/*
 * Begin to wait for a pair.  Returns false if there is no shared memory: then no
 * commit wakes this session.
 */
bool
pj_waiters_join(int32 projection_id, Datum tenant)
{
	attach();
	Assert(mine == NULL);
	if (entries == NULL)
		return false;
	LWLockAcquire(&shared->lock, LW_EXCLUSIVE);
	mine = &entries[pj_backend_index()];
	mine->dboid = MyDatabaseId;
	mine->pair = hash_pair(projection_id, tenant);
	mine->needs = PJ_NEEDS_ANYTHING;
	mine->tail = 0;
	mine->tends = false;
	mine->proc = MyProc;
	pg_atomic_fetch_add_u32(&shared->count, 1);
	LWLockRelease(&shared->lock);
	return true;
}

/* A check begins: every later commit of the pair wakes this session. */
void
pj_waiters_look(void)
{
	if (mine == NULL)
		return;
	LWLockAcquire(&shared->lock, LW_EXCLUSIVE);
	mine->needs = PJ_NEEDS_ANYTHING;
	pg_atomic_write_u32(&mine->woken, 0);
	LWLockRelease(&shared->lock);
}

/*
 * The check has shown what the session needs and, unless tail is 0, that the log
 * must be settled up to there first.  Returns false if the session has been
 * woken since the check began and must check again.
 */
bool
pj_waiters_await(int64 needs, int64 tail)
{
	bool		woken;

	unshared_tail = tail;
	if (mine == NULL)
		return true;
	LWLockAcquire(&shared->lock, LW_EXCLUSIVE);
	woken = pg_atomic_read_u32(&mine->woken) != 0;
	if (!woken)
	{
		mine->needs = needs;
		set_tail(tail);
	}
	LWLockRelease(&shared->lock);
	return !woken;
}

/*
 * Sleep until the latch is set or the time is over.  Returns whether the session
 * has been woken and must check again.
 */
bool
pj_waiters_sleep(long ms)
{
	(void) WaitLatch(MyLatch,
					 WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, ms,
					 PG_WAIT_EXTENSION);
	ResetLatch(MyLatch);
	CHECK_FOR_INTERRUPTS();
	return mine && pg_atomic_read_u32(&mine->woken) != 0;
}

/* Stop waiting.  Does nothing if the session does not wait. */
void
pj_waiters_leave(void)
{
	unshared_tail = 0;
	if (mine == NULL)
		return;
	LWLockAcquire(&shared->lock, LW_EXCLUSIVE);
	set_tail(0);
	mine->proc = NULL;
	pg_atomic_fetch_sub_u32(&shared->count, 1);
	mine = NULL;
	LWLockRelease(&shared->lock);
}

/* ---- loading the library ---- */

/* When this is called for a commit, it is visible to others. */
static void
at_transaction_event(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_COMMIT)
		wake_told();
	if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_ABORT ||
		event == XACT_EVENT_PREPARE)
	{
		ntold = 0;
		tell_all = false;
	}
}

static void
reserve(void)
{
	RequestAddinShmemSpace(add_size(control_size(), entries_size()));
}

void
pj_waiters_init(void)
{
	RegisterXactCallback(at_transaction_event, NULL);
	preloaded = process_shared_preload_libraries_in_progress;
	if (preloaded)
		pj_when_reserving(reserve);
}
