/*
 * outbox_table.h
 *	  The outbox's table, only for the files that use it without SQL.
 */
#ifndef PJ_OUTBOX_TABLE_H
#define PJ_OUTBOX_TABLE_H

#include "base/compat.h"

#include "utils/rel.h"

/* The columns of table apply_outbox, in order. */
enum
{
	Anum_projection_id = 1,
	Anum_log_seq,
	Anum_tenant_id,
	Anum_aggregate_id,
	Anum_sequence_number,
	Anum_event_type,
	Anum_status,
	Anum_held,
	Anum_replay,
	Anum_shadow,
	Anum_attempt_count,
	Anum_next_attempt_at,
	Anum_last_error,
	Anum_updated_at,
	Natts = Anum_updated_at
};

extern bool pj_outbox_is_original(Relation heap);

#endif							/* PJ_OUTBOX_TABLE_H */
