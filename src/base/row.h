/*
 * row.h
 *	  Updating and deleting rows of our tables without SPI.
 */
#ifndef PJ_ROW_H
#define PJ_ROW_H

#include "base/compat.h"
#include "access/attnum.h"
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

/* What an index was like when we created it. */
#define PJ_MAX_INDEX_KEYS	4

typedef struct PjIndexShape
{
	int			nkeys;
	AttrNumber	keys[PJ_MAX_INDEX_KEYS];
	bool		unique;
	bool		partial;
} PjIndexShape;

extern bool pj_index_is_ours(Oid indexid, const PjIndexShape *shape);
extern bool pj_row_is_ours(Relation heap, int natts, int nchecks);
extern bool pj_row_update(Relation heap, HeapTuple row,
						  const PjRowChange *change);
extern bool pj_row_delete(Relation heap, ItemPointer place);

#endif							/* PJ_ROW_H */
