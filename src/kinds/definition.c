/*
 * definition.c
 *	  Check a projection's definition: each argument on its own, and all of
 *	  them together.
 *
 * Names are resolved with the caller's search_path, so this runs in the
 * caller's own context.  Each error has a hint that says what to do instead.
 */
#include "base/compat.h"

#include "catalog/pg_type.h"
#include "storage/lmgr.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "base/statement.h"
#include "base/text.h"
#include "kinds/definition.h"
#include "registry/function.h"
#include "registry/reference.h"
#include "registry/target.h"
#include "registry/target_guard.h"

#define MAX_NAME_LENGTH 200

/* Raise an error if a projection cannot have this name. */
void
pj_definition_check_name(const char *name)
{
	if (name[0] == '\0' || strlen(name) > MAX_NAME_LENGTH)
		ereport(ERROR,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("name of a projection must have 1 to %d bytes",
					   MAX_NAME_LENGTH));
}

/*
 * Get the elements of an array.  They must be neither null nor empty, and no
 * two may be equal.
 */
static int
check_elements(Datum array, const char *what, Datum **elems)
{
	bool	   *nulls;
	int			n;

	deconstruct_array(DatumGetArrayTypeP(array), TEXTOID, -1, false,
					  TYPALIGN_INT, elems, &nulls, &n);
	for (int i = 0; i < n; i++)
	{
		if (nulls[i] || VARSIZE_ANY_EXHDR(DatumGetTextPP((*elems)[i])) == 0)
			ereport(ERROR,
					errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					errmsg("%s must not contain null or empty elements",
						   what));
		for (int j = 0; j < i; j++)
			if (pj_text_equal((*elems)[i], (*elems)[j]))
				ereport(ERROR,
						errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("%s contains \"%s\" twice", what,
							   TextDatumGetCString((*elems)[i])));
	}
	return n;
}

static void
check_event_types(PjDefinition *definition)
{
	Datum	   *types;

	if (definition->event_types == 0)
		return;
	if (ARR_NDIM(DatumGetArrayTypeP(definition->event_types)) > 1)
		ereport(ERROR,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("event_types must be an array of one dimension"));
	if (check_elements(definition->event_types, "event_types", &types) == 0)
		ereport(ERROR,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("event_types must not be an empty array"),
				errhint("Leave it out, or give null, to subscribe to all types."));
}

static bool
is_fold(const PjDefinition *definition)
{
	return pj_is_fold(definition->kind->id);
}

/* Returns what the i'th target must have. */
static PjTargetNeed
target_need(const PjDefinition *definition, const PjOptions *options, int i)
{
	if (i > 0)
		return PJ_NEEDS_NOTHING;
	if (is_fold(definition))
		return pj_key_is_aggregate(definition->key) ? PJ_NEEDS_FOLD :
			PJ_NEEDS_LOG_FOLD;
	return options->checkpoint == PJ_CHECKPOINT_CHECK ? PJ_NEEDS_CHECKPOINT :
		PJ_NEEDS_NOTHING;
}

/*
 * Raise an error if another projection writes this table.  A rebuild of one
 * would delete the rows of the other.
 */
static void
check_not_shared(const PjDefinition *definition, const PjOptions *options,
				 Oid relid)
{
	PjProjection *projections;
	int			n;

	/* serialize concurrent creates, so that the second one sees the first */
	LockRelationOid(relid, ShareUpdateExclusiveLock);
	n = pj_projections(&projections);
	for (int i = 0; i < n; i++)
	{
		bool		fold = is_fold(definition) ||
		pj_is_fold(projections[i].kind);

		if (strcmp(projections[i].name, definition->name) == 0 ||
			!pj_target_is(&projections[i], relid) ||
			(!fold && options->shared_targets &&
			 projections[i].options.shared_targets))
			continue;
		ereport(ERROR,
				errcode(ERRCODE_OBJECT_IN_USE),
				errmsg("table \"%s\" is a target of projection \"%s\" already",
					   get_rel_name(relid), projections[i].name),
				errdetail("A rebuild of one projection would remove the other's rows."),
				fold ? errhint("Give each projection a table of its own.") :
				errhint("Give each projection a table of its own, or set option \"shared_targets\" of both, and clear each one's rows by a function in option \"clear\"."));
	}
}

/*
 * Resolve names in options with the caller's search_path, and replace them by
 * qualified ones.
 */
static void
qualify_options(PjDefinition *definition, PjOptions *options, Oid owner)
{
	for (int i = 0; options->writes[i]; i++)
		options->writes[i] =
			pj_target_name(pj_guard_find_table(options->writes[i]));
	if (options->writes[0])
		definition->options = pj_options_set_names(definition->options,
												   "writes", options->writes);
	if (options->clear)
	{
		options->clear = pj_clear_function(options->clear, owner);
		definition->options = pj_options_set_text(definition->options,
												  "clear", options->clear);
	}
}

/*
 * Option "writes" is for tables outside all read models.  Raise an error if it
 * names a target of this or another projection.
 */
static void
check_writes(const PjDefinition *definition, const PjOptions *options,
			 int ntargets)
{
	PjProjection *projections;
	int			n = pj_projections(&projections);

	for (int w = 0; options->writes[w]; w++)
	{
		Oid			relid = pj_target_by_name(options->writes[w]);

		for (int i = 0; i < ntargets; i++)
			if (definition->target_oids[i] == relid)
				ereport(ERROR,
						errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("table %s is a target, and cannot be in option \"writes\"",
							   options->writes[w]),
						errhint("Leave it out of option \"writes\"."));
		for (int i = 0; i < n; i++)
			if (strcmp(projections[i].name, definition->name) != 0 &&
				pj_target_is(&projections[i], relid))
				ereport(ERROR,
						errcode(ERRCODE_OBJECT_IN_USE),
						errmsg("table %s of option \"writes\" is a target of projection \"%s\"",
							   options->writes[w], projections[i].name),
						errdetail("What is written to it would be lost when that projection is rebuilt."));
	}
}

/*
 * Deleting rows of the targets must not change rows that a replay does not
 * restore.
 */
static void
check_references(const PjDefinition *definition, const PjOptions *options,
				 int ntargets)
{
	PjProjection projection = {.name = definition->name,
	.targets = definition->targets};
	List	   *targets = NIL;

	if (options->clear)
		return;
	for (int i = 0; i < ntargets; i++)
		targets = lappend_oid(targets, pj_target_oid(&projection, i));
	pj_references_check(targets, definition->name, options->writes);
}

static void
check_targets(PjDefinition *definition, const PjOptions *options, Oid owner)
{
	Datum	   *targets = NULL;
	int			n = 0;

	if (definition->targets)
		n = check_elements(definition->targets, "targets", &targets);
	if (n == 0 && target_need(definition, options, 0) == PJ_NEEDS_CHECKPOINT)
		ereport(ERROR,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("option \"checkpoint\" needs a target"),
				errhint("Name the table whose rows the handler stamps: targets => '{...}'."));
	if (n != 1 && is_fold(definition))
		ereport(ERROR,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("a fold has exactly one target"),
				errdetail("%d were given.", n),
				errhint("Name the table whose rows it makes: targets => '{...}'."));
	definition->target_oids = palloc(sizeof(Oid) * Max(n, 1));
	for (int i = 0; i < n; i++)
	{
		Oid			relid = pj_target_check(TextDatumGetCString(targets[i]),
											owner,
											target_need(definition, options,
														i));

		check_not_shared(definition, options, relid);
		definition->target_oids[i] = relid;
		targets[i] = CStringGetTextDatum(pj_target_name(relid));
	}
	definition->targets = pj_text_array(targets, n);

	/* two of the names may have resolved to the same table */
	(void) check_elements(definition->targets, "targets", &targets);
	check_writes(definition, options, n);
	check_references(definition, options, n);
}

/* The key decides which orderings are possible. */
static void
check_ordering(PjDefinition *definition)
{
	bool		other_key = !pj_key_is_aggregate(definition->key);

	if (other_key && !is_fold(definition))
		ereport(ERROR,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("key can be chosen for folds only"),
				errhint("Handlers and statements find their rows themselves: leave key out."));
	if (definition->ordering == PJ_ORDERING_UNSET)
		definition->ordering = other_key ? PJ_ORDERING_LOG :
			PJ_ORDERING_AGGREGATE;
	if (other_key && definition->ordering != PJ_ORDERING_LOG)
		ereport(ERROR,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("a fold whose key is not aggregate_id needs ordering \"log\""),
				errdetail("Several aggregates meet in one row, and their order matters."),
				errhint("Leave ordering out."));
}

/* Raise an error if a projection with this ordering cannot have this mode. */
void
pj_definition_check_mode(const char *name, PjMode mode, PjOrdering ordering)
{
	bool		by_log = ordering == PJ_ORDERING_LOG;

	if (by_log && (mode == PJ_INLINE || mode == PJ_STRICT))
		ereport(ERROR,
				errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				errmsg("projection \"%s\" cannot be applied in mode \"%s\" with ordering \"log\"",
					   name, pj_mode_names[mode]),
				errdetail("Within the appending transaction the order of the log is not known yet."),
				errhint("Use mode \"async\"."));
	if (by_log && mode == PJ_SHADOW)
		ereport(ERROR,
				errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				errmsg("projection \"%s\" cannot be tried in mode \"shadow\" with ordering \"log\"",
					   name),
				errdetail("A trial applies the events of one aggregate, without earlier events of others."),
				errhint("Use mode \"async\" for one tenant first."));
}

/* What happens when an event fails depends on the ordering. */
static void
check_on_error(const PjDefinition *definition, const PjOptions *options)
{
	bool		by_log = definition->ordering == PJ_ORDERING_LOG;
	PjErrorChoice wrong = by_log ? PJ_ON_ERROR_HOLD : PJ_ON_ERROR_STOP;
	PjErrorChoice right = by_log ? PJ_ON_ERROR_STOP : PJ_ON_ERROR_HOLD;
	JsonbValue	value;

	if (!pj_json_member(definition->options, "on_error", &value) ||
		options->on_error != wrong)
		return;
	ereport(ERROR,
			errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			errmsg("option \"on_error\" cannot be \"%s\" with ordering \"%s\"",
				   pj_on_error_names[wrong],
				   pj_ordering_names[definition->ordering]),
			by_log ?
			errdetail("Holding back one aggregate would let events of others overtake it.") :
			errdetail("A failed event holds back only its own aggregate."),
			errhint("Possible values are \"%s\" and \"skip\".",
					pj_on_error_names[right]));
}

/* What a rebuild may do depends on the ordering too. */
static void
check_on_rebuild_error(const PjDefinition *definition,
					   const PjOptions *options)
{
	if (definition->ordering == PJ_ORDERING_LOG &&
		options->on_rebuild_error == PJ_ON_REBUILD_ERROR_HOLD)
		ereport(ERROR,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("option \"on_rebuild_error\" cannot be \"hold\" with ordering \"log\""),
				errdetail("Holding back one aggregate would let events of others overtake it."),
				errhint("Possible values are \"raise\" and \"skip\"."));
}

/* Does a projection depend on another, directly or through others? */
static bool
depends_on(const char *const *names, const char *wanted, int depth)
{
	PjProjection *projections;
	int			n = pj_projections(&projections);

	for (int i = 0; names[i] && depth <= n; i++)
	{
		if (strcmp(names[i], wanted) == 0)
			return true;
		for (int p = 0; p < n; p++)
			if (strcmp(projections[p].name, names[i]) == 0 &&
				depends_on((const char *const *) projections[p].options.depends_on,
						   wanted, depth + 1))
				return true;
	}
	return false;
}

/* Was that projection already in "depends_on" before this change? */
static bool
is_known_dependency(const PjDefinition *definition, const char *name)
{
	for (int i = 0; definition->dependencies && definition->dependencies[i]; i++)
		if (strcmp(definition->dependencies[i], name) == 0)
			return true;
	return false;
}

/* Raise an error if a projection of this name would depend on itself. */
void
pj_definition_check_circle(const char *name, const char **dependencies)
{
	if (dependencies[0] == NULL)
		return;

	/* serialize such changes, so that the second one sees the first */
	LockRelationOid(pj_registry_relid(), ShareUpdateExclusiveLock);
	if (depends_on((const char *const *) dependencies, name, 0))
		ereport(ERROR,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("projection \"%s\" would depend on itself", name),
				errhint("Option \"depends_on\" must not lead back to the projection."));
}

/*
 * The projections it depends on must exist and must not depend on it.  One
 * that was named before this change may be missing in a restored registry.
 */
static void
check_dependencies(const PjDefinition *definition, const PjOptions *options)
{
	for (int i = 0; options->depends_on[i]; i++)
		if (strcmp(options->depends_on[i], definition->name) != 0 &&
			!is_known_dependency(definition, options->depends_on[i]))
			(void) pj_projection_find(options->depends_on[i]);
	pj_definition_check_circle(definition->name, options->depends_on);
}

/*
 * Check a definition on behalf of an owner, and replace names by qualified
 * ones.
 */
void
pj_definition_check(PjDefinition *definition, Oid owner)
{
	PjOptions	options;

	pj_definition_check_name(definition->name);
	check_ordering(definition);
	pj_definition_check_mode(definition->name, definition->mode,
							 definition->ordering);
	check_event_types(definition);
	pj_options_parse(definition->options, &options);
	qualify_options(definition, &options, owner);
	check_on_error(definition, &options);
	check_on_rebuild_error(definition, &options);
	check_dependencies(definition, &options);
	pj_settings_check(pj_settings_parse(definition->settings));
	check_targets(definition, &options, owner);
	pj_definition_check_options(definition, &options);
	definition->kind->check(definition, owner);
}

/* Returns event types, or 0, in an order that does not depend on the user. */
Datum
pj_definition_types(const PjDefinition *definition)
{
	Datum	   *types;
	int			n;

	if (definition->event_types == 0)
		return 0;
	deconstruct_array(DatumGetArrayTypeP(definition->event_types), TEXTOID, -1,
					  false, TYPALIGN_INT, &types, NULL, &n);
	return pj_text_array(types, pj_texts_unique(types, n));
}

/* Returns the OIDs of a projection's targets; nothing is locked. */
static Oid *
find_targets(const PjProjection *projection)
{
	int			n = pj_target_count(projection);
	Oid		   *oids = palloc(sizeof(Oid) * Max(n, 1));

	for (int i = 0; i < n; i++)
		oids[i] = pj_target_find(projection, i);
	return oids;
}

/* Returns the current names of a projection's targets. */
static Datum
name_targets(const PjProjection *projection, const Oid *oids)
{
	Datum	   *names;
	int			n;

	deconstruct_array(DatumGetArrayTypeP(projection->targets), TEXTOID, -1,
					  false, TYPALIGN_INT, &names, NULL, &n);
	for (int i = 0; i < n; i++)
	{
		char	   *name = pj_target_find_name(oids[i]);

		if (name)
			names[i] = CStringGetTextDatum(name);
	}
	return pj_text_array(names, n);
}

/* Returns a projection's definition, as stored in the registry. */
PjDefinition
pj_definition_of(const PjProjection *projection)
{
	Oid		   *target_oids = find_targets(projection);

	return (PjDefinition)
	{
		.name = projection->name,
			.kind = pj_kind(projection->kind),
			.handler = projection->handler,
			.fold = projection->fold,
			.fold_columns = projection->fold_columns,
			.statement = projection->statement,
			.owner = pj_projection_role(projection),
			.targets = name_targets(projection, target_oids),
			.target_oids = target_oids,
			.redefinitions = projection->redefinitions,
			.key = projection->key,
			.event_types = projection->event_types,
			.mode = projection->mode,
			.ordering = projection->ordering,
			.options = projection->options_json,
			.search_path = projection->search_path,
			.settings = projection->settings_json,
			.dependencies = projection->options.depends_on,
	};
}

/*
 * Check again that a table can be the target of a registered projection.  The
 * table's owner is not checked: ALTER TABLE OWNER may run before the
 * projection is given to the same role.  The table is locked, which
 * table_open() asserts.
 */
void
pj_definition_recheck_target(const PjProjection *projection, int target)
{
	PjDefinition definition = pj_definition_of(projection);
	Oid			relid = definition.target_oids[target];

	if (OidIsValid(relid))
		pj_target_recheck(relid, pj_target_owner(relid),
						  target_need(&definition, &projection->options,
									  target));
}

/* Check again that a registered projection's code fits its targets. */
void
pj_definition_recheck_code(const PjProjection *projection)
{
	PjDefinition definition = pj_definition_of(projection);

	if (definition.kind->retry_code)
		definition.kind->retry_code(&definition);
}
