/*
 * batch.h
 *	  A batch while it is being applied: what apply.c and settle.c share.
 */
#ifndef PJ_BATCH_H
#define PJ_BATCH_H

#include "compat.h"

#include "apply.h"
#include "context.h"
#include "kind.h"
#include "offset.h"
#include "outbox.h"

/* One aggregate's events, in sequence. */
typedef struct PjSlice
{
	PjOffset   *offset;			/* kept up to date as events are applied */
	int			first;			/* in PjBatch.events */
	int			end;			/* behind the last that may be applied */
	int			loaded_end;		/* behind the last loaded */
	int			applied_end;	/* behind the last applied */
	bool		stopped;		/* cut, or an event failed */
	bool		freed;			/* an item others waited for is gone */
} PjSlice;

typedef struct PjBatch
{
	PjApply    *apply;
	const PjProjection *projection;
	const PjKind *kind;
	const char *tenant;
	PjOffset   *offsets;
	PjSlice    *slices;
	int			nslices;
	PjEvent   **events;			/* all slices', one behind the other */
	PjItem	   *items;			/* of the events */
	int			nevents;
	int		   *slice_of;		/* index of each event's slice */
	bool		loaded;			/* from the log, that is; else as given */
	bool		entered;		/* our own context, to run SQL */
	PjContext	saved;
} PjBatch;

extern bool pj_batch_is_new(const PjBatch *batch, int i);
extern void pj_batch_settle(PjBatch *batch);

#endif							/* PJ_BATCH_H */
