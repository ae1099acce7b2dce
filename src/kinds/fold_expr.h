/*
 * fold_expr.h
 *	  SQL expressions over events and rows, compiled.
 */
#ifndef PJ_FOLD_EXPR_H
#define PJ_FOLD_EXPR_H

#include "base/compat.h"
#include "nodes/execnodes.h"
#include "utils/jsonb.h"
#include "utils/rel.h"

#include "log/log_read.h"

/* An expression for each column, and one for the key. */
typedef struct PjFoldCode
{
	ExprContext *econtext;
	TupleTableSlot *event_slot; /* "e" */
	TupleTableSlot *row_slot;	/* "s" */
	int			ncolumns;		/* 0 if the fold is a function */
	AttrNumber *attnos;			/* the columns' numbers */
	ExprState **columns;
	ExprState **defaults;		/* per column of the table; NULL if none */
	ExprState  *key;			/* NULL if it is the aggregate */
	bool		plain;			/* no expression depends on a setting or on
								 * users' code */
} PjFoldCode;

extern PjFoldCode *pj_fold_compile(Relation target, Jsonb *fold_columns,
								   const char *key,
								   const char **ignored);
extern void pj_fold_check_not_null(const PjFoldCode *code, Relation target,
								   bool by_log);
extern void pj_fold_set_event(PjFoldCode *code, const PjEvent *event);

#endif							/* PJ_FOLD_EXPR_H */
