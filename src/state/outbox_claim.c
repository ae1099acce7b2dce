/*
 * outbox_claim.c
 *	  Reading the outbox and claiming items.
 *
 * A row is claimed by locking it in the transaction that applies its event,
 * and the same transaction deletes it.  So a crash leaves nothing to clean up,
 * and there is no status "processing" that could become stale.
 *
 * Usually outbox_take.c claims pending rows, without SQL.
 *
 * Pending rows are found through an index without the held ones.  So the cost
 * of a claim does not depend on how many rows wait for a failed event.
 */
#include "base/compat.h"

#include "catalog/pg_type.h"
#include "utils/timestamp.h"

#include "base/guc.h"
#include "base/statement.h"
#include "state/outbox.h"
#include "state/outbox_take.h"

#define ITEM_COLUMNS \
	" log_seq, tenant_id, aggregate_id, sequence_number, event_type," \
	" attempt_count, status, next_attempt_at, held, replay, ctid "

/*
 * Retries first, then pending items.  Each limit must be in a materialized
 * subquery of its own.  With another plan the locking subquery could run again
 * for each row, and lock more rows than its limit.
 */
static PjStatement claim_next = {
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

/* The newest pending items. */
static PjStatement claim_newest = {
	.sql = "WITH p AS MATERIALIZED (SELECT" ITEM_COLUMNS
	"FROM projector.apply_outbox WHERE projection_id = $1"
	" AND tenant_id = $2 AND status = 'pending' AND NOT held"
	" AND log_seq <= $4 ORDER BY log_seq DESC LIMIT $3"
	" FOR UPDATE SKIP LOCKED)"
	" SELECT * FROM p ORDER BY aggregate_id, sequence_number",
	.expect = SPI_OK_SELECT,
	.nargs = 4,
	.argtypes = {INT4OID, TEXTOID, INT4OID, INT8OID},
};

/* The row of an event in the log is found by its log position ... */
static PjStatement claim_at = {
	.sql = "SELECT" ITEM_COLUMNS
	"FROM projector.apply_outbox WHERE projection_id = $1 AND log_seq = $2"
	" AND tenant_id = $3 AND aggregate_id = $4 AND sequence_number = $5"
	" FOR UPDATE",
	.expect = SPI_OK_SELECT,
	.nargs = 5,
	.argtypes = {INT4OID, INT8OID, TEXTOID, TEXTOID, INT8OID},
};

/* ... and that of a missing event, which has failed, by its aggregate. */
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

static PjStatement look = {
	.sql = "SELECT o.log_seq, o.status, o.attempt_count,"
	" o.next_attempt_at <= $3, o.held, o.replay, o.ctid"
	" FROM" PJ_EACH_ITEM("*, ctid", ""),
	.expect = SPI_OK_SELECT,
	.nargs = 3,
	.argtypes = {INT4OID, INT8ARRAYOID, TIMESTAMPTZOID},
};

/* Can the tenant have an item for an event in this part of the log? */
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
	PJ_EACH_ITEM("log_seq", " FOR UPDATE SKIP LOCKED"),
	.expect = SPI_OK_SELECT,
	.nargs = 2,
	.argtypes = {INT4OID, INT8ARRAYOID},
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

/* The oldest failed and dead items.  Each half uses its own index. */
#define BROKEN(status) \
	"(SELECT" ITEM_COLUMNS ", projection_id" \
	" FROM projector.apply_outbox WHERE projection_id = ANY ($1)" \
	" AND ($2 IS NULL OR tenant_id = $2)" \
	" AND ($3 IS NULL OR aggregate_id = $3)" \
	" AND ($4 IS NULL OR sequence_number = $4) AND status = '" status "'" \
	" ORDER BY next_attempt_at, log_seq LIMIT $5)"

static PjStatement select_broken = {
	.sql = BROKEN("failed") " UNION ALL " BROKEN("dead")
	" ORDER BY next_attempt_at, log_seq LIMIT $5",
	.expect = SPI_OK_SELECT,
	.nargs = 5,
	.argtypes = {INT4ARRAYOID, TEXTOID, TEXTOID, INT8OID, INT4OID},
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

/* Copy one row of the last result, whose columns are ITEM_COLUMNS. */
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

/* Copy all rows of the last result.  Returns how many there are. */
static int
read_claims(int n, PjClaim **claims)
{
	*claims = palloc(sizeof(PjClaim) * Max(n, 1));
	for (int i = 0; i < n; i++)
		read_claim(i, &(*claims)[i]);
	return n;
}

/* Claim pending items, and failed ones that are due at the given time. */
static int
claim_due(int32 projection_id, Datum tenant, int limit, TimestampTz time,
		  int64 after, int64 upto, PjClaim **claims)
{
	Datum		values[6] = {Int32GetDatum(projection_id), tenant,
		Int32GetDatum(limit), TimestampTzGetDatum(time),
	Int64GetDatum(upto), Int64GetDatum(after)};
	PjTake		take = {projection_id, tenant, limit, time, after, upto};
	int			n = pj_outbox_take(&take, claims);

	if (n >= 0)
		return n;
	return read_claims(pj_execute(&claim_next, values, NULL), claims);
}

/*
 * Claim at most "limit" items of a pair: failed ones that are due, and pending
 * ones after "after" and up to "upto" in the log.
 */
int
pj_outbox_claim(int32 projection_id, Datum tenant, int limit, int64 after,
				int64 upto, PjClaim **claims)
{
	return claim_due(projection_id, tenant, limit, pj_now(), after, upto,
					 claims);
}

/* Claim the newest pending items of a pair. */
int
pj_outbox_claim_newest(int32 projection_id, Datum tenant, int limit,
					   int64 upto, PjClaim **claims)
{
	Datum		values[4] = {Int32GetDatum(projection_id), tenant,
	Int32GetDatum(limit), Int64GetDatum(upto)};

	return read_claims(pj_execute(&claim_newest, values, NULL), claims);
}

/* Claim pending items of a pair, but none that have failed. */
int
pj_outbox_claim_pending(int32 projection_id, Datum tenant, int limit,
						int64 upto, PjClaim **claims)
{
	return claim_due(projection_id, tenant, limit, DT_NOBEGIN, 0, upto,
					 claims);
}

/* Claim the item of one event; waits if another transaction has claimed it. */
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

/*
 * Returns the aggregates of claimed items, each with a range up to its last
 * claimed event.
 */
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

/* An event's item, for lookup by log position. */
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

/*
 * Returns the item for a row of the last result, whose first column is
 * log_seq.
 */
static PjItem *
item_of_row(int row, ItemPlace *places, int n)
{
	bool		isnull;
	ItemPlace	key = {DatumGetInt64(pj_result(row, 1, &isnull))};
	ItemPlace  *place = bsearch(&key, places, n, sizeof(ItemPlace),
								compare_place);

	if (place == NULL)
		elog(ERROR, "no event was asked for at position %lld",
			 (long long) key.log_seq);
	return place->item;
}

/*
 * Is it worth looking for items?  Usually not, for events read from the log.
 */
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
 * Find the rows of these events, all of one tenant, and claim those that no
 * other transaction has claimed.
 */
void
pj_outbox_claim_events(int32 projection_id, PjEvent *const *events, int n,
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

	/* lock first, so that the rows read afterwards cannot change */
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

/*
 * Find the first item of a pair between two log positions that belongs to none
 * of these events.  They are all events of that part of the log, in log order.
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

/*
 * Returns the oldest failed and dead items of some projections, and in ids the
 * projection of each.  Fields of the filter that are 0 match everything.
 */
int
pj_outbox_broken(const PjItemFilter *filter, int32 **ids, PjClaim **claims)
{
	Datum	   *elems = palloc(sizeof(Datum) * Max(filter->nprojections, 1));
	Datum		values[5];
	char		nulls[] = {' ', filter->tenant ? ' ' : 'n',
	filter->aggregate ? ' ' : 'n', filter->sequence ? ' ' : 'n', ' ', '\0'};
	int			found;

	for (int i = 0; i < filter->nprojections; i++)
		elems[i] = Int32GetDatum(filter->projection_ids[i]);
	values[0] = PointerGetDatum(construct_array(elems, filter->nprojections,
												INT4OID, sizeof(int32), true,
												TYPALIGN_INT));
	values[1] = filter->tenant;
	values[2] = filter->aggregate;
	values[3] = Int64GetDatum(filter->sequence);
	values[4] = Int32GetDatum(filter->limit);
	found = pj_execute(&select_broken, values, nulls);
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
