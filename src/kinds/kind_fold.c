/*
 * kind_fold.c
 *	  Projections of kind fold: a row and an event give the next row.
 *
 * A fold is defined by a function, f(s target, e projector.event) RETURNS
 * target, or by an SQL expression for each column.  This file checks such a
 * definition.  A batch is folded by fold_batch.c: fold_key.c finds the row for
 * each event, fold_event.c folds it, fold_row.c reads and writes the rows.
 * fold_expr.c compiles the expressions, and fold_cache.c caches them.
 */
#include "base/compat.h"

#include "access/table.h"
#include "catalog/pg_proc.h"
#include "utils/syscache.h"

#include "kinds/fold_batch.h"

static void
check_function(Oid oid, const char *name)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(oid));
	Form_pg_proc proc = (Form_pg_proc) GETSTRUCT(tuple);

	if (proc->proisstrict)
		ereport(ERROR,
				errcode(ERRCODE_INVALID_FUNCTION_DEFINITION),
				errmsg("function %s cannot be a fold", name),
				errdetail("It is STRICT: it would not be called for the first event, when the row is null."),
				errhint("Create it without STRICT."));
	if (proc->provolatile == PROVOLATILE_VOLATILE)
		ereport(NOTICE,
				errmsg("function %s is declared as volatile", name),
				errdetail("A fold must be pure: the same row and event always give the same row. That is not checked."),
				errhint("Declare it as IMMUTABLE or STABLE to say so."));
	ReleaseSysCache(tuple);
}

/* Compile the expressions once, to check that they are valid. */
static void
try_expressions(void *arg)
{
	const PjDefinition *definition = arg;
	Relation	target = table_open(definition->target_oids[0],
									AccessShareLock);
	PjOptions	options;

	bool		other_key = !pj_key_is_aggregate(definition->key);
	PjFoldCode *code;

	pj_options_parse(definition->options, &options);
	code = pj_fold_compile(target, definition->fold_columns,
						   other_key ? definition->key : NULL,
						   options.digest_ignore);
	if (definition->fold_columns)
		pj_fold_check_not_null(code, target, other_key);
	table_close(target, AccessShareLock);
}

static void
fold_check(PjDefinition *definition, Oid owner)
{
	if (definition->fold)
	{
		PjSignature signature = pj_fold_signature(definition->target_oids[0]);
		Oid			oid = pj_function_find(&signature, definition->fold,
										   owner);

		definition->fold = pj_function_name(oid);
		check_function(oid, definition->fold);
	}
	else if (!JB_ROOT_IS_OBJECT(definition->fold_columns) ||
			 JB_ROOT_COUNT(definition->fold_columns) == 0)
		ereport(ERROR,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("fold_columns must be a JSON object with an expression for each column that events change"));
	pj_kind_try(definition, owner, try_expressions, definition);
}

static void
fold_retry(const PjDefinition *definition)
{
	pj_kind_try(definition, definition->owner, try_expressions,
				(void *) definition);
}

static char *
fold_source_text(const PjDefinition *definition)
{
	if (definition->fold)
	{
		PjSignature signature = pj_fold_signature(definition->target_oids[0]);
		char	   *body = pj_function_source(&signature, definition->fold);

		return body ? psprintf("%s\n%s\n%s", definition->key,
							   definition->fold, body) : NULL;
	}
	return psprintf("%s\n%s", definition->key,
					JsonbToCString(NULL, &definition->fold_columns->root,
								   VARSIZE(definition->fold_columns)));
}

static const char *
fold_problem(const PjDefinition *definition)
{
	PjSignature signature;

	if (definition->fold == NULL)
		return NULL;
	signature = pj_fold_signature(definition->target_oids[0]);
	return pj_function_problem(&signature, definition->fold,
							   definition->owner);
}

static void
fold_apply(PjWork *work)
{
	PjFoldBatch batch = {.work = work,.kept = pj_fold_find(work->projection),
	.timeout_ms = pj_kind_timeout(work->projection)};

	pj_kind_run(work, true, pj_fold_run, &batch);
}

static void
fold_flush(PjWork *work)
{
	PjFoldBatch batch = {.work = work,.kept = pj_fold_find(work->projection),
	.timeout_ms = pj_kind_timeout(work->projection)};

	pj_kind_run(work, true, pj_fold_flush, &batch);
}

/* Both kinds do the same, with a function or with expressions. */
#define FOLD_OF_KIND(kind_id) \
	{ \
		.id = (kind_id), \
		.check = fold_check, \
		.source_text = fold_source_text, \
		.problem = fold_problem, \
		.retry_code = fold_retry, \
		.sweep = pj_folds_sweep, \
		.apply = fold_apply, \
		.flush = fold_flush, \
	}

const PjKind pj_kind_fold = FOLD_OF_KIND(PJ_KIND_FOLD);
const PjKind pj_kind_fold_columns = FOLD_OF_KIND(PJ_KIND_FOLD_COLUMNS);
