/*
 * fold_trace.h
 *	  Show how events have produced one row of a fold.
 */
#ifndef PJ_FOLD_TRACE_H
#define PJ_FOLD_TRACE_H

#include "base/compat.h"
#include "access/htup.h"

#include "kinds/kind.h"

typedef struct PjFoldTrace
{
	Datum		key;			/* of the row, as text */
	HeapTuple	row;			/* the row so far, or NULL; initially its
								 * starting state */
	MemoryContext context;		/* for the row */

	/*
	 * called after each event of the row, with the row as jsonb, or 0 if it
	 * does not exist
	 */
	void		(*watch) (void *arg, const PjEvent *event, Datum state);
	void	   *arg;
} PjFoldTrace;

extern bool pj_fold_can_trace(const PjProjection *projection);
extern void pj_fold_match(PjWork *work, Datum key, bool *matches);
extern void pj_fold_trace(PjWork *work, PjFoldTrace *trace);

#endif							/* PJ_FOLD_TRACE_H */
