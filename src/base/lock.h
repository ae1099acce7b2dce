/*
 * lock.h
 *	  The locks on projections and pairs.
 */
#ifndef PJ_LOCK_H
#define PJ_LOCK_H

#include "base/compat.h"
#include "storage/lockdefs.h"

/* The classes of these locks: column objsubid of view pg_locks. */
#define PJ_LOCK_PROJECTION	0x504A
#define PJ_LOCK_PAIR		0x504B
#define PJ_LOCK_DRIVER		0x504C
#define PJ_LOCK_SLICE		0x504D

extern uint64 pj_pair_lock_key(int32 projection_id, Datum tenant);
extern bool pj_lock_projection(int32 projection_id, LOCKMODE mode, bool wait);
extern bool pj_lock_pair(int32 projection_id, Datum tenant, LOCKMODE mode,
						 bool wait);
extern void pj_unlock_pair(int32 projection_id, Datum tenant, LOCKMODE mode);
extern bool pj_lock_pair_inline(int32 projection_id, Datum tenant, bool wait);
extern bool pj_lock_driver(int32 projection_id, Datum tenant, bool wait);
extern bool pj_try_lock_driver(int32 projection_id, Datum tenant,
							   LOCKMODE mode);
extern void pj_unlock_driver(int32 projection_id, Datum tenant,
							 LOCKMODE mode);
extern bool pj_try_lock_slice(int64 run_id, int slice);
extern bool pj_keep_slice(int64 run_id, int slice);
extern void pj_release_slice(int64 run_id, int slice);
extern void pj_release_slices(void);
extern bool pj_slice_is_locked(int64 run_id, int slice);

/* for assertions */
extern bool pj_projection_is_locked(int32 projection_id, LOCKMODE mode);
extern bool pj_pair_is_locked(int32 projection_id, Datum tenant,
							  LOCKMODE mode);
extern bool pj_driver_is_locked(int32 projection_id, Datum tenant);
extern bool pj_driver_is_shared(int32 projection_id, Datum tenant);
extern bool pj_pair_is_ours(int32 projection_id, Datum tenant);

extern bool pj_database_is_wanted(Oid dboid);

#endif							/* PJ_LOCK_H */
