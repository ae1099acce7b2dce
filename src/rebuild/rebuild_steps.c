/*
 * rebuild_steps.c
 *	  The steps of a rebuild.  They are the same for a caller in one
 *	  transaction (rebuild.c) and for workers in many (run.c).
 *
 * A rebuild holds the locks that keep others from applying events of its pair,
 * or of all pairs of its projection.  The order of the steps matters:
 *
 * 1. Remember up to where the log is settled: pj_rebuild_note().
 * 2. Delete the pair's queued items, and close its failures.
 * 3. Clear the read model, and delete the offsets.  Steps 2 and 3 are
 *    pj_rebuild_forget().
 * 4. With a snapshot taken after that, read the events and apply them:
 *    pj_replay_batch(), until there are no more.
 * 5. Move the cursor to the position of step 1: pj_replay_end().
 *
 * An event that commits after step 2 keeps its item.  If it is also read in
 * step 4, its offset shows that it has been applied when the item is
 * processed.  In the opposite order, an event could be missed in step 4 and
 * its item deleted in step 2.
 *
 * A build in a separate table does steps 2 and 3 last, when it is complete
 * (pj_aside_take_over()).  Its own items and offsets show what has been read.
 */
#include "base/compat.h"

#include "kinds/kind.h"
#include "rebuild/clear.h"
#include "rebuild/rebuild_steps.h"
#include "sandbox/deadline.h"
#include "state/failure.h"
#include "state/offset.h"
#include "state/outbox.h"

/*
 * Clearing a read model, or merging a build into it, may take as long as this
 * many calls of the projection's code.
 */
#define LONG_CALL_FACTOR	20

/*
 * Start the timeout for something that runs users' code for all rows of a
 * tenant at once.  It may take longer than a call for one event, but not
 * forever.
 */
void
pj_long_call_begin(const PjProjection *projection)
{
	pj_deadline_begin(Min((int64) pj_kind_timeout(projection) *
						  LONG_CALL_FACTOR, PG_INT32_MAX / 2));
}

/*
 * Stop the timeout, and raise an error if it was exceeded.  pj_deadline_end()
 * cannot be used: the deadline may have been disarmed when the users' code
 * returned, and then it would not notice.  Code that catches its cancellation
 * returns, too.
 */
void
pj_long_call_end(void)
{
	pj_deadline_disarm();
	if (pj_deadline_passed())
		ereport(ERROR,
				errcode(ERRCODE_QUERY_CANCELED),
				errmsg("%s", pj_deadline_message()));
}

/*
 * Step 1.  "tail" is the settled tail of the log.  In log order no event after
 * it can be read.  Otherwise all events up to "last" are read, settled or not:
 * an event that is not visible yet keeps its item.
 */
void
pj_rebuild_note(PjRebuild *rebuild, int64 tail, int64 last)
{
	const PjPair *pair = rebuild->pair;

	rebuild->settled = Max(tail, pair->last_log_seq);
	rebuild->upto = pair->projection->log_ordered ? rebuild->settled : last;
	rebuild->noted = true;
}

/*
 * Steps 2 and 3.  Returns how many rows were deleted; 0 if the function of
 * option "clear" did it.
 */
int64
pj_rebuild_forget(const PjRebuild *rebuild)
{
	PjProjection *projection = rebuild->pair->projection;
	Datum		tenant = rebuild->pair->tenant;
	Datum		aggregate = rebuild->aggregate;
	int64		removed;

	Assert(rebuild->noted);
	if (aggregate)
		pj_outbox_clear(projection->id, tenant, aggregate);
	else
		pj_outbox_clear_upto(projection->id, tenant, rebuild->upto);
	pj_failure_rebuilt(projection, tenant, aggregate, rebuild->upto);
	pj_long_call_begin(projection);
	removed = pj_clear(projection, tenant, aggregate);
	pj_long_call_end();
	pj_offsets_delete(projection->id, tenant, aggregate);
	return removed;
}
