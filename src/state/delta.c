/*
 * delta.c
 *	  What appends have applied inline: noted by each in a row of its own, and
 *	  added to the pairs' cursors later.
 *
 * A counter that all appenders of a tenant change would make them wait for one
 * another.  So an append only adds a row, to a table without indexes, which is
 * hardly more than what its WAL costs.
 */
#include "base/compat.h"

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "storage/itemptr.h"
#include "storage/lockdefs.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

#include "base/fetch.h"
#include "base/lock.h"
#include "base/statement.h"
#include "sandbox/user_context.h"
#include "state/delta.h"

#define NUM_COLUMNS	11

/* So many rows are looked at in one transaction. */
#define MAX_ROWS	10000

static PjTable deltas_table = {"projection_deltas"};

/* For a table that somebody has added something to. */
static PjStatement insert = {
	.sql = "INSERT INTO projector.projection_deltas"
	" VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
	.expect = SPI_OK_INSERT,
	.nargs = NUM_COLUMNS,
	.argtypes = {INT4OID, TEXTOID, INT8OID, INT8OID, INT8OID, INTERVALOID,
	TIMESTAMPTZOID, TEXTOID, INT8OID, INT8OID, INT8OID},
};

/*
 * The pairs of some rows, and where these are.  The table has no index: it is
 * read from where the last look ended.
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
 * Those of the pairs whose counts can be added up now.  A cursor that is not
 * there yet will be, and one that somebody has locked is not waited for.
 */
static PjStatement lock_cursors = {
	.sql = "SELECT p.n::int FROM unnest($1, $2, $3) WITH ORDINALITY"
	" AS p (projection_id, tenant_id, layout, n)"
	" CROSS JOIN LATERAL (SELECT FROM projector.projection_cursors c"
	" WHERE c.projection_id = p.projection_id AND c.tenant_id = p.tenant_id"
	" LIMIT 1 FOR UPDATE SKIP LOCKED) c"
	" LEFT JOIN LATERAL (SELECT y.layout FROM projector.projection_digests y"
	" WHERE y.projection_id = p.projection_id AND y.tenant_id = p.tenant_id"
	" LIMIT 1) y ON true"
	" WHERE p.layout = 0 OR y.layout IS NULL OR y.layout = p.layout"
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

/* An append that was under way while its projection was dropped leaves such. */
static PjStatement sweep = {
	.sql = "DELETE FROM projector.projection_deltas WHERE ctid = ANY (ARRAY"
	" (SELECT d.ctid FROM projector.projection_deltas d WHERE NOT EXISTS"
	" (SELECT FROM projector.projections p"
	" WHERE p.projection_id = d.projection_id) FOR UPDATE SKIP LOCKED))",
	.expect = SPI_OK_DELETE,
};

/*
 * A few pairs whose target has other columns now than when it was hashed; of
 * projection $1 and tenant $2, or all where these are null.
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

static void
insert_by_sql(Datum *values, bool no_digest)
{
	PjContext	saved;

	pj_enter_internal(&saved);
	pj_execute(&insert, values, no_digest ? "       n   " : NULL);
	pj_leave_internal(&saved);
}

/* Note what an append, whose last event is at log_seq, has done for a pair. */
void
pj_delta_add(const PjPair *pair, const PjCounts *counts,
			 const PjDigest *digest, int64 log_seq)
{
	Interval	time = {.time = counts->us};
	bool		changed = !pj_digest_is_zero(digest);
	Datum		values[NUM_COLUMNS] = {Int32GetDatum(pair->projection->id),
		pair->tenant, Int64GetDatum(counts->applied),
		Int64GetDatum(counts->failed), Int64GetDatum(counts->dead),
		IntervalPGetDatum(&time),
		TimestampTzGetDatum(GetCurrentTransactionStartTimestamp()),
		changed ? CStringGetTextDatum(pj_digest_text(digest)) : (Datum) 0,
		Int64GetDatum(digest->rows), Int64GetDatum(digest->layout),
	Int64GetDatum(log_seq)};
	bool		nulls[NUM_COLUMNS] = {[7] = !changed};
	Relation	heap = table_open(pj_relid(&deltas_table), RowExclusiveLock);

	if (RelationGetNumberOfAttributes(heap) != NUM_COLUMNS ||
		heap->rd_rel->relhasindex || heap->trigdesc != NULL)
		insert_by_sql(values, !changed);
	else
	{
		HeapTuple	tuple = heap_form_tuple(RelationGetDescr(heap), values,
											nulls);

		heap_insert(heap, tuple, GetCurrentCommandId(true), 0, NULL);
		heap_freetuple(tuple);
	}
	table_close(heap, NoLock);
}

/* ---- adding up ---- */

/* A pair that appends have noted something of. */
typedef struct NotedPair
{
	int32		projection_id;
	Datum		tenant;
	ArrayType  *places;			/* of its rows */
	ItemPointerData first;		/* of these */
	ItemPointerData last;
	int64		layout;			/* of their digests; 0 if there are none */
	bool		mixed;			/* there is more than one layout */
} NotedPair;

/* Read some rows, and find the pairs they are of.  Returns how many pairs. */
static int
read_pairs(ItemPointer from, int32 projection_id, Datum tenant,
		   NotedPair **pairs, int *nrows)
{
	Datum		values[4] = {PointerGetDatum(from), Int32GetDatum(MAX_ROWS),
	Int32GetDatum(projection_id), tenant};
	char		nulls[] = {' ', ' ', projection_id ? ' ' : 'n',
	tenant ? ' ' : 'n', '\0'};
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
		pair->first = *(ItemPointer) DatumGetPointer(pj_result(i, 4,
															   &isnull));
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
 * Keep those of the pairs that nobody else is at work on, and that can be added
 * up.  Returns how many.
 */
static int
lock_pairs(NotedPair *pairs, int n)
{
	Datum	   *ids = palloc(sizeof(Datum) * Max(n, 1));
	Datum	   *tenants = palloc(sizeof(Datum) * Max(n, 1));
	int64	   *layouts = palloc(sizeof(int64) * Max(n, 1));
	Datum		values[3];
	int			locked = 0;

	for (int i = 0; i < n; i++)
	{
		NotedPair	pair = pairs[i];

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
	for (int i = 0; i < n; i++)
	{
		bool		isnull;

		/* they come in the order in which they were given */
		pairs[i] = pairs[DatumGetInt32(pj_result(i, 1, &isnull)) - 1];
	}
	return n;
}

/* The places of all rows of the pairs. */
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
 * Where to read on, once the first max_pairs pairs have been looked at.  What
 * could not be added up is met again after the last row of the table.
 */
static void
find_next(const NotedPair *pairs, int n, int max_pairs, bool more,
		  ItemPointer from)
{
	if (n > max_pairs)
		*from = pairs[max_pairs].first;
	else if (more)
		for (int i = 0; i < n; i++)
		{
			if (ItemPointerCompare((ItemPointer) &pairs[i].last, from) > 0)
				*from = pairs[i].last;
		}
	else
		ItemPointerSet(from, 0, 1);
}

/*
 * Add to the cursors what appends have noted, of no more than max_pairs pairs
 * of a projection and tenant, or all if these are 0.  Returns whether there is
 * more to look at; the next call goes on there.
 *
 * Whoever changes cursor, digest and noted rows of a pair has its driver lock,
 * or the projection's lock exclusively.  So with that lock, which is not waited
 * for, no row has to be waited for either, and others of the pair are not kept
 * waiting: they find the lock taken.
 */
bool
pj_deltas_add_up(int32 projection_id, Datum tenant, int max_pairs)
{
	static ItemPointerData from = {{0, 0}, 1};
	NotedPair  *pairs;
	int			nrows;
	int			n = read_pairs(&from, projection_id, tenant, &pairs, &nrows);
	bool		more = nrows == MAX_ROWS || n > max_pairs;
	Datum		values[1];

	find_next(pairs, n, max_pairs, more, &from);
	n = lock_pairs(pairs, Min(n, max_pairs));
	for (int i = 0; i < n; i++)
		Assert(pj_driver_is_locked(pairs[i].projection_id, pairs[i].tenant));
	if (n > 0)
	{
		values[0] = all_places(pairs, n, nrows);
		pj_execute(&add_up, values, NULL);
	}
	return more;
}

/* Remove what is left of projections that are no more. */
void
pj_deltas_sweep(void)
{
	pj_execute(&sweep, NULL, NULL);
}

/*
 * Some pairs, of a projection and tenant or all if these are 0, whose digest
 * cannot be added up: their target has been altered, and the digest must be
 * found from the rows.
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
