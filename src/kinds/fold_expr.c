/*
 * fold_expr.c
 *	  SQL expressions over events and rows.  "fold_columns" can refer to
 *	  the current row as "s" and to the event as "e"; "key" can refer to
 *	  the event's columns.
 *
 * The rules are much like those for generated columns: an expression depends
 * only on its row and event (expr_purity.c), and contains no subqueries,
 * aggregates or set-returning functions.  Expressions are compiled by the
 * executor, so that applying an event needs neither a function call nor a
 * query.
 *
 * The caller has become the projection's owner, with its search_path.
 */
#include "base/compat.h"

#include "access/genam.h"
#include "access/relation.h"
#include "access/transam.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parse_coerce.h"
#include "parser/parse_collate.h"
#include "parser/parse_expr.h"
#include "parser/parse_relation.h"
#include "parser/parser.h"
#include "rewrite/rewriteHandler.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/reltrigger.h"
#include "utils/typcache.h"

#include "kinds/expr_purity.h"
#include "kinds/fold_expr.h"
#include "registry/target.h"

/* What an expression may refer to. */
typedef struct Scope
{
	ParseState *pstate;
	int			row;			/* range table index of "s", or 0 */
	int			event;			/* range table index of "e" */
	const char *what;			/* describes the expression in errors */
	Bitmapset  *read;			/* columns of "s" that are read; 0 means all */
	bool		plain;			/* so far; see PjFoldCode */
	const char *text;			/* the expression's text */
} Scope;

/* ---- parsing ---- */

/*
 * Error context callback: say which expression failed, and set the error
 * position within it.
 */
static void
describe_expression(void *arg)
{
	const Scope *scope = arg;
	int			position = geterrposition();

	if (position > 0)
	{
		errposition(0);
		internalerrposition(position);
		internalerrquery(scope->text);
	}
	if (geterrcode() == ERRCODE_SYNTAX_ERROR)
		errhint("Correct the expression for %s.", scope->what);
	errcontext("expression for %s", scope->what);
}

static void
refuse_expression(const char *detail)
{
	ereport(ERROR,
			errcode(ERRCODE_SYNTAX_ERROR),
			errmsg("not an expression"),
			errdetail("%s", detail));
}

/* Parse a string that must consist of one expression. */
static Node *
parse_string(const char *str)
{
	List	   *parsed = raw_parser(str, RAW_PARSE_PLPGSQL_EXPR);
	SelectStmt *select = castNode(SelectStmt,
								  linitial_node(RawStmt, parsed)->stmt);
	Node	   *expr;

	if (list_length(parsed) != 1 || list_length(select->targetList) != 1)
		refuse_expression("There must be exactly one.");
	if (select->fromClause || select->whereClause || select->groupClause ||
		select->havingClause || select->windowClause || select->sortClause ||
		select->limitOffset || select->limitCount || select->distinctClause ||
		select->lockingClause || select->op != SETOP_NONE ||
		linitial_node(ResTarget, select->targetList)->name != NULL)
		refuse_expression("It looks like a query.");

	/* transformExpr() would expand a star to all columns */
	expr = linitial_node(ResTarget, select->targetList)->val;
	if (IsA(expr, ColumnRef) && IsA(llast(((ColumnRef *) expr)->fields), A_Star))
		refuse_expression("It expands to several columns.");
	return expr;
}

static int
add_relation(ParseState *pstate, Relation rel, const char *alias,
			 bool unqualified)
{
	ParseNamespaceItem *item;

	item = addRangeTableEntryForRelation(pstate, rel, AccessShareLock,
										 makeAlias(alias, NIL), false, false);
	addNSItemToQuery(pstate, item, false, true, unqualified);
	return item->p_rtindex;
}

/* Let "s" refer to one slot and "e" to the other. */
static Node *
place_vars(Node *node, void *arg)
{
	Scope	   *scope = arg;

	if (node == NULL)
		return NULL;
	if (IsA(node, Var))
	{
		Var		   *var = copyObject((Var *) node);

		if (var->varattno < 0)
			ereport(ERROR,
					errcode(ERRCODE_INVALID_COLUMN_REFERENCE),
					errmsg("system columns cannot be used here"));
		if (var->varno != scope->event)
			scope->read = bms_add_member(scope->read, var->varattno);
		var->varno = var->varno == scope->event ? INNER_VAR : OUTER_VAR;
		return (Node *) var;
	}
	return expression_tree_mutator(node, place_vars, arg);
}

/*
 * Raise an error if an expression depends on anything but its row and event.
 */
static void
refuse_more_than_row(const Scope *scope, Node *expr)
{
	const ParseState *pstate = scope->pstate;
	const char *what = pstate->p_hasSubLinks ? "a subquery" :
	pstate->p_hasAggs ? "an aggregate" :
	pstate->p_hasWindowFuncs ? "a window function" :
	expression_returns_set(expr) ? "a function that returns a set" : NULL;

	if (what)
		ereport(ERROR,
				errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				errmsg("expression for %s contains %s", scope->what, what),
				errdetail("An expression computes one value from the row so far and one event."),
				errhint("Write a fold function, a handler or a statement instead."));
}

/* Parse an expression and coerce it to a type, as an assignment would. */
static Expr *
parse_expression(Scope *scope, const char *str, Oid type, int32 typmod)
{
	Node	   *expr;
	Node	   *coerced;
	Oid			given;

	scope->pstate->p_sourcetext = str;
	expr = transformExpr(scope->pstate, parse_string(str), EXPR_KIND_OTHER);
	refuse_more_than_row(scope, expr);
	given = exprType(expr);
	coerced = coerce_to_target_type(scope->pstate, expr, given, type, typmod,
									COERCION_ASSIGNMENT, COERCE_IMPLICIT_CAST,
									-1);
	if (coerced == NULL)
		ereport(ERROR,
				errcode(ERRCODE_DATATYPE_MISMATCH),
				errmsg("expression is of type %s, but %s is of type %s",
					   format_type_be(given), scope->what,
					   format_type_be(type)),
				errhint("Cast it."));
	assign_expr_collations(scope->pstate, coerced);
	if (pj_expr_depends_on_more(coerced, scope->what) ||
		pj_expr_has_literal_now(coerced, str))
		ereport(ERROR,
				errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
				errmsg("expression for %s depends on more than row and event",
					   scope->what),
				errdetail("The same events must always give the same rows."),
				errhint("Take what changes, such as the time, from the event."));
	scope->plain = scope->plain && !pj_expr_may_ask_settings(coerced);
	return expression_planner((Expr *) place_vars(coerced, scope));
}

static ExprState *
compile_expression(Scope *scope, const char *str, Form_pg_attribute attribute)
{
	ErrorContextCallback callback = {error_context_stack, describe_expression,
	scope};
	ExprState  *state;

	scope->text = str;
	error_context_stack = &callback;
	state = ExecInitExpr(parse_expression(scope, str, attribute->atttypid,
										  attribute->atttypmod), NULL);
	error_context_stack = callback.previous;
	return state;
}

/* ---- columns ---- */

static const char *const runtime_columns[] = {"tenant_id", "last_event_id",
"last_event_version"};

/*
 * Does the runtime set this column, whatever its default?  It sets
 * last_log_seq only if the key is not the aggregate.
 */
static bool
is_runtime_column(const char *name, const char *key, bool by_log)
{
	for (int i = 0; i < lengthof(runtime_columns); i++)
		if (strcmp(name, runtime_columns[i]) == 0)
			return true;
	return strcmp(name, key) == 0 ||
		(by_log && strcmp(name, "last_log_seq") == 0);
}

static void
check_column(Relation target, const char *name, AttrNumber attno,
			 const char *key)
{
	if (attno <= 0)
		ereport(ERROR,
				errcode(ERRCODE_UNDEFINED_COLUMN),
				errmsg("target table \"%s\" has no column \"%s\"",
					   RelationGetRelationName(target), name));
	if (is_runtime_column(name, key, true) ||
		TupleDescAttr(RelationGetDescr(target), attno - 1)->attgenerated)
		ereport(ERROR,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("fold_columns must not name column \"%s\"", name),
				errdetail("The runtime sets it."));
}

static void
compile_columns(PjFoldCode *code, Scope *scope, Relation target,
				Jsonb *fold_columns)
{
	TupleDesc	desc = RelationGetDescr(target);
	char	   *key = pj_target_key(target);
	JsonbIterator *it = JsonbIteratorInit(&fold_columns->root);
	JsonbValue	value;
	JsonbIteratorToken token;

	code->attnos = palloc(sizeof(AttrNumber) * desc->natts);
	code->columns = palloc(sizeof(ExprState *) * desc->natts);
	while ((token = JsonbIteratorNext(&it, &value, true)) != WJB_DONE)
	{
		char	   *name;
		AttrNumber	attno;

		if (token != WJB_KEY)
			continue;
		name = pnstrdup(value.val.string.val, value.val.string.len);
		attno = get_attnum(RelationGetRelid(target), name);
		check_column(target, name, attno, key);
		(void) JsonbIteratorNext(&it, &value, true);
		if (value.type != jbvString)
			ereport(ERROR,
					errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					errmsg("fold_columns must have an expression in quotes for column \"%s\"",
						   name));
		scope->what = psprintf("column \"%s\"", name);
		code->attnos[code->ncolumns] = attno;
		code->columns[code->ncolumns++] =
			compile_expression(scope, pnstrdup(value.val.string.val,
											   value.val.string.len),
							   TupleDescAttr(desc, attno - 1));
	}
}

static bool
is_among(const char *name, const char **names)
{
	for (int i = 0; names[i]; i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

/*
 * Can a column's default be ignored, because an expression sets the column and
 * none reads it?
 */
static bool
is_overwritten(const PjFoldCode *code, const Scope *scope, AttrNumber attno)
{
	if (bms_is_member(0, scope->read) || bms_is_member(attno, scope->read))
		return false;
	for (int i = 0; i < code->ncolumns; i++)
		if (code->attnos[i] == attno)
			return true;
	return false;
}

/* A row must start from the same defaults in every rebuild. */
static void
check_default(const char *column, Node *expr)
{
	if (pj_expr_depends_on_more(expr, psprintf("default of column \"%s\"",
											   column)))
		ereport(ERROR,
				errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
				errmsg("default of column \"%s\" is not the same every time",
					   column),
				errdetail("A new row of a fold starts from the columns' defaults, and the same events must always give the same rows."),
				errhint("Drop the default and take the value from the event, or name the column in option \"digest_ignore\"."));
}

/*
 * Each NOT NULL column needs a default or an expression.  If there is a BEFORE
 * INSERT trigger we cannot tell, because it may set the column.
 */
void
pj_fold_check_not_null(const PjFoldCode *code, Relation target, bool by_log)
{
	TupleDesc	desc = RelationGetDescr(target);

	if (target->trigdesc && target->trigdesc->trig_insert_before_row)
		return;
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(desc, i);
		bool		is_set = !attribute->attnotnull ||
		attribute->attisdropped || attribute->atthasdef ||
		attribute->attidentity || attribute->attgenerated ||
		is_runtime_column(NameStr(attribute->attname),
						  pj_target_key(target), by_log);

		for (int c = 0; c < code->ncolumns && !is_set; c++)
			is_set = code->attnos[c] == i + 1;
		if (!is_set)
			ereport(ERROR,
					errcode(ERRCODE_NOT_NULL_VIOLATION),
					errmsg("fold_columns does not set column \"%s\" of target table \"%s\", which must not be null",
						   NameStr(attribute->attname),
						   RelationGetRelationName(target)),
					errhint("Give an expression for it, or ALTER TABLE %s ALTER %s SET DEFAULT or DROP NOT NULL.",
							pj_target_name(RelationGetRelid(target)),
							quote_identifier(NameStr(attribute->attname))));
	}
}

/* Compile the defaults that a new row starts from. */
static void
compile_defaults(PjFoldCode *code, Scope *scope, Relation target,
				 const char **ignored)
{
	TupleDesc	desc = RelationGetDescr(target);
	char	   *key = pj_target_key(target);

	code->defaults = palloc0(sizeof(ExprState *) * desc->natts);
	for (int i = 0; i < desc->natts; i++)
	{
		char	   *name = NameStr(TupleDescAttr(desc, i)->attname);
		Node	   *expr;

		if (TupleDescAttr(desc, i)->attisdropped ||
			TupleDescAttr(desc, i)->attgenerated ||
			is_runtime_column(name, key, true))
			continue;
		expr = build_column_default(target, i + 1);
		if (expr == NULL)
			continue;
		if (is_overwritten(code, scope, i + 1))
			continue;
		if (!is_among(name, ignored))
			check_default(name, expr);
		scope->plain = scope->plain && !pj_expr_may_ask_settings(expr);
		code->defaults[i] = ExecInitExpr(expression_planner((Expr *) expr),
										 NULL);
	}
}

/* ---- compiling ---- */

static bool
has_index_expressions(Relation target)
{
	ListCell   *cell;
	bool		found = false;

	foreach(cell, RelationGetIndexList(target))
	{
		Relation	index = index_open(lfirst_oid(cell), AccessShareLock);

		found = found || RelationGetIndexExpressions(index) != NIL ||
			RelationGetIndexPredicate(index) != NIL;
		index_close(index, AccessShareLock);
	}
	return found;
}

/*
 * Is it certain that writing a row runs only code of built-in types?
 * (Expressions of indexes and generated columns may call users' functions.)
 */
static bool
is_plain_table(Relation target)
{
	TupleDesc	desc = RelationGetDescr(target);

	if (target->trigdesc ||
		(desc->constr && (desc->constr->num_check > 0 ||
						  desc->constr->has_generated_stored)) ||
		pj_has_virtual(target))
		return false;
	for (int i = 0; i < desc->natts; i++)
		if (!TupleDescAttr(desc, i)->attisdropped &&
			TupleDescAttr(desc, i)->atttypid >= FirstNormalObjectId)
			return false;
	return !has_index_expressions(target);
}

static void
compile_key(PjFoldCode *code, Relation event_type, Relation target,
			const char *key)
{
	AttrNumber	attno = get_attnum(RelationGetRelid(target),
								   pj_target_key(target));
	Scope		scope = {.pstate = make_parsestate(NULL),.what = "key",
	.plain = true};

	scope.event = add_relation(scope.pstate, event_type, "e", true);
	code->key = compile_expression(&scope, key,
								   TupleDescAttr(RelationGetDescr(target),
												 attno - 1));
	code->plain = code->plain && scope.plain;
	free_parsestate(scope.pstate);
}

/*
 * Compile a fold's expressions, in the current memory context.  fold_columns
 * is NULL if the fold is a function; key is NULL if it is the aggregate.
 * "ignored" are the columns of option "digest_ignore".
 */
PjFoldCode *
pj_fold_compile(Relation target, Jsonb *fold_columns, const char *key,
				const char **ignored)
{
	PjFoldCode *code = palloc0(sizeof(PjFoldCode));
	Oid			event_relid = get_typ_typrelid(pj_event_type_oid());
	Relation	event_type = relation_open(event_relid, AccessShareLock);

	code->econtext = CreateStandaloneExprContext();
	code->event_slot = MakeSingleTupleTableSlot(CreateTupleDescCopy(RelationGetDescr(event_type)),
												&TTSOpsVirtual);
	code->row_slot = MakeSingleTupleTableSlot(CreateTupleDescCopy(RelationGetDescr(target)),
											  &TTSOpsVirtual);
	code->econtext->ecxt_innertuple = code->event_slot;
	code->econtext->ecxt_outertuple = code->row_slot;
	if (fold_columns)
	{
		Scope		scope = {.pstate = make_parsestate(NULL),
		.plain = is_plain_table(target)};

		scope.row = add_relation(scope.pstate, target, "s", false);
		scope.event = add_relation(scope.pstate, event_type, "e", false);
		compile_columns(code, &scope, target, fold_columns);
		compile_defaults(code, &scope, target, ignored);
		code->plain = scope.plain;
		free_parsestate(scope.pstate);
	}
	if (key)
		compile_key(code, event_type, target, key);
	relation_close(event_type, AccessShareLock);
	return code;
}

/* Set the event that the expressions are evaluated for. */
void
pj_fold_set_event(PjFoldCode *code, const PjEvent *event)
{
	TupleTableSlot *slot = code->event_slot;

	ExecClearTuple(slot);
	memcpy(slot->tts_values, event->values,
		   sizeof(Datum) * PJ_EVENT_COLUMNS);
	memset(slot->tts_isnull, 0, sizeof(bool) * PJ_EVENT_COLUMNS);
	ExecStoreVirtualTuple(slot);
}
