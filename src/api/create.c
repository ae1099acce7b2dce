/*
 * create.c
 *	  projector_create() and projector_drop().
 */
#include "base/compat.h"

#include "catalog/namespace.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"

#include "api/definition_row.h"
#include "base/args.h"
#include "base/guc.h"
#include "base/statement.h"
#include "base/version.h"
#include "ipc/shmem.h"
#include "ipc/wakeup.h"
#include "kinds/definition.h"
#include "rebuild/run.h"
#include "registry/target.h"
#include "sandbox/user_context.h"
#include "state/audit.h"

PG_FUNCTION_INFO_V1(projector_create);
PG_FUNCTION_INFO_V1(projector_drop);

#define DELETE_FROM(table) \
	{ \
		.sql = "DELETE FROM projector." table " WHERE projection_id = $1", \
		.expect = SPI_OK_DELETE, \
		.nargs = 1, \
		.argtypes = {INT4OID}, \
	}

static PjStatement delete_projection = DELETE_FROM("projections");

static PjStatement delete_rows[] = {
	DELETE_FROM("projection_offsets"),
	DELETE_FROM("projection_cursors"),
	DELETE_FROM("projection_deltas"),
	DELETE_FROM("projection_digests"),
	DELETE_FROM("apply_outbox"),
	DELETE_FROM("projection_failures"),
	DELETE_FROM("projection_runs"),
	DELETE_FROM("projection_run_slices"),
};

/* ---- arguments of create ---- */

/*
 * Returns the effective search_path as a list of names: with "$user" resolved,
 * without missing schemas, and with pg_temp last.
 */
static char *
effective_search_path(void)
{
	List	   *path = fetch_search_path(false);
	StringInfoData str;
	ListCell   *cell;

	initStringInfo(&str);
	foreach(cell, path)
	{
		char	   *schema = get_namespace_name(lfirst_oid(cell));

		if (schema != NULL && !isAnyTempNamespace(lfirst_oid(cell)))
			appendStringInfo(&str, "%s, ", quote_identifier(schema));
	}
	appendStringInfoString(&str, "pg_temp");
	return str.data;
}

/* Exactly one of the four arguments must say what the projection does. */
static void
read_code(FunctionCallInfo fcinfo, PjDefinition *definition)
{
	int			given = 0;

	static const char *const names[] = {NULL, "handler", "fold",
	"fold_columns", "statement"};
	StringInfoData list;

	initStringInfo(&list);
	for (int argno = 1; argno <= 4; argno++)
		if (!PG_ARGISNULL(argno))
			appendStringInfo(&list, "%s%s", given++ ? ", " : "",
							 names[argno]);
	if (given != 1)
		ereport(ERROR,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("a projection needs exactly one of handler, fold, fold_columns and statement"),
				given ? errdetail("These were given: %s.", list.data) :
				errdetail("None of them was given."),
				errhint("Name the arguments: projector_create('name', handler => 'function', targets => '{table}')."));
	if (!PG_ARGISNULL(1))
	{
		definition->kind = &pj_kind_handler;
		definition->handler = text_to_cstring(PG_GETARG_TEXT_PP(1));
	}
	else if (!PG_ARGISNULL(2))
	{
		definition->kind = &pj_kind_fold;
		definition->fold = text_to_cstring(PG_GETARG_TEXT_PP(2));
	}
	else if (!PG_ARGISNULL(3))
	{
		definition->kind = &pj_kind_fold_columns;
		definition->fold_columns = PG_GETARG_JSONB_P(3);
	}
	else
	{
		definition->kind = &pj_kind_statement;
		definition->statement = text_to_cstring(PG_GETARG_TEXT_PP(4));
	}
}

/* A member that is null stands for its default, as in projector_alter(). */
static Jsonb *
read_object(FunctionCallInfo fcinfo, int argno, const char *name)
{
	return DatumGetJsonbP(DirectFunctionCall1(jsonb_strip_nulls,
											  pj_required(fcinfo, argno,
														  name)));
}

static void
read_create_arguments(FunctionCallInfo fcinfo, PjDefinition *definition)
{
	memset(definition, 0, sizeof(*definition));
	definition->name = pj_required_name(fcinfo, 0, "name");
	read_code(fcinfo, definition);
	definition->targets = pj_optional(fcinfo, 5);
	definition->key = pj_required_name(fcinfo, 6, "key");
	definition->event_types = pj_optional(fcinfo, 7);
	definition->mode = pj_mode(pj_required_name(fcinfo, 8, "mode"));
	definition->ordering = PG_ARGISNULL(9) ? PJ_ORDERING_UNSET :
		pj_ordering(text_to_cstring(PG_GETARG_TEXT_PP(9)));
	if (strcmp(pj_required_name(fcinfo, 10, "source"), "events") != 0)
		ereport(ERROR,
				errcode(ERRCODE_UNDEFINED_OBJECT),
				errmsg("source \"%s\" does not exist",
					   text_to_cstring(PG_GETARG_TEXT_PP(10))),
				errhint("The only source is \"events\"."));
	definition->options = read_object(fcinfo, 11, "options");
	definition->settings = read_object(fcinfo, 13, "settings");
}

/* ---- messages to the user ---- */

/* Tell the user that, without preloading, a worker is started by an append. */
static void
notice_workers(PjMode mode)
{
	if (mode == PJ_OFF || pj_preloaded() || !pj_enabled || !pj_autostart)
		return;
	ereport(NOTICE,
			errmsg("a worker is started when there is work to do"),
			errdetail("The library is not preloaded. If it is, projector.workers of them run in each database from server start on, so that retries and work left from before do not wait for an append."),
			errhint("Add \"projector\" to shared_preload_libraries and restart the server."));
}

/*
 * If a projection was dropped and is created again, its targets may still
 * contain its old rows, and the log's events would be counted twice.
 */
static void
warn_of_rows(const PjDefinition *definition)
{
	PjOptions	options;

	pj_options_parse(definition->options, &options);
	if (options.shared_targets)
		return;					/* the rows belong to the other projection */
	for (int i = 0; i < pj_definition_targets(definition); i++)
		if (pj_target_has_rows(definition->target_oids[i]))
			ereport(WARNING,
					errmsg("target table \"%s\" has rows already",
						   get_rel_name(definition->target_oids[i])),
					errdetail("The log's events are applied on top of them."),
					errhint("If they came from the same events, run projector_rebuild(%s), which clears them first.",
							quote_literal_cstr(definition->name)));
}

/* ---- create ---- */

/* Are two jsonb values or arrays equal?  Either may be missing. */
static bool
are_same_datums(Datum a, Datum b)
{
	if (a == 0 || b == 0)
		return a == b;
	return datum_image_eq(PointerGetDatum(PG_DETOAST_DATUM(a)),
						  PointerGetDatum(PG_DETOAST_DATUM(b)), false, -1);
}

static bool
are_same_strings(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

/* Is a checked definition the same as that in the registry? */
static bool
is_same_definition(const PjDefinition *a, const PjDefinition *b)
{
	return are_same_strings(a->handler, b->handler) &&
		are_same_strings(a->fold, b->fold) &&
		are_same_strings(a->statement, b->statement) &&
		are_same_strings(a->search_path, b->search_path) &&
		are_same_datums(PointerGetDatum(a->fold_columns),
						PointerGetDatum(b->fold_columns)) &&
		are_same_datums(a->targets, b->targets) &&
		are_same_datums(pj_definition_types(a), pj_definition_types(b)) &&
		are_same_datums(PointerGetDatum(a->settings),
						PointerGetDatum(b->settings));
}

/*
 * Raise an error: this property of an existing projection cannot be changed.
 */
static void
refuse_other(const PjDefinition *definition, const char *what,
			 const char *is, const char *wanted)
{
	ereport(ERROR,
			errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			errmsg("cannot replace projection \"%s\": its %s is \"%s\", not \"%s\"",
				   definition->name, what, is, wanted),
			errhint("Drop it with projector_drop and create it again. The read model stays; rebuild it afterwards."));
}

/* or_replace does not change the mode, which operators choose. */
static void
notice_mode(const PjDefinition *definition, PjMode wanted)
{
	ereport(NOTICE,
			errmsg("projection \"%s\" stays in mode \"%s\"",
				   definition->name, pj_mode_names[definition->mode]),
			errhint("Change it with projector_set_mode(%s, '%s').",
					quote_literal_cstr(definition->name),
					pj_mode_names[wanted]));
}

/*
 * Change an existing projection to what the arguments of projector_create()
 * say.  Its mode and pauses do not change.  Returns what was done.
 */
static const char *
replace_projection(PjDefinition *wanted)
{
	PjProjection *projection = pj_projection_own(wanted->name, ExclusiveLock);
	PjDefinition definition = pj_definition_of(projection);
	PjDefinition before = definition;
	bool		redefined;

	(void) pj_projection_owner(projection); /* it must exist */
	if (wanted->kind != definition.kind)
		refuse_other(&definition, "kind",
					 pj_kind_names[definition.kind->id],
					 pj_kind_names[wanted->kind->id]);
	if (strcmp(wanted->key, definition.key) != 0)
		refuse_other(&definition, "key", definition.key, wanted->key);
	if (wanted->ordering != PJ_ORDERING_UNSET &&
		wanted->ordering != definition.ordering)
		refuse_other(&definition, "ordering",
					 pj_ordering_names[definition.ordering],
					 pj_ordering_names[wanted->ordering]);
	if (wanted->mode != PJ_ASYNC && wanted->mode != definition.mode)
		notice_mode(&definition, wanted->mode);
	definition.handler = wanted->handler;
	definition.fold = wanted->fold;
	definition.fold_columns = wanted->fold_columns;
	definition.statement = wanted->statement;
	definition.targets = wanted->targets;
	definition.event_types = wanted->event_types;
	definition.options = wanted->options;
	definition.settings = wanted->settings;
	definition.search_path = effective_search_path();
	pj_definition_check(&definition, definition.owner);
	redefined = !is_same_definition(&definition, &before);
	if (!redefined &&
		are_same_datums(PointerGetDatum(definition.options),
						PointerGetDatum(before.options)))
		return "unchanged";
	pj_definition_replace(projection, &definition, redefined);
	return "changed";
}

static void
register_projection(PjDefinition *definition, Oid owner)
{
	definition->search_path = effective_search_path();
	definition->owner = owner;
	pj_definition_check(definition, owner);
	pj_definition_guard(definition);
	pj_definition_insert(definition, owner);
	warn_of_rows(definition);
	notice_workers(definition->mode);
}

/* Registers a projection, or with or_replace changes it. */
Datum
projector_create(PG_FUNCTION_ARGS)
{
	PjDefinition definition;
	Oid			owner = GetUserId();
	const char *result = "created";

	pj_refuse_in_user_code("projector_create");
	pj_version_require_current();
	pj_wake_at_commit();
	read_create_arguments(fcinfo, &definition);
	PreventCommandIfReadOnly("projector_create()");
	pj_definition_lock_name(definition.name);
	if (DatumGetBool(pj_required(fcinfo, 12, "or_replace")) &&
		pj_projection_exists(definition.name))
		result = replace_projection(&definition);
	else
		register_projection(&definition, owner);
	pj_audit(fcinfo, NULL, result);

	PG_RETURN_TEXT_P(cstring_to_text(result));
}

/* ---- drop ---- */

/* Projections that depend on one that is dropped no longer do. */
static PjStatement remove_dependency = {
	.sql = "UPDATE projector.projections SET options = CASE"
	" WHEN jsonb_array_length(options->'depends_on') > 1"
	" THEN jsonb_set(options, '{depends_on}', (options->'depends_on') - $1)"
	" ELSE options - 'depends_on' END"
	" WHERE options->'depends_on' ? $1 RETURNING name",
	.expect = SPI_OK_UPDATE_RETURNING,
	.nargs = 1,
	.argtypes = {TEXTOID},
};

static void
forget_dependency(const char *name)
{
	Datum		values[1] = {CStringGetTextDatum(name)};
	Datum	   *names;
	int			n;

	pj_execute(&remove_dependency, values, NULL);
	n = pj_result_texts(&names);
	for (int i = 0; i < n; i++)
		ereport(NOTICE,
				errmsg("projection \"%s\" no longer depends on \"%s\"",
					   TextDatumGetCString(names[i]), name));
}

/* Drops a projection and its bookkeeping, but not its read model. */
Datum
projector_drop(PG_FUNCTION_ARGS)
{
	PjProjection *projection;
	Datum		values[1];
	PjContext	saved;

	pj_refuse_in_user_code("projector_drop");
	projection = pj_projection_own(pj_required_name(fcinfo, 0, "name"),
								   ExclusiveLock);
	values[0] = Int32GetDatum(projection->id);
	pj_enter_internal(&saved);
	pj_runs_forget(projection);
	forget_dependency(projection->name);
	pj_registry_update(&delete_projection, values, NULL);
	for (int i = 0; i < lengthof(delete_rows); i++)
		pj_execute(&delete_rows[i], values, NULL);
	pj_leave_internal(&saved);
	pj_definition_unguard(projection, NULL, 0);
	pj_audit(fcinfo, NULL, NULL);

	PG_RETURN_VOID();
}
