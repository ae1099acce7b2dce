/*
 * log_look.h
 *	  What the views want to know of the log.
 */
#ifndef PJ_LOG_LOOK_H
#define PJ_LOG_LOOK_H

#include "base/compat.h"
#include "datatype/timestamp.h"

#include "base/fetch.h"
#include "log/log_read.h"

/* Reading a tenant's events in the order of the log. */
typedef struct PjLogLook
{
	Snapshot	snapshot;
	MemoryContext context;		/* of the scan */
	PjFetch		fetch;
	bool		open;
	bool		at_event;
} PjLogLook;

/* What is wanted of an event; texts are good until the next one. */
typedef struct PjLogEntry
{
	int64		log_seq;
	Datum		aggregate;
	int64		sequence_number;
	Datum		event_type;
} PjLogEntry;

/* The events at the end of the table, most of which are the last ones. */
typedef struct PjLogEndEvent
{
	int64		log_seq;
	TimestampTz recorded_at;
	Datum		event_type;
} PjLogEndEvent;

typedef struct PjLogEnd
{
	PjLogEndEvent *events;		/* in no particular order */
	int			nevents;
	bool		is_all;			/* the table has no others */
} PjLogEnd;

extern void pj_log_look_end_of_table(Snapshot snapshot, int max_events,
									 PjLogEnd *end);
extern void pj_log_look_init(PjLogLook *look, Snapshot snapshot);
extern void pj_log_look_tenants(PjLogLook *look, Datum only,
								const Datum *known, int nknown,
								PjTenants *all);
extern void pj_log_look_between(PjLogLook *look, Datum tenant, int64 after,
								int64 upto);
extern bool pj_log_look_next(PjLogLook *look, PjLogEntry *entry);
extern TimestampTz pj_log_look_recorded_at(PjLogLook *look);
extern void pj_log_look_end(PjLogLook *look);

#endif							/* PJ_LOG_LOOK_H */
