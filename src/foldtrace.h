/*
 * foldtrace.h
 *	  How events have made one row of a fold.
 */
#ifndef PJ_FOLDTRACE_H
#define PJ_FOLDTRACE_H

#include "compat.h"
#include "access/htup.h"

#include "kind.h"

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

#endif							/* PJ_FOLDTRACE_H */
