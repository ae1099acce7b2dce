/*
 * outbox_look.c
 *	  What the views want to know of a pair's items: how many of which status
 *	  there are, and which failed or dead one to look at first.
 *
 * Each count reads an index of its own, and at most PJ_MAX_COUNT rows of it.
 * Failed and dead items have theirs, because any number of items may be held
 * behind them.
 */
#include "base/compat.h"

#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "state/outbox_look.h"

/* The columns of table apply_outbox that are looked at. */
enum
{
	Anum_log_seq = 2,
	Anum_tenant_id = 3,
	Anum_aggregate_id = 4,
	Anum_sequence_number = 5,
	Anum_status = 7,
	Anum_held = 8,
	Anum_shadow = 10,
	Anum_attempt_count = 11,
	Anum_next_attempt_at = 12,
	Anum_last_error = 13,
	Anum_updated_at = 14
};

static PjTable by_claim = {"apply_outbox", "apply_outbox_claim_idx"};
static PjTable by_block = {"apply_outbox", "apply_outbox_blocked_idx"};
static PjTable by_retry = {"apply_outbox", "apply_outbox_retry_idx"};
static PjTable by_death = {"apply_outbox", "apply_outbox_dead_idx"};

static void
init_reader(PjByPair *reader, PjTable *table, Snapshot snapshot,
			bool one_tenant)
{
	reader->table = table;
	reader->tenant = Anum_tenant_id;
	pj_by_pair_init(reader, snapshot, one_tenant);
}

void
pj_outbox_look_init(PjOutboxLook *look, Snapshot snapshot, bool one_tenant)
{
	look->limit = PJ_MAX_COUNT;
	init_reader(&look->claimable, &by_claim, snapshot, one_tenant);
	init_reader(&look->blocked, &by_block, snapshot, one_tenant);
	init_reader(&look->failed, &by_retry, snapshot, one_tenant);
	init_reader(&look->dead, &by_death, snapshot, one_tenant);
}

static int64
get_int8(PjByPair *reader, AttrNumber column)
{
	bool		isnull;

	return DatumGetInt64(pj_by_pair_get(reader, column, &isnull));
}

/* The first letter of a text, or 0 for null: enough to tell a status. */
static char
get_letter(PjByPair *reader, AttrNumber column)
{
	bool		isnull;
	Datum		value = pj_by_pair_get(reader, column, &isnull);

	return isnull ? 0 : *VARDATA_ANY(DatumGetTextPP(value));
}

static void
note_oldest(PjOutboxCounts *counts, int64 log_seq)
{
	if (counts->oldest == 0 || log_seq < counts->oldest)
		counts->oldest = log_seq;
}

/* Does the reader stand at a row of this tenant, or of any if it is 0? */
static bool
at_row(PjByPair *reader, Datum tenant)
{
	return tenant ? pj_by_pair_at(reader, tenant) : reader->at_row;
}

/* Go to the first row of a tenant, or of all if it is 0. */
static bool
find_row(PjByPair *reader, int32 projection_id, Datum tenant)
{
	if (tenant)
		return pj_by_pair_find(reader, projection_id, tenant);
	pj_by_pair_start(reader, projection_id, 0);
	return reader->at_row;
}

/* Items that can be claimed, of a tenant in the order of the log. */
static void
count_claimable(PjByPair *reader, Datum tenant, int64 limit,
				PjOutboxCounts *counts)
{
	note_oldest(counts, get_int8(reader, Anum_log_seq));
	for (int i = 0; i < limit && at_row(reader, tenant); i++)
	{
		CHECK_FOR_INTERRUPTS();
		counts->untried++;
		pj_by_pair_step(reader);
	}
	counts->pending = counts->items = counts->untried;
}

/* Items that are broken, held behind those, or tried in mode shadow. */
static void
count_blocked(PjByPair *reader, Datum tenant, int64 limit,
			  PjOutboxCounts *counts)
{
	for (int i = 0; i < limit && at_row(reader, tenant); i++)
	{
		char		shadow = get_letter(reader, Anum_shadow);

		CHECK_FOR_INTERRUPTS();
		counts->items++;
		note_oldest(counts, get_int8(reader, Anum_log_seq));
		if (get_letter(reader, Anum_status) == 'p')
		{
			if (shadow == 0)
				counts->held++;
			else
				counts->pending++;
		}
		if (shadow == 'f')
			counts->would_fail++;
		pj_by_pair_step(reader);
	}
}

static void
note_broken(PjByPair *reader, PjBrokenItem *item)
{
	bool		isnull;
	Datum		error;

	item->log_seq = get_int8(reader, Anum_log_seq);
	item->aggregate =
		TextDatumGetCString(pj_by_pair_get(reader, Anum_aggregate_id,
										   &isnull));
	item->sequence_number = get_int8(reader, Anum_sequence_number);
	item->attempts = DatumGetInt32(pj_by_pair_get(reader, Anum_attempt_count,
												  &isnull));
	item->next_attempt_at = get_int8(reader, Anum_next_attempt_at);
	error = pj_by_pair_get(reader, Anum_last_error, &isnull);
	item->error = isnull ? NULL : TextDatumGetCString(error);
}

/* Failed items come in the order of their next attempts. */
static void
count_failed(PjByPair *reader, Datum tenant, PjOutboxCounts *counts)
{
	while (counts->failed < PJ_MAX_COUNT && at_row(reader, tenant))
	{
		int64		log_seq = get_int8(reader, Anum_log_seq);

		CHECK_FOR_INTERRUPTS();
		counts->failed++;
		note_oldest(counts, log_seq);
		if (counts->first_failed.log_seq == 0 ||
			log_seq < counts->first_failed.log_seq)
			note_broken(reader, &counts->first_failed);
		pj_by_pair_step(reader);
	}
}

/* Dead items come in the order of the log. */
static void
count_dead(PjByPair *reader, Datum tenant, PjOutboxCounts *counts)
{
	note_broken(reader, &counts->first_dead);
	note_oldest(counts, counts->first_dead.log_seq);
	while (counts->dead < PJ_MAX_COUNT && at_row(reader, tenant))
	{
		TimestampTz since = get_int8(reader, Anum_updated_at);

		CHECK_FOR_INTERRUPTS();
		if (counts->dead++ == 0 || since < counts->dead_since)
			counts->dead_since = since;
		pj_by_pair_step(reader);
	}
}

/*
 * What there is of a pair, or of all pairs of a projection if tenant is 0; of
 * those it is not known which item is the oldest.  The tenant stays in memory
 * (by_pair.c).
 */
void
pj_outbox_look(PjOutboxLook *look, int32 projection_id, Datum tenant,
			   PjOutboxCounts *counts)
{
	memset(counts, 0, sizeof(PjOutboxCounts));
	if (find_row(&look->claimable, projection_id, tenant))
		count_claimable(&look->claimable, tenant, look->limit, counts);
	if (!find_row(&look->blocked, projection_id, tenant))
		return;
	count_blocked(&look->blocked, tenant, look->limit, counts);
	if (find_row(&look->failed, projection_id, tenant))
		count_failed(&look->failed, tenant, counts);
	if (find_row(&look->dead, projection_id, tenant))
		count_dead(&look->dead, tenant, counts);
}

static void
look_back(PjByPair *reader, int32 projection_id, Datum tenant)
{
	if (reader->open)
		pj_by_pair_start(reader, projection_id, tenant);
}

/* Go back to a pair, to look at it once more. */
void
pj_outbox_look_back(PjOutboxLook *look, int32 projection_id, Datum tenant)
{
	look_back(&look->claimable, projection_id, tenant);
	look_back(&look->blocked, projection_id, tenant);
	look_back(&look->failed, projection_id, tenant);
	look_back(&look->dead, projection_id, tenant);
}

void
pj_outbox_look_end(PjOutboxLook *look)
{
	pj_by_pair_end(&look->claimable);
	pj_by_pair_end(&look->blocked);
	pj_by_pair_end(&look->failed);
	pj_by_pair_end(&look->dead);
}

/* ---- one item ---- */

static bool
is_broken(TupleTableSlot *slot)
{
	bool		isnull;
	Datum		status = slot_getattr(slot, Anum_status, &isnull);

	return *VARDATA_ANY(DatumGetTextPP(status)) != 'p';
}

/* Is an earlier item of its aggregate failed or dead? */
static bool
waits_in_aggregate(const PjItemKey *item, Snapshot snapshot)
{
	ScanKeyData keys[5];
	PjFetch		fetch;
	bool		waits = false;

	pj_key_int4(&keys[0], 1, item->projection_id);
	pj_key_text(&keys[1], 2, item->tenant);
	pj_key_text(&keys[2], 3, item->aggregate);
	pj_key_int8_range(&keys[3], 4, 0, item->sequence_number - 1);
	pj_fetch_begin(&fetch, &by_block, snapshot, 5, keys);
	while (!waits && pj_fetch_next(&fetch, ForwardScanDirection))
		waits = is_broken(fetch.slot);
	pj_fetch_end(&fetch);
	return waits;
}

/* Is an earlier item of its tenant in this index of failed or dead ones? */
static bool
waits_in_log(const PjItemKey *item, Snapshot snapshot, PjTable *table)
{
	ScanKeyData keys[2];
	PjFetch		fetch;
	bool		waits = false;
	bool		isnull;

	pj_key_int4(&keys[0], 1, item->projection_id);
	pj_key_text(&keys[1], 2, item->tenant);
	pj_fetch_begin(&fetch, table, snapshot, 2, keys);
	while (!waits && pj_fetch_next(&fetch, ForwardScanDirection))
	{
		Datum		log_seq = slot_getattr(fetch.slot, Anum_log_seq, &isnull);

		waits = DatumGetInt64(log_seq) < item->log_seq;

		/* dead ones come in the order of the log */
		if (table == &by_death)
			break;
	}
	pj_fetch_end(&fetch);
	return waits;
}

/* Does a pending item wait for a failed or dead one, marked as held or not? */
bool
pj_outbox_waits(const PjItemKey *item, bool log_ordered, Snapshot snapshot)
{
	return log_ordered ? waits_in_log(item, snapshot, &by_death) ||
		waits_in_log(item, snapshot, &by_retry) :
		waits_in_aggregate(item, snapshot);
}
