/*
 * row_guard.c
 *	  Restrict a projection's code to the rows of its event's tenant.
 *
 * If the code writes a row whose old or new version belongs to another tenant,
 * the event fails, because a rebuild of that tenant would lose the change.
 * Targets of handlers and statements have a trigger for this check:
 *
 *		AFTER INSERT OR UPDATE OR DELETE FOR EACH ROW
 *		WHEN (projector.in_projection())
 *		EXECUTE FUNCTION projector.guard_tenant()
 *
 * No other trigger can bypass it, because it sees what has been written.  It
 * is an ordinary trigger, so that dumps include it, and it is dropped with the
 * extension.
 *
 * Used as declared, the trigger costs about 7 % of a simple handler: every row
 * is queued, and fetched again at the end of the statement.  So before a plan
 * runs, we replace the condition by a stricter one, and the trigger fires only
 * for rows that it would refuse.  If only new row versions have to be checked,
 * they are checked without the trigger.  If a plan opens a table later, as an
 * INSERT does with a partition, the trigger itself checks every row.
 */
#include "base/compat.h"

#include "access/sysattr.h"
#include "catalog/namespace.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_trigger.h"
#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "executor/executor.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "nodes/primnodes.h"
#include "parser/parsetree.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "base/errcodes.h"
#include "base/generation.h"
#include "sandbox/row_guard.h"
#include "sandbox/user_context.h"

PG_FUNCTION_INFO_V1(projector_guard_tenant);
PG_FUNCTION_INFO_V1(projector_in_projection);

/* ---- the trigger ---- */

/*
 * Look up one of our functions without arguments, without checking privileges.
 */
static Oid
own_function(const char *name)
{
	oidvector  *none = buildoidvector(NULL, 0);

	return GetSysCacheOid3(PROCNAMEARGSNSP, Anum_pg_proc_oid,
						   CStringGetDatum(name), PointerGetDatum(none),
						   ObjectIdGetDatum(get_namespace_oid("projector",
															  false)));
}

/*
 * Returns the OID of the trigger function; looks it up again when any function
 * has changed.
 */
static Oid
guard_function(void)
{
	static Oid	function = InvalidOid;
	static uint64 generation;

	if (!OidIsValid(function) || generation != pj_code_generation())
	{
		function = InvalidOid;
		generation = pj_code_generation();
		function = own_function("guard_tenant");
	}
	return function;
}

/* Is it WHEN (projector.in_projection())? */
static bool
is_guard_condition(char *condition)
{
	Node	   *node = condition ? stringToNode(condition) : NULL;

	if (node && IsA(node, List) && list_length((List *) node) == 1)
		node = linitial((List *) node);
	return node && IsA(node, FuncExpr) &&
		((FuncExpr *) node)->funcid == own_function("in_projection");
}

/* Is this trigger the guard, enabled and with the right definition? */
bool
pj_rowguard_is(const Trigger *trigger)
{
	int16		type = trigger->tgtype;

	return trigger->tgenabled == TRIGGER_FIRES_ALWAYS &&
		TRIGGER_FOR_ROW(type) && TRIGGER_FOR_AFTER(type) &&
		TRIGGER_FOR_INSERT(type) && TRIGGER_FOR_UPDATE(type) &&
		TRIGGER_FOR_DELETE(type) &&
		trigger->tgfoid == guard_function() &&
		is_guard_condition(trigger->tgqual);
}

/* Is a projection's code running now? */
Datum
projector_in_projection(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(pj_user_code() != NULL);
}

/* ---- rows ---- */

/* Does a value of column tenant_id mean this tenant? */
static bool
is_tenant(Datum value, Form_pg_attribute attribute, const char *tenant)
{
	size_t		length = strlen(tenant);
	Oid			output;
	bool		varlena;
	char	   *str;

	if (attribute->atttypid == TEXTOID || attribute->atttypid == VARCHAROID)
	{
		text	   *name = DatumGetTextPP(value);

		return VARSIZE_ANY_EXHDR(name) == length &&
			memcmp(VARDATA_ANY(name), tenant, length) == 0;
	}
	getTypeOutputInfo(attribute->atttypid, &output, &varlena);
	str = OidOutputFunctionCall(output, value);
	if (getBaseType(attribute->atttypid) == BPCHAROID)
		str[bpchartruelen(str, strlen(str))] = '\0';
	return strcmp(str, tenant) == 0;
}

static void
refuse_row(const PjUserCode *code, const char *table)
{
	ereport(ERROR,
			errcode(ERRCODE_PJ_ISOLATION),
			errmsg("projection \"%s\" wrote a row of another tenant to table \"%s\"",
				   code->projection, table),
			errdetail("The event is of tenant \"%s\"; rows of other tenants would be lost in a rebuild.",
					  code->tenant),
			errhint("Set tenant_id to the event's, and have it in the WHERE clause of every UPDATE and DELETE."));
}

/* Does a row that was just written or deleted belong to the event's tenant? */
static bool
is_own_row(const PjUserCode *code, TupleTableSlot *row)
{
	TupleDesc	desc = row->tts_tupleDescriptor;
	int			attno = SPI_fnumber(desc, "tenant_id");
	bool		isnull;
	Datum		value;

	if (attno <= 0)
		return false;
	value = slot_getattr(row, attno, &isnull);
	return !isnull &&
		is_tenant(value, TupleDescAttr(desc, attno - 1), code->tenant);
}

/* Raise an error if a row does not belong to the event's tenant. */
static void
check_row(const PjUserCode *code, Relation rel, TupleTableSlot *row)
{
	if (SPI_fnumber(RelationGetDescr(rel), "tenant_id") <= 0)
		ereport(ERROR,
				errcode(ERRCODE_UNDEFINED_COLUMN),
				errmsg("target table \"%s\" has no column \"tenant_id\"",
					   RelationGetRelationName(rel)));
	if (!is_own_row(code, row))
		refuse_row(code, RelationGetRelationName(rel));
}

/*
 * The trigger function, called after each row of a target of a handler or
 * statement.  It does nothing unless a projection's code writes the row.
 */
Datum
projector_guard_tenant(PG_FUNCTION_ARGS)
{
	TriggerData *trigdata = (TriggerData *) fcinfo->context;
	const PjUserCode *code = pj_user_code();

	if (!CALLED_AS_TRIGGER(fcinfo) ||
		!TRIGGER_FIRED_AFTER(trigdata->tg_event) ||
		!TRIGGER_FIRED_FOR_ROW(trigdata->tg_event))
		ereport(ERROR,
				errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				errmsg("guard_tenant() must be called by an AFTER trigger for each row"));
	if (code != NULL)
	{
		check_row(code, trigdata->tg_relation, trigdata->tg_trigslot);
		if (TRIGGER_FIRED_BY_UPDATE(trigdata->tg_event))
			check_row(code, trigdata->tg_relation, trigdata->tg_newslot);
	}
	return PointerGetDatum(NULL);
}

/* ---- the condition ---- */

/*
 * The replaced condition: must the trigger fire?  PostgreSQL has put the rows
 * into the slots of the expression context.
 */
static Datum
is_to_fire(ExprState *state, ExprContext *econtext, bool *isnull)
{
	const PjUserCode *code = pj_user_code();
	TupleTableSlot *old = econtext->ecxt_innertuple;
	TupleTableSlot *new = econtext->ecxt_outertuple;

	*isnull = false;
	return BoolGetDatum(code != NULL &&
						((!TupIsNull(old) && !is_own_row(code, old)) ||
						 (!TupIsNull(new) && !is_own_row(code, new))));
}

/*
 * PostgreSQL compiles a trigger's condition once per statement, when it first
 * needs it.  It uses this one if it is already there.
 */
static ExprState condition = {
	T_ExprState,
	.flags = EEO_FLAG_IS_QUAL,
	.evalfunc = is_to_fire,
};

/* ---- without the trigger ---- */

/* A row has been written: raise an error if it belongs to another tenant. */
static Datum
check_new_row(ExprState *state, ExprContext *econtext, bool *isnull)
{
	const PjUserCode *code = pj_user_code();
	TupleTableSlot *row = econtext->ecxt_scantuple;

	*isnull = false;
	if (code != NULL && !is_own_row(code, row))
		refuse_row(code, get_rel_name(row->tts_tableOid));
	return BoolGetDatum(true);
}

static ExprState check = {
	T_ExprState,
	.flags = EEO_FLAG_IS_QUAL,
	.evalfunc = check_new_row,
};

/*
 * Does every row written by the plan keep its tenant?  Then checking the new
 * version is enough.  The plan must be an INSERT or UPDATE that does not set
 * tenant_id, and no other trigger may change what it writes.
 */
static bool
is_enough_to_check_new(const PlannedStmt *plan, const ResultRelInfo *table)
{
	AttrNumber	tenant;

	if ((plan->commandType != CMD_INSERT && plan->commandType != CMD_UPDATE) ||
		plan->hasModifyingCTE || list_length(plan->resultRelations) != 1 ||
		table->ri_TrigDesc->numtriggers != 1 ||
		table->ri_WithCheckOptions != NIL ||
		table->ri_RelationDesc->rd_rel->relkind != RELKIND_RELATION)
		return false;
	tenant = SPI_fnumber(RelationGetDescr(table->ri_RelationDesc),
						 "tenant_id");
	return tenant > 0 &&
		!bms_is_member(tenant - FirstLowInvalidHeapAttributeNumber,
					   pj_updated_columns(plan,
										  linitial_int(plan->resultRelations)));
}

/*
 * Check the rows like those of a view WITH CHECK OPTION: after they have been
 * written, without fetching the old versions.
 */
static void
check_instead(ResultRelInfo *table)
{
	static List *options = NIL;
	static List *expressions = NIL;

	if (expressions == NIL)
	{
		MemoryContext caller = MemoryContextSwitchTo(TopMemoryContext);
		WithCheckOption *option = makeNode(WithCheckOption);

		option->kind = WCO_VIEW_CHECK;
		options = list_make1(option);
		expressions = list_make1(&check);
		MemoryContextSwitchTo(caller);
	}
	table->ri_TrigDesc = NULL;
	table->ri_WithCheckOptions = options;
	table->ri_WithCheckOptionExprs = expressions;
}

/* ---- a plan ---- */

/* Called when a plan of a projection's code has been initialized. */
void
pj_rowguard_prepare(QueryDesc *query)
{
	const PlannedStmt *plan = query->plannedstmt;
	ListCell   *cell;

	foreach(cell, plan->resultRelations)
	{
		ResultRelInfo *table =
		query->estate->es_result_relations[lfirst_int(cell) - 1];
		TriggerDesc *triggers = table ? table->ri_TrigDesc : NULL;

		for (int i = 0; triggers && i < triggers->numtriggers; i++)
		{
			if (triggers->triggers[i].tgfoid != guard_function() ||
				triggers->triggers[i].tgqual == NULL)
				continue;
			table->ri_TrigWhenExprs[i] = &condition;
			if (is_enough_to_check_new(plan, table))
				check_instead(table);
		}
	}
}
