/*
 * delta.c
 *	  Counts and digests of inline appends: each append adds a row of its
 *	  own, and the rows are added to the pairs' cursors later (delta_sum.c).
 *
 * If all sessions appending for a tenant updated the same counter, they would
 * wait for one another.  So an append only inserts a row, into a table without
 * indexes, which costs little more than its WAL.
 */
#include "base/compat.h"

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "utils/builtins.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

#include "base/fetch.h"
#include "base/statement.h"
#include "sandbox/user_context.h"
#include "state/delta.h"
#include "state/delta_table.h"

PjTable		pj_deltas_table = {"projection_deltas"};

/* Used if a user has added an index, trigger or constraint to the table. */
static PjStatement insert = {
	.sql = "INSERT INTO projector.projection_deltas"
	" VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
	.expect = SPI_OK_INSERT,
	.nargs = Natts,
	.argtypes = {INT4OID, TEXTOID, INT8OID, INT8OID, INT8OID, INTERVALOID,
	TIMESTAMPTZOID, TEXTOID, INT8OID, INT8OID, INT8OID},
};

static void
insert_by_sql(Datum *values, bool no_digest)
{
	PjContext	saved;

	pj_enter_internal(&saved);
	pj_execute(&insert, values, no_digest ? "       n   " : NULL);
	pj_leave_internal(&saved);
}

/*
 * Record what an append, whose last event is at log_seq, has done for a pair.
 */
void
pj_delta_add(const PjPair *pair, const PjCounts *counts,
			 const PjDigest *digest, int64 log_seq)
{
	Interval	time = {.time = counts->us};
	bool		changed = !pj_digest_is_zero(digest);
	Datum		values[Natts] = {Int32GetDatum(pair->projection->id),
		pair->tenant, Int64GetDatum(counts->applied),
		Int64GetDatum(counts->failed), Int64GetDatum(counts->dead),
		IntervalPGetDatum(&time),
		TimestampTzGetDatum(GetCurrentTransactionStartTimestamp()),
		changed ? CStringGetTextDatum(pj_digest_text(digest)) : (Datum) 0,
		Int64GetDatum(digest->rows), Int64GetDatum(digest->layout),
	Int64GetDatum(log_seq)};
	bool		nulls[Natts] = {[Anum_digest - 1] = !changed};
	Relation	heap = table_open(pj_relid(&pj_deltas_table), RowExclusiveLock);

	if (RelationGetNumberOfAttributes(heap) != Natts ||
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
