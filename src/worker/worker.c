/*
 * worker.c
 *	  A worker process, which applies events in one database.
 *
 * A worker processes one batch after the other (work.c), each in a transaction
 * of its own, in the order of its queue (work_queue.c), and does chores in
 * between (chores.c).  If there is nothing to do it sleeps until an append
 * wakes it, a retry is due, or projector.naptime has passed.
 *
 * All workers of a database do the same: each skips pairs that another is
 * working on.  No worker has state that matters.  If a worker exits, for
 * whatever reason, its current batch is not committed, and another worker does
 * it.
 *
 * A worker exits when a session wants to drop, rename or copy its database,
 * and when the extension is gone.  If the extension must be updated first, the
 * worker waits for that.
 *
 * An error that no event has caused ends the batch but not the worker: it is
 * reported in the server log, and the pair is left alone for a while.
 */
#include "base/compat.h"

#include "access/xact.h"
#include "commands/dbcommands.h"
#include "commands/extension.h"
#include "libpq/pqsignal.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lock.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timeout.h"
#include "utils/timestamp.h"

#include "base/guc.h"
#include "base/lock.h"
#include "base/version.h"
#include "ipc/shmem.h"
#include "log/log_read.h"
#include "sandbox/deadline.h"
#include "sandbox/user_context.h"
#include "state/cursor.h"
#include "worker/blame.h"
#include "worker/caution.h"
#include "worker/chores.h"
#include "worker/turn.h"
#include "worker/work.h"
#include "worker/work_queue.h"
#include "worker/worker.h"

/* How often to check whether a session needs the database without us. */
#define LEAVE_CHECK_MS		500

static TimestampTz busy_at;		/* when work was last done */
static bool lazily = false;		/* a commit need not be flushed */
static bool given_up = false;	/* the slot is free; see offer_slot() */

/* ---- exiting ---- */

/* Called between batches and while sleeping. */
static void
check_leave(void)
{
	/* a cancel is meant for a batch, and none is running */
	QueryCancelPending = false;
	CHECK_FOR_INTERRUPTS();
	if (ConfigReloadPending)
	{
		ConfigReloadPending = false;
		ProcessConfigFile(PGC_SIGHUP);
	}
	if (!pj_enabled)
		pj_slot_absent();		/* possibly for this database only */
	if (!pj_enabled || pj_slot_surplus(pj_workers) ||
		pj_database_is_wanted(MyDatabaseId))
		proc_exit(0);
}

/*
 * Called between two events of a batch.  A session that needs the database
 * waits only five seconds, and a batch may take longer.
 */
static void
check_wanted(void)
{
	if (pj_database_is_wanted(MyDatabaseId))
		ereport(FATAL,
				errcode(ERRCODE_ADMIN_SHUTDOWN),
				errmsg("projector worker exits because its database is to be dropped, renamed or copied"));
}

/* Exit if the extension does not exist here. */
static void
check_extension(void)
{
	if (OidIsValid(get_extension_oid("projector", true)))
		return;
	pj_slot_absent();
	proc_exit(0);
}

/*
 * Is the extension's version the library's own?  The first worker of a
 * database reports why nothing is applied.
 */
static bool
is_current(bool report)
{
	const char *problem;

	StartTransactionCommand();
	check_extension();
	pj_version_forget();
	problem = pj_version_problem();
	if (problem && report)
		ereport(WARNING,
				errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("nothing is applied in database \"%s\": %s",
					   get_database_name(MyDatabaseId), problem),
				errhint("%s", pj_version_hint()));
	CommitTransactionCommand();
	return problem == NULL;
}

/*
 * Wait until the extension's version is the library's own.  This worker counts
 * as serving: the launcher need not try the database again, and the update
 * wakes it.
 */
static void
await_update(void)
{
	bool		serving;

	(void) pj_slot_count(MyDatabaseId, &serving);
	while (!is_current(!serving))
	{
		pj_slot_serving();
		serving = true;
		pj_turn_start_others();
		if (pj_turn_is_over(busy_at, DT_NOEND))
			proc_exit(0);
		(void) WaitLatch(MyLatch,
						 WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 Min(pj_naptime, LEAVE_CHECK_MS), PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
		check_leave();
	}
}

/* ---- working and sleeping ---- */

static void
report_idle(void)
{
	pj_activity_set(PJ_IDLE_WORKER, 0, 0);
	pgstat_report_activity(STATE_IDLE, NULL);
}

/* Run a function in a transaction. */
static void
run_transaction(void (*body) (void))
{
	PjContext	saved;

	SetCurrentStatementStartTimestamp();
	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
	check_extension();
	if (!pj_version_is_current())
		proc_exit(0);			/* the next worker waits for the update */
	pj_enter_internal(&saved);
	lazily = false;
	body();
	pj_leave_internal(&saved);
	PopActiveSnapshot();
	if (lazily)
		pj_set_local("synchronous_commit", "off");
	CommitTransactionCommand();
	pj_current_clear();

	/* release advisory locks that a projection's code has left */
	LockReleaseSession(USER_LOCKMETHOD);
	pgstat_report_stat(false);
	report_idle();
}

/* Process one batch, if there is one. */
static void
do_work(void)
{
	if (pj_work(&lazily))
		busy_at = GetCurrentTimestamp();
}

/* Do a part of the chores.  What a crash takes back is done again. */
static void
do_chores_part(void)
{
	lazily = true;
	pj_chores_part();
}

/*
 * Check for work again.  The slot is free now, so a session that leaves work
 * from now on starts another worker.
 */
static void
look_once_more(void)
{
	if (pj_work_look())
		pj_queue_look_again();
}

/* Exit; the next worker in this database finds the remaining work. */
static void
leave_to_another(void)
{
	pj_slot_wait(MyDatabaseId);
	pj_wake_launcher(MyDatabaseId);
	proc_exit(0);
}

/*
 * Exit if another database is waiting for a worker and there is no work in
 * this one.  Returns if there is work.
 */
static void
offer_slot(void)
{
	pj_turn_start_others();
	if (pj_queue_waits_for_others() ||
		!pj_turn_is_over(busy_at, pj_queue_next_due()) ||
		!pj_slot_give_up(pj_queue_wakeups()))
		return;
	given_up = true;
	run_transaction(look_once_more);
	if (pj_queue_is_done())
		proc_exit(0);
	if (!pj_slot_take_back())
		leave_to_another();
	given_up = false;
}

/* Sleep until there may be something to do. */
static void
sleep_until_woken(void)
{
	for (;;)
	{
		long		left = TimestampDifferenceMilliseconds(GetCurrentTimestamp(),
														   pj_queue_wake_at());
		int			events;

		if (left <= 0 || pj_slot_wakeups() != pj_queue_wakeups())
			return;
		events = WaitLatch(MyLatch,
						   WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						   Min(left, LEAVE_CHECK_MS), PG_WAIT_EXTENSION);

		/* the latch is reset when we look for work */
		if (events & WL_LATCH_SET)
			return;
		check_leave();
		offer_slot();
		if (!pj_queue_is_done())
			return;
	}
}

/* ---- the process ---- */

/* Set variables that our work depends on, whatever the configuration says. */
static void
pin_settings(void)
{
	static const char *const settings[][2] = {
		{"application_name", "projector worker"},
		{"default_transaction_isolation", "read committed"},
		{"default_transaction_read_only", "off"},
		{"transaction_timeout", "0"},	/* 17 and later: ends the process */
	};

	for (int i = 0; i < lengthof(settings); i++)
		if (GetConfigOption(settings[i][0], true, false))
			SetConfigOption(settings[i][0], settings[i][1], PGC_SUSET,
							PGC_S_OVERRIDE);
	pj_pin_session();
}

/* Clean up after an error, as PostgresMain() does. */
static void
recover(void)
{
	int32		projection_id;
	Datum		tenant;

	error_context_stack = NULL;
	HOLD_INTERRUPTS();
	disable_all_timeouts(false);
	QueryCancelPending = false;
	EmitErrorReport();
	AbortCurrentTransaction();
	MemoryContextSwitchTo(TopMemoryContext);
	FlushErrorState();
	LockReleaseSession(USER_LOCKMETHOD);
	RESUME_INTERRUPTS();

	/* do not run without a slot: another worker may have taken it */
	if (given_up)
		leave_to_another();

	/* leave the pair alone, so that others get their turn */
	if (pj_current(&projection_id, &tenant))
	{
		pj_penalize(PJ_PENALTY_MS);
		pj_work_failed();
	}
	else
		pj_queue_abandon(PJ_PENALTY_MS);
	pj_current_clear();
	report_idle();
}

/* Initialization, before anything else. */
static void
begin(void)
{
	pj_caution_begin();

	/* a sequence may have been set back while the server was down */
	pj_publish_tail(pj_source_relid(), pj_cursors_last());
}

/* The entry point of a worker. */
void
projector_worker_main(Datum arg)
{
	sigjmp_buf	local_sigjmp_buf;
	Oid			dboid;
	uint32		generation;

	memcpy(&dboid, MyBgworkerEntry->bgw_extra, sizeof(Oid));
	memcpy(&generation, MyBgworkerEntry->bgw_extra + sizeof(Oid),
		   sizeof(uint32));
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	pqsignal(SIGINT, StatementCancelHandler);
	BackgroundWorkerUnblockSignals();
	if (!pj_slot_attach(DatumGetInt32(arg), generation))
		proc_exit(0);			/* too late: the slot was given to another
								 * worker */
	BackgroundWorkerInitializeConnectionByOid(dboid, InvalidOid, 0);
	pin_settings();

	pj_queue_init();
	pj_chores_init();
	busy_at = GetCurrentTimestamp();

	pj_between_calls(check_wanted);
	await_update();
	run_transaction(begin);
	pj_slot_serving();
	pj_wake_launcher(InvalidOid);

	if (sigsetjmp(local_sigjmp_buf, 1) != 0)
		recover();
	PG_exception_stack = &local_sigjmp_buf;

	for (;;)
	{
		MemoryContextSwitchTo(TopMemoryContext);
		check_leave();
		if (pj_chores_are_due(pj_queue_is_done()))
			run_transaction(pj_chores);
		if (pj_chores_part_is_due(pj_queue_is_done()))
			run_transaction(do_chores_part);
		if (pj_queue_is_done() && !pj_chores_go_on())
			sleep_until_woken();
		check_leave();
		run_transaction(do_work);
	}
}
