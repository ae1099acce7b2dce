/*
 * event.h
 *	  Events, and ranges of an aggregate's events.
 */
#ifndef PJ_EVENT_H
#define PJ_EVENT_H

#include "base/compat.h"

#include "base/text.h"

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
	bool		replay;			/* set by apply: it was not just appended */
	bool		skipped;		/* set by apply: it must be skipped */
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

/* A range of one aggregate's events to apply. */
typedef struct PjRange
{
	Datum		aggregate;
	int64		after;			/* load events after this one ... */
	int64		upto;			/* ... up to this one */
	int64		from;			/* the first of the given events */
	int			own;			/* number of given events or claimed items */
	int			max;			/* load at most this many */
} PjRange;

extern Oid	pj_event_type_oid(void);
extern void pj_events_sort(PjEvent *events, int n);
extern void pj_events_sort_by_log(PjEvent *events, int n);
extern int	pj_events_ranges(PjEvent *events, int n, PjRange **ranges);

extern char *pj_event_trace(const PjEvent *event, const char *name);
extern Datum pj_payload_hash(Datum payload);
extern bool pj_payload_matches(Datum payload, Datum hash);
extern void pj_event_check_hash(const PjEvent *event);

#endif							/* PJ_EVENT_H */
