/*
 * audit.c
 *	  Table audit_log: which role has called which of our functions, with
 *	  which arguments, and what came of it.
 *
 * A function that changes a projection, or what has become of its events, adds
 * a row in the transaction of the call.  So a call that is rolled back leaves
 * none, and a call whose row cannot be written fails.  Arguments that may hold
 * an event's content are left out.
 *
 * Rows are never changed.  They can be deleted after
 * projector.audit_retention, which workers do.
 */
#include "base/compat.h"

#include "catalog/pg_type.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"
#include "utils/numeric.h"
#include "utils/rel.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "base/fetch.h"
#include "base/guc.h"
#include "base/statement.h"
#include "base/trigger.h"
#include "sandbox/user_context.h"
#include "state/audit.h"

PG_FUNCTION_INFO_V1(projector_audit_guard);

static PjTable audit_table = {"audit_log", "audit_log_pkey"};

static PjStatement insert_row = {
	.sql = "INSERT INTO projector.audit_log (role, session_role, action,"
	" projection_name, tenant_id, arguments, result)"
	" VALUES ($1, $2, $3, $4, $5, $6, $7)",
	.expect = SPI_OK_INSERT,
	.nargs = 7,
	.argtypes = {TEXTOID, TEXTOID, TEXTOID, TEXTOID, TEXTOID, JSONBOID,
	TEXTOID},
};

/* Rows are numbered in the order of their times, or nearly so. */
static PjStatement prune = {
	.sql = "DELETE FROM projector.audit_log WHERE id = ANY (ARRAY"
	" (SELECT id FROM (SELECT id, happened_at FROM projector.audit_log"
	" ORDER BY id LIMIT $2) oldest WHERE happened_at < $1))",
	.expect = SPI_OK_DELETE,
	.nargs = 2,
	.argtypes = {TIMESTAMPTZOID, INT4OID},
};

/* ---- arguments ---- */

/* Is it the content of an event? */
static bool
is_secret(const char *name)
{
	return strcmp(name, "payload") == 0 || strcmp(name, "metadata") == 0 ||
		strcmp(name, "events") == 0;
}

static JsonbValue
json_string(char *value)
{
	JsonbValue	json = {.type = jbvString};

	json.val.string.val = value;
	json.val.string.len = strlen(value);
	return json;
}

static void
push_array(JsonbParseState **state, Datum value)
{
	Datum	   *elems;
	bool	   *nulls;
	int			n;

	deconstruct_array(DatumGetArrayTypeP(value), TEXTOID, -1, false,
					  TYPALIGN_INT, &elems, &nulls, &n);
	pushJsonbValue(state, WJB_BEGIN_ARRAY, NULL);
	for (int i = 0; i < n; i++)
	{
		JsonbValue	json = {.type = jbvNull};

		if (!nulls[i])
			json = json_string(TextDatumGetCString(elems[i]));
		pushJsonbValue(state, WJB_ELEM, &json);
	}
	pushJsonbValue(state, WJB_END_ARRAY, NULL);
}

/* Add the value of an argument.  All types are the server's own. */
static void
push_value(JsonbParseState **state, Datum value, Oid type)
{
	JsonbValue	json;
	Oid			output;
	bool		varlena;

	switch (type)
	{
		case BOOLOID:
			json.type = jbvBool;
			json.val.boolean = DatumGetBool(value);
			break;
		case INT4OID:
		case INT8OID:
			json.type = jbvNumeric;
			json.val.numeric = int64_to_numeric(type == INT4OID ?
												DatumGetInt32(value) :
												DatumGetInt64(value));
			break;
		case JSONBOID:
			JsonbToJsonbValue(DatumGetJsonbP(value), &json);
			break;
		case TEXTARRAYOID:
			push_array(state, value);
			return;
		default:
			getTypeOutputInfo(type, &output, &varlena);
			json = json_string(OidOutputFunctionCall(output, value));
			break;
	}
	pushJsonbValue(state, WJB_VALUE, &json);
}

/* A call of one of our functions. */
typedef struct Call
{
	FunctionCallInfo fcinfo;
	Oid		   *types;			/* of its arguments */
	char	  **names;
} Call;

static void
describe_call(FunctionCallInfo fcinfo, Call *call)
{
	Oid			function = fcinfo->flinfo->fn_oid;
	HeapTuple	row = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	char	   *modes;

	if (!HeapTupleIsValid(row))
		elog(ERROR, "cache lookup failed for function %u", function);
	call->fcinfo = fcinfo;
	(void) get_func_arg_info(row, &call->types, &call->names, &modes);
	ReleaseSysCache(row);
}

/* Returns the arguments that are not null, without the contents of events. */
static Datum
arguments_of(const Call *call)
{
	JsonbParseState *state = NULL;
	JsonbValue *object;

	pushJsonbValue(&state, WJB_BEGIN_OBJECT, NULL);
	for (int i = 0; i < call->fcinfo->nargs; i++)
	{
		JsonbValue	name = json_string(call->names[i]);

		if (call->fcinfo->args[i].isnull || is_secret(call->names[i]))
			continue;
		pushJsonbValue(&state, WJB_KEY, &name);
		push_value(&state, call->fcinfo->args[i].value, call->types[i]);
	}
	object = pushJsonbValue(&state, WJB_END_OBJECT, NULL);
	return JsonbPGetDatum(JsonbValueToJsonb(object));
}

/* Returns an argument by its name, 0 if it is null or there is none. */
static Datum
argument_of(const Call *call, const char *name)
{
	for (int i = 0; i < call->fcinfo->nargs; i++)
		if (strcmp(call->names[i], name) == 0)
			return call->fcinfo->args[i].isnull ? 0 :
				call->fcinfo->args[i].value;
	return 0;
}

/* ---- rows ---- */

/* The name of a function, without the prefix that all of them have. */
static char *
action_of(FunctionCallInfo fcinfo)
{
	return get_func_name(fcinfo->flinfo->fn_oid) + strlen("projector_");
}

/*
 * Record a call.  "projection" is the projection's name if no argument says
 * it; "result" may be NULL.  The caller's own role is current.
 */
void
pj_audit(FunctionCallInfo fcinfo, const char *projection, const char *result)
{
	char		nulls[] = "       ";
	Datum		values[7];
	PjContext	saved;
	Call		call;

	describe_call(fcinfo, &call);
	values[0] = CStringGetTextDatum(GetUserNameFromId(GetUserId(), false));
	values[1] = CStringGetTextDatum(GetUserNameFromId(GetSessionUserId(),
													  false));
	values[2] = CStringGetTextDatum(action_of(fcinfo));
	values[3] = projection ? CStringGetTextDatum(projection) :
		argument_of(&call, "name");
	values[4] = argument_of(&call, "tenant_id");
	values[5] = arguments_of(&call);
	values[6] = result ? CStringGetTextDatum(result) : 0;
	for (int i = 0; i < lengthof(values); i++)
		if (values[i] == 0)
			nulls[i] = 'n';
	pj_enter_internal(&saved);
	pj_execute(&insert_row, values, nulls);
	pj_leave_internal(&saved);
}

/* The same, if the result is a number. */
void
pj_audit_count(FunctionCallInfo fcinfo, int64 count)
{
	pj_audit(fcinfo, NULL, psprintf("%lld", (long long) count));
}

/* ---- deleting ---- */

/* Rows that happened before this may be deleted. */
static TimestampTz
end_of_retention(void)
{
	return pj_audit_retention == 0 ? DT_NOBEGIN :
		TimestampTzPlusMilliseconds(GetCurrentTimestamp(),
									-(int64) pj_audit_retention * 60 * 1000);
}

/* Delete some old rows.  Returns their number. */
int64
pj_audit_prune(int max_rows)
{
	Datum		values[2] = {TimestampTzGetDatum(end_of_retention()),
	Int32GetDatum(max_rows)};

	return pj_audit_retention == 0 ? 0 : pj_execute(&prune, values, NULL);
}

/* Refuses to change rows, and to delete them before their time. */
Datum
projector_audit_guard(PG_FUNCTION_ARGS)
{
	bool		is_row = CALLED_AS_TRIGGER(fcinfo) &&
	TRIGGER_FIRED_FOR_ROW(((TriggerData *) fcinfo->context)->tg_event);
	TriggerData *data = pj_trigger_data(fcinfo, "audit_guard", &audit_table,
										is_row ? PJ_BEFORE_ROW :
										PJ_BEFORE_STATEMENT, PJ_ANY_EVENT);
	bool		isnull;

	if (is_row && TRIGGER_FIRED_BY_DELETE(data->tg_event))
	{
		TupleDesc	desc = RelationGetDescr(data->tg_relation);
		int			column = SPI_fnumber(desc, "happened_at");
		Datum		value = SPI_getbinval(data->tg_trigtuple, desc, column,
										  &isnull);

		if (DatumGetTimestampTz(value) < end_of_retention())
			return PointerGetDatum(data->tg_trigtuple);
	}
	ereport(ERROR,
			errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			errmsg("the audit log is append-only"),
			errdetail("Rows are deleted after projector.audit_retention only."));
}
