/*
 * offset_add.h
 *	  Inserting offsets without SQL.
 */
#ifndef PJ_OFFSET_ADD_H
#define PJ_OFFSET_ADD_H

#include "state/offset.h"

extern bool pj_offsets_add(int32 projection_id, Datum tenant,
						   const PjOffsetMove *moves, int n);

#endif							/* PJ_OFFSET_ADD_H */
