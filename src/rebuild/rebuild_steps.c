/*
 * rebuild_steps.c
 *	  The order in which a read model is rebuilt, whoever does it: a caller in
 *	  one transaction (rebuild.c), or workers in many (run.c).
 *
 * A rebuild has its pair, or all pairs of its projection, to itself.  The order
 * matters:
 *
 *	1. Note up to where the log is settled: pj_rebuild_note().
 *	2. Remove the pair's queued items, and close its failures.
 *	3. Clear the read model, and forget the offsets.  2 and 3 are
 *	   pj_rebuild_forget().
 *	4. With a snapshot taken after that, read the events and apply them:
 *	   pj_replay_batch(), until there are no more.
 *	5. Move the cursor to what was noted: pj_replay_end().
 *
 * An event that is committed after 2 keeps its item.  If it is read in 4
 * nevertheless, its offset says so when the item is met.  The other way round,
 * an event could be read by nobody and its item removed.
 *
 * What is built aside takes 2 and 3 last, once it is complete
 * (pj_aside_take_over()): its own items and offsets say what has been read.
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
 * Emptying a read model, and putting what was built in its place, may take as
 * long as so many calls of the projection's code.
 */
#define LONG_CALL_FACTOR	20

/*
 * What runs users' code for all rows of a tenant at once begins.  It may take
 * longer than a call for one event, but not for ever.
 */
void
pj_long_call_begin(const PjProjection *projection)
{
	pj_deadline_begin(Min((int64) pj_kind_timeout(projection) *
						  LONG_CALL_FACTOR, PG_INT32_MAX / 2));
}

/*
 * It has ended: an error if it took too long.  The deadline may have been
 * disarmed already, when the users' code returned, so that pj_deadline_end()
 * would not notice.  Code that catches its cancellation returns, too.
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
 * Step 1.  "tail" is up to where the log is settled now.  In log order nothing
 * behind it can be read.  Otherwise everything is read up to "last", settled or
 * not: an event that is not seen then keeps its item.
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
 * Steps 2 and 3.  Returns how many rows were removed; 0 if a function of the
 * projection's own has done it.
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
