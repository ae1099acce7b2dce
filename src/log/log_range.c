/*
 * log_range.c
 *	  Read a tenant's events by their log positions.
 *
 * Neighbours in the log are neighbours in the table, too.  So a backlog is read
 * in that order if possible, and not aggregate by aggregate.
 */
#include "base/compat.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "utils/snapmgr.h"

#include "base/fetch.h"
#include "log/event_list.h"
#include "log/log_read.h"
#include "log/log_table.h"

/* Events that may be passed when some are read by their positions. */
#define MAX_PASSED(found)	(16 + (found) / 2)

static PjTable events_by_position = {"events", "events_tenant_id_log_seq_key"};

static void
begin_scan(PjFetch *fetch, Snapshot snapshot, Datum tenant, int64 after,
		   int64 upto)
{
	ScanKeyData keys[3];

	pj_key_text(&keys[0], 1, tenant);
	pj_key_int8_range(&keys[1], 2, after, upto);
	pj_fetch_begin(fetch, &events_by_position, snapshot, 3, keys);
}

/*
 * Load a tenant's events in log order, up to the size of a batch.  *more says
 * whether there may be more.
 */
int
pj_source_load_log(Datum tenant, int64 after, int64 upto, Datum event_types,
				   int limit, PjEvent **events, bool *more)
{
	PjEventList list;
	Snapshot	snapshot;
	PjFetch		fetch;

	pj_event_list_begin(&list, Min(limit, 1000) + 1, event_types);
	list.max_bytes = PJ_BATCH_BYTES;
	CommandCounterIncrement();
	snapshot = RegisterSnapshot(GetTransactionSnapshot());
	begin_scan(&fetch, snapshot, tenant, after, upto);
	pj_event_list_collect(&list, &fetch, limit, 0);
	pj_fetch_end(&fetch);
	UnregisterSnapshot(snapshot);
	*events = list.events;
	*more = list.count == limit || pj_event_list_is_full(&list);
	return list.count;
}

/* ---- events of which the positions are known ---- */

/* A wanted event, and its index in the result. */
typedef struct Wanted
{
	const PjEvent *event;
	int			place;
} Wanted;

static int
compare_wanted(const void *a, const void *b)
{
	int64		la = pj_event_log_seq(((const Wanted *) a)->event);
	int64		lb = pj_event_log_seq(((const Wanted *) b)->event);

	return (la > lb) - (la < lb);
}

/* Is the event that was found the wanted one? */
static bool
is_same(const PjEvent *found, const PjEvent *wanted)
{
	return pj_event_log_seq(found) == pj_event_log_seq(wanted) &&
		pj_event_sequence(found) == pj_event_sequence(wanted) &&
		pj_text_equal(pj_event_aggregate(found), pj_event_aggregate(wanted));
}

/* Collect wanted events from a scan, as long as they are found. */
static void
collect_wanted(PjEventList *list, PjFetch *fetch, const Wanted *wanted, int n)
{
	TupleDesc	desc = RelationGetDescr(fetch->heap);
	int			passed = 0;
	HeapTuple	tuple;

	while (list->count < n && passed < MAX_PASSED(list->count) &&
		   !pj_event_list_is_full(list) &&
		   (tuple = pj_fetch_next(fetch, ForwardScanDirection)) != NULL)
	{
		const PjEvent *next = wanted[list->count].event;
		bool		isnull;

		CHECK_FOR_INTERRUPTS();
		if (DatumGetInt64(heap_getattr(tuple, Anum_log_seq, desc, &isnull)) <
			pj_event_log_seq(next))
			passed++;
		else if (!pj_event_list_wants(list, tuple, desc) ||
				 !is_same(pj_event_list_add(list, tuple, desc), next))
			break;
	}
}

/*
 * Load the events of which the caller knows tenant, aggregate, sequence number
 * and log position, in the order given.  Returns false if not all of them
 * were found, are of the given types and fit into a batch, or if too many
 * others are between them: then they must be read by aggregate.
 */
bool
pj_source_load_at(Datum tenant, const PjEvent *const *known, int n,
				  Datum event_types, PjEvent **events)
{
	Wanted	   *wanted = palloc(sizeof(Wanted) * n);
	PjEventList list;
	Snapshot	snapshot;
	PjFetch		fetch;
	bool		found;

	for (int i = 0; i < n; i++)
		wanted[i] = (Wanted) {known[i], i};
	qsort(wanted, n, sizeof(Wanted), compare_wanted);
	pj_event_list_begin(&list, n + 1, event_types);
	list.max_bytes = PJ_BATCH_BYTES;
	CommandCounterIncrement();
	snapshot = RegisterSnapshot(GetLatestSnapshot());
	begin_scan(&fetch, snapshot, tenant, pj_event_log_seq(wanted[0].event) - 1,
			   pj_event_log_seq(wanted[n - 1].event));
	collect_wanted(&list, &fetch, wanted, n);
	pj_fetch_end(&fetch);
	UnregisterSnapshot(snapshot);
	found = list.count == n && !pj_event_list_is_full(&list) &&
		is_same(&list.events[n - 1], wanted[n - 1].event);
	*events = palloc(sizeof(PjEvent) * n);
	for (int i = 0; i < list.count && found; i++)
		(*events)[wanted[i].place] = list.events[i];
	pfree(list.events);
	pfree(wanted);
	return found;
}
