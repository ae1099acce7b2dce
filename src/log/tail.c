/*
 * tail.c
 *	  Up to where the log is settled.
 *
 * log_seq is drawn from a sequence when an event is inserted, but becomes
 * visible when its transaction commits: a reader that has seen position 10
 * may still meet position 9.  Transaction ids do not help (they are assigned
 * in yet another order, and mean nothing after a dump).  The lock manager
 * does: a writer holds RowExclusiveLock on the table from before it draws a
 * position until its transaction ends, also if that is a prepared one.
 *
 * So: read the sequence's last value H, note who holds such a lock, and when
 * all of those are gone everything up to H is settled, and a snapshot taken
 * after that sees it.  Nobody is blocked, and vacuum and analyze, whose lock
 * is of another kind, do not count.
 *
 * H and the writers are remembered from one look to the next, so that the
 * tail advances however many writers come and go, without waiting for a
 * moment when there are none.  What one process has found to be settled is so
 * for all (published.c).
 */
#include "base/compat.h"

#include "miscadmin.h"
#include "pgstat.h"
#include "storage/latch.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "storage/proc.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "ipc/shmem.h"
#include "ipc/waiters.h"
#include "log/log_read.h"
#include "log/tail.h"

#define WRITER_LOCKS \
	(LOCKBIT_ON(RowExclusiveLock) | LOCKBIT_ON(ShareRowExclusiveLock) | \
	 LOCKBIT_ON(ExclusiveLock) | LOCKBIT_ON(AccessExclusiveLock))

/* How often to look whether a transaction is gone. */
#define POLL_MS 5

/* What this process knows of the source's tail. */
static struct
{
	Oid			relid;			/* of the source this is about */
	int64		settled;
	bool		pending;		/* the two below are valid */
	int64		next;			/* settled once these are gone */
	PjWriters	writers;
} known;

static bool
is_writer(const LockInstanceData *lock, Oid relid)
{
	return lock->locktag.locktag_type == LOCKTAG_RELATION &&
		lock->locktag.locktag_field1 == MyDatabaseId &&
		lock->locktag.locktag_field2 == relid &&
		(lock->holdMask & WRITER_LOCKS) != 0;
}

/* Do we hold a writer's lock ourselves? */
static bool
is_mine(const LOCKTAG *tag)
{
	for (LOCKMODE mode = RowExclusiveLock; mode <= AccessExclusiveLock; mode++)
		if ((LOCKBIT_ON(mode) & WRITER_LOCKS) != 0 && LockHeldByMe(tag, mode))
			return true;
	return false;
}

/*
 * Note those who hold a lock that keeps others from a ShareLock.  They are the
 * writers, unless somebody has a ShareUpdateExclusiveLock (vacuum), or one that
 * conflicts with that: then nothing is noted, and false is returned.
 */
static bool
note_conflicts(PjWriters *writers, Oid relid)
{
	LOCKTAG		tag;
	VirtualTransactionId *ids;
	int			n,
				nothers = 0;

	SET_LOCKTAG_RELATION(tag, MyDatabaseId, relid);
	ids = GetLockConflicts(&tag, ShareLock, &n);
	if (n > 0)
		pfree(GetLockConflicts(&tag, ShareUpdateExclusiveLock, &nothers));
	if (nothers == 0)
	{
		writers->mine = is_mine(&tag);
		writers->count = n;
	}
	if (nothers == 0 && n > 0)
	{
		writers->ids = MemoryContextAlloc(TopMemoryContext,
										  sizeof(VirtualTransactionId) * n);
		memcpy(writers->ids, ids, sizeof(VirtualTransactionId) * n);
	}
	pfree(ids);
	return nothers == 0;
}

/* The same from a list of all locks, which tells them apart. */
static void
note_holders(PjWriters *writers, Oid relid)
{
	LockData   *locks = GetLockStatusData();

	for (int i = 0; i < locks->nelements; i++)
	{
		const LockInstanceData *lock = &locks->locks[i];

		if (!is_writer(lock, relid))
			continue;
		if (lock->pid == MyProcPid)
		{
			writers->mine = true;
			continue;
		}

		/* it has ended, all can see that, and is about to release its locks */
		if (!LocalTransactionIdIsValid(lock->lxid))
			continue;
		if (writers->ids == NULL)
			writers->ids = MemoryContextAlloc(TopMemoryContext,
											  sizeof(VirtualTransactionId) *
											  locks->nelements);
		writers->ids[writers->count].backendId = lock->backend;
		writers->ids[writers->count++].localTransactionId = lock->lxid;
	}
	pfree(locks->locks);
	pfree(locks);
}

/*
 * Note the transactions that hold a writer's lock on the source, in memory
 * that lives as long as the process.
 */
void
pj_writers_note(PjWriters *writers)
{
	Oid			relid = pj_source_relid();

	if (writers->ids)
		pfree(writers->ids);
	writers->ids = NULL;
	writers->count = 0;
	writers->mine = false;
	if (!note_conflicts(writers, relid))
		note_holders(writers, relid);
}

/*
 * Have those transactions ended?  Waits for it up to the given time.  Never
 * if this transaction is one of them.
 */
bool
pj_writers_gone(PjWriters *writers, int timeout_ms)
{
	TimestampTz start = timeout_ms > 0 ? GetCurrentTimestamp() : 0;

	if (writers->mine)
		return false;
	while (writers->count > 0)
	{
		if (VirtualXactLock(writers->ids[writers->count - 1], false))
		{
			writers->count--;
			continue;
		}
		if (timeout_ms <= 0 ||
			TimestampDifferenceExceeds(start, GetCurrentTimestamp(),
									   timeout_ms))
			return false;
		(void) WaitLatch(MyLatch,
						 WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 POLL_MS, PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
	return true;
}

/* Forget what we knew if the extension has been created again. */
static void
check_known(void)
{
	Oid			relid = pj_source_relid();

	if (known.relid == relid)
		return;
	known.relid = relid;
	known.settled = 0;
	known.pending = false;
}

/* Look as far ahead as is possible now. */
static void
look_ahead(void)
{
	known.pending = false;		/* an error leaves it so */
	known.next = pj_source_last_log_seq();

	/* before we look who is writing: see intake.c */
	pj_publish_tail(known.relid, known.next);
	pj_writers_note(&known.writers);
	known.pending = true;
}

/*
 * Is the log settled up to this position?  Waits for it up to the given time.
 */
bool
pj_tail_reaches(int64 log_seq, int timeout_ms)
{
	check_known();
	for (;;)
	{
		if (known.settled >= log_seq)
			return true;

		/* a transaction must not find itself among those it waits for */
		if (!known.pending || known.writers.mine)
			look_ahead();
		if (!pj_writers_gone(&known.writers, timeout_ms))
			return false;
		known.settled = Max(known.settled, known.next);
		known.pending = false;
		pj_confirm_tail(known.relid, known.settled);
	}
}

/*
 * The position up to which the log is settled.  A snapshot taken from now on
 * sees all that is there.
 */
int64
pj_tail(int timeout_ms)
{
	int64		last;

	check_known();
	last = pj_source_last_log_seq();
	(void) pj_tail_reaches(last, timeout_ms);
	pj_waiters_settled(known.settled);
	return known.settled;
}

/*
 * Is the log settled up to this position, for all that anybody has found out?
 * Costs next to nothing.
 */
bool
pj_tail_is_known_to_reach(int64 log_seq)
{
	check_known();
	known.settled = Max(known.settled, pj_confirmed_tail(known.relid));
	return known.settled >= log_seq;
}
