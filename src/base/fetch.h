/*
 * fetch.h
 *	  Read rows of our tables by index, without SPI.
 */
#ifndef PJ_FETCH_H
#define PJ_FETCH_H

#include "base/compat.h"
#include "access/genam.h"
#include "access/skey.h"
#include "datatype/timestamp.h"
#include "executor/tuptable.h"
#include "utils/rel.h"
#include "utils/snapshot.h"

/* A table that is read this way.  The file that owns the table defines one. */
typedef struct PjTable
{
	const char *name;
	const char *index_name;		/* its primary key; NULL if it has none */

	/* set by fetch.c */
	Oid			relid;			/* invalid until looked up */
	Oid			indexid;
	uint64		changes;		/* how often it has changed */
	bool		registered;
	struct PjTable *next;
} PjTable;

typedef struct PjFetch
{
	Relation	heap;
	Relation	index;
	IndexScanDesc scan;
	TupleTableSlot *slot;
} PjFetch;

extern Oid	pj_relid(PjTable *table);
extern Oid	pj_indexid(PjTable *table);
extern void pj_key_int4(ScanKey key, AttrNumber attno, int32 value);
extern void pj_key_int8(ScanKey key, AttrNumber attno, int64 value);
extern void pj_key_int8_range(ScanKey keys, AttrNumber attno, int64 after,
							  int64 upto);
extern void pj_key_time_upto(ScanKey key, AttrNumber attno, TimestampTz time);
extern void pj_key_text(ScanKey key, AttrNumber attno, Datum value);
extern void pj_key_text_after(ScanKey key, AttrNumber attno, Datum value);
extern void pj_key_text_from(ScanKey key, AttrNumber attno, Datum value);
extern void pj_key_text_upto(ScanKey key, AttrNumber attno, Datum value);
extern void pj_key_text_before(ScanKey key, AttrNumber attno, Datum value);
extern void pj_deform(HeapTuple tuple, TupleDesc desc, Datum **columns,
					  bool **nulls);
extern void pj_fetch_begin(PjFetch *fetch, PjTable *table, Snapshot snapshot,
						   int nkeys, ScanKey keys);
extern void pj_fetch_again(PjFetch *fetch, int nkeys, ScanKey keys);
extern HeapTuple pj_fetch_next(PjFetch *fetch, ScanDirection direction);
extern void pj_fetch_end(PjFetch *fetch);
extern HeapTuple pj_fetch_copy(PjTable *table, int nkeys, ScanKey keys);

#endif							/* PJ_FETCH_H */
