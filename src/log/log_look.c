/*
 * log_look.c
 *	  What the views want to know of the log: which tenants it has, and which
 *	  events of a tenant come after a position.
 *
 * The views ask this for every pair, so it is read from the index without SPI.
 * Nothing but the columns before the payload is looked at, unless asked for.
 */
#include "base/compat.h"

#include "access/heapam.h"
#include "access/table.h"
#include "access/tableam.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "log/log_look.h"
#include "log/log_table.h"

/* So many pages are read at the end of the table. */
#define END_PAGES	64

static PjTable events_by_position = {"events", "events_tenant_id_log_seq_key"};

void
pj_log_look_init(PjLogLook *look, Snapshot snapshot)
{
	look->snapshot = snapshot;
	look->context = CurrentMemoryContext;
	look->open = look->at_event = false;
}

static void
start(PjLogLook *look, ScanKey keys, int nkeys)
{
	MemoryContext caller = MemoryContextSwitchTo(look->context);

	/* a scan keeps its number of keys */
	if (look->open && look->fetch.scan->numberOfKeys != nkeys)
		pj_log_look_end(look);
	if (look->open)
		pj_fetch_again(&look->fetch, nkeys, keys);
	else
		pj_fetch_begin(&look->fetch, &events_by_position, look->snapshot,
					   nkeys, keys);
	look->open = look->at_event = true;
	MemoryContextSwitchTo(caller);
}

static bool
step(PjLogLook *look, ScanDirection direction)
{
	MemoryContext caller = MemoryContextSwitchTo(look->context);

	look->at_event = look->at_event &&
		pj_fetch_next(&look->fetch, direction) != NULL;
	MemoryContextSwitchTo(caller);
	return look->at_event;
}

static Datum
get(PjLogLook *look, AttrNumber column)
{
	bool		isnull;

	return slot_getattr(look->fetch.slot, column, &isnull);
}

static void
add_tenant(PjTenants *all, int *room, Datum tenant)
{
	if (all->count == *room)
	{
		*room *= 2;
		all->tenants = repalloc_huge(all->tenants, sizeof(Datum) * *room);
		all->last = repalloc_huge(all->last, sizeof(int64) * *room);
	}
	all->tenants[all->count] = tenant;
	all->last[all->count++] = PG_INT64_MAX;
}

/*
 * Add the tenants between two, of which the first may be empty and the second
 * 0 for none.  Each is found by searching the index for the next entry.
 */
static void
add_between(PjLogLook *look, PjTenants *all, int *room, Datum after,
			Datum before)
{
	for (;;)
	{
		ScanKeyData keys[2];

		CHECK_FOR_INTERRUPTS();
		pj_key_text_after(&keys[0], 1, after);
		if (before)
			pj_key_text_before(&keys[1], 1, before);
		start(look, keys, before ? 2 : 1);
		if (!step(look, ForwardScanDirection))
			return;
		after = PointerGetDatum(DatumGetTextPCopy(get(look, Anum_tenant_id)));
		add_tenant(all, room, after);
	}
}

/*
 * The tenants in the log, in their order; or one of them, if it is there.
 * Some may be known to be in it, and are given in that order.  That saves time:
 * to find that there is no tenant between two costs a search that reads one
 * entry, to find the next one a search that reads a page.
 *
 * Where a tenant's last event is remains unknown (PG_INT64_MAX).
 */
void
pj_log_look_tenants(PjLogLook *look, Datum only, const Datum *known,
					int nknown, PjTenants *all)
{
	MemoryContext caller = MemoryContextSwitchTo(look->context);
	int			room = Max(nknown, 64);
	Datum		after = CStringGetTextDatum("");
	ScanKeyData key;

	all->tenants = palloc_extended(sizeof(Datum) * room, MCXT_ALLOC_HUGE);
	all->last = palloc_extended(sizeof(int64) * room, MCXT_ALLOC_HUGE);
	all->count = 0;
	if (only)
	{
		pj_key_text(&key, 1, only);
		start(look, &key, 1);
		if (step(look, ForwardScanDirection))
			add_tenant(all, &room, only);
	}
	else
	{
		for (int i = 0; i < nknown; i++)
		{
			add_between(look, all, &room, after, known[i]);
			add_tenant(all, &room, known[i]);
			after = known[i];
		}
		add_between(look, all, &room, after, 0);
	}
	MemoryContextSwitchTo(caller);
}

/* Go before a tenant's first event after a position, up to another. */
void
pj_log_look_between(PjLogLook *look, Datum tenant, int64 after, int64 upto)
{
	ScanKeyData keys[3];

	pj_key_text(&keys[0], 1, tenant);
	pj_key_int8_range(&keys[1], 2, after, upto);
	start(look, keys, 3);
}

/* The tenant's next event; false if there is none. */
bool
pj_log_look_next(PjLogLook *look, PjLogEntry *entry)
{
	if (!step(look, ForwardScanDirection))
		return false;
	entry->log_seq = DatumGetInt64(get(look, Anum_log_seq));
	entry->aggregate = get(look, Anum_aggregate_id);
	entry->sequence_number = DatumGetInt64(get(look, Anum_sequence_number));
	entry->event_type = get(look, Anum_event_type);
	return true;
}

/* When the event was recorded that pj_log_look_next() has returned. */
TimestampTz
pj_log_look_recorded_at(PjLogLook *look)
{
	return DatumGetTimestampTz(get(look, Anum_recorded_at));
}

/* Read some pages of a table, or all from the first on. */
static void
read_pages(Relation rel, Snapshot snapshot, BlockNumber first, int max_events,
		   PjLogEnd *end)
{
	TupleTableSlot *slot = table_slot_create(rel, NULL);
	TableScanDesc scan = table_beginscan_strat(rel, snapshot, 0, NULL, true,
											   false);

	if (first > 0)
		heap_setscanlimits(scan, first, InvalidBlockNumber);
	while (end->nevents < max_events &&
		   table_scan_getnextslot(scan, ForwardScanDirection, slot))
	{
		PjLogEndEvent *event = &end->events[end->nevents++];
		bool		isnull;

		CHECK_FOR_INTERRUPTS();
		event->log_seq = DatumGetInt64(slot_getattr(slot, Anum_log_seq,
													&isnull));
		event->recorded_at =
			DatumGetTimestampTz(slot_getattr(slot, Anum_recorded_at, &isnull));
		event->event_type =
			PointerGetDatum(DatumGetTextPCopy(slot_getattr(slot,
														   Anum_event_type,
														   &isnull)));
	}
	table_endscan(scan);
	ExecDropSingleTupleTableSlot(slot);
}

/*
 * Read the last pages of the table, where new events are.  (If somebody has
 * partitioned it, or uses another access method, nothing is read.)
 */
void
pj_log_look_end_of_table(Snapshot snapshot, int max_events, PjLogEnd *end)
{
	Relation	rel = table_open(pj_source_relid(), AccessShareLock);
	BlockNumber pages;

	end->events = palloc(sizeof(PjLogEndEvent) * max_events);
	end->nevents = 0;
	end->is_all = false;
	if (rel->rd_tableam == GetHeapamTableAmRoutine())
	{
		pages = RelationGetNumberOfBlocks(rel);
		end->is_all = pages <= END_PAGES;
		read_pages(rel, snapshot, end->is_all ? 0 : pages - END_PAGES,
				   max_events, end);
	}
	table_close(rel, AccessShareLock);
}

void
pj_log_look_end(PjLogLook *look)
{
	if (look->open)
		pj_fetch_end(&look->fetch);
	look->open = look->at_event = false;
}
