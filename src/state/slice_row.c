/*
 * slice_row.c
 *	  The rows of table projection_run_slices: the slices of a run that
 *	  several workers process at once, and their progress.
 *
 * A slice has the aggregates after one and up to another, in bytewise order.
 * The slices of a run have all aggregates, and no aggregate is in two of them.
 * Changing a slice requires its lock and the driver lock of the pair in
 * ShareLock.  Inserting and deleting slices requires the driver lock in
 * ExclusiveLock.
 */
#include "base/compat.h"

#include "executor/spi.h"
#include "utils/builtins.h"
#include "utils/errcodes.h"
#include "utils/snapmgr.h"

#include "base/fetch.h"
#include "base/lock.h"
#include "base/statement.h"
#include "state/slice_row.h"

/* The columns that are read without SQL. */
enum
{
	Anum_processed_events = 10
};

#define SLICE_COLUMNS \
	" s.run_id, s.slice, s.after_aggregate_id, s.upto_aggregate_id, s.done," \
	" s.last_aggregate_id, s.last_sequence_number, s.last_log_seq," \
	" s.processed_events, s.applied_count, s.failed_count, s.dead_count," \
	" s.batch_count, s.apply_us, s.digest, s.row_count, s.layout," \
	" s.redefined, s.attempt_count, s.error_code, s.error_message," \
	" s.error_context "

static PjTable slices_table = {"projection_run_slices",
"projection_run_slices_pkey"};

static PjStatement insert = {
	.sql = "INSERT INTO projector.projection_run_slices (run_id, slice,"
	" projection_id, after_aggregate_id, upto_aggregate_id)"
	" VALUES ($1, $2, $3, $4, $5)",
	.expect = SPI_OK_INSERT,
	.nargs = 5,
	.argtypes = {INT8OID, INT4OID, INT4OID, TEXTOID, TEXTOID},
};

static PjStatement select_all = {
	.sql = "SELECT" SLICE_COLUMNS "FROM projector.projection_run_slices s"
	" WHERE s.run_id = $1 ORDER BY s.slice",
	.expect = SPI_OK_SELECT,
	.nargs = 1,
	.argtypes = {INT8OID},
};

static PjStatement select_one = {
	.sql = "SELECT" SLICE_COLUMNS "FROM projector.projection_run_slices s"
	" WHERE s.run_id = $1 AND s.slice = $2",
	.expect = SPI_OK_SELECT,
	.nargs = 2,
	.argtypes = {INT8OID, INT4OID},
};

static PjStatement save = {
	.sql = "UPDATE projector.projection_run_slices SET done = $3,"
	" last_aggregate_id = $4, last_sequence_number = $5, last_log_seq = $6,"
	" processed_events = $7, applied_count = $8, failed_count = $9,"
	" dead_count = $10, batch_count = $11, apply_us = $12, digest = $13,"
	" row_count = $14, layout = $15, redefined = $16, attempt_count = 0"
	" WHERE run_id = $1 AND slice = $2",
	.expect = SPI_OK_UPDATE,
	.nargs = 16,
	.argtypes = {INT8OID, INT4OID, BOOLOID, TEXTOID, INT8OID, INT8OID, INT8OID,
		INT8OID, INT8OID, INT8OID, INT8OID, INT8OID, TEXTOID, INT8OID, INT8OID,
	BOOLOID},
};

static PjStatement count_attempt = {
	.sql = "UPDATE projector.projection_run_slices"
	" SET attempt_count = attempt_count + 1 WHERE run_id = $1 AND slice = $2",
	.expect = SPI_OK_UPDATE,
	.nargs = 2,
	.argtypes = {INT8OID, INT4OID},
};

static PjStatement fail = {
	.sql = "UPDATE projector.projection_run_slices SET error_code = $3,"
	" error_message = $4, error_context = $5 WHERE run_id = $1 AND slice = $2",
	.expect = SPI_OK_UPDATE,
	.nargs = 5,
	.argtypes = {INT8OID, INT4OID, TEXTOID, TEXTOID, TEXTOID},
};

static PjStatement delete = {
	.sql = "DELETE FROM projector.projection_run_slices WHERE run_id = $1",
	.expect = SPI_OK_DELETE,
	.nargs = 1,
	.argtypes = {INT8OID},
};

/* ---- reading ---- */

static int64
int8_column(int row, int column)
{
	bool		isnull;
	Datum		value = pj_result(row, column, &isnull);

	return isnull ? 0 : DatumGetInt64(value);
}

static bool
bool_column(int row, int column)
{
	bool		isnull;

	return DatumGetBool(pj_result(row, column, &isnull));
}

static Datum
text_column(int row, int column)
{
	bool		isnull;
	Datum		value = pj_result(row, column, &isnull);

	return isnull ? 0 : PointerGetDatum(DatumGetTextPCopy(value));
}

/* Returns an error whose code is in a column, and the rest in the next. */
static ErrorData *
error_column(int row, int column)
{
	Datum		code = text_column(row, column);
	Datum		message = text_column(row, column + 1);
	Datum		context = text_column(row, column + 2);
	ErrorData  *error;
	const char *state;

	if (code == 0 || VARSIZE_ANY_EXHDR(code) != 5)
		return NULL;
	state = TextDatumGetCString(code);
	error = palloc0(sizeof(ErrorData));
	error->elevel = ERROR;
	error->sqlerrcode = MAKE_SQLSTATE(state[0], state[1], state[2], state[3],
									  state[4]);
	error->message = message ? TextDatumGetCString(message) : NULL;
	error->context = context ? TextDatumGetCString(context) : NULL;
	return error;
}

/* Read a row of the last statement's result. */
static void
read_slice(int row, PjRunSlice *slice)
{
	bool		isnull;

	memset(slice, 0, sizeof(PjRunSlice));
	slice->run_id = int8_column(row, 1);
	slice->number = DatumGetInt32(pj_result(row, 2, &isnull));
	slice->after = text_column(row, 3);
	slice->upto = text_column(row, 4);
	slice->done = bool_column(row, 5);
	slice->last_aggregate = text_column(row, 6);
	slice->last_sequence = int8_column(row, 7);
	slice->sum.last_log_seq = int8_column(row, 8);
	slice->processed = int8_column(row, 9);
	slice->counts.applied = int8_column(row, 10);
	slice->counts.failed = int8_column(row, 11);
	slice->counts.dead = int8_column(row, 12);
	slice->counts.batches = int8_column(row, 13);
	slice->counts.us = int8_column(row, 14);
	pj_digest_read(pj_result(row, 15, &isnull),
				   &slice->sum.digest);
	slice->sum.digest.rows = int8_column(row, 16);
	slice->sum.digest.layout = int8_column(row, 17);
	slice->redefined = bool_column(row, 18);
	slice->attempts = DatumGetInt32(pj_result(row, 19, &isnull));
	slice->error = error_column(row, 20);
}

/* Returns the slices of a run, in order. */
int
pj_slices_of(const PjRun *run, PjRunSlice **slices)
{
	Datum		values[1] = {Int64GetDatum(run->id)};
	int			n = pj_execute(&select_all, values, NULL);

	*slices = palloc(sizeof(PjRunSlice) * Max(n, 1));
	for (int i = 0; i < n; i++)
		read_slice(i, &(*slices)[i]);
	return n;
}

/* Read a slice.  Returns false if there is none. */
bool
pj_slice_look(int64 run_id, int number, PjRunSlice *slice)
{
	Datum		values[2] = {Int64GetDatum(run_id), Int32GetDatum(number)};

	if (pj_execute(&select_one, values, NULL) == 0)
		return false;
	read_slice(0, slice);
	return true;
}

/*
 * Returns how many events the slices of a run have processed, as a snapshot
 * sees them.
 */
int64
pj_slices_processed(int64 run_id, Snapshot snapshot)
{
	ScanKeyData key;
	PjFetch		fetch;
	int64		sum = 0;

	pj_key_int8(&key, 1, run_id);
	pj_fetch_begin(&fetch, &slices_table, snapshot, 1, &key);
	while (pj_fetch_next(&fetch, ForwardScanDirection))
	{
		bool		isnull;

		sum += DatumGetInt64(slot_getattr(fetch.slot, Anum_processed_events,
										  &isnull));
	}
	pj_fetch_end(&fetch);
	return sum;
}

/* ---- writing ---- */

/*
 * Cut a run into slices.  The bounds are the last aggregates of all slices but
 * the last, in ascending order.
 */
void
pj_slices_insert(const PjRun *run, Datum *bounds, int nbounds)
{
	Assert(pj_driver_is_locked(run->projection_id, run->tenant));
	for (int i = 0; i <= nbounds; i++)
	{
		Datum		values[5] = {Int64GetDatum(run->id), Int32GetDatum(i + 1),
			Int32GetDatum(run->projection_id), i > 0 ? bounds[i - 1] : 0,
		i < nbounds ? bounds[i] : 0};
		char		nulls[] = "     ";

		if (i == 0)
			nulls[3] = 'n';
		if (i == nbounds)
			nulls[4] = 'n';
		pj_execute(&insert, values, nulls);
	}
}

/* Save the progress of a slice. */
void
pj_slice_save(const PjRunSlice *slice)
{
	Datum		values[16] = {Int64GetDatum(slice->run_id),
		Int32GetDatum(slice->number), BoolGetDatum(slice->done),
		slice->last_aggregate, Int64GetDatum(slice->last_sequence),
		Int64GetDatum(slice->sum.last_log_seq), Int64GetDatum(slice->processed),
		Int64GetDatum(slice->counts.applied),
		Int64GetDatum(slice->counts.failed), Int64GetDatum(slice->counts.dead),
		Int64GetDatum(slice->counts.batches), Int64GetDatum(slice->counts.us),
		CStringGetTextDatum(pj_digest_text(&slice->sum.digest)),
		Int64GetDatum(slice->sum.digest.rows), Int64GetDatum(slice->sum.digest.layout),
	BoolGetDatum(slice->redefined)};

	Assert(pj_slice_is_locked(slice->run_id, slice->number));
	pj_execute(&save, values, slice->last_aggregate ? NULL :
			   "   nn           ");
}

void
pj_slice_count_attempt(const PjRunSlice *slice)
{
	Datum		values[2] = {Int64GetDatum(slice->run_id),
	Int32GetDatum(slice->number)};

	Assert(pj_slice_is_locked(slice->run_id, slice->number));
	pj_execute(&count_attempt, values, NULL);
}

/* Note an error in a slice.  The run is to end with it. */
void
pj_slice_fail(const PjRunSlice *slice, const ErrorData *error)
{
	Datum		values[5] = {Int64GetDatum(slice->run_id),
		Int32GetDatum(slice->number),
		CStringGetTextDatum(unpack_sql_state(error->sqlerrcode)),
		CStringGetTextDatum(error->message ? error->message :
							"unknown error"),
	error->context ? CStringGetTextDatum(error->context) : 0};

	Assert(pj_slice_is_locked(slice->run_id, slice->number));
	pj_execute(&fail, values, error->context ? NULL : "    n");
}

void
pj_slices_delete(const PjRun *run)
{
	Datum		values[1] = {Int64GetDatum(run->id)};

	Assert(pj_driver_is_locked(run->projection_id, run->tenant));
	pj_execute(&delete, values, NULL);
}
