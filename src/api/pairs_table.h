/*
 * pairs_table.h
 *	  The foreign table projector.pairs, which the status views read.
 */
#ifndef PJ_PAIRS_TABLE_H
#define PJ_PAIRS_TABLE_H

#include "base/compat.h"
#include "nodes/execnodes.h"

/* Its columns, in order. */
enum
{
	Pairs_projection_name = 1,
	Pairs_tenant_id,
	Pairs_kind,
	Pairs_projection_mode,
	Pairs_mode,
	Pairs_state,
	Pairs_rank,
	Pairs_why,
	Pairs_worst,
	Pairs_worst_why,
	Pairs_cursor_state,
	Pairs_last_log_seq,
	Pairs_lag_events,
	Pairs_lag_share,
	Pairs_lag_time,
	Pairs_oldest_log_seq,
	Pairs_pending,
	Pairs_held,
	Pairs_failed,
	Pairs_dead,
	Pairs_error_count,
	Pairs_last_error,
	Pairs_last_failed_at,
	Pairs_paused_by,
	Pairs_paused_at,
	Pairs_run_id,
	Pairs_worker_pid,
	Pairs_stale,
	Pairs_applied_count,
	Pairs_failed_count,
	Pairs_dead_count,
	Pairs_batch_count,
	Pairs_apply_time,
	Pairs_last_applied_at,
	Pairs_digest,
	Pairs_row_count,
	Pairs_late,
	Pairs_awaits_log,
	Pairs_dead_since,
	Pairs_dead_why,
	Pairs_failing_aggregate,
	Pairs_failing_sequence,
	Pairs_failing_since,
	Pairs_failing_why,
	Pairs_locker_pid,
	Pairs_locker_since,
	Pairs_natts = Pairs_locker_since
};

extern void pj_pairs_begin(ForeignScanState *node, int eflags);
extern TupleTableSlot *pj_pairs_next(ForeignScanState *node);
extern void pj_pairs_again(ForeignScanState *node);
extern void pj_pairs_end(ForeignScanState *node);

#endif							/* PJ_PAIRS_TABLE_H */
