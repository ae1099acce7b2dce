/*
 * wakeup.h
 *	  Wake workers, or start one, when a transaction commits.
 */
#ifndef PJ_WAKEUP_H
#define PJ_WAKEUP_H

#include "base/compat.h"

struct BackgroundWorkerHandle;

extern uint64 pj_tenant_hash(Datum tenant);
extern void pj_wake_at_commit(void);
extern void pj_hint_at_commit(Datum tenant);
extern void pj_hint_all_at_commit(void);
extern void pj_wake_launcher_at_commit(Oid dboid);
extern bool pj_start_worker(Oid dboid, int limit,
							struct BackgroundWorkerHandle **handle);
extern void pj_wakeup_init(void);

#endif							/* PJ_WAKEUP_H */
