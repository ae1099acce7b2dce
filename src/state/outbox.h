/*
 * outbox.h
 *	  The outbox.
 */
#ifndef PJ_OUTBOX_H
#define PJ_OUTBOX_H

#include "base/compat.h"
#include "datatype/timestamp.h"
#include "storage/itemptr.h"

#include "log/log_read.h"

typedef enum PjStatus
{
	PJ_NO_ROW,
	PJ_PENDING,
	PJ_FAILED,
	PJ_DEAD
} PjStatus;

/* What the outbox knows about one event. */
typedef struct PjItem
{
	PjStatus	status;
	bool		claimed;		/* its row is locked by this transaction */
	bool		due;			/* if failed: its next attempt is due */
	bool		held;
	bool		replay;			/* as PjEvent.replay */
	int			attempt_count;
	ItemPointerData row;		/* its ctid, if it is claimed */
} PjItem;

/* A claimed item. */
typedef struct PjClaim
{
	PjEvent		event;			/* only the fields stored in the outbox */
	int			range;			/* index of its aggregate's range */
	PjItem		item;
} PjClaim;

/*
 * The rows of the events at positions $2.  Each is looked up with its own
 * index scan: the LIMIT prevents a join, which the planner would do with a
 * sequential scan.
 */
#define PJ_EACH_ITEM(columns, locking) \
	" unnest($2) AS l CROSS JOIN LATERAL (SELECT " columns \
	" FROM projector.apply_outbox" \
	" WHERE projection_id = $1 AND log_seq = l LIMIT 1" locking ") o"

/* A filter for items; 0 matches everything. */
typedef struct PjItemFilter
{
	const int32 *projection_ids;
	int			nprojections;
	Datum		tenant;
	Datum		aggregate;
	int64		sequence;
	int			limit;
} PjItemFilter;

/* New events that wait for a projection. */
typedef struct PjQueued
{
	int32		projection_id;
	PjEvent   **events;
	int			count;
} PjQueued;

extern Datum pj_log_seqs(PjEvent *const *events, int n);
extern void pj_outbox_add(const List *queued);
extern void pj_outbox_enqueue(int32 projection_id, PjEvent *const *events,
							  int n);
extern int	pj_outbox_claim(int32 projection_id, Datum tenant, int limit,
							int64 after, int64 upto, PjClaim **claims);
extern int	pj_outbox_claim_newest(int32 projection_id, Datum tenant,
								   int limit, int64 upto, PjClaim **claims);
extern int	pj_outbox_claim_pending(int32 projection_id, Datum tenant,
									int limit, int64 upto, PjClaim **claims);
extern bool pj_outbox_claim_one(int32 projection_id, Datum tenant,
								Datum aggregate, int64 sequence_number,
								PjClaim *claim);
extern int	pj_outbox_ranges(PjClaim *claims, int n, PjRange **ranges);
extern void pj_outbox_claim_events(int32 projection_id,
								   PjEvent *const *events, int n,
								   PjItem *items);
extern void pj_outbox_delete_rows(const PjItem *const *items, int n);
extern void pj_outbox_delete(int32 projection_id, const int64 *log_seqs,
							 int n);
extern void pj_outbox_fail(int32 projection_id, const PjEvent *event,
						   bool dead, int attempt_count,
						   TimestampTz next_attempt_at, const char *error);
extern int64 pj_outbox_hold(int32 projection_id, Datum tenant,
							const int64 *log_seqs, int n);
extern void pj_outbox_release(int32 projection_id, Datum tenant,
							  Datum *aggregates, int n);
extern int	pj_outbox_pending(int32 projection_id, Datum after, int limit,
							  Datum **tenants);
extern int	pj_outbox_failed(int32 projection_id, Datum after, int limit,
							 Datum **tenants, bool **due);
extern bool pj_outbox_has_due(int32 projection_id, Datum tenant);
extern bool pj_outbox_retry_is_due(int32 projection_id,
								   TimestampTz *next_due);
extern bool pj_outbox_has_dead(int32 projection_id, Datum tenant);
extern bool pj_outbox_blocked(int32 projection_id, Datum tenant);
extern bool pj_outbox_astray(int32 projection_id, Datum tenant, int64 after,
							 int64 upto, const PjEvent *events, int n,
							 PjClaim *claim);
extern void pj_outbox_try(const PjClaim *claims, int n, const char *result);
extern void pj_outbox_untry(int32 projection_id, Datum tenant);
extern void pj_outbox_clear(int32 projection_id, Datum tenant,
							Datum aggregate);
extern void pj_outbox_release_tenant(int32 projection_id, Datum tenant);
extern void pj_outbox_clear_upto(int32 projection_id, Datum tenant,
								 int64 upto);
extern void pj_outbox_unsubscribe(int32 projection_id, Datum event_types);
extern bool pj_outbox_requeue(int32 projection_id, int64 log_seq);
extern int	pj_outbox_broken(const PjItemFilter *filter, int32 **ids,
							 PjClaim **claims);
extern void pj_outbox_sweep(void);

#endif							/* PJ_OUTBOX_H */
