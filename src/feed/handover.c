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
 * The list of these transactions is kept from one call to the next, so that a
 * worker does not have to wait for them.
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
	int32		id;				/* 0 if this entry is free */
	TransactionId written_by;	/* the transaction that wrote the registry row */
	PjWriters	writers;		/* taken when that change was visible */
} Waiting;

static Waiting *waiting = NULL;
static int	nwaiting = 0;

/* If another session is setting it, the row is locked and skipped. */
static PjStatement set_handover = {
	.sql = "UPDATE projector.projections SET handover_log_seq = $2,"
	" started = true"
	" WHERE ctid = ANY (ARRAY (SELECT ctid FROM projector.projections"
	" WHERE projection_id = $1 AND xmin = $3 FOR UPDATE SKIP LOCKED))",
	.expect = SPI_OK_UPDATE,
	.nargs = 3,
	.argtypes = {INT4OID, INT8OID, XIDOID},
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

/*
 * Set a projection's handover if possible.  Returns false if it must wait.
 * With the lock, we know that the last change has committed: transactions that
 * start writing from now on see it.
 */
static bool
hand_over_one(int32 id, int timeout_ms)
{
	PjProjection *projection = pj_projection_by_id(id);
	Waiting    *entry;
	Datum		values[3] = {Int32GetDatum(id)};

	if (!needs_handover(projection) ||
		!pj_lock_projection(id, ShareLock, false))
		return true;
	projection = pj_projection_by_id(id);
	if (!needs_handover(projection))
		return true;

	entry = find_waiting(id);
	if (entry->id != id || entry->written_by != projection->written_by ||
		entry->writers.mine)
	{
		entry->id = 0;			/* stays so after an error */
		pj_writers_note(&entry->writers);
		entry->id = id;
		entry->written_by = projection->written_by;
	}
	if (!pj_writers_gone(&entry->writers, timeout_ms))
		return false;
	entry->id = 0;

	values[1] = Int64GetDatum(pj_source_last_log_seq());
	values[2] = TransactionIdGetDatum(projection->written_by);
	if (pj_execute(&set_handover, values, NULL) == 1)
		pj_cursors_start(projection);
	return true;
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
		/* wait at most once */
		if (!hand_over_one(ids[i], first ? 0 : timeout_ms) && first == 0)
			first = ids[i];
	}
	return first;
}
