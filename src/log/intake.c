/*
 * intake.c
 *	  State of the statement that is inserting events.
 *
 * Two facts are needed that are not in the rows themselves.
 *
 * First, have readers already passed the event's log position?  Then they
 * would never see the event.  The sequence returns rising numbers, unless it
 * has been set back, or a session has cached some (CACHE).  Readers publish
 * the last number drawn before they check which transactions are writing
 * (tail.c).  A writer reads the published number after it has first locked the
 * table, before it draws a number.  Then
 *
 * - a number drawn in order is greater than what was published before it was
 *   drawn, and is never refused;
 * - if a number is not greater than what readers publish later, they find the
 *   transaction among the writers and wait for it.
 *
 * So exactly those events are refused that readers would miss.  If the
 * subtransaction that took the lock is rolled back, the lock is released, and
 * the number must be read again.
 *
 * Second, are the rows restored from a dump?  Such rows already have a hash,
 * which only the table's owner may supply.  Gaps that the log had when it was
 * dumped are accepted.
 */
#include "base/compat.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/pg_sequence.h"
#include "storage/proc.h"
#include "utils/syscache.h"

#include "base/fetch.h"
#include "base/trigger.h"
#include "base/version.h"
#include "ipc/shmem.h"
#include "log/intake.h"
#include "log/log_read.h"
#include "log/log_table.h"

PG_FUNCTION_INFO_V1(projector_events_before_statement);

static PjTable sequence_table = {"events_log_seq_seq"};

/* What readers had published when this transaction first locked the table. */
static struct
{
	LocalTransactionId transaction;
	SubTransactionId subtransaction;	/* the one that took the lock */
	int64		passed;
} known;

/* The current INSERT statement. */
static struct
{
	LocalTransactionId transaction;
	bool		open;			/* it has not ended yet */
	bool		nested;			/* another was open: do not treat it as a
								 * restore */
	bool		restored;		/* some rows have a hash */
	bool		fresh;			/* some rows have none */
} statement;

/* The sequence must return rising numbers, in the order of the calls. */
static void
check_sequence(void)
{
	HeapTuple	tuple = SearchSysCache1(SEQRELID,
										ObjectIdGetDatum(pj_relid(&sequence_table)));
	Form_pg_sequence form;
	bool		ok;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for the sequence of log_seq");
	form = (Form_pg_sequence) GETSTRUCT(tuple);
	ok = form->seqcache == 1 && form->seqincrement > 0 && !form->seqcycle;
	ReleaseSysCache(tuple);
	if (!ok)
		ereport(ERROR,
				errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("sequence projector.events_log_seq_seq does not number events in their order"),
				errdetail("With CACHE above 1, a negative INCREMENT or CYCLE, events would be missed by projections that read the log."),
				errhint("Run ALTER SEQUENCE projector.events_log_seq_seq CACHE 1 INCREMENT 1 NO CYCLE."));
}

/* Returns the sequence of log positions. */
Oid
pj_intake_sequence(void)
{
	return pj_relid(&sequence_table);
}

/*
 * Events are about to be inserted.  The caller has locked the table, so the
 * extension is not being updated (updating.c).
 */
void
pj_intake_begin(void)
{
	pj_version_require_served();
	if (known.transaction != pj_transaction())
	{
		check_sequence();
		known.passed = pj_published_tail(pj_source_relid());
		known.subtransaction = GetCurrentSubTransactionId();
		known.transaction = pj_transaction();
	}
	statement.nested = statement.transaction == pj_transaction() &&
		statement.open;
	statement.transaction = pj_transaction();
	statement.open = true;
	statement.restored = statement.fresh = false;
}

/* Trigger function: BEFORE INSERT, for each statement. */
Datum
projector_events_before_statement(PG_FUNCTION_ARGS)
{
	(void) pj_trigger_data(fcinfo, "events_before_statement",
						   &pj_events_table, PJ_BEFORE_STATEMENT,
						   TRIGGER_EVENT_INSERT);
	pj_intake_begin();
	return PointerGetDatum(NULL);
}

/* A row is about to be inserted. */
void
pj_intake_row(bool restored)
{
	statement.restored = statement.restored || restored;
	statement.fresh = statement.fresh || !restored;
}

/* Raise an error if readers have passed this position. */
void
pj_intake_check(int64 log_seq)
{
	if (known.transaction != pj_transaction() || log_seq > known.passed)
		return;
	ereport(ERROR,
			errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			errmsg("log_seq %lld has been passed by readers of the log",
				   (long long) log_seq),
			errdetail("They have read up to %lld, and would never see the event. The sequence has been set back, or this session keeps numbers from when it had a CACHE.",
					  (long long) known.passed),
			errhint("Connect again. If that does not help, run SELECT setval('projector.events_log_seq_seq', %lld).",
					(long long) known.passed));
}

/* All rows have been inserted.  Returns true if they are restored ones. */
bool
pj_intake_end(void)
{
	bool		restored = statement.transaction == pj_transaction() &&
	statement.open && !statement.nested && statement.restored &&
	!statement.fresh;

	statement.open = statement.nested;
	return restored;
}

/*
 * When a subtransaction aborts, its lock is released, and what was read under
 * it is no longer valid.
 */
static void
at_subtransaction_event(SubXactEvent event, SubTransactionId mine,
						SubTransactionId parent, void *arg)
{
	if (known.transaction != pj_transaction() || known.subtransaction != mine)
		return;
	if (event == SUBXACT_EVENT_ABORT_SUB)
		known.transaction = InvalidLocalTransactionId;
	else if (event == SUBXACT_EVENT_COMMIT_SUB)
		known.subtransaction = parent;
}

void
pj_intake_init(void)
{
	RegisterSubXactCallback(at_subtransaction_event, NULL);
}
