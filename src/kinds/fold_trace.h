/*
 * fold_trace.h
 *	  How events have made one row of a fold.
 */
#ifndef PJ_FOLD_TRACE_H
#define PJ_FOLD_TRACE_H

#include "base/compat.h"
#include "access/htup.h"

#include "kinds/kind.h"

typedef struct PjFoldTrace
{
	Datum		key;			/* of the row, as text */
	HeapTuple	row;			/* as it is, or NULL; it starts so */
	MemoryContext context;		/* of that */

	/* called with each event of the row, and the row after it: jsonb, or 0 */
	void		(*watch) (void *arg, const PjEvent *event, Datum state);
	void	   *arg;
} PjFoldTrace;

extern bool pj_fold_can_trace(const PjProjection *projection);
extern void pj_fold_trace(PjWork *work, PjFoldTrace *trace);

#endif							/* PJ_FOLD_TRACE_H */
