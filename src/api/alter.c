/*
 * alter.c
 *	  projector_alter(): change a projection's definition, owner and name.
 */
#include "base/compat.h"

#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"

#include "api/definition_row.h"
#include "base/args.h"
#include "base/statement.h"
#include "ipc/wakeup.h"
#include "kinds/change.h"
#include "kinds/definition.h"
#include "sandbox/user_context.h"
#include "state/audit.h"

PG_FUNCTION_INFO_V1(projector_alter);

static PjStatement rename_projection = {
	.sql = "UPDATE projector.projections SET name = $2"
	" WHERE projection_id = $1",
	.expect = SPI_OK_UPDATE,
	.nargs = 2,
	.argtypes = {INT4OID, TEXTOID},
};

/* Projections that depend on a renamed one refer to it by name. */
static PjStatement rename_dependency = {
	.sql = "UPDATE projector.projections SET options = jsonb_set(options,"
	" '{depends_on}', (SELECT jsonb_agg(CASE WHEN d = $1 THEN $2 ELSE d END)"
	" FROM jsonb_array_elements_text(options->'depends_on') d))"
	" WHERE options->'depends_on' ? $1",
	.expect = SPI_OK_UPDATE,
	.nargs = 2,
	.argtypes = {TEXTOID, TEXTOID},
};

/*
 * A user who gives a projection away must also be able to act as the new
 * owner, because its code then runs with the new owner's privileges.  That the
 * user owns the projection has been checked.
 */
static void
check_new_owner(const PjProjection *projection, Oid owner)
{
	if (!OidIsValid(owner))
		(void) pj_projection_owner(projection); /* raises an error */
	if (owner == pj_projection_role(projection))
		return;
	if (!pj_may_become(GetUserId(), owner))
		ereport(ERROR,
				errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				errmsg("must be member of role \"%s\" to make it owner of projection \"%s\"",
					   GetUserNameFromId(owner, false), projection->name));
}

/* Rename a projection, if "changes" contains a name. */
static void
give_name(int32 id, const char *old, Jsonb *changes)
{
	Datum		values[2];
	PjContext	saved;
	PjOptions	options;
	JsonbValue	value;
	char	   *name;

	if (!pj_json_member(changes, "name", &value))
		return;
	name = pnstrdup(value.val.string.val, value.val.string.len);
	if (strcmp(name, old) == 0)
		return;
	pj_definition_check_name(name);
	PreventCommandIfReadOnly("projector_alter()");
	pj_definition_lock_name(name);
	if (pj_projection_exists(name))
		pj_definition_refuse_existing(name);
	pj_options_parse(pj_projection_by_id(id)->options_json, &options);
	pj_definition_check_circle(name, options.depends_on);
	pj_enter_internal(&saved);
	values[0] = Int32GetDatum(id);
	values[1] = CStringGetTextDatum(name);
	pj_registry_update(&rename_projection, values, NULL);
	values[0] = CStringGetTextDatum(old);
	pj_execute(&rename_dependency, values, NULL);
	pj_leave_internal(&saved);
}

/* Changes a projection: definition, options, settings, owner, name. */
Datum
projector_alter(PG_FUNCTION_ARGS)
{
	PjProjection *projection;
	PjDefinition definition;
	Jsonb	   *changes;
	int32		id;
	char	   *name;
	bool		redefined;

	pj_refuse_in_user_code("projector_alter");
	pj_wake_at_commit();
	changes = DatumGetJsonbP(pj_required(fcinfo, 1, "changes"));
	projection = pj_projection_own(pj_required_name(fcinfo, 0, "name"),
								   ExclusiveLock);
	definition = pj_definition_of(projection);
	redefined = pj_definition_change(&definition, changes);
	check_new_owner(projection, definition.owner);
	pj_definition_check(&definition, definition.owner);
	id = projection->id;
	name = pstrdup(projection->name);
	pj_definition_replace(projection, &definition, redefined);
	give_name(id, name, changes);
	pj_audit(fcinfo, NULL, NULL);

	PG_RETURN_VOID();
}
