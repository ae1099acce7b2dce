/*
 * row_guard.c
 *	  Keeping a projection's code to the rows of its event's tenant.
 *
 * A row of another tenant, old or new, fails the event: a rebuild of that
 * tenant would lose it.  Targets of handlers and statements carry a trigger for
 * that,
 *
 *		AFTER INSERT OR UPDATE OR DELETE FOR EACH ROW
 *		WHEN (projector.in_projection())
 *		EXECUTE FUNCTION projector.guard_tenant()
 *
 * which no other trigger can get round: what it sees is what has been written.
 * It is an ordinary one, so that dumps have it, and goes with the extension.
 *
 * Taken literally that costs some 7 % of a simple handler: every row is queued,
 * and fetched again when the statement is done.  So the condition is replaced
 * by a stricter one before a plan is run: the trigger fires only for rows that
 * it would refuse.  Where a plan gets at a table later, as an INSERT does at a
 * partition, the trigger looks at every row itself.
 */
#include "base/compat.h"

#include "catalog/namespace.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_trigger.h"
#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "executor/executor.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "nodes/primnodes.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "base/errcodes.h"
#include "base/generation.h"
#include "sandbox/row_guard.h"
#include "sandbox/user_context.h"

PG_FUNCTION_INFO_V1(projector_guard_tenant);
PG_FUNCTION_INFO_V1(projector_in_projection);

/* ---- the trigger ---- */

/* A function of ours without arguments: no right to look it up is needed. */
static Oid
own_function(const char *name)
{
	oidvector  *none = buildoidvector(NULL, 0);

	return GetSysCacheOid3(PROCNAMEARGSNSP, Anum_pg_proc_oid,
						   CStringGetDatum(name), PointerGetDatum(none),
						   ObjectIdGetDatum(get_namespace_oid("projector",
															  false)));
}

/* Its oid, looked up again when some function has changed. */
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

/* Is a trigger the guard, as it is to be? */
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

/* See the install script. */
Datum
projector_in_projection(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(pj_user_code() != NULL);
}

/* ---- rows ---- */

/* Is a value of column tenant_id this tenant? */
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

/* An error if a row is not of the event's tenant. */
static void
check_row(const PjUserCode *code, Relation rel, HeapTuple row)
{
	TupleDesc	desc = RelationGetDescr(rel);
	int			attno = SPI_fnumber(desc, "tenant_id");
	bool		isnull;
	Datum		value;

	if (attno <= 0)
		ereport(ERROR,
				errcode(ERRCODE_UNDEFINED_COLUMN),
				errmsg("target table \"%s\" has no column \"tenant_id\"",
					   RelationGetRelationName(rel)));
	value = heap_getattr(row, attno, desc, &isnull);
	if (!isnull &&
		is_tenant(value, TupleDescAttr(desc, attno - 1), code->tenant))
		return;
	ereport(ERROR,
			errcode(ERRCODE_PJ_ISOLATION),
			errmsg("projection \"%s\" wrote a row of another tenant to table \"%s\"",
				   code->projection, RelationGetRelationName(rel)),
			errdetail("The event is of tenant \"%s\"; rows of other tenants would be lost in a rebuild.",
					  code->tenant),
			errhint("Set tenant_id to the event's, and have it in the WHERE clause of every UPDATE and DELETE."));
}

/*
 * AFTER each row of a target of a handler or statement.  It does nothing
 * unless a projection's code writes the row.
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
		check_row(code, trigdata->tg_relation, trigdata->tg_trigtuple);
		if (TRIGGER_FIRED_BY_UPDATE(trigdata->tg_event))
			check_row(code, trigdata->tg_relation, trigdata->tg_newtuple);
	}
	return PointerGetDatum(NULL);
}

/* ---- the condition ---- */

/* The same for a row that has just been written, or is gone. */
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

/* Must the trigger fire?  The rows are where PostgreSQL has them for it. */
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
 * PostgreSQL compiles the condition of a trigger for each statement, when it
 * needs it first.  It finds one that is there.
 */
static ExprState condition = {
	.type = T_ExprState,
	.flags = EEO_FLAG_IS_QUAL,
	.evalfunc = is_to_fire,
};

/* A plan of a projection's code has been made ready to run. */
void
pj_rowguard_prepare(QueryDesc *query)
{
	ListCell   *cell;

	foreach(cell, query->plannedstmt->resultRelations)
	{
		ResultRelInfo *table =
			query->estate->es_result_relations[lfirst_int(cell) - 1];
		TriggerDesc *triggers = table ? table->ri_TrigDesc : NULL;

		for (int i = 0; triggers && i < triggers->numtriggers; i++)
			if (triggers->triggers[i].tgfoid == guard_function() &&
				triggers->triggers[i].tgqual != NULL)
				table->ri_TrigWhenExprs[i] = &condition;
	}
}
