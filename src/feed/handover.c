/*
 * handover.c
 *	  From where on the capture trigger hands events to a projection.
 *
 * The handover is the position up to which events are read from the log.  The
 * capture trigger hands over those after it, because whoever appends them knows
 * the projection as it is now.  It is set once every transaction that was
 * writing events when the projection was last changed has ended: such a
 * transaction may still use what it knew before.
 *
 * Who those were is remembered from one call to the next, so that a worker
 * need not wait for them.
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
} Waiting;

static Waiting *waiting = NULL;
static int	nwaiting = 0;

/* If another session is setting it, it is left to that one. */
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
 * Does a projection still wait for its handover?  Perhaps for whoever has its
 * lock, too.
 */
bool
pj_awaits_handover(int32 id)
{
	return needs_handover(pj_projection_by_id(id));
}

/* The place of a projection in the list, or a free one. */
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
 * Set a projection's handover if that can be done.  Returns false if it must
 * wait.  With the lock, the projection's last change is known to be out: who
 * starts writing from now on goes by it.
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
		entry->id = 0;			/* an error leaves it so */
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
 * Set the handovers of those projections that need one.  Waits up to the
 * given time for writers to end, and returns the first projection that must
 * wait longer, or 0.
 */
int32
pj_hand_over(const int32 *ids, int n, int timeout_ms)
{
	int32		first = 0;

	for (int i = 0; i < n; i++)
	{
		/* who has waited once need not do so again */
		if (!hand_over_one(ids[i], first ? 0 : timeout_ms) && first == 0)
			first = ids[i];
	}
	return first;
}
