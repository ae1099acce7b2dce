/*
 * offset_table.h
 *	  The table of offsets, only for the files that use it without SQL.
 */
#ifndef PJ_OFFSET_TABLE_H
#define PJ_OFFSET_TABLE_H

#include "base/compat.h"

#include "base/fetch.h"

/* The columns of table projection_offsets, in order. */
enum
{
	Anum_projection_id = 1,
	Anum_tenant_id,
	Anum_aggregate_id,
	Anum_last_sequence_number,
	Anum_last_event_id,
	Anum_error_count,
	Anum_last_error,
	Anum_updated_at,
	Natts = Anum_updated_at
};

extern PjTable pj_offsets_table;

#endif							/* PJ_OFFSET_TABLE_H */
