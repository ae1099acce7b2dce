/*
 * log_look.c
 *	  What the views want to know of the log: which tenants it has, and which
 *	  events of a tenant come after a position.
 *
 * The views ask this for every pair, so it is read from the index without SPI.
 * Nothing but the columns before the payload is looked at, unless asked for.
 */
#include "base/compat.h"

#include "access/tableam.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "log/log_look.h"
#include "log/log_table.h"

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
add_tenant(PjLogLook *look, PjTenants *all, int *room)
{
	MemoryContext caller = MemoryContextSwitchTo(look->context);

	if (all->count == *room)
	{
		*room *= 2;
		all->tenants = repalloc_huge(all->tenants, sizeof(Datum) * *room);
		all->last = repalloc_huge(all->last, sizeof(int64) * *room);
	}
	all->tenants[all->count] =
		PointerGetDatum(DatumGetTextPCopy(get(look, Anum_tenant_id)));
	all->last[all->count++] = DatumGetInt64(get(look, Anum_log_seq));
	MemoryContextSwitchTo(caller);
}

static void
reverse(PjTenants *all)
{
	for (int i = 0, j = all->count - 1; i < j; i++, j--)
	{
		Datum		tenant = all->tenants[i];
		int64		last = all->last[i];

		all->tenants[i] = all->tenants[j];
		all->last[i] = all->last[j];
		all->tenants[j] = tenant;
		all->last[j] = last;
	}
}

/*
 * The tenants in the log, in their order, each with the position of its last
 * event; or one of them, if it is there.  The index is searched from its end:
 * the last entry before those of a tenant is the last one of another, so that
 * each tenant costs one search.
 */
void
pj_log_look_tenants(PjLogLook *look, Datum only, PjTenants *all)
{
	int			room = 64;
	ScanKeyData key;

	all->tenants = MemoryContextAlloc(look->context, sizeof(Datum) * room);
	all->last = MemoryContextAlloc(look->context, sizeof(int64) * room);
	all->count = 0;
	if (only)
	{
		pj_key_text(&key, 1, only);
		start(look, &key, 1);
		if (step(look, BackwardScanDirection))
			add_tenant(look, all, &room);
		return;
	}
	start(look, NULL, 0);
	while (step(look, BackwardScanDirection))
	{
		CHECK_FOR_INTERRUPTS();
		add_tenant(look, all, &room);
		pj_key_text_before(&key, 1, all->tenants[all->count - 1]);
		start(look, &key, 1);
	}
	reverse(all);
}

/* Go before a tenant's first event after a position. */
void
pj_log_look_after(PjLogLook *look, Datum tenant, int64 log_seq)
{
	ScanKeyData keys[3];

	pj_key_text(&keys[0], 1, tenant);
	pj_key_int8_range(&keys[1], 2, log_seq, PG_INT64_MAX);
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

void
pj_log_look_end(PjLogLook *look)
{
	if (look->open)
		pj_fetch_end(&look->fetch);
	look->open = look->at_event = false;
}
