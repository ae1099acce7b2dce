/*
 * delta_sum.c
 *	  Adding to the cursors and digests what inline appends have recorded.
 *
 * The table of those rows has no index.  It is scanned from one end to the
 * other, a few rows at a time.
 */
#include "base/compat.h"

#include "storage/itemptr.h"
#include "storage/lockdefs.h"
#include "utils/array.h"
#include "utils/builtins.h"

#include "base/lock.h"
#include "base/statement.h"
#include "state/delta.h"

/*
 * Group some rows by pair, with their ctids.  The table has no index; each
 * scan starts where the last one ended.
 */
static PjStatement select_pairs = {
	.sql = "SELECT projection_id, tenant_id, array_agg(place), min(place),"
	" min(layout) FILTER (WHERE digest IS NOT NULL),"
	" max(layout) FILTER (WHERE digest IS NOT NULL), max(place)"
	" FROM (SELECT ctid AS place, projection_id, tenant_id, digest, layout"
	" FROM projector.projection_deltas WHERE ctid >= $1"
	" AND ($3 IS NULL OR projection_id = $3)"
	" AND ($4 IS NULL OR tenant_id = $4) LIMIT $2) d"
	" GROUP BY 1, 2 ORDER BY 4",
	.expect = SPI_OK_SELECT,
	.nargs = 4,
	.argtypes = {TIDOID, INT4OID, INT4OID, TEXTOID},
};

/*
 * Of these pairs, those whose rows can be added up now, and whether the digest
 * is of the same columns.  A pair without a cursor waits until it has one; a
 * cursor that another session has locked is skipped.
 */
static PjStatement lock_cursors = {
	.sql = "SELECT p.n::int, p.layout = 0 OR y.layout IS NULL"
	" OR y.layout = p.layout FROM unnest($1, $2, $3) WITH ORDINALITY"
	" AS p (projection_id, tenant_id, layout, n)"
	" CROSS JOIN LATERAL (SELECT FROM projector.projection_cursors c"
	" WHERE c.projection_id = p.projection_id AND c.tenant_id = p.tenant_id"
	" LIMIT 1 FOR UPDATE SKIP LOCKED) c"
	" LEFT JOIN LATERAL (SELECT y.layout FROM projector.projection_digests y"
	" WHERE y.projection_id = p.projection_id AND y.tenant_id = p.tenant_id"
	" LIMIT 1) y ON true"
	" ORDER BY p.n",
	.expect = SPI_OK_SELECT,
	.nargs = 3,
	.argtypes = {INT4ARRAYOID, TEXTARRAYOID, INT8ARRAYOID},
};

/* The pairs' driver locks are held, and their cursors' rows are locked. */
static PjStatement add_up = {
	.sql = "WITH gone AS (DELETE FROM projector.projection_deltas"
	" WHERE ctid = ANY ($1)"
	" RETURNING *), sums AS MATERIALIZED (SELECT projection_id, tenant_id,"
	" sum(applied_count) AS applied, sum(failed_count) AS failed,"
	" sum(dead_count) AS dead, sum((applied_count > 0)::int) AS batches,"
	" sum(apply_time) AS time, max(last_applied_at)"
	" FILTER (WHERE applied_count > 0) AS last,"
	" projector.digest_sum(digest) AS digest, count(digest) AS digests,"
	" sum(row_count) AS rows, max(layout) AS layout, max(last_log_seq) AS log"
	" FROM gone GROUP BY 1, 2), digests AS"
	" (INSERT INTO projector.projection_digests AS d"
	" (projection_id, tenant_id, digest, row_count, last_log_seq, layout)"
	" SELECT projection_id, tenant_id, digest, rows, log, layout FROM sums"
	" WHERE digests > 0 ON CONFLICT (projection_id, tenant_id) DO UPDATE"
	" SET digest = projector.digest_add(d.digest, excluded.digest),"
	" row_count = d.row_count + excluded.row_count,"
	" last_log_seq = greatest(d.last_log_seq, excluded.last_log_seq),"
	" refreshed_at = now())"
	" UPDATE projector.projection_cursors c"
	" SET applied_count = c.applied_count + s.applied,"
	" failed_count = c.failed_count + s.failed,"
	" dead_count = c.dead_count + s.dead,"
	" batch_count = c.batch_count + s.batches,"
	" apply_time = c.apply_time + s.time,"
	" last_applied_at = greatest(c.last_applied_at, s.last)"
	" FROM sums s WHERE c.projection_id = s.projection_id"
	" AND c.tenant_id = s.tenant_id",
	.expect = SPI_OK_UPDATE,
	.nargs = 1,
	.argtypes = {TIDARRAYOID},
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

/* A pair that has rows in the table. */
typedef struct NotedPair
{
	int32		projection_id;
	Datum		tenant;
	ArrayType  *places;			/* the ctids of its rows */
	ItemPointerData first;		/* the smallest and the largest */
	ItemPointerData last;
	int64		layout;			/* of the rows' digests; 0 if there are none */
	bool		mixed;			/* the rows have different layouts */
} NotedPair;

/* Read some rows and group them by pair.  Returns the number of pairs. */
static int
read_pairs(PjDeltaScan *scan, int max_rows, NotedPair **pairs, int *nrows)
{
	Datum		values[4] = {PointerGetDatum(&scan->from),
		Int32GetDatum(max_rows), Int32GetDatum(scan->projection_id),
	scan->tenant};
	char		nulls[] = {' ', ' ', scan->projection_id ? ' ' : 'n',
	scan->tenant ? ' ' : 'n', '\0'};
	int			n = pj_execute(&select_pairs, values, nulls);

	*nrows = 0;
	*pairs = palloc(sizeof(NotedPair) * Max(n, 1));
	for (int i = 0; i < n; i++)
	{
		NotedPair  *pair = &(*pairs)[i];
		bool		isnull;

		pair->projection_id = DatumGetInt32(pj_result(i, 1, &isnull));
		pair->tenant =
			PointerGetDatum(DatumGetTextPCopy(pj_result(i, 2, &isnull)));
		pair->places = DatumGetArrayTypePCopy(pj_result(i, 3, &isnull));
		pair->last = *(ItemPointer) DatumGetPointer(pj_result(i, 7,
															  &isnull));
		pair->layout = DatumGetInt64(pj_result(i, 5, &isnull));
		pair->mixed = !isnull &&
			pair->layout != DatumGetInt64(pj_result(i, 6, &isnull));
		*nrows += ArrayGetNItems(ARR_NDIM(pair->places),
								 ARR_DIMS(pair->places));
	}
	return n;
}

/*
 * Lock the pairs.  Keep only those that no other session is working on and
 * that can be added up.  Returns their number.
 */
static int
lock_pairs(PjDeltaScan *scan, NotedPair *pairs, int n)
{
	Datum	   *ids = palloc(sizeof(Datum) * Max(n, 1));
	Datum	   *tenants = palloc(sizeof(Datum) * Max(n, 1));
	int64	   *layouts = palloc(sizeof(int64) * Max(n, 1));
	Datum		values[3];
	int			locked = 0;

	for (int i = 0; i < n; i++)
	{
		NotedPair	pair = pairs[i];

		scan->other_layouts = scan->other_layouts || pair.mixed;
		if (pair.mixed ||
			!pj_lock_projection(pair.projection_id, ShareLock, false) ||
			!pj_lock_driver(pair.projection_id, pair.tenant, false))
			continue;
		ids[locked] = Int32GetDatum(pair.projection_id);
		tenants[locked] = pair.tenant;
		layouts[locked] = pair.layout;
		pairs[locked++] = pair;
	}
	values[0] = PointerGetDatum(construct_array(ids, locked, INT4OID,
												sizeof(int32), true,
												TYPALIGN_INT));
	values[1] = pj_text_array(tenants, locked);
	values[2] = pj_int8_array(layouts, locked);
	n = pj_execute(&lock_cursors, values, NULL);
	locked = 0;
	for (int i = 0; i < n; i++)
	{
		bool		isnull;

		if (!DatumGetBool(pj_result(i, 2, &isnull)))
		{
			scan->other_layouts = true;
			continue;
		}

		/* the result is in the order of the arrays */
		pairs[locked++] = pairs[DatumGetInt32(pj_result(i, 1, &isnull)) - 1];
	}
	return locked;
}

/* Returns the ctids of all rows of the pairs. */
static Datum
all_places(const NotedPair *pairs, int n, int nrows)
{
	Datum	   *places = palloc(sizeof(Datum) * Max(nrows, 1));
	int			count = 0;

	for (int i = 0; i < n; i++)
	{
		Datum	   *own;
		int			nown;

		deconstruct_array(pairs[i].places, TIDOID, sizeof(ItemPointerData),
						  false, TYPALIGN_SHORT, &own, NULL, &nown);
		memcpy(places + count, own, sizeof(Datum) * nown);
		count += nown;
	}
	return PointerGetDatum(construct_array(places, count, TIDOID,
										   sizeof(ItemPointerData), false,
										   TYPALIGN_SHORT));
}

/*
 * Add up the next max_rows rows, of at most max_pairs pairs.  Returns true if
 * there are more rows.
 *
 * Changing the cursor, digest or rows of a pair requires its driver lock, or
 * an exclusive lock on the projection.  We take that lock only if it is free.
 * Then we never wait for a row, and other sessions do not wait for our rows
 * either: they see that the lock is taken.
 */
bool
pj_deltas_add_up(PjDeltaScan *scan, int max_rows, int max_pairs)
{
	NotedPair  *pairs;
	int			nrows;
	int			n = read_pairs(scan, max_rows, &pairs, &nrows);
	int			locked;
	Datum		values[1];

	for (int i = 0; i < n; i++)
		if (ItemPointerCompare(&pairs[i].last, &scan->from) > 0)
			scan->from = pairs[i].last;
	locked = lock_pairs(scan, pairs, Min(n, max_pairs));
	scan->left_some = scan->left_some || locked < n;
	for (int i = 0; i < locked; i++)
		Assert(pj_driver_is_locked(pairs[i].projection_id, pairs[i].tenant));
	if (locked > 0)
	{
		values[0] = all_places(pairs, locked, nrows);
		pj_execute(&add_up, values, NULL);
	}
	return nrows == max_rows;
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
