/*
 * outbox_look.h
 *	  What the views want to know of a pair's items.
 */
#ifndef PJ_OUTBOX_LOOK_H
#define PJ_OUTBOX_LOOK_H

#include "base/compat.h"
#include "datatype/timestamp.h"

#include "base/by_pair.h"

/* No view counts further than this, nor reads more rows to do so. */
#define PJ_MAX_COUNT	10000

/* A failed or dead item. */
typedef struct PjBrokenItem
{
	int64		log_seq;		/* 0 if there is none */
	char	   *aggregate;
	int64		sequence_number;
	int			attempts;
	TimestampTz next_attempt_at;
	char	   *error;			/* or NULL */
} PjBrokenItem;

typedef struct PjOutboxCounts
{
	int64		items;
	int64		oldest;			/* the first of their positions, or 0 */
	int64		pending;
	int64		untried;		/* pending, and not tried in mode shadow */
	int64		held;
	int64		would_fail;		/* in mode shadow */
	int64		failed;
	int64		dead;
	TimestampTz dead_since;
	PjBrokenItem first_failed;	/* in the order of the log */
	PjBrokenItem first_dead;
} PjOutboxCounts;

/* The readers of one look at many pairs. */
typedef struct PjOutboxLook
{
	int64		limit;			/* pending and held items are counted up to
								 * this */
	PjByPair	claimable;
	PjByPair	blocked;
	PjByPair	failed;
	PjByPair	dead;
} PjOutboxLook;

/* An item of the outbox. */
typedef struct PjItemKey
{
	int32		projection_id;
	Datum		tenant;
	Datum		aggregate;
	int64		sequence_number;
	int64		log_seq;
} PjItemKey;

extern bool pj_outbox_waits(const PjItemKey *item, bool log_ordered,
							Snapshot snapshot);
extern void pj_outbox_look_init(PjOutboxLook *look, Snapshot snapshot,
								bool one_tenant);
extern void pj_outbox_look(PjOutboxLook *look, int32 projection_id,
						   Datum tenant, PjOutboxCounts *counts);
extern void pj_outbox_look_back(PjOutboxLook *look, int32 projection_id,
								Datum tenant);
extern void pj_outbox_look_end(PjOutboxLook *look);

#endif							/* PJ_OUTBOX_LOOK_H */
