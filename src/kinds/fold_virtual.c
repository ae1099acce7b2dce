/*
 * fold_virtual.c
 *	  Columns of a fold's target that are computed when they are read.
 *
 * PostgreSQL 18 stores nothing for a virtual generated column.  A query
 * computes it, but rows of a fold are read without a query.  So it is computed
 * here: in memory, and in the table of a build, such a column always has its
 * value.  In the target it is null, as the server expects.
 *
 * The expression of such a column uses built-in functions and types only, so
 * it runs no code of a user.
 */
#include "base/compat.h"

#include "executor/executor.h"
#include "rewrite/rewriteHandler.h"
#include "utils/datum.h"

#include "kinds/fold_virtual.h"

/* Compile the expressions, in the target's executor state. */
void
pj_fold_virtual_open(PjFoldTarget *target)
{
	MemoryContext caller;

	if (!pj_has_virtual(target->heap))
		return;
	caller = MemoryContextSwitchTo(target->estate->es_query_cxt);
	target->virtual_columns = palloc0(sizeof(ExprState *) *
									  target->desc->natts);
	for (int i = 0; i < target->desc->natts; i++)
		if (pj_is_virtual(TupleDescAttr(target->desc, i)))
			target->virtual_columns[i] =
				ExecPrepareExpr((Expr *) pj_virtual_expression(target->heap,
															   i + 1),
								target->estate);
	MemoryContextSwitchTo(caller);
}

/* Compute the columns of a row in memory; the slot has its other columns. */
void
pj_fold_virtual_compute(PjFoldTarget *target, PjFoldRow *row,
						TupleTableSlot *slot)
{
	ExprContext *econtext = GetPerTupleExprContext(target->estate);

	econtext->ecxt_scantuple = slot;
	for (int i = 0; target->virtual_columns && i < target->desc->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(target->desc, i);
		Datum		value;
		bool		isnull;

		if (target->virtual_columns[i] == NULL)
			continue;
		value = ExecEvalExprSwitchContext(target->virtual_columns[i],
										  econtext, &isnull);
		pj_fold_set(target, row, i, isnull ? (Datum) 0 :
					datumCopy(value, attribute->attbyval, attribute->attlen),
					isnull);
	}
}

/* Remove what must not be stored from a row that will be written. */
void
pj_fold_virtual_remove(const PjFoldTarget *target, TupleTableSlot *slot)
{
	if (target->virtual_columns == NULL || target->store != target->heap)
		return;
	for (int i = 0; i < target->desc->natts; i++)
		if (target->virtual_columns[i])
			slot->tts_isnull[i] = true;
}
