/*
 * projections.c
 *	  Registering projections, changing and removing them.
 *
 * Whoever changes a registry row holds the projection's lock exclusively
 * until the end of the transaction.  That keeps out all who apply, so that
 * afterwards nobody goes by the old row: an appender that cannot get the lock
 * queues its events.
 */
#include "base/compat.h"

#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "nodes/pg_list.h"
#include "storage/lockdefs.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/fmgroids.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"

#include "apply/read_model.h"
#include "base/args.h"
#include "base/guc.h"
#include "base/lock.h"
#include "base/statement.h"
#include "base/text.h"
#include "ipc/shmem.h"
#include "ipc/wakeup.h"
#include "kinds/change.h"
#include "kinds/definition.h"
#include "rebuild/clear.h"
#include "rebuild/run.h"
#include "registry/identity.h"
#include "registry/options.h"
#include "registry/projection.h"
#include "registry/target.h"
#include "registry/target_guard.h"
#include "sandbox/user_context.h"
#include "state/failure.h"
#include "state/outbox.h"

PG_FUNCTION_INFO_V1(projector_create);
PG_FUNCTION_INFO_V1(projector_alter);
PG_FUNCTION_INFO_V1(projector_drop);
PG_FUNCTION_INFO_V1(projector_adopt);

static PjStatement insert_projection = {
	.sql = "INSERT INTO projector.projections (name, owner, kind, handler,"
	" fold, fold_columns, statement, targets, key, event_types, mode,"
	" ordering, options, home, definition_hash, search_path, owner_oid,"
	" target_oids, resolved_in, settings)"
	" VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14,"
	" $15, $16, $17, $18, $19, $20)"
	" ON CONFLICT (name) DO NOTHING RETURNING projection_id",
	.expect = SPI_OK_INSERT_RETURNING,
	.nargs = 20,
	.argtypes = {TEXTOID, TEXTOID, TEXTOID, TEXTOID, TEXTOID, JSONBOID,
		TEXTOID, TEXTARRAYOID, TEXTOID, TEXTARRAYOID, TEXTOID, TEXTOID,
		JSONBOID, TEXTOID, BYTEAOID, TEXTOID, OIDOID, OIDARRAYOID, OIDOID,
	JSONBOID},
};

static PjStatement update_definition = {
	.sql = "UPDATE projector.projections SET handler = $2, fold = $3,"
	" fold_columns = $4, statement = $5, targets = $6, event_types = $7,"
	" options = $8, definition_hash = coalesce($9, definition_hash),"
	" owner = $10, owner_oid = $11, target_oids = $12, resolved_in = $13,"
	" target_changes = $14, settings = $15 WHERE projection_id = $1",
	.expect = SPI_OK_UPDATE,
	.nargs = 15,
	.argtypes = {INT4OID, TEXTOID, TEXTOID, JSONBOID, TEXTOID, TEXTARRAYOID,
		TEXTARRAYOID, JSONBOID, BYTEAOID, TEXTOID, OIDOID, OIDARRAYOID, OIDOID,
	INT4OID, JSONBOID},
};

/* Read models that are there go by the definition there was. */
static PjStatement keep_hashes = {
	.sql = "UPDATE projector.projection_cursors c"
	" SET definition_hash = p.definition_hash FROM projector.projections p"
	" WHERE p.projection_id = $1 AND c.projection_id = $1"
	" AND c.definition_hash IS NULL",
	.expect = SPI_OK_UPDATE,
	.nargs = 1,
	.argtypes = {INT4OID},
};

static PjStatement rename_projection = {
	.sql = "UPDATE projector.projections SET name = $2"
	" WHERE projection_id = $1",
	.expect = SPI_OK_UPDATE,
	.nargs = 2,
	.argtypes = {INT4OID, TEXTOID},
};

/* Those that depend on a projection name it. */
static PjStatement rename_dependency = {
	.sql = "UPDATE projector.projections SET options = jsonb_set(options,"
	" '{depends_on}', (SELECT jsonb_agg(CASE WHEN d = $1 THEN $2 ELSE d END)"
	" FROM jsonb_array_elements_text(options->'depends_on') d))"
	" WHERE options->'depends_on' ? $1",
	.expect = SPI_OK_UPDATE,
	.nargs = 2,
	.argtypes = {TEXTOID, TEXTOID},
};

static PjStatement adopt = {
	.sql = "UPDATE projector.projections SET home = $2, handover_log_seq = NULL"
	" WHERE projection_id = $1",
	.expect = SPI_OK_UPDATE,
	.nargs = 2,
	.argtypes = {INT4OID, TEXTOID},
};

/* Cursors and outbox are as true as they were where the copy was made. */
static PjStatement replay_cursors = {
	.sql = "UPDATE projector.projection_cursors"
	" SET state = 'replaying', updated_at = now() WHERE projection_id = $1",
	.expect = SPI_OK_UPDATE,
	.nargs = 1,
	.argtypes = {INT4OID},
};

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
};

static int
count_targets(Datum targets)
{
	ArrayType  *names = DatumGetArrayTypeP(targets);

	return ArrayGetNItems(ARR_NDIM(names), ARR_DIMS(names));
}

/* ---- guards ---- */

/*
 * Guard the targets of a handler or statement.  A fold's rows are written by
 * the runtime.
 */
static void
guard_targets(const PjDefinition *definition)
{
	if (pj_is_fold(definition->kind->id))
		return;
	for (int i = 0; i < count_targets(definition->targets); i++)
		pj_guard_install(definition->target_oids[i]);
}

/* Does any other projection than this one write the table? */
static bool
is_others_target(const PjProjection *projection, Oid relid)
{
	PjProjection *projections;
	int			n = pj_projections(&projections);

	for (int i = 0; i < n; i++)
		if (projections[i].id != projection->id &&
			pj_target_is(&projections[i], relid))
			return true;
	return false;
}

/* Tables that are no longer targets need no guard; "left" are those that are. */
static void
unguard_targets(const PjProjection *projection, const Oid *left, int nleft)
{
	for (int i = 0; i < pj_target_count(projection); i++)
	{
		Oid			relid = pj_target_find(projection, i);
		bool		stays = !OidIsValid(relid);

		for (int j = 0; j < nleft; j++)
			stays = stays || left[j] == relid;
		if (!stays && !is_others_target(projection, relid))
			pj_guard_remove(relid);
	}
}

/* ---- arguments of create ---- */

/*
 * The search_path in effect, as names: what "$user" and missing schemas come
 * to now, with pg_temp last.
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

/* Exactly one of the four must say what the projection does. */
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
				given ? errdetail("Given were %s.", list.data) :
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
	definition->options = DatumGetJsonbP(pj_required(fcinfo, 11, "options"));
	definition->settings = DatumGetJsonbP(pj_required(fcinfo, 13, "settings"));
}

/* A parameter that may be null. */
static void
set_value(Datum *values, char *nulls, int i, Datum value)
{
	values[i] = value;
	nulls[i] = value == 0 ? 'n' : ' ';
}

static void
set_string(Datum *values, char *nulls, int i, const char *str)
{
	set_value(values, nulls, i, str ? CStringGetTextDatum(str) : 0);
}

/* The four of which one says what the projection does. */
static void
set_code(Datum *values, char *nulls, int i, const PjDefinition *definition)
{
	set_string(values, nulls, i, definition->handler);
	set_string(values, nulls, i + 1, definition->fold);
	set_value(values, nulls, i + 2, definition->fold_columns ?
			  JsonbPGetDatum(definition->fold_columns) : 0);
	set_string(values, nulls, i + 3, definition->statement);
}

/* The oids of its targets. */
static Datum
target_oids(const PjDefinition *definition)
{
	ArrayType  *names = DatumGetArrayTypeP(definition->targets);

	return pj_oid_array(definition->target_oids,
						ArrayGetNItems(ARR_NDIM(names), ARR_DIMS(names)));
}

static void
refuse_existing(const char *name)
{
	ereport(ERROR,
			errcode(ERRCODE_DUPLICATE_OBJECT),
			errmsg("projection \"%s\" already exists", name),
			errhint("Change it with projector_alter or with or_replace => true, or drop it with projector_drop."));
}

static void
insert_definition(const PjDefinition *definition, Oid owner)
{
	Datum		values[20];
	char		nulls[] = "                    ";
	PjContext	saved;
	bool		isnull;

	set_string(values, nulls, 0, definition->name);
	set_string(values, nulls, 1, GetUserNameFromId(owner, false));
	set_string(values, nulls, 2, pj_kind_names[definition->kind->id]);
	set_code(values, nulls, 3, definition);
	set_value(values, nulls, 7, definition->targets);
	set_string(values, nulls, 8, definition->key);
	set_value(values, nulls, 9, definition->event_types);
	set_string(values, nulls, 10, pj_mode_names[definition->mode]);
	set_string(values, nulls, 11, pj_ordering_names[definition->ordering]);
	set_value(values, nulls, 12, JsonbPGetDatum(definition->options));
	set_string(values, nulls, 13, pj_home());
	set_value(values, nulls, 14,
			  PointerGetDatum(pj_definition_hash(definition)));
	set_string(values, nulls, 15, definition->search_path);
	values[16] = ObjectIdGetDatum(owner);
	values[17] = target_oids(definition);
	values[18] = ObjectIdGetDatum(pj_registry_relid());
	set_value(values, nulls, 19, JsonbPGetDatum(definition->settings));

	pj_enter_internal(&saved);
	if (pj_execute(&insert_projection, values, nulls) == 0)
		refuse_existing(definition->name);
	pj_lock_projection(DatumGetInt32(pj_result(0, 1, &isnull)), ExclusiveLock,
					   true);
	pj_leave_internal(&saved);
}

/*
 * Say what the user may not expect: without preloading, it is appends that
 * start a worker.
 */
static void
notice_workers(PjMode mode)
{
	if (mode == PJ_OFF || pj_preloaded() || !pj_enabled || !pj_autostart)
		return;
	ereport(NOTICE,
			errmsg("a worker is started when there is work to do"),
			errdetail("The library is not preloaded. If it is, workers run from the start of the server on, also to retry and to finish what was left when it stopped, and projector.workers of them in each database."),
			errhint("Add \"projector\" to shared_preload_libraries and restart the server."));
}

/*
 * A projection that was dropped and is created again finds the rows of its
 * former life: the log's events would be counted twice.
 */
static void
warn_of_rows(const PjDefinition *definition)
{
	JsonbValue	shared;

	if (pj_json_member(definition->options, "shared_targets", &shared))
		return;					/* they are the other projection's */
	for (int i = 0; i < count_targets(definition->targets); i++)
		if (pj_target_has_rows(definition->target_oids[i]))
			ereport(WARNING,
					errmsg("target table \"%s\" has rows already",
						   get_rel_name(definition->target_oids[i])),
					errdetail("The log's events are applied on top of them."),
					errhint("If they came from the same events, run projector_rebuild('%s'), which clears them first.",
							definition->name));
}

/* ---- alter ---- */

/* A run must not find another definition halfway through. */
static void
refuse_runs(const PjProjection *projection)
{
	PjContext	saved;

	pj_enter_internal(&saved);
	pj_run_refuse(projection, 0);
	pj_leave_internal(&saved);
}

static bool
are_same_names(const char **a, const char **b)
{
	int			i = 0;

	while (a[i] && b[i] && strcmp(a[i], b[i]) == 0)
		i++;
	return a[i] == NULL && b[i] == NULL;
}

/* If other rows are to be hashed, or in another way, find all digests again. */
static void
refresh_digests(const PjProjection *projection,
				const PjDefinition *definition)
{
	PjProjection changed;
	Datum	   *tenants;
	int			n;

	pj_projection_changed(projection, definition, &changed);
	if (projection->options.digest == changed.options.digest &&
		are_same_names(projection->options.digest_ignore,
					   changed.options.digest_ignore) &&
		datum_image_eq(projection->targets, changed.targets, false, -1))
		return;
	pj_digests_forget(projection->id);
	if (!pj_digest_is_kept(&changed))
		return;
	n = pj_clear_tenants(&changed, &tenants);
	for (int i = 0; i < n; i++)
	{
		PjPair		pair = {.projection = &changed,.tenant = tenants[i]};

		pj_model_refresh(&pair, 0);
	}
}

/*
 * Whoever gives a projection away must be able to act as the new owner too: its
 * code gets the new owner's rights.  Owning the projection has been checked.
 */
static void
check_new_owner(const PjProjection *projection, Oid owner)
{
	if (!OidIsValid(owner))
		(void) pj_projection_owner(projection); /* raises an error */
	if (owner == pj_projection_role(projection))
		return;
	if (!is_member_of_role(GetUserId(), owner))
		ereport(ERROR,
				errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				errmsg("must be member of role \"%s\" to make it owner of projection \"%s\"",
					   GetUserNameFromId(owner, false), projection->name));
}

/* Are its targets other tables than they were? */
static bool
has_other_targets(const PjProjection *projection,
				  const PjDefinition *definition)
{
	int			n = pj_target_count(projection);

	if (count_targets(definition->targets) != n)
		return true;
	for (int i = 0; i < n; i++)
		if (definition->target_oids[i] != pj_target_find(projection, i))
			return true;
	return false;
}

/* Write a changed definition, and what follows from it. */
static void
update_projection(PjProjection *projection, const PjDefinition *definition,
				  bool redefined)
{
	Datum		values[15];
	char		nulls[] = "               ";
	PjContext	saved;

	set_value(values, nulls, 0, Int32GetDatum(projection->id));
	set_code(values, nulls, 1, definition);
	set_value(values, nulls, 5, definition->targets);
	set_value(values, nulls, 6, definition->event_types);
	set_value(values, nulls, 7, JsonbPGetDatum(definition->options));
	set_value(values, nulls, 8, redefined ?
			  PointerGetDatum(pj_definition_hash(definition)) : 0);
	set_string(values, nulls, 9, GetUserNameFromId(definition->owner, false));
	values[10] = ObjectIdGetDatum(definition->owner);
	values[11] = target_oids(definition);
	values[12] = ObjectIdGetDatum(projection->dormant ? InvalidOid :
								  pj_registry_relid());
	values[13] = Int32GetDatum(definition->target_changes);
	set_value(values, nulls, 14, JsonbPGetDatum(definition->settings));
	pj_enter_internal(&saved);
	if (redefined)
		pj_execute(&keep_hashes, values, NULL);
	pj_registry_update(&update_definition, values, nulls);
	if (definition->event_types)
		pj_outbox_unsubscribe(projection->id, definition->event_types);
	pj_failure_note_skips(projection);
	refresh_digests(projection, definition);
	pj_leave_internal(&saved);
}

/* Put a changed definition, which has been checked, in place of a projection's. */
static void
change_projection(PjProjection *projection, PjDefinition *definition,
				  bool redefined)
{
	if (redefined || definition->owner != pj_projection_role(projection))
		refuse_runs(projection);
	guard_targets(definition);
	unguard_targets(projection, definition->target_oids,
					count_targets(definition->targets));
	if (has_other_targets(projection, definition))
		definition->target_changes++;
	update_projection(projection, definition, redefined);
}

/* Give a projection the name that "changes" has for it, if it has one. */
static void
give_name(int32 id, const char *old, Jsonb *changes)
{
	Datum		values[2];
	PjContext	saved;
	JsonbValue	value;
	char	   *name;

	if (!pj_json_member(changes, "name", &value))
		return;
	name = pnstrdup(value.val.string.val, value.val.string.len);
	if (strcmp(name, old) == 0)
		return;
	pj_definition_check_name(name);
	if (pj_projection_exists(name))
		refuse_existing(name);
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
	change_projection(projection, &definition, redefined);
	give_name(id, name, changes);

	PG_RETURN_VOID();
}

/* ---- create ---- */

/* Is it the same JSON, or the same array?  Either may be missing. */
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

/* Does a definition that has been checked say what the registry says? */
static bool
is_same_definition(const PjDefinition *a, const PjDefinition *b)
{
	return are_same_strings(a->handler, b->handler) &&
		are_same_strings(a->fold, b->fold) &&
		are_same_strings(a->statement, b->statement) &&
		are_same_datums(PointerGetDatum(a->fold_columns),
						PointerGetDatum(b->fold_columns)) &&
		are_same_datums(a->targets, b->targets) &&
		are_same_datums(a->event_types, b->event_types) &&
		are_same_datums(PointerGetDatum(a->settings),
						PointerGetDatum(b->settings)) &&
		a->owner == b->owner;
}

/* What cannot be changed of a projection that exists. */
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

/*
 * Make a projection that exists what the arguments of projector_create() say.
 * How it is run, its mode and pauses, stays.  Returns what was done.
 */
static const char *
replace_projection(PjDefinition *wanted)
{
	PjProjection *projection = pj_projection_own(wanted->name, ExclusiveLock);
	PjDefinition definition = pj_definition_of(projection);
	PjDefinition before = definition;
	bool		redefined;

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
	definition.handler = wanted->handler;
	definition.fold = wanted->fold;
	definition.fold_columns = wanted->fold_columns;
	definition.statement = wanted->statement;
	definition.targets = wanted->targets;
	definition.event_types = wanted->event_types;
	definition.options = wanted->options;
	definition.settings = wanted->settings;
	pj_definition_check(&definition, definition.owner);
	redefined = !is_same_definition(&definition, &before);
	if (!redefined &&
		are_same_datums(PointerGetDatum(definition.options),
						PointerGetDatum(before.options)))
		return "unchanged";
	change_projection(projection, &definition, redefined);
	return "changed";
}

/* Registers a projection, or with or_replace changes it. */
Datum
projector_create(PG_FUNCTION_ARGS)
{
	PjDefinition definition;
	Oid			owner = GetUserId();

	pj_refuse_in_user_code("projector_create");
	pj_wake_at_commit();
	read_create_arguments(fcinfo, &definition);
	if (DatumGetBool(pj_required(fcinfo, 12, "or_replace")) &&
		pj_projection_exists(definition.name))
		PG_RETURN_TEXT_P(cstring_to_text(replace_projection(&definition)));
	definition.search_path = effective_search_path();
	definition.owner = owner;
	pj_definition_check(&definition, owner);
	guard_targets(&definition);
	insert_definition(&definition, owner);
	warn_of_rows(&definition);
	notice_workers(definition.mode);

	PG_RETURN_TEXT_P(cstring_to_text("created"));
}

/* ---- drop ---- */

/* Removes a projection and what is kept about it, not its read model. */
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
	pj_registry_update(&delete_projection, values, NULL);
	for (int i = 0; i < lengthof(delete_rows); i++)
		pj_execute(&delete_rows[i], values, NULL);
	pj_leave_internal(&saved);
	unguard_targets(projection, NULL, 0);

	PG_RETURN_VOID();
}

/* ---- adopt ---- */

/* What a run in the original had built is not all there; the log is. */
static void
abandon_runs(const PjProjection *projection)
{
	PjRun	   *runs;
	int			n = pj_runs_of(projection, &runs);

	for (int i = 0; i < n; i++)
		pj_run_abandon(&runs[i],
					   "its database was copied while the run was active");
}

static bool
needs_adopting(const PjProjection *projection)
{
	return projection->dormant || !pj_identity_is_complete(projection);
}

/* Adopt one, if it is still to be adopted.  Returns how many were dormant. */
static int
adopt_projection(int32 id)
{
	Datum		values[2] = {Int32GetDatum(id),
	CStringGetTextDatum(pj_home())};
	PjProjection *projection;

	pj_lock_projection(id, ExclusiveLock, true);

	/* it may have been changed, adopted or dropped while we waited */
	projection = pj_projection_by_id(id);
	if (projection == NULL || !needs_adopting(projection))
		return 0;
	pj_identity_adopt(projection);
	if (!projection->dormant)
		return 0;
	abandon_runs(projection);
	pj_execute(&replay_cursors, values, NULL);
	return pj_execute(&adopt, values, NULL);
}

/* Lets the projections of a copied database run in it. */
Datum
projector_adopt(PG_FUNCTION_ARGS)
{
	PjProjection *projections;
	int			n = pj_projections(&projections);
	int64		adopted = 0;
	PjContext	saved;

	pj_require_read_committed("projector_adopt");
	pj_refuse_in_user_code("projector_adopt");
	pj_wake_at_commit();
	pj_enter_internal(&saved);
	for (int i = 0; i < n; i++)
		if (needs_adopting(&projections[i]))
			adopted += adopt_projection(projections[i].id);
	pj_leave_internal(&saved);

	PG_RETURN_INT64(adopted);
}
