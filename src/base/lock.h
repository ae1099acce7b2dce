/*
 * lock.h
 *	  The locks on projections and pairs.
 */
#ifndef PJ_LOCK_H
#define PJ_LOCK_H

#include "base/compat.h"
#include "storage/lockdefs.h"

extern bool pj_lock_projection(int32 projection_id, LOCKMODE mode, bool wait);
extern bool pj_lock_pair(int32 projection_id, Datum tenant, LOCKMODE mode,
						 bool wait);
extern bool pj_lock_pair_inline(int32 projection_id, Datum tenant, bool wait);
extern bool pj_lock_driver(int32 projection_id, Datum tenant, bool wait);
extern void pj_unlock_driver(int32 projection_id, Datum tenant);

/* for assertions */
extern bool pj_projection_is_locked(int32 projection_id, LOCKMODE mode);
extern bool pj_pair_is_locked(int32 projection_id, Datum tenant,
							  LOCKMODE mode);
extern bool pj_driver_is_locked(int32 projection_id, Datum tenant);
extern bool pj_pair_is_ours(int32 projection_id, Datum tenant);

extern bool pj_database_is_wanted(Oid dboid);

#endif							/* PJ_LOCK_H */
