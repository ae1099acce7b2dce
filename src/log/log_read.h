/*
 * log_read.h
 *	  Read the events table.
 */
#ifndef PJ_LOG_READ_H
#define PJ_LOG_READ_H

#include "base/compat.h"
#include "executor/tuptable.h"

#include "base/fetch.h"
#include "log/event.h"

/*
 * A batch ends when its events, or the rows it has produced, exceed this size.
 */
#define PJ_BATCH_BYTES	(16 * 1024 * 1024)

/* The position of an event. */
typedef struct PjPosition
{
	int64		sequence_number;
	int64		log_seq;
	bool		visible;		/* to this transaction's snapshot */
} PjPosition;

/* The tenants in the log, each with the position of its last event. */
typedef struct PjTenants
{
	Datum	   *tenants;
	int64	   *last;
	bool	   *unread;			/* set by pj_cursors_unread() */
	int			count;
} PjTenants;

/* A walk over a tenant's events, aggregate by aggregate. */
typedef struct PjWalk
{
	Datum		tenant;
	Datum		aggregate;		/* the last event read; 0 at the start */
	int64		sequence;
	bool		alone;			/* only this aggregate */
	Datum		end;			/* no aggregate after this one; 0 for all */
	int64		upto;			/* limits on the log position */
	Datum		event_types;	/* an array, or 0 for all */
	Snapshot	snapshot;		/* NULL: use the latest */
} PjWalk;

extern Oid	pj_source_relid(void);
extern struct PjTable *pj_source_table(void);
extern void pj_source_event_of(const Datum *columns, PjEvent *event);
extern Size pj_source_event(TupleTableSlot *slot, PjEvent *event);
extern int	pj_source_load(Datum tenant, const PjRange *ranges, int nranges,
						   Datum event_types, PjEvent **events);
extern int	pj_source_load_some(Datum tenant, const PjRange *ranges,
								int nranges, Datum event_types,
								Size max_bytes, PjEvent **events, bool *cut);
extern int	pj_source_load_log(Datum tenant, int64 after, int64 upto,
							   Datum event_types, int limit,
							   PjEvent **events, bool *more);
extern bool pj_source_load_at(Datum tenant, const PjEvent *const *known,
							  int n, Datum event_types, PjEvent **events);
extern int	pj_source_walk(const PjWalk *walk, int max, PjEvent **events);
extern int64 pj_source_estimate(Datum tenant, int64 after, int64 upto,
								Datum event_types);
extern bool pj_source_complete(Datum tenant, Datum aggregate,
							   int64 after, int64 before);
extern int64 pj_source_last_subscribed(Datum tenant, Datum aggregate,
									   Datum event_types);
extern bool pj_source_has(Datum tenant, Datum aggregate);
extern int64 pj_source_last_of(Datum tenant);
extern int64 pj_source_last_log_seq(void);
extern void pj_source_tenants(PjTenants *all);
extern void pj_source_tenants_after(Datum after, int64 limit, PjTenants *all);

/* log_position.c */
extern bool pj_source_position(Datum tenant, Datum aggregate,
							   int64 sequence_number, PjPosition *position);
extern bool pj_source_predecessor(Datum tenant, Datum aggregate,
								  int64 sequence_number,
								  PjPosition *position);

#endif							/* PJ_LOG_READ_H */
