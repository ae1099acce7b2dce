/*
 * run_row.c
 *	  The rows of table projection_runs: rebuilds and catch-ups in the
 *	  background, and their progress.
 *
 * A run is queued, then running, then completed, failed or cancelled; a
 * trigger enforces this.  A run that is queued or running is active.  A unique
 * index allows at most one active run per projection and tenant.  Changing a
 * run that is running requires the driver lock of its pair.
 */
#include "base/compat.h"

#include "executor/spi.h"
#include "utils/builtins.h"
#include "utils/errcodes.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "base/statement.h"
#include "base/trigger.h"
#include "state/run_row.h"
#include "state/slice_row.h"

PG_FUNCTION_INFO_V1(projector_runs_check_state);

#define RUN_COLUMNS \
	" r.id, r.projection_id, r.tenant_id, r.mode = 'rebuild'," \
	" r.state = 'running', r.attempt_count, r.since_log_seq, r.until_log_seq," \
	" r.total_events, r.prepared, r.built_aside, r.settled_log_seq," \
	" r.processed_events, r.last_log_seq, r.last_aggregate_id," \
	" r.last_sequence_number, r.definition_hash, r.slice_count," \
	" (extract(epoch FROM clock_timestamp() - r.started_at) * 1000)::bigint "

#define ACTIVE "r.state IN ('queued', 'running')"

static PjTable runs_table = {"projection_runs", "projection_runs_pkey"};

/* The conflict is with the unique index that allows one active run. */
static PjStatement insert = {
	.sql = "INSERT INTO projector.projection_runs (projection_id, tenant_id,"
	" mode, until_log_seq, requested_by) VALUES ($1, $2, $3, $4, $5)"
	" ON CONFLICT (projection_id, tenant_id)"
	" WHERE state IN ('queued', 'running') DO NOTHING RETURNING id",
	.expect = SPI_OK_INSERT_RETURNING,
	.nargs = 5,
	.argtypes = {INT4OID, TEXTOID, TEXTOID, INT8OID, TEXTOID},
};

static PjStatement select_one = {
	.sql = "SELECT" RUN_COLUMNS "FROM projector.projection_runs r"
	" WHERE r.id = $1 AND " ACTIVE,
	.expect = SPI_OK_SELECT,
	.nargs = 1,
	.argtypes = {INT8OID},
};

/* The next active runs: first those that are running, then the queued ones. */
static PjStatement select_next = {
	.sql = "SELECT" RUN_COLUMNS "FROM projector.projection_runs r"
	" WHERE " ACTIVE " AND (r.state, -r.id) < ($2, -$3)"
	" ORDER BY r.state DESC, -r.id DESC LIMIT $1",
	.expect = SPI_OK_SELECT,
	.nargs = 3,
	.argtypes = {INT4OID, TEXTOID, INT8OID},
};

/* Is there an active run of a projection that this one depends on? */
static PjStatement select_dependency = {
	.sql = "SELECT FROM projector.projections p"
	" JOIN projector.projections d ON p.options->'depends_on' ? d.name"
	" CROSS JOIN LATERAL (SELECT FROM projector.projection_runs r"
	" WHERE r.projection_id = d.projection_id AND r.tenant_id = $2 AND " ACTIVE
	" LIMIT 1) r WHERE p.projection_id = $1",
	.expect = SPI_OK_SELECT,
	.nargs = 2,
	.argtypes = {INT4OID, TEXTOID},
};

static PjStatement select_projection = {
	.sql = "SELECT projection_id FROM projector.projection_runs"
	" WHERE id = $1",
	.expect = SPI_OK_SELECT,
	.nargs = 1,
	.argtypes = {INT8OID},
};

static PjStatement select_active = {
	.sql = "SELECT" RUN_COLUMNS "FROM projector.projection_runs r"
	" WHERE r.projection_id = $1 AND " ACTIVE
	" AND ($2 IS NULL OR r.tenant_id = $2) ORDER BY r.id",
	.expect = SPI_OK_SELECT,
	.nargs = 2,
	.argtypes = {INT4OID, TEXTOID},
};

static PjStatement start = {
	.sql = "UPDATE projector.projection_runs SET state = 'running',"
	" started_at = clock_timestamp(), since_log_seq = $2, until_log_seq = $3,"
	" total_events = $4 WHERE id = $1",
	.expect = SPI_OK_UPDATE,
	.nargs = 4,
	.argtypes = {INT8OID, INT8OID, INT8OID, INT8OID},
};

static PjStatement save = {
	.sql = "UPDATE projector.projection_runs SET prepared = $2,"
	" built_aside = $3, settled_log_seq = $4, until_log_seq = $5,"
	" processed_events = $6, last_log_seq = $7, last_aggregate_id = $8,"
	" last_sequence_number = $9, definition_hash = $10, slice_count = $11,"
	" attempt_count = 0 WHERE id = $1",
	.expect = SPI_OK_UPDATE,
	.nargs = 11,
	.argtypes = {INT8OID, BOOLOID, BOOLOID, INT8OID, INT8OID, INT8OID, INT8OID,
	TEXTOID, INT8OID, BYTEAOID, INT4OID},
};

static PjStatement count_attempt = {
	.sql = "UPDATE projector.projection_runs"
	" SET attempt_count = attempt_count + 1 WHERE id = $1",
	.expect = SPI_OK_UPDATE,
	.nargs = 1,
	.argtypes = {INT8OID},
};

static PjStatement end = {
	.sql = "UPDATE projector.projection_runs SET state = $2,"
	" finished_at = clock_timestamp(), error_code = $3, error_message = $4,"
	" error_context = $5, total_events = CASE WHEN $2 = 'completed'"
	" THEN processed_events ELSE total_events END WHERE id = $1",
	.expect = SPI_OK_UPDATE,
	.nargs = 5,
	.argtypes = {INT8OID, TEXTOID, TEXTOID, TEXTOID, TEXTOID},
};

/* Trigger function: BEFORE UPDATE OF state, for each row. */
Datum
projector_runs_check_state(PG_FUNCTION_ARGS)
{
	TriggerData *trigdata = pj_trigger_data(fcinfo, "runs_check_state",
											&runs_table, PJ_BEFORE_ROW,
											TRIGGER_EVENT_UPDATE);
	TupleDesc	desc;
	int			column;
	char	   *before,
			   *after;

	desc = RelationGetDescr(trigdata->tg_relation);
	column = SPI_fnumber(desc, "state");
	before = SPI_getvalue(trigdata->tg_trigtuple, desc, column);
	after = SPI_getvalue(trigdata->tg_newtuple, desc, column);
	if (before != NULL && after != NULL && strcmp(before, after) != 0 &&
		(strcmp(after, "queued") == 0 ||
		 (strcmp(before, "queued") == 0 && strcmp(after, "completed") == 0) ||
		 (strcmp(before, "queued") != 0 && strcmp(before, "running") != 0)))
		ereport(ERROR,
				errcode(ERRCODE_CHECK_VIOLATION),
				errmsg("a run that is %s cannot become %s", before, after),
				errdetail("A run is queued, then running, then completed, failed or cancelled."));
	return PointerGetDatum(trigdata->tg_newtuple);
}

/* ---- reading ---- */

static int64
int8_column(int row, int column)
{
	bool		isnull;
	Datum		value = pj_result(row, column, &isnull);

	return isnull ? 0 : DatumGetInt64(value);
}

static Datum
text_column(int row, int column)
{
	bool		isnull;
	Datum		value = pj_result(row, column, &isnull);

	return isnull ? 0 : PointerGetDatum(DatumGetTextPCopy(value));
}

static bool
bool_column(int row, int column)
{
	bool		isnull;

	return DatumGetBool(pj_result(row, column, &isnull));
}

/* Read a row of the last statement's result. */
static void
read_run(int row, PjRun *run)
{
	bool		isnull;

	run->id = int8_column(row, 1);
	run->projection_id = DatumGetInt32(pj_result(row, 2, &isnull));
	run->tenant = text_column(row, 3);
	run->rebuild = bool_column(row, 4);
	run->running = bool_column(row, 5);
	run->attempts = DatumGetInt32(pj_result(row, 6, &isnull));
	run->since = int8_column(row, 7);
	run->until = int8_column(row, 8);
	run->total = int8_column(row, 9);
	run->prepared = bool_column(row, 10);
	run->aside = bool_column(row, 11);
	run->settled = int8_column(row, 12);
	run->processed = int8_column(row, 13);
	run->last_log_seq = int8_column(row, 14);
	run->last_aggregate = text_column(row, 15);
	run->last_sequence = int8_column(row, 16);
	run->definition = (bytea *) DatumGetPointer(text_column(row, 17));
	run->slices = DatumGetInt32(pj_result(row, 18, &isnull));
	run->age_ms = int8_column(row, 19);
}

static int
read_runs(int n, PjRun **runs)
{
	*runs = palloc0(sizeof(PjRun) * Max(n, 1));
	for (int i = 0; i < n; i++)
		read_run(i, &(*runs)[i]);
	return n;
}

/* Returns the active runs of a projection, of one tenant or (0) all. */
static int
active_runs(const PjProjection *projection, Datum tenant, PjRun **runs)
{
	Datum		values[2] = {Int32GetDatum(projection->id), tenant};

	return read_runs(pj_execute(&select_active, values, tenant ? NULL : " n"),
					 runs);
}

/* Read a run.  Returns false if it is not active. */
bool
pj_run_look(int64 id, PjRun *run)
{
	Datum		values[1] = {Int64GetDatum(id)};

	if (pj_execute(&select_one, values, NULL) == 0)
		return false;
	read_run(0, run);
	return true;
}

/* Returns the projection of a run, or 0 if there is no such run. */
int32
pj_run_projection(int64 id)
{
	Datum		values[1] = {Int64GetDatum(id)};
	bool		isnull;

	if (pj_execute(&select_projection, values, NULL) == 0)
		return 0;
	return DatumGetInt32(pj_result(0, 1, &isnull));
}

/*
 * Returns the active runs after another, or from the start if "after" is NULL.
 * Running ones come first.
 */
int
pj_runs_next(const PjRun *after, int limit, PjRun **runs)
{
	Datum		values[3] = {Int32GetDatum(limit),
		CStringGetTextDatum(after == NULL ? "z" :
							after->running ? "running" : "queued"),
	Int64GetDatum(after ? after->id : 0)};

	return read_runs(pj_execute(&select_next, values, NULL), runs);
}

/*
 * Must a run wait for another of the same tenant, because its projection
 * depends on it?
 */
bool
pj_run_depends(const PjRun *run)
{
	Datum		values[2] = {Int32GetDatum(run->projection_id), run->tenant};

	return pj_execute(&select_dependency, values, NULL) > 0;
}

/* Is there an active run of a projection and tenant? */
bool
pj_run_is_active(const PjProjection *projection, Datum tenant)
{
	PjRun	   *runs;

	return active_runs(projection, tenant, &runs) > 0;
}

int
pj_runs_of(const PjProjection *projection, PjRun **runs)
{
	return active_runs(projection, 0, runs);
}

/* Raise an error if there is an active run, of that tenant or (0) of any. */
void
pj_run_refuse(const PjProjection *projection, Datum tenant)
{
	PjRun	   *run;

	if (active_runs(projection, tenant, &run) == 0)
		return;
	if (run->slices > 0)
		run->processed += pj_slices_processed(run->id, GetActiveSnapshot());
	ereport(ERROR,
			errcode(ERRCODE_OBJECT_IN_USE),
			errmsg("projection \"%s\" has an active run for tenant \"%s\"",
				   projection->name, TextDatumGetCString(run->tenant)),
			run->running ?
			errdetail("Run %lld, a %s, has processed %lld of about %lld events.",
					  (long long) run->id,
					  run->rebuild ? "rebuild" : "catch-up",
					  (long long) run->processed,
					  (long long) Max(run->total, run->processed)) :
			errdetail("Run %lld, a %s, is queued.", (long long) run->id,
					  run->rebuild ? "rebuild" : "catch-up"),
			errhint("Wait for it, or cancel it with projector_cancel_run(%lld).",
					(long long) run->id));
}

/* ---- writing ---- */

/* Queue a run.  Returns its id, or 0 if there already is an active one. */
int64
pj_run_insert(const PjRun *run, const char *requested_by)
{
	Datum		values[5] = {Int32GetDatum(run->projection_id), run->tenant,
		CStringGetTextDatum(run->rebuild ? "rebuild" : "catch_up"),
	Int64GetDatum(run->until), CStringGetTextDatum(requested_by)};

	if (pj_execute(&insert, values, run->until ? NULL : "   n ") == 0)
		return 0;
	return int8_column(0, 1);
}

void
pj_run_start(const PjRun *run)
{
	Datum		values[4] = {Int64GetDatum(run->id), Int64GetDatum(run->since),
	Int64GetDatum(run->until), Int64GetDatum(run->total)};

	pj_execute(&start, values, run->until ? NULL : "  n ");
}

/* Save the progress of a run. */
void
pj_run_save(const PjRun *run)
{
	char		nulls[] = "           ";
	Datum		values[11] = {Int64GetDatum(run->id),
		BoolGetDatum(run->prepared), BoolGetDatum(run->aside),
		Int64GetDatum(run->settled), Int64GetDatum(run->until),
		Int64GetDatum(run->processed), Int64GetDatum(run->last_log_seq),
		run->last_aggregate, Int64GetDatum(run->last_sequence),
	PointerGetDatum(run->definition), Int32GetDatum(run->slices)};

	if (run->until == 0)
		nulls[4] = 'n';
	if (run->last_aggregate == 0)
		nulls[7] = nulls[8] = 'n';
	if (run->definition == NULL)
		nulls[9] = 'n';
	pj_execute(&save, values, nulls);
}

void
pj_run_count_attempt(const PjRun *run)
{
	Datum		values[1] = {Int64GetDatum(run->id)};

	pj_execute(&count_attempt, values, NULL);
}

/* A run has ended.  "error" says why if it failed, else it is NULL. */
void
pj_run_end(const PjRun *run, const char *state, const ErrorData *error)
{
	Datum		values[5] = {Int64GetDatum(run->id),
	CStringGetTextDatum(state)};
	char		nulls[] = "  nnn";

	if (error)
	{
		values[2] = CStringGetTextDatum(unpack_sql_state(error->sqlerrcode));
		values[3] = CStringGetTextDatum(error->message ? error->message :
										"unknown error");
		nulls[2] = nulls[3] = ' ';
		if (error->context)
		{
			values[4] = CStringGetTextDatum(error->context);
			nulls[4] = ' ';
		}
	}
	pj_execute(&end, values, nulls);
}
