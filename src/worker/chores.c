/*
 * chores.c
 *	  Periodic tasks of one worker per database: move cursors along the
 *	  log, add up the counts of appends, and delete old history.
 *
 * Chores run between batches in transactions of their own, so that the rows
 * they lock are not locked for the duration of a batch.
 *
 * History means resolved failures and finished runs.  A worker deletes a
 * little of it every minute (projector.retention), and of the audit log
 * (projector.audit_retention).  projector_prune() deletes all history.  Decisions to skip an event are kept, because every replay needs
 * them.
 */
#include "base/compat.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/timestamp.h"

#include "apply/read_model.h"
#include "base/args.h"
#include "base/guc.h"
#include "base/statement.h"
#include "feed/active_tenants.h"
#include "feed/due_pairs.h"
#include "ipc/shmem.h"
#include "kinds/problem.h"
#include "log/tail.h"
#include "rebuild/run.h"
#include "registry/identity.h"
#include "sandbox/user_context.h"
#include "state/audit.h"
#include "state/delta.h"
#include "state/failure.h"
#include "state/outbox.h"
#include "worker/chores.h"
#include "worker/work_queue.h"

PG_FUNCTION_INFO_V1(projector_prune);

/*
 * How often cursors follow the log, when idle and when busy; and how often
 * items of dropped projections are deleted.
 */
#define CHORES_MS			1000
#define BUSY_CHORES_MS		10000
#define SWEEP_MS			60000

/*
 * The maximum number of cursors created at a time, because each takes a lock.
 */
#define MAX_NEW_CURSORS		64

/* The cursors of so many tenants follow in one transaction. */
#define MAX_FOLLOWED		64

/* So many rows of inline appends are added up in one transaction. */
#define MAX_ADDED_UP		256

/* While events wait, so much more time is spent on them than on chores. */
#define WORK_TO_CHORES	4

/*
 * New rows are mostly at the end of their table, so adding up goes on where it
 * has ended.  It starts at the beginning so often, or if rows were left.
 */
#define RESTART_MS			60000

/* The maximum number of rows deleted by one statement. */
#define BATCH_ROWS	1000

#define PRUNE(table, column, condition) \
	{ \
		.sql = "DELETE FROM projector." table " WHERE id = ANY (ARRAY" \
		" (SELECT id FROM projector." table " WHERE " column " < $1" \
		condition " ORDER BY " column " LIMIT $2 FOR UPDATE SKIP LOCKED))", \
		.expect = SPI_OK_DELETE, \
		.nargs = 2, \
		.argtypes = {TIMESTAMPTZOID, INT4OID}, \
	}

static PjStatement prune[] = {
	PRUNE("projection_failures", "resolved_at",
		  " AND (" PJ_SKIP_DECIDED ") IS NOT TRUE"),
	PRUNE("projection_runs", "finished_at", ""),
};

static struct
{
	TimestampTz done_at;
	TimestampTz swept_at;
	int			to_follow;		/* tenants, a part at a time */
	bool		adding_up;		/* rows of inline appends, in parts too */
	TimestampTz next_part_at;	/* earliest time of the next part, if busy */
	PjDeltaScan deltas;			/* where that stands */
	TimestampTz restarted_at;	/* when it began at the start of the table */
} chores;

/* ---- history ---- */

/* Delete some rows that are older than that.  Returns their number. */
static int64
prune_some(TimestampTz before)
{
	Datum		values[2] = {TimestampTzGetDatum(before),
	Int32GetDatum(BATCH_ROWS)};
	int64		count = 0;

	for (int i = 0; i < lengthof(prune); i++)
		count += pj_execute(&prune[i], values, NULL);
	return count;
}

/* The part of the history that a worker deletes at a time. */
static void
prune_a_little(void)
{
	if (pj_retention > 0)
		(void) prune_some(TimestampTzPlusMilliseconds(GetCurrentTimestamp(),
													  -(int64) pj_retention *
													  60 * 1000));
}

/*
 * Deletes all history that is older than a given time.  Returns the number of
 * rows.
 */
Datum
projector_prune(PG_FUNCTION_ARGS)
{
	Datum		age = pj_required(fcinfo, 0, "older_than");
	TimestampTz now = GetCurrentTimestamp();
	TimestampTz before = DatumGetTimestampTz(DirectFunctionCall2(timestamptz_mi_interval,
																 TimestampTzGetDatum(now),
																 age));
	PjContext	saved;
	int64		count = 0;
	int64		n;

	if (before > now)
		ereport(ERROR,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("older_than must not be negative"));
	pj_refuse_in_user_code("projector_prune");
	pj_enter_internal(&saved);
	do
	{
		CHECK_FOR_INTERRUPTS();
		n = prune_some(before);
		count += n;
	} while (n > 0);
	pj_leave_internal(&saved);
	pj_audit_count(fcinfo, count);
	PG_RETURN_INT64(count);
}

/* ---- chores ---- */

void
pj_chores_init(void)
{
	chores.done_at = GetCurrentTimestamp();
}

/* Are chores due?  Only one worker of the database does them. */
bool
pj_chores_are_due(bool idle)
{
	return TimestampDifferenceExceeds(chores.done_at, GetCurrentTimestamp(),
									  idle ? CHORES_MS : BUSY_CHORES_MS) &&
		!pj_slot_surplus(1);
}

/*
 * Let cursors follow the log where the capture trigger queues new events, some
 * tenants at a time.
 */
static void
follow_log(void)
{
	PjTenants	some;
	int64		tail;
	int32	   *ids;
	int			n = pj_projection_ids(&ids);
	int			room = MAX_NEW_CURSORS;

	(void) pj_active_unfollowed(&some, MAX_FOLLOWED);
	chores.to_follow -= some.count;
	if (some.count == 0)
		return;
	tail = pj_tail(0);
	for (int i = 0; i < n; i++)
		pj_follow_log(ids[i], &some, tail, true, &room);
	pj_active_followed(&some, tail);
}

/* Delete what dropped projections have left, and some history. */
static void
sweep(TimestampTz now)
{
	if (!TimestampDifferenceExceeds(chores.swept_at, now, SWEEP_MS))
		return;
	chores.swept_at = now;
	pj_outbox_sweep();
	pj_deltas_sweep();
	prune_a_little();
	(void) pj_audit_prune(BATCH_ROWS);
}

void
pj_chores(void)
{
	TimestampTz now = GetCurrentTimestamp();
	PjTenants	none;

	pj_activity_set(PJ_AT_CHORES, 0, 0);
	chores.done_at = now;
	pj_identities_refresh();
	if (pj_problems_report())
	{
		pj_active_scan();		/* a projection may have come back */
		pj_queue_look_again();
	}
	pj_runs_settle();
	chores.to_follow = pj_active_unfollowed(&none, 0);
	chores.adding_up = true;
	if (chores.deltas.other_layouts)
		pj_models_refresh_altered(0, 0);
	if (chores.deltas.left_some ||
		TimestampDifferenceExceeds(chores.restarted_at, now, RESTART_MS))
	{
		pj_deltas_restart(&chores.deltas);
		chores.restarted_at = now;
	}
	sweep(now);
}

/* Is there more to do of what is done in parts? */
bool
pj_chores_go_on(void)
{
	return chores.to_follow > 0 || chores.adding_up;
}

/*
 * Is it time for the next part?  While events wait, chores get a small share of
 * the time only.
 */
bool
pj_chores_part_is_due(bool idle)
{
	return pj_chores_go_on() &&
		(idle || GetCurrentTimestamp() >= chores.next_part_at);
}

/*
 * Do a part: batches come between, and the locks of a part are soon released.
 */
void
pj_chores_part(void)
{
	int			to_follow = chores.to_follow;
	TimestampTz start = GetCurrentTimestamp();
	TimestampTz end;

	pj_activity_set(PJ_AT_CHORES, 0, 0);
	chores.to_follow = 0;		/* an error leaves them so */
	chores.adding_up = false;
	if (to_follow > 0)
	{
		follow_log();
		chores.to_follow += to_follow;
		chores.adding_up = true;
	}
	else
		chores.adding_up = pj_deltas_add_up(&chores.deltas, MAX_ADDED_UP,
											MAX_ADDED_UP);
	end = GetCurrentTimestamp();
	chores.next_part_at = end + WORK_TO_CHORES * (end - start);
}
