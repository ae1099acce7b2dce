/*
 * shmem.h
 *	  Shared memory: the worker processes, hints to them, the settled tails.
 */
#ifndef PJ_SHMEM_H
#define PJ_SHMEM_H

#include "base/compat.h"
#include "datatype/timestamp.h"

extern void pj_shmem_attach(void);
extern bool pj_preloaded(void);
extern void pj_shmem_init(void);

/* hints.c; so many bytes of hints are kept for a worker */
#define PJ_HINT_BYTES 16384

extern void pj_hints_add(Oid dboid, const char *names, int length);
extern int	pj_hints_take(char *names);
extern int	pj_hint_put(char *buffer, int room, const char *name, int length);
extern int	pj_hint_get(const char *buffer, const char **name, int *length);

/* What a worker is doing. */
typedef enum PjActivity
{
	PJ_IDLE_WORKER,
	PJ_LOOKING,					/* looking for work */
	PJ_APPLYING,				/* processing a batch of a pair */
	PJ_IN_RUN,					/* processing a batch of a pair's run */
	PJ_AT_CHORES
} PjActivity;

typedef struct PjWorkerActivity
{
	int			slot;
	int			pid;
	PjActivity	activity;
	int32		projection_id;	/* of the pair, or 0 */
	char	   *tenant;			/* of the pair, truncated if very long */
	TimestampTz since;
} PjWorkerActivity;

/* slot.c */
extern int	pj_slot_reserve(Oid dboid, int limit, uint32 *generation);
extern void pj_slot_release(int slot, uint32 generation);
extern bool pj_slot_attach(int slot, uint32 generation);
extern void pj_slot_serving(void);
extern void pj_slot_absent(void);
extern bool pj_slot_give_up(uint32 wakeups);
extern bool pj_slot_take_back(void);
extern bool pj_slot_collect_absent(Oid *dboid);
extern bool pj_slot_surplus(int limit);
extern int	pj_slot_count(Oid dboid, bool *serving);
extern bool pj_slot_is_other(int slot);
extern bool pj_is_worker(void);
extern int	pj_slot_mine(void);

extern bool pj_wake_workers(Oid dboid);
extern uint32 pj_slot_wakeups(void);
extern int	pj_end_workers(Oid dboid);
extern void pj_activity_set(PjActivity activity, int32 projection_id,
							Datum tenant);
extern int	pj_activities(PjWorkerActivity **workers);

/* database.c */
extern void pj_slot_wait(Oid dboid);
extern void pj_slot_wait_no_more(Oid dboid);
extern int	pj_slot_waiting(Oid but, Oid *longest, TimestampTz *since,
							bool *urgent);
extern TimestampTz pj_slot_waits_since(Oid dboid);

extern bool pj_forbid_workers(Oid dboid);
extern void pj_allow_workers(Oid dboid);
extern int	pj_forbidden(Oid **dboids);

extern void pj_launcher_attach(void);
extern bool pj_launcher_runs(void);
extern void pj_wake_launcher(Oid dboid);
extern bool pj_launcher_next_hint(Oid *dboid);

/* published.c */
extern void pj_publish_tail(Oid relid, int64 settled);
extern int64 pj_published_tail(Oid relid);
extern void pj_confirm_tail(Oid relid, int64 settled);
extern int64 pj_confirmed_tail(Oid relid);

#endif							/* PJ_SHMEM_H */
