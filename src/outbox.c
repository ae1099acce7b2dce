/*
 * outbox.c
 *	  The work list: one row per projection and event not yet applied.
 *
 * A row is claimed by locking it in the transaction that applies its event,
 * and deleted by that transaction: a crash leaves nothing to clean up, and
 * nothing says "processing" that is not.
 *
 * Pending rows are found through an index that leaves out the held ones, so
 * that a claim costs what it takes, whatever waits behind a failed event.
 */
#include "compat.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "fetch.h"
#include "guc.h"
#include "outbox.h"
#include "statement.h"

#define ITEM_COLUMNS \
	" log_seq, tenant_id, aggregate_id, sequence_number, event_type," \
	" attempt_count, status, next_attempt_at, held, replay, ctid "

/*
 * Retries first, then what is pending.  Each limit must sit in a materialized
 * subquery of its own: under another plan the locking subquery would be run
 * again for each row, and take more than its limit.
 */
static PjStatement claim = {
	.sql = "WITH f AS MATERIALIZED (SELECT" ITEM_COLUMNS
	"FROM projector.apply_outbox WHERE projection_id = $1"
	" AND tenant_id = $2 AND status = 'failed' AND next_attempt_at <= $4"
	" ORDER BY next_attempt_at LIMIT $3 FOR UPDATE SKIP LOCKED),"
	" p AS MATERIALIZED (SELECT" ITEM_COLUMNS
	"FROM projector.apply_outbox WHERE projection_id = $1"
	" AND tenant_id = $2 AND status = 'pending' AND NOT held"
	" AND log_seq > $6 AND log_seq <= $5"
	" ORDER BY log_seq LIMIT $3 - (SELECT count(*) FROM f)"
	" FOR UPDATE SKIP LOCKED)"
	" SELECT * FROM (SELECT * FROM f UNION ALL SELECT * FROM p) c"
	" ORDER BY aggregate_id, sequence_number",
	.expect = SPI_OK_SELECT,
	.nargs = 6,
	.argtypes = {INT4OID, TEXTOID, INT4OID, TIMESTAMPTZOID, INT8OID, INT8OID},
};

/* The row of an event in the log is found by its position there … */
static PjStatement claim_at = {
	.sql = "SELECT" ITEM_COLUMNS
	"FROM projector.apply_outbox WHERE projection_id = $1 AND log_seq = $2"
	" AND tenant_id = $3 AND aggregate_id = $4 AND sequence_number = $5"
	" FOR UPDATE",
	.expect = SPI_OK_SELECT,
	.nargs = 5,
	.argtypes = {INT4OID, INT8OID, TEXTOID, TEXTOID, INT8OID},
};

/* … and that of a missing event, which has failed, by its aggregate. */
static PjStatement claim_blocked = {
	.sql = "SELECT" ITEM_COLUMNS
	"FROM projector.apply_outbox WHERE projection_id = $1"
	" AND tenant_id = $2 AND aggregate_id = $3 AND sequence_number = $4"
	" AND (held OR status IN ('failed', 'dead'))"
	" FOR UPDATE",
	.expect = SPI_OK_SELECT,
	.nargs = 4,
	.argtypes = {INT4OID, TEXTOID, TEXTOID, INT8OID},
};

/*
 * The rows of the events at positions $2, each looked up by itself: the LIMIT
 * keeps the planner from joining, which it would do by scanning.
 */
#define EACH_ROW(columns, locking) \
	" unnest($2) AS l CROSS JOIN LATERAL (SELECT " columns \
	" FROM projector.apply_outbox" \
	" WHERE projection_id = $1 AND log_seq = l LIMIT 1" locking ") o"

static PjStatement look = {
	.sql = "SELECT o.log_seq, o.status, o.attempt_count,"
	" o.next_attempt_at <= $3, o.held, o.replay, o.ctid"
	" FROM" EACH_ROW("*, ctid", ""),
	.expect = SPI_OK_SELECT,
	.nargs = 3,
	.argtypes = {INT4OID, INT8ARRAYOID, TIMESTAMPTZOID},
};

/* Has the tenant any item that could be of an event in this part of the log? */
static PjStatement select_any = {
	.sql = "SELECT WHERE EXISTS (SELECT FROM projector.apply_outbox"
	" WHERE projection_id = $1 AND tenant_id = $2 AND status = 'pending'"
	" AND NOT held AND log_seq BETWEEN $3 AND $4)"
	" OR EXISTS (SELECT FROM projector.apply_outbox"
	" WHERE projection_id = $1 AND tenant_id = $2"
	" AND (held OR status IN ('failed', 'dead')))",
	.expect = SPI_OK_SELECT,
	.nargs = 4,
	.argtypes = {INT4OID, TEXTOID, INT8OID, INT8OID},
};

static PjStatement lock_rows = {
	.sql = "SELECT o.log_seq FROM"
	EACH_ROW("log_seq", " FOR UPDATE SKIP LOCKED"),
	.expect = SPI_OK_SELECT,
	.nargs = 2,
	.argtypes = {INT4OID, INT8ARRAYOID},
};

static PjStatement delete = {
	.sql = "DELETE FROM projector.apply_outbox WHERE ctid = ANY (ARRAY"
	" (SELECT o.ctid FROM" EACH_ROW("ctid", "") "))",
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
 * A trial's result.  The row is marked as held, so that no claim meets it
 * again while the projection is being tried.
 */
static PjStatement try = {
	.sql = "UPDATE projector.apply_outbox SET shadow = $2, held = true,"
	" updated_at = now() WHERE ctid = ANY ($1)",
	.expect = SPI_OK_UPDATE,
	.nargs = 2,
	.argtypes = {TIDARRAYOID, TEXTOID},
};

/* Those who are tried by themselves are not concerned. */
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

#define BETWEEN(rows) \
	"SELECT" ITEM_COLUMNS "FROM projector.apply_outbox" \
	" WHERE projection_id = $1 AND tenant_id = $2 AND " rows \
	" AND log_seq > $3 AND log_seq <= $4"

static PjStatement select_between = {
	.sql = "(" BETWEEN("status = 'pending' AND NOT held")
	" ORDER BY log_seq LIMIT $5) UNION ALL "
	BETWEEN("(held OR status IN ('failed', 'dead'))")
	" ORDER BY log_seq LIMIT $5",
	.expect = SPI_OK_SELECT,
	.nargs = 5,
	.argtypes = {INT4OID, TEXTOID, INT8OID, INT8OID, INT4OID},
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
	EACH_ROW("ctid, status, held", "")
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

/* Loose index scans: one probe per tenant, not one per row. */
#define TENANTS(rows) \
	"SELECT tenant_id FROM projector.apply_outbox o" \
	" WHERE projection_id = $1 AND " rows

static PjStatement select_tenants = {
	.sql = "WITH RECURSIVE p (tenant_id) AS (("
	TENANTS("status = 'pending' AND NOT held")
	" ORDER BY tenant_id LIMIT 1)"
	" UNION ALL SELECT ("
	TENANTS("status = 'pending' AND NOT held AND tenant_id > p.tenant_id")
	" ORDER BY tenant_id LIMIT 1) FROM p WHERE p.tenant_id IS NOT NULL),"
	" f (tenant_id) AS (("
	TENANTS("status = 'failed'")
	" ORDER BY tenant_id LIMIT 1)"
	" UNION ALL SELECT ("
	TENANTS("status = 'failed' AND tenant_id > f.tenant_id")
	" ORDER BY tenant_id LIMIT 1) FROM f WHERE f.tenant_id IS NOT NULL)"
	" SELECT tenant_id, NULL::timestamptz FROM p WHERE tenant_id IS NOT NULL"
	" UNION ALL SELECT f.tenant_id, due.at FROM f CROSS JOIN LATERAL"
	" (SELECT o.next_attempt_at AS at FROM projector.apply_outbox o"
	" WHERE o.projection_id = $1 AND o.tenant_id = f.tenant_id"
	" AND o.status = 'failed' ORDER BY o.next_attempt_at LIMIT 1) due"
	" ORDER BY tenant_id",
	.expect = SPI_OK_SELECT,
	.nargs = 1,
	.argtypes = {INT4OID},
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

/* The failures of items that go are closed with them. */
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

/* The oldest dead items; those who have locked some are looking after them. */
static PjStatement select_dead = {
	.sql = "SELECT" ITEM_COLUMNS ", projection_id"
	" FROM projector.apply_outbox WHERE projection_id = ANY ($1)"
	" AND ($2 IS NULL OR tenant_id = $2) AND status = 'dead'"
	" ORDER BY next_attempt_at, log_seq LIMIT $3",
	.expect = SPI_OK_SELECT,
	.nargs = 3,
	.argtypes = {INT4ARRAYOID, TEXTOID, INT4OID},
};

static PjStatement sweep = {
	.sql = "WITH RECURSIVE i (id) AS ("
	"(SELECT projection_id FROM projector.apply_outbox"
	" ORDER BY projection_id LIMIT 1)"
	" UNION ALL SELECT (SELECT o.projection_id FROM projector.apply_outbox o"
	" WHERE o.projection_id > i.id ORDER BY o.projection_id LIMIT 1)"
	" FROM i WHERE i.id IS NOT NULL)"
	" DELETE FROM projector.apply_outbox WHERE projection_id IN"
	" (SELECT id FROM i WHERE id IS NOT NULL AND NOT EXISTS"
	" (SELECT FROM projector.projections p"
	" WHERE p.projection_id = abs(i.id)))",
	.expect = SPI_OK_DELETE,
};

static PjStatus
status_of(Datum status)
{
	switch (*VARDATA_ANY(DatumGetTextPP(status)))
	{
		case 'p':
			return PJ_PENDING;
		case 'f':
			return PJ_FAILED;
		default:
			return PJ_DEAD;
	}
}

/* A copy of one row of the last result, whose columns are ITEM_COLUMNS. */
static void
read_claim(int row, PjClaim *claim)
{
	static const PjEventColumn columns[] = {PJ_EVENT_LOG_SEQ,
		PJ_EVENT_TENANT_ID, PJ_EVENT_AGGREGATE_ID, PJ_EVENT_SEQUENCE_NUMBER,
	PJ_EVENT_EVENT_TYPE};
	HeapTuple	tuple = heap_copytuple(SPI_tuptable->vals[row]);
	Datum	   *values;
	bool	   *nulls;
	int			next = lengthof(columns);

	memset(claim, 0, sizeof(*claim));
	pj_deform(tuple, SPI_tuptable->tupdesc, &values, &nulls);
	for (int i = 0; i < lengthof(columns); i++)
		claim->event.values[columns[i]] = values[i];
	claim->item.attempt_count = DatumGetInt32(values[next]);
	claim->item.status = status_of(values[next + 1]);
	claim->item.due = DatumGetTimestampTz(values[next + 2]) <= pj_now();
	claim->item.held = DatumGetBool(values[next + 3]);
	claim->item.replay = DatumGetBool(values[next + 4]);
	claim->item.row = *(ItemPointer) DatumGetPointer(values[next + 5]);
	claim->item.claimed = true;
	pfree(values);
	pfree(nulls);
}

/* Claim pending items, and failed ones that are due at some time. */
static int
claim_due(int32 projection_id, Datum tenant, int limit, TimestampTz time,
		  int64 after, int64 upto, PjClaim **claims)
{
	Datum		values[6] = {Int32GetDatum(projection_id), tenant,
		Int32GetDatum(limit), TimestampTzGetDatum(time),
	Int64GetDatum(upto), Int64GetDatum(after)};
	int			n = pj_execute(&claim, values, NULL);

	*claims = palloc(sizeof(PjClaim) * Max(n, 1));
	for (int i = 0; i < n; i++)
		read_claim(i, &(*claims)[i]);
	return n;
}

/*
 * Claim due items of a pair, at most "limit" of them, and none of events
 * behind "upto" in the log; of pending ones only those behind "after".
 */
int
pj_outbox_claim(int32 projection_id, Datum tenant, int limit, int64 after,
				int64 upto, PjClaim **claims)
{
	return claim_due(projection_id, tenant, limit, pj_now(), after, upto,
					 claims);
}

/* Likewise, but none that have failed before. */
int
pj_outbox_claim_pending(int32 projection_id, Datum tenant, int limit,
						int64 upto, PjClaim **claims)
{
	return claim_due(projection_id, tenant, limit, DT_NOBEGIN, 0, upto,
					 claims);
}

/* Claim the item of one event, waiting for whoever has claimed it. */
bool
pj_outbox_claim_one(int32 projection_id, Datum tenant, Datum aggregate,
					int64 sequence_number, PjClaim *claim)
{
	PjPosition	position;
	uint64		found;

	if (pj_source_position(tenant, aggregate, sequence_number, &position))
	{
		Datum		values[5] = {Int32GetDatum(projection_id),
			Int64GetDatum(position.log_seq), tenant, aggregate,
		Int64GetDatum(sequence_number)};

		found = pj_execute(&claim_at, values, NULL);
	}
	else
	{
		Datum		values[4] = {Int32GetDatum(projection_id), tenant,
		aggregate, Int64GetDatum(sequence_number)};

		found = pj_execute(&claim_blocked, values, NULL);
	}
	if (found)
		read_claim(0, claim);
	return found > 0;
}

/* The aggregates of claimed items, each up to its last claimed event. */
int
pj_outbox_ranges(PjClaim *claims, int n, PjRange **ranges)
{
	int			nranges = 0;

	*ranges = palloc0(sizeof(PjRange) * Max(n, 1));
	for (int i = 0; i < n; i++)
	{
		PjEvent    *event = &claims[i].event;

		if (nranges == 0 || !pj_text_equal((*ranges)[nranges - 1].aggregate,
										   pj_event_aggregate(event)))
			(*ranges)[nranges++].aggregate = pj_event_aggregate(event);
		claims[i].range = nranges - 1;
		(*ranges)[nranges - 1].upto = pj_event_sequence(event);
		(*ranges)[nranges - 1].own++;
	}
	return nranges;
}

/* An event's item, found by the event's position in the log. */
typedef struct ItemPlace
{
	int64		log_seq;
	PjItem	   *item;
} ItemPlace;

static int
compare_place(const void *a, const void *b)
{
	int64		la = ((const ItemPlace *) a)->log_seq;
	int64		lb = ((const ItemPlace *) b)->log_seq;

	return (la > lb) - (la < lb);
}

/* The item of a row of the last result, whose first column is log_seq. */
static PjItem *
item_of_row(int row, ItemPlace *places, int n)
{
	bool		isnull;
	ItemPlace	key = {DatumGetInt64(pj_result(row, 1, &isnull))};

	return ((ItemPlace *) bsearch(&key, places, n, sizeof(ItemPlace),
								  compare_place))->item;
}

/* Is it worth looking?  For events read from the log it is not, as a rule. */
static bool
may_have_items(int32 projection_id, PjEvent *const *events, int n)
{
	int64		first = pj_event_log_seq(events[0]);
	int64		last = first;
	Datum		values[4] = {Int32GetDatum(projection_id),
	pj_event_tenant(events[0])};

	for (int i = 1; i < n; i++)
	{
		first = Min(first, pj_event_log_seq(events[i]));
		last = Max(last, pj_event_log_seq(events[i]));
	}
	values[2] = Int64GetDatum(first);
	values[3] = Int64GetDatum(last);
	return pj_execute(&select_any, values, NULL) > 0;
}

/*
 * Find the rows of these events, all of one tenant, and claim those nobody
 * else has claimed.
 */
void
pj_outbox_look(int32 projection_id, PjEvent *const *events, int n,
			   PjItem *items)
{
	Datum		values[3];
	ItemPlace  *places;
	bool		isnull;

	memset(items, 0, sizeof(PjItem) * n);
	if (!may_have_items(projection_id, events, n))
		return;
	values[0] = Int32GetDatum(projection_id);
	values[1] = pj_log_seqs(events, n);
	values[2] = TimestampTzGetDatum(pj_now());
	places = palloc(sizeof(ItemPlace) * Max(n, 1));
	for (int i = 0; i < n; i++)
	{
		places[i].log_seq = pj_event_log_seq(events[i]);
		places[i].item = &items[i];
	}
	qsort(places, n, sizeof(ItemPlace), compare_place);

	/* lock first: what is read afterwards is what the lock protects */
	pj_execute(&lock_rows, values, NULL);
	for (int row = 0; row < SPI_processed; row++)
		item_of_row(row, places, n)->claimed = true;

	pj_execute(&look, values, NULL);
	for (int row = 0; row < SPI_processed; row++)
	{
		PjItem	   *item = item_of_row(row, places, n);

		item->status = status_of(pj_result(row, 2, &isnull));
		item->attempt_count = DatumGetInt32(pj_result(row, 3, &isnull));
		item->due = DatumGetBool(pj_result(row, 4, &isnull));
		item->held = DatumGetBool(pj_result(row, 5, &isnull));
		item->replay = DatumGetBool(pj_result(row, 6, &isnull));
		item->row = *(ItemPointer) DatumGetPointer(pj_result(row, 7,
															 &isnull));
	}
}

static Datum
tid_array(Datum *tids, int n)
{
	return PointerGetDatum(construct_array(tids, n, TIDOID,
										   sizeof(ItemPointerData), false,
										   TYPALIGN_SHORT));
}

/* Remove claimed items, which are where they were when they were claimed. */
void
pj_outbox_delete_rows(const PjItem *const *items, int n)
{
	Datum	   *tids = palloc(sizeof(Datum) * n);
	Datum		values[1];

	for (int i = 0; i < n; i++)
		tids[i] = PointerGetDatum(&items[i]->row);
	values[0] = tid_array(tids, n);
	pj_execute(&delete_rows, values, NULL);
}

void
pj_outbox_delete(int32 projection_id, const int64 *log_seqs, int n)
{
	Datum		values[2] = {Int32GetDatum(projection_id),
	pj_int8_array(log_seqs, n)};

	pj_execute(&delete, values, NULL);
}

/* Note a failed attempt, in a new row if the event had none. */
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
 * Mark rows as held and return how many were not.  The caller has the pair's
 * driver lock.
 */
int64
pj_outbox_hold(int32 projection_id, const int64 *log_seqs, int n)
{
	Datum		values[2] = {Int32GetDatum(projection_id),
	pj_int8_array(log_seqs, n)};

	return pj_execute(&hold, values, NULL);
}

/* Release what some aggregates hold.  Likewise. */
void
pj_outbox_release(int32 projection_id, Datum tenant, Datum *aggregates, int n)
{
	Datum		values[3] = {Int32GetDatum(projection_id), tenant,
	pj_text_array(aggregates, n)};

	pj_execute(&release, values, NULL);
}

/*
 * The tenants that have due items.  *next_due becomes the time when the next
 * item of another is due, if that is earlier.
 */
int
pj_outbox_tenants(int32 projection_id, Datum **tenants, TimestampTz *next_due)
{
	Datum		values[1] = {Int32GetDatum(projection_id)};
	TimestampTz now = pj_now();
	int			n,
				found = 0;

	pj_execute(&select_tenants, values, NULL);
	n = pj_result_texts(tenants);
	for (int i = 0; i < n; i++)
	{
		bool		pending;
		TimestampTz due = DatumGetTimestampTz(pj_result(i, 2, &pending));

		if (!pending && due > now)
			*next_due = Min(*next_due, due);
		else if (found == 0 || !pj_text_equal((*tenants)[i],
											  (*tenants)[found - 1]))
			(*tenants)[found++] = (*tenants)[i];
	}
	return found;
}

/* Does a pair have an item that is dead, or whose retry is not due? */
bool
pj_outbox_blocked(int32 projection_id, Datum tenant)
{
	Datum		values[3] = {Int32GetDatum(projection_id), tenant,
	TimestampTzGetDatum(pj_now())};

	return pj_execute(&select_blocked, values, NULL) > 0;
}

/*
 * Find the first item of a pair between two positions in the log that is of
 * none of these events, which are all there are, in the order of the log.
 */
bool
pj_outbox_astray(int32 projection_id, Datum tenant, int64 after, int64 upto,
				 const PjEvent *events, int n, PjClaim *claim)
{
	Datum		values[5] = {Int32GetDatum(projection_id), tenant,
	Int64GetDatum(after), Int64GetDatum(upto), Int32GetDatum(n + 1)};
	int			found = pj_execute(&select_between, values, NULL);

	for (int row = 0, i = 0; row < found; row++)
	{
		bool		isnull;
		int64		log_seq = DatumGetInt64(pj_result(row, 1, &isnull));

		while (i < n && pj_event_log_seq(&events[i]) < log_seq)
			i++;
		if (i < n && pj_event_log_seq(&events[i]) == log_seq)
			continue;
		read_claim(row, claim);
		return true;
	}
	return false;
}

/* Note what became of a trial of some claimed items. */
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

/* Trials are over: what was tried is to be applied.  Tenant is 0 for all. */
void
pj_outbox_untry(int32 projection_id, Datum tenant)
{
	Datum		values[2] = {Int32GetDatum(projection_id), tenant};

	pj_execute(&untry, values, tenant ? NULL : " n");
}

/* Remove a projection's items; tenant and aggregate are 0 for all. */
void
pj_outbox_clear(int32 projection_id, Datum tenant, Datum aggregate)
{
	Datum		values[3] = {Int32GetDatum(projection_id), tenant, aggregate};

	pj_execute(aggregate ? &clear_aggregate :
			   tenant ? &clear_tenant : &clear_all, values, NULL);
}

/* Release all that is held, of a tenant; what must be will be held again. */
void
pj_outbox_release_tenant(int32 projection_id, Datum tenant)
{
	Datum		values[2] = {Int32GetDatum(projection_id), tenant};

	pj_execute(&release_tenant, values, NULL);
}

/*
 * Remove a tenant's items up to a position in the log.  What was held behind
 * them is released.
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
 * The projection subscribes to these types only: remove the items of others.
 * Whatever was held is released, to be held again if it must.  The caller has
 * the projection's lock exclusively.
 */
void
pj_outbox_unsubscribe(int32 projection_id, Datum event_types)
{
	Datum		values[2] = {Int32GetDatum(projection_id), event_types};

	pj_execute(&unsubscribe, values, NULL);
	pj_execute(&release_all, values, NULL);
}

/* Make a failed or dead item pending again.  False if it is neither. */
bool
pj_outbox_requeue(int32 projection_id, int64 log_seq)
{
	Datum		values[2] = {Int32GetDatum(projection_id),
	Int64GetDatum(log_seq)};

	return pj_execute(&requeue, values, NULL) > 0;
}

/* The oldest dead items of some projections; tenant is 0 for all. */
int
pj_outbox_dead(const int32 *projection_ids, int n, Datum tenant, int limit,
			   int32 **ids, PjClaim **claims)
{
	Datum	   *elems = palloc(sizeof(Datum) * Max(n, 1));
	Datum		values[3];
	int			found;

	for (int i = 0; i < n; i++)
		elems[i] = Int32GetDatum(projection_ids[i]);
	values[0] = PointerGetDatum(construct_array(elems, n, INT4OID,
												sizeof(int32), true,
												TYPALIGN_INT));
	values[1] = tenant;
	values[2] = Int32GetDatum(limit);
	found = pj_execute(&select_dead, values, tenant ? NULL : " n ");
	*ids = palloc(sizeof(int32) * Max(found, 1));
	*claims = palloc(sizeof(PjClaim) * Max(found, 1));
	for (int i = 0; i < found; i++)
	{
		bool		isnull;

		read_claim(i, &(*claims)[i]);
		(*ids)[i] = DatumGetInt32(pj_result(i, 12, &isnull));
	}
	return found;
}

/*
 * Remove the items of projections that are no more: an append that was under
 * way while its projection was dropped leaves such.
 */
void
pj_outbox_sweep(void)
{
	pj_execute(&sweep, NULL, NULL);
}
