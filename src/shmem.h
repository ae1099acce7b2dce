/*
 * shmem.h
 *	  Shared state: the worker processes.
 */
#ifndef PJ_SHMEM_H
#define PJ_SHMEM_H

#include "compat.h"

/* In all databases together; the whole must stay below 4 kB. */
#define PJ_MAX_WORKERS 40

extern int	pj_slot_reserve(Oid dboid, int limit, uint32 *generation);
extern void pj_slot_release(int slot, uint32 generation);
extern bool pj_slot_attach(int slot, uint32 generation);
extern void pj_slot_serving(void);
extern void pj_slot_absent(void);
extern bool pj_slot_collect_absent(Oid *dboid);
extern bool pj_slot_surplus(int limit);
extern int	pj_slot_count(Oid dboid, bool *serving);
extern bool pj_is_worker(void);

/* Hints that can be kept at a time. */
#define PJ_MAX_HINTS 128

extern void pj_hints_add(Oid dboid, const uint64 *hints, int n);
extern int	pj_hints_read(uint64 *next, uint64 *hints);
extern void pj_wake_workers(Oid dboid);
extern uint32 pj_slot_wakeups(void);
extern int	pj_stop_workers(Oid dboid);
extern void pj_allow_workers(Oid dboid);

extern void pj_launcher_attach(void);
extern bool pj_launcher_runs(void);
extern void pj_wake_launcher(Oid dboid);
extern bool pj_launcher_next_hint(Oid *dboid);

extern bool pj_preloaded(void);
extern void pj_shmem_init(void);

#endif							/* PJ_SHMEM_H */
