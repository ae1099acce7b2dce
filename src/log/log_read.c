/*
 * log_read.c
 *	  Read the events table.  Only this file, log_position.c and
 *	  log_write.c know its columns.
 *
 * All other files see events as PjEvent, with the columns of type
 * projector.event.
 */
#include "base/compat.h"

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "nodes/params.h"
#include "optimizer/optimizer.h"
#include "parser/analyze.h"
#include "rewrite/rewriteHandler.h"
#include "tcop/tcopprot.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "base/fetch.h"
#include "base/statement.h"
#include "log/event_list.h"
#include "log/log_read.h"
#include "log/log_table.h"

PjTable		pj_events_table = {"events", "events_pkey"};

static PjStatement count_between = {
	.sql = "SELECT count(*) FROM projector.events WHERE tenant_id = $1"
	" AND aggregate_id = $2 AND sequence_number > $3 AND sequence_number < $4",
	.expect = SPI_OK_SELECT,
	.nargs = 4,
	.argtypes = {TEXTOID, TEXTOID, INT8OID, INT8OID},
};

static PjStatement select_last_subscribed = {
	.sql = "SELECT sequence_number FROM projector.events WHERE tenant_id = $1"
	" AND aggregate_id = $2 AND ($3 IS NULL OR event_type = ANY ($3))"
	" ORDER BY sequence_number DESC LIMIT 1",
	.expect = SPI_OK_SELECT,
	.nargs = 3,
	.argtypes = {TEXTOID, TEXTOID, TEXTARRAYOID},
};

/*
 * A loose index scan: one probe per tenant, not one per event.  The limit ends
 * the recursion, and the names come in bytewise order.
 */
static PjStatement select_tenants = {
	.sql = "WITH RECURSIVE t (tenant_id) AS ("
	"(SELECT tenant_id FROM projector.events WHERE tenant_id > $1"
	" ORDER BY tenant_id LIMIT 1)"
	" UNION ALL SELECT (SELECT e.tenant_id FROM projector.events e"
	" WHERE e.tenant_id > t.tenant_id ORDER BY e.tenant_id LIMIT 1)"
	" FROM t WHERE t.tenant_id IS NOT NULL)"
	" SELECT t.tenant_id, e.log_seq FROM t CROSS JOIN LATERAL"
	" (SELECT log_seq FROM projector.events e"
	" WHERE e.tenant_id = t.tenant_id ORDER BY log_seq DESC LIMIT 1) e"
	" WHERE t.tenant_id IS NOT NULL LIMIT $2",
	.expect = SPI_OK_SELECT,
	.nargs = 2,
	.argtypes = {TEXTOID, INT8OID},
};

static PjStatement select_last_of = {
	.sql = "SELECT log_seq FROM projector.events WHERE tenant_id = $1"
	" ORDER BY log_seq DESC LIMIT 1",
	.expect = SPI_OK_SELECT,
	.nargs = 1,
	.argtypes = {TEXTOID},
};

static PjStatement select_last_log_seq = {
	.sql = "SELECT CASE WHEN is_called THEN last_value ELSE last_value - 1 END"
	" FROM projector.events_log_seq_seq",
	.expect = SPI_OK_SELECT,
};

Oid
pj_source_relid(void)
{
	return pj_relid(&pj_events_table);
}

/* Returns the events table, for callers that check for it. */
PjTable *
pj_source_table(void)
{
	return &pj_events_table;
}

/* ---- reading ---- */

/*
 * Copy the event in a slot to the current memory context.  Returns its size.
 */
Size
pj_source_event(TupleTableSlot *slot, PjEvent *event)
{
	HeapTuple	tuple = ExecCopySlotHeapTuple(slot);

	pj_event_of_tuple(tuple, slot->tts_tupleDescriptor, event);
	return tuple->t_len;
}

/*
 * Load the events of some aggregates, in the order of the ranges and by
 * sequence number within each.  event_types is an array, or 0 for all types.
 */
int
pj_source_load(Datum tenant, const PjRange *ranges, int nranges,
			   Datum event_types, PjEvent **events)
{
	bool		cut;

	return pj_source_load_some(tenant, ranges, nranges, event_types, SIZE_MAX,
							   events, &cut);
}

/*
 * Like pj_source_load, but stop when the events exceed max_bytes.  *cut says
 * whether that happened.
 */
int
pj_source_load_some(Datum tenant, const PjRange *ranges, int nranges,
					Datum event_types, Size max_bytes, PjEvent **events,
					bool *cut)
{
	PjEventList list;
	Snapshot	snapshot;
	ScanKeyData keys[4];
	PjFetch		fetch;

	pj_event_list_begin(&list, nranges + 1, event_types);
	list.max_bytes = max_bytes;
	CommandCounterIncrement();
	snapshot = RegisterSnapshot(GetLatestSnapshot());
	pj_key_text(&keys[0], 1, tenant);
	for (int i = 0; i < nranges && !pj_event_list_is_full(&list); i++)
	{
		pj_key_text(&keys[1], 2, ranges[i].aggregate);
		pj_key_int8_range(&keys[2], 3, ranges[i].after, ranges[i].upto);
		if (i == 0)
			pj_fetch_begin(&fetch, &pj_events_table, snapshot, 4, keys);
		else
			pj_fetch_again(&fetch, 4, keys);
		pj_event_list_collect(&list, &fetch, ranges[i].max, i);
	}
	if (nranges > 0)
		pj_fetch_end(&fetch);
	UnregisterSnapshot(snapshot);

	*cut = pj_event_list_is_full(&list);
	*events = list.events;
	return list.count;
}

/*
 * Does a tenant have events?  If aggregate is given, does that aggregate have
 * any?
 */
bool
pj_source_has(Datum tenant, Datum aggregate)
{
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());
	ScanKeyData keys[2];
	PjFetch		fetch;
	bool		found;

	pj_key_text(&keys[0], 1, tenant);
	if (aggregate)
		pj_key_text(&keys[1], 2, aggregate);
	pj_fetch_begin(&fetch, &pj_events_table, snapshot, aggregate ? 2 : 1, keys);
	found = pj_fetch_next(&fetch, ForwardScanDirection) != NULL;
	pj_fetch_end(&fetch);
	UnregisterSnapshot(snapshot);
	return found;
}

/* Add the events that a scan with these keys finds. */
static void
collect_by_keys(PjEventList *list, Snapshot snapshot, ScanKey keys, int nkeys,
				int max)
{
	PjFetch		fetch;

	if (list->count == max || pj_event_list_is_full(list))
		return;
	pj_fetch_begin(&fetch, &pj_events_table, snapshot, nkeys, keys);
	pj_event_list_collect(list, &fetch, max - list->count, 0);
	pj_fetch_end(&fetch);
}

/*
 * Load the next events of a walk, at most "max".  First come the remaining
 * ones of the current aggregate, then the following aggregates.
 */
int
pj_source_walk(const PjWalk *walk, int max, PjEvent **events)
{
	PjEventList list;
	Snapshot	snapshot;
	ScanKeyData keys[4];
	int			nkeys = 1;

	pj_event_list_begin(&list, Min(max, 1000) + 1, walk->event_types);
	list.upto = walk->upto;
	list.max_bytes = PJ_BATCH_BYTES;
	CommandCounterIncrement();
	snapshot = RegisterSnapshot(walk->snapshot ? walk->snapshot :
								GetLatestSnapshot());
	pj_key_text(&keys[0], 1, walk->tenant);
	if (walk->aggregate)
	{
		pj_key_text(&keys[1], 2, walk->aggregate);
		pj_key_int8_range(&keys[2], 3, walk->sequence, PG_INT64_MAX);
		collect_by_keys(&list, snapshot, keys, 4, max);
		pj_key_text_after(&keys[nkeys++], 2, walk->aggregate);
	}
	if (walk->end)
		pj_key_text_upto(&keys[nkeys++], 2, walk->end);
	if (!walk->alone)
		collect_by_keys(&list, snapshot, keys, nkeys, max);
	UnregisterSnapshot(snapshot);
	*events = list.events;
	return list.count;
}

/* Has the log been analyzed? */
static bool
has_statistics(void)
{
	return SearchSysCacheExists3(STATRELATTINH,
								 ObjectIdGetDatum(pj_source_relid()),
								 Int16GetDatum(Anum_tenant_id),
								 BoolGetDatum(false));
}

/*
 * Estimate how many events a tenant, or all together (0), have between two
 * positions, using the planner's statistics.  Without any, the planner's guess
 * is a small share of them, so that all seems done at once.  Then it is the
 * number of positions.
 */
int64
pj_source_estimate(Datum tenant, int64 after, int64 upto, Datum event_types)
{
	const char *sql = tenant ? "SELECT FROM projector.events"
	" WHERE tenant_id = $1 AND log_seq > $2 AND log_seq <= $3"
	" AND ($4 IS NULL OR event_type = ANY ($4))" :
	"SELECT FROM projector.events WHERE log_seq > $2 AND log_seq <= $3"
	" AND ($4 IS NULL OR event_type = ANY ($4))";
	Oid			types[4] = {TEXTOID, INT8OID, INT8OID, TEXTARRAYOID};
	Datum		values[4] = {tenant, Int64GetDatum(after), Int64GetDatum(upto),
	event_types};
	ParamListInfo params = makeParamList(4);
	Query	   *query;

	if (!has_statistics())
		return Max(Min(upto, pj_source_last_log_seq()) - after, 1);
	for (int i = 0; i < 4; i++)
	{
		params->params[i].ptype = types[i];
		params->params[i].value = values[i];
		params->params[i].isnull = values[i] == 0 && (i == 0 || i == 3);
		params->params[i].pflags = PARAM_FLAG_CONST;
	}
	query = parse_analyze_fixedparams(linitial_node(RawStmt,
													pg_parse_query(sql)),
									  sql, types, 4, NULL);
	AcquireRewriteLocks(query, true, false);
	return clamp_row_est(pg_plan_query(query, sql, 0,
									   params)->planTree->plan_rows);
}

/* Does the log have every event of an aggregate between these two? */
bool
pj_source_complete(Datum tenant, Datum aggregate, int64 after, int64 before)
{
	Datum		values[4] = {tenant, aggregate, Int64GetDatum(after),
	Int64GetDatum(before)};
	bool		isnull;

	pj_execute(&count_between, values, NULL);
	return DatumGetInt64(pj_result(0, 1, &isnull)) == before - after - 1;
}

/* Returns the aggregate's last event of these types, or 0. */
int64
pj_source_last_subscribed(Datum tenant, Datum aggregate, Datum event_types)
{
	Datum		values[3] = {tenant, aggregate, event_types};
	bool		isnull;

	if (pj_execute(&select_last_subscribed, values,
				   event_types ? NULL : "  n") == 0)
		return 0;
	return DatumGetInt64(pj_result(0, 1, &isnull));
}

/* Returns the last log position drawn by any session. */
int64
pj_source_last_log_seq(void)
{
	bool		isnull;

	pj_execute(&select_last_log_seq, NULL, NULL);
	return DatumGetInt64(pj_result(0, 1, &isnull));
}

/* The position of a tenant's last event, or 0. */
int64
pj_source_last_of(Datum tenant)
{
	bool		isnull;

	if (pj_execute(&select_last_of, &tenant, NULL) == 0)
		return 0;
	return DatumGetInt64(pj_result(0, 1, &isnull));
}

/* All tenants that have events. */
void
pj_source_tenants(PjTenants *all)
{
	pj_source_tenants_after(0, PG_INT64_MAX, all);
}

/*
 * The next tenants that have events, in bytewise order: at most "limit", after
 * one of them, or from the first if that is 0.
 */
void
pj_source_tenants_after(Datum after, int64 limit, PjTenants *all)
{
	Datum		values[2] = {after ? after : CStringGetTextDatum(""),
	Int64GetDatum(limit)};

	pj_execute(&select_tenants, values, NULL);
	all->count = pj_result_texts(&all->tenants);
	all->last = palloc(sizeof(int64) * Max(all->count, 1));
	for (int i = 0; i < all->count; i++)
	{
		bool		isnull;

		all->last[i] = DatumGetInt64(pj_result(i, 2, &isnull));
	}
}
