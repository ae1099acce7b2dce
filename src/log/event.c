/*
 * event.c
 *	  Events: their type, their order, the hash of the payload.
 */
#include "base/compat.h"

#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/jsonb.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

#include "base/errcodes.h"
#include "base/guc.h"
#include "base/text.h"
#include "log/event.h"
#include "log/sha256.h"

/* Do not keep a buffer larger than this. */
#define MAX_KEPT_BUFFER	(64 * 1024)

/* Returns the OID of type projector.event. */
Oid
pj_event_type_oid(void)
{
	return GetSysCacheOid2(TYPENAMENSP, Anum_pg_type_oid,
						   CStringGetDatum("event"),
						   ObjectIdGetDatum(get_namespace_oid("projector",
															  false)));
}

/* ---- order ---- */

static int
compare_events(const void *a, const void *b)
{
	const PjEvent *ea = a;
	const PjEvent *eb = b;
	int			cmp = pj_text_compare(pj_event_aggregate(ea),
									  pj_event_aggregate(eb));

	if (cmp == 0)
		cmp = (pj_event_sequence(ea) > pj_event_sequence(eb)) -
			(pj_event_sequence(ea) < pj_event_sequence(eb));
	return cmp;
}

/* Sort one tenant's events by aggregate and sequence. */
void
pj_events_sort(PjEvent *events, int n)
{
	qsort(events, n, sizeof(PjEvent), compare_events);
}

static int
compare_positions(const void *a, const void *b)
{
	int64		la = pj_event_log_seq((const PjEvent *) a);
	int64		lb = pj_event_log_seq((const PjEvent *) b);

	return (la > lb) - (la < lb);
}

/* Sort events in log order. */
void
pj_events_sort_by_log(PjEvent *events, int n)
{
	qsort(events, n, sizeof(PjEvent), compare_positions);
}

/*
 * Returns the aggregates of sorted events, each with its range from the first
 * to the last event.  Also sets each event's range.
 */
int
pj_events_ranges(PjEvent *events, int n, PjRange **ranges)
{
	PjRange    *range = NULL;
	int			nranges = 0;

	*ranges = palloc0(sizeof(PjRange) * Max(n, 1));
	for (int i = 0; i < n; i++)
	{
		if (range == NULL || !pj_text_equal(range->aggregate,
											pj_event_aggregate(&events[i])))
		{
			range = &(*ranges)[nranges++];
			range->aggregate = pj_event_aggregate(&events[i]);
			range->from = pj_event_sequence(&events[i]);
		}
		range->own++;
		range->upto = pj_event_sequence(&events[i]);
		events[i].range = nranges - 1;
	}
	return nranges;
}

/* ---- the hash ---- */

/*
 * Returns a buffer for the text of a payload.  It is kept, unless a payload was
 * large.
 */
static StringInfo
text_buffer(void)
{
	static StringInfoData buffer = {NULL};

	if (buffer.data && buffer.maxlen > MAX_KEPT_BUFFER)
	{
		pfree(buffer.data);
		buffer.data = NULL;
	}
	if (buffer.data == NULL)
	{
		MemoryContext caller = MemoryContextSwitchTo(TopMemoryContext);

		initStringInfo(&buffer);
		MemoryContextSwitchTo(caller);
	}
	resetStringInfo(&buffer);
	return &buffer;
}

/* sha256(convert_to(payload::text, 'UTF8')) */
static void
hash_payload(Datum payload, uint8 *digest)
{
	Jsonb	   *jb = DatumGetJsonbP(payload);
	StringInfo	buffer = text_buffer();
	char	   *utf8;

	(void) JsonbToCString(buffer, &jb->root, VARSIZE(jb));
	utf8 = pg_server_to_any(buffer->data, buffer->len, PG_UTF8);
	if (utf8 == buffer->data)
		pj_sha256(buffer->data, buffer->len, digest);
	else
	{
		pj_sha256(utf8, strlen(utf8), digest);
		pfree(utf8);
	}
	if (PointerGetDatum(jb) != payload)
		pfree(jb);
}

/* Returns the hash as a bytea. */
Datum
pj_payload_hash(Datum payload)
{
	bytea	   *hash = palloc(VARHDRSZ + PJ_SHA256_LEN);

	SET_VARSIZE(hash, VARHDRSZ + PJ_SHA256_LEN);
	hash_payload(payload, (uint8 *) VARDATA(hash));
	return PointerGetDatum(hash);
}

bool
pj_payload_matches(Datum payload, Datum hash)
{
	uint8		expected[PJ_SHA256_LEN];
	bytea	   *actual = DatumGetByteaPP(hash);

	hash_payload(payload, expected);
	return VARSIZE_ANY_EXHDR(actual) == PJ_SHA256_LEN &&
		memcmp(expected, VARDATA_ANY(actual), PJ_SHA256_LEN) == 0;
}

/* Identifiers of traces are short; others are cut to so many bytes. */
#define MAX_TRACE_BYTES	200

/*
 * Returns a member of an event's metadata that says where the event came from,
 * or NULL.  An event that is missing from the log has no metadata.  Metadata
 * that is stored out of line is not read: if it is damaged, recording that the
 * event failed would fail too.
 */
char *
pj_event_trace(const PjEvent *event, const char *name)
{
	Datum		metadata = event->values[PJ_EVENT_METADATA];
	JsonbValue	value;
	char	   *text;

	if (metadata == 0 || VARATT_IS_EXTERNAL(DatumGetPointer(metadata)) ||
		!JB_ROOT_IS_OBJECT(DatumGetJsonbP(metadata)) ||
		!pj_json_member(DatumGetJsonbP(metadata), name, &value) ||
		(value.type != jbvString && value.type != jbvNumeric))
		return NULL;
	text = value.type == jbvString ?
	pnstrdup(value.val.string.val, value.val.string.len) :
	DatumGetCString(DirectFunctionCall1(numeric_out,
										NumericGetDatum(value.val.numeric)));
	text[		pg_mbcliplen(text, strlen(text), MAX_TRACE_BYTES)] = '\0';
	return text;
}

/* Raise an error if an event read from the log does not match its hash. */
void
pj_event_check_hash(const PjEvent *event)
{
	if (!pj_verify_payload ||
		pj_payload_matches(event->values[PJ_EVENT_PAYLOAD], event->payload_hash))
		return;
	ereport(ERROR,
			errcode(ERRCODE_PJ_EVENT_MISMATCH),
			errmsg("payload of event %lld of aggregate \"%s\" of tenant \"%s\" does not match its hash",
				   (long long) pj_event_sequence(event),
				   TextDatumGetCString(pj_event_aggregate(event)),
				   TextDatumGetCString(pj_event_tenant(event))),
			errdetail("The event has been changed since it was appended."));
}
