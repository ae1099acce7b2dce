/*
 * row.h
 *	  Updating and deleting rows of our tables without SPI.
 */
#ifndef PJ_ROW_H
#define PJ_ROW_H

#include "base/compat.h"
#include "access/htup.h"
#include "utils/relcache.h"

/* Some columns of a row, and their new values. */
typedef struct PjRowChange
{
	int			count;
	int		   *columns;
	Datum	   *values;
	bool	   *nulls;
} PjRowChange;

extern bool pj_row_is_ours(Relation heap, int natts, int nchecks);
extern bool pj_row_update(Relation heap, HeapTuple row,
						  const PjRowChange *change);
extern bool pj_row_delete(Relation heap, ItemPointer place);

#endif							/* PJ_ROW_H */
