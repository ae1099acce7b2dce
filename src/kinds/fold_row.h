/*
 * fold_row.h
 *	  The rows of a fold: read by key, changed in memory, written once.
 */
#ifndef PJ_FOLD_ROW_H
#define PJ_FOLD_ROW_H

#include "base/compat.h"
#include "access/skey.h"
#include "nodes/execnodes.h"
#include "utils/rel.h"

#include "registry/projection.h"
#include "state/digest.h"

/* The numbers of the columns that the runtime uses. */
typedef struct PjFoldColumns
{
	AttrNumber	tenant;
	AttrNumber	key;
	AttrNumber	event_id;
	AttrNumber	version;
	AttrNumber	log_seq;		/* 0 if the key is the aggregate */
} PjFoldColumns;

/* A row, with the events folded into it so far. */
typedef struct PjFoldRow
{
	Datum		key;			/* in the column's type */
	bool		stored;			/* it is in the table, at "place" */
	ItemPointerData place;
	bool		present;		/* the row exists now */
	bool		changed;		/* it must be written */
	Datum	   *values;			/* values of all columns */
	bool	   *nulls;
	bool	   *owned;			/* which values are separately allocated */
	HeapTuple	tuple;			/* holds the other values, or NULL */
	Size		size;			/* of the tuple, unless it is as read */
	bool		loaded;			/* it has been searched for in the table */
	bool		touched;		/* an event has been folded into it */
	PjDigest	before;			/* its hash before that; zero if it did not
								 * exist, or if digests are not kept */
} PjFoldRow;

/* The target while a batch is folded. */
typedef struct PjFoldTarget
{
	Relation	heap;
	Relation	store;			/* where rows are stored: the heap, or a copy
								 * that a rebuild is building */
	Relation	index;			/* the store's primary key */
	TupleDesc	desc;			/* the rows' type */
	PjFoldColumns columns;
	Datum		tenant;			/* in the column's type */
	EState	   *estate;
	ResultRelInfo *info;		/* of the heap, for constraints */
	ResultRelInfo *store_info;
	TupleTableSlot *slot;		/* for a row in memory */
	ExprState **virtual_columns;	/* expressions of virtual generated
									 * columns, by number, or NULL */
	MemoryContext context;		/* for the rows */
	Size		bytes;			/* size of the values set since the rows were
								 * read */
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
