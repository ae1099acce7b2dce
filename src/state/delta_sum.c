/*
 * delta_sum.c
 *	  Adding to the cursors and digests what inline appends have recorded.
 *
 * The table of those rows has no index.  It is scanned from one end to the
 * other, a few rows at a time.  With many tenants each row belongs to another
 * pair, so each costs a change of a cursor and of a digest.  These are made
 * without SPI, which would take several times as long.
 */
#include "base/compat.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "storage/itemptr.h"
#include "storage/lockdefs.h"
#include "utils/builtins.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "base/fetch.h"
#include "base/lock.h"
#include "base/row.h"
#include "base/statement.h"
#include "base/text.h"
#include "state/delta.h"
#include "state/delta_table.h"

/* Used if a user has added a trigger to the table. */
static PjStatement delete_row = {
	.sql = "DELETE FROM projector.projection_deltas WHERE ctid = $1",
	.expect = SPI_OK_DELETE,
	.nargs = 1,
	.argtypes = {TIDOID},
};

/*
 * Rows are left by an append that was in progress while its projection was
 * dropped.
 */
static PjStatement sweep = {
	.sql = "DELETE FROM projector.projection_deltas WHERE ctid = ANY (ARRAY"
	" (SELECT d.ctid FROM projector.projection_deltas d WHERE NOT EXISTS"
	" (SELECT FROM projector.projections p"
	" WHERE p.projection_id = d.projection_id) FOR UPDATE SKIP LOCKED))",
	.expect = SPI_OK_DELETE,
};

/*
 * Some pairs whose target's columns have changed since it was hashed; of
 * projection $1 and tenant $2, or of all if null.
 */
static PjStatement select_other_layouts = {
	.sql = "SELECT x.tenant_id, x.projection_id"
	" FROM projector.projection_deltas x"
	" LEFT JOIN projector.projection_digests y USING (projection_id, tenant_id)"
	" WHERE x.digest IS NOT NULL"
	" AND ($1 IS NULL OR x.projection_id = $1)"
	" AND ($2 IS NULL OR x.tenant_id = $2)"
	" GROUP BY x.tenant_id, x.projection_id"
	" HAVING min(x.layout) <> max(x.layout) OR bool_or(x.layout <> y.layout)"
	" LIMIT 8",
	.expect = SPI_OK_SELECT,
	.nargs = 2,
	.argtypes = {INT4OID, TEXTOID},
};

/* A row of the table. */
typedef struct Delta
{
	ItemPointerData place;
	int32		projection_id;
	Datum		tenant;
	PjCounts	counts;
	TimestampTz applied_at;
	bool		hashed;			/* it has a digest */
	PjDigest	digest;
	int64		log_seq;
} Delta;

/* ---- reading ---- */

static void
read_row(TupleTableSlot *slot, Delta *delta)
{
	const Datum *values;

	slot_getallattrs(slot);
	values = slot->tts_values;
	delta->place = slot->tts_tid;
	delta->projection_id = DatumGetInt32(values[Anum_projection_id - 1]);
	delta->tenant =
		PointerGetDatum(DatumGetTextPCopy(values[Anum_tenant_id - 1]));
	delta->counts.applied = DatumGetInt64(values[Anum_applied_count - 1]);
	delta->counts.failed = DatumGetInt64(values[Anum_failed_count - 1]);
	delta->counts.dead = DatumGetInt64(values[Anum_dead_count - 1]);
	delta->counts.batches = delta->counts.applied > 0;
	delta->counts.us = DatumGetIntervalP(values[Anum_apply_time - 1])->time;
	delta->applied_at = delta->counts.applied > 0 ?
		DatumGetTimestampTz(values[Anum_last_applied_at - 1]) : 0;
	delta->hashed = !slot->tts_isnull[Anum_digest - 1];
	memset(&delta->digest, 0, sizeof(PjDigest));
	if (delta->hashed)
		pj_digest_read(values[Anum_digest - 1], &delta->digest);
	delta->digest.rows = DatumGetInt64(values[Anum_row_count - 1]);
	delta->digest.layout = DatumGetInt64(values[Anum_layout - 1]);
	delta->log_seq = DatumGetInt64(values[Anum_last_log_seq - 1]);
}

static bool
is_wanted(const PjDeltaScan *scan, const Delta *delta)
{
	return (scan->projection_id == 0 ||
			scan->projection_id == delta->projection_id) &&
		(scan->tenant == 0 || pj_text_equal(scan->tenant, delta->tenant));
}

/* Read the next rows.  Returns their number. */
static int
read_rows(PjDeltaScan *scan, Relation heap, Snapshot snapshot, Delta *deltas,
		  int max)
{
	TupleTableSlot *slot = table_slot_create(heap, NULL);
	ItemPointerData last;
	TableScanDesc rows;
	int			n = 0;

	ItemPointerSet(&last, MaxBlockNumber, MaxOffsetNumber);
	rows = table_beginscan_tidrange(heap, snapshot, &scan->from, &last);
	while (n < max &&
		   table_scan_getnextslot_tidrange(rows, ForwardScanDirection, slot))
	{
		read_row(slot, &deltas[n]);
		if (!is_wanted(scan, &deltas[n]))
			continue;
		scan->from = deltas[n++].place;
	}
	table_endscan(rows);
	ExecDropSingleTupleTableSlot(slot);
	return n;
}

static int
compare_pairs(const Delta *a, const Delta *b)
{
	if (a->projection_id != b->projection_id)
		return a->projection_id < b->projection_id ? -1 : 1;
	return pj_text_compare(a->tenant, b->tenant);
}

static int
compare_deltas(const void *a, const void *b)
{
	int			cmp = compare_pairs(a, b);

	return cmp ? cmp : ItemPointerCompare(&((Delta *) a)->place,
										  &((Delta *) b)->place);
}

/* ---- adding up ---- */

/*
 * Find the layout of the rows' digests, 0 if there are none.  Returns false if
 * there are several.
 */
static bool
common_layout(const Delta *deltas, int n, int64 *layout)
{
	*layout = 0;
	for (int i = 0; i < n; i++)
	{
		if (!deltas[i].hashed)
			continue;
		if (*layout != 0 && *layout != deltas[i].digest.layout)
			return false;
		*layout = deltas[i].digest.layout;
	}
	return true;
}

/* Returns false if the row is not there any more. */
static bool
remove_row(Relation heap, Delta *delta)
{
	Datum		place = PointerGetDatum(&delta->place);

	if (heap->trigdesc != NULL)
		return pj_execute(&delete_row, &place, NULL) > 0;
	return pj_row_delete(heap, &delta->place);
}

/* Add one row to another. */
static void
add_delta(Delta *sum, const Delta *delta)
{
	sum->counts.applied += delta->counts.applied;
	sum->counts.failed += delta->counts.failed;
	sum->counts.dead += delta->counts.dead;
	sum->counts.batches += delta->counts.batches;
	sum->counts.us += delta->counts.us;
	sum->applied_at = Max(sum->applied_at, delta->applied_at);
	sum->hashed = sum->hashed || delta->hashed;
	if (delta->hashed)
		pj_digest_add(&sum->digest, &delta->digest);
	sum->log_seq = Max(sum->log_seq, delta->log_seq);
}

/*
 * Add up the rows of one pair.  Another session may have done so since they
 * were read, so only those count that we delete ourselves.
 */
static void
add_up_locked(Relation heap, Delta *deltas, int n, int64 layout,
			  HeapTuple cursor)
{
	Delta		sum = {.projection_id = deltas[0].projection_id,
	.tenant = deltas[0].tenant,.digest = {.layout = layout}};
	int			removed = 0;

	for (int i = 0; i < n; i++)
	{
		if (!remove_row(heap, &deltas[i]))
			continue;
		add_delta(&sum, &deltas[i]);
		removed++;
	}
	if (removed == 0)
		return;
	if (sum.hashed && !pj_digest_change(sum.projection_id, sum.tenant,
										&sum.digest, sum.log_seq))
		elog(ERROR, "could not add up the digest of projection %d",
			 sum.projection_id);
	pj_cursor_count(cursor, sum.projection_id, sum.tenant, &sum.counts,
					sum.applied_at);
}

/*
 * The same, if no other session is working on the pair.  It must have a cursor,
 * and a digest of the same columns.
 */
static bool
add_up_pair(PjDeltaScan *scan, Relation heap, Delta *deltas, int n)
{
	int32		id = deltas[0].projection_id;
	Datum		tenant = deltas[0].tenant;
	int64		layout;
	HeapTuple	cursor;

	if (!pj_lock_projection(id, ShareLock, false) ||
		!pj_lock_driver(id, tenant, false))
		return false;
	if (!common_layout(deltas, n, &layout) ||
		(layout != 0 && !pj_digest_fits(id, tenant, layout)))
	{
		scan->other_layouts = true;
		return false;
	}
	cursor = pj_cursor_fetch(id, tenant);
	if (cursor == NULL)
		return false;
	add_up_locked(heap, deltas, n, layout, cursor);
	return true;
}

/*
 * Add up the next max_rows rows, of at most max_pairs pairs.  Returns true if
 * there are more rows.
 *
 * Changing the cursor, digest or rows of a pair requires its driver lock, or
 * an exclusive lock on the projection.  We take that lock only if it is free.
 * So we do not wait for others, except for one that moves a cursor to the end
 * of the log, in a transaction that ends at once.
 */
bool
pj_deltas_add_up(PjDeltaScan *scan, int max_rows, int max_pairs)
{
	Relation	heap = table_open(pj_relid(&pj_deltas_table),
								  RowExclusiveLock);
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());
	Delta	   *deltas = palloc(sizeof(Delta) * max_rows);
	int			n = read_rows(scan, heap, snapshot, deltas, max_rows);
	int			next,
				pairs = 0;

	qsort(deltas, n, sizeof(Delta), compare_deltas);
	for (int i = 0; i < n; i = next)
	{
		for (next = i + 1; next < n; next++)
			if (compare_pairs(&deltas[i], &deltas[next]) != 0)
				break;
		if (++pairs > max_pairs ||
			!add_up_pair(scan, heap, &deltas[i], next - i))
			scan->left_some = true;
	}
	UnregisterSnapshot(snapshot);
	table_close(heap, NoLock);
	return n == max_rows;
}

/* Start again at the beginning of the table. */
void
pj_deltas_restart(PjDeltaScan *scan)
{
	ItemPointerSet(&scan->from, 0, 1);
	scan->left_some = scan->other_layouts = false;
}

/* Delete the rows of projections that have been dropped. */
void
pj_deltas_sweep(void)
{
	pj_execute(&sweep, NULL, NULL);
}

/*
 * Returns some pairs of a projection and tenant, or of all if these are 0,
 * whose digests cannot be added up: the target has been altered, so the digest
 * must be recomputed from its rows.
 */
int
pj_deltas_of_other_layouts(int32 projection_id, Datum tenant, int32 **ids,
						   Datum **tenants)
{
	Datum		values[2] = {Int32GetDatum(projection_id), tenant};
	char		nulls[] = {projection_id ? ' ' : 'n', tenant ? ' ' : 'n', '\0'};
	int			n = pj_execute(&select_other_layouts, values, nulls);

	*ids = palloc(sizeof(int32) * Max(n, 1));
	for (int i = 0; i < n; i++)
	{
		bool		isnull;

		(*ids)[i] = DatumGetInt32(pj_result(i, 2, &isnull));
	}
	return pj_result_texts(tenants);
}
