/*
 * delta.c
 *	  What appends have applied inline: noted by each in a row of its own, and
 *	  added to the pairs' cursors later.
 *
 * A counter that all appenders of a tenant change would make them wait for one
 * another.  So an append only adds a row, to a table without indexes, which is
 * hardly more than what its WAL costs.
 */
#include "compat.h"

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "utils/builtins.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

#include "context.h"
#include "delta.h"
#include "fetch.h"
#include "statement.h"

#define NUM_COLUMNS	11

/* So many rows are looked at, for whose counts to add up. */
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
 * Whoever has locked a cursor is not waited for, and one that is not there yet
 * will be: its rows stay until then.
 */
static PjStatement add_up = {
	.sql = "WITH pairs AS MATERIALIZED (SELECT c.* FROM"
	" (SELECT DISTINCT projection_id, tenant_id FROM (SELECT projection_id,"
	" tenant_id FROM projector.projection_deltas LIMIT $1) d) p"
	" CROSS JOIN LATERAL (SELECT projection_id, tenant_id"
	" FROM projector.projection_cursors c"
	" WHERE c.projection_id = p.projection_id AND c.tenant_id = p.tenant_id"
	" AND NOT EXISTS (SELECT FROM projector.projection_deltas x"
	" JOIN projector.projection_digests y USING (projection_id, tenant_id)"
	" WHERE x.projection_id = p.projection_id AND x.tenant_id = p.tenant_id"
	" AND x.digest IS NOT NULL AND x.layout <> y.layout)"
	" LIMIT 1 FOR UPDATE SKIP LOCKED) c),"
	" gone AS (DELETE FROM projector.projection_deltas d USING pairs p"
	" WHERE d.projection_id = p.projection_id AND d.tenant_id = p.tenant_id"
	" RETURNING d.*), sums AS (SELECT projection_id, tenant_id,"
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
	.argtypes = {INT4OID},
};

/* An append that was under way while its projection was dropped leaves such. */
static PjStatement sweep = {
	.sql = "DELETE FROM projector.projection_deltas d WHERE NOT EXISTS"
	" (SELECT FROM projector.projections p"
	" WHERE p.projection_id = d.projection_id)",
	.expect = SPI_OK_DELETE,
};

/* A few pairs whose target has other columns now than when it was hashed. */
static PjStatement select_other_layouts = {
	.sql = "SELECT x.tenant_id, x.projection_id"
	" FROM projector.projection_deltas x"
	" LEFT JOIN projector.projection_digests y USING (projection_id, tenant_id)"
	" WHERE x.digest IS NOT NULL GROUP BY x.tenant_id, x.projection_id"
	" HAVING min(x.layout) <> max(x.layout) OR bool_or(x.layout <> y.layout)"
	" LIMIT 8",
	.expect = SPI_OK_SELECT,
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

/* Add to the cursors what appends have noted. */
void
pj_deltas_add_up(void)
{
	Datum		values[1] = {Int32GetDatum(MAX_ROWS)};

	pj_execute(&add_up, values, NULL);
}

/* Remove what is left of projections that are no more. */
void
pj_deltas_sweep(void)
{
	pj_execute(&sweep, NULL, NULL);
}

/*
 * Some pairs whose digest cannot be added up: their target has been altered,
 * and the digest must be found anew.
 */
int
pj_deltas_of_other_layouts(int32 **ids, Datum **tenants)
{
	int			n = pj_execute(&select_other_layouts, NULL, NULL);

	*ids = palloc(sizeof(int32) * Max(n, 1));
	for (int i = 0; i < n; i++)
	{
		bool		isnull;

		(*ids)[i] = DatumGetInt32(pj_result(i, 2, &isnull));
	}
	return pj_result_texts(tenants);
}
