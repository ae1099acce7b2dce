/*
 * tail.c
 *	  The settled tail of the log.
 *
 * log_seq is drawn from a sequence when an event is inserted, but the event
 * becomes visible when its transaction commits.  So a reader that has seen
 * position 10 may still find position 9 later.  Transaction ids do not help:
 * they are assigned in a different order, and mean nothing after a dump.  The
 * lock manager does.  A writer holds RowExclusiveLock on the table from before
 * it draws a position until its transaction ends, even if that is a prepared
 * one.
 *
 * So we read the sequence's last value H and then list the transactions that
 * hold such a lock.  When all of those have ended, everything up to H is
 * settled, and a snapshot taken after that sees it.  Nothing is blocked.
 * VACUUM and ANALYZE take a different lock and do not count.
 *
 * H and the list are kept from one call to the next.  So the tail advances
 * even if there are always some writers.  What one process has
 * found settled is settled for all (published.c).
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

/* How often to check whether a transaction has ended. */
#define POLL_MS 5

/* What this process knows about the tail. */
static struct
{
	Oid			relid;			/* OID of the events table */
	int64		settled;
	bool		pending;		/* the two below are valid */
	int64		next;			/* settled once the writers have ended */
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
		if ((LOCKBIT_ON(mode) & WRITER_LOCKS) != 0 && pj_lock_is_held(tag, mode))
			return true;
	return false;
}

/*
 * List the transactions whose locks conflict with ShareLock.  They are the
 * writers, unless some transaction has a ShareUpdateExclusiveLock (vacuum) or a
 * lock that conflicts with that.  In this case the list stays empty, and the
 * result is false.
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

/* The same from a list of all locks, which says which lock each one is. */
static void
note_holders(PjWriters *writers, Oid relid)
{
	LockData   *locks = GetLockStatusData();

	for (int i = 0; i < locks->nelements; i++)
	{
		const LockInstanceData *lock = &locks->locks[i];
		VirtualTransactionId writer;

		if (!is_writer(lock, relid))
			continue;
		if (lock->pid == MyProcPid)
		{
			writers->mine = true;
			continue;
		}

		/* it has ended, visibly to all, and is about to release its locks */
		writer = pj_lock_transaction(lock);
		if (!LocalTransactionIdIsValid(writer.localTransactionId))
			continue;
		if (writers->ids == NULL)
			writers->ids = MemoryContextAlloc(TopMemoryContext,
											  sizeof(VirtualTransactionId) *
											  locks->nelements);
		writers->ids[writers->count++] = writer;
	}
	pfree(locks->locks);
	pfree(locks);
}

/*
 * List the transactions that hold a writer's lock on the events table, in
 * memory that lives as long as the process.
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
 * Have those transactions ended?  Waits up to the given time.  Always false if
 * this transaction is one of them.
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

/* Forget the tail if the extension has been created again. */
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

/* Start waiting for the last position drawn so far. */
static void
look_ahead(void)
{
	known.pending = false;		/* stays so after an error */
	known.next = pj_source_last_log_seq();

	/* this must come before the list of writers: see intake.c */
	pj_publish_tail(known.relid, known.next);
	pj_writers_note(&known.writers);
	known.pending = true;
}

/* Is the log settled up to this position?  Waits up to the given time. */
bool
pj_tail_reaches(int64 log_seq, int timeout_ms)
{
	check_known();
	for (;;)
	{
		if (known.settled >= log_seq)
			return true;

		/* a transaction must not wait for itself */
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
 * Returns the position up to which the log is settled.  A snapshot taken from
 * now on sees all events up to there.
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
 * Has some process found the log settled up to this position?  Does not compute
 * the tail.
 */
bool
pj_tail_is_known_to_reach(int64 log_seq)
{
	check_known();
	known.settled = Max(known.settled, pj_confirmed_tail(known.relid));
	return known.settled >= log_seq;
}
