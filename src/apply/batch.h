/*
 * batch.h
 *	  A batch while it is being applied: what apply.c and its parts share.
 *
 * apply.c loads it (batch_load.c), applies it piece by piece (batch_piece.c)
 * and finishes it (batch_finish.c).  These parts do not use each other.
 */
#ifndef PJ_BATCH_H
#define PJ_BATCH_H

#include "base/compat.h"

#include "apply/apply.h"
#include "kinds/kind.h"
#include "sandbox/user_context.h"
#include "state/offset.h"
#include "state/outbox.h"

/*
 * Events that are applied in order or not at all: one aggregate's, in
 * sequence, or all of the batch's, as they are in the log.
 */
typedef struct PjSlice
{
	int			first;			/* in PjBatch.events */
	int			end;			/* behind the last that may be applied */
	int			loaded_end;		/* behind the last loaded */
	int			applied_end;	/* behind the last applied, or tried */
	bool		stopped;		/* cut, or an event failed */
	bool		freed;			/* an item others waited for is gone */
} PjSlice;

typedef struct PjBatch
{
	const PjApplyRequest *request;
	PjApplyResult *result;
	const PjProjection *projection;
	int32		books;			/* the number of the pair's offsets and items */
	const PjKind *kind;
	const char *tenant;
	PjOffset   *offsets;		/* of the ranges' aggregates; kept up to date
								 * as events are applied */
	PjSlice    *slices;			/* one for each range, or just one */
	int			nslices;
	PjEvent   **events;			/* all slices', one behind the other */
	PjItem	   *items;			/* of the events */
	int			nevents;
	int		   *slice_of;		/* index of each event's slice */
	int		   *offset_of;		/* index of its aggregate's offset */
	int		   *before;			/* index of its aggregate's event before it,
								 * or -1 */
	int64	   *stale;			/* positions of given events that turned out
								 * to be applied already */
	int			nstale;
	int			failed_at;		/* if only tried: the event that failed */
	ErrorData  *error;			/* and its error, or NULL */
	bool		by_log;			/* in log order */
	bool		loaded;			/* from the log, that is; else as given */
	bool		entered;		/* our own context, to run SQL */
	PjContext	saved;
} PjBatch;

/* batch.c */
extern bool pj_batch_is_read(const PjBatch *batch);
extern bool pj_batch_is_new(const PjBatch *batch, int i);
extern bool pj_batch_is_reread(const PjBatch *batch, const PjEvent *event,
							   const PjPair *pair);
extern void pj_batch_enter(PjBatch *batch);

extern void pj_batch_load(PjBatch *batch);
extern ErrorData *pj_batch_apply_piece(PjBatch *batch, int lo, int hi,
									   int *failed_at);
extern bool pj_batch_run_all(PjBatch *batch);
extern void pj_batch_finish(PjBatch *batch);
extern void pj_batch_finish_try(PjBatch *batch);

#endif							/* PJ_BATCH_H */
