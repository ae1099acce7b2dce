/*
 * compat.c
 *	  Differences between the supported major versions of PostgreSQL that do
 *	  not fit into a macro.
 */
#include "base/compat.h"

#include <signal.h>

#include "catalog/index.h"
#include "catalog/pg_am.h"
#include "catalog/pg_index.h"
#include "executor/executor.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "parser/parse_relation.h"
#include "parser/parsetree.h"
#include "postmaster/autovacuum.h"
#include "replication/walsender.h"
#include "storage/ipc.h"
#include "storage/lockdefs.h"
#include "utils/datetime.h"
#include "utils/rel.h"

/* ---- starting the server ---- */

/* Shared memory is reserved by a hook, but before 15 by _PG_init itself. */
#if PG_VERSION_NUM >= 150000

static shmem_request_hook_type next_request = NULL;
static void (*reservations[4]) (void);
static int	nreservations = 0;

static void
reserve_all(void)
{
	if (next_request)
		next_request();
	for (int i = 0; i < nreservations; i++)
		reservations[i] ();
}

void
pj_when_reserving(void (*reserve) (void))
{
	Assert(nreservations < lengthof(reservations));
	if (nreservations == 0)
	{
		next_request = shmem_request_hook;
		shmem_request_hook = reserve_all;
	}
	reservations[nreservations++] = reserve;
}
#else

void
pj_when_reserving(void (*reserve) (void))
{
	reserve();
}
#endif

/*
 * How many processes with a PGPROC there can be.  Before 15, _PG_init is too
 * early for MaxBackends; this is how the server will compute it.
 */
int
pj_max_backends(void)
{
	if (MaxBackends > 0)
		return MaxBackends;
	return MaxConnections + autovacuum_max_workers + 1 +
		max_worker_processes + max_wal_senders;
}

/* ---- timeouts ---- */

TimeoutId	pj_cancel_timeout = STATEMENT_TIMEOUT;

/* Cancel the running statement at this time, and again after each interval. */
#if PG_VERSION_NUM >= 150000

void
pj_cancel_at(TimestampTz at, int again_ms)
{
	enable_timeout_every(pj_cancel_timeout, at, again_ms);
}
#else

static int	cancel_again_ms;

/* Signal handler: like that of statement_timeout, and repeated. */
static void
cancel_again(void)
{
	kill(-MyProcPid, SIGINT);
	kill(MyProcPid, SIGINT);
	enable_timeout_after(pj_cancel_timeout, cancel_again_ms);
}

void
pj_cancel_at(TimestampTz at, int again_ms)
{
	if (pj_cancel_timeout == STATEMENT_TIMEOUT)
		pj_cancel_timeout = RegisterTimeout(USER_TIMEOUT, cancel_again);
	cancel_again_ms = again_ms;
	enable_timeout_at(pj_cancel_timeout, at);
}
#endif

/* ---- values ---- */

/* Interpret the fields that ParseDateTime() has found as an interval. */
bool
pj_decode_interval(char **field, int *ftype, int nf, PjInterval *interval)
{
	int			dtype;
#if PG_VERSION_NUM >= 150000
	struct pg_itm_in itm;

	if (DecodeInterval(field, ftype, nf, INTERVAL_FULL_RANGE, &dtype,
					   &itm) != 0 || dtype != DTK_DELTA)
		return false;
	interval->years = itm.tm_year;
	interval->months = itm.tm_mon;
	interval->days = itm.tm_mday;
	interval->microseconds = itm.tm_usec;
#else
	struct pg_tm tm;
	fsec_t		fsec;

	if (DecodeInterval(field, ftype, nf, INTERVAL_FULL_RANGE, &dtype, &tm,
					   &fsec) != 0 || dtype != DTK_DELTA)
		return false;
	interval->years = tm.tm_year;
	interval->months = tm.tm_mon;
	interval->days = tm.tm_mday;
	interval->microseconds = fsec + tm.tm_sec * USECS_PER_SEC +
		tm.tm_min * USECS_PER_MINUTE + tm.tm_hour * USECS_PER_HOUR;
#endif
	return true;
}

/* ---- functions that return sets ---- */

#if PG_VERSION_NUM < 150000

/* Prepare to return a set as a tuplestore; 15 and later have this. */
void
InitMaterializedSRF(FunctionCallInfo fcinfo, bits32 flags)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	MemoryContext caller;

	if (result == NULL || !IsA(result, ReturnSetInfo) ||
		!(result->allowedModes & SFRM_Materialize))
		ereport(ERROR,
				errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				errmsg("set-valued function called in context that cannot accept a set"));
	caller = MemoryContextSwitchTo(result->econtext->ecxt_per_query_memory);
	if (flags & MAT_SRF_USE_EXPECTED_DESC)
		result->setDesc = CreateTupleDescCopy(result->expectedDesc);
	else if (get_call_result_type(fcinfo, NULL,
								  &result->setDesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	result->setResult = tuplestore_begin_heap(result->allowedModes &
											  SFRM_Materialize_Random, false,
											  work_mem);
	result->returnMode = SFRM_Materialize;
	MemoryContextSwitchTo(caller);
}
#endif

/* ---- the executor and the planner ---- */

/* Add a table.  The executor asks which columns an UPDATE sets. */
void
pj_ranges_add(PjRanges *ranges, Relation heap, Bitmapset *updated)
{
	RangeTblEntry *rte = makeNode(RangeTblEntry);

	rte->rtekind = RTE_RELATION;
	rte->relid = RelationGetRelid(heap);
	rte->relkind = heap->rd_rel->relkind;
	rte->rellockmode = RowExclusiveLock;
	ranges->tables = lappend(ranges->tables, rte);
#if PG_VERSION_NUM >= 160000
	addRTEPermissionInfo(&ranges->permissions, rte)->updatedCols = updated;
#else
	rte->updatedCols = updated;
#endif
}

/* Use these tables as those of a plan; the first has number 1. */
void
pj_ranges_use(EState *estate, const PjRanges *ranges)
{
#if PG_VERSION_NUM >= 180000
	ExecInitRangeTable(estate, ranges->tables, ranges->permissions,
					   bms_add_range(NULL, 1, list_length(ranges->tables)));
#elif PG_VERSION_NUM >= 160000
	ExecInitRangeTable(estate, ranges->tables, ranges->permissions);
#else
	ExecInitRangeTable(estate, ranges->tables);
#endif
}

/* The columns that a plan updates in a table. */
Bitmapset *
pj_updated_columns(const PlannedStmt *plan, int range)
{
	RangeTblEntry *rte = rt_fetch(range, plan->rtable);

#if PG_VERSION_NUM >= 160000
	return rte->perminfoindex == 0 ? NULL :
		getRTEPermissionInfo(plan->permInfos, rte)->updatedCols;
#else
	return rte->updatedCols;
#endif
}

/* Create a primary key like that of another table. */
void
pj_copy_index(Relation heap, const char *name, Relation index, List *columns,
			  Oid *classes)
{
	index_create(heap, name, InvalidOid, InvalidOid, InvalidOid, InvalidOid,
				 BuildIndexInfo(index), columns, BTREE_AM_OID,
				 heap->rd_rel->reltablespace, index->rd_indcollation,
#if PG_VERSION_NUM >= 170000
				 classes, NULL, index->rd_indoption, NULL, (Datum) 0,
#else
				 classes, index->rd_indoption, (Datum) 0,
#endif
				 INDEX_CREATE_IS_PRIMARY, 0, true, true, NULL);
}
