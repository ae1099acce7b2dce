/*
 * registry_row.h
 *	  Read a row of the registry into a PjProjection.
 */
#ifndef PJ_REGISTRY_ROW_H
#define PJ_REGISTRY_ROW_H

#include "base/compat.h"
#include "access/htup.h"
#include "access/tupdesc.h"

#include "registry/projection.h"

extern void pj_registry_read_row(HeapTuple tuple, TupleDesc desc, Oid relid,
								 PjProjection *p);

#endif							/* PJ_REGISTRY_ROW_H */
