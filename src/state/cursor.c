/*
 * cursor.c
 *	  How far a projection has read one tenant's log, and how it runs for
 *	  that tenant.
 *
 * A cursor means: every event of the tenant up to last_log_seq has been
 * applied or skipped, is filtered out, or has an outbox row.  For a pair in
 * state "replaying" or "switching" the log is read up to the projection's
 * handover.  In all other states the capture trigger queues new events, and
 * the cursor follows.
 */
#include "base/compat.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "base/fetch.h"
#include "base/lock.h"
#include "base/row.h"
#include "base/statement.h"
#include "ipc/waiters.h"
#include "state/cursor.h"

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
	Anum_updated_at,
	Anum_handover_log_seq,
	Anum_paused_at,
	Anum_dead_count,
	Anum_batch_count,
	Anum_apply_time,
	Anum_last_applied_at,
	Anum_definition_hash,
	Natts = Anum_definition_hash
};

#define NUM_CHECKS	2

static PjTable cursors_table = {"projection_cursors", "projection_cursors_pkey"};

static PjStatement insert_missing = {
	.sql = "INSERT INTO projector.projection_cursors"
	" (projection_id, tenant_id, state)"
	" SELECT $1, t, $3 FROM unnest($2) t ON CONFLICT DO NOTHING",
	.expect = SPI_OK_INSERT,
	.nargs = 3,
	.argtypes = {INT4OID, TEXTARRAYOID, TEXTOID},
};

static PjStatement select_last = {
	.sql = "SELECT coalesce(max(last_log_seq), 0)"
	" FROM projector.projection_cursors",
	.expect = SPI_OK_SELECT,
};

static PjStatement select_behind = {
	.sql = "SELECT tenant_id FROM projector.projection_cursors"
	" WHERE projection_id = $1 AND state IN ('replaying', 'switching')"
	" AND tenant_id > $2 ORDER BY tenant_id LIMIT $3",
	.expect = SPI_OK_SELECT,
	.nargs = 3,
	.argtypes = {INT4OID, TEXTOID, INT4OID},
};

/*
 * Of the tenants $2, whose last events are $3, those with unread events up to
 * $4.
 */
static PjStatement select_unread = {
	.sql = "SELECT t.n FROM unnest($2, $3) WITH ORDINALITY"
	" AS t (tenant_id, last, n)"
	" LEFT JOIN LATERAL (SELECT last_log_seq, state"
	" FROM projector.projection_cursors c"
	" WHERE c.projection_id = $1 AND c.tenant_id = t.tenant_id LIMIT 1) c"
	" ON true WHERE least(t.last, $4) > coalesce(c.last_log_seq, 0)"
	" AND c.state IS DISTINCT FROM 'stopped'"
	" ORDER BY t.tenant_id COLLATE \"C\"",
	.expect = SPI_OK_SELECT,
	.nargs = 4,
	.argtypes = {INT4OID, TEXTARRAYOID, INT8ARRAYOID, INT8OID},
};

/*
 * Of the same tenants, move the cursors of those whose new events are queued
 * by the capture trigger.  $5 is the mode of tenants that have no mode of
 * their own.  A cursor that another session has locked is skipped: that
 * session moves it.
 */
static PjStatement follow = {
	.sql = "UPDATE projector.projection_cursors SET last_log_seq = $4,"
	" updated_at = now() WHERE ctid = ANY (ARRAY (SELECT c.ctid"
	" FROM unnest($2, $3) AS t (tenant_id, last)"
	" CROSS JOIN LATERAL (SELECT ctid FROM projector.projection_cursors c"
	" WHERE c.projection_id = $1 AND c.tenant_id = t.tenant_id"
	" AND c.state = 'live' AND c.last_log_seq < least(t.last, $4)"
	" AND coalesce(c.mode, $5) NOT IN ('off', 'follow')"
	" LIMIT 1 FOR UPDATE SKIP LOCKED) c))",
	.expect = SPI_OK_UPDATE,
	.nargs = 5,
	.argtypes = {INT4OID, TEXTARRAYOID, INT8ARRAYOID, INT8OID, TEXTOID},
};

/* The tenants whose cursors "follow" would move. */
static PjStatement select_unfollowed = {
	.sql = "SELECT t.tenant_id FROM unnest($2, $3) AS t (tenant_id, last)"
	" CROSS JOIN LATERAL (SELECT FROM projector.projection_cursors c"
	" WHERE c.projection_id = $1 AND c.tenant_id = t.tenant_id"
	" AND c.state = 'live' AND c.last_log_seq < least(t.last, $4)"
	" AND coalesce(c.mode, $5) NOT IN ('off', 'follow') LIMIT 1) c LIMIT $6",
	.expect = SPI_OK_SELECT,
	.nargs = 6,
	.argtypes = {INT4OID, TEXTARRAYOID, INT8ARRAYOID, INT8OID, TEXTOID,
	INT4OID},
};

/* The tenants that have no cursor yet. */
static PjStatement select_new = {
	.sql = "SELECT t FROM unnest($2) AS t"
	" WHERE NOT EXISTS (SELECT FROM projector.projection_cursors c"
	" WHERE c.projection_id = $1 AND c.tenant_id = t) LIMIT $3",
	.expect = SPI_OK_SELECT,
	.nargs = 3,
	.argtypes = {INT4OID, TEXTARRAYOID, INT4OID},
};

static PjStatement insert_live = {
	.sql = "INSERT INTO projector.projection_cursors"
	" (projection_id, tenant_id, last_log_seq) VALUES ($1, $2, $3)"
	" ON CONFLICT DO NOTHING",
	.expect = SPI_OK_INSERT,
	.nargs = 3,
	.argtypes = {INT4OID, TEXTOID, INT8OID},
};

static PjStatement save = {
	.sql = "INSERT INTO projector.projection_cursors AS c"
	" (projection_id, tenant_id, last_log_seq, state, applied_count,"
	" failed_count, dead_count, batch_count, apply_time, last_applied_at)"
	" VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9,"
	" CASE WHEN $5 > 0 THEN now() END)"
	" ON CONFLICT (projection_id, tenant_id) DO UPDATE"
	" SET last_log_seq = greatest(c.last_log_seq, excluded.last_log_seq),"
	" state = excluded.state,"
	" applied_count = c.applied_count + excluded.applied_count,"
	" failed_count = c.failed_count + excluded.failed_count,"
	" dead_count = c.dead_count + excluded.dead_count,"
	" batch_count = c.batch_count + excluded.batch_count,"
	" apply_time = c.apply_time + excluded.apply_time,"
	" last_applied_at = coalesce(excluded.last_applied_at, c.last_applied_at),"
	" handover_log_seq = CASE WHEN excluded.state <> 'live'"
	" THEN c.handover_log_seq END, updated_at = now()",
	.expect = SPI_OK_INSERT,
	.nargs = 9,
	.argtypes = {INT4OID, TEXTOID, INT8OID, TEXTOID, INT8OID, INT8OID, INT8OID,
	INT8OID, INTERVALOID},
};

static PjStatement set_run = {
	.sql = "INSERT INTO projector.projection_cursors"
	" (projection_id, tenant_id, state, run_id) VALUES ($1, $2, $3, $4)"
	" ON CONFLICT (projection_id, tenant_id) DO UPDATE"
	" SET run_id = excluded.run_id, updated_at = now()",
	.expect = SPI_OK_INSERT,
	.nargs = 4,
	.argtypes = {INT4OID, TEXTOID, TEXTOID, INT8OID},
};

static PjStatement set_definition = {
	.sql = "INSERT INTO projector.projection_cursors"
	" (projection_id, tenant_id, state, definition_hash)"
	" VALUES ($1, $2, $3, $4)"
	" ON CONFLICT (projection_id, tenant_id) DO UPDATE"
	" SET definition_hash = excluded.definition_hash",
	.expect = SPI_OK_INSERT,
	.nargs = 4,
	.argtypes = {INT4OID, TEXTOID, TEXTOID, BYTEAOID},
};

static PjStatement select_applied = {
	.sql = "SELECT FROM projector.projection_offsets"
	" WHERE projection_id = $1 AND tenant_id = $2 LIMIT 1",
	.expect = SPI_OK_SELECT,
	.nargs = 2,
	.argtypes = {INT4OID, TEXTOID},
};

static PjStatement forget_handover = {
	.sql = "UPDATE projector.projection_cursors SET handover_log_seq = NULL"
	" WHERE projection_id = $1 AND tenant_id = $2",
	.expect = SPI_OK_UPDATE,
	.nargs = 2,
	.argtypes = {INT4OID, TEXTOID},
};

static PjStatement restart = {
	.sql = "UPDATE projector.projection_cursors SET last_log_seq = 0,"
	" state = 'replaying', handover_log_seq = $3, updated_at = now()"
	" WHERE projection_id = $1 AND tenant_id = $2",
	.expect = SPI_OK_UPDATE,
	.nargs = 3,
	.argtypes = {INT4OID, TEXTOID, INT8OID},
};

const char *const pj_state_names[] = {
	[PJ_LIVE] = "live",
	[PJ_REPLAYING] = "replaying",
	[PJ_SWITCHING] = "switching",
	[PJ_STOPPED] = "stopped",
	NULL
};

static PjState
state_of(const char *name)
{
	return pj_choose(name, pj_state_names, "state");
}

/* Read a stored hash.  An empty one stands for several definitions. */
static void
read_made_by(PjMadeBy *made_by, const bytea *hash)
{
	made_by->several = VARSIZE_ANY_EXHDR(hash) != sizeof(made_by->hash);
	if (!made_by->several)
		memcpy(made_by->hash, VARDATA_ANY(hash), sizeof(made_by->hash));
}

static void
read_row(HeapTuple tuple, TupleDesc desc, PjPair *pair)
{
	Datum	   *columns;
	bool	   *nulls;

	pj_deform(tuple, desc, &columns, &nulls);
	pair->last_log_seq = DatumGetInt64(columns[Anum_last_log_seq - 1]);
	pair->state = state_of(TextDatumGetCString(columns[Anum_state - 1]));
	if (!nulls[Anum_mode - 1])
		pair->mode = pj_mode(TextDatumGetCString(columns[Anum_mode - 1]));
	if (!nulls[Anum_paused_by - 1])
		pair->paused = true;
	if (!nulls[Anum_run_id - 1])
		pair->run_id = DatumGetInt64(columns[Anum_run_id - 1]);
	if (!nulls[Anum_handover_log_seq - 1])
	{
		int64		own = DatumGetInt64(columns[Anum_handover_log_seq - 1]);

		pair->own_handover = own > pair->handover;
		pair->handover = Max(pair->handover, own);
	}
	if (!nulls[Anum_definition_hash - 1])
		read_made_by(&pair->made_by,
					 DatumGetByteaPP(columns[Anum_definition_hash - 1]));
	pair->unsaved = TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetXmin(tuple->t_data));
}

/*
 * Returns the state of a tenant without a cursor, while the projection has not
 * been handed over.  If it was handed over before, the tenant had no events
 * then, so none of its events have been applied.
 */
static PjState
state_of_new(const PjProjection *projection)
{
	return projection->started ? PJ_SWITCHING : PJ_REPLAYING;
}

/*
 * Read how a projection runs for a tenant now.  Without the pair's lock, the
 * answer may be out of date at once.
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
	pair->destination = NULL;
	pair->mode = projection->mode;
	pair->paused = projection->paused;
	pair->run_id = 0;
	pair->last_log_seq = 0;
	pair->handover = projection->handover_log_seq;
	pair->own_handover = false;
	pair->state = projection->handed_over ? PJ_LIVE :
		state_of_new(projection);
	pair->unsaved = false;
	read_made_by(&pair->made_by, projection->definition_hash);

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

/*
 * Make the cursors of some tenants in the log that have none: of at most
 * "limit" tenants after *after, or from the first on if that is 0.  It becomes
 * the last of them, in the current memory context.  Returns whether there may
 * be more.
 */
bool
pj_cursors_start(const PjProjection *projection, Datum *after, int limit)
{
	PjTenants	some;
	Datum		values[3] = {Int32GetDatum(projection->id)};

	pj_source_tenants_after(*after, limit, &some);
	values[1] = pj_text_array(some.tenants, some.count);
	values[2] = CStringGetTextDatum(pj_state_names[state_of_new(projection)]);
	pj_execute(&insert_missing, values, NULL);
	if (some.count < limit)
		return false;
	*after = some.tenants[some.count - 1];
	return true;
}

/* Returns the last position that any cursor has reached. */
int64
pj_cursors_last(void)
{
	bool		isnull;

	pj_execute(&select_last, NULL, NULL);
	return DatumGetInt64(pj_result(0, 1, &isnull));
}

/*
 * Some tenants whose log is to be read up to the handover, in bytewise order,
 * after one of them or from the first if that is 0.
 */
int
pj_cursors_behind(const PjProjection *projection, Datum after, int limit,
				  Datum **tenants)
{
	Datum		values[3] = {Int32GetDatum(projection->id),
		after ? after : CStringGetTextDatum(""),
	Int32GetDatum(limit)};

	pj_execute(&select_behind, values, NULL);
	return pj_result_texts(tenants);
}

/*
 * Returns the tenants with unread events between their cursor and the tail, in
 * bytewise order.
 */
int
pj_cursors_unread(const PjProjection *projection, PjTenants *all, int64 tail,
				  Datum **tenants)
{
	Datum		values[4] = {Int32GetDatum(projection->id),
		pj_text_array(all->tenants, all->count),
	pj_int8_array(all->last, all->count), Int64GetDatum(tail)};
	int			n = pj_execute(&select_unread, values, NULL);

	*tenants = palloc(sizeof(Datum) * Max(n, 1));
	for (int i = 0; i < n; i++)
	{
		bool		isnull;
		int			which = DatumGetInt64(pj_result(i, 1, &isnull)) - 1;

		all->unread[which] = true;
		(*tenants)[i] = all->tenants[which];
	}
	return n;
}

/*
 * Create cursors for tenants that have none.  A pair whose driver lock is
 * taken is skipped: the holder of the lock creates its cursor.
 */
static void
start_following(const PjProjection *projection, const PjTenants *all,
				int64 tail, int *room)
{
	Datum		values[3] = {Int32GetDatum(projection->id),
		pj_text_array(all->tenants, all->count),
	Int32GetDatum(*room)};
	Datum	   *tenants;
	int			n;

	pj_execute(&select_new, values, NULL);
	n = pj_result_texts(&tenants);
	for (int i = 0; i < n; i++)
	{
		if (!pj_lock_driver(projection->id, tenants[i], false))
			continue;
		(*room)--;
		values[1] = tenants[i];
		values[2] = Int64GetDatum(tail);
		pj_execute(&insert_live, values, NULL);
	}
}

/*
 * Move cursors to the tail, where the capture trigger queues new events.  The
 * projection has been handed over, which cannot change while we hold its lock.
 * *room limits how many cursors are created and is decremented for each.  Each
 * one takes a lock, so the transaction should end soon.
 */
void
pj_cursors_follow(const PjProjection *projection, const PjTenants *all,
				  int64 tail, int *room)
{
	Datum		values[5] = {Int32GetDatum(projection->id),
		pj_text_array(all->tenants, all->count),
		pj_int8_array(all->last, all->count), Int64GetDatum(tail),
	CStringGetTextDatum(pj_mode_names[projection->mode])};

	Assert(pj_projection_is_locked(projection->id, ShareLock));
	pj_execute(&follow, values, NULL);
	if (*room > 0 && pj_mode_queues(projection->mode) && tail > 0)
		start_following(projection, all, tail, room);
}

/*
 * Like pj_cursors_follow, for a transaction that may stay open.  Only cursors
 * whose driver lock is available are moved, so that no other session has to
 * wait for their rows.  *room limits how many, and is decremented.
 */
void
pj_cursors_follow_some(const PjProjection *projection, const PjTenants *all,
					   int64 tail, int *room)
{
	Datum		values[6] = {Int32GetDatum(projection->id),
		pj_text_array(all->tenants, all->count),
		pj_int8_array(all->last, all->count), Int64GetDatum(tail),
		CStringGetTextDatum(pj_mode_names[projection->mode]),
	Int32GetDatum(*room)};
	Datum	   *tenants;
	int64	   *last;
	int			locked = 0;
	int			n;

	Assert(pj_projection_is_locked(projection->id, ShareLock));
	pj_execute(&select_unfollowed, values, NULL);
	n = pj_result_texts(&tenants);
	last = palloc(sizeof(int64) * Max(n, 1));
	for (int i = 0; i < n; i++)
	{
		if (!pj_lock_driver(projection->id, tenants[i], false))
			continue;
		last[locked] = tail;
		tenants[locked++] = tenants[i];
	}
	*room -= locked;
	values[1] = pj_text_array(tenants, locked);
	values[2] = pj_int8_array(last, locked);
	pj_execute(&follow, values, NULL);
}

/*
 * Writing a pair's cursor requires its driver lock, or an exclusive lock on
 * the projection.  So no session ever waits for the row (see "Locks" in
 * src/README.md).
 */
static void
assert_locked(const PjPair *pair)
{
	Assert(pj_driver_is_locked(pair->projection->id, pair->tenant));
}

/* Store the run that is active on a pair, or none if run_id is 0. */
void
pj_cursor_set_run(const PjPair *pair, int64 run_id)
{
	Datum		values[4] = {Int32GetDatum(pair->projection->id), pair->tenant,
	CStringGetTextDatum(pj_state_names[pair->state]), Int64GetDatum(run_id)};

	assert_locked(pair);
	pj_execute(&set_run, values, run_id ? NULL : "   n");
	pj_waiters_tell(pair->projection->id, pair->tenant);
}

/*
 * Store the hash of the definition that has made the read model's rows; an
 * empty one if several have.
 */
void
pj_cursor_set_definition(PjPair *pair, const bytea *hash)
{
	Datum		values[4] = {Int32GetDatum(pair->projection->id), pair->tenant,
	CStringGetTextDatum(pj_state_names[pair->state]), PointerGetDatum(hash)};

	assert_locked(pair);
	pj_execute(&set_definition, values, NULL);
	read_made_by(&pair->made_by, hash);
	pair->exists = pair->unsaved = true;
}

/*
 * Events are about to be applied with a definition that is not the one in
 * pair->made_by.  If the pair has applied none before, this definition makes
 * all of its rows.
 */
void
pj_cursor_note_definition(PjPair *pair, const bytea *hash)
{
	Datum		values[2] = {Int32GetDatum(pair->projection->id), pair->tenant};
	text	   *several = cstring_to_text("");

	pj_cursor_set_definition(pair,
							 pj_execute(&select_applied, values, NULL) > 0 ?
							 several : hash);
}

/* The log has been read up to the handover set by pj_cursor_restart(). */
void
pj_cursor_forget_handover(PjPair *pair)
{
	Datum		values[2] = {Int32GetDatum(pair->projection->id), pair->tenant};

	assert_locked(pair);
	pj_execute(&forget_handover, values, NULL);
	pair->handover = pair->projection->handover_log_seq;
	pair->own_handover = false;
}

/*
 * Everything that was applied has been undone: read the log from its start up
 * to "handover".  The pair has a row.
 */
void
pj_cursor_restart(PjPair *pair, int64 handover)
{
	Datum		values[3] = {Int32GetDatum(pair->projection->id), pair->tenant,
	Int64GetDatum(handover)};

	assert_locked(pair);
	pj_execute(&restart, values, NULL);
	pair->last_log_seq = 0;
	pair->state = PJ_REPLAYING;
	pair->handover = Max(pair->handover, handover);
}

/* Used if a user has added something to the table. */
static PjStatement count = {
	.sql = "UPDATE projector.projection_cursors"
	" SET applied_count = applied_count + $3,"
	" failed_count = failed_count + $4, dead_count = dead_count + $5,"
	" batch_count = batch_count + $6, apply_time = apply_time + $7,"
	" last_applied_at = greatest(last_applied_at, $8)"
	" WHERE projection_id = $1 AND tenant_id = $2",
	.expect = SPI_OK_UPDATE,
	.nargs = 8,
	.argtypes = {INT4OID, TEXTOID, INT8OID, INT8OID, INT8OID, INT8OID,
	INTERVALOID, TIMESTAMPTZOID},
};

/* A copy of a cursor's row, or NULL. */
HeapTuple
pj_cursor_fetch(int32 projection_id, Datum tenant)
{
	ScanKeyData keys[2];

	pj_key_int4(&keys[0], 1, projection_id);
	pj_key_text(&keys[1], 2, tenant);
	return pj_fetch_copy(&cursors_table, 2, keys);
}

/* Returns the sum of a column that counts and what was done. */
static Datum
counted(const Datum *columns, AttrNumber column, int64 more)
{
	return Int64GetDatum(DatumGetInt64(columns[column - 1]) + more);
}

/* Change the row of a pair.  Returns false if it is outdated. */
static bool
update_row(Relation heap, HeapTuple row, const PjPair *pair,
		   const PjCounts *counts)
{
	Interval	time = {.time = counts->us};
	Datum		now = TimestampTzGetDatum(GetCurrentTransactionStartTimestamp());
	Datum	   *old;
	bool	   *old_nulls;

	pj_deform(row, RelationGetDescr(heap), &old, &old_nulls);
	{
		int			columns[] = {Anum_last_log_seq, Anum_state,
			Anum_applied_count, Anum_failed_count, Anum_updated_at,
			Anum_handover_log_seq, Anum_dead_count, Anum_batch_count,
		Anum_apply_time, Anum_last_applied_at};
		Datum		values[] = {
			Int64GetDatum(Max(DatumGetInt64(old[Anum_last_log_seq - 1]),
							  pair->last_log_seq)),
			CStringGetTextDatum(pj_state_names[pair->state]),
			counted(old, Anum_applied_count, counts->applied),
			counted(old, Anum_failed_count, counts->failed),
			now,
			old[Anum_handover_log_seq - 1],
			counted(old, Anum_dead_count, counts->dead),
			counted(old, Anum_batch_count, counts->batches),
			DirectFunctionCall2(interval_pl, old[Anum_apply_time - 1],
								IntervalPGetDatum(&time)),
			counts->applied > 0 ? now : old[Anum_last_applied_at - 1],
		};
		bool		nulls[] = {false, false, false, false, false,
			pair->state == PJ_LIVE || old_nulls[Anum_handover_log_seq - 1],
			false, false, false,
		counts->applied == 0 && old_nulls[Anum_last_applied_at - 1]};
		PjRowChange change = {lengthof(columns), columns, values, nulls};

		return pj_row_update(heap, row, &change);
	}
}

/*
 * Save a pair's cursor without SQL, if it has a row.  Returns false if that
 * cannot be done.
 */
static bool
save_row(const PjPair *pair, const PjCounts *counts)
{
	HeapTuple	row = pj_cursor_fetch(pair->projection->id, pair->tenant);
	Relation	heap;
	bool		saved;

	if (row == NULL)
		return false;
	heap = table_open(pj_relid(&cursors_table), RowExclusiveLock);
	saved = pj_row_is_ours(heap, Natts, NUM_CHECKS) &&
		update_row(heap, row, pair, counts);
	table_close(heap, NoLock);
	CommandCounterIncrement();
	return saved;
}

/* Save a pair's cursor and state, and add to its counters. */
void
pj_cursor_save(const PjPair *pair, const PjCounts *counts)
{
	Interval	time = {.time = counts->us};
	Datum		values[9] = {Int32GetDatum(pair->projection->id), pair->tenant,
		Int64GetDatum(pair->last_log_seq),
		CStringGetTextDatum(pj_state_names[pair->state]),
		Int64GetDatum(counts->applied), Int64GetDatum(counts->failed),
		Int64GetDatum(counts->dead), Int64GetDatum(counts->batches),
	IntervalPGetDatum(&time)};

	assert_locked(pair);
	if (!save_row(pair, counts))
		pj_execute(&save, values, NULL);
	if (pair->state == PJ_STOPPED)
		pj_waiters_tell(pair->projection->id, pair->tenant);
	else
		pj_waiters_tell_range(pair->projection->id, pair->tenant, 0,
							  pair->last_log_seq);
}

/* Add to the counters of a row.  Returns false if it is outdated. */
static bool
count_in_row(Relation heap, HeapTuple row, const PjCounts *counts,
			 TimestampTz applied_at)
{
	Interval	time = {.time = counts->us};
	int			columns[] = {Anum_applied_count, Anum_failed_count,
		Anum_dead_count, Anum_batch_count, Anum_apply_time,
	Anum_last_applied_at};
	bool		nulls[lengthof(columns)] = {false};
	Datum		values[lengthof(columns)];
	PjRowChange change = {lengthof(columns), columns, values, nulls};
	Datum	   *old;
	bool	   *old_nulls;

	pj_deform(row, RelationGetDescr(heap), &old, &old_nulls);
	values[0] = counted(old, Anum_applied_count, counts->applied);
	values[1] = counted(old, Anum_failed_count, counts->failed);
	values[2] = counted(old, Anum_dead_count, counts->dead);
	values[3] = counted(old, Anum_batch_count, counts->batches);
	values[4] = DirectFunctionCall2(interval_pl, old[Anum_apply_time - 1],
									IntervalPGetDatum(&time));
	values[5] = old[Anum_last_applied_at - 1];
	nulls[5] = old_nulls[Anum_last_applied_at - 1];
	if (applied_at != 0 &&
		(nulls[5] || DatumGetTimestampTz(values[5]) < applied_at))
	{
		values[5] = TimestampTzGetDatum(applied_at);
		nulls[5] = false;
	}
	return pj_row_update(heap, row, &change);
}

/*
 * Add to a pair's counters.  The caller has the pair's driver lock, and a copy
 * of its row.  A worker may move the cursor to the end of the log meanwhile;
 * then the row is read again.
 */
void
pj_cursor_count(HeapTuple row, int32 projection_id, Datum tenant,
				const PjCounts *counts, TimestampTz applied_at)
{
	Interval	time = {.time = counts->us};
	Datum		values[8] = {Int32GetDatum(projection_id), tenant,
		Int64GetDatum(counts->applied), Int64GetDatum(counts->failed),
		Int64GetDatum(counts->dead), Int64GetDatum(counts->batches),
		IntervalPGetDatum(&time),
	TimestampTzGetDatum(applied_at)};
	Relation	heap = table_open(pj_relid(&cursors_table), RowExclusiveLock);

	Assert(pj_driver_is_locked(projection_id, tenant));
	if (!pj_row_is_ours(heap, Natts, NUM_CHECKS))
		pj_execute(&count, values, applied_at ? NULL : "       n");
	else
		while (row && !count_in_row(heap, row, counts, applied_at))
			row = pj_cursor_fetch(projection_id, tenant);
	table_close(heap, NoLock);
	CommandCounterIncrement();
}
