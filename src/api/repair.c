/*
 * repair.c
 *	  What an operator can do with one queued event: retry it now, requeue
 *	  it, skip it, or undo a skip.
 *
 * Unlike a drain, these functions wait for the pair's locks, because a user
 * has asked for this event and expects an answer.
 */
#include "base/compat.h"

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/lockdefs.h"
#include "utils/builtins.h"
#include "utils/tuplestore.h"

#include "base/args.h"
#include "base/lock.h"
#include "base/statement.h"
#include "feed/retry.h"
#include "ipc/wakeup.h"
#include "kinds/problem.h"
#include "log/log_read.h"
#include "rebuild/clear.h"
#include "rebuild/rebuild.h"
#include "registry/projection.h"
#include "sandbox/user_context.h"
#include "state/audit.h"
#include "state/cursor.h"
#include "state/failure.h"
#include "state/outbox.h"
#include "state/run_row.h"

PG_FUNCTION_INFO_V1(projector_retry);
PG_FUNCTION_INFO_V1(projector_requeue);
PG_FUNCTION_INFO_V1(projector_skip);
PG_FUNCTION_INFO_V1(projector_unskip);
PG_FUNCTION_INFO_V1(projector_note);

/* Up to this many pairs of a projection are locked one by one. */
#define MAX_LOCKED_PAIRS	64

/*
 * Read the arguments and take the locks.  A function that changes the registry
 * needs an exclusive lock on the projection.
 */
static void
enter_item(FunctionCallInfo fcinfo, const char *function, LOCKMODE mode,
		   PjQueuedEvent *item, PjContext *saved)
{
	char	   *name = pj_required_name(fcinfo, 0, "name");
	Datum		tenant = pj_required_text(fcinfo, 1, "tenant_id");
	PjProjection *projection;

	item->aggregate = pj_required_text(fcinfo, 2, "aggregate_id");
	item->sequence = DatumGetInt64(pj_required(fcinfo, 3, "sequence_number"));
	projection = pj_take_driver(function, name, tenant, mode);

	pj_wake_at_commit();
	pj_hint_at_commit(tenant);
	pj_enter_internal(saved);
	pj_pair_look(&item->pair, projection, tenant);
	pj_run_refuse(projection, tenant);
}

/*
 * Returns the event itself; raises an error if it does not exist or is not
 * subscribed to.
 */
static PjEvent *
load_event(const PjQueuedEvent *item)
{
	const PjProjection *projection = item->pair.projection;
	PjRange		range = {.aggregate = item->aggregate,
	.after = item->sequence - 1,.upto = item->sequence,.max = 1};
	PjEvent    *event;

	if (pj_source_load(item->pair.tenant, &range, 1, 0, &event) == 0)
		ereport(ERROR,
				errcode(ERRCODE_UNDEFINED_OBJECT),
				errmsg("there is no event %lld of aggregate \"%s\" of tenant \"%s\"",
					   (long long) item->sequence,
					   TextDatumGetCString(item->aggregate),
					   TextDatumGetCString(item->pair.tenant)));
	if (!pj_projection_wants(projection, event))
		ereport(ERROR,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("projection \"%s\" does not subscribe to events of type \"%s\"",
					   projection->name,
					   TextDatumGetCString(pj_event_type(event))));
	return event;
}

/* ---- retry ---- */

/* Applies one queued event now. */
Datum
projector_retry(PG_FUNCTION_ARGS)
{
	PjQueuedEvent item = {0};
	PjContext	saved;
	const char *result;

	enter_item(fcinfo, "projector_retry", ShareLock, &item, &saved);
	if (item.pair.mode == PJ_OFF)
		ereport(ERROR,
				errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("projection \"%s\" is off for tenant \"%s\"",
					   item.pair.projection->name,
					   TextDatumGetCString(item.pair.tenant)),
				errhint("Switch it on with projector_set_mode."));
	if (item.pair.mode == PJ_SHADOW)
		ereport(ERROR,
				errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("projection \"%s\" is in mode \"shadow\" for tenant \"%s\"",
					   item.pair.projection->name,
					   TextDatumGetCString(item.pair.tenant)),
				errhint("Events are applied in another mode: see projector_set_mode."));
	pj_refuse_problem(item.pair.projection);
	result = pj_queued_retry(&item);
	pj_leave_internal(&saved);
	pj_audit(fcinfo, NULL, result);

	PG_RETURN_TEXT_P(cstring_to_text(result));
}

/* ---- requeue ---- */

/*
 * Make an item pending again, and release what waited for it: the rest of its
 * aggregate, or a pair that had stopped there.
 */
static bool
requeue_item(PjPair *pair, const PjEvent *event)
{
	Datum		aggregate = pj_event_aggregate(event);

	if (!pj_outbox_requeue(pair->projection->id, pj_event_log_seq(event)))
		return false;
	if (pair->state == PJ_STOPPED)
	{
		pair->state = pj_state_when_set_going(pair);
		pj_cursor_save(pair, &(PjCounts) {0});
	}
	pj_outbox_release(pair->projection->id, pair->tenant, &aggregate, 1);
	return true;
}

/*
 * Returns the projections that the caller may manage: all, or the one named.
 * They are not locked yet.
 */
static int
own_projections(Datum name, int32 **ids)
{
	PjProjection *projections;
	int			n = pj_projections(&projections);
	int			count = 0;

	*ids = palloc(sizeof(int32) * Max(n, 1));
	if (name)
	{
		PjProjection *projection = pj_projection_find(TextDatumGetCString(name));

		pj_projection_check_own(projection);
		(*ids)[0] = projection->id;
		return 1;
	}
	for (int i = 0; i < n; i++)
		if (!projections[i].dormant && pj_projection_is_own(&projections[i]))
			(*ids)[count++] = projections[i].id;
	return count;
}

/* A pair that has failed or dead events. */
typedef struct BrokenPair
{
	int32		projection_id;
	Datum		tenant;
} BrokenPair;

static int
compare_pairs(const void *a, const void *b)
{
	const BrokenPair *one = a;
	const BrokenPair *other = b;

	if (one->projection_id != other->projection_id)
		return one->projection_id < other->projection_id ? -1 : 1;
	return pj_text_compare(one->tenant, other->tenant);
}

/* Returns the pairs of the events, in locking order. */
static int
pairs_of(const int32 *ids, PjClaim *claims, int n, BrokenPair **pairs)
{
	int			count = 0;

	*pairs = palloc(sizeof(BrokenPair) * Max(n, 1));
	for (int i = 0; i < n; i++)
	{
		(*pairs)[i].projection_id = ids[i];
		(*pairs)[i].tenant = pj_event_tenant(&claims[i].event);
	}
	qsort(*pairs, n, sizeof(BrokenPair), compare_pairs);
	for (int i = 0; i < n; i++)
		if (i == 0 || compare_pairs(&(*pairs)[i], &(*pairs)[count - 1]) != 0)
			(*pairs)[count++] = (*pairs)[i];
	return count;
}

/*
 * Lock the pairs.  The lock table is small.  For a projection with many pairs,
 * an exclusive lock on the projection is taken, which covers all of them.
 */
static void
lock_broken_pairs(const BrokenPair *pairs, int n)
{
	int			hi;

	for (int lo = 0; lo < n; lo = hi)
	{
		int32		id = pairs[lo].projection_id;

		for (hi = lo; hi < n && pairs[hi].projection_id == id; hi++)
			;
		if (hi - lo > MAX_LOCKED_PAIRS)
		{
			pj_lock_projection(id, ExclusiveLock, true);
			continue;
		}
		pj_lock_projection(id, ShareLock, true);
		for (int i = lo; i < hi; i++)
		{
			pj_lock_pair(id, pairs[i].tenant, ShareLock, true);
			pj_lock_driver(id, pairs[i].tenant, true);
		}
	}
}

/*
 * What the arguments of projector_requeue() name must exist.  Otherwise a
 * misspelt name would look as if there were nothing to requeue.
 */
static void
check_filter(const PjItemFilter *filter)
{
	if (filter->limit < 1)
		ereport(ERROR,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("max_rows must be positive"));
	if (filter->aggregate && !filter->tenant)
		ereport(ERROR,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("aggregate_id needs tenant_id"),
				errhint("An aggregate belongs to one tenant. Give tenant_id too."));
	if (filter->sequence < 0)
		ereport(ERROR,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("sequence_number must be positive"));
	if (filter->sequence && !filter->aggregate)
		ereport(ERROR,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("sequence_number needs aggregate_id"),
				errhint("Events are numbered within their aggregate. Give aggregate_id too."));
	if (filter->tenant && !pj_source_has(filter->tenant, 0))
		ereport(ERROR,
				errcode(ERRCODE_UNDEFINED_OBJECT),
				errmsg("tenant \"%s\" does not exist",
					   TextDatumGetCString(filter->tenant)),
				errdetail("It has no events."));
	if (filter->aggregate && !pj_source_has(filter->tenant, filter->aggregate))
		ereport(ERROR,
				errcode(ERRCODE_UNDEFINED_OBJECT),
				errmsg("aggregate \"%s\" of tenant \"%s\" does not exist",
					   TextDatumGetCString(filter->aggregate),
					   TextDatumGetCString(filter->tenant)),
				errdetail("It has no events."));
}

/*
 * Requeue one of the items that were found, if it is still there.  The caller
 * holds the pair's locks.  Returns the projection, or NULL if there is nothing
 * to do: another session has requeued the item, or a run will apply its event.
 */
static PjProjection *
requeue_found(int32 id, const PjEvent *event, const PjItemFilter *filter)
{
	PjQueuedEvent item = {.pair = {.tenant = pj_event_tenant(event)},
	.aggregate = pj_event_aggregate(event),
	.sequence = pj_event_sequence(event)};
	PjProjection *projection = pj_projection_by_id(id);
	PjClaim		claim;

	if (projection == NULL ||
		!pj_outbox_claim_one(id, item.pair.tenant, item.aggregate,
							 item.sequence, &claim))
		return NULL;
	pj_pair_look(&item.pair, projection, item.pair.tenant);
	if (filter->sequence)
		pj_run_refuse(projection, item.pair.tenant);
	else if (pj_run_is_active(projection, item.pair.tenant))
		return NULL;
	if (filter->sequence)
		pj_queued_refuse_applied(&item);
	else if (pj_queued_offset(&item) >= item.sequence)
	{
		ereport(NOTICE,
				errmsg("event %lld of aggregate \"%s\" of tenant \"%s\" was not requeued: projection \"%s\" has applied later ones",
					   (long long) item.sequence,
					   TextDatumGetCString(item.aggregate),
					   TextDatumGetCString(item.pair.tenant),
					   projection->name),
				errhint("Rebuild the aggregate with projector_rebuild."));
		return NULL;
	}
	if (!requeue_item(&item.pair, event))
		return NULL;
	pj_hint_at_commit(item.pair.tenant);
	return projection;
}

/*
 * Makes failed and dead events pending again.  If the arguments name one pair,
 * its locks are taken before items are searched: another session may be about
 * to mark an event as dead.
 */
Datum
projector_requeue(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	Datum		name = pj_optional_text(fcinfo, 0, "name");
	PjItemFilter filter = {
		.tenant = pj_optional_text(fcinfo, 1, "tenant_id"),
		.aggregate = pj_optional_text(fcinfo, 2, "aggregate_id"),
		.sequence = PG_ARGISNULL(3) ? 0 :
		PG_GETARG_INT64(3) > 0 ? PG_GETARG_INT64(3) : -1,
		.limit = DatumGetInt32(pj_required(fcinfo, 4, "max_rows")),
	};
	int32	   *projection_ids,
			   *ids;
	PjClaim    *claims;
	BrokenPair *pairs;
	PjContext	saved;
	int			n,
				npairs;

	pj_require_read_committed("projector_requeue");
	pj_refuse_in_user_code("projector_requeue");
	InitMaterializedSRF(fcinfo, 0);
	filter.nprojections = own_projections(name, &projection_ids);
	filter.projection_ids = projection_ids;
	pj_wake_at_commit();

	pj_enter_internal(&saved);
	check_filter(&filter);
	if (name && filter.tenant)
		lock_broken_pairs(&(BrokenPair) {projection_ids[0], filter.tenant}, 1);
	n = pj_outbox_broken(&filter, &ids, &claims);
	npairs = pairs_of(ids, claims, n, &pairs);
	lock_broken_pairs(pairs, npairs);
	for (int i = 0; i < n; i++)
	{
		PjEvent    *event = &claims[i].event;
		PjProjection *projection = requeue_found(ids[i], event, &filter);
		bool		nulls[4] = {false};
		Datum		values[4];

		if (projection == NULL)
			continue;
		values[0] = CStringGetTextDatum(projection->name);
		values[1] = pj_event_tenant(event);
		values[2] = pj_event_aggregate(event);
		values[3] = event->values[PJ_EVENT_SEQUENCE_NUMBER];
		tuplestore_putvalues(result->setResult, result->setDesc, values,
							 nulls);
	}
	pj_leave_internal(&saved);
	pj_audit_count(fcinfo, tuplestore_tuple_count(result->setResult));

	PG_RETURN_NULL();
}

/* ---- skip ---- */

/* Skips one event permanently. */
Datum
projector_skip(PG_FUNCTION_ARGS)
{
	Datum		reason = pj_optional_text(fcinfo, 4, "reason");
	char	   *who = GetUserNameFromId(GetUserId(), false);
	PjQueuedEvent item = {0};
	PjContext	saved;
	PjEvent    *event;
	bool		done;

	if (reason == 0)
		ereport(ERROR,
				errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				errmsg("reason must not be null"),
				errhint("Say why the event may be left out: reason => '...'. It is kept with the failure."));
	enter_item(fcinfo, "projector_skip", ExclusiveLock, &item, &saved);
	event = load_event(&item);
	pj_queued_refuse_applied(&item);
	done = pj_failure_skip(&item.pair, event, reason, who);
	pj_failure_note_skips(item.pair.projection);

	/* the next driver that reaches the event skips it and continues */
	requeue_item(&item.pair, event);
	pj_leave_internal(&saved);
	pj_audit(fcinfo, NULL, done ? "true" : "false");

	PG_RETURN_BOOL(done);
}

/* Undoes projector_skip(). */
Datum
projector_unskip(PG_FUNCTION_ARGS)
{
	PjQueuedEvent item = {0};
	PjContext	saved;
	PjEvent    *event;
	bool		passed;
	bool		done;

	enter_item(fcinfo, "projector_unskip", ExclusiveLock, &item, &saved);
	event = load_event(&item);
	passed = pj_queued_offset(&item) >= item.sequence;
	done = pj_failure_unskip(item.pair.projection, pj_event_log_seq(event));
	pj_failure_note_skips(item.pair.projection);
	if (done && passed && pj_clear_by_aggregate(item.pair.projection))
	{
		(void) pj_rebuild_aggregate(item.pair.projection, item.pair.tenant,
									item.aggregate);
		passed = false;
	}
	pj_leave_internal(&saved);

	if (done && passed)
		ereport(NOTICE,
				errmsg("event %lld of aggregate \"%s\" has been skipped, and is not in the read model",
					   (long long) item.sequence,
					   TextDatumGetCString(item.aggregate)),
				errhint("Run projector_rebuild for the tenant."));
	pj_audit(fcinfo, NULL, done ? "true" : "false");
	PG_RETURN_BOOL(done);
}

/* ---- notes ---- */

/* Raise an error if a note has a member that is ours. */
static void
check_note(Jsonb *note)
{
	static const char *const reserved[] = {"shadow", "skip_reason",
	"skipped_by"};
	JsonbValue	value;

	if (!JB_ROOT_IS_OBJECT(note))
		ereport(ERROR,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("note must be a JSON object"));
	for (int i = 0; i < lengthof(reserved); i++)
		if (pj_json_member(note, reserved[i], &value))
			ereport(ERROR,
					errcode(ERRCODE_RESERVED_NAME),
					errmsg("\"%s\" cannot be noted", reserved[i]),
					errdetail("This member of column metadata is set by projector itself."),
					errhint("Use another name. An event is skipped with projector_skip."));
}

/* Adds an operator's remarks to a failure. */
Datum
projector_note(PG_FUNCTION_ARGS)
{
	int64		failure_id = DatumGetInt64(pj_required(fcinfo, 0,
													   "failure_id"));
	Datum		remarks = pj_required(fcinfo, 1, "note");
	PjProjection *projection;
	PjContext	saved;
	char	   *name;
	int32		id;

	pj_refuse_in_user_code("projector_note");
	check_note(DatumGetJsonbP(remarks));
	pj_enter_internal(&saved);
	id = pj_failure_projection(failure_id);
	pj_leave_internal(&saved);
	projection = id ? pj_projection_by_id(id) : NULL;
	if (projection == NULL)
		ereport(ERROR,
				errcode(ERRCODE_UNDEFINED_OBJECT),
				errmsg("failure %lld does not exist", (long long) failure_id),
				errhint("The failures are listed in projector.failures."));
	name = pstrdup(projection->name);
	pj_projection_own(name, ShareLock);

	pj_enter_internal(&saved);
	pj_failure_note(failure_id, remarks);
	pj_leave_internal(&saved);
	pj_audit(fcinfo, name, NULL);

	PG_RETURN_VOID();
}
