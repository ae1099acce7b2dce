/*
 * fold_batch.h
 *	  A batch that is being folded: declarations shared by the fold_*.c
 *	  files.
 */
#ifndef PJ_FOLD_BATCH_H
#define PJ_FOLD_BATCH_H

#include "base/compat.h"
#include "fmgr.h"

#include "kinds/fold_cache.h"
#include "kinds/fold_row.h"
#include "kinds/kind.h"

/* A batch being folded. */
typedef struct PjFoldBatch
{
	PjWork	   *work;
	PjKeptFold *kept;
	PjFoldTarget target;
	PjFoldRow  *rows;
	int			nrows;
	int		   *row_of;			/* index of each event's row; -1 for none */
	FmgrInfo	function;
	TupleDesc	event_desc;
	int			timeout_ms;
	MemoryContext caller;		/* the caller's context */
	MemoryContext context;		/* for the whole batch */
	volatile AttrNumber at_column;	/* the column being computed, or 0 */
	volatile bool at_default;	/* its default is being computed */
	MemoryContext per_event;
} PjFoldBatch;

/* fold_key.c */
extern bool pj_fold_event_key(PjFoldBatch *batch, const PjEvent *event,
							  Datum *key);
extern void pj_fold_find_rows(PjFoldBatch *batch);

/* fold_event.c */
extern bool pj_fold_has_seen(const PjFoldBatch *batch, const PjFoldRow *row,
							 const PjEvent *event);
extern void pj_fold_check_found(PjFoldBatch *batch, const PjFoldRow *row,
								const PjEvent *event);
extern void pj_fold_event(PjFoldBatch *batch, PjFoldRow *row,
						  const PjEvent *event);

/* fold_batch.c */
extern void pj_fold_begin(PjFoldBatch *batch);
extern void pj_fold_end(PjFoldBatch *batch);
extern void pj_fold_run(void *arg);
extern void pj_fold_flush(void *arg);

#endif							/* PJ_FOLD_BATCH_H */
