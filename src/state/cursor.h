/*
 * cursor.h
 *	  How far a projection has read one tenant's log, and how it runs for
 *	  that tenant.
 */
#ifndef PJ_CURSOR_H
#define PJ_CURSOR_H

#include "base/compat.h"
#include "datatype/timestamp.h"

#include "state/pair.h"

/* Counts of what was done for a pair. */
typedef struct PjCounts
{
	int64		applied;
	int64		failed;
	int64		dead;
	int64		batches;
	int64		us;				/* time taken, in microseconds */
} PjCounts;

extern void pj_pair_look(PjPair *pair, PjProjection *projection, Datum tenant);
extern bool pj_cursors_start(const PjProjection *projection, Datum *after,
							 int limit);
extern int64 pj_cursors_last(void);
extern int	pj_cursors_behind(const PjProjection *projection, Datum after,
							  int limit, Datum **tenants);
extern int	pj_cursors_unread(const PjProjection *projection, PjTenants *all,
							  int64 tail, Datum **tenants);
extern void pj_cursors_follow(const PjProjection *projection,
							  const PjTenants *all, int64 tail, int *room);
extern void pj_cursors_follow_some(const PjProjection *projection,
								   const PjTenants *all, int64 tail,
								   int *room);
extern void pj_cursor_set_run(const PjPair *pair, int64 run_id);
extern void pj_cursor_set_definition(PjPair *pair, const bytea *hash);
extern void pj_cursor_note_definition(PjPair *pair, const bytea *hash);
extern void pj_cursor_forget_handover(PjPair *pair);
extern void pj_cursor_restart(PjPair *pair, int64 handover);
extern void pj_cursor_save(const PjPair *pair, const PjCounts *counts);
extern struct HeapTupleData *pj_cursor_fetch(int32 projection_id,
											 Datum tenant);
extern void pj_cursor_count(struct HeapTupleData *row, int32 projection_id,
							Datum tenant, const PjCounts *counts,
							TimestampTz applied_at);

#endif							/* PJ_CURSOR_H */
