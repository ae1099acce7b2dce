/*
 * offset.h
 *	  The last event that a projection has applied for each aggregate.
 */
#ifndef PJ_OFFSET_H
#define PJ_OFFSET_H

#include "base/compat.h"
#include "access/htup.h"

typedef struct PjOffset
{
	Datum		aggregate;
	bool		busy;			/* an open transaction has changed it */
	bool		exists;			/* the row exists */
	int64		last;			/* 0 if the row does not exist */
	HeapTuple	row;			/* a copy; NULL once it has been updated */
} PjOffset;

/* A move of one aggregate's offset. */
typedef struct PjOffsetMove
{
	const PjOffset *from;
	int64		to;
	Datum		event_id;
} PjOffsetMove;

extern void pj_offsets_load(int32 projection_id, Datum tenant,
							PjOffset *offsets, int n);
extern bool pj_offsets_move(int32 projection_id, Datum tenant,
							const PjOffsetMove *moves, int n, bool alone);
extern int	pj_offset_count_error(int32 projection_id, Datum tenant,
								  Datum aggregate, const char *error);
extern void pj_offsets_delete(int32 projection_id, Datum tenant,
							  Datum aggregate);
extern int64 pj_offsets_reset(int32 projection_id, Datum tenant,
							  Datum aggregate);

#endif							/* PJ_OFFSET_H */
