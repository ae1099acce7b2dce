/*
 * cursor.c
 *	  How far a projection has read one tenant's log, and how it is run there.
 *
 * A cursor says: every event of the tenant up to last_log_seq is applied,
 * skipped, filtered out or has an outbox row.  A pair that is "replaying" or
 * "switching" has its log read up to the projection's handover; in all other
 * states events come by themselves and the cursor follows.
 */
#include "compat.h"

#include "access/xact.h"
#include "utils/builtins.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "cursor.h"
#include "fetch.h"
#include "statement.h"

/* The columns of table projection_cursors, in order. */
enum
{
	Anum_projection_id = 1,
	Anum_tenant_id,
	Anum_last_log_seq,
	Anum_state,
	Anum_mode,
	Anum_paused_by,
	Anum_pause_reason,
	Anum_run_id,
	Anum_applied_count,
	Anum_failed_count,
	Anum_updated_at
};

static PjTable cursors_table = {"projection_cursors", "projection_cursors_pkey"};

static PjStatement insert_missing = {
	.sql = "INSERT INTO projector.projection_cursors"
	" (projection_id, tenant_id, state)"
	" SELECT $1, t, 'replaying' FROM unnest($2) t ON CONFLICT DO NOTHING",
	.expect = SPI_OK_INSERT,
	.nargs = 2,
	.argtypes = {INT4OID, TEXTARRAYOID},
};

static PjStatement select_behind = {
	.sql = "SELECT tenant_id FROM projector.projection_cursors"
	" WHERE projection_id = $1 AND state IN ('replaying', 'switching')"
	" ORDER BY tenant_id",
	.expect = SPI_OK_SELECT,
	.nargs = 1,
	.argtypes = {INT4OID},
};

static PjStatement move = {
	.sql = "INSERT INTO projector.projection_cursors AS c"
	" (projection_id, tenant_id, last_log_seq, state, applied_count,"
	" failed_count)"
	" VALUES ($1, $2, $3, CASE WHEN $7 THEN 'replaying' ELSE 'live' END,"
	" $5, $6)"
	" ON CONFLICT (projection_id, tenant_id) DO UPDATE"
	" SET last_log_seq = greatest(c.last_log_seq, excluded.last_log_seq),"
	" state = CASE WHEN $4 AND c.state IN ('replaying', 'switching')"
	" THEN 'live' ELSE c.state END,"
	" applied_count = c.applied_count + excluded.applied_count,"
	" failed_count = c.failed_count + excluded.failed_count,"
	" updated_at = now()",
	.expect = SPI_OK_INSERT,
	.nargs = 7,
	.argtypes = {INT4OID, TEXTOID, INT8OID, BOOLOID, INT8OID, INT8OID,
	BOOLOID},
};

static void
read_row(HeapTuple tuple, TupleDesc desc, PjPair *pair)
{
	Datum	   *columns;
	bool	   *nulls;
	char	   *state;

	pj_deform(tuple, desc, &columns, &nulls);
	state = TextDatumGetCString(columns[Anum_state - 1]);
	pair->last_log_seq = DatumGetInt64(columns[Anum_last_log_seq - 1]);
	pair->replaying = strcmp(state, "replaying") == 0 ||
		strcmp(state, "switching") == 0;
	if (!nulls[Anum_mode - 1])
		pair->mode = pj_mode(TextDatumGetCString(columns[Anum_mode - 1]));
	if (!nulls[Anum_paused_by - 1])
		pair->paused = true;
	if (!nulls[Anum_run_id - 1])
		pair->run_id = DatumGetInt64(columns[Anum_run_id - 1]);
}

/*
 * Find out how a projection is run for a tenant, as things are now.  Who
 * relies on the answer holds the pair's lock.
 */
void
pj_pair_look(PjPair *pair, PjProjection *projection, Datum tenant)
{
	Snapshot	snapshot;
	ScanKeyData keys[2];
	PjFetch		fetch;
	HeapTuple	tuple;

	CommandCounterIncrement();
	snapshot = RegisterSnapshot(GetLatestSnapshot());
	pair->projection = projection;
	pair->tenant = tenant;
	pair->mode = projection->mode;
	pair->paused = projection->paused;
	pair->run_id = 0;
	pair->last_log_seq = 0;
	pair->replaying = !projection->handed_over;

	pj_key_int4(&keys[0], 1, projection->id);
	pj_key_text(&keys[1], 2, tenant);
	pj_fetch_begin(&fetch, &cursors_table, snapshot, 2, keys);
	tuple = pj_fetch_next(&fetch, ForwardScanDirection);
	pair->exists = HeapTupleIsValid(tuple);
	if (pair->exists)
		read_row(tuple, RelationGetDescr(fetch.heap), pair);
	pj_fetch_end(&fetch);
	UnregisterSnapshot(snapshot);
}

/* Make the cursors of all tenants in the log that have none. */
void
pj_cursors_start(int32 projection_id)
{
	Datum	   *tenants;
	int			n = pj_source_tenants(&tenants);
	Datum		values[2] = {Int32GetDatum(projection_id),
	pj_text_array(tenants, n)};

	pj_execute(&insert_missing, values, NULL);
}

/* The tenants whose log is to be read up to the handover. */
int
pj_cursors_behind(const PjProjection *projection, Datum **tenants)
{
	Datum		values[1] = {Int32GetDatum(projection->id)};

	pj_execute(&select_behind, values, NULL);
	return pj_result_texts(tenants);
}

/*
 * Move a cursor forward, and count what was done on the way.  "live" says
 * that the log has been read up to the handover.
 */
void
pj_cursor_move(const PjPair *pair, int64 log_seq, bool live, int64 applied,
			   int64 failed)
{
	Datum		values[7] = {Int32GetDatum(pair->projection->id), pair->tenant,
		Int64GetDatum(log_seq), BoolGetDatum(live), Int64GetDatum(applied),
	Int64GetDatum(failed), BoolGetDatum(pair->replaying)};

	pj_execute(&move, values, NULL);
}
