/*
 * compat.c
 *	  Differences between the supported major versions of PostgreSQL that do
 *	  not fit into a macro.
 */
#include "base/compat.h"

#include "catalog/index.h"
#include "catalog/pg_am.h"
#include "catalog/pg_index.h"
#include "executor/executor.h"
#include "nodes/makefuncs.h"
#include "parser/parse_relation.h"
#include "parser/parsetree.h"
#include "storage/lockdefs.h"
#include "utils/rel.h"

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
