/*
 * outbox_take.c
 *	  Claim pending items without SQL.
 *
 * Of the cost of draining a backlog, a quarter was the statement that claims:
 * it copies each row five times on its way from the table to the sort and to
 * the caller.  Here each row is found through the index of claims, locked, and
 * its few columns are copied once.
 *
 * This is done only if the table has not been altered, no failed item is due,
 * and the transaction's snapshot may be renewed.  Otherwise the caller uses
 * SQL.  A row that another transaction has locked, or has changed since our
 * snapshot, is skipped: a later claim finds it.
 */
#include "base/compat.h"

#include "access/relscan.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "utils/datum.h"
#include "utils/snapmgr.h"

#include "base/fetch.h"
#include "base/text.h"
#include "state/outbox_table.h"
#include "state/outbox_take.h"

/* Room for claims at first. */
#define FIRST_ROOM	64

static PjTable outbox_by_claim = {"apply_outbox", "apply_outbox_claim_idx"};
static PjTable outbox_by_retry = {"apply_outbox", "apply_outbox_retry_idx"};

/* Can the table be used without SQL? */
static bool
is_usable(void)
{
	Relation	heap = table_open(pj_relid(&outbox_by_claim), RowShareLock);
	bool		usable = pj_outbox_is_original(heap);

	table_close(heap, NoLock);
	return usable;
}

/* Is a failed item due?  Such items come first. */
static bool
has_due(const PjTake *take, Snapshot snapshot)
{
	ScanKeyData keys[3];
	PjFetch		fetch;
	bool		found;

	pj_key_int4(&keys[0], 1, take->projection_id);
	pj_key_text(&keys[1], 2, take->tenant);
	pj_key_time_upto(&keys[2], 3, take->due);
	pj_fetch_begin(&fetch, &outbox_by_retry, snapshot, 3, keys);
	found = pj_fetch_next(&fetch, ForwardScanDirection) != NULL;
	pj_fetch_end(&fetch);
	return found;
}

/*
 * Lock the row in the slot.  Returns false if another transaction has locked or
 * changed it.
 */
static bool
lock_row(PjFetch *fetch)
{
	TM_FailureData failure;
	ItemPointerData place = fetch->slot->tts_tid;

	return table_tuple_lock(fetch->heap, &place, fetch->scan->xs_snapshot,
							fetch->slot, GetCurrentCommandId(false),
							LockTupleExclusive, LockWaitSkip, 0,
							&failure) == TM_Ok;
}

/* Copy what a claim needs of the row in the slot, which is locked. */
static void
copy_claim(const PjTake *take, TupleTableSlot *slot, PjClaim *claim)
{
	Datum	   *columns = slot->tts_values;

	slot_getsomeattrs(slot, Anum_attempt_count);
	memset(claim, 0, sizeof(*claim));
	claim->event.values[PJ_EVENT_LOG_SEQ] = columns[Anum_log_seq - 1];
	claim->event.values[PJ_EVENT_TENANT_ID] = take->tenant;
	claim->event.values[PJ_EVENT_AGGREGATE_ID] =
		datumCopy(columns[Anum_aggregate_id - 1], false, -1);
	claim->event.values[PJ_EVENT_SEQUENCE_NUMBER] =
		columns[Anum_sequence_number - 1];
	claim->event.values[PJ_EVENT_EVENT_TYPE] =
		datumCopy(columns[Anum_event_type - 1], false, -1);

	/* the index has only pending rows that are not held */
	claim->item.status = PJ_PENDING;
	claim->item.due = true;
	claim->item.replay = DatumGetBool(columns[Anum_replay - 1]);
	claim->item.attempt_count = DatumGetInt32(columns[Anum_attempt_count - 1]);
	claim->item.row = slot->tts_tid;
	claim->item.claimed = true;
}

/* Claim pending rows in log order.  Returns how many there are. */
static int
take_rows(const PjTake *take, Snapshot snapshot, PjClaim **claims)
{
	ScanKeyData keys[4];
	PjFetch		fetch;
	int			n = 0,
				room = FIRST_ROOM;

	*claims = palloc(sizeof(PjClaim) * room);
	pj_key_int4(&keys[0], 1, take->projection_id);
	pj_key_text(&keys[1], 2, take->tenant);
	pj_key_int8_range(&keys[2], 3, take->after, take->upto);
	pj_fetch_begin(&fetch, &outbox_by_claim, snapshot, 4, keys);
	while (n < take->limit &&
		   pj_fetch_next(&fetch, ForwardScanDirection) != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		if (!lock_row(&fetch))
			continue;
		if (n == room)
			*claims = repalloc(*claims, sizeof(PjClaim) * (room *= 2));
		copy_claim(take, fetch.slot, &(*claims)[n++]);
	}
	pj_fetch_end(&fetch);
	return n;
}

static int
compare_claims(const void *a, const void *b)
{
	const PjEvent *ea = &(*(PjClaim *const *) a)->event;
	const PjEvent *eb = &(*(PjClaim *const *) b)->event;
	int			result = pj_text_compare(pj_event_aggregate(ea),
										 pj_event_aggregate(eb));

	if (result == 0)
		result = (pj_event_sequence(ea) > pj_event_sequence(eb)) -
			(pj_event_sequence(ea) < pj_event_sequence(eb));
	return result;
}

/* Returns a copy, sorted by aggregate and sequence number. */
static PjClaim *
sort_claims(PjClaim *claims, int n)
{
	PjClaim   **order = palloc(sizeof(PjClaim *) * Max(n, 1));
	PjClaim    *sorted = palloc(sizeof(PjClaim) * Max(n, 1));

	for (int i = 0; i < n; i++)
		order[i] = &claims[i];
	qsort(order, n, sizeof(PjClaim *), compare_claims);
	for (int i = 0; i < n; i++)
		sorted[i] = *order[i];
	pfree(order);
	return sorted;
}

/*
 * Claim pending items, sorted by aggregate and sequence number.  Returns how
 * many there are, or -1 if they must be claimed by SQL.
 */
int
pj_outbox_take(const PjTake *take, PjClaim **claims)
{
	Snapshot	snapshot;
	PjClaim    *taken;
	int			n = -1;

	if (IsolationUsesXactSnapshot() || !is_usable())
		return -1;
	CommandCounterIncrement();
	snapshot = RegisterSnapshot(GetLatestSnapshot());
	if (!has_due(take, snapshot))
	{
		n = take_rows(take, snapshot, &taken);
		*claims = sort_claims(taken, n);
		pfree(taken);
	}
	UnregisterSnapshot(snapshot);
	return n;
}
