/*
 * delta_table.h
 *	  The table of what inline appends have recorded, for delta.c and
 *	  delta_sum.c.
 */
#ifndef PJ_DELTA_TABLE_H
#define PJ_DELTA_TABLE_H

#include "base/compat.h"

#include "base/fetch.h"

/* The table's columns, in order. */
enum
{
	Anum_projection_id = 1,
	Anum_tenant_id,
	Anum_applied_count,
	Anum_failed_count,
	Anum_dead_count,
	Anum_apply_time,
	Anum_last_applied_at,
	Anum_digest,
	Anum_row_count,
	Anum_layout,
	Anum_last_log_seq,
	Natts = Anum_last_log_seq
};

extern PjTable pj_deltas_table;

#endif							/* PJ_DELTA_TABLE_H */
