/*
 * capture.c
 *	  The trigger on the source table: what happens to new events in the
 *	  transaction that appends them.
 *
 * The trigger fires once per statement, with the new rows in a transition
 * table, so it works in the same way for INSERT, COPY and projector_append().
 * It checks each event against its predecessor.  Then, for every projection
 * that subscribes to the event, it applies the event (inline, strict) or adds
 * it to the outbox (async, shadow, or inline if it cannot be applied now).  If
 * work is left for a worker, one is woken at commit.
 *
 * Rows are processed in chunks, so that memory is bounded for statements of
 * any size.  The events of an aggregate come in sequence, so they are in order
 * across chunks too.
 */
#include "base/compat.h"

#include "access/xact.h"
#include "executor/tuptable.h"
#include "storage/lockdefs.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/tuplestore.h"

#include "apply/apply.h"
#include "apply/made_by.h"
#include "base/errcodes.h"
#include "base/lock.h"
#include "base/trigger.h"
#include "feed/capture.h"
#include "ipc/wakeup.h"
#include "kinds/kind.h"
#include "kinds/problem.h"
#include "log/intake.h"
#include "log/log_insert.h"
#include "log/log_read.h"
#include "registry/projection.h"
#include "sandbox/user_context.h"
#include "state/delta.h"
#include "state/outbox.h"

PG_FUNCTION_INFO_V1(projector_events_capture);

/* The limits of a chunk, whichever is reached first. */
#define CHUNK_EVENTS	1000
#define CHUNK_BYTES		(8 * 1024 * 1024)

/* ---- checking ---- */

static void
refuse_sequence(const PjEvent *event, const char *detail)
{
	ereport(ERROR,
			errcode(ERRCODE_PJ_SEQUENCE_VIOLATION),
			errmsg("event %lld of aggregate \"%s\" of tenant \"%s\" is out of sequence",
				   (long long) pj_event_sequence(event),
				   TextDatumGetCString(pj_event_aggregate(event)),
				   TextDatumGetCString(pj_event_tenant(event))),
			errdetail("%s", detail),
			errhint("Use projector_append, which chooses the sequence number itself."));
}

/*
 * Check that an event's predecessor exists and has a lower log_seq.  The
 * predecessor may be the event before it in the statement.
 */
static void
check_sequence(const PjEvent *event, const PjEvent *before)
{
	int64		sequence = pj_event_sequence(event);
	PjPosition	previous;

	if (sequence < 1)
		refuse_sequence(event, "Sequence numbers begin with 1.");
	if (sequence == 1)
		return;

	if (before && pj_event_sequence(before) == sequence - 1 &&
		pj_text_equal(pj_event_aggregate(before), pj_event_aggregate(event)) &&
		pj_text_equal(pj_event_tenant(before), pj_event_tenant(event)))
		previous.log_seq = pj_event_log_seq(before);
	else if (!pj_source_predecessor(pj_event_tenant(event),
									pj_event_aggregate(event), sequence - 1,
									&previous))
		refuse_sequence(event, psprintf("There is no event %lld.",
										(long long) sequence - 1));

	if (previous.log_seq >= pj_event_log_seq(event))
		refuse_sequence(event,
						psprintf("Its log_seq %lld is not greater than log_seq %lld of event %lld.",
								 (long long) pj_event_log_seq(event),
								 (long long) previous.log_seq,
								 (long long) sequence - 1));
}

/* Is the predecessor of a restored event missing? */
static bool
lacks_predecessor(const PjEvent *event)
{
	int64		sequence = pj_event_sequence(event);
	PjPosition	previous;

	if (sequence < 1)
		refuse_sequence(event, "Sequence numbers begin with 1.");
	return sequence > 1 &&
		!pj_source_position(pj_event_tenant(event), pj_event_aggregate(event),
							sequence - 1, &previous);
}

/* Events that were missing when the log was dumped are still missing. */
static void
report_gaps(int64 gaps)
{
	ereport(WARNING,
			errcode(ERRCODE_PJ_EVENT_MISSING),
			errmsg_plural("events are missing from the restored log, in %lld place",
						  "events are missing from the restored log, in %lld places",
						  gaps, (long long) gaps),
			errdetail("They were missing when it was dumped. Read models that were built before that may differ from a rebuild."),
			errhint("See projector.missing_events."));
}

/* ---- applying ---- */

static const char run_is_active[] =
"A run of the projection is active for this tenant.";

static PjEvent **
pointers_to(PjEvent *events, int n)
{
	PjEvent   **pointers = palloc(sizeof(PjEvent *) * n);

	for (int i = 0; i < n; i++)
		pointers[i] = &events[i];
	return pointers;
}

/*
 * Leave events to a worker: add them to a list of PjQueued.  Their outbox rows
 * are inserted together with those for other projections.  The events must not
 * change until then.
 */
static void
enqueue(const PjProjection *projection, PjEvent *events, int n, List **queued)
{
	PjQueued   *item = palloc(sizeof(PjQueued));

	item->projection_id = projection->id;
	item->events = pointers_to(events, n);
	item->count = n;
	*queued = lappend(*queued, item);
	pj_wake_at_commit();
}

/* The same for events that were tried: some may already have outbox rows. */
static void
enqueue_tried(const PjProjection *projection, PjEvent *events, int n)
{
	PjContext	saved;

	pj_wake_at_commit();
	pj_enter_internal(&saved);
	pj_outbox_enqueue(projection->id, pointers_to(events, n), n);
	pj_leave_internal(&saved);
}

/*
 * Prepare to apply events to a pair: take its locks, then read how it runs.
 * Returns why the events cannot be applied now, or NULL.
 */
static const char *
enter_pair(PjPair *pair, int32 projection_id, bool wait)
{
	PjProjection *projection;
	const char *problem;

	if (IsolationUsesXactSnapshot())
		return "The transaction's isolation level is above READ COMMITTED.";
	if (pj_user_code() != NULL)
		return "The event is appended by a projection's code.";
	if (!pj_lock_projection(projection_id, ShareLock, wait))
		return "The projection is being changed.";
	if (!pj_lock_pair_inline(projection_id, pair->tenant, wait))
		return "The projection is locked for this tenant, or the transaction touches too many tenants.";

	/* The projection may have changed before we had the locks. */
	projection = pj_projection_by_id(projection_id);
	if (projection == NULL)
	{
		pair->mode = PJ_OFF;	/* dropped */
		return NULL;
	}
	if (projection->overrides)
		pj_pair_look(pair, projection, pair->tenant);
	else
	{
		pair->projection = projection;
		pair->mode = projection->mode;
		pair->paused = projection->paused;
		pair->run_id = 0;
	}
	if (pair->paused)
		return "The projection is paused.";
	if (pair->run_id != 0)
		return run_is_active;
	problem = pj_projection_problem(projection);
	if (problem)
		return psprintf("The projection cannot run: %s.", problem);
	if ((pair->mode == PJ_INLINE || pair->mode == PJ_STRICT) &&
		!pj_made_by_append(pair, wait))
		return "The projection's code has changed, and another session applies events of this tenant.";
	return NULL;
}

static void
refuse_strict(const PjProjection *projection, Datum tenant, const char *why)
{
	ereport(ERROR,
			errcode(IsolationUsesXactSnapshot() ?
					ERRCODE_T_R_SERIALIZATION_FAILURE :
					ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			errmsg("projection \"%s\" cannot apply the event now for tenant \"%s\"",
				   projection->name, TextDatumGetCString(tenant)),
			errdetail("%s", why),
			errhint("An event that need not be applied at once is queued in mode \"inline\"."));
}

/* Apply events of one tenant. */
static void
apply_now(PjPair *pair, PjEvent *events, int n)
{
	PjApplyRequest request = {
		.pair = pair,
		.driver = pair->mode == PJ_STRICT ? PJ_BY_STRICT_APPEND : PJ_BY_APPEND,
		.given = events,
		.ngiven = n,
	};
	PjApplyResult result;
	PjCounts	counts = {0};

	pj_events_sort(events, n);
	request.nranges = pj_events_ranges(events, n, &request.ranges);
	pj_apply(&request, &result);
	pj_apply_count(&result, &counts);
	if (result.applied + result.failed > 0)
		pj_delta_add(pair, &counts, &result.digest, result.last_log_seq);
	if (result.conflict)
		enqueue_tried(pair->projection, events, n);
	else if (result.applied < n)
		pj_wake_at_commit();	/* some are queued */
}

/* Pass one tenant's events to a projection that may apply them at once. */
static void
capture_inline(PjProjection *projection, PjMode mode, PjEvent *events, int n,
			   List **queued)
{
	Datum		tenant = pj_event_tenant(&events[0]);
	PjPair		pair = {.projection = projection,.tenant = tenant};
	const char *why = enter_pair(&pair, projection->id, mode == PJ_STRICT);

	/* The mode may have changed before we had the locks. */
	if (why == NULL)
		mode = pair.mode;

	/* an unreadable registry row must not make even a strict append fail */
	if (mode == PJ_STRICT && projection->unreadable)
		mode = PJ_INLINE;

	if (mode == PJ_FOLLOW)
		pj_wake_at_commit();
	if (!pj_mode_queues(mode))
		return;
	if (why == NULL && (mode == PJ_INLINE || mode == PJ_STRICT))
		apply_now(&pair, events, n);
	else if (mode == PJ_STRICT)
		refuse_strict(projection, tenant, why);
	else
		enqueue(projection, events, n, queued);
}

/* ---- passing events to projections ---- */

/*
 * Returns the mode in which a projection gets a tenant's new events.  It may
 * change until the locks are taken.
 */
static PjMode
mode_for(PjProjection *projection, Datum tenant)
{
	PjPair		pair;

	if (!projection->overrides)
		return projection->mode;
	pj_pair_look(&pair, projection, tenant);
	if (pair.run_id == 0)
		return pair.mode;

	/* the run waits for the pair's lock, so do not take it */
	if (pair.mode == PJ_STRICT)
		refuse_strict(projection, tenant, run_is_active);
	return pair.mode == PJ_INLINE ? PJ_ASYNC : pair.mode;
}

/* Pass one tenant's events to a projection. */
static void
capture_tenant(PjProjection *projection, PjEvent *events, int n, List **queued)
{
	PjMode		mode = mode_for(projection, pj_event_tenant(&events[0]));

	if (mode == PJ_INLINE || mode == PJ_STRICT)
		capture_inline(projection, mode, events, n, queued);
	else if (mode == PJ_FOLLOW)
		pj_wake_at_commit();
	else if (mode != PJ_OFF)
		enqueue(projection, events, n, queued);
}

/*
 * Move the events of the first event's tenant to "own".  Returns their number.
 */
static int
take_tenant(PjEvent *events, int *n, PjEvent *own)
{
	Datum		tenant = pj_event_tenant(&events[0]);
	int			kept = 0,
				taken = 0;

	for (int i = 0; i < *n; i++)
	{
		if (pj_text_equal(pj_event_tenant(&events[i]), tenant))
			own[taken++] = events[i];
		else
			events[kept++] = events[i];
	}
	*n = kept;
	return taken;
}

/*
 * Pass a chunk of events to one projection.  Most chunks are of a single
 * tenant.
 */
static void
capture_for(PjProjection *projection, const PjEvent *events, int n,
			List **queued)
{
	PjEvent    *left,
			   *own;
	int			nleft = 0;

	if (projection->mode == PJ_FOLLOW && !projection->overrides)
	{
		pj_wake_at_commit();	/* a worker reads them from the log */
		return;
	}

	left = palloc(sizeof(PjEvent) * n);
	for (int i = 0; i < n; i++)
		if (pj_projection_wants(projection, &events[i]))
			left[nleft++] = events[i];

	/* If no tenant has a mode of its own, all can be queued together. */
	if ((projection->mode == PJ_ASYNC || projection->mode == PJ_SHADOW) &&
		!projection->overrides && nleft > 0)
	{
		enqueue(projection, left, nleft, queued);
		return;
	}

	own = palloc(sizeof(PjEvent) * n);
	while (nleft > 0)
	{
		int			nown = take_tenant(left, &nleft, own);

		capture_tenant(projection, own, nown, queued);
		own += nown;
	}
}

static bool
is_captured(const PjProjection *projection)
{
	return !projection->dormant &&
		(projection->mode != PJ_OFF || projection->overrides);
}

/* Pass a chunk of events to all projections. */
static void
capture_chunk(PjEvent *events, int n)
{
	PjProjection *projections;
	int			nprojections = pj_projections(&projections);
	List	   *queued = NIL;
	bool		captured = false;

	pj_kinds_sweep();
	for (int i = 0; i < nprojections; i++)
	{
		if (!is_captured(&projections[i]))
			continue;
		capture_for(&projections[i], events, n, &queued);
		captured = true;
	}
	if (queued != NIL)
		pj_outbox_add(queued);

	/* leave hints, so that workers need not check all tenants */
	for (int i = 0; i < n && captured; i++)
		if (i == 0 || !pj_text_equal(pj_event_tenant(&events[i]),
									 pj_event_tenant(&events[i - 1])))
			pj_hint_at_commit(pj_event_tenant(&events[i]));
}

/*
 * Read the next row.  Its memory belongs to the slot, so it must not be
 * allocated in the chunk's context.
 */
static bool
next_row(Tuplestorestate *rows, TupleTableSlot *slot, MemoryContext context)
{
	MemoryContext chunk = MemoryContextSwitchTo(context);
	bool		found = tuplestore_gettupleslot(rows, true, false, slot);

	MemoryContextSwitchTo(chunk);
	return found;
}

/* The statement's new events, read chunk by chunk. */
typedef struct Capture
{
	Tuplestorestate *rows;
	TupleTableSlot *slot;
	MemoryContext context;		/* for the slot's memory */
	bool		more;			/* there may be more rows */
	bool		restored;		/* the rows are restored from a dump */
	int64		gaps;			/* number of events without a predecessor */
} Capture;

/* Check a new event, given the one before it in the chunk. */
static void
check_event(Capture *capture, const PjEvent *event, const PjEvent *before)
{
	if (capture->restored)
	{
		capture->gaps += lacks_predecessor(event);
		return;
	}
	check_sequence(event, before);
	pj_intake_check(pj_event_log_seq(event));
}

/* Read and check the next chunk.  Returns the number of events in it. */
static int
read_chunk(Capture *capture, PjEvent *events)
{
	Size		bytes = 0;
	int			n = 0;

	while (n < CHUNK_EVENTS && bytes < CHUNK_BYTES)
	{
		capture->more = next_row(capture->rows, capture->slot,
								 capture->context);
		if (!capture->more)
			break;
		bytes += pj_source_event(capture->slot, &events[n]);
		check_event(capture, &events[n], n > 0 ? &events[n - 1] : NULL);
		n++;
	}
	return n;
}

/* Pass all events to all projections; memory is freed after each chunk. */
static void
capture_all(Capture *capture)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "projector capture",
												  ALLOCSET_DEFAULT_SIZES);
	PjEvent    *events = palloc(sizeof(PjEvent) * CHUNK_EVENTS);
	MemoryContext caller = MemoryContextSwitchTo(context);

	do
	{
		int			n;

		MemoryContextReset(context);
		n = read_chunk(capture, events);
		if (n > 0)
			capture_chunk(events, n);
	} while (capture->more);
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(context);
	pfree(events);
}

/* The same for one event that was inserted without SQL. */
static void
capture_one(PjEvent *event)
{
	check_sequence(event, NULL);
	pj_intake_check(pj_event_log_seq(event));
	capture_chunk(event, 1);
}

void
pj_capture_init(void)
{
	pj_log_capture = capture_one;
}

/* Trigger function: AFTER INSERT, for each statement. */
Datum
projector_events_capture(PG_FUNCTION_ARGS)
{
	TriggerData *trigdata = pj_trigger_data(fcinfo, "events_capture",
											pj_source_table(),
											PJ_AFTER_STATEMENT,
											TRIGGER_EVENT_INSERT);
	Capture		capture = {
		.rows = trigdata->tg_newtable,
		.context = CurrentMemoryContext,
		.restored = pj_intake_end(),
	};

	if (capture.rows == NULL)
		elog(ERROR, "events_capture: called without a transition table");

	capture.slot = MakeSingleTupleTableSlot(RelationGetDescr(trigdata->tg_relation),
											&TTSOpsMinimalTuple);
	tuplestore_rescan(capture.rows);
	capture_all(&capture);
	ExecDropSingleTupleTableSlot(capture.slot);
	if (capture.gaps > 0)
		report_gaps(capture.gaps);
	return PointerGetDatum(NULL);
}
