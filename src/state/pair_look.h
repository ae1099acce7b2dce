/*
 * pair_look.h
 *	  What the views want to know of a pair.
 */
#ifndef PJ_PAIR_LOOK_H
#define PJ_PAIR_LOOK_H

#include "base/compat.h"
#include "datatype/timestamp.h"

#include "base/by_pair.h"
#include "log/log_look.h"
#include "state/outbox_look.h"

/* What appends have applied inline to one pair. */
typedef struct PjDeltaSum
{
	int32		projection_id;
	Datum		tenant;
	int64		applied;
	int64		failed;
	int64		dead;
	int64		batches;
	Interval   *apply_time;
	TimestampTz last_applied_at;	/* 0 if nothing was applied */
	Datum		digest;			/* 0 if there is none */
	int64		row_count;
} PjDeltaSum;

/* The readers of one look at many pairs. */
typedef struct PjPairLook
{
	Snapshot	snapshot;
	MemoryContext context;
	PjByPair	cursors;
	PjByPair	digests;
	PjByPair	failures;
	PjByPair	runs;
	PjByPair	offsets;
	PjOutboxLook outbox;
	PjLogLook	log;
	PjDeltaSum *deltas;			/* in the order of pairs */
	int			ndeltas;
} PjPairLook;

/* A row of projection_cursors; texts are 0 and times are 0 if null. */
typedef struct PjCursorRow
{
	int64		last_log_seq;
	Datum		state;
	Datum		mode;
	Datum		paused_by;
	Datum		pause_reason;
	TimestampTz paused_at;
	Datum		definition_hash;
} PjCursorRow;

/* What has been done for a pair, by whomever. */
typedef struct PjPairTotals
{
	int64		applied;
	int64		failed;
	int64		dead;
	int64		batches;
	Interval   *apply_time;
	TimestampTz last_applied_at;
	Datum		digest;
	int64		row_count;
} PjPairTotals;

typedef struct PjErrors
{
	int64		count;
	char	   *last;			/* the latest message */
	TimestampTz last_at;
} PjErrors;

typedef struct PjActiveRun
{
	int64		id;				/* 0 if there is none */
	char	   *mode;
	bool		queued;
	int64		processed;
	int64		total;			/* at least what has been processed */
} PjActiveRun;

/* Which events of a tenant a pair has yet to read. */
typedef struct PjUnread
{
	int32		projection_id;
	Datum		tenant;
	int64		after;			/* this position */
	const Datum *types;			/* event types, sorted; NULL for all */
	int			ntypes;
	bool		log_ordered;	/* the position decides alone */
	bool		items;			/* some may be in the outbox */
	int64		limit;			/* no more are counted */

	/* the result */
	int			looked;			/* so many events were read */
	int64		count;
	int64		oldest;			/* the first one's position, or 0 */
	TimestampTz oldest_at;
} PjUnread;

extern void pj_pair_look_init(PjPairLook *look, Snapshot snapshot,
							  bool one_tenant);
extern void pj_pair_look_deltas(PjPairLook *look, Datum tenant);
extern int	pj_pair_look_known(PjPairLook *look, int32 projection_id,
							   Datum **tenants);
extern bool pj_pair_look_cursor(PjPairLook *look, Datum tenant,
								PjCursorRow *row);
extern void pj_pair_look_totals(PjPairLook *look, int32 projection_id,
								Datum tenant, bool digests,
								PjPairTotals *totals);
extern void pj_pair_look_errors(PjPairLook *look, int32 projection_id,
								Datum tenant, PjErrors *errors);
extern void pj_pair_look_run(PjPairLook *look, int32 projection_id,
							 Datum tenant, PjActiveRun *run);
extern void pj_pair_look_unread(PjPairLook *look, PjUnread *unread);
extern TimestampTz pj_pair_look_recorded_at(PjPairLook *look, Datum tenant,
											int64 log_seq);
extern TimestampTz pj_pair_look_failed_since(PjPairLook *look,
											 int32 projection_id,
											 int64 log_seq);
extern void pj_pair_look_end(PjPairLook *look);

#endif							/* PJ_PAIR_LOOK_H */
