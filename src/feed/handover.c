/*
 * handover.c
 *	  The position from which on the capture trigger passes events to a
 *	  projection.
 *
 * Events up to the handover are read from the log.  Events after it are passed
 * on by the capture trigger, because the sessions that append them know the
 * current definition of the projection.  A transaction that was already
 * writing events when the projection was last changed may still use the old
 * definition.  So the handover is set only when all such transactions have
 * ended.
 *
 * Who those were is remembered from one call to the next, so that a worker
 * need not wait for them.
 *
 * Before the handover is set, every tenant gets a cursor that says from where
 * to read.  There may be many, so a worker makes some with each look.  None is
 * missed: a tenant whose first event is younger than that is known from the
 * capture trigger, which queues all of its events.
 */
#include "base/compat.h"

#include "access/transam.h"
#include "access/xact.h"
#include "storage/lockdefs.h"
#include "utils/memutils.h"

#include "base/lock.h"
#include "base/statement.h"
#include "feed/handover.h"
#include "log/tail.h"
#include "registry/projection.h"
#include "state/cursor.h"

/* A projection that waits for its handover. */
typedef struct Waiting
{
	int32		id;				/* 0 if this place is free */
	TransactionId written_by;	/* the registry's row */
	PjWriters	writers;		/* noted when that version was out */
	bool		alone;			/* they are gone */
	int64		log_seq;		/* if so, the handover will be here */
	Datum		after;			/* tenants up to this one have a cursor, */
	TransactionId made_by;		/* if this transaction has committed */
} Waiting;

/* A worker makes so many cursors at a time. */
#define CURSORS_AT_A_TIME	256

static Waiting *waiting = NULL;
static int	nwaiting = 0;

/* If another session is setting it, or making cursors, that one does it. */
static PjStatement lock_row = {
	.sql = "SELECT FROM projector.projections"
	" WHERE projection_id = $1 AND xmin = $2 FOR UPDATE SKIP LOCKED",
	.expect = SPI_OK_SELECT,
	.nargs = 2,
	.argtypes = {INT4OID, XIDOID},
};

static PjStatement set_handover = {
	.sql = "UPDATE projector.projections SET handover_log_seq = $2,"
	" started = true WHERE projection_id = $1",
	.expect = SPI_OK_UPDATE,
	.nargs = 2,
	.argtypes = {INT4OID, INT8OID},
};

static bool
needs_handover(const PjProjection *projection)
{
	return projection != NULL && !projection->dormant &&
		!projection->handed_over &&
		(projection->mode != PJ_OFF || projection->overrides) &&
		!TransactionIdIsCurrentTransactionId(projection->written_by);
}

/*
 * Is a projection still waiting for its handover?  Its lock may also be held
 * by another session.
 */
bool
pj_awaits_handover(int32 id)
{
	return needs_handover(pj_projection_by_id(id));
}

/* Returns a projection's entry in the list, or a free one. */
static Waiting *
find_waiting(int32 id)
{
	for (int i = 0; i < nwaiting; i++)
		if (waiting[i].id == id)
			return &waiting[i];
	for (int i = 0; i < nwaiting; i++)
		if (waiting[i].id == 0)
			return &waiting[i];

	if (waiting == NULL)
		waiting = MemoryContextAlloc(TopMemoryContext, sizeof(Waiting));
	else
		waiting = repalloc(waiting, sizeof(Waiting) * (nwaiting + 1));
	memset(&waiting[nwaiting], 0, sizeof(Waiting));
	return &waiting[nwaiting++];
}

/* Begin again: this version of the projection has to wait for its handover. */
static void
start_waiting(Waiting *entry, const PjProjection *projection)
{
	entry->id = 0;				/* an error leaves it so */
	pj_writers_note(&entry->writers);
	entry->alone = false;
	if (entry->after)
		pfree(DatumGetPointer(entry->after));
	entry->after = 0;
	entry->made_by = InvalidTransactionId;
	entry->id = projection->id;
	entry->written_by = projection->written_by;
}

/* Have cursors been made by a transaction that was rolled back? */
static bool
is_undone(const Waiting *entry)
{
	return TransactionIdIsValid(entry->made_by) &&
		!TransactionIdDidCommit(entry->made_by);
}

/* Make cursors, some or all.  Returns whether all tenants have one. */
static bool
make_cursors(Waiting *entry, const PjProjection *projection, bool all)
{
	Datum		after = entry->after;
	MemoryContext caller;

	if (!pj_cursors_start(projection, &after,
						  all ? PG_INT32_MAX : CURSORS_AT_A_TIME))
		return true;
	caller = MemoryContextSwitchTo(TopMemoryContext);
	after = PointerGetDatum(DatumGetTextPCopy(after));
	MemoryContextSwitchTo(caller);
	if (entry->after)
		pfree(DatumGetPointer(entry->after));
	entry->after = after;
	entry->made_by = GetTopTransactionIdIfAny();
	return false;
}

typedef enum Progress
{
	HANDED_OVER,				/* or another session is doing it */
	MUST_WAIT,					/* for transactions that are still open */
	HAS_MORE					/* cursors to make */
} Progress;

/*
 * Set a projection's handover if that can be done.  With the lock, the
 * projection's last change is known to be out: who starts writing from now on
 * goes by it.
 */
static Progress
hand_over_one(int32 id, int timeout_ms, bool all)
{
	PjProjection *projection = pj_projection_by_id(id);
	Waiting    *entry;
	Datum		values[2] = {Int32GetDatum(id)};

	if (!needs_handover(projection) ||
		!pj_lock_projection(id, ShareLock, false))
		return HANDED_OVER;
	projection = pj_projection_by_id(id);
	if (!needs_handover(projection))
		return HANDED_OVER;

	entry = find_waiting(id);
	if (entry->id != id || entry->written_by != projection->written_by ||
		entry->writers.mine || is_undone(entry))
		start_waiting(entry, projection);
	if (!entry->alone)
	{
		if (!pj_writers_gone(&entry->writers, timeout_ms))
			return MUST_WAIT;
		entry->log_seq = pj_source_last_log_seq();
		entry->alone = true;
	}
	values[1] = TransactionIdGetDatum(projection->written_by);
	if (pj_execute(&lock_row, values, NULL) == 0)
		return HANDED_OVER;
	if (!make_cursors(entry, projection, all))
		return HAS_MORE;
	entry->id = 0;
	values[1] = Int64GetDatum(entry->log_seq);
	pj_execute(&set_handover, values, NULL);
	return HANDED_OVER;
}

/*
 * Set the handover of those projections that need one.  Waits up to the given
 * time for writers to end.  Returns the first projection that must wait
 * longer, or 0.
 */
int32
pj_hand_over(const int32 *ids, int n, int timeout_ms)
{
	int32		first = 0;

	for (int i = 0; i < n; i++)
	{
		/* who has waited once need not do so again */
		if (hand_over_one(ids[i], first ? 0 : timeout_ms, true) == MUST_WAIT &&
			first == 0)
			first = ids[i];
	}
	return first;
}

/*
 * The same, but wait for nobody, and do no more than a little.  Returns whether
 * there is more to do.
 */
bool
pj_hand_over_some(const int32 *ids, int n)
{
	for (int i = 0; i < n; i++)
		if (hand_over_one(ids[i], 0, false) == HAS_MORE)
			return true;
	return false;
}
