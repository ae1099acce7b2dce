/*
 * delta.h
 *	  What appends have applied inline.
 */
#ifndef PJ_DELTA_H
#define PJ_DELTA_H

#include "compat.h"

#include "cursor.h"

extern void pj_delta_add(int32 projection_id, Datum tenant,
						 const PjCounts *counts);
extern void pj_deltas_add_up(void);

#endif							/* PJ_DELTA_H */
