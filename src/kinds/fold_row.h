/*
 * fold_row.h
 *	  The rows a fold works on: read by key, changed in memory, written once.
 */
#ifndef PJ_FOLD_ROW_H
#define PJ_FOLD_ROW_H

#include "base/compat.h"
#include "access/skey.h"
#include "nodes/execnodes.h"
#include "utils/rel.h"

#include "registry/projection.h"
#include "state/digest.h"

/* Which column is which. */
typedef struct PjFoldColumns
{
	AttrNumber	tenant;
	AttrNumber	key;
	AttrNumber	event_id;
	AttrNumber	version;
	AttrNumber	log_seq;		/* 0 unless the key is not the aggregate */
} PjFoldColumns;

/* A row, as far as events have been folded into it. */
typedef struct PjFoldRow
{
	Datum		key;			/* as the column's type has it */
	bool		stored;			/* the table has it, at "place" */
	ItemPointerData place;
	bool		present;		/* there is one now */
	bool		changed;		/* it is to be written */
	Datum	   *values;			/* of all columns */
	bool	   *nulls;
	bool	   *owned;			/* which values have memory of their own */
	HeapTuple	tuple;			/* whose the others are, or NULL */
	Size		size;			/* of that, if it is not as it was read */
	bool		loaded;			/* the table has been looked at */
	bool		touched;		/* some event has been folded into it */
	PjDigest	before;			/* its hash before that; zero if there was
								 * none, or digests are not kept */
} PjFoldRow;

/* The target while a batch is folded. */
typedef struct PjFoldTarget
{
	Relation	heap;
	Relation	store;			/* where rows are: the same, or a copy that is
								 * being built aside */
	Relation	index;			/* the store's primary key */
	TupleDesc	desc;			/* of the rows as a type */
	PjFoldColumns columns;
	Datum		tenant;			/* as the column's type has it */
	EState	   *estate;
	ResultRelInfo *info;		/* of the heap, for its constraints */
	ResultRelInfo *store_info;
	TupleTableSlot *slot;		/* for a row in memory */
	MemoryContext context;		/* of the rows */
	Size		bytes;			/* in values that rows have got since they
								 * were read */
} PjFoldTarget;

extern void pj_fold_columns(Relation heap, bool other_key,
							PjFoldColumns *columns);
extern Datum pj_id_as(Datum value, Form_pg_attribute attribute);

extern void pj_fold_open(PjFoldTarget *target, const PjProjection *projection,
						 Oid relid, Oid table, const char *tenant);
extern void pj_fold_key(Relation index, AttrNumber attno, Datum value,
						ScanKey key);
extern void pj_fold_make_room(PjFoldTarget *target, PjFoldRow *rows, int n);
extern void pj_fold_load(PjFoldTarget *target, PjFoldRow *rows, int n);
extern void pj_fold_set(PjFoldTarget *target, PjFoldRow *row, int place,
						Datum value, bool isnull);
extern void pj_fold_forget(PjFoldTarget *target, PjFoldRow *row);
extern void pj_fold_check(PjFoldTarget *target, PjFoldRow *row);
extern void pj_fold_write(PjFoldTarget *target, PjFoldRow *rows, int n);
extern bool pj_fold_has_triggers(Relation heap);
extern void pj_fold_write_now(PjFoldTarget *target, PjFoldRow *row);
extern void pj_fold_close(PjFoldTarget *target);
extern bool pj_fold_equal(PjFoldTarget *target, AttrNumber attno, Datum a,
						  Datum b);
extern bool pj_fold_same(PjFoldTarget *target, AttrNumber attno, Datum a,
						 Datum b);

#endif							/* PJ_FOLD_ROW_H */
