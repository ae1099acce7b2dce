/*
 * batch.h
 *	  A batch while it is being applied: declarations shared by apply.c and
 *	  its parts.
 *
 * apply.c loads the batch (batch_load.c), applies it piece by piece
 * (batch_piece.c) and finishes it (batch_finish.c).  These parts do not use
 * each other.
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
 * Events that must be applied in order: those of one aggregate, in sequence,
 * or all of the batch, in log order.
 */
typedef struct PjSlice
{
	int			first;			/* index in PjBatch.events */
	int			end;			/* one after the last that may be applied */
	int			loaded_end;		/* one after the last loaded */
	int			applied_end;	/* one after the last applied or tried */
	bool		stopped;		/* it was cut, or an event has failed */
	bool		freed;			/* an item that others waited for is gone */
} PjSlice;

typedef struct PjBatch
{
	const PjApplyRequest *request;
	PjApplyResult *result;
	const PjProjection *projection;
	int32		books;			/* id of the pair's offsets and items */
	const PjKind *kind;
	const char *tenant;
	PjOffset   *offsets;		/* of the ranges' aggregates; updated as
								 * events are applied */
	PjSlice    *slices;			/* one for each range, or one in all */
	int			nslices;
	PjEvent   **events;			/* of all slices, one after the other */
	PjItem	   *items;			/* one per event */
	int			nevents;
	int		   *slice_of;		/* index of each event's slice */
	int		   *offset_of;		/* index of its aggregate's offset */
	int		   *before;			/* index of the aggregate's previous event, or
								 * -1 */
	int64	   *stale;			/* positions of given events that were already
								 * applied */
	int			nstale;
	int			failed_at;		/* in a trial: index of the event that failed */
	ErrorData  *error;			/* its error, or NULL */
	bool		by_log;			/* in log order */
	bool		loaded;			/* loaded from the log, rather than given */
	bool		entered;		/* pj_enter_internal() has been called */
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
