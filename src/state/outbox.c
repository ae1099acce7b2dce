/*
 * outbox.c
 *	  The outbox: one row per projection and event that has not been
 *	  applied yet.  This file has the commands that change it, and those
 *	  that find tenants with work in it.
 *
 * outbox_add.c inserts rows, outbox_claim.c reads and claims them.
 */
#include "base/compat.h"

#include "access/table.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

#include "base/fetch.h"
#include "base/guc.h"
#include "base/lock.h"
#include "base/row.h"
#include "base/statement.h"
#include "state/outbox.h"
#include "state/pair.h"

static PjTable outbox_table = {"apply_outbox"};

static PjStatement delete = {
	.sql = "DELETE FROM projector.apply_outbox WHERE ctid = ANY (ARRAY"
	" (SELECT o.ctid FROM" PJ_EACH_ITEM("ctid", "") "))",
	.expect = SPI_OK_DELETE,
	.nargs = 2,
	.argtypes = {INT4OID, INT8ARRAYOID},
};

static PjStatement delete_rows = {
	.sql = "DELETE FROM projector.apply_outbox WHERE ctid = ANY ($1)",
	.expect = SPI_OK_DELETE,
	.nargs = 1,
	.argtypes = {TIDARRAYOID},
};

/*
 * Store the result of a trial in mode shadow.  The row is marked as held, so
 * that it is not claimed again while the projection is in that mode.
 */
static PjStatement try = {
	.sql = "UPDATE projector.apply_outbox SET shadow = $2, held = true,"
	" updated_at = now() WHERE ctid = ANY ($1)",
	.expect = SPI_OK_UPDATE,
	.nargs = 2,
	.argtypes = {TIDARRAYOID, TEXTOID},
};

/* With $2 null, leave out tenants that are in mode shadow on their own. */
static PjStatement untry = {
	.sql = "UPDATE projector.apply_outbox o SET shadow = NULL, held = false,"
	" updated_at = now() WHERE projection_id = $1"
	" AND (tenant_id = $2 OR $2 IS NULL AND NOT EXISTS"
	" (SELECT FROM projector.projection_cursors c"
	" WHERE c.projection_id = $1 AND c.tenant_id = o.tenant_id"
	" AND c.mode = 'shadow'))"
	" AND (held OR status IN ('failed', 'dead')) AND shadow IS NOT NULL",
	.expect = SPI_OK_UPDATE,
	.nargs = 2,
	.argtypes = {INT4OID, TEXTOID},
};

static PjStatement select_blocked = {
	.sql = "SELECT FROM projector.apply_outbox WHERE projection_id = $1"
	" AND tenant_id = $2 AND (held OR status IN ('failed', 'dead'))"
	" AND (status = 'dead' OR status = 'failed' AND next_attempt_at > $3)"
	" LIMIT 1",
	.expect = SPI_OK_SELECT,
	.nargs = 3,
	.argtypes = {INT4OID, TEXTOID, TIMESTAMPTZOID},
};

static PjStatement select_any_dead = {
	.sql = "SELECT FROM projector.apply_outbox WHERE projection_id = $1"
	" AND tenant_id = $2 AND (held OR status IN ('failed', 'dead'))"
	" AND status = 'dead' LIMIT 1",
	.expect = SPI_OK_SELECT,
	.nargs = 2,
	.argtypes = {INT4OID, TEXTOID},
};

static PjStatement fail = {
	.sql = "INSERT INTO projector.apply_outbox (projection_id, log_seq,"
	" tenant_id, aggregate_id, sequence_number, event_type, status,"
	" attempt_count, next_attempt_at, last_error, replay)"
	" VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"
	" ON CONFLICT (projection_id, log_seq) DO UPDATE"
	" SET status = excluded.status, attempt_count = excluded.attempt_count,"
	" next_attempt_at = excluded.next_attempt_at,"
	" last_error = excluded.last_error, held = false, updated_at = now()",
	.expect = SPI_OK_INSERT,
	.nargs = 11,
	.argtypes = {INT4OID, INT8OID, TEXTOID, TEXTOID, INT8OID, TEXTOID, TEXTOID,
	INT4OID, TIMESTAMPTZOID, TEXTOID, BOOLOID},
};

static PjStatement hold = {
	.sql = "UPDATE projector.apply_outbox SET held = true, updated_at = now()"
	" WHERE ctid = ANY (ARRAY (SELECT o.ctid FROM"
	PJ_EACH_ITEM("ctid, status, held", "")
	" WHERE o.status = 'pending' AND NOT o.held))",
	.expect = SPI_OK_UPDATE,
	.nargs = 2,
	.argtypes = {INT4OID, INT8ARRAYOID},
};

static PjStatement release = {
	.sql = "UPDATE projector.apply_outbox SET held = false, updated_at = now()"
	" WHERE ctid = ANY (ARRAY (SELECT o.ctid FROM unnest($3) AS a"
	" CROSS JOIN LATERAL (SELECT ctid FROM projector.apply_outbox"
	" WHERE projection_id = $1 AND tenant_id = $2 AND aggregate_id = a"
	" AND (held OR status IN ('failed', 'dead')) AND held"
	" AND shadow IS NULL OFFSET 0) o))",
	.expect = SPI_OK_UPDATE,
	.nargs = 3,
	.argtypes = {INT4OID, TEXTOID, TEXTARRAYOID},
};

/*
 * Loose index scans: one probe per tenant, not one per row.  They begin after
 * tenant $2, and end after $3 of them.
 */
#define NEXT_TENANT(rows, after) \
	"(SELECT tenant_id FROM projector.apply_outbox" \
	" WHERE projection_id = $1 AND " rows " AND tenant_id > " after \
	" ORDER BY tenant_id LIMIT 1)"
#define TENANTS(rows) \
	"WITH RECURSIVE t (tenant_id) AS (" NEXT_TENANT(rows, "$2") \
	" UNION ALL SELECT " NEXT_TENANT(rows, "t.tenant_id") \
	" FROM t WHERE t.tenant_id IS NOT NULL)"

static PjStatement select_pending = {
	.sql = TENANTS("status = 'pending' AND NOT held")
	" SELECT tenant_id FROM t WHERE tenant_id IS NOT NULL LIMIT $3",
	.expect = SPI_OK_SELECT,
	.nargs = 3,
	.argtypes = {INT4OID, TEXTOID, INT4OID},
};

/* With the time at which each tenant's next retry is due. */
static PjStatement select_failed = {
	.sql = TENANTS("status = 'failed'")
	" SELECT t.tenant_id, due.at FROM t CROSS JOIN LATERAL"
	" (SELECT o.next_attempt_at AS at FROM projector.apply_outbox o"
	" WHERE o.projection_id = $1 AND o.tenant_id = t.tenant_id"
	" AND o.status = 'failed' ORDER BY o.next_attempt_at LIMIT 1) due"
	" WHERE t.tenant_id IS NOT NULL LIMIT $3",
	.expect = SPI_OK_SELECT,
	.nargs = 3,
	.argtypes = {INT4OID, TEXTOID, INT4OID},
};

/* The same of one tenant: has it items that can be applied? */
static PjStatement select_any_due = {
	.sql = "SELECT WHERE EXISTS (SELECT FROM projector.apply_outbox"
	" WHERE projection_id = $1 AND tenant_id = $2"
	" AND status = 'pending' AND NOT held)"
	" OR EXISTS (SELECT FROM projector.apply_outbox"
	" WHERE projection_id = $1 AND tenant_id = $2 AND status = 'failed'"
	" AND next_attempt_at <= $3)",
	.expect = SPI_OK_SELECT,
	.nargs = 3,
	.argtypes = {INT4OID, TEXTOID, TIMESTAMPTZOID},
};

/* Is a retry due by time $2, and when is the next one after that? */
static PjStatement select_next_due = {
	.sql = "SELECT EXISTS (SELECT FROM projector.apply_outbox"
	" WHERE projection_id = $1 AND status = 'failed'"
	" AND next_attempt_at <= $2),"
	" (SELECT next_attempt_at FROM projector.apply_outbox"
	" WHERE projection_id = $1 AND status = 'failed'"
	" AND next_attempt_at > $2 ORDER BY next_attempt_at LIMIT 1)",
	.expect = SPI_OK_SELECT,
	.nargs = 2,
	.argtypes = {INT4OID, TIMESTAMPTZOID},
};

#define CLEAR "DELETE FROM projector.apply_outbox WHERE projection_id = $1"

static PjStatement clear_all = {
	.sql = CLEAR,
	.expect = SPI_OK_DELETE,
	.nargs = 1,
	.argtypes = {INT4OID},
};

static PjStatement clear_tenant = {
	.sql = CLEAR " AND tenant_id = $2",
	.expect = SPI_OK_DELETE,
	.nargs = 2,
	.argtypes = {INT4OID, TEXTOID},
};

static PjStatement clear_aggregate = {
	.sql = CLEAR " AND tenant_id = $2 AND aggregate_id = $3",
	.expect = SPI_OK_DELETE,
	.nargs = 3,
	.argtypes = {INT4OID, TEXTOID, TEXTOID},
};

static PjStatement clear_upto = {
	.sql = CLEAR " AND tenant_id = $2 AND log_seq <= $3",
	.expect = SPI_OK_DELETE,
	.nargs = 3,
	.argtypes = {INT4OID, TEXTOID, INT8OID},
};

/* Also closes the failures of the deleted items. */
static PjStatement unsubscribe = {
	.sql = "WITH gone AS (DELETE FROM projector.apply_outbox"
	" WHERE projection_id = $1 AND event_type <> ALL ($2) RETURNING log_seq)"
	" UPDATE projector.projection_failures"
	" SET resolved_at = clock_timestamp(), resolution = 'skipped'"
	" WHERE projection_id = $1 AND resolved_at IS NULL"
	" AND log_seq IN (SELECT log_seq FROM gone)",
	.expect = SPI_OK_UPDATE,
	.nargs = 2,
	.argtypes = {INT4OID, TEXTARRAYOID},
};

#define RELEASE_ALL \
	"UPDATE projector.apply_outbox SET held = false, updated_at = now()" \
	" WHERE projection_id = $1 AND (held OR status IN ('failed', 'dead'))" \
	" AND held AND shadow IS NULL"

static PjStatement release_all = {
	.sql = RELEASE_ALL,
	.expect = SPI_OK_UPDATE,
	.nargs = 1,
	.argtypes = {INT4OID},
};

static PjStatement release_tenant = {
	.sql = RELEASE_ALL " AND tenant_id = $2",
	.expect = SPI_OK_UPDATE,
	.nargs = 2,
	.argtypes = {INT4OID, TEXTOID},
};

static PjStatement requeue = {
	.sql = "UPDATE projector.apply_outbox SET status = 'pending',"
	" attempt_count = 0, next_attempt_at = now(), held = false,"
	" updated_at = now() WHERE projection_id = $1 AND log_seq = $2"
	" AND status IN ('failed', 'dead')",
	.expect = SPI_OK_UPDATE,
	.nargs = 2,
	.argtypes = {INT4OID, INT8OID},
};

/*
 * Rows locked by other transactions are skipped, because those may stay open.
 */
static PjStatement sweep = {
	.sql = "WITH RECURSIVE i (id) AS ("
	"(SELECT projection_id FROM projector.apply_outbox"
	" ORDER BY projection_id LIMIT 1)"
	" UNION ALL SELECT (SELECT o.projection_id FROM projector.apply_outbox o"
	" WHERE o.projection_id > i.id ORDER BY o.projection_id LIMIT 1)"
	" FROM i WHERE i.id IS NOT NULL)"
	" DELETE FROM projector.apply_outbox WHERE ctid = ANY (ARRAY (SELECT o.ctid"
	" FROM (SELECT id FROM i WHERE id IS NOT NULL AND NOT EXISTS"
	" (SELECT FROM projector.projections p"
	" WHERE p.projection_id = " PJ_PROJECTION_OF_BOOKS("i.id") "))"
	" g CROSS JOIN LATERAL"
	" (SELECT ctid FROM projector.apply_outbox o"
	" WHERE o.projection_id = g.id LIMIT 10000 FOR UPDATE SKIP LOCKED) o))",
	.expect = SPI_OK_DELETE,
};

static Datum
tid_array(Datum *tids, int n)
{
	return PointerGetDatum(construct_array(tids, n, TIDOID,
										   sizeof(ItemPointerData), false,
										   TYPALIGN_SHORT));
}

/*
 * Delete claimed items.  Their rows are locked, so their ctids are still
 * valid.
 */
void
pj_outbox_delete_rows(const PjItem *const *items, int n)
{
	Relation	heap = table_open(pj_relid(&outbox_table), RowExclusiveLock);
	Datum	   *tids = palloc(sizeof(Datum) * n);
	Datum		values[1];
	int			left = 0;

	for (int i = 0; i < n; i++)
	{
		ItemPointerData place = items[i]->row;

		/* a trigger that a user has added needs SQL */
		if (heap->trigdesc != NULL || !pj_row_delete(heap, &place))
			tids[left++] = PointerGetDatum(&items[i]->row);
	}
	table_close(heap, NoLock);
	CommandCounterIncrement();
	if (left == 0)
		return;
	values[0] = tid_array(tids, left);
	pj_execute(&delete_rows, values, NULL);
}

void
pj_outbox_delete(int32 projection_id, const int64 *log_seqs, int n)
{
	Datum		values[2] = {Int32GetDatum(projection_id),
	pj_int8_array(log_seqs, n)};

	pj_execute(&delete, values, NULL);
}

/* Record a failed attempt; inserts a row if the event had none. */
void
pj_outbox_fail(int32 projection_id, const PjEvent *event, bool dead,
			   int attempt_count, TimestampTz next_attempt_at,
			   const char *error)
{
	Datum		values[11] = {Int32GetDatum(projection_id),
		event->values[PJ_EVENT_LOG_SEQ], pj_event_tenant(event),
		pj_event_aggregate(event), event->values[PJ_EVENT_SEQUENCE_NUMBER],
		pj_event_type(event),
		CStringGetTextDatum(dead ? "dead" : "failed"),
		Int32GetDatum(attempt_count), TimestampTzGetDatum(next_attempt_at),
	CStringGetTextDatum(error), BoolGetDatum(event->replay)};

	pj_execute(&fail, values, NULL);
}

/*
 * Holding or releasing a pair's rows requires its driver lock.  The rows of a
 * build are used only by its run.
 */
static void
assert_locked(int32 projection_id, Datum tenant)
{
	Assert(pj_books_are_of_build(projection_id) ||
		   pj_driver_is_locked(projection_id, tenant));
}

/* Mark a tenant's rows as held.  Returns how many were not held before. */
int64
pj_outbox_hold(int32 projection_id, Datum tenant, const int64 *log_seqs,
			   int n)
{
	Datum		values[2] = {Int32GetDatum(projection_id),
	pj_int8_array(log_seqs, n)};

	assert_locked(projection_id, tenant);
	return pj_execute(&hold, values, NULL);
}

/* Clear the held flag for these aggregates. */
void
pj_outbox_release(int32 projection_id, Datum tenant, Datum *aggregates, int n)
{
	Datum		values[3] = {Int32GetDatum(projection_id), tenant,
	pj_text_array(aggregates, n)};

	assert_locked(projection_id, tenant);
	pj_execute(&release, values, NULL);
}

/*
 * Some tenants that have items to apply for the first time, in bytewise order,
 * after one of them or from the first if that is 0.
 */
int
pj_outbox_pending(int32 projection_id, Datum after, int limit,
				  Datum **tenants)
{
	Datum		values[3] = {Int32GetDatum(projection_id),
		after ? after : CStringGetTextDatum(""),
	Int32GetDatum(limit)};

	pj_execute(&select_pending, values, NULL);
	return pj_result_texts(tenants);
}

/*
 * The same for items that have failed.  Those whose retry is not due are
 * looked at too, so *due says of each tenant whether one is.
 */
int
pj_outbox_failed(int32 projection_id, Datum after, int limit,
				 Datum **tenants, bool **due)
{
	Datum		values[3] = {Int32GetDatum(projection_id),
		after ? after : CStringGetTextDatum(""),
	Int32GetDatum(limit)};
	TimestampTz now = pj_now();
	int			n;

	pj_execute(&select_failed, values, NULL);
	n = pj_result_texts(tenants);
	*due = palloc(sizeof(bool) * Max(n, 1));
	for (int i = 0; i < n; i++)
	{
		bool		isnull;

		(*due)[i] = DatumGetTimestampTz(pj_result(i, 2, &isnull)) <= now;
	}
	return n;
}

/* Has a tenant items that can be applied? */
bool
pj_outbox_has_due(int32 projection_id, Datum tenant)
{
	Datum		values[3] = {Int32GetDatum(projection_id), tenant,
	TimestampTzGetDatum(pj_now())};

	return pj_execute(&select_any_due, values, NULL) > 0;
}

/*
 * Is a retry of a projection due now?  *next_due becomes the time of the next
 * one, if that is earlier.
 */
bool
pj_outbox_retry_is_due(int32 projection_id, TimestampTz *next_due)
{
	Datum		values[2] = {Int32GetDatum(projection_id),
	TimestampTzGetDatum(pj_now())};
	bool		isnull;
	TimestampTz next;

	pj_execute(&select_next_due, values, NULL);
	next = DatumGetTimestampTz(pj_result(0, 2, &isnull));
	if (!isnull)
		*next_due = Min(*next_due, next);
	return DatumGetBool(pj_result(0, 1, &isnull));
}

/* Does a pair have an item that is dead, or failed and not yet due? */
bool
pj_outbox_blocked(int32 projection_id, Datum tenant)
{
	Datum		values[3] = {Int32GetDatum(projection_id), tenant,
	TimestampTzGetDatum(pj_now())};

	return pj_execute(&select_blocked, values, NULL) > 0;
}

/* Does a pair have a dead item? */
bool
pj_outbox_has_dead(int32 projection_id, Datum tenant)
{
	Datum		values[2] = {Int32GetDatum(projection_id), tenant};

	return pj_execute(&select_any_dead, values, NULL) > 0;
}

/* Store the result of a trial for some claimed items. */
void
pj_outbox_try(const PjClaim *claims, int n, const char *result)
{
	Datum	   *tids = palloc(sizeof(Datum) * Max(n, 1));
	Datum		values[2];

	for (int i = 0; i < n; i++)
		tids[i] = PointerGetDatum(&claims[i].item.row);
	values[0] = tid_array(tids, n);
	values[1] = CStringGetTextDatum(result);
	pj_execute(&try, values, NULL);
}

/*
 * Mode shadow has ended: the items that were tried must now be applied.
 * Tenant is 0 for all.
 */
void
pj_outbox_untry(int32 projection_id, Datum tenant)
{
	Datum		values[2] = {Int32GetDatum(projection_id), tenant};

	pj_execute(&untry, values, tenant ? NULL : " n");
}

/* Delete a projection's items; tenant and aggregate are 0 for all. */
void
pj_outbox_clear(int32 projection_id, Datum tenant, Datum aggregate)
{
	Datum		values[3] = {Int32GetDatum(projection_id), tenant, aggregate};

	pj_execute(aggregate ? &clear_aggregate :
			   tenant ? &clear_tenant : &clear_all, values, NULL);
}

/*
 * Clear the held flag of all items of a tenant.  Items that must wait will be
 * held again.
 */
void
pj_outbox_release_tenant(int32 projection_id, Datum tenant)
{
	Datum		values[2] = {Int32GetDatum(projection_id), tenant};

	assert_locked(projection_id, tenant);
	pj_execute(&release_tenant, values, NULL);
}

/*
 * Delete a tenant's items up to a log position, and release items that were
 * held because of them.
 */
void
pj_outbox_clear_upto(int32 projection_id, Datum tenant, int64 upto)
{
	Datum		values[3] = {Int32GetDatum(projection_id), tenant,
	Int64GetDatum(upto)};

	pj_execute(&clear_upto, values, NULL);
	pj_outbox_release_tenant(projection_id, tenant);
}

/*
 * The projection now subscribes only to these types: delete the items of
 * others.  All held items are released; those that must wait will be held
 * again.
 */
void
pj_outbox_unsubscribe(int32 projection_id, Datum event_types)
{
	Datum		values[2] = {Int32GetDatum(projection_id), event_types};

	Assert(pj_projection_is_locked(projection_id, ExclusiveLock));
	pj_execute(&unsubscribe, values, NULL);
	pj_execute(&release_all, values, NULL);
}

/*
 * Make a failed or dead item pending again.  Returns false if it is neither.
 */
bool
pj_outbox_requeue(int32 projection_id, int64 log_seq)
{
	Datum		values[2] = {Int32GetDatum(projection_id),
	Int64GetDatum(log_seq)};

	return pj_execute(&requeue, values, NULL) > 0;
}

/*
 * Delete the items of projections that have been dropped.  An append that was
 * in progress while its projection was dropped leaves such items.
 */
void
pj_outbox_sweep(void)
{
	pj_execute(&sweep, NULL, NULL);
}
