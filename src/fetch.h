/*
 * fetch.h
 *	  Reading rows of our tables by index, without SPI.
 */
#ifndef PJ_FETCH_H
#define PJ_FETCH_H

#include "compat.h"
#include "access/genam.h"
#include "access/skey.h"
#include "utils/rel.h"
#include "utils/snapshot.h"

/* The tables read like this, each by its primary key. */
typedef enum PjTable
{
	PJ_EVENTS,
	PJ_PROJECTIONS,
	PJ_OFFSETS,
	PJ_CURSORS,
	PJ_TABLES
} PjTable;

typedef struct PjFetch
{
	Relation	heap;
	Relation	index;
	SysScanDesc scan;
} PjFetch;

extern Oid	pj_relid(PjTable table);
extern void pj_key_int4(ScanKey key, AttrNumber attno, int32 value);
extern void pj_key_int8(ScanKey key, AttrNumber attno, int64 value);
extern void pj_key_text(ScanKey key, AttrNumber attno, Datum value);
extern void pj_deform(HeapTuple tuple, TupleDesc desc, Datum **columns,
					  bool **nulls);
extern void pj_fetch_begin(PjFetch *fetch, PjTable table, Snapshot snapshot,
						   int nkeys, ScanKey keys);
extern HeapTuple pj_fetch_next(PjFetch *fetch, ScanDirection direction);
extern void pj_fetch_end(PjFetch *fetch);

#endif							/* PJ_FETCH_H */
