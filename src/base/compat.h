/*
 * compat.h
 *	  Differences between the supported major versions of PostgreSQL.
 *
 * No other file depends on the version.  Where a function of the server has
 * changed, there is a function or macro of ours here, named for what we use it
 * for.  A function that older servers lack is here under its own name.
 */
#ifndef PJ_COMPAT_H
#define PJ_COMPAT_H

#include "postgres.h"

#if PG_VERSION_NUM < 140000
#error "projector needs PostgreSQL 14 or later"
#endif

#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

#if PG_VERSION_NUM >= 150000
#include "common/pg_prng.h"
#endif

#include "nodes/execnodes.h"
#include "nodes/parsenodes.h"
#include "nodes/plannodes.h"
#include "utils/timeout.h"

/* ---- declarations ---- */

#if PG_VERSION_NUM >= 180000
#define PJ_NORETURN pg_noreturn
#else
#define PJ_NORETURN pg_attribute_noreturn()
#endif

/* ---- starting the server (storage/ipc.h) ---- */

/* Have a function called that reserves shared memory; from _PG_init only. */
extern void pj_when_reserving(void (*reserve) (void));
extern int	pj_max_backends(void);

/* ---- transactions and locks (storage/proc.h, storage/lock.h) ---- */

#if PG_VERSION_NUM >= 170000
#define pj_transaction()			(MyProc->vxid.lxid)
#define pj_backend_index()			(MyProcNumber)
#define pj_lock_is_held(tag, mode)	LockHeldByMe(tag, mode, false)
#define pj_lock_transaction(lock)	((lock)->vxid)
#else
#define pj_transaction()			(MyProc->lxid)
#define pj_backend_index()			(MyBackendId - 1)
#define pj_lock_is_held(tag, mode)	LockHeldByMe(tag, mode)
#define pj_lock_transaction(lock) \
	((VirtualTransactionId) {(lock)->backend, (lock)->lxid})
#endif

/* ---- timeouts (utils/timeout.h) ---- */

/* The timeout that cancels the running statement, again and again. */
extern TimeoutId pj_cancel_timeout;
extern void pj_cancel_at(TimestampTz at, int again_ms);

/* ---- privileges (utils/acl.h) ---- */

#if PG_VERSION_NUM >= 160000
#define pj_owns_table(relid, role) \
	object_ownercheck(RelationRelationId, relid, role)
#define pj_owns_schema(oid, role) \
	object_ownercheck(NamespaceRelationId, oid, role)
#define pj_owns_extension(oid, role) \
	object_ownercheck(ExtensionRelationId, oid, role)
#define pj_may_become(member, role)		member_can_set_role(member, role)
#define pj_may_execute(oid, role) \
	(object_aclcheck(ProcedureRelationId, oid, role, ACL_EXECUTE) == ACLCHECK_OK)
#else
#define pj_owns_table(relid, role)		pg_class_ownercheck(relid, role)
#define pj_owns_schema(oid, role)		pg_namespace_ownercheck(oid, role)
#define pj_owns_extension(oid, role)	pg_extension_ownercheck(oid, role)
#define pj_may_become(member, role)		is_member_of_role(member, role)
#define pj_may_execute(oid, role) \
	(pg_proc_aclcheck(oid, role, ACL_EXECUTE) == ACLCHECK_OK)
#endif

/* ---- tables and indexes ---- */

/* The primary key's index; a deferrable key does not count. */
#if PG_VERSION_NUM >= 180000
#define pj_primary_key(rel)		RelationGetPrimaryKeyIndex(rel, false)
#define pj_begin_index_scan(heap, index, snapshot, nkeys) \
	index_beginscan(heap, index, snapshot, NULL, nkeys, 0)
#else
#define pj_primary_key(rel)		RelationGetPrimaryKeyIndex(rel)
#define pj_begin_index_scan(heap, index, snapshot, nkeys) \
	index_beginscan(heap, index, snapshot, nkeys, 0)
#endif

/* Generated columns that are computed when they are read: 18 and later. */
#if PG_VERSION_NUM >= 180000
#define pj_has_virtual(rel) \
	(RelationGetDescr(rel)->constr && \
	 RelationGetDescr(rel)->constr->has_generated_virtual)
#define pj_is_virtual(attribute) \
	((attribute)->attgenerated == ATTRIBUTE_GENERATED_VIRTUAL)
#define pj_virtual_expression(rel, attno) \
	build_generation_expression(rel, attno)
#else
#define pj_has_virtual(rel)					((void) (rel), false)
#define pj_is_virtual(attribute)			((void) (attribute), false)
#define pj_virtual_expression(rel, attno)	NULL
#endif

/* Is a table's row type, with its array type, a member of its extension? */
#if PG_VERSION_NUM >= 170000
#define PJ_ROW_TYPES_ARE_MEMBERS	true
#else
#define PJ_ROW_TYPES_ARE_MEMBERS	false
#endif

/* Which indexes an update of a row must be added to. */
#if PG_VERSION_NUM >= 160000
#define PjUpdateIndexes TU_UpdateIndexes
#define pj_insert_index_entries(info, slot, estate, update) \
	ExecInsertIndexTuples(info, slot, estate, false, false, NULL, NIL, \
						  (update) == TU_Summarizing)
#else
#define PjUpdateIndexes bool
#define TU_None false
#define pj_insert_index_entries(info, slot, estate, update) \
	ExecInsertIndexTuples(info, slot, estate, false, false, NULL, NIL)
#endif

/* ---- settings (utils/guc_tables.h) ---- */

/* Before 15, a prefix is not reserved: only settings made so far are checked. */
#if PG_VERSION_NUM < 150000
#define MarkGUCPrefixReserved(prefix)	EmitWarningsOnPlaceholders(prefix)
#endif

#if PG_VERSION_NUM >= 160000
#define pj_all_settings(n)		get_guc_variables(n)
#else
#define pj_all_settings(n)		(*(n) = GetNumConfigOptions(), get_guc_variables())
#endif

/* ---- values ---- */

/* A number of at least 0 and less than 1. */
#if PG_VERSION_NUM >= 150000
#define pj_random()		pg_prng_double(&pg_global_prng_state)
#else
#define pj_random()		(random() / (MAX_RANDOM_VALUE + 1.0))
#endif

typedef struct PjInterval
{
	int			years;
	int			months;
	int			days;
	int64		microseconds;
} PjInterval;

extern bool pj_decode_interval(char **field, int *ftype, int nf,
							   PjInterval *interval);

/* ---- functions that return sets (funcapi.h) ---- */

#if PG_VERSION_NUM < 150000
#define MAT_SRF_USE_EXPECTED_DESC	0x01
extern void InitMaterializedSRF(FunctionCallInfo fcinfo, bits32 flags);
#endif

/* ---- the parser (parser/analyze.h) ---- */

#if PG_VERSION_NUM >= 150000
#define pj_is_merge(node)		IsA(node, MergeStmt)
#else
#define pj_is_merge(node)		false
#define parse_analyze_fixedparams(parsed, sql, types, ntypes, env) \
	parse_analyze(parsed, sql, (Oid *) (types), ntypes, env)
#endif

/* ---- the executor and the planner ---- */

#if PG_VERSION_NUM >= 180000
#define pj_executor_run(desc)	ExecutorRun(desc, ForwardScanDirection, 0)
#define pj_sorts_upwards(key)	((key)->pk_cmptype == COMPARE_LT)
#else
#define pj_executor_run(desc)	ExecutorRun(desc, ForwardScanDirection, 0, true)
#define pj_sorts_upwards(key)	((key)->pk_strategy == BTLessStrategyNumber)
#endif

#if PG_VERSION_NUM >= 160000
#define pj_recheck_init(epqstate, estate) \
	EvalPlanQualInit(epqstate, estate, NULL, NIL, -1, NIL)
#else
#define pj_recheck_init(epqstate, estate) \
	EvalPlanQualInit(epqstate, estate, NULL, NIL, -1)
#endif

/* A path that returns the rows of a foreign table. */
#if PG_VERSION_NUM >= 180000
#define pj_foreign_path(root, rel, startup, total, pathkeys) \
	create_foreignscan_path(root, rel, NULL, (rel)->rows, 0, startup, total, \
							pathkeys, (rel)->lateral_relids, NULL, NIL, NIL)
#elif PG_VERSION_NUM >= 170000
#define pj_foreign_path(root, rel, startup, total, pathkeys) \
	create_foreignscan_path(root, rel, NULL, (rel)->rows, startup, total, \
							pathkeys, (rel)->lateral_relids, NULL, NIL, NIL)
#else
#define pj_foreign_path(root, rel, startup, total, pathkeys) \
	create_foreignscan_path(root, rel, NULL, (rel)->rows, startup, total, \
							pathkeys, (rel)->lateral_relids, NULL, NIL)
#endif

/* Tables that are written without a plan, and the columns updated in each. */
typedef struct PjRanges
{
	List	   *tables;			/* of RangeTblEntry */
	List	   *permissions;	/* of RTEPermissionInfo, if there is that */
} PjRanges;

extern void pj_ranges_add(PjRanges *ranges, Relation heap,
						  Bitmapset *updated);
extern void pj_ranges_use(EState *estate, const PjRanges *ranges);
extern Bitmapset *pj_updated_columns(const PlannedStmt *plan, int range);

/* Let a query read another table instead. */
#if PG_VERSION_NUM >= 160000
#define pj_query_replace(query, rte, instead) \
	(getRTEPermissionInfo((query)->rteperminfos, rte)->relid = (instead), \
	 (rte)->relid = (instead))
#else
#define pj_query_replace(query, rte, instead)	((rte)->relid = (instead))
#endif

/* An index like another one. */
extern void pj_copy_index(Relation heap, const char *name, Relation index,
						  List *columns, Oid *classes);

#endif							/* PJ_COMPAT_H */
