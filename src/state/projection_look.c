/*
 * projection_look.c
 *	  What the metrics want to know of a projection, whatever its tenants.
 *
 * A status is found pair by pair, and there may be very many pairs.  Metrics
 * are asked for every few seconds, so nothing here looks at each pair, but for
 * one pass over the cursors.  Counts stop at PJ_MAX_COUNT.
 */
#include "base/compat.h"

#include "access/table.h"
#include "access/tableam.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "base/statement.h"
#include "base/text.h"
#include "log/log_read.h"
#include "sandbox/user_context.h"
#include "state/pair.h"
#include "state/projection_look.h"

/* The columns of table projection_cursors that are looked at. */
enum
{
	Cursor_projection_id = 1,
	Cursor_tenant_id = 2,
	Cursor_last_log_seq = 3,
	Cursor_state = 4,
	Cursor_mode = 5,
	Cursor_paused_by = 6,
	Cursor_applied_count = 9,
	Cursor_failed_count = 10,
	Cursor_updated_at = 11,
	Cursor_dead_count = 14,
	Cursor_batch_count = 15,
	Cursor_apply_time = 16,

	Item_log_seq = 2,
	Item_tenant_id = 3
};

/* So many pairs that are behind are looked at, those furthest behind. */
#define MAX_BEHIND	500

/* So many of the oldest items are looked at, for their tenants. */
#define MAX_OLDEST	200

/* So many of them, for whether they count. */
#define MAX_WALKED	1000

/* So many tenants that leave their items alone are looked at. */
#define MAX_IDLE	1000

static PjTable cursors_table = {"projection_cursors", "projection_cursors_pkey"};
static PjTable items_table = {"apply_outbox", "apply_outbox_pkey"};

static PjStatement select_deltas = {
	.sql = "SELECT projection_id, sum(applied_count)::bigint,"
	" sum(failed_count)::bigint, sum(dead_count)::bigint,"
	" count(*) FILTER (WHERE applied_count > 0),"
	" (extract(epoch FROM sum(apply_time)) * 1000000)::bigint"
	" FROM projector.projection_deltas GROUP BY projection_id",
	.expect = SPI_OK_SELECT,
	.as_caller = true,			/* as the cursors that they are added to */
};

static PjStatement select_active_runs = {
	.sql = "SELECT r.projection_id, count(*),"
	" sum(r.processed_events + coalesce(s.processed, 0))::bigint,"
	" sum(greatest(r.total_events,"
	" r.processed_events + coalesce(s.processed, 0)))::bigint"
	" FROM projector.projection_runs r LEFT JOIN LATERAL"
	" (SELECT sum(x.processed_events)::bigint AS processed"
	" FROM projector.projection_run_slices x"
	" WHERE x.run_id = r.id AND r.slice_count > 0) s ON true"
	" WHERE r.state IN ('queued', 'running') GROUP BY r.projection_id",
	.expect = SPI_OK_SELECT,
};

static PjStatement select_failed_runs = {
	.sql = "SELECT r.projection_id, count(*) FROM projector.projection_runs r"
	" WHERE r.state = 'failed' AND NOT EXISTS (SELECT"
	" FROM projector.projection_runs l WHERE l.projection_id = r.projection_id"
	" AND l.tenant_id = r.tenant_id AND l.id > r.id) GROUP BY r.projection_id",
	.expect = SPI_OK_SELECT,
	.joins_sets = true,
};

/* ---- finding a projection ---- */

static int
compare_ids(const void *a, const void *b)
{
	int32		x = (*(PjProjectionLook *const *) a)->id;
	int32		y = (*(PjProjectionLook *const *) b)->id;

	return x > y ? 1 : x < y ? -1 : 0;
}

/* The projections in the order of their ids. */
typedef struct ById
{
	PjProjectionLook **looks;
	int			n;
	PjProjectionLook *last;		/* the one found last, or NULL */
} ById;

static PjProjectionLook *
find_look(ById *by_id, int32 id)
{
	PjProjectionLook wanted = {.id = id};
	PjProjectionLook *key = &wanted;
	PjProjectionLook **found;

	if (by_id->last && by_id->last->id == id)
		return by_id->last;
	found = by_id->n == 0 ? NULL :
		bsearch(&key, by_id->looks, by_id->n, sizeof(key), compare_ids);
	if (found)
		by_id->last = *found;
	return found ? *found : NULL;
}

/* ---- cursors ---- */

static int64
get_int8(TupleTableSlot *slot, AttrNumber column)
{
	bool		isnull;

	return DatumGetInt64(slot_getattr(slot, column, &isnull));
}

/* The first letter of a text, or 0 for null. */
static char
get_letter(TupleTableSlot *slot, AttrNumber column)
{
	bool		isnull;
	Datum		value = slot_getattr(slot, column, &isnull);

	return isnull ? 0 : *VARDATA_ANY(DatumGetTextPP(value));
}

static int64
interval_us(const Interval *interval)
{
	return interval->time + interval->day * USECS_PER_DAY +
		interval->month * (DAYS_PER_MONTH * USECS_PER_DAY);
}

static bool
in_state(TupleTableSlot *slot, PjState state)
{
	bool		isnull;
	text	   *value = DatumGetTextPP(slot_getattr(slot, Cursor_state,
													&isnull));
	const char *name = pj_state_names[state];

	return VARSIZE_ANY_EXHDR(value) == strlen(name) &&
		memcmp(VARDATA_ANY(value), name, strlen(name)) == 0;
}

/* The mode of a pair: its own, or the projection's. */
static PjMode
mode_of(const PjProjectionLook *look, TupleTableSlot *slot)
{
	bool		isnull;
	Datum		own = slot_getattr(slot, Cursor_mode, &isnull);

	return isnull ? look->mode :
		pj_mode(TextDatumGetCString(own));
}

/* Does a pair find its events in the log, rather than in the outbox? */
static bool
reads_log(const PjProjectionLook *look, TupleTableSlot *slot, PjMode mode)
{
	return pj_mode_applies(mode) &&
		(look->log_ordered || mode == PJ_FOLLOW ||
		 in_state(slot, PJ_REPLAYING) || in_state(slot, PJ_SWITCHING));
}

static Datum
copy_tenant(TupleTableSlot *slot)
{
	bool		isnull;

	return PointerGetDatum(DatumGetTextPCopy(slot_getattr(slot,
														  Cursor_tenant_id,
														  &isnull)));
}

static void
note_behind(PjProjectionLook *look, TupleTableSlot *slot, int64 position,
			bool stuck)
{
	if (look->nbehind == look->room)
	{
		look->room = Max(64, look->room * 2);
		look->behind = look->behind ?
			repalloc_huge(look->behind, sizeof(PjBehind) * look->room) :
			palloc(sizeof(PjBehind) * look->room);
	}
	look->behind[look->nbehind].tenant = copy_tenant(slot);
	look->behind[look->nbehind].stuck = stuck;
	look->behind[look->nbehind++].position = position;
}

static void
add_cursor(PjProjectionLook *look, TupleTableSlot *slot, int64 last,
		   int max_tenants)
{
	bool		isnull;
	Datum		time = slot_getattr(slot, Cursor_apply_time, &isnull);
	int64		position = get_int8(slot, Cursor_last_log_seq);
	PjMode		mode = mode_of(look, slot);
	bool		paused = get_letter(slot, Cursor_paused_by);
	bool		stuck = paused || in_state(slot, PJ_STOPPED);

	look->applied += get_int8(slot, Cursor_applied_count);
	look->failed += get_int8(slot, Cursor_failed_count);
	look->dead += get_int8(slot, Cursor_dead_count);
	look->batches += get_int8(slot, Cursor_batch_count);
	look->us += interval_us(DatumGetIntervalP(time));
	if (reads_log(look, slot, mode))
	{
		if (position < last)
			note_behind(look, slot, position, stuck);
		if (position > look->read_upto)
		{
			look->read_upto = position;
			look->read_at = get_int8(slot, Cursor_updated_at);
		}
	}
	if (mode != look->mode || stuck)
		pj_own_modes_add(&look->modes, copy_tenant(slot), mode, stuck);
	if (look->npaused < max_tenants && paused)
		look->paused[look->npaused++] = copy_tenant(slot);
}

/* One pass over all cursors. */
static void
look_at_cursors(ById *by_id, Snapshot snapshot, int64 last, int max_tenants)
{
	Relation	rel = table_open(pj_relid(&cursors_table), AccessShareLock);
	TupleTableSlot *slot = table_slot_create(rel, NULL);
	TableScanDesc scan = table_beginscan(rel, snapshot, 0, NULL);

	while (table_scan_getnextslot(scan, ForwardScanDirection, slot))
	{
		bool		isnull;
		int32		id = DatumGetInt32(slot_getattr(slot, Cursor_projection_id,
													&isnull));
		PjProjectionLook *look = find_look(by_id, id);

		CHECK_FOR_INTERRUPTS();
		if (look)
			add_cursor(look, slot, last, max_tenants);
	}
	table_endscan(scan);
	ExecDropSingleTupleTableSlot(slot);
	table_close(rel, AccessShareLock);
}

/* ---- inline appends, and runs ---- */

static int64
result_int8(int row, int column)
{
	bool		isnull;
	Datum		value = pj_result(row, column, &isnull);

	return isnull ? 0 : DatumGetInt64(value);
}

/* The projection of a row of the last result, or NULL. */
static PjProjectionLook *
result_look(ById *by_id, int row)
{
	bool		isnull;

	return find_look(by_id, DatumGetInt32(pj_result(row, 1, &isnull)));
}

static void
look_at_deltas(ById *by_id)
{
	int			n = pj_execute(&select_deltas, NULL, NULL);

	for (int i = 0; i < n; i++)
	{
		PjProjectionLook *look = result_look(by_id, i);

		if (look == NULL)
			continue;
		look->applied += result_int8(i, 2);
		look->failed += result_int8(i, 3);
		look->dead += result_int8(i, 4);
		look->batches += result_int8(i, 5);
		look->us += result_int8(i, 6);
	}
}

static void
look_at_runs(ById *by_id)
{
	int			n = pj_execute(&select_active_runs, NULL, NULL);

	for (int i = 0; i < n; i++)
	{
		PjProjectionLook *look = result_look(by_id, i);

		if (look == NULL)
			continue;
		look->runs_active = result_int8(i, 2);
		look->run_processed = result_int8(i, 3);
		look->run_total = result_int8(i, 4);
	}
	n = pj_execute(&select_failed_runs, NULL, NULL);
	for (int i = 0; i < n; i++)
	{
		PjProjectionLook *look = result_look(by_id, i);

		if (look)
			look->runs_failed = result_int8(i, 2);
	}
}

/* ---- what is to be done ---- */

static void
begin_items(PjPairLook *pairs, int32 projection_id, PjFetch *fetch)
{
	ScanKeyData key;

	pj_key_int4(&key, 1, projection_id);
	pj_fetch_begin(fetch, &items_table, pairs->snapshot, 1, &key);
}

static Datum
item_tenant(PjFetch *fetch)
{
	bool		isnull;

	return PointerGetDatum(DatumGetTextPCopy(slot_getattr(fetch->slot,
														  Item_tenant_id,
														  &isnull)));
}

/*
 * The items of pairs that apply events: how many, and the oldest.  If not all
 * pairs do, the oldest items are looked at one by one.  Once an item of a pair
 * that does is found, MAX_WALKED items are enough if most pairs do: pairs that
 * are off get no new items, so theirs are the oldest.
 */
static void
look_at_own_items(PjPairLook *pairs, PjProjectionLook *look)
{
	int			enough = !look->modes.differ ? 0 :
	pj_mode_applies(look->mode) ? MAX_WALKED : PJ_MAX_COUNT;
	int64		others = 0;
	PjFetch		fetch;

	begin_items(pairs, look->id, &fetch);
	for (int i = 0; i < PJ_MAX_COUNT &&
		 pj_fetch_next(&fetch, ForwardScanDirection); i++)
	{
		Datum		tenant = item_tenant(&fetch);

		CHECK_FOR_INTERRUPTS();
		if (!pj_own_modes_applies(&look->modes, tenant))
			others++;
		else if (look->items++ == 0)
			look->oldest_at =
				pj_pair_look_recorded_at(pairs, tenant,
										 get_int8(fetch.slot, Item_log_seq));
		if (look->items > 0 && i >= enough)
		{
			look->items = Max(look->items, look->outbox.items - others);
			break;
		}
	}
	pj_fetch_end(&fetch);
}

/*
 * The items.  In log order they are those that failed; what is to be done is
 * in the log.
 */
static void
look_at_items(PjPairLook *pairs, PjProjectionLook *look)
{
	pj_outbox_look(&pairs->outbox, look->id, 0, &look->outbox);
	if (look->outbox.items > 0 && look->modes.applies && !look->log_ordered)
		look_at_own_items(pairs, look);
}

static int
compare_positions(const void *a, const void *b)
{
	int64		x = ((const PjBehind *) a)->position;
	int64		y = ((const PjBehind *) b)->position;

	return x > y ? 1 : x < y ? -1 : 0;
}

static int
compare_tenants(const void *a, const void *b)
{
	return pj_text_compare(((const PjBehind *) a)->tenant,
						   ((const PjBehind *) b)->tenant);
}

static void
note_oldest(PjProjectionLook *look, TimestampTz at)
{
	if (at != 0 && (look->oldest_at == 0 || at < look->oldest_at))
		look->oldest_at = at;
}

/* Of pairs that are behind, what they have yet to read; in their order. */
static void
look_at_behind(PjPairLook *pairs, PjProjectionLook *look)
{
	int			n = Min(look->nbehind, MAX_BEHIND);
	int64		looked = 0;
	PjBehind   *sorted;

	if (n == 0)
		return;
	qsort(look->behind, look->nbehind, sizeof(PjBehind), compare_positions);
	sorted = palloc(sizeof(PjBehind) * n);
	memcpy(sorted, look->behind, sizeof(PjBehind) * n);
	qsort(sorted, n, sizeof(PjBehind), compare_tenants);
	for (int i = 0; i < n && look->unread < PJ_MAX_COUNT &&
		 looked < PJ_MAX_COUNT; i++)
	{
		PjUnread	unread = {.projection_id = look->id,
			.tenant = sorted[i].tenant,.after = sorted[i].position,
			.types = look->types,.ntypes = look->ntypes,
			.log_ordered = look->log_ordered,
			.items = look->outbox.items > 0,
		.limit = PJ_MAX_COUNT - look->unread};

		pj_pair_look_unread(pairs, &unread);
		looked += unread.looked;
		look->unread += unread.count;
		look->has_work = look->has_work ||
			(unread.count > 0 && !sorted[i].stuck);
		note_oldest(look, unread.oldest_at);
	}
}

/*
 * Tenants that no worker has met yet have no cursor.  If the log goes on after
 * the position of the first reader, these are events that nobody has read, and
 * the last ones of the table may be such.  If all of them are, there may be
 * more, none of them older than the reader's position.
 */
static void
look_at_new_tenants(const PjLogEnd *end, PjProjectionLook *look)
{
	bool		all_new = end->nevents > 0;
	int64		n = 0;

	for (int i = 0; i < end->nevents; i++)
	{
		const PjLogEndEvent *event = &end->events[i];
		bool		is_new = event->log_seq > look->read_upto;

		all_new = all_new && is_new;
		if (!is_new || (look->types && !pj_text_among(event->event_type,
													  look->types,
													  look->ntypes)))
			continue;
		n++;
		note_oldest(look, event->recorded_at);
	}
	look->unread = Min(PJ_MAX_COUNT, n);
	look->has_work = n > 0;
	if (n > 0 && all_new && !end->is_all)
		note_oldest(look, look->read_at ? look->read_at : look->created_at);
}

/*
 * Look at all projections.  Of tenants that are paused, as many as wanted are
 * listed.
 */
void
pj_projections_look(PjPairLook *pairs, PjProjectionLook *looks, int n,
					int max_tenants)
{
	ById		by_id = {.looks = palloc(sizeof(PjProjectionLook *) * Max(n, 1)),.n = n};
	PjLogEnd	end = {0};
	PjContext	saved;
	int64		last;

	for (int i = 0; i < n; i++)
	{
		by_id.looks[i] = &looks[i];
		looks[i].paused = palloc(sizeof(Datum) * Max(max_tenants, 1));
		pj_own_modes_init(&looks[i].modes, looks[i].mode);
	}
	qsort(by_id.looks, n, sizeof(PjProjectionLook *), compare_ids);
	pj_enter_internal(&saved);
	last = pj_source_last_log_seq();
	look_at_deltas(&by_id);
	look_at_runs(&by_id);
	pj_leave_internal(&saved);
	look_at_cursors(&by_id, pairs->snapshot, last, max_tenants);
	for (int i = 0; i < n; i++)
	{
		PjProjectionLook *look = &looks[i];

		pj_own_modes_sort(&look->modes);
		look_at_items(pairs, look);
		look_at_behind(pairs, look);
		if (look->unread > 0 || look->read_upto >= last ||
			!pj_mode_applies(look->mode) ||
			!(look->log_ordered || look->mode == PJ_FOLLOW))
			continue;
		if (end.events == NULL)
			pj_log_look_end_of_table(pairs->snapshot, PJ_MAX_COUNT, &end);
		look_at_new_tenants(&end, look);
	}
}

/* ---- tenants that may not be well ---- */

/* The smallest text after this one, in bytewise order. */
static Datum
text_after(Datum value)
{
	return PointerGetDatum(cstring_to_text(psprintf("%s\001",
													TextDatumGetCString(value))));
}

/*
 * Does a reader meet an item of a pair that a worker would work on?  Other
 * pairs are skipped.  If there are too many of them, the answer is yes.
 */
static bool
meets_work(PjByPair *reader, const PjProjectionLook *look)
{
	pj_by_pair_start(reader, look->id, 0);
	for (int i = 0; i < MAX_IDLE && reader->at_row; i++)
	{
		bool		isnull;
		Datum		tenant = pj_by_pair_get(reader, reader->tenant, &isnull);

		CHECK_FOR_INTERRUPTS();
		if (pj_own_modes_works(&look->modes, tenant))
			return true;
		pj_by_pair_start(reader, look->id, text_after(tenant));
	}
	return reader->at_row;
}

/* Are there items that a worker would work on, now or when they are due? */
bool
pj_projection_look_has_items(PjPairLook *pairs, const PjProjectionLook *look)
{
	return (look->outbox.untried > 0 &&
			meets_work(&pairs->outbox.claimable, look)) ||
		(look->outbox.failed > 0 && meets_work(&pairs->outbox.failed, look));
}

/* Add the tenants that a reader of failed or dead items meets. */
static int
add_broken(PjByPair *reader, int32 projection_id, int max_tenants,
		   Datum *tenants, int n)
{
	pj_by_pair_start(reader, projection_id, 0);
	for (int i = 0; i < max_tenants && reader->at_row; i++)
	{
		bool		isnull;
		Datum		tenant = pj_by_pair_get(reader, reader->tenant, &isnull);

		tenants[n++] = PointerGetDatum(DatumGetTextPCopy(tenant));
		pj_by_pair_start(reader, projection_id, text_after(tenants[n - 1]));
	}
	return n;
}

/* Add the tenants of the oldest items, of pairs that apply events. */
static int
add_oldest(PjPairLook *pairs, const PjProjectionLook *look, int max_tenants,
		   Datum *tenants, int n)
{
	int			start = n;
	PjFetch		fetch;

	begin_items(pairs, look->id, &fetch);
	for (int i = 0; i < MAX_OLDEST && n < start + max_tenants &&
		 pj_fetch_next(&fetch, ForwardScanDirection); i++)
	{
		Datum		tenant = item_tenant(&fetch);
		bool		known = !pj_own_modes_applies(&look->modes, tenant);

		for (int j = start; j < n && !known; j++)
			known = pj_text_equal(tenants[j], tenant);
		if (!known)
			tenants[n++] = tenant;
	}
	pj_fetch_end(&fetch);
	return n;
}

/*
 * List tenants of a projection that may not be well, in their order: some that
 * have dead or failed items, some with the oldest items, some that are furthest
 * behind in the log, and some that are paused.  There is room for five times as
 * many as are wanted of each.
 */
int
pj_projection_look_tenants(PjPairLook *pairs, const PjProjectionLook *look,
						   int max_tenants, Datum *tenants)
{
	int			n = 0;

	n = add_broken(&pairs->outbox.dead, look->id, max_tenants, tenants, n);
	n = add_broken(&pairs->outbox.failed, look->id, max_tenants, tenants, n);
	n = add_oldest(pairs, look, max_tenants, tenants, n);
	for (int i = 0; i < Min(look->nbehind, max_tenants); i++)
		tenants[n++] = look->behind[i].tenant;
	for (int i = 0; i < look->npaused; i++)
		tenants[n++] = look->paused[i];
	return pj_texts_unique(tenants, n);
}
