/*
 * lock.c
 *	  The locks on projections and pairs.
 *
 * All are transaction-level advisory locks in lock classes of our own, so that
 * they never conflict with those of users.  Code that waits for locks takes
 * them in the order below.  Code that does not wait takes the driver lock
 * before the pair lock, so that it never holds the pair lock if it fails to
 * get the driver lock.
 *
 *	projection	one per projection.  ShareLock to apply events,
 *				ExclusiveLock to change its registry row or to work on all
 *				tenants at once.
 *	pair		one per projection and tenant.  ShareLock to apply events in
 *				aggregate order, ExclusiveLock for work that must be alone
 *				with the pair, such as a reset.
 *	driver		one per projection and tenant, taken by all but inline
 *				apply.  ExclusiveLock: drivers exclude each other, and outbox
 *				rows are held or released only under it.  ShareLock for a
 *				batch of a slice of a run, which writes nothing that the
 *				batches of other slices write.
 *	slice		one per slice of a run, always exclusive, for a batch of it.
 *				Nobody waits for it.  A worker that has announced a batch
 *				(caution.c) holds it until that batch is done.
 *
 * There is no lock per aggregate: a transaction may touch any number of them,
 * and the lock table is small.  For the same reason inline apply takes at most
 * MAX_INLINE_PAIRS pair locks in one transaction.
 */
#include "base/compat.h"

#include "catalog/pg_database.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "storage/lock.h"
#include "storage/proc.h"
#include "utils/builtins.h"

#include "base/lock.h"

#define MAX_INLINE_PAIRS	64

/* What the locks of a pair are known by. */
uint64
pj_pair_lock_key(int32 projection_id, Datum tenant)
{
	text	   *name = DatumGetTextPP(tenant);

	/* the seed carries the projection, the hash itself the name's length */
	return hash_bytes_extended((const unsigned char *) VARDATA_ANY(name),
							   VARSIZE_ANY_EXHDR(name),
							   (uint64) projection_id);
}

static void
set_pair_tag(LOCKTAG *tag, int32 projection_id, Datum tenant, uint16 class)
{
	uint64		hash = pj_pair_lock_key(projection_id, tenant);

	SET_LOCKTAG_ADVISORY(*tag, MyDatabaseId, (uint32) (hash >> 32),
						 (uint32) hash, class);
}

static bool
acquire(LOCKTAG *tag, LOCKMODE mode, bool wait)
{
	return LockAcquire(tag, mode, false, !wait) != LOCKACQUIRE_NOT_AVAIL;
}

bool
pj_lock_projection(int32 projection_id, LOCKMODE mode, bool wait)
{
	LOCKTAG		tag;

	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, projection_id, 0,
						 PJ_LOCK_PROJECTION);
	return acquire(&tag, mode, wait);
}

bool
pj_lock_pair(int32 projection_id, Datum tenant, LOCKMODE mode, bool wait)
{
	LOCKTAG		tag;

	set_pair_tag(&tag, projection_id, tenant, PJ_LOCK_PAIR);
	return acquire(&tag, mode, wait);
}

/* Release a pair's lock, if nothing has been done under it. */
void
pj_unlock_pair(int32 projection_id, Datum tenant, LOCKMODE mode)
{
	LOCKTAG		tag;

	set_pair_tag(&tag, projection_id, tenant, PJ_LOCK_PAIR);
	LockRelease(&tag, mode, false);
}

/*
 * The pairs that this transaction has locked inline.  Some of the locks may
 * have been released by a subtransaction: see forget_released().
 */
static struct
{
	LocalTransactionId transaction;
	LOCKTAG		tags[MAX_INLINE_PAIRS];
	int			count;
} inline_pairs;

/* Forget the pairs whose locks were released by a subtransaction. */
static void
forget_released(void)
{
	int			kept = 0;

	for (int i = 0; i < inline_pairs.count; i++)
		if (pj_lock_is_held(&inline_pairs.tags[i], ShareLock))
			inline_pairs.tags[kept++] = inline_pairs.tags[i];
	inline_pairs.count = kept;
}

static bool
is_noted(const LOCKTAG *tag)
{
	for (int i = 0; i < inline_pairs.count; i++)
		if (memcmp(&inline_pairs.tags[i], tag, sizeof(LOCKTAG)) == 0)
			return true;
	return false;
}

/*
 * Take the pair lock for an append.  Returns false also if this transaction
 * already holds the locks of many other pairs.
 */
bool
pj_lock_pair_inline(int32 projection_id, Datum tenant, bool wait)
{
	LOCKTAG		tag;

	set_pair_tag(&tag, projection_id, tenant, PJ_LOCK_PAIR);
	if (inline_pairs.transaction != pj_transaction())
	{
		inline_pairs.transaction = pj_transaction();
		inline_pairs.count = 0;
	}
	if (!is_noted(&tag))
	{
		if (inline_pairs.count == MAX_INLINE_PAIRS)
			forget_released();
		if (inline_pairs.count == MAX_INLINE_PAIRS)
			return false;
	}
	if (!acquire(&tag, ShareLock, wait))
		return false;
	if (!is_noted(&tag))
		inline_pairs.tags[inline_pairs.count++] = tag;
	return true;
}

bool
pj_lock_driver(int32 projection_id, Datum tenant, bool wait)
{
	LOCKTAG		tag;

	set_pair_tag(&tag, projection_id, tenant, PJ_LOCK_DRIVER);
	return acquire(&tag, ExclusiveLock, wait);
}

/*
 * Take the driver lock in a mode, without waiting.  A session that has it in
 * ShareLock may ask for ExclusiveLock, and gets it if it is the only one.
 */
bool
pj_try_lock_driver(int32 projection_id, Datum tenant, LOCKMODE mode)
{
	LOCKTAG		tag;

	set_pair_tag(&tag, projection_id, tenant, PJ_LOCK_DRIVER);
	return acquire(&tag, mode, false);
}

/* Release the driver lock, if nothing has been done under it. */
void
pj_unlock_driver(int32 projection_id, Datum tenant, LOCKMODE mode)
{
	LOCKTAG		tag;

	set_pair_tag(&tag, projection_id, tenant, PJ_LOCK_DRIVER);
	LockRelease(&tag, mode, false);
}

/*
 * Unlike the others, this lock may be held across transactions.  So it must not
 * be of the kind that a worker releases between them, together with what users'
 * code has left.
 */
static void
set_slice_tag(LOCKTAG *tag, int64 run_id, int slice)
{
	SET_LOCKTAG_ADVISORY(*tag, MyDatabaseId, (uint32) run_id,
						 (uint32) (run_id >> 32) << 16 | (uint32) slice,
						 PJ_LOCK_SLICE);
	tag->locktag_lockmethodid = DEFAULT_LOCKMETHOD;
}

/* Take the lock of a run's slice, without waiting. */
bool
pj_try_lock_slice(int64 run_id, int slice)
{
	LOCKTAG		tag;

	set_slice_tag(&tag, run_id, slice);
	return acquire(&tag, ExclusiveLock, false);
}

/*
 * Keep the lock of a slice until it is released, or a transaction fails.  Slice 0
 * stands for all other steps of a run.  Returns false if another worker has it.
 */
bool
pj_keep_slice(int64 run_id, int slice)
{
	LOCKTAG		tag;

	set_slice_tag(&tag, run_id, slice);
	return LockAcquire(&tag, ExclusiveLock, true, true) !=
		LOCKACQUIRE_NOT_AVAIL;
}

void
pj_release_slice(int64 run_id, int slice)
{
	LOCKTAG		tag;

	set_slice_tag(&tag, run_id, slice);
	LockRelease(&tag, ExclusiveLock, true);
}

/* Release the locks of all slices that were kept. */
void
pj_release_slices(void)
{
	LockReleaseSession(DEFAULT_LOCKMETHOD);
}

/* ---- which locks we hold ---- */

/* Do we hold a lock in this mode?  ExclusiveLock includes ShareLock. */
static bool
is_held(const LOCKTAG *tag, LOCKMODE mode)
{
	return pj_lock_is_held(tag, ExclusiveLock) ||
		(mode == ShareLock && pj_lock_is_held(tag, ShareLock));
}

/* Do we hold a projection's lock, in this mode or a stronger one? */
bool
pj_projection_is_locked(int32 projection_id, LOCKMODE mode)
{
	LOCKTAG		tag;

	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, projection_id, 0,
						 PJ_LOCK_PROJECTION);
	return is_held(&tag, mode);
}

/*
 * Do we hold a pair's lock, in this mode or a stronger one?  An exclusive lock
 * on the projection is enough, too.
 */
bool
pj_pair_is_locked(int32 projection_id, Datum tenant, LOCKMODE mode)
{
	LOCKTAG		tag;

	set_pair_tag(&tag, projection_id, tenant, PJ_LOCK_PAIR);
	return pj_projection_is_locked(projection_id, ExclusiveLock) ||
		(pj_projection_is_locked(projection_id, ShareLock) &&
		 is_held(&tag, mode));
}

/*
 * Do we hold a pair's driver lock?  An exclusive lock on the projection is
 * enough, too.
 */
bool
pj_driver_is_locked(int32 projection_id, Datum tenant)
{
	LOCKTAG		tag;

	set_pair_tag(&tag, projection_id, tenant, PJ_LOCK_DRIVER);
	return pj_projection_is_locked(projection_id, ExclusiveLock) ||
		is_held(&tag, ExclusiveLock);
}

/* Do we hold a pair's driver lock, if only in ShareLock? */
bool
pj_driver_is_shared(int32 projection_id, Datum tenant)
{
	LOCKTAG		tag;

	set_pair_tag(&tag, projection_id, tenant, PJ_LOCK_DRIVER);
	return pj_driver_is_locked(projection_id, tenant) ||
		is_held(&tag, ShareLock);
}

/* Do we hold the lock of a run's slice? */
bool
pj_slice_is_locked(int64 run_id, int slice)
{
	LOCKTAG		tag;

	set_slice_tag(&tag, run_id, slice);
	return is_held(&tag, ExclusiveLock);
}

/* Do we hold the locks that exclude all others from a pair? */
bool
pj_pair_is_ours(int32 projection_id, Datum tenant)
{
	return pj_pair_is_locked(projection_id, tenant, ExclusiveLock) &&
		pj_driver_is_locked(projection_id, tenant);
}

/* ---- databases ---- */

/*
 * Does a session want to drop, rename or copy a database?  These commands wait
 * for a lock that every connection to the database holds.
 */
bool
pj_database_is_wanted(Oid dboid)
{
	LOCKTAG		tag;
	int			n;

	SET_LOCKTAG_OBJECT(tag, InvalidOid, DatabaseRelationId, dboid, 0);
	pfree(GetLockConflicts(&tag, RowExclusiveLock, &n));
	return n > 0;
}
