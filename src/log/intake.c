/*
 * intake.c
 *	  What is known of the statement that is adding events.
 *
 * Two things must be known that a row does not say.
 *
 * First, whether its position in the log is one that readers have passed: they
 * would never see the event.  The sequence gives out rising numbers, unless it
 * has been set back, or a session has kept some in store (CACHE).  Readers
 * publish the last number given out before they look who is writing (tail.c),
 * and here it is read when a transaction has first locked the table, before it
 * draws a number.  Then
 *
 *	- a number drawn in order is greater than what was published before it was
 *	  drawn, and is never refused;
 *	- if a number is not greater than what readers publish later, they find the
 *	  transaction among those that are writing, and wait for it.
 *
 * So what is refused would be lost, and what is not is not.  The lock, and
 * with it what was read, is lost if the subtransaction is rolled back that
 * took it.
 *
 * Second, whether rows are restored: then they bring their hash along, which
 * none but the table's owner may do, and gaps that the log had when it was
 * dumped are taken as they are.
 */
#include "base/compat.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/pg_sequence.h"
#include "storage/proc.h"
#include "utils/syscache.h"

#include "base/fetch.h"
#include "base/trigger.h"
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
	SubTransactionId subtransaction;	/* that took the lock */
	int64		passed;
} known;

/* The statement under way. */
static struct
{
	LocalTransactionId transaction;
	bool		open;			/* it has not come to its end */
	bool		nested;			/* another was under way: be strict */
	bool		restored;		/* some rows bring their hash */
	bool		fresh;			/* some do not */
} statement;

/* The sequence must give out rising numbers, in the order of the calls. */
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

/* BEFORE INSERT, for each statement. */
Datum
projector_events_before_statement(PG_FUNCTION_ARGS)
{
	(void) pj_trigger_data(fcinfo, "events_before_statement",
						   &pj_events_table, PJ_BEFORE_STATEMENT,
						   TRIGGER_EVENT_INSERT);
	if (known.transaction != MyProc->lxid)
	{
		check_sequence();
		known.passed = pj_published_tail(pj_source_relid());
		known.subtransaction = GetCurrentSubTransactionId();
		known.transaction = MyProc->lxid;
	}
	statement.nested = statement.transaction == MyProc->lxid &&
		statement.open;
	statement.transaction = MyProc->lxid;
	statement.open = true;
	statement.restored = statement.fresh = false;
	return PointerGetDatum(NULL);
}

/* A row is about to be added. */
void
pj_intake_row(bool restored)
{
	statement.restored = statement.restored || restored;
	statement.fresh = statement.fresh || !restored;
}

/* Refuse a position that readers have passed. */
void
pj_intake_check(int64 log_seq)
{
	if (known.transaction != MyProc->lxid || log_seq > known.passed)
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

/* The statement's rows are there.  Returns whether they are restored. */
bool
pj_intake_end(void)
{
	bool		restored = statement.transaction == MyProc->lxid &&
	statement.open && !statement.nested && statement.restored &&
	!statement.fresh;

	statement.open = statement.nested;
	return restored;
}

/* With a subtransaction goes its lock, and what was read under it. */
static void
at_subtransaction_event(SubXactEvent event, SubTransactionId mine,
						SubTransactionId parent, void *arg)
{
	if (known.transaction != MyProc->lxid || known.subtransaction != mine)
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
