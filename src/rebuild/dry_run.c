/*
 * dry_run.c
 *	  Replay a log on trial, and compare the result with the live read
 *	  model.
 *
 * Everything happens in a subtransaction that is rolled back.  A fold is built
 * in a separate table, and its target is not touched.  Other kinds are cleared
 * and replayed in place: no other session sees that, but a session that wants
 * to change these rows has to wait.  Either way, the offsets and items are
 * those of a build, and the live ones stay unchanged.  The caller holds the
 * locks that keep others from applying the pair's events.
 *
 * Rows are read as the projection's owner (model_rows.c).  Of each row the key
 * and the hash are kept and compared.  Only rows that differ are read again,
 * to be shown.  So the result agrees with the digests, and a wide row costs no
 * more than a narrow one.
 */
#include "base/compat.h"

#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"
#include "utils/memutils.h"
#include "utils/queryenvironment.h"
#include "utils/snapmgr.h"
#include "utils/tuplestore.h"

#include "apply/model_rows.h"
#include "base/lock.h"
#include "base/statement.h"
#include "base/subxact.h"
#include "ipc/operation.h"
#include "rebuild/build_aside.h"
#include "rebuild/clear.h"
#include "rebuild/dry_run.h"
#include "registry/target.h"

/*
 * Rows that are not the same on both sides.  Rows without a key are
 * distinguished by numbers.
 */
#define NUMBERED(side) \
	"(SELECT key, high, low, row_number() OVER (PARTITION BY key) AS n" \
	" FROM " side ")"

static const char compare_sql[] =
"SELECT /* projector */ coalesce(l.key, r.key), coalesce(l.n, r.n),"
" l.key IS NOT NULL, r.key IS NOT NULL, count(*) OVER ()"
" FROM " NUMBERED("live") " l FULL JOIN " NUMBERED("rebuilt") " r"
" ON r.key = l.key AND r.n = l.n"
" WHERE (l.high, l.low) IS DISTINCT FROM (r.high, r.low)"
" ORDER BY 1, 2 LIMIT $1";

/*
 * One target's rows, live or rebuilt: the key and the hash of each row, and a sum
 * over hashes of both.  If two sums are equal, the rows are taken to be equal, as
 * two rows with equal hashes are.
 */
typedef struct Side
{
	Tuplestorestate *rows;
	TupleDesc	desc;
	PjDigest	sum;
} Side;

/* The state for one tenant. */
typedef struct Trying
{
	PjTrial    *trial;
	Side	   *live;			/* one per target */
	Side	   *rebuilt;
	int			ntargets;
	int		   *nshown;			/* per target, the number of differences up to
								 * and including it */
	int			room;			/* allocated size of differences */
	MemoryContext context;		/* for the results */
} Trying;

/* ---- rows ---- */

static void
begin_side(Side *side)
{
	side->desc = CreateTemplateTupleDesc(3);
	TupleDescInitEntry(side->desc, 1, "key", TEXTOID, -1, 0);
	TupleDescInitEntryCollation(side->desc, 1, C_COLLATION_OID);
	TupleDescInitEntry(side->desc, 2, "high", INT8OID, -1, 0);
	TupleDescInitEntry(side->desc, 3, "low", INT8OID, -1, 0);
	side->rows = tuplestore_begin_heap(true, false, work_mem);
}

typedef struct SideReading
{
	Side	   *side;
	PjDigest   *digest;
} SideReading;

static void
keep_row(void *arg, const PjRow *row)
{
	SideReading *reading = arg;
	Datum		values[3] = {CStringGetTextDatum(row->key),
		Int64GetDatum((int64) row->hash.high),
	Int64GetDatum((int64) row->hash.low)};
	bool		nulls[3] = {false};
	const unsigned char *key = (const unsigned char *) row->key;
	PjDigest	both = {
		.high = hash_bytes_extended(key, strlen(row->key), row->hash.high),
		.low = hash_bytes_extended(key, strlen(row->key), row->hash.low),
		.rows = 1,
	};

	tuplestore_putvalues(reading->side->rows, reading->side->desc, values,
						 nulls);
	pj_digest_add(&reading->side->sum, &both);
	pj_digest_add(reading->digest, &row->hash);
}

/* Read the rows of all targets, or those of "table" instead. */
static void
read_sides(Trying *trying, Oid table, Side *sides, PjDigest *digest)
{
	memset(digest, 0, sizeof(*digest));
	for (int i = 0; i < trying->ntargets; i++)
	{
		SideReading reading = {&sides[i], digest};
		PjRowReader reader = {
			.projection = trying->trial->pair.projection,
			.target = i,
			.table = table,
			.tenant = trying->trial->pair.tenant,
			.key = trying->trial->aggregate,
			.receive = keep_row,
			.arg = &reading,
		};

		pj_rows_read(&reader);
	}
}

static void
register_side(Side *side, char *name)
{
	EphemeralNamedRelation enr = palloc0(sizeof(EphemeralNamedRelationData));

	enr->md.name = name;
	enr->md.tupdesc = side->desc;
	enr->md.enrtype = ENR_NAMED_TUPLESTORE;
	enr->md.enrtuples = tuplestore_tuple_count(side->rows);
	enr->reldata = side->rows;
	tuplestore_rescan(side->rows);
	if (SPI_register_relation(enr) != SPI_OK_REL_REGISTER)
		elog(ERROR, "could not register the %s rows", name);
}

/* Store row i of the comparison's result. */
static void
note_difference(Trying *trying, int i)
{
	PjTrial    *trial = trying->trial;
	PjDifference *difference;
	bool		isnull;

	if (i == 0)
		trial->ndifferences += DatumGetInt64(pj_result(i, 5, &isnull));
	if (trial->nshown >= trial->max)
		return;
	if (trial->nshown == trying->room)
		trial->differences = repalloc(trial->differences,
									  sizeof(PjDifference) *
									  (trying->room *= 2));
	difference = &trial->differences[trial->nshown++];
	memset(difference, 0, sizeof(*difference));
	difference->key = TextDatumGetCString(pj_result(i, 1, &isnull));
	difference->number = DatumGetInt64(pj_result(i, 2, &isnull));
	difference->in_live = DatumGetBool(pj_result(i, 3, &isnull));
	difference->in_rebuilt = DatumGetBool(pj_result(i, 4, &isnull));
}

static bool
is_same_sum(const PjDigest *a, const PjDigest *b)
{
	return a->high == b->high && a->low == b->low && a->rows == b->rows;
}

/* Compare both sides of a target.  This involves no users' types. */
static void
compare_sides(Trying *trying, int target)
{
	PjTrial    *trial = trying->trial;
	Oid			types[1] = {INT8OID};
	Datum		values[1] = {Int64GetDatum(Max(trial->max - trial->nshown, 1))};
	int			rc;

	trying->nshown[target] = trial->nshown;
	if (is_same_sum(&trying->live[target].sum, &trying->rebuilt[target].sum))
		return;
	PushActiveSnapshot(GetLatestSnapshot());
	SPI_connect();
	register_side(&trying->live[target], "live");
	register_side(&trying->rebuilt[target], "rebuilt");
	rc = SPI_execute_with_args(compare_sql, 1, types, values, NULL, true, 0);
	if (rc != SPI_OK_SELECT)
		elog(ERROR, "could not compare rows: %s", SPI_result_code_string(rc));
	MemoryContextSwitchTo(trying->context);
	for (uint64 i = 0; i < SPI_processed; i++)
		note_difference(trying, i);
	trying->nshown[target] = trial->nshown;
	SPI_finish();
	MemoryContextSwitchTo(trying->context);
	PopActiveSnapshot();
}

/* ---- showing rows that differ ---- */

typedef struct Showing
{
	Trying	   *trying;
	PjDifference *first;		/* the differences of the target, sorted by
								 * key */
	int			count;
	bool		live;
} Showing;

static void
show_row(PjDifference *difference, const PjRow *row, bool live)
{
	Datum	   *json = live ? &difference->live : &difference->rebuilt;

	if (!(live ? difference->in_live : difference->in_rebuilt) || *json)
		return;
	*json = PointerGetDatum(DatumGetJsonbPCopy(row->json));
	if (!row->unique)
		difference->shown = psprintf("%s%lld", row->text,
									 (long long) difference->number);
}

static void
receive_shown(void *arg, const PjRow *row)
{
	Showing    *showing = arg;
	MemoryContext caller;
	int			low = 0,
				high = showing->count;

	/* find the first one with that key */
	while (low < high)
	{
		int			middle = low + (high - low) / 2;

		if (strcmp(showing->first[middle].key, row->key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	caller = MemoryContextSwitchTo(showing->trying->context);
	for (; low < showing->count &&
		 strcmp(showing->first[low].key, row->key) == 0; low++)
		show_row(&showing->first[low], row, showing->live);
	MemoryContextSwitchTo(caller);
}

/* Read the rows that differ again, to show them.  There are few. */
static void
show_differences(Trying *trying, bool live)
{
	PjTrial    *trial = trying->trial;

	for (int i = 0; i < trying->ntargets; i++)
	{
		int			before = i > 0 ? trying->nshown[i - 1] : 0;
		Showing		showing = {trying, trial->differences + before,
		trying->nshown[i] - before, live};
		PjRowReader reader = {
			.projection = trial->pair.projection,
			.target = i,
			.table = live ? InvalidOid : trial->place->table,
			.tenant = trial->pair.tenant,
			.key = trial->aggregate,
			.shown = true,
			.receive = receive_shown,
			.arg = &showing,
		};

		if (showing.count > 0)
			pj_rows_read(&reader);
	}
}

/* ---- replaying ---- */

/* Clear the place that events are replayed to. */
static void
empty_place(const PjTrial *trial)
{
	const PjProjection *projection = trial->pair.projection;

	if (!trial->place->blank)
		pj_aside_forget(projection->id, trial->pair.tenant);
	if (!OidIsValid(trial->place->table))
		(void) pj_clear(projection, trial->pair.tenant, trial->aggregate);
}

/*
 * Apply events one by one as far as they are watched, and those in between
 * together.
 */
static void
apply_watched(PjReplay *replay, PjEvent *events, int n)
{
	PjTrial    *trial = replay->arg;
	bool	   *watched = palloc0(sizeof(bool) * n);
	int			first = 0;

	if (trial->pair.projection->log_ordered)
		pj_events_sort_by_log(events, n);
	trial->choose(trial, events, n, watched);
	for (int i = 0; i < n; i++)
	{
		if (!watched[i] && i < n - 1)
			continue;
		CHECK_FOR_INTERRUPTS();
		pj_replay_apply(replay, events + first, i + 1 - first);
		if (watched[i])
			trial->watch(trial, &events[i]);
		first = i + 1;
	}
}

static void
replay(PjTrial *trial)
{
	PjPair		pair = trial->pair;
	PjReplay	replay;
	MemoryContext batch = AllocSetContextCreate(CurrentMemoryContext,
												"projector trial",
												ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller;
	int			n;

	pair.destination = trial->place;
	pj_replay_init(&replay, &pair, PG_INT64_MAX);
	if (trial->watch)
	{
		replay.apply = apply_watched;
		replay.arg = trial;
	}
	replay.on_error = PJ_ERROR_RAISED;
	replay.walk.aggregate = trial->aggregate;
	replay.walk.alone = trial->aggregate != 0;
	replay.bounded = trial->bounded;
	pj_replay_in_memory(&replay);
	caller = MemoryContextSwitchTo(batch);
	while ((n = pj_replay_batch(&replay)) > 0)
	{
		CHECK_FOR_INTERRUPTS();
		pj_operation_add(n);
		MemoryContextReset(batch);
	}
	pj_replay_flush(&replay);
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(batch);
}

/* The state of a search for a row by tenant and key. */
typedef struct RowSearch
{
	Datum		found;			/* jsonb, or 0 */
	MemoryContext context;
} RowSearch;

static void
find_row(void *arg, const PjRow *row)
{
	RowSearch  *search = arg;
	MemoryContext caller = MemoryContextSwitchTo(search->context);

	search->found = PointerGetDatum(DatumGetJsonbPCopy(row->json));
	MemoryContextSwitchTo(caller);
}

/* Returns the row with a key, as replayed so far; jsonb, or 0. */
Datum
pj_trial_row(const PjTrial *trial, Datum key)
{
	RowSearch	search = {0, CurrentMemoryContext};
	PjRowReader reader = {
		.projection = trial->pair.projection,
		.table = trial->place->table,
		.tenant = trial->pair.tenant,
		.key = key,
		.shown = true,
		.receive = find_row,
		.arg = &search,
	};

	pj_rows_read(&reader);
	return search.found;
}

/* The part that is rolled back. */
static bool
try_replay(void *arg)
{
	Trying	   *trying = arg;
	PjTrial    *trial = trying->trial;

	pj_operation_phase(PJ_PHASE_CLEARING);
	empty_place(trial);
	pj_operation_phase(PJ_PHASE_REPLAYING);
	replay(trial);
	pj_operation_phase(PJ_PHASE_COMPARING);
	read_sides(trying, trial->place->table, trying->rebuilt,
			   &trial->rebuilt_digest);
	for (int i = 0; i < trying->ntargets; i++)
		compare_sides(trying, i);
	show_differences(trying, false);
	return false;
}

/*
 * Read the state of a pair for a trial.  Raises an error if the trial is not
 * possible.
 */
void
pj_trial_enter(PjTrial *trial, PjProjection *projection, Datum tenant)
{
	PjPair	   *pair = &trial->pair;

	Assert(pj_pair_is_ours(projection->id, tenant));
	pj_pair_look(pair, projection, tenant);
	pj_clear_check(projection, false);
	if (pair->run_id != 0)
		ereport(ERROR,
				errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("projection \"%s\" has an active run for tenant \"%s\"",
					   projection->name, TextDatumGetCString(tenant)),
				errdetail("Run %lld is active.",
						  (long long) pair->run_id),
				errhint("Wait for its end."));
	if (pair->state == PJ_REPLAYING)
		ereport(ERROR,
				errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("projection \"%s\" is being replayed for tenant \"%s\"",
					   projection->name, TextDatumGetCString(tenant)),
				errdetail("What it has applied is not known until then."),
				errhint("Wait until projector.status shows state \"live\"; where no worker runs, call projector_drain()."));
}

static void
begin_trying(Trying *trying)
{
	int			n = pj_target_count(trying->trial->pair.projection);

	trying->ntargets = n;
	trying->context = CurrentMemoryContext;
	trying->live = palloc0(sizeof(Side) * Max(n, 1));
	trying->rebuilt = palloc0(sizeof(Side) * Max(n, 1));
	trying->nshown = palloc0(sizeof(int) * Max(n, 1));
	trying->room = 16;
	trying->trial->differences = palloc(sizeof(PjDifference) * trying->room);
	for (int i = 0; i < n; i++)
	{
		begin_side(&trying->live[i]);
		begin_side(&trying->rebuilt[i]);
	}
}

static void
end_trying(Trying *trying)
{
	for (int i = 0; i < trying->ntargets; i++)
	{
		tuplestore_end(trying->live[i].rows);
		tuplestore_end(trying->rebuilt[i].rows);
	}
}

/*
 * Replay, compare, and roll back.  The caller has called pj_trial_enter() and
 * pj_enter_internal().  The results are allocated in the current memory
 * context.
 */
void
pj_trial_run(const PjDestination *place, PjTrial *trial)
{
	Trying		trying = {.trial = trial};
	ErrorData  *error;
	bool		kept;

	trial->place = place;
	begin_trying(&trying);
	pj_operation_phase(PJ_PHASE_READING);
	read_sides(&trying, InvalidOid, trying.live, &trial->live_digest);
	error = pj_subtransaction(try_replay, &trying, &kept);
	if (error)
		ReThrowError(error);
	show_differences(&trying, true);
	if (OidIsValid(place->table))
		pj_aside_empty(place->table);
	end_trying(&trying);
}

/* ---- the place ---- */

typedef struct Placing
{
	PjProjection *projection;
	void		(*body) (const PjDestination *place, void *arg);
	void	   *arg;
} Placing;

static bool
make_place(void *arg)
{
	Placing    *placing = arg;
	PjProjection *projection = placing->projection;
	PjDestination place = {.books = pj_books_of_build(projection->id),
	.trial = true,.blank = pj_aside_is_blank(projection->id)};
	char	   *name = psprintf("dry_run_%d", MyProcPid);

	if (pj_aside_possible(projection))
	{
		pj_aside_make(projection, name);
		if (!pj_aside_find(projection, name, &place))
			elog(ERROR, "could not make a place to build aside");
	}
	placing->body(&place, placing->arg);
	return false;
}

/*
 * Create a place to replay events to, for one tenant after the other, run
 * body, and remove the place.  The caller has called pj_enter_internal().
 */
void
pj_trials(PjProjection *projection,
		  void (*body) (const PjDestination *place, void *arg), void *arg)
{
	Placing		placing = {.projection = projection,.body = body,.arg = arg};
	ErrorData  *error;
	bool		kept;

	error = pj_subtransaction(make_place, &placing, &kept);
	if (error)
		ReThrowError(error);
}
