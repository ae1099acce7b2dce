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
 */
#include "compat.h"

#include "miscadmin.h"
#include "pgstat.h"
#include "storage/latch.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "storage/proc.h"
#include "utils/timestamp.h"

#include "source.h"
#include "tail.h"

#define WRITER_LOCKS \
	(LOCKBIT_ON(RowExclusiveLock) | LOCKBIT_ON(ShareRowExclusiveLock) | \
	 LOCKBIT_ON(ExclusiveLock) | LOCKBIT_ON(AccessExclusiveLock))

/*
 * The transactions that hold a writer's lock on the source.  *mine tells
 * whether this transaction is one of them.
 */
static int
note_writers(VirtualTransactionId **writers, bool *mine)
{
	Oid			relid = pj_source_relid();
	LockData   *locks = GetLockStatusData();
	int			n = 0;

	*mine = false;
	*writers = palloc(sizeof(VirtualTransactionId) * Max(locks->nelements, 1));
	for (int i = 0; i < locks->nelements; i++)
	{
		LockInstanceData *lock = &locks->locks[i];

		if (lock->locktag.locktag_type != LOCKTAG_RELATION ||
			lock->locktag.locktag_field1 != MyDatabaseId ||
			lock->locktag.locktag_field2 != relid ||
			(lock->holdMask & WRITER_LOCKS) == 0)
			continue;
		if (lock->pid == MyProcPid)
		{
			*mine = true;
			continue;
		}
		(*writers)[n].backendId = lock->backend;
		(*writers)[n++].localTransactionId = lock->lxid;
	}
	return n;
}

/*
 * Wait until every transaction that is writing to the source now has ended.
 * Returns false if one is still there after the given time, or if this
 * transaction is one of them.
 */
bool
pj_tail_writers_gone(int timeout_ms)
{
	TimestampTz start = GetCurrentTimestamp();
	VirtualTransactionId *writers;
	bool		mine;
	int			nwriters = note_writers(&writers, &mine);

	if (mine)
		return false;

	for (int i = 0; i < nwriters; i++)
	{
		while (!VirtualXactLock(writers[i], false))
		{
			if (TimestampDifferenceExceeds(start, GetCurrentTimestamp(),
										   timeout_ms))
				return false;
			(void) WaitLatch(MyLatch,
							 WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
							 5, PG_WAIT_EXTENSION);
			ResetLatch(MyLatch);
			CHECK_FOR_INTERRUPTS();
		}
	}
	return true;
}

/* Find a position up to which the log is settled. */
bool
pj_tail_settled(int timeout_ms, int64 *tail)
{
	int64		last = pj_source_last_log_seq();

	if (!pj_tail_writers_gone(timeout_ms))
		return false;
	*tail = last;
	return true;
}
