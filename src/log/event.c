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
#include "utils/syscache.h"

#include "base/errcodes.h"
#include "base/guc.h"
#include "log/event.h"

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

/* sha256(convert_to(payload::text, 'UTF8')) */
Datum
pj_payload_hash(Datum payload)
{
	Jsonb	   *jb = DatumGetJsonbP(payload);
	StringInfoData str;
	char	   *utf8;
	int			len;
	bytea	   *image;
	Datum		hash;

	initStringInfo(&str);
	(void) JsonbToCString(&str, &jb->root, VARSIZE(jb));
	utf8 = pg_server_to_any(str.data, str.len, PG_UTF8);
	len = (utf8 == str.data) ? str.len : strlen(utf8);
	image = palloc(VARHDRSZ + len);
	SET_VARSIZE(image, VARHDRSZ + len);
	memcpy(VARDATA(image), utf8, len);
	hash = DirectFunctionCall1(sha256_bytea, PointerGetDatum(image));
	pfree(image);
	pfree(str.data);

	return hash;
}

bool
pj_payload_matches(Datum payload, Datum hash)
{
	bytea	   *expected = DatumGetByteaPP(pj_payload_hash(payload));
	bytea	   *actual = DatumGetByteaPP(hash);

	return VARSIZE_ANY_EXHDR(expected) == VARSIZE_ANY_EXHDR(actual) &&
		memcmp(VARDATA_ANY(expected), VARDATA_ANY(actual),
			   VARSIZE_ANY_EXHDR(expected)) == 0;
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
