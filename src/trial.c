/*
 * trial.c
 *	  Replaying a log on trial, to see what read model it makes, and how that
 *	  differs from the one there is.
 *
 * All of it happens in a subtransaction that is rolled back.  A fold is built
 * aside, and its target not touched at all.  The others are cleared and applied
 * in place: nobody sees that, but whoever wants to change these rows has to
 * wait.  The caller has the pair to itself meanwhile.
 */
#include "compat.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/jsonb.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/tuplestore.h"

#include "aside.h"
#include "clear.h"
#include "model.h"
#include "offset.h"
#include "outbox.h"
#include "statement.h"
#include "subxact.h"
#include "target.h"
#include "trial.h"

#define CHUNK_ROWS	1000

/* The offsets, where a replay in place does not change them. */
static PjStatement copy_offsets = {
	.sql = "INSERT INTO projector.projection_offsets (projection_id,"
	" tenant_id, aggregate_id, last_sequence_number)"
	" SELECT -projection_id, tenant_id, aggregate_id, last_sequence_number"
	" FROM projector.projection_offsets"
	" WHERE projection_id = $1 AND tenant_id = $2",
	.expect = SPI_OK_INSERT,
	.nargs = 2,
	.argtypes = {INT4OID, TEXTOID},
};

/* The live rows of one target. */
typedef struct LiveRows
{
	PjTrial    *trial;
	int			target;
	TupleDesc	desc;			/* key, image, js */
	Tuplestorestate *rows;
	MemoryContext context;
} LiveRows;

/* ---- rows ---- */

/* The query for a target's rows, in the table that has them, and its values. */
static char *
images_query(const PjTrial *trial, Oid relid, Oid *types, Datum *values)
{
	const char *key = NULL;

	types[0] = types[1] = TEXTOID;
	values[0] = trial->pair.tenant;
	values[1] = trial->aggregate;
	if (trial->aggregate)
	{
		Relation	rel = RelationIdGetRelation(pj_target_oid(trial->pair.projection,
															  0));

		key = pj_target_key(rel);
		RelationClose(rel);
	}
	return pj_target_images_query(relid, trial->pair.projection, key);
}

/* Keep the live rows of a target: they may be gone before they are needed. */
static void
read_live(void *arg)
{
	LiveRows   *live = arg;
	PjTrial    *trial = live->trial;
	Oid			types[2];
	Datum		values[2];
	char	   *query = images_query(trial,
									 pj_target_oid(trial->pair.projection,
												   live->target),
									 types, values);
	Portal		portal;

	PushActiveSnapshot(GetLatestSnapshot());
	SPI_connect();
	portal = SPI_cursor_open_with_args(NULL, query, trial->aggregate ? 2 : 1,
									   types, values, NULL, true, 0);
	do
	{
		MemoryContext caller;

		CHECK_FOR_INTERRUPTS();
		SPI_cursor_fetch(portal, true, CHUNK_ROWS);
		caller = MemoryContextSwitchTo(live->context);
		if (live->desc == NULL)
			live->desc = CreateTupleDescCopy(SPI_tuptable->tupdesc);
		for (uint64 i = 0; i < SPI_processed; i++)
			tuplestore_puttuple(live->rows, SPI_tuptable->vals[i]);
		MemoryContextSwitchTo(caller);
		SPI_freetuptable(SPI_tuptable);
	} while (SPI_processed > 0);
	SPI_cursor_close(portal);
	SPI_finish();
	PopActiveSnapshot();
}

static Datum
copy_json(int row, int column)
{
	bool		isnull;
	Datum		value = SPI_getbinval(SPI_tuptable->vals[row],
									  SPI_tuptable->tupdesc, column, &isnull);

	return isnull ? 0 : PointerGetDatum(DatumGetJsonbPCopy(value));
}

/* Compare the rows that the replay has made with the live ones. */
static void
compare_rows(void *arg)
{
	LiveRows   *live = arg;
	PjTrial    *trial = live->trial;
	Oid			relid = OidIsValid(trial->replayed.aside) ?
	trial->replayed.aside : pj_target_oid(trial->pair.projection,
										  live->target);
	Oid			types[2];
	Datum		values[2];
	char	   *query = psprintf("SELECT coalesce(l.key, r.key), l.js, r.js,"
								 " count(*) OVER ()"
								 " FROM live l FULL JOIN (%s) r ON r.key = l.key"
								 " WHERE l.image IS DISTINCT FROM r.image"
								 " ORDER BY 1 LIMIT %d",
								 images_query(trial, relid, types, values),
								 Max(trial->max, 1));
	EphemeralNamedRelationData enr = {.md = {.name = "live",.tupdesc = live->desc,
	.enrtype = ENR_NAMED_TUPLESTORE}};
	int			nargs = trial->aggregate ? 2 : 1;
	int			rc;
	bool		isnull;

	tuplestore_rescan(live->rows);
	enr.md.enrtuples = tuplestore_tuple_count(live->rows);
	enr.reldata = live->rows;
	PushActiveSnapshot(GetLatestSnapshot());
	SPI_connect();
	if (SPI_register_relation(&enr) != SPI_OK_REL_REGISTER)
		elog(ERROR, "could not register the live rows");
	rc = SPI_execute_with_args(query, nargs, types, values, NULL, true, 0);
	if (rc != SPI_OK_SELECT)
		elog(ERROR, "could not compare rows: %s", SPI_result_code_string(rc));
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		MemoryContext spi = MemoryContextSwitchTo(live->context);
		PjDifference *difference = palloc(sizeof(PjDifference));

		difference->key = SPI_getvalue(SPI_tuptable->vals[i],
									   SPI_tuptable->tupdesc, 1);
		difference->key = pstrdup(difference->key);
		difference->live = copy_json(i, 2);
		difference->rebuilt = copy_json(i, 3);
		if (i == 0)
			trial->ndifferences += DatumGetInt64(SPI_getbinval(SPI_tuptable->vals[i],
															   SPI_tuptable->tupdesc,
															   4, &isnull));
		if (list_length(trial->differences) < trial->max)
			trial->differences = lappend(trial->differences, difference);
		MemoryContextSwitchTo(spi);
	}
	SPI_finish();
	PopActiveSnapshot();
}

/* ---- replaying ---- */

/* Where what is replayed goes, and which offsets say how much that is. */
static int32
prepare(PjTrial *trial, const PjRun *run)
{
	PjProjection *projection = trial->pair.projection;
	Datum		values[2] = {Int32GetDatum(projection->id),
	trial->pair.tenant};

	if (pj_aside_possible(projection))
	{
		pj_aside_make(projection, run);
		if (!pj_aside_find(projection, run, &trial->replayed))
			elog(ERROR, "could not make a place to build aside");
		return projection->id;
	}
	pj_aside_drop(run);			/* nothing of that number is in the way */
	pj_execute(&copy_offsets, values, NULL);
	(void) pj_clear(projection, trial->pair.tenant, trial->aggregate);
	pj_offsets_delete(projection->id, trial->pair.tenant, trial->aggregate);
	pj_outbox_clear(projection->id, trial->pair.tenant, trial->aggregate);
	trial->replayed = *projection;
	return -projection->id;
}

static void
replay(PjTrial *trial, int32 bound_id)
{
	PjPair		pair = trial->pair;
	PjReplay	replay;
	MemoryContext batch = AllocSetContextCreate(CurrentMemoryContext,
												"projector trial",
												ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller;

	pair.projection = &trial->replayed;
	if (trial->watch)
		trial->replayed.options.batch_size = 1;
	pj_replay_init(&replay, &pair, PG_INT64_MAX);
	replay.on_error = PJ_ERROR_RAISED;
	replay.walk.aggregate = trial->aggregate;
	replay.walk.alone = trial->aggregate != 0;
	replay.bound_id = trial->bounded ? bound_id : 0;
	caller = MemoryContextSwitchTo(batch);
	while (pj_replay_batch(&replay) > 0)
	{
		CHECK_FOR_INTERRUPTS();
		if (trial->watch)
			trial->watch(trial, &replay);
		MemoryContextReset(batch);
	}
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(batch);
}

/* A row being looked for, by tenant and key. */
typedef struct RowSearch
{
	const PjTrial *trial;
	Datum		key;
	Datum		found;			/* jsonb, or 0 */
	MemoryContext context;
} RowSearch;

static void
find_row(void *arg)
{
	RowSearch  *search = arg;
	const PjTrial *trial = search->trial;
	Oid			target = pj_target_oid(trial->pair.projection, 0);
	Oid			types[2] = {TEXTOID, TEXTOID};
	Datum		values[2] = {trial->pair.tenant, search->key};
	Relation	rel = RelationIdGetRelation(target);
	char	   *query;

	query = pj_target_images_query(OidIsValid(trial->replayed.aside) ?
								   trial->replayed.aside : target,
								   trial->pair.projection,
								   pj_target_key(rel));
	RelationClose(rel);
	PushActiveSnapshot(GetLatestSnapshot());
	SPI_connect();
	if (SPI_execute_with_args(query, 2, types, values, NULL, true,
							  1) != SPI_OK_SELECT)
		elog(ERROR, "could not read a row");
	if (SPI_processed > 0)
	{
		MemoryContext spi = MemoryContextSwitchTo(search->context);

		search->found = copy_json(0, 3);
		MemoryContextSwitchTo(spi);
	}
	SPI_finish();
	PopActiveSnapshot();
}

/* The row of a key, as the replay has made it so far; jsonb, or 0. */
Datum
pj_trial_row(const PjTrial *trial, Datum key)
{
	RowSearch	search = {trial, key, 0, CurrentMemoryContext};

	if (OidIsValid(trial->replayed.aside))
		find_row(&search);
	else
		pj_run_as_owner(trial->pair.projection,
						TextDatumGetCString(trial->pair.tenant), find_row,
						&search);
	return search.found;
}

/* The part that is rolled back. */
static bool
try_replay(void *arg)
{
	LiveRows   *live = arg;
	PjTrial    *trial = live[0].trial;
	PjRun		run = {.id = -MyProcPid,
		.projection_id = trial->pair.projection->id,
	.tenant = trial->pair.tenant};

	replay(trial, prepare(trial, &run));
	for (int i = 0; i < pj_target_count(trial->pair.projection); i++)
	{
		if (OidIsValid(trial->replayed.aside))
			compare_rows(&live[i]);	/* a table of ours */
		else
			pj_run_as_owner(trial->pair.projection,
							TextDatumGetCString(trial->pair.tenant), compare_rows,
							&live[i]);
	}
	if (!trial->aggregate)
		pj_model_digest(&trial->replayed, trial->pair.tenant,
						&trial->rebuilt_digest);
	return false;
}

/*
 * Look at a pair that is to be tried.  The caller has it to itself.  An error
 * if it cannot be done.
 */
void
pj_trial_enter(PjTrial *trial, PjProjection *projection, Datum tenant)
{
	PjPair	   *pair = &trial->pair;

	pj_pair_look(pair, projection, tenant);
	pj_clear_check(projection, false);
	if (pair->run_id != 0)
		ereport(ERROR,
				errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("projection \"%s\" has an active run for tenant \"%s\"",
					   projection->name, TextDatumGetCString(tenant)),
				errdetail("Run %lld is at work on it.",
						  (long long) pair->run_id),
				errhint("Wait for its end."));
	if (pair->state == PJ_REPLAYING)
		ereport(ERROR,
				errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("projection \"%s\" is being replayed for tenant \"%s\"",
					   projection->name, TextDatumGetCString(tenant)),
				errdetail("What it has applied is not known until then."),
				errhint("Wait until projector.status shows state \"live\"."));
}

/*
 * Replay, compare, and roll back.  The caller has called pj_trial_enter() and
 * is in our own context.
 */
void
pj_trial_run(PjTrial *trial)
{
	int			ntargets = pj_target_count(trial->pair.projection);
	LiveRows   *live = palloc0(sizeof(LiveRows) * Max(ntargets, 1));
	ErrorData  *error;
	bool		kept;

	for (int i = 0; i < ntargets; i++)
	{
		live[i].trial = trial;
		live[i].target = i;
		live[i].context = CurrentMemoryContext;
		live[i].rows = tuplestore_begin_heap(true, false, work_mem);
		pj_run_as_owner(trial->pair.projection,
						TextDatumGetCString(trial->pair.tenant), read_live,
						&live[i]);
	}
	live[0].trial = trial;
	if (!trial->aggregate)
		pj_model_digest(trial->pair.projection, trial->pair.tenant,
						&trial->live_digest);
	error = pj_subtransaction(try_replay, live, &kept);
	if (error)
		ReThrowError(error);
	for (int i = 0; i < ntargets; i++)
		tuplestore_end(live[i].rows);
}
