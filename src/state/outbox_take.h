/*
 * outbox_take.h
 *	  Claiming pending items without SQL.
 */
#ifndef PJ_OUTBOX_TAKE_H
#define PJ_OUTBOX_TAKE_H

#include "state/outbox.h"

/* What to claim. */
typedef struct PjTake
{
	int32		projection_id;
	Datum		tenant;
	int			limit;
	TimestampTz due;			/* failed items that are due now */
	int64		after;			/* pending items after this log position ... */
	int64		upto;			/* ... and up to this one */
} PjTake;

extern int	pj_outbox_take(const PjTake *take, PjClaim **claims);

#endif							/* PJ_OUTBOX_TAKE_H */
