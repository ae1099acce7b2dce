/*
 * lock.c
 *	  The locks that drivers of apply take on projections.
 *
 * All are transaction-level advisory locks under class numbers of our own,
 * so that they never meet the users'.  Those who wait for them take them in
 * this order; those who do not wait take the driver lock before the pair lock,
 * so that one that fails to get it never holds the pair lock:
 *
 *	projection	one per projection.  ShareLock for all who apply,
 *				ExclusiveLock for those who change its registry row and for
 *				work on all tenants at once.
 *	pair		one per projection and tenant.  ShareLock for those who apply
 *				in aggregate order, ExclusiveLock for work that must be alone
 *				with the pair, such as a reset.
 *	driver		one per projection and tenant, taken exclusively by everyone
 *				but inline apply: drains exclude each other, and rows are
 *				marked as held or released under it only.
 *
 * There is no lock per aggregate: a transaction may touch any number of them,
 * and the lock table is small.  For the same reason inline apply takes at
 * most MAX_INLINE_PAIRS pair locks in one transaction.
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

/* The pairs that this transaction has locked inline, or had: see below. */
static struct
{
	LocalTransactionId transaction;
	LOCKTAG		tags[MAX_INLINE_PAIRS];
	int			count;
} inline_pairs;

/* Forget the pairs whose locks have gone with a subtransaction. */
static void
forget_released(void)
{
	int			kept = 0;

	for (int i = 0; i < inline_pairs.count; i++)
		if (LockHeldByMe(&inline_pairs.tags[i], ShareLock))
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
 * The pair lock as an appender takes it: refused if this transaction holds
 * those of many other pairs.
 */
bool
pj_lock_pair_inline(int32 projection_id, Datum tenant, bool wait)
{
	LOCKTAG		tag;

	set_pair_tag(&tag, projection_id, tenant, PJ_LOCK_PAIR);
	if (inline_pairs.transaction != MyProc->lxid)
	{
		inline_pairs.transaction = MyProc->lxid;
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

/* Give the driver lock back, if nothing has been done under it. */
void
pj_unlock_driver(int32 projection_id, Datum tenant)
{
	LOCKTAG		tag;

	set_pair_tag(&tag, projection_id, tenant, PJ_LOCK_DRIVER);
	LockRelease(&tag, ExclusiveLock, false);
}

/* ---- asking which locks we have, for assertions ---- */

/* A lock held exclusively is held as ShareLock too. */
static bool
is_held(const LOCKTAG *tag, LOCKMODE mode)
{
	return LockHeldByMe(tag, ExclusiveLock) ||
		(mode == ShareLock && LockHeldByMe(tag, ShareLock));
}

/* Do we have a projection's lock, in this mode or a stronger one? */
bool
pj_projection_is_locked(int32 projection_id, LOCKMODE mode)
{
	LOCKTAG		tag;

	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, projection_id, 0,
						 PJ_LOCK_PROJECTION);
	return is_held(&tag, mode);
}

/*
 * Do we have a pair's lock, in this mode or a stronger one?  Whoever has the
 * projection's lock exclusively needs none.
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

/* Do we have a pair's driver lock?  The same holds. */
bool
pj_driver_is_locked(int32 projection_id, Datum tenant)
{
	LOCKTAG		tag;

	set_pair_tag(&tag, projection_id, tenant, PJ_LOCK_DRIVER);
	return pj_projection_is_locked(projection_id, ExclusiveLock) ||
		is_held(&tag, ExclusiveLock);
}

/* Are we alone with a pair? */
bool
pj_pair_is_ours(int32 projection_id, Datum tenant)
{
	return pj_pair_is_locked(projection_id, tenant, ExclusiveLock) &&
		pj_driver_is_locked(projection_id, tenant);
}

/* ---- databases ---- */

/*
 * Does somebody want to drop, rename or copy a database?  Connecting to it
 * takes a lock that such commands conflict with.
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
