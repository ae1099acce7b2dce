/*
 * cursor.h
 *	  How far a projection has read one tenant's log, and how it is run there.
 */
#ifndef PJ_CURSOR_H
#define PJ_CURSOR_H

#include "compat.h"

#include "projection.h"

/* A projection and a tenant. */
typedef struct PjPair
{
	PjProjection *projection;
	Datum		tenant;
	PjMode		mode;			/* the tenant's own, or the projection's */
	bool		paused;
	int64		run_id;			/* of the active run, or 0 */
	int64		last_log_seq;
	bool		replaying;		/* the log is to be read up to the handover */
	bool		exists;			/* there is a row */
} PjPair;

extern void pj_pair_look(PjPair *pair, PjProjection *projection, Datum tenant);
extern void pj_cursors_start(int32 projection_id);
extern int	pj_cursors_behind(const PjProjection *projection, Datum **tenants);
extern void pj_cursor_move(const PjPair *pair, int64 log_seq, bool live,
						   int64 applied, int64 failed);

#endif							/* PJ_CURSOR_H */
