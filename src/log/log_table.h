/*
 * log_table.h
 *	  The events table, only for the files of this folder.
 */
#ifndef PJ_LOG_TABLE_H
#define PJ_LOG_TABLE_H

#include "base/compat.h"

#include "base/fetch.h"

/* The table's columns, in order. */
enum
{
	Anum_log_seq = 1,
	Anum_tenant_id,
	Anum_aggregate_id,
	Anum_sequence_number,
	Anum_event_id,
	Anum_event_type,
	Anum_payload,
	Anum_metadata,
	Anum_payload_hash,
	Anum_recorded_at
};

extern PjTable pj_events_table;

#endif							/* PJ_LOG_TABLE_H */
