/*
 * wakeup.c
 *	  Wake workers, or start one, when a transaction commits.
 *
 * Code that leaves work for a worker requests a wake-up in its transaction.
 * The workers' latches are set once the commit is visible.  NOTIFY is not
 * used, because it would serialize commits.  Work without a wake-up, such as
 * that of a prepared transaction, is found by a worker that checks
 * periodically.
 *
 * The launcher needs preloading.  Without it, the first transaction that
 * leaves work starts a worker for the database before it commits.  If none can
 * be started, the transaction commits anyway.
 */
#include "base/compat.h"

#include "access/xact.h"
#include "common/hashfn.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "utils/timestamp.h"
#include "utils/resowner.h"

#include "base/guc.h"
#include "ipc/shmem.h"
#include "ipc/wakeup.h"

/* If a transaction's tenants have longer names in all, it does not name them. */
#define MAX_BYTES	1024

/* How often to report that no worker process is free. */
#define REPORT_MS	60000

static bool requested = false;
static bool ending = false;		/* the transaction is */
static char hints[MAX_BYTES];
static int	hints_length = 0;	/* -1: too many to tell */
static Oid	changed_database = InvalidOid;

/*
 * Wake this database's workers once the transaction has ended.  Shared memory
 * is attached now, because nothing may fail then.
 */
void
pj_wake_at_commit(void)
{
	pj_shmem_attach();
	requested = true;
}

/* A hash of a tenant's name. */
uint64
pj_tenant_hash(Datum tenant)
{
	text	   *name = DatumGetTextPP(tenant);

	return hash_bytes_extended((const unsigned char *) VARDATA_ANY(name),
							   VARSIZE_ANY_EXHDR(name), 0);
}

/* Is a name among the hints? */
static bool
is_told(text *name)
{
	int			place = 0;

	while (place < hints_length)
	{
		const char *told;
		int			length;

		place += pj_hint_get(hints + place, &told, &length);
		if (length == VARSIZE_ANY_EXHDR(name) &&
			memcmp(told, VARDATA_ANY(name), length) == 0)
			return true;
	}
	return false;
}

/*
 * Tell workers which tenant has new events, once the transaction has
 * committed.
 */
void
pj_hint_at_commit(Datum tenant)
{
	text	   *name = DatumGetTextPP(tenant);
	int			length;

	pj_shmem_attach();
	if (hints_length < 0 || is_told(name))
		return;

	length = pj_hint_put(hints + hints_length, MAX_BYTES - hints_length,
						 VARDATA_ANY(name), VARSIZE_ANY_EXHDR(name));
	hints_length = length < 0 ? -1 : hints_length + length;
}

/* The same, if the tenants are unknown. */
void
pj_hint_all_at_commit(void)
{
	pj_shmem_attach();
	hints_length = -1;
}

/* Let the launcher check a database once the transaction has committed. */
void
pj_wake_launcher_at_commit(Oid dboid)
{
	pj_shmem_attach();
	changed_database = dboid;
}

/* Report that databases are waiting, but not every time. */
static void
report_waiting(void)
{
	static TimestampTz reported_at = 0;
	TimestampTz now = GetCurrentTimestamp();
	TimestampTz since;
	Oid			longest;
	bool		urgent;
	int			n;

	if (!TimestampDifferenceExceeds(reported_at, now, REPORT_MS))
		return;
	n = pj_slot_waiting(InvalidOid, &longest, &since, &urgent);
	if (n == 0)
		return;
	reported_at = now;
	ereport(LOG,
			errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
			errmsg_plural("%d database waits for a projector worker",
						  "%d databases wait for a projector worker", n, n),
			errdetail("All background worker slots are in use. Database %u has waited longest, for %ld seconds.",
					  longest, (long) ((now - since) / USECS_PER_SEC)),
			errhint("You might need to increase max_worker_processes."));
}

/*
 * Start a worker for a database, unless it has as many as allowed.  Returns
 * true if one was started.
 */
bool
pj_start_worker(Oid dboid, int limit, BackgroundWorkerHandle **handle)
{
	BackgroundWorker worker = {
		.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION,
		.bgw_start_time = BgWorkerStart_RecoveryFinished,
		.bgw_restart_time = BGW_NEVER_RESTART,
		.bgw_library_name = "projector",
		.bgw_function_name = "projector_worker_main",
		.bgw_type = "projector worker",
	};
	uint32		generation;
	int			slot = pj_slot_reserve(dboid, limit, &generation);

	if (slot < 0)
	{
		report_waiting();
		return false;
	}
	snprintf(worker.bgw_name, BGW_MAXLEN, "projector worker for database %u",
			 dboid);
	worker.bgw_main_arg = Int32GetDatum(slot);
	worker.bgw_notify_pid = MyProcPid;
	memcpy(worker.bgw_extra, &dboid, sizeof(Oid));
	memcpy(worker.bgw_extra + sizeof(Oid), &generation, sizeof(uint32));
	if (RegisterDynamicBackgroundWorker(&worker, handle))
		return true;
	pj_slot_release(slot, generation);
	pj_slot_wait(dboid);
	report_waiting();
	return false;
}

static void
give_hints(void)
{
	if (hints_length != 0)
		pj_hints_add(MyDatabaseId, hints, hints_length);
}

static void
forget(void)
{
	requested = false;
	hints_length = 0;
	changed_database = InvalidOid;
}

static void
at_transaction_event(XactEvent event, void *arg)
{
	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
		case XACT_EVENT_PRE_PREPARE:

			/* what is needed after the commit must exist before it */
			if (requested && !pj_launcher_runs() && pj_autostart &&
				pj_enabled && !IsBinaryUpgrade)
				(void) pj_start_worker(MyDatabaseId, 1, NULL);
			return;
		case XACT_EVENT_COMMIT:
		case XACT_EVENT_ABORT:
			ending = true;
			return;
		case XACT_EVENT_PREPARE:
			/* a hint holds until what was drawn by then is settled */
			give_hints();
			forget();
			return;
		default:
			return;
	}
}

/*
 * Wake the workers.  If the only one has just exited, to make room for another
 * database, start a new one.
 */
static void
wake_or_start(void)
{
	if (pj_wake_workers(MyDatabaseId) || !pj_enabled || IsBinaryUpgrade)
		return;
	if (pj_launcher_runs())
		pj_wake_launcher(MyDatabaseId);
	else if (pj_autostart)
		(void) pj_start_worker(MyDatabaseId, 1, NULL);
}

/*
 * The transaction has ended, its invalidations are sent and its locks are
 * released, so a process that is woken now sees all of that.  (At the commit
 * event it still holds its locks, and its changes of the registry have not
 * been announced.)
 */
static void
after_transaction(ResourceReleasePhase phase, bool committed, bool top,
				  void *arg)
{
	if (phase != RESOURCE_RELEASE_AFTER_LOCKS || !top || !ending)
		return;
	ending = false;
	if (committed && OidIsValid(changed_database))
		pj_wake_launcher(changed_database);
	if (committed)
		give_hints();

	/* a worker may be waiting for us, even if we abort */
	if (requested && committed)
		wake_or_start();
	else if (requested)
		(void) pj_wake_workers(MyDatabaseId);
	forget();
}

void
pj_wakeup_init(void)
{
	RegisterXactCallback(at_transaction_event, NULL);
	RegisterResourceReleaseCallback(after_transaction, NULL);
}
