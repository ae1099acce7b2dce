/*
 * append.c
 *	  Append events to an aggregate.
 *
 * The order is: check event_id, check expected_version, then insert, which
 * draws a log_seq.  Nothing is locked beforehand.  An append looks up the
 * aggregate's current last event, waits for a transaction that is adding one,
 * and inserts the next.  If another session was faster, the insert does
 * nothing, and the append looks again.  The log_seq is drawn after the
 * predecessor was seen, so log_seq rises with the sequence number.
 */
#include "base/compat.h"

#include <ctype.h>

#include "fmgr.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/jsonb.h"
#include "utils/uuid.h"

#include "base/args.h"
#include "base/errcodes.h"
#include "base/subxact.h"
#include "base/text.h"
#include "log/log_insert.h"
#include "log/log_read.h"
#include "log/log_write.h"
#include "sandbox/user_context.h"

PG_FUNCTION_INFO_V1(projector_append);
PG_FUNCTION_INFO_V1(projector_append_batch);

/*
 * Give up after this many failed inserts for which no conflicting event is
 * found.
 */
#define MAX_UNEXPLAINED_CONFLICTS 3

/*
 * Are these events in the log already?  Returns the sequence number of the
 * last one if all are, 0 if none is.
 */
static int64
find_known(const PjNewEvents *events)
{
	int64		last = 0;
	int			known = 0;


	for (int i = 0; i < events->count; i++)
	{
		if (events->event_ids[i] == 0)
			continue;
		switch (pj_source_known(events, i, &last))
		{
			case PJ_ID_UNKNOWN:
				break;
			case PJ_ID_SAME:
				known++;
				break;
			case PJ_ID_DIFFERENT:
				ereport(ERROR,
						errcode(ERRCODE_UNIQUE_VIOLATION),
						errmsg("event_id %s is already used by another event of tenant \"%s\"",
							   DatumGetCString(DirectFunctionCall1(uuid_out, events->event_ids[i])),
							   TextDatumGetCString(events->tenant)),
						errdetail("The event in the log differs in its aggregate, type, payload or metadata."));
		}
	}
	if (known > 0 && known < events->count)
		ereport(ERROR,
				errcode(ERRCODE_PJ_PARTIAL_BATCH),
				errmsg("%d of %d events are already in the log",
					   known, events->count),
				errdetail("Nothing was appended to aggregate \"%s\" of tenant \"%s\".",
						  TextDatumGetCString(events->aggregate),
						  TextDatumGetCString(events->tenant)),
				errhint("Send the same batch again, or only new events."));
	return last;
}

static void
refuse_version(const PjNewEvents *events, int64 actual, int64 expected)
{
	ereport(ERROR,
			errcode(ERRCODE_PJ_VERSION_CONFLICT),
			errmsg("aggregate \"%s\" of tenant \"%s\" is not at the expected version",
				   TextDatumGetCString(events->aggregate),
				   TextDatumGetCString(events->tenant)),
			errdetail("Expected version %lld, actual version %lld.",
					  (long long) expected, (long long) actual),
			errhint("Load the aggregate again, and decide again."));
}

/*
 * Returns the sequence number of the aggregate's last event, 0 if there is
 * none.  Raises an error if the transaction's snapshot is older than that
 * event, because it cannot build on an event it does not see.
 */
static int64
find_last(const PjNewEvents *events)
{
	PjPosition	last;

	if (!pj_source_position(events->tenant, events->aggregate, 0, &last))
		return 0;
	if (!last.visible)
		ereport(ERROR,
				errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				errmsg("could not serialize access to aggregate \"%s\" of tenant \"%s\"",
					   TextDatumGetCString(events->aggregate),
					   TextDatumGetCString(events->tenant)),
				errdetail("Another transaction has appended to it since this one began."),
				errhint("The transaction might succeed if retried."));
	return last.sequence_number;
}

/* Events to insert, and the sequence number of the one before them. */
typedef struct Insertion
{
	const PjNewEvents *events;
	int64		after;
} Insertion;

static bool
insert_all(void *arg)
{
	Insertion  *insertion = arg;

	return pj_source_insert(insertion->events, insertion->after) ==
		insertion->events->count;
}

/*
 * Insert all events or none.  If another session is faster, a multi-row insert
 * may succeed in part, so it needs a subtransaction.
 */
static bool
insert_by_sql(const PjNewEvents *events, int64 after)
{
	Insertion	insertion = {events, after};
	ErrorData  *error;
	bool		complete;

	if (events->count == 1)
		return insert_all(&insertion);

	error = pj_subtransaction(insert_all, &insertion, &complete);
	if (error)
		ReThrowError(error);
	return complete;
}

static bool
insert_events(const PjNewEvents *events, int64 after)
{
	PjContext	saved;
	bool		complete;

	if (events->count == 1 && pj_log_insert(events, after))
		return true;
	pj_enter_previous(&saved);
	complete = insert_by_sql(events, after);
	pj_leave_internal(&saved);
	return complete;
}

/*
 * Append events and return the sequence number of the last.  An expected
 * version of -1 means any.
 */
static int64
append_events(const PjNewEvents *events, int64 expected)
{
	int64		seen = -1;
	int			unexplained = 0;

	for (;;)
	{
		int64		known = find_known(events);
		int64		last;

		if (known > 0)
			return known;
		last = find_last(events);
		if (expected >= 0 && expected != last)
		{
			/* the event we waited for may be the same one */
			known = find_known(events);
			if (known > 0)
				return known;
			refuse_version(events, last, expected);
		}
		if (events->count == 0 || insert_events(events, last))
			return last + events->count;

		CHECK_FOR_INTERRUPTS();
		unexplained = (last == seen) ? unexplained + 1 : 0;
		seen = last;
		if (unexplained >= MAX_UNEXPLAINED_CONFLICTS)
			ereport(ERROR,
					errcode(ERRCODE_UNIQUE_VIOLATION),
					errmsg("could not append to aggregate \"%s\" of tenant \"%s\"",
						   TextDatumGetCString(events->aggregate),
						   TextDatumGetCString(events->tenant)),
					errdetail("An event with the same log_seq or event_id is in the log already."),
					errhint("If the log was copied from elsewhere, set its sequence to the greatest log_seq or higher."));
	}
}

/* ---- arguments ---- */

static int64
get_expected_version(FunctionCallInfo fcinfo, int argno)
{
	int64		expected;

	if (PG_ARGISNULL(argno))
		return -1;
	expected = PG_GETARG_INT64(argno);
	if (expected < 0)
		ereport(ERROR,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("expected_version must not be negative"),
				errhint("Use 0 for an aggregate that must be new, null for any version."));
	return expected;
}

/* Append one event.  Returns its sequence number. */
Datum
projector_append(PG_FUNCTION_ARGS)
{
	Datum		event_id,
				event_type,
				payload,
				metadata;
	PjNewEvents events = {.count = 1,.event_ids = &event_id,
		.event_types = &event_type,.payloads = &payload,
	.metadatas = &metadata};

	events.tenant = pj_required_text(fcinfo, 0, "tenant_id");
	events.aggregate = pj_required_text(fcinfo, 1, "aggregate_id");
	event_type = pj_required_text(fcinfo, 2, "event_type");
	payload = pj_required(fcinfo, 3, "payload");
	metadata = pj_required(fcinfo, 5, "metadata");
	event_id = pj_optional(fcinfo, 6);

	PG_RETURN_INT64(append_events(&events, get_expected_version(fcinfo, 4)));
}

/* ---- batches ---- */

static void
refuse_element(int i, const char *problem)
{
	ereport(ERROR,
			errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			errmsg("element %d of events %s", i + 1, problem),
			errhint("An element is an object with \"event_type\" and \"payload\", and possibly \"metadata\" and \"event_id\"."));
}

/* Copy a value inside a jsonb to a jsonb of its own. */
static Datum
json_datum(JsonbValue *value)
{
	return JsonbPGetDatum(JsonbValueToJsonb(value));
}

static void
check_members(Jsonb *element, int i)
{
	static const char *const known[] = {"event_type", "payload", "metadata",
	"event_id"};
	JsonbIterator *it = JsonbIteratorInit(&element->root);
	JsonbIteratorToken token;
	JsonbValue	value;

	while ((token = JsonbIteratorNext(&it, &value, true)) != WJB_DONE)
	{
		bool		found = false;

		if (token != WJB_KEY)
			continue;
		for (int k = 0; k < lengthof(known); k++)
			found = found ||
				(strlen(known[k]) == value.val.string.len &&
				 strncmp(known[k], value.val.string.val,
						 value.val.string.len) == 0);
		if (!found)
			refuse_element(i, psprintf("has an unknown member \"%s\"",
									   pnstrdup(value.val.string.val,
												value.val.string.len)));
	}
}

/* An error of uuid_in() would not say which element is wrong. */
static bool
looks_like_uuid(const char *str)
{
	int			digits = 0;

	for (const char *c = str; *c; c++)
	{
		if (isxdigit((unsigned char) *c))
			digits++;
		else if (strchr("-{}", *c) == NULL)
			return false;
	}
	return digits == 2 * UUID_LEN;
}

static Datum
parse_event_id(JsonbValue *value, int i)
{
	char	   *str;

	if (value->type != jbvString)
		refuse_element(i, "has an \"event_id\" that is not a string");
	str = pnstrdup(value->val.string.val, value->val.string.len);
	if (!looks_like_uuid(str))
		refuse_element(i, "has an \"event_id\" that is not a uuid");
	return DirectFunctionCall1(uuid_in, CStringGetDatum(str));
}

/* Parse one element of the array. */
static void
parse_element(Jsonb *element, int i, PjNewEvents *events)
{
	JsonbValue	value;

	if (!JB_ROOT_IS_OBJECT(element))
		refuse_element(i, "is not an object");
	check_members(element, i);

	if (!pj_json_member(element, "event_type", &value) ||
		value.type != jbvString || value.val.string.len == 0)
		refuse_element(i, "has no \"event_type\" that is a string and not empty");
	events->event_types[i] =
		PointerGetDatum(cstring_to_text_with_len(value.val.string.val,
												 value.val.string.len));

	if (!pj_json_member(element, "payload", &value))
		refuse_element(i, "has no \"payload\"");
	events->payloads[i] = json_datum(&value);

	if (pj_json_member(element, "metadata", &value) && value.type != jbvNull)
		events->metadatas[i] = json_datum(&value);
	else
		events->metadatas[i] = DirectFunctionCall1(jsonb_in,
												   CStringGetDatum("{}"));

	if (pj_json_member(element, "event_id", &value) && value.type != jbvNull)
		events->event_ids[i] = parse_event_id(&value, i);
	else
		events->event_ids[i] = 0;
}

static int
compare_ids(const void *a, const void *b)
{
	return memcmp(*(pg_uuid_t *const *) a, *(pg_uuid_t *const *) b, UUID_LEN);
}

static void
check_ids_differ(const PjNewEvents *events)
{
	pg_uuid_t **ids = palloc(sizeof(pg_uuid_t *) * Max(events->count, 1));
	int			n = 0;

	for (int i = 0; i < events->count; i++)
		if (events->event_ids[i] != 0)
			ids[n++] = DatumGetUUIDP(events->event_ids[i]);
	qsort(ids, n, sizeof(pg_uuid_t *), compare_ids);
	for (int i = 1; i < n; i++)
		if (memcmp(ids[i - 1], ids[i], UUID_LEN) == 0)
			ereport(ERROR,
					errcode(ERRCODE_UNIQUE_VIOLATION),
					errmsg("event_id %s is used twice in the batch",
						   DatumGetCString(DirectFunctionCall1(uuid_out, UUIDPGetDatum(ids[i])))));
}

/* Append several events, all or none.  Returns the last sequence number. */
Datum
projector_append_batch(PG_FUNCTION_ARGS)
{
	PjNewEvents events = {0};
	Jsonb	   *array;
	int			n;

	events.tenant = pj_required_text(fcinfo, 0, "tenant_id");
	events.aggregate = pj_required_text(fcinfo, 1, "aggregate_id");
	array = DatumGetJsonbP(pj_required(fcinfo, 2, "events"));
	if (!JB_ROOT_IS_ARRAY(array) || JB_ROOT_IS_SCALAR(array))
		ereport(ERROR,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("events must be a JSON array"));

	n = JB_ROOT_COUNT(array);
	events.event_ids = palloc(sizeof(Datum) * Max(n, 1));
	events.event_types = palloc(sizeof(Datum) * Max(n, 1));
	events.payloads = palloc(sizeof(Datum) * Max(n, 1));
	events.metadatas = palloc(sizeof(Datum) * Max(n, 1));
	for (int i = 0; i < n; i++)
	{
		JsonbValue *value = getIthJsonbValueFromContainer(&array->root, i);

		if (value->type != jbvBinary)
			refuse_element(i, "is not an object");
		parse_element(JsonbValueToJsonb(value), i, &events);
	}
	events.count = n;
	check_ids_differ(&events);

	PG_RETURN_INT64(append_events(&events, get_expected_version(fcinfo, 3)));
}
