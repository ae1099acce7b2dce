/*
 * event_list.c
 *	  A list of events that is filled from a scan of the events table.
 *
 * Events are copied from the table once.  Their values are detoasted only by
 * those who use them.
 */
#include "base/compat.h"

#include "access/detoast.h"
#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/array.h"

#include "log/event_list.h"
#include "log/log_read.h"
#include "log/log_table.h"

/* The table usually has no more columns than this. */
#define USUAL_COLUMNS	16

/* Make an event of the columns of its row. */
void
pj_source_event_of(const Datum *columns, PjEvent *event)
{
	static const AttrNumber from[PJ_EVENT_COLUMNS] = {
		[PJ_EVENT_LOG_SEQ] = Anum_log_seq,
		[PJ_EVENT_TENANT_ID] = Anum_tenant_id,
		[PJ_EVENT_AGGREGATE_ID] = Anum_aggregate_id,
		[PJ_EVENT_SEQUENCE_NUMBER] = Anum_sequence_number,
		[PJ_EVENT_EVENT_ID] = Anum_event_id,
		[PJ_EVENT_EVENT_TYPE] = Anum_event_type,
		[PJ_EVENT_PAYLOAD] = Anum_payload,
		[PJ_EVENT_METADATA] = Anum_metadata,
		[PJ_EVENT_RECORDED_AT] = Anum_recorded_at,
	};

	for (int i = 0; i < PJ_EVENT_COLUMNS; i++)
		event->values[i] = columns[from[i] - 1];
	event->payload_hash = columns[Anum_payload_hash - 1];
	event->replay = event->skipped = false;
}

/* Get the event of a row; its values point into the tuple. */
void
pj_event_of_tuple(HeapTuple tuple, TupleDesc desc, PjEvent *event)
{
	Datum		usual[USUAL_COLUMNS];
	bool		usual_nulls[USUAL_COLUMNS];
	Datum	   *columns = usual;
	bool	   *nulls = usual_nulls;

	if (desc->natts <= USUAL_COLUMNS)
		heap_deform_tuple(tuple, desc, columns, nulls);
	else
		pj_deform(tuple, desc, &columns, &nulls);
	pj_source_event_of(columns, event);
	if (columns != usual)
	{
		pfree(columns);
		pfree(nulls);
	}
}

/* Begin a list, in the current memory context. */
void
pj_event_list_begin(PjEventList *list, int room, Datum event_types)
{
	memset(list, 0, sizeof(*list));
	list->room = room;
	list->events = palloc(sizeof(PjEvent) * room);
	list->upto = PG_INT64_MAX;
	list->max_bytes = SIZE_MAX;
	if (event_types)
		deconstruct_array(DatumGetArrayTypeP(event_types), TEXTOID, -1, false,
						  TYPALIGN_INT, &list->types, NULL, &list->ntypes);
}

/* Have the events reached their maximum size? */
bool
pj_event_list_is_full(const PjEventList *list)
{
	return list->bytes >= list->max_bytes;
}

/* Does the row contain a wanted event? */
bool
pj_event_list_wants(const PjEventList *list, HeapTuple tuple, TupleDesc desc)
{
	bool		isnull;
	Datum		type;

	if (DatumGetInt64(heap_getattr(tuple, Anum_log_seq, desc, &isnull)) >
		list->upto)
		return false;
	if (list->ntypes == 0)
		return true;
	type = heap_getattr(tuple, Anum_event_type, desc, &isnull);
	for (int i = 0; i < list->ntypes; i++)
		if (pj_text_equal(list->types[i], type))
			return true;
	return false;
}

/* Returns the size of an event, with its values detoasted. */
static Size
event_size(const PjEvent *event)
{
	return toast_raw_datum_size(event->values[PJ_EVENT_PAYLOAD]) +
		toast_raw_datum_size(event->values[PJ_EVENT_METADATA]);
}

/* Add a row's event.  The result is valid until the next one is added. */
PjEvent *
pj_event_list_add(PjEventList *list, HeapTuple tuple, TupleDesc desc)
{
	PjEvent    *event;

	if (list->count == list->room)
		list->events = repalloc(list->events,
								sizeof(PjEvent) * (list->room *= 2));
	event = &list->events[list->count++];
	pj_event_of_tuple(heap_copytuple(tuple), desc, event);
	event->range = 0;
	list->bytes += event_size(event);
	return event;
}

/* Add the wanted events that a scan finds, at most "max". */
void
pj_event_list_collect(PjEventList *list, PjFetch *fetch, int max, int range)
{
	TupleDesc	desc = RelationGetDescr(fetch->heap);
	HeapTuple	tuple;

	while (max > 0 && !pj_event_list_is_full(list) &&
		   (tuple = pj_fetch_next(fetch, ForwardScanDirection)) != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		if (!pj_event_list_wants(list, tuple, desc))
			continue;
		pj_event_list_add(list, tuple, desc)->range = range;
		max--;
	}
}
