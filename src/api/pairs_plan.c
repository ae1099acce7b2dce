/*
 * pairs_plan.c
 *	  Planning a look at projector.pairs.
 *
 * The status views read a foreign table whose rows pairs_scan.c makes up, one for
 * each projection and tenant.  A foreign table, because that is what the planner
 * gives conditions to: a query for one projection and one tenant must not pay
 * for all others, and a condition does not get into a set-returning
 * function.
 *
 * The planner is told that there are few rows, and that they are cheap, whatever
 * there is: with an honest estimate it would have the views compiled, which
 * takes longer than to read them.  It is told the order in which they come, so
 * that it need not sort.
 */
#include "base/compat.h"

#include "access/stratnum.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_operator.h"
#include "foreign/fdwapi.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/planmain.h"
#include "optimizer/restrictinfo.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

#include "api/pairs_table.h"

PG_FUNCTION_INFO_V1(projector_pairs_handler);

#define ESTIMATED_PROJECTIONS	10
#define ESTIMATED_TENANTS		100
#define ROW_COST				0.1

/* What a look is limited to: expressions without columns, or NULL. */
typedef struct Limits
{
	Expr	   *name;
	Expr	   *tenant;
} Limits;

/* Is it a column of this table? */
static bool
is_column(const Node *node, const RelOptInfo *rel, AttrNumber column)
{
	const Var  *var = (const Var *) node;

	return IsA(node, Var) && var->varno == rel->relid &&
		var->varattno == column && var->varlevelsup == 0;
}

/*
 * If a condition says that the column equals something that is known before
 * the table is read, return that.
 */
static Expr *
equal_to(PlannerInfo *root, RelOptInfo *rel, const RestrictInfo *restriction,
		 AttrNumber column)
{
	const OpExpr *op = (const OpExpr *) restriction->clause;
	Node	   *left;
	Node	   *right;
	Node	   *value;

	if (!IsA(op, OpExpr) || op->opno != TextEqualOperator ||
		(op->inputcollid != C_COLLATION_OID &&
		 op->inputcollid != DEFAULT_COLLATION_OID))
		return NULL;
	left = linitial(op->args);
	right = lsecond(op->args);
	value = is_column(left, rel, column) ? right :
		is_column(right, rel, column) ? left : NULL;
	if (value == NULL || contain_var_clause(value) ||
		contain_volatile_functions(value) || contain_subplans(value))
		return NULL;
	return (Expr *) value;
}

static Limits
find_limits(PlannerInfo *root, RelOptInfo *rel)
{
	Limits		limits = {NULL, NULL};
	ListCell   *lc;

	foreach(lc, rel->baserestrictinfo)
	{
		RestrictInfo *restriction = lfirst_node(RestrictInfo, lc);

		if (limits.name == NULL)
			limits.name = equal_to(root, rel, restriction,
								   Pairs_projection_name);
		if (limits.tenant == NULL)
			limits.tenant = equal_to(root, rel, restriction,
									 Pairs_tenant_id);
	}
	return limits;
}

static void
estimate_size(PlannerInfo *root, RelOptInfo *rel, Oid relid)
{
	Limits		limits = find_limits(root, rel);

	rel->rows = (limits.name ? 1 : ESTIMATED_PROJECTIONS) *
		(limits.tenant ? 1 : ESTIMATED_TENANTS);
	rel->tuples = ESTIMATED_PROJECTIONS * ESTIMATED_TENANTS;
}

/* Does a sort key mean this column, upwards? */
static bool
sorts_by(const PathKey *key, const RelOptInfo *rel, AttrNumber column)
{
	ListCell   *lc;

	if (!pj_sorts_upwards(key) || key->pk_nulls_first ||
		key->pk_eclass->ec_collation != C_COLLATION_OID)
		return false;
	foreach(lc, key->pk_eclass->ec_members)
	{
		EquivalenceMember *member = lfirst_node(EquivalenceMember, lc);

		if (is_column((Node *) member->em_expr, rel, column))
			return true;
	}
	return false;
}

/*
 * Rows come by projection_name and then by tenant_id.  Return the order that is
 * asked for, if that is it.
 */
static List *
find_order(PlannerInfo *root, RelOptInfo *rel, const Limits *limits)
{
	AttrNumber	columns[2];
	int			ncolumns = 0;
	int			n = 0;
	ListCell   *lc;

	if (limits->name == NULL)
		columns[ncolumns++] = Pairs_projection_name;
	columns[ncolumns++] = Pairs_tenant_id;
	foreach(lc, root->query_pathkeys)
		if (n == ncolumns ||
			!sorts_by(lfirst_node(PathKey, lc), rel, columns[n++]))
		return NIL;
	return root->query_pathkeys;
}

static void
add_paths(PlannerInfo *root, RelOptInfo *rel, Oid relid)
{
	Limits		limits = find_limits(root, rel);

	add_path(rel, (Path *)
			 pj_foreign_path(root, rel, ROW_COST,
							 ROW_COST * (rel->rows + 1),
							 find_order(root, rel, &limits)));
}

/* The columns that somebody reads; none if all are read. */
static List *
list_columns(RelOptInfo *rel, List *clauses)
{
	Bitmapset  *used = NULL;
	List	   *columns = NIL;
	int			column = -1;

	pull_varattnos((Node *) rel->reltarget->exprs, rel->relid, &used);
	pull_varattnos((Node *) clauses, rel->relid, &used);
	while ((column = bms_next_member(used, column)) >= 0)
		columns = lappend_int(columns,
							  column + FirstLowInvalidHeapAttributeNumber);
	return columns;
}

/*
 * The conditions are checked again, row by row.  What the scan is to know is in
 * fdw_private: the columns, and whether there is a name and a tenant, which are
 * the expressions.
 */
static ForeignScan *
make_plan(PlannerInfo *root, RelOptInfo *rel, Oid relid, ForeignPath *path,
		  List *tlist, List *scan_clauses, Plan *outer_plan)
{
	Limits		limits = find_limits(root, rel);
	List	   *exprs = NIL;
	List	   *given;

	scan_clauses = extract_actual_clauses(scan_clauses, false);
	if (limits.name)
		exprs = lappend(exprs, limits.name);
	if (limits.tenant)
		exprs = lappend(exprs, limits.tenant);
	given = list_make2_int(limits.name != NULL, limits.tenant != NULL);
	return make_foreignscan(tlist, scan_clauses, rel->relid, exprs,
							list_make2(given, list_columns(rel, scan_clauses)),
							NIL, NIL, outer_plan);
}

Datum
projector_pairs_handler(PG_FUNCTION_ARGS)
{
	FdwRoutine *routine = makeNode(FdwRoutine);

	routine->GetForeignRelSize = estimate_size;
	routine->GetForeignPaths = add_paths;
	routine->GetForeignPlan = make_plan;
	routine->BeginForeignScan = pj_pairs_begin;
	routine->IterateForeignScan = pj_pairs_next;
	routine->ReScanForeignScan = pj_pairs_again;
	routine->EndForeignScan = pj_pairs_end;
	PG_RETURN_POINTER(routine);
}
