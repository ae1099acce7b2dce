/*
 * change.c
 *	  Read the changes to a projection's definition.
 */
#include "base/compat.h"

#include "catalog/pg_type.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"

#include "base/statement.h"
#include "kinds/change.h"
#include "sandbox/user_context.h"

static PjStatement merge = {
	.sql = "SELECT jsonb_strip_nulls($1 || $2) /* projector */",
	.expect = SPI_OK_SELECT,
	.nargs = 2,
	.argtypes = {JSONBOID, JSONBOID},
};

static Datum
json_text_array(JsonbValue *value, const char *name)
{
	JsonbIterator *it;
	JsonbIteratorToken token;
	JsonbValue	elem;
	ArrayBuildState *array = initArrayResult(TEXTOID, CurrentMemoryContext,
											 false);

	if (value->type != jbvBinary ||
		!JsonContainerIsArray(value->val.binary.data))
		ereport(ERROR,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("\"%s\" must be an array of strings", name));

	it = JsonbIteratorInit(value->val.binary.data);
	while ((token = JsonbIteratorNext(&it, &elem, true)) != WJB_DONE)
	{
		if (token != WJB_ELEM)
			continue;
		if (elem.type != jbvString)
			ereport(ERROR,
					errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					errmsg("\"%s\" must be an array of strings", name));
		array = accumArrayResult(array,
								 PointerGetDatum(cstring_to_text_with_len(elem.val.string.val,
																		  elem.val.string.len)),
								 false, TEXTOID, CurrentMemoryContext);
	}
	return makeArrayResult(array, CurrentMemoryContext);
}

/*
 * Returns an object with some members replaced, and those set to null removed.
 */
static Jsonb *
merged_object(Jsonb *old, JsonbValue *changes, const char *name)
{
	Datum		values[2] = {JsonbPGetDatum(old)};
	PjContext	saved;
	Jsonb	   *result;
	bool		isnull;

	if (changes->type != jbvBinary ||
		!JsonContainerIsObject(changes->val.binary.data))
		ereport(ERROR,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("\"%s\" must be a JSON object", name));
	values[1] = JsonbPGetDatum(JsonbValueToJsonb(changes));
	pj_enter_internal(&saved);
	pj_execute(&merge, values, NULL);
	result = DatumGetJsonbPCopy(pj_result(0, 1, &isnull));
	pj_leave_internal(&saved);
	return result;
}

static const char *
json_string(JsonbValue *value, const char *name)
{
	if (value->type != jbvString)
		ereport(ERROR,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("\"%s\" must be a string", name));
	return pnstrdup(value->val.string.val, value->val.string.len);
}

/* The code of a projection can be changed, but not its kind. */
static bool
read_code_change(PjDefinition *definition, const char *name,
				 JsonbValue *value)
{
	if (strcmp(name, pj_kind_names[definition->kind->id]) != 0)
		return false;
	switch (definition->kind->id)
	{
		case PJ_KIND_HANDLER:
			definition->handler = json_string(value, name);
			break;
		case PJ_KIND_FOLD:
			definition->fold = json_string(value, name);
			break;
		case PJ_KIND_FOLD_COLUMNS:
			definition->fold_columns = merged_object(definition->fold_columns,
													 value, name);
			break;
		case PJ_KIND_STATEMENT:
			definition->statement = json_string(value, name);
			break;
	}
	return true;
}

static void
read_change(PjDefinition *definition, const char *name, JsonbValue *value)
{
	if (read_code_change(definition, name, value))
		return;
	if (strcmp(name, "targets") == 0)
		definition->targets = value->type == jbvNull ? (Datum) 0 :
			json_text_array(value, name);
	else if (strcmp(name, "event_types") == 0)
		definition->event_types = value->type == jbvNull ? (Datum) 0 :
			json_text_array(value, name);
	else if (strcmp(name, "options") == 0)
		definition->options = merged_object(definition->options, value, name);
	else if (strcmp(name, "settings") == 0)
		definition->settings = merged_object(definition->settings, value,
											 name);
	else if (strcmp(name, "owner") == 0)
		definition->owner = get_role_oid(json_string(value, name), false);
	else if (strcmp(name, "name") == 0)
		(void) json_string(value, name);	/* projector_alter() handles it */
	else if (strcmp(name, "mode") == 0)
		ereport(ERROR,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("the mode is not part of a projection's definition"),
				errhint("Use projector_set_mode."));
	else
		ereport(ERROR,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("\"%s\" of a projection cannot be changed", name),
				errhint("What can be changed is \"%s\", \"targets\", \"event_types\", \"options\", \"settings\", \"owner\" and \"name\".",
						pj_kind_names[definition->kind->id]));
}

/*
 * Read the changes.  Returns true if they change what the projection is, and
 * so what its read model should contain; false if they only change how it is
 * run.
 */
bool
pj_definition_change(PjDefinition *definition, Jsonb *changes)
{
	JsonbIterator *it;
	JsonbIteratorToken token;
	JsonbValue	key,
				value;
	bool		redefined = false;

	if (!JB_ROOT_IS_OBJECT(changes))
		ereport(ERROR,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("changes must be a JSON object"));
	it = JsonbIteratorInit(&changes->root);
	while ((token = JsonbIteratorNext(&it, &key, true)) != WJB_DONE)
	{
		char	   *name;

		if (token != WJB_KEY)
			continue;
		name = pnstrdup(key.val.string.val, key.val.string.len);

		(void) JsonbIteratorNext(&it, &value, true);
		read_change(definition, name, &value);
		redefined = redefined || (strcmp(name, "options") != 0 &&
								  strcmp(name, "owner") != 0 &&
								  strcmp(name, "name") != 0);
	}
	return redefined;
}

/*
 * Returns the projection as it would be with another definition.  It gets a
 * version of its own, so that code cached for the registered projection is not
 * used for it.
 */
void
pj_projection_changed(const PjProjection *projection,
					  const PjDefinition *definition, PjProjection *changed)
{
	static uint64 changes = 0;

	*changed = *projection;
	changed->handler = definition->handler;
	changed->fold = definition->fold;
	changed->fold_columns = definition->fold_columns;
	changed->statement = definition->statement;
	changed->resolved = true;
	changed->owner_oid = definition->owner;
	changed->targets = definition->targets;
	changed->target_oids = definition->target_oids;
	changed->redefinitions = definition->redefinitions;
	changed->event_types = definition->event_types;
	changed->types = NULL;
	changed->ntypes = 0;
	if (definition->event_types)
		deconstruct_array(DatumGetArrayTypeP(definition->event_types), TEXTOID,
						  -1, false, TYPALIGN_INT, &changed->types, NULL,
						  &changed->ntypes);
	changed->search_path = definition->search_path;
	changed->options_json = definition->options;
	pj_options_parse(definition->options, &changed->options);
	changed->settings_json = definition->settings;
	changed->settings = pj_settings_parse(definition->settings);
	changed->version = PG_UINT64_MAX - changes++;
}
