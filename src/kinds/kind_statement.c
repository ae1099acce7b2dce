/*
 * kind_statement.c
 *	  Projections of kind statement: SQL over the relation "batch", run
 *	  once for all events of a batch.
 *
 * The statement sees "batch" like a trigger's transition table.  Its rows are
 * of type projector.event, in log order.  The plan is made once per session
 * and cached.
 *
 * A failed statement does not tell which event caused the error, so fewer and
 * fewer events are tried until it is found.  This requires that the result
 * does not depend on how events are split into batches.
 */
#include "base/compat.h"

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "nodes/parsenodes.h"
#include "parser/parser.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/plancache.h"
#include "utils/queryenvironment.h"
#include "utils/snapmgr.h"
#include "utils/tuplestore.h"
#include "utils/typcache.h"

#include "kinds/kind.h"
#include "sandbox/deadline.h"
#include "sandbox/user_context.h"

#define RELATION_NAME "batch"

/*
 * A session's cache entry for a projection; valid while its registry row is
 * the same.
 */
typedef struct KeptStatement
{
	int32		id;				/* hash key */
	uint64		version;		/* version of the registry row */
	SPIPlanPtr	plan;
} KeptStatement;

typedef struct StatementBatch
{
	PjWork	   *work;
	KeptStatement *kept;
} StatementBatch;

static HTAB *kept_statements = NULL;

/* ---- the relation "batch" ---- */

/* Make the relation known to SPI. */
static void
register_batch(TupleDesc desc, Tuplestorestate *rows, int n)
{
	EphemeralNamedRelation relation = palloc0(sizeof(EphemeralNamedRelationData));

	relation->md.name = RELATION_NAME;
	relation->md.tupdesc = desc;
	relation->md.enrtype = ENR_NAMED_TUPLESTORE;
	relation->md.enrtuples = n;
	relation->reldata = rows;
	if (SPI_register_relation(relation) != SPI_OK_REL_REGISTER)
		elog(ERROR, "could not register relation \"%s\"", RELATION_NAME);
}

static int
compare_positions(const void *a, const void *b)
{
	int64		la = pj_event_log_seq(*(PjEvent *const *) a);
	int64		lb = pj_event_log_seq(*(PjEvent *const *) b);

	return (la > lb) - (la < lb);
}

/* Fill the relation with all events except the skipped ones, in log order. */
static Tuplestorestate *
fill_batch(const PjWork *work, TupleDesc desc, int *n)
{
	bool		nulls[PJ_EVENT_COLUMNS] = {false};
	PjEvent   **events = palloc(sizeof(PjEvent *) * (work->hi - work->lo));
	Tuplestorestate *rows = tuplestore_begin_heap(true, false, work_mem);

	*n = 0;
	for (int i = work->lo; i < work->hi; i++)
		if (!work->events[i]->skipped)
			events[(*n)++] = work->events[i];
	qsort(events, *n, sizeof(PjEvent *), compare_positions);
	for (int i = 0; i < *n; i++)
		tuplestore_putvalues(rows, desc, events[i]->values, nulls);
	return rows;
}

/* ---- the statement ---- */

static SPIPlanPtr
prepare(const char *statement)
{
	SPIPlanPtr	plan = SPI_prepare_cursor(statement, 0, NULL,
										  CURSOR_OPT_GENERIC_PLAN);

	if (plan == NULL)
		elog(ERROR, "could not prepare the statement: %s",
			 SPI_result_code_string(SPI_result));
	return plan;
}

/* Does a SELECT have a data-modifying WITH clause? */
static bool
changes_something(Node *statement)
{
	SelectStmt *select = (SelectStmt *) statement;
	ListCell   *cell;

	if (!IsA(statement, SelectStmt))
		return IsA(statement, InsertStmt) || IsA(statement, UpdateStmt) ||
			IsA(statement, DeleteStmt) || pj_is_merge(statement);
	if (select->withClause == NULL)
		return false;
	foreach(cell, select->withClause->ctes)
	{
		if (changes_something(lfirst_node(CommonTableExpr, cell)->ctequery))
			return true;
	}
	return false;
}

/* Check that it is a single statement that writes rows. */
static void
check_syntax(const char *statement)
{
	List	   *parsed = raw_parser(statement, RAW_PARSE_DEFAULT);

	if (list_length(parsed) != 1)
		ereport(ERROR,
				errcode(ERRCODE_SYNTAX_ERROR),
				errmsg("statement must be exactly one statement"),
				errdetail("It consists of %d.", list_length(parsed)),
				errhint("Several tables can be written by WITH ... AS (INSERT ...), ... INSERT ...."));
	if (!changes_something(linitial_node(RawStmt, parsed)->stmt))
		ereport(ERROR,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("statement must be an INSERT, UPDATE, DELETE or MERGE"),
				errdetail("It changes nothing, or is a command."),
				errhint("For example: INSERT INTO totals SELECT ... FROM batch GROUP BY ... ON CONFLICT ... DO UPDATE ...."));
}

/*
 * Error context callback: name the projection, and set the error position
 * within its statement.
 */
static void
describe_statement(void *arg)
{
	const PjDefinition *definition = arg;
	int			position = geterrposition();

	if (position > 0)
	{
		errposition(0);
		internalerrposition(position);
		internalerrquery(definition->statement);
	}
	errcontext("statement of projection \"%s\"", definition->name);
}

/* Does a query, or a part of it, read the relation "batch"? */
static bool
reads_batch(Node *node, void *arg)
{
	if (node == NULL)
		return false;
	if (IsA(node, RangeTblEntry))
		return ((RangeTblEntry *) node)->rtekind == RTE_NAMEDTUPLESTORE;
	if (IsA(node, Query))
		return query_tree_walker((Query *) node, reads_batch, arg,
								 QTW_EXAMINE_RTES_BEFORE);
	return expression_tree_walker(node, reads_batch, arg);
}

/* A statement that does not read "batch" would do the same for any event. */
static void
check_reads_batch(SPIPlanPtr plan)
{
	ListCell   *source,
			   *query;

	foreach(source, SPI_plan_get_plan_sources(plan))
	{
		foreach(query, ((CachedPlanSource *) lfirst(source))->query_list)
		{
			if (reads_batch(lfirst(query), NULL))
				return;
		}
	}
	ereport(ERROR,
			errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			errmsg("statement does not read the relation \"%s\"",
				   RELATION_NAME),
			errdetail("It would do the same whatever the events are."),
			errhint("For example: INSERT INTO totals SELECT ... FROM batch GROUP BY ... ON CONFLICT ... DO UPDATE ...."));
}

/* Planning finds errors that parsing does not. */
static void
plan_statement(void *arg)
{
	TupleDesc	desc = lookup_rowtype_tupdesc_copy(pj_event_type_oid(), -1);
	SPIPlanPtr	plan;

	SPI_connect();
	register_batch(desc, tuplestore_begin_heap(false, false, 64), 0);
	plan = prepare((const char *) arg);
	check_reads_batch(plan);
	(void) SPI_plan_get_cached_plan(plan);
	SPI_finish();
}

static void
statement_check(PjDefinition *definition, Oid owner)
{
	ErrorContextCallback callback = {error_context_stack, describe_statement,
	definition};

	error_context_stack = &callback;
	check_syntax(definition->statement);
	pj_kind_try(definition, owner, plan_statement,
				(void *) definition->statement);
	error_context_stack = callback.previous;
}

static void
statement_retry(const PjDefinition *definition)
{
	pj_kind_try(definition, definition->owner, plan_statement,
				(void *) definition->statement);
}

static char *
statement_source_text(const PjDefinition *definition)
{
	return pstrdup(definition->statement);
}

/* ---- applying ---- */

static KeptStatement *
find_kept(const PjProjection *projection)
{
	KeptStatement *kept;
	bool		found;

	if (kept_statements == NULL)
	{
		HASHCTL		ctl = {.keysize = sizeof(int32),.entrysize = sizeof(KeptStatement)};

		kept_statements = hash_create("projector statements", 16, &ctl,
									  HASH_ELEM | HASH_BLOBS);
	}
	kept = hash_search(kept_statements, &projection->id, HASH_ENTER, &found);
	if (found && kept->version != projection->version && kept->plan)
		SPI_freeplan(kept->plan);
	if (!found || kept->version != projection->version)
		kept->plan = NULL;
	kept->version = projection->version;
	return kept;
}

static void
statement_sweep(void)
{
	HASH_SEQ_STATUS status;
	KeptStatement *kept;

	if (kept_statements == NULL)
		return;
	hash_seq_init(&status, kept_statements);
	while ((kept = hash_seq_search(&status)) != NULL)
		if (pj_kind_is_gone(kept->id))
		{
			if (kept->plan)
				SPI_freeplan(kept->plan);
			hash_search(kept_statements, &kept->id, HASH_REMOVE, NULL);
		}
}

/* The part of a batch that runs as the projection's owner. */
static void
run_statement(void *arg)
{
	StatementBatch *batch = arg;
	PjWork	   *work = batch->work;
	KeptStatement *kept = batch->kept;
	TupleDesc	desc = lookup_rowtype_tupdesc_copy(pj_event_type_oid(), -1);
	Tuplestorestate *rows;
	int			n;
	int			rc;

	work->at = PJ_UNKNOWN;
	rows = fill_batch(work, desc, &n);
	if (n > 0)
	{
		pj_set_replay(work->events[work->lo]->replay);
		SPI_connect();
		register_batch(desc, rows, n);
		if (kept->plan == NULL)
		{
			SPIPlanPtr	plan = prepare(work->projection->statement);

			SPI_keepplan(plan);
			kept->plan = plan;
		}
		pj_deadline_begin(pj_kind_timeout(work->projection));
		rc = SPI_execute_plan(kept->plan, NULL, NULL, false, 0);
		pj_deadline_end();
		pj_check_pinned();
		if (rc < 0)
			elog(ERROR, "could not run the statement: %s",
				 SPI_result_code_string(rc));
		SPI_finish();
	}
	tuplestore_end(rows);
}

static void
statement_apply(PjWork *work)
{
	StatementBatch batch = {work, find_kept(work->projection)};

	pj_kind_run(work, false, run_statement, &batch);
}

const PjKind pj_kind_statement = {
	.id = PJ_KIND_STATEMENT,
	.check = statement_check,
	.source_text = statement_source_text,
	.retry_code = statement_retry,
	.sweep = statement_sweep,
	.apply = statement_apply,
};
