/*
 * launcher.c
 *	  The launcher: keeps workers running in every database that has the
 *	  extension.
 *
 * The launcher runs if the library is preloaded, and only while the server
 * accepts writes: on a standby it starts at promotion.  It is connected to no
 * database, so it cannot see which ones have the extension.  It starts a
 * worker in each; a worker that does not find the extension exits at once.
 * Such a database is tried again after some time, or when the extension or a
 * database is created (detected by a hook).
 *
 * The postmaster never restarts workers, because it would also restart those
 * that were terminated on purpose at once.  The launcher starts them again, at
 * most once per RESTART_MS and database.  If there are more databases than
 * worker processes, the databases take turns.
 */
#include "base/compat.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/pg_database.h"
#include "commands/extension.h"
#include "libpq/pqsignal.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "nodes/pg_list.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "tcop/tcopprot.h"
#include "tcop/utility.h"
#include "utils/guc.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "base/guc.h"
#include "base/lock.h"
#include "ipc/shmem.h"
#include "ipc/wakeup.h"
#include "worker/launcher.h"

/* How often to read the list of databases. */
#define LOOK_MS		1000

/* The delay before a worker that has exited is started again. */
#define RESTART_MS	1000

/* The delay before a database without the extension is tried again. */
#define PROBE_MS	60000

/*
 * A database with waiting events is treated as if it had waited this much
 * longer.
 */
#define URGENT_US	(10 * USECS_PER_SEC)

/* After this many workers have exited before serving, always wait. */
#define MAX_FAILURES	3

/*
 * The maximum number of databases tried at a time.  Others need background
 * worker processes, too.
 */
#define MAX_PROBES	2

/* What the launcher knows about a database. */
typedef struct Database
{
	Oid			oid;			/* hash key */
	TimestampTz next_start;		/* do not start a worker before */
	TimestampTz started_at;		/* when the last worker was started */
	bool		absent;			/* the last worker did not find the extension */
	bool		urgent;			/* events may be waiting there */
	int			failures;		/* workers that exited before serving */
	bool		listed;			/* found when the list was last read */
} Database;

static HTAB *databases = NULL;
static ProcessUtility_hook_type next_process_utility = NULL;

/* Update the list of databases. */
static void
list_databases(void)
{
	Relation	relation;
	TableScanDesc scan;
	HeapTuple	tuple;
	HASH_SEQ_STATUS status;
	Database   *database;
	bool		found;

	hash_seq_init(&status, databases);
	while ((database = hash_seq_search(&status)) != NULL)
		database->listed = false;

	StartTransactionCommand();
	(void) GetTransactionSnapshot();
	relation = table_open(DatabaseRelationId, AccessShareLock);
	scan = table_beginscan_catalog(relation, 0, NULL);
	while ((tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
	{
		Form_pg_database form = (Form_pg_database) GETSTRUCT(tuple);

		/* -2 marks a database as invalid after an interrupted DROP */
		if (!form->datallowconn || form->datconnlimit == -2)
			continue;
		database = hash_search(databases, &form->oid, HASH_ENTER, &found);
		if (!found)
		{
			database->next_start = database->started_at = 0;
			database->absent = database->urgent = false;
			database->failures = 0;
		}
		database->listed = true;
	}
	table_endscan(scan);
	table_close(relation, AccessShareLock);
	CommitTransactionCommand();

	hash_seq_init(&status, databases);
	while ((database = hash_seq_search(&status)) != NULL)
	{
		if (database->listed)
			continue;
		pj_allow_workers(database->oid);
		pj_slot_wait_no_more(database->oid);
		(void) hash_search(databases, &database->oid, HASH_REMOVE, NULL);
	}
}

/*
 * The configuration has changed: workers may now be able to run where they
 * could not before.
 */
static void
look_everywhere(void)
{
	HASH_SEQ_STATUS status;
	Database   *database;

	hash_seq_init(&status, databases);
	while ((database = hash_seq_search(&status)) != NULL)
		database->next_start = 0;
}

/*
 * A session says that events are waiting in a database.  If its workers keep
 * exiting early, do not hurry.  If the last one did not find the extension, do
 * not start a process for each hint.
 */
static void
read_hint(Database *database)
{
	TimestampTz earliest = 0;

	if (database->absent)
		earliest = TimestampTzPlusMilliseconds(database->started_at,
											   RESTART_MS);
	if (database->failures < MAX_FAILURES)
		database->next_start = Min(database->next_start, earliest);
	database->urgent = true;
}

/* Read the messages of workers and sessions. */
static void
read_news(void)
{
	TimestampTz now = GetCurrentTimestamp();
	Database   *database;
	Oid			dboid;

	while (pj_slot_collect_absent(&dboid))
	{
		database = hash_search(databases, &dboid, HASH_FIND, NULL);
		if (database == NULL)
			continue;
		database->next_start = TimestampTzPlusMilliseconds(now, PROBE_MS);
		database->absent = true;
		database->failures = 0;
	}
	while (pj_launcher_next_hint(&dboid))
	{
		database = hash_search(databases, &dboid, HASH_FIND, NULL);
		if (database)
			read_hint(database);
		else if (!OidIsValid(dboid))
			look_everywhere();
	}
}

/*
 * Returns the number of databases whose workers have not found the extension
 * yet.
 */
static int
count_probes(void)
{
	HASH_SEQ_STATUS status;
	Database   *database;
	bool		serving;
	int			n = 0;

	hash_seq_init(&status, databases);
	while ((database = hash_seq_search(&status)) != NULL)
		n += pj_slot_count(database->oid, &serving) > 0 && !serving;
	return n;
}

/*
 * A session wants to drop, rename or copy a database, and gives up after five
 * seconds.  A worker in a long batch does not notice, so terminate it.
 */
static void
clear_the_way(void)
{
	HASH_SEQ_STATUS status;
	Database   *database;
	bool		serving;

	hash_seq_init(&status, databases);
	while ((database = hash_seq_search(&status)) != NULL)
		if (pj_slot_count(database->oid, &serving) > 0 &&
			pj_database_is_wanted(database->oid))
			(void) pj_end_workers(database->oid);
}

/*
 * Returns when to start another worker in a database.  If workers exit before
 * serving, for whatever reason, the delay grows.
 */
static TimestampTz
next_start(Database *database, TimestampTz now, bool serving)
{
	int			wait = RESTART_MS;

	if (serving)
		database->failures = 0;
	for (int i = 0; i < database->failures && wait < PROBE_MS; i++)
		wait *= 2;
	database->failures += !serving;
	return TimestampTzPlusMilliseconds(now, Min(wait, PROBE_MS));
}

/* The database whose last worker started earliest comes first. */
static int
compare_databases(const ListCell *a, const ListCell *b)
{
	const Database *one = lfirst(a);
	const Database *other = lfirst(b);
	TimestampTz mine = one->started_at - (one->urgent ? URGENT_US : 0);
	TimestampTz its = other->started_at - (other->urgent ? URGENT_US : 0);

	return mine < its ? -1 : mine > its;
}

/* Returns the databases with too few workers, in the order of their turns. */
static List *
needy_databases(TimestampTz now)
{
	HASH_SEQ_STATUS status;
	Database   *database;
	List	   *needy = NIL;

	hash_seq_init(&status, databases);
	while ((database = hash_seq_search(&status)) != NULL)
	{
		bool		serving;
		int			running = pj_slot_count(database->oid, &serving);

		if (serving)
		{
			database->failures = 0;
			database->absent = database->urgent = false;
		}
		if (running < (serving ? pj_workers : 1) &&
			database->next_start <= now &&
			!pj_database_is_wanted(database->oid))
			needy = lappend(needy, database);
	}
	list_sort(needy, compare_databases);
	return needy;
}

/*
 * Start workers where there are too few.  The first one in a database must
 * find the extension before others are started.  If there is no free process,
 * the remaining databases are marked as waiting, so that an idle worker
 * elsewhere exits.
 */
static void
start_workers(void)
{
	TimestampTz now = GetCurrentTimestamp();
	ListCell   *cell;
	bool		room = true;
	int			probes;

	if (!pj_enabled)
		return;
	probes = count_probes();
	foreach(cell, needy_databases(now))
	{
		Database   *database = lfirst(cell);
		bool		serving;
		int			running = pj_slot_count(database->oid, &serving);
		int			wanted = serving ? pj_workers : 1;

		if (!room && running == 0)
			pj_slot_wait(database->oid);
		if (!room || (!serving && probes >= MAX_PROBES))
			continue;
		while (running < wanted &&
			   pj_start_worker(database->oid, wanted, NULL))
		{
			running++;
			probes += !serving;
			database->started_at = now;
			database->next_start = next_start(database, now, serving);
		}

		/* if no process was free for this one, none is for the others */
		room = running == wanted || pj_slot_waits_since(database->oid) == 0;
	}
}

/* The entry point of the launcher. */
void
projector_launcher_main(Datum arg)
{
	HASHCTL		ctl = {.keysize = sizeof(Oid),.entrysize = sizeof(Database)};
	MemoryContext context;

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnection(NULL, NULL, 0);
	pgstat_report_appname("projector launcher");
	pj_launcher_attach();

	databases = hash_create("projector databases", 16, &ctl,
							HASH_ELEM | HASH_BLOBS);
	context = AllocSetContextCreate(TopMemoryContext, "projector launcher",
									ALLOCSET_DEFAULT_SIZES);
	for (;;)
	{
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
			look_everywhere();
		}
		MemoryContextSwitchTo(context);
		list_databases();
		MemoryContextSwitchTo(context);
		read_news();
		clear_the_way();
		start_workers();
		MemoryContextReset(context);
		(void) WaitLatch(MyLatch,
						 WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 LOOK_MS, PG_WAIT_EXTENSION);
	}
}

/* Has a worker in this database found the extension? */
static bool
is_served(void)
{
	bool		serving;

	return pj_slot_count(MyDatabaseId, &serving) > 0 && serving;
}

/*
 * ProcessUtility hook: inform the launcher and the workers when the extension
 * is created or dropped, and when a prepared transaction ends, which may leave
 * work but runs none of our code.  The hook is called in all databases, even
 * in those without the extension.
 */
static void
notice_utility(PlannedStmt *pstmt, const char *queryString,
			   bool readOnlyTree, ProcessUtilityContext context,
			   ParamListInfo params, QueryEnvironment *queryEnv,
			   DestReceiver *dest, QueryCompletion *qc)
{
	Node	   *statement = pstmt->utilityStmt;
	bool		extension = IsA(statement, CreateExtensionStmt) &&
	strcmp(((CreateExtensionStmt *) statement)->extname, "projector") == 0;
	bool		dropped = IsA(statement, DropStmt) &&
	((DropStmt *) statement)->removeType == OBJECT_EXTENSION;
	bool		finished = IsA(statement, TransactionStmt) &&
	(((TransactionStmt *) statement)->kind == TRANS_STMT_COMMIT_PREPARED ||
	 ((TransactionStmt *) statement)->kind == TRANS_STMT_ROLLBACK_PREPARED);

	next_process_utility(pstmt, queryString, readOnlyTree, context, params,
						 queryEnv, dest, qc);

	if (extension)
		pj_wake_launcher_at_commit(MyDatabaseId);
	if (dropped && is_served())
		pj_wake_at_commit();	/* workers exit if the extension is gone */
	if (finished && OidIsValid(get_extension_oid("projector", true)))
	{
		/* an earlier hint came before its events were visible */
		pj_hint_all_at_commit();
		pj_wake_at_commit();
	}
}

void
pj_launcher_init(void)
{
	BackgroundWorker worker = {
		.bgw_name = "projector launcher",
		.bgw_type = "projector launcher",
		.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION,
		.bgw_start_time = BgWorkerStart_RecoveryFinished,
		.bgw_restart_time = 5,
		.bgw_library_name = "projector",
		.bgw_function_name = "projector_launcher_main",
	};

	next_process_utility = ProcessUtility_hook ? ProcessUtility_hook :
		standard_ProcessUtility;
	ProcessUtility_hook = notice_utility;

	/* nothing must be written during pg_upgrade */
	if (process_shared_preload_libraries_in_progress && !IsBinaryUpgrade)
		RegisterBackgroundWorker(&worker);
}
