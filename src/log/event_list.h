/*
 * event_list.h
 *	  A list of events that is filled from a scan of the events table; only
 *	  for the files of this folder.
 */
#ifndef PJ_EVENT_LIST_H
#define PJ_EVENT_LIST_H

#include "base/compat.h"

#include "base/fetch.h"
#include "log/event.h"

typedef struct PjEventList
{
	PjEvent    *events;
	int			count;
	int			room;
	Datum	   *types;			/* wanted types; none for all */
	int			ntypes;
	int64		upto;			/* maximum log position */
	Size		bytes;			/* total size of the events */
	Size		max_bytes;		/* stop at this total size */
} PjEventList;

extern void pj_event_of_tuple(HeapTuple tuple, TupleDesc desc, PjEvent *event);
extern void pj_event_list_begin(PjEventList *list, int room,
								Datum event_types);
extern bool pj_event_list_is_full(const PjEventList *list);
extern bool pj_event_list_wants(const PjEventList *list, HeapTuple tuple,
								TupleDesc desc);
extern PjEvent *pj_event_list_add(PjEventList *list, HeapTuple tuple,
								  TupleDesc desc);
extern void pj_event_list_collect(PjEventList *list, PjFetch *fetch, int max,
								  int range);

#endif							/* PJ_EVENT_LIST_H */
