/*
 * definition_row.c
 *	  Write a projection's definition to the registry, and update what
 *	  depends on it: guards on its targets, and the digests of its read
 *	  models.
 *
 * Changing a registry row requires an exclusive lock on the projection, held
 * until the end of the transaction.  It keeps out all sessions that apply
 * events, so none uses the old row afterwards: an append that cannot get the
 * lock queues its events.  The caller has checked the definition.
 */
#include "base/compat.h"

#include "common/hashfn.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/datum.h"

#include "api/definition_row.h"
#include "apply/read_model.h"
#include "base/lock.h"
#include "base/statement.h"
#include "kinds/change.h"
#include "kinds/definition.h"
#include "rebuild/clear.h"
#include "rebuild/run.h"
#include "registry/target.h"
#include "registry/target_guard.h"
#include "state/failure.h"
#include "state/outbox.h"

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
	" redefinitions = $14, settings = $15, search_path = $16"
	" WHERE projection_id = $1",
	.expect = SPI_OK_UPDATE,
	.nargs = 16,
	.argtypes = {INT4OID, TEXTOID, TEXTOID, JSONBOID, TEXTOID, TEXTARRAYOID,
		TEXTARRAYOID, JSONBOID, BYTEAOID, TEXTOID, OIDOID, OIDARRAYOID, OIDOID,
	INT4OID, JSONBOID, TEXTOID},
};

/* Inline appends leave no cursor. */
static PjStatement add_cursors = {
	.sql = "INSERT INTO projector.projection_cursors"
	" (projection_id, tenant_id, state) SELECT DISTINCT $1, d.tenant_id,"
	" CASE WHEN p.handover_log_seq IS NOT NULL THEN 'live'"
	" WHEN p.started THEN 'switching' ELSE 'replaying' END"
	" FROM projector.projection_deltas d"
	" JOIN projector.projections p USING (projection_id)"
	" WHERE d.projection_id = $1 ON CONFLICT DO NOTHING",
	.expect = SPI_OK_INSERT,
	.nargs = 1,
	.argtypes = {INT4OID},
};

/* Existing read models were built with the previous definition. */
static PjStatement keep_hashes = {
	.sql = "UPDATE projector.projection_cursors c"
	" SET definition_hash = p.definition_hash FROM projector.projections p"
	" WHERE p.projection_id = $1 AND c.projection_id = $1"
	" AND c.definition_hash IS NULL",
	.expect = SPI_OK_UPDATE,
	.nargs = 1,
	.argtypes = {INT4OID},
};

int
pj_definition_targets(const PjDefinition *definition)
{
	ArrayType  *names = DatumGetArrayTypeP(definition->targets);

	return ArrayGetNItems(ARR_NDIM(names), ARR_DIMS(names));
}

/* ---- guards ---- */

/*
 * Create the guards on the targets of a handler or statement.  A fold needs
 * none, because the runtime writes its rows.
 */
void
pj_definition_guard(const PjDefinition *definition)
{
	if (pj_is_fold(definition->kind->id))
		return;
	for (int i = 0; i < pj_definition_targets(definition); i++)
		pj_guard_install(definition->target_oids[i]);
}

/* Does any other projection write the table? */
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

/*
 * Remove the guards from tables that are no longer targets; "left" are the
 * remaining targets.
 */
void
pj_definition_unguard(const PjProjection *projection, const Oid *left, int nleft)
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

/* ---- a new row ---- */

/* Set a parameter that may be null. */
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

/* Set the four columns, one of which says what the projection does. */
static void
set_code(Datum *values, char *nulls, int i, const PjDefinition *definition)
{
	set_string(values, nulls, i, definition->handler);
	set_string(values, nulls, i + 1, definition->fold);
	set_value(values, nulls, i + 2, definition->fold_columns ?
			  JsonbPGetDatum(definition->fold_columns) : 0);
	set_string(values, nulls, i + 3, definition->statement);
}

/* Returns the OIDs of its targets as an array. */
static Datum
target_oids(const PjDefinition *definition)
{
	ArrayType  *names = DatumGetArrayTypeP(definition->targets);

	return pj_oid_array(definition->target_oids,
						ArrayGetNItems(ARR_NDIM(names), ARR_DIMS(names)));
}

/*
 * Lock a name that a projection is about to get, until the end of the
 * transaction.  So of two sessions that want the same name, the second sees
 * that the first has it.
 */
void
pj_definition_lock_name(const char *name)
{
	LockDatabaseObject(pj_registry_relid(),
					   hash_bytes((const unsigned char *) name, strlen(name)),
					   0, ExclusiveLock);
}

/* Raise an error: a projection with that name exists. */
void
pj_definition_refuse_existing(const char *name)
{
	ereport(ERROR,
			errcode(ERRCODE_DUPLICATE_OBJECT),
			errmsg("projection \"%s\" already exists", name),
			errhint("Change it with projector_alter or with or_replace => true, or drop it with projector_drop."));
}

/* Register a projection, and take its lock. */
void
pj_definition_insert(const PjDefinition *definition, Oid owner)
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
		pj_definition_refuse_existing(definition->name);
	pj_lock_projection(DatumGetInt32(pj_result(0, 1, &isnull)), ExclusiveLock,
					   true);
	pj_leave_internal(&saved);
}

/* ---- a changed row ---- */

/* A run must not continue with another definition, or hash other rows. */
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

/*
 * If other rows must be hashed, or the hash has changed, recompute all
 * digests.
 */
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

/* Have its targets been replaced by other tables? */
static bool
has_other_targets(const PjProjection *projection,
				  const PjDefinition *definition)
{
	int			n = pj_target_count(projection);

	if (pj_definition_targets(definition) != n)
		return true;
	for (int i = 0; i < n; i++)
		if (definition->target_oids[i] != pj_target_find(projection, i))
			return true;
	return false;
}

/* Write a changed definition, and update what depends on it. */
static void
update_projection(PjProjection *projection, const PjDefinition *definition,
				  bool redefined)
{
	Datum		values[16];
	char		nulls[] = "                ";
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
	values[13] = Int32GetDatum(definition->redefinitions);
	set_value(values, nulls, 14, JsonbPGetDatum(definition->settings));
	set_string(values, nulls, 15, definition->search_path);
	pj_enter_internal(&saved);
	if (redefined)
	{
		pj_execute(&add_cursors, values, NULL);
		pj_execute(&keep_hashes, values, NULL);
	}
	pj_registry_update(&update_definition, values, nulls);
	if (definition->event_types)
		pj_outbox_unsubscribe(projection->id, definition->event_types);
	pj_failure_note_skips(projection);
	refresh_digests(projection, definition);
	pj_leave_internal(&saved);
}

/* Is the definition other than that in the registry? */
static bool
is_redefined(const PjProjection *projection, const PjDefinition *definition)
{
	bytea	   *before = pj_definition_now(projection);
	bytea	   *after = pj_definition_hash(definition);

	return has_other_targets(projection, definition) || before == NULL ||
		strcmp(projection->search_path, definition->search_path) != 0 ||
		after == NULL || !pj_text_equal(PointerGetDatum(before),
										PointerGetDatum(after));
}

/* Will rows be hashed that were not, or the other way round? */
static bool
is_hashed_otherwise(const PjProjection *projection,
					const PjDefinition *definition)
{
	PjOptions	options;

	pj_options_parse(definition->options, &options);
	return projection->options.digest != options.digest;
}

/*
 * Replace a projection's definition by a changed one, which has been checked.
 * A run would have hashed only some of the rows.
 */
void
pj_definition_replace(PjProjection *projection, PjDefinition *definition,
					  bool redefined)
{
	if (redefined || definition->owner != pj_projection_role(projection) ||
		is_hashed_otherwise(projection, definition))
		refuse_runs(projection);
	pj_definition_guard(definition);
	pj_definition_unguard(projection, definition->target_oids,
						  pj_definition_targets(definition));
	if (redefined && is_redefined(projection, definition))
		definition->redefinitions++;
	update_projection(projection, definition, redefined);
}
