/*
 * fold_virtual.h
 *	  Columns of a fold's target that are computed when they are read.
 */
#ifndef PJ_FOLD_VIRTUAL_H
#define PJ_FOLD_VIRTUAL_H

#include "kinds/fold_row.h"

extern void pj_fold_virtual_open(PjFoldTarget *target);
extern void pj_fold_virtual_compute(PjFoldTarget *target, PjFoldRow *row,
									TupleTableSlot *slot);
extern void pj_fold_virtual_remove(const PjFoldTarget *target,
								   TupleTableSlot *slot);

#endif							/* PJ_FOLD_VIRTUAL_H */
