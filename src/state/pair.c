/*
 * pair.c
 *	  Lock a projection, and one pair of it or all pairs, for a function
 *	  that a user waits for.
 *
 * Such a function waits for the locks, in the order given in lock.c, and holds
 * them until the end of the transaction.  Workers and drains have other work
 * to do and do not wait: pj_pair_try_lock().
 */
#include "base/compat.h"

#include "storage/lockdefs.h"

#include "base/lock.h"
#include "sandbox/user_context.h"
#include "state/pair.h"

/*
 * Wait until no other driver works on a pair and, if "mode" is ExclusiveLock,
 * no append applies its events either.  The caller holds the projection's
 * lock.
 */
void
pj_pair_lock(int32 projection_id, Datum tenant, LOCKMODE mode)
{
	pj_lock_pair(projection_id, tenant, mode, true);
	pj_lock_driver(projection_id, tenant, true);
}

/*
 * The same without waiting.  Returns false if a lock is taken.  The driver lock
 * comes first, so that a session that fails to get it never holds the pair's
 * lock, which appends need.  The locks last until the end of the transaction,
 * so if this fails, none may be left.
 */
bool
pj_pair_try_lock(int32 projection_id, Datum tenant, LOCKMODE mode)
{
	if (!pj_lock_driver(projection_id, tenant, false))
		return false;
	if (pj_lock_pair(projection_id, tenant, mode, false))
		return true;
	pj_unlock_driver(projection_id, tenant, ExclusiveLock);
	return false;
}

/*
 * Like pj_pair_try_lock, to work on a slice of the pair's run: others may work
 * on other slices at the same time.
 */
bool
pj_pair_try_share(int32 projection_id, Datum tenant)
{
	if (!pj_try_lock_driver(projection_id, tenant, ShareLock))
		return false;
	if (pj_lock_pair(projection_id, tenant, ShareLock, false))
		return true;
	pj_unlock_driver(projection_id, tenant, ShareLock);
	return false;
}

/*
 * Release the locks of pj_pair_try_share.  Nothing has been done under them, and
 * the transaction goes on with other pairs.
 */
void
pj_pair_unshare(int32 projection_id, Datum tenant)
{
	pj_unlock_pair(projection_id, tenant, ShareLock);
	pj_unlock_driver(projection_id, tenant, ShareLock);
}

/*
 * Returns the projection with that name, for a function that may change its
 * pairs.
 */
static PjProjection *
take_projection(const char *function, const char *name, LOCKMODE mode)
{
	PjProjection *projection;

	pj_require_read_committed(function);
	pj_refuse_in_user_code(function);
	projection = pj_projection_own(name, mode);
	pj_refuse_dormant(projection);
	return projection;
}

/*
 * Lock one tenant's pair of a projection, or all pairs if tenant is 0, so that
 * neither drivers nor appends apply its events.
 */
PjProjection *
pj_take_alone(const char *function, const char *name, Datum tenant)
{
	PjProjection *projection = take_projection(function, name,
											   tenant ? ShareLock :
											   ExclusiveLock);

	if (tenant)
		pj_pair_lock(projection->id, tenant, ExclusiveLock);
	return projection;
}

/*
 * Become a pair's only driver; appends continue.  "mode" is the mode of the
 * projection's lock: ExclusiveLock if the caller also changes the registry
 * row, else ShareLock.
 */
PjProjection *
pj_take_driver(const char *function, const char *name, Datum tenant,
			   LOCKMODE mode)
{
	PjProjection *projection = take_projection(function, name, mode);

	pj_pair_lock(projection->id, tenant, ShareLock);
	return projection;
}
