/*
 * statement.c
 *	  Our own SQL statements, planned once per session.
 *
 * A statement's text is a constant, and its values are always parameters.  It
 * runs inside pj_enter_internal(), so that names do not depend on the
 * session's search_path and role.  It names schema projector or has the
 * comment "projector", so that it is recognised in pg_stat_statements.
 *
 * Plans are generic and cached.  A plan made while a table was small would
 * still be used when it is large, so the planner gets no choice: statements
 * look up rows by key, one by one, and every key has an index.  All other
 * access methods (sequential and bitmap scans, hash and merge joins) are
 * disabled while a statement is planned.  So is JIT compilation, which the
 * high costs of disabled paths would trigger.  The few
 * statements that join sets are planned with all joins, and without JIT.
 */
#include "base/compat.h"

#include "catalog/pg_type.h"
#include "jit/jit.h"
#include "nodes/parsenodes.h"
#include "optimizer/cost.h"
#include "utils/array.h"
#include "utils/memutils.h"

#include "base/statement.h"

/*
 * The planner's settings are global variables; these are saved and restored.
 */
typedef struct PlannerSettings
{
	bool		seqscan;
	bool		bitmapscan;
	bool		hashjoin;
	bool		mergejoin;
	bool		jit;
} PlannerSettings;

static void
apply_settings(const PlannerSettings *settings)
{
	enable_seqscan = settings->seqscan;
	enable_bitmapscan = settings->bitmapscan;
	enable_hashjoin = settings->hashjoin;
	enable_mergejoin = settings->mergejoin;
	jit_enabled = settings->jit;
}

static int
execute_planned(const PjStatement *stmt, const PlannerSettings *settings,
				Datum *values, const char *nulls)
{
	PlannerSettings saved = {enable_seqscan, enable_bitmapscan,
	enable_hashjoin, enable_mergejoin, jit_enabled};
	int			rc;

	PG_TRY();
	{
		apply_settings(settings);
		rc = SPI_execute_plan(stmt->plan, values, nulls, stmt->as_caller, 0);
	}
	PG_FINALLY();
	{
		apply_settings(&saved);
	}
	PG_END_TRY();
	return rc;
}

/*
 * Run one statement and return the number of rows it processed.  The caller
 * has called pj_enter_internal(), which connects to SPI.  Result rows stay in
 * SPI_tuptable until the next call.
 */
uint64
pj_execute(PjStatement *stmt, Datum *values, const char *nulls)
{
	static const PlannerSettings by_key = {false};
	static const PlannerSettings by_set = {true, true, true, true, false};
	MemoryContext caller = CurrentMemoryContext;
	int			rc;

	SPI_freetuptable(SPI_tuptable);

	if (stmt->plan == NULL)
	{
		SPIPlanPtr	plan = SPI_prepare_cursor(stmt->sql, stmt->nargs,
											  stmt->argtypes,
											  CURSOR_OPT_GENERIC_PLAN);

		if (plan == NULL)
			elog(ERROR, "could not prepare \"%s\": %s",
				 stmt->sql, SPI_result_code_string(SPI_result));
		SPI_keepplan(plan);
		stmt->plan = plan;
	}

	if (stmt->fires_triggers)
		rc = SPI_execute_plan(stmt->plan, values, nulls, false, 0);
	else
		rc = execute_planned(stmt, stmt->joins_sets ? &by_set : &by_key,
							 values, nulls);
	if (rc != stmt->expect)
		elog(ERROR, "unexpected result %s from \"%s\"",
			 SPI_result_code_string(rc), stmt->sql);

	/* SPI has left its own context current */
	MemoryContextSwitchTo(caller);
	return SPI_processed;
}

/* Returns one column (from 1) of one row (from 0) of the last result. */
Datum
pj_result(int row, int column, bool *isnull)
{
	return SPI_getbinval(SPI_tuptable->vals[row], SPI_tuptable->tupdesc,
						 column, isnull);
}

/* Copy the first column, of type text, of all rows of the last result. */
int
pj_result_texts(Datum **texts)
{
	int			n = SPI_processed;

	*texts = palloc(sizeof(Datum) * Max(n, 1));
	for (int i = 0; i < n; i++)
	{
		bool		isnull;

		(*texts)[i] = PointerGetDatum(DatumGetTextPCopy(pj_result(i, 1,
																  &isnull)));
	}
	return n;
}

Datum
pj_text_array(Datum *elems, int nelems)
{
	return PointerGetDatum(construct_array(elems, nelems, TEXTOID,
										   -1, false, TYPALIGN_INT));
}

Datum
pj_int8_array(const int64 *elems, int nelems)
{
	Datum	   *datums = palloc(sizeof(Datum) * Max(nelems, 1));

	for (int i = 0; i < nelems; i++)
		datums[i] = Int64GetDatum(elems[i]);

	return PointerGetDatum(construct_array(datums, nelems, INT8OID,
										   sizeof(int64), FLOAT8PASSBYVAL,
										   TYPALIGN_DOUBLE));
}

Datum
pj_oid_array(const Oid *elems, int nelems)
{
	Datum	   *datums = palloc(sizeof(Datum) * Max(nelems, 1));

	for (int i = 0; i < nelems; i++)
		datums[i] = ObjectIdGetDatum(elems[i]);

	return PointerGetDatum(construct_array(datums, nelems, OIDOID,
										   sizeof(Oid), true, TYPALIGN_INT));
}
