/*
 * table_query.c
 *	  Run one of our own queries on users' tables.
 *
 * Such a query can run users' code: casts, operators, output functions,
 * triggers, defaults.  The caller has become the projection's owner in the
 * sandbox (user_context.c), so the query is planned and run with the owner's
 * privileges.
 *
 * FORCE ROW LEVEL SECURITY is meant for the code of handlers.  Our own queries
 * name their tenant, or look for all tenants, and a policy must not hide rows
 * from them.  So policies are disabled while the query is rewritten, as for
 * foreign key checks.  They still apply to code that the query runs, such as
 * triggers.
 *
 * Rows are received one by one, so that a result needs no more memory than its
 * largest row.
 */
#include "base/compat.h"

#include "access/xact.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/params.h"
#include "parser/analyze.h"
#include "parser/parse_relation.h"
#include "storage/lmgr.h"
#include "tcop/dest.h"
#include "tcop/tcopprot.h"
#include "utils/snapmgr.h"

#include "sandbox/table_query.h"

/* Receives the rows of a query. */
typedef struct Receiver
{
	DestReceiver pub;
	const PjTableQuery *query;
} Receiver;

static void
receive_nothing(DestReceiver *self, int operation, TupleDesc desc)
{
}

static void
finish_nothing(DestReceiver *self)
{
}

static bool
receive_row(TupleTableSlot *slot, DestReceiver *self)
{
	const PjTableQuery *query = ((Receiver *) self)->query;

	if (query->receive)
		query->receive(query->arg, slot);
	return true;
}

/*
 * Replace the table named in the query by another one with the same columns,
 * whose name the owner may not be allowed to look up.
 */
static void
replace_table(Query *query, Oid instead)
{
	RangeTblEntry *table = linitial_node(RangeTblEntry, query->rtable);

	LockRelationOid(instead, AccessShareLock);
	pj_query_replace(query, table, instead);
	table->inh = false;
}

/*
 * Parse and rewrite, without the policies that FORCE ROW LEVEL SECURITY adds
 * for an owner.
 */
static List *
analyze_query(const PjTableQuery *query)
{
	RawStmt    *parsed = linitial_node(RawStmt, pg_parse_query(query->sql));
	Query	   *analyzed;
	List	   *rewritten;
	Oid			user;
	int			context;

	GetUserIdAndSecContext(&user, &context);
	SetUserIdAndSecContext(user, context | SECURITY_NOFORCE_RLS);
	analyzed = parse_analyze_fixedparams(parsed, query->sql, query->types,
										 query->nargs, NULL);
	if (OidIsValid(query->instead))
		replace_table(analyzed, query->instead);
	rewritten = pg_rewrite_query(analyzed);
	SetUserIdAndSecContext(user, context);
	return rewritten;
}

static ParamListInfo
make_params(const PjTableQuery *query)
{
	ParamListInfo params = makeParamList(query->nargs);

	for (int i = 0; i < query->nargs; i++)
	{
		params->params[i].ptype = query->types[i];
		params->params[i].value = query->values[i];
		params->params[i].isnull = false;
		params->params[i].pflags = PARAM_FLAG_CONST;
	}
	return params;
}

static uint64
execute(const PjTableQuery *query, Query *rewritten, DestReceiver *dest)
{
	ParamListInfo params = make_params(query);
	PlannedStmt *plan = pg_plan_query(rewritten, query->sql, 0, params);
	QueryDesc  *desc = CreateQueryDesc(plan, query->sql, GetActiveSnapshot(),
									   InvalidSnapshot, dest, params, NULL, 0);
	uint64		processed;

	ExecutorStart(desc, 0);
	pj_executor_run(desc);
	ExecutorFinish(desc);
	processed = desc->estate->es_processed;
	ExecutorEnd(desc);
	FreeQueryDesc(desc);
	return processed;
}

/*
 * Run a query.  Returns how many rows it has returned or changed.  The caller
 * has become the projection's owner in the sandbox, with fixed settings if
 * values are converted to text.
 */
uint64
pj_table_query(const PjTableQuery *query)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "projector query",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);
	Receiver	receiver = {.pub = {
			.receiveSlot = receive_row,
			.rStartup = receive_nothing,
			.rShutdown = finish_nothing,
			.rDestroy = finish_nothing,
			.mydest = DestNone,
	},.query = query};
	List	   *rewritten;
	ListCell   *cell;
	uint64		processed = 0;

	CommandCounterIncrement();
	PushCopiedSnapshot(query->snapshot ? query->snapshot :
					   GetLatestSnapshot());
	if (query->snapshot == NULL)
		UpdateActiveSnapshotCommandId();
	rewritten = analyze_query(query);
	foreach(cell, rewritten)
	{
		Query	   *one = lfirst_node(Query, cell);

		if (one->commandType != CMD_UTILITY && one->commandType != CMD_NOTHING)
			processed += execute(query, one, &receiver.pub);
	}
	PopActiveSnapshot();
	CommandCounterIncrement();
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(context);
	return processed;
}
