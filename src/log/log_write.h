/*
 * log_write.h
 *	  Write to the events table.
 */
#ifndef PJ_LOG_WRITE_H
#define PJ_LOG_WRITE_H

#include "base/compat.h"

/* New events of one aggregate, with columns as arrays. */
typedef struct PjNewEvents
{
	Datum		tenant;
	Datum		aggregate;
	int			count;
	Datum	   *event_ids;		/* 0 if the table should generate one */
	Datum	   *event_types;
	Datum	   *payloads;
	Datum	   *metadatas;
} PjNewEvents;

/* What the log knows about an event_id. */
typedef enum PjKnown
{
	PJ_ID_UNKNOWN,
	PJ_ID_SAME,
	PJ_ID_DIFFERENT
} PjKnown;

extern PjKnown pj_source_known(const PjNewEvents *events, int i,
							   int64 *sequence_number);
extern void pj_source_complete_row(Datum *columns);
extern int	pj_source_insert(const PjNewEvents *events, int64 after);

#endif							/* PJ_LOG_WRITE_H */
