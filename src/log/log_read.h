/*
 * log_read.h
 *	  The table events are read from.
 */
#ifndef PJ_LOG_READ_H
#define PJ_LOG_READ_H

#include "base/compat.h"
#include "executor/tuptable.h"

#include "base/fetch.h"

/* A batch ends when so many bytes are in its events, or in rows it has made. */
#define PJ_BATCH_BYTES	(16 * 1024 * 1024)

/* The columns of type projector.event. */
typedef enum PjEventColumn
{
	PJ_EVENT_LOG_SEQ,
	PJ_EVENT_TENANT_ID,
	PJ_EVENT_AGGREGATE_ID,
	PJ_EVENT_SEQUENCE_NUMBER,
	PJ_EVENT_EVENT_ID,
	PJ_EVENT_EVENT_TYPE,
	PJ_EVENT_PAYLOAD,
	PJ_EVENT_METADATA,
	PJ_EVENT_RECORDED_AT,
	PJ_EVENT_COLUMNS
} PjEventColumn;

typedef struct PjEvent
{
	Datum		values[PJ_EVENT_COLUMNS];	/* none is null */
	Datum		payload_hash;
	bool		replay;			/* not just appended: set by apply */
	bool		skipped;		/* to be passed over: likewise */
	int			range;			/* index of its aggregate's range */
} PjEvent;

#define pj_event_log_seq(e) \
	DatumGetInt64((e)->values[PJ_EVENT_LOG_SEQ])
#define pj_event_sequence(e) \
	DatumGetInt64((e)->values[PJ_EVENT_SEQUENCE_NUMBER])
#define pj_event_tenant(e)		((e)->values[PJ_EVENT_TENANT_ID])
#define pj_event_aggregate(e)	((e)->values[PJ_EVENT_AGGREGATE_ID])
#define pj_event_type(e)		((e)->values[PJ_EVENT_EVENT_TYPE])
#define pj_event_id(e)			((e)->values[PJ_EVENT_EVENT_ID])

/* A place in an aggregate. */
typedef struct PjPosition
{
	int64		sequence_number;
	int64		log_seq;
	bool		visible;		/* to this transaction's snapshot */
} PjPosition;

/* Which events of one aggregate to apply. */
typedef struct PjRange
{
	Datum		aggregate;
	int64		after;			/* what to load: those after this one ... */
	int64		upto;			/* ... up to this one */
	int64		from;			/* the first of the given events */
	int			own;			/* how many events are given, or items claimed */
	int			max;			/* load at most so many */
} PjRange;

/* The tenants in the log, each with the position of its last event. */
typedef struct PjTenants
{
	Datum	   *tenants;
	int64	   *last;
	bool	   *unread;			/* set by pj_cursors_unread() */
	int			count;
} PjTenants;

/* Reading a tenant's events, aggregate by aggregate. */
typedef struct PjWalk
{
	Datum		tenant;
	Datum		aggregate;		/* behind this event; 0 for the first */
	int64		sequence;
	bool		alone;			/* of this aggregate only */
	int64		upto;			/* positions in the log */
	Datum		event_types;	/* an array, or 0 for all */
	Snapshot	snapshot;		/* what it sees; NULL: what is there by then */
} PjWalk;

/* New events of one aggregate, the columns as arrays. */
typedef struct PjNewEvents
{
	Datum		tenant;
	Datum		aggregate;
	int			count;
	Datum	   *event_ids;		/* 0 where the table shall choose one */
	Datum	   *event_types;
	Datum	   *payloads;
	Datum	   *metadatas;
} PjNewEvents;

/* What is known of an event_id. */
typedef enum PjKnown
{
	PJ_ID_UNKNOWN,
	PJ_ID_SAME,
	PJ_ID_DIFFERENT
} PjKnown;

extern bool pj_text_equal(Datum a, Datum b);
extern int	pj_text_compare(Datum a, Datum b);
extern int	pj_texts_unique(Datum *texts, int n);
extern bool pj_text_among(Datum value, const Datum *sorted, int n);
extern void pj_events_sort(PjEvent *events, int n);
extern void pj_events_sort_by_log(PjEvent *events, int n);
extern int	pj_events_ranges(PjEvent *events, int n, PjRange **ranges);

extern Oid	pj_event_type_oid(void);
extern Oid	pj_source_relid(void);
extern struct PjTable *pj_source_table(void);
extern Size pj_source_event(TupleTableSlot *slot, PjEvent *event);
extern bool pj_source_position(Datum tenant, Datum aggregate,
							   int64 sequence_number, PjPosition *position);
extern PjKnown pj_source_known(const PjNewEvents *events, int i,
							   int64 *sequence_number);
extern int	pj_source_insert(const PjNewEvents *events,
							 const PjPosition *last);
extern int	pj_source_load(Datum tenant, const PjRange *ranges, int nranges,
						   Datum event_types, PjEvent **events);
extern int	pj_source_load_some(Datum tenant, const PjRange *ranges,
								int nranges, Datum event_types,
								Size max_bytes, PjEvent **events, bool *cut);
extern int	pj_source_load_log(Datum tenant, int64 after, int64 upto,
							   Datum event_types, int limit,
							   PjEvent **events, bool *more);
extern int	pj_source_walk(const PjWalk *walk, int max, PjEvent **events);
extern int64 pj_source_estimate(Datum tenant, int64 after, int64 upto,
								Datum event_types);
extern bool pj_source_complete(Datum tenant, Datum aggregate,
							   int64 after, int64 before);
extern int64 pj_source_last_subscribed(Datum tenant, Datum aggregate,
									   Datum event_types);
extern bool pj_source_has(Datum tenant, Datum aggregate);
extern int64 pj_source_last_log_seq(void);
extern void pj_source_tenants(PjTenants *all);
extern void pj_source_check_hash(const PjEvent *event);

#endif							/* PJ_LOG_READ_H */
