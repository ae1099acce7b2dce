/*
 * waiters.c
 *	  Sessions that wait for events to be applied, and how they are woken.
 *
 * A transaction that changes what a pair (projection, tenant) has applied
 * registers the pair.  When it has committed and its changes are visible, the
 * sessions waiting for the pair are woken and check again.  A session prepares
 * to sleep before it checks, and sleeps afterwards.  A commit before the check
 * is seen by it; a later commit wakes the session.  So no wake-up is lost.
 *
 * Pairs share a few condition variables.  Being woken for another pair only
 * costs an extra check.  COMMIT PREPARED wakes nobody, so a waiting session
 * also checks periodically.
 */
#include "base/compat.h"

#include "access/xact.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/condition_variable.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/builtins.h"

#include "ipc/waiters.h"

/* One for each bit of a mask. */
#define NUM_BUCKETS	32

typedef struct Waiters
{
	ConditionVariable buckets[NUM_BUCKETS];
} Waiters;

static Waiters *waiters = NULL;
static uint32 to_tell = 0;		/* buckets to wake at commit */
static ConditionVariable *joined = NULL;

/*
 * Attach the condition variables, or create them if this is the first process.
 */
static void
attach(void)
{
	bool		found;

	if (waiters != NULL)
		return;
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	waiters = ShmemInitStruct("projector waiters", sizeof(Waiters), &found);
	if (!found)
		for (int i = 0; i < NUM_BUCKETS; i++)
			ConditionVariableInit(&waiters->buckets[i]);
	LWLockRelease(AddinShmemInitLock);
}

static int
bucket_of(int32 projection_id, Datum tenant)
{
	text	   *name = DatumGetTextPP(tenant);
	uint32		hash = hash_bytes((const unsigned char *) VARDATA_ANY(name),
								  VARSIZE_ANY_EXHDR(name));

	return hash_combine(hash_combine(hash, projection_id),
						MyDatabaseId) % NUM_BUCKETS;
}

/*
 * Wake the sessions that wait for a pair, once the transaction has committed.
 */
void
pj_waiters_tell(int32 projection_id, Datum tenant)
{
	attach();
	to_tell |= (uint32) 1 << bucket_of(projection_id, tenant);
}

/* Wake all waiting sessions, once the transaction has committed. */
void
pj_waiters_tell_all(void)
{
	attach();
	to_tell = PG_UINT32_MAX;
}

/* Prepare to wait for a pair.  The caller must check the pair after this. */
void
pj_waiters_join(int32 projection_id, Datum tenant)
{
	attach();
	joined = &waiters->buckets[bucket_of(projection_id, tenant)];
	ConditionVariablePrepareToSleep(joined);
}

/* Sleep until woken, or until some time has passed. */
void
pj_waiters_sleep(long ms)
{
	(void) ConditionVariableTimedSleep(joined, ms, PG_WAIT_EXTENSION);
}

void
pj_waiters_leave(void)
{
	ConditionVariableCancelSleep();
}

/*
 * Transaction callback.  At commit, the changes are already visible to others.
 */
static void
at_transaction_event(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_COMMIT)
		for (int i = 0; i < NUM_BUCKETS && to_tell != 0; i++)
			if (to_tell & ((uint32) 1 << i))
				ConditionVariableBroadcast(&waiters->buckets[i]);
	if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_ABORT ||
		event == XACT_EVENT_PREPARE)
		to_tell = 0;
}

void
pj_waiters_init(void)
{
	RegisterXactCallback(at_transaction_event, NULL);
}
