/*
 * pair.c
 *	  Taking a projection, and one tenant's pair of it or all of them, for
 *	  oneself, on behalf of somebody who waits for an answer.
 *
 * Whoever does so waits for the locks, in the order that lock.c asks for, and
 * has them until the end of the transaction.  Workers and drains, which have
 * other things to do, do not wait: see pj_step_enter().
 */
#include "base/compat.h"

#include "storage/lockdefs.h"

#include "base/lock.h"
#include "sandbox/user_context.h"
#include "state/pair.h"

/*
 * Wait until no other driver is at work on a pair, and, if "mode" is
 * ExclusiveLock, no append either.  The caller has the projection's lock.
 */
void
pj_pair_lock(int32 projection_id, Datum tenant, LOCKMODE mode)
{
	pj_lock_pair(projection_id, tenant, mode, true);
	pj_lock_driver(projection_id, tenant, true);
}

/* The projection of that name, for a function that may change its pairs. */
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
 * Have one tenant's pair of a projection to ourselves, or all pairs if tenant
 * is 0: neither drivers nor appends apply its events.
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
 * Be a pair's only driver; appends go on.  Whoever changes the registry's row
 * too takes the projection's lock in mode ExclusiveLock, others in ShareLock.
 */
PjProjection *
pj_take_driver(const char *function, const char *name, Datum tenant,
			   LOCKMODE mode)
{
	PjProjection *projection = take_projection(function, name, mode);

	pj_pair_lock(projection->id, tenant, ShareLock);
	return projection;
}
