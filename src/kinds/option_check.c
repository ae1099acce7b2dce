/*
 * option_check.c
 *	  Check options against the rest of a definition: its kind and its
 *	  targets.
 *
 * Each option is valid on its own (options.c).  What is refused here would
 * have no effect, or not the one that was meant.
 */
#include "base/compat.h"

#include "catalog/catalog.h"
#include "catalog/namespace.h"
#include "utils/lsyscache.h"

#include "base/text.h"
#include "kinds/definition.h"
#include "registry/target.h"

/* Raise an error: an option means nothing for this kind of projection. */
static void
refuse_option(const char *option, const PjDefinition *definition)
{
	ereport(ERROR,
			errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			errmsg("option \"%s\" has no meaning for a projection of kind \"%s\"",
				   option, pj_kind_names[definition->kind->id]),
			errhint("Leave it out, or set it to null."));
}

/*
 * A fold has a table of its own, whose rows the runtime stamps, and its code
 * writes nothing.  Only handlers append, or are checked after each event.
 */
static void
check_kind(const PjDefinition *definition, const PjOptions *options)
{
	if (options->shared_targets && pj_is_fold(definition->kind->id))
		refuse_option("shared_targets", definition);
	if (options->may_append && definition->kind->id != PJ_KIND_HANDLER)
		refuse_option("may_append", definition);
	if (options->checkpoint == PJ_CHECKPOINT_CHECK &&
		definition->kind->id != PJ_KIND_HANDLER)
		refuse_option("checkpoint", definition);
}

/* Only values that the user gives can contradict each other. */
static void
check_retries(const PjDefinition *definition, const PjOptions *options)
{
	JsonbValue	value;

	if (options->retry_base > options->retry_max &&
		pj_json_member(definition->options, "retry_base", &value) &&
		pj_json_member(definition->options, "retry_max", &value))
		ereport(ERROR,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("option \"retry_base\" must not be above \"retry_max\""),
				errhint("The first delay is \"retry_base\", the longest is \"retry_max\"."));
}

/* Does any target have this column? */
static bool
is_column(const PjDefinition *definition, int ntargets, const char *name)
{
	for (int i = 0; i < ntargets; i++)
		if (get_attnum(definition->target_oids[i], name) > 0)
			return true;
	return false;
}

/* Option "digest_ignore" names columns of the targets. */
static void
check_ignored(const PjDefinition *definition, const PjOptions *options,
			  int ntargets)
{
	for (int i = 0; ntargets > 0 && options->digest_ignore[i]; i++)
	{
		const char *name = options->digest_ignore[i];

		if (!is_column(definition, ntargets, name))
			ereport(ERROR,
					errcode(ERRCODE_UNDEFINED_COLUMN),
					errmsg("option \"digest_ignore\" names column \"%s\", which no target has",
						   name));
		if (strcmp(name, "tenant_id") == 0)
			ereport(ERROR,
					errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					errmsg("option \"digest_ignore\" must not name column \"tenant_id\""),
					errdetail("Read models of different tenants must differ."));
	}
}

/* Option "writes" is for users' tables, each once. */
static void
check_written(const PjOptions *options)
{
	Oid			own = get_namespace_oid("projector", false);

	for (int i = 0; options->writes[i]; i++)
	{
		Oid			relid = pj_target_by_name(options->writes[i]);

		if (get_rel_namespace(relid) == own || IsCatalogRelationOid(relid))
			ereport(ERROR,
					errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					errmsg("table %s cannot be in option \"writes\"",
						   options->writes[i]),
					errdetail("Only projector, or the server, writes it."));
		for (int j = 0; j < i; j++)
			if (strcmp(options->writes[i], options->writes[j]) == 0)
				ereport(ERROR,
						errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("option \"writes\" contains %s twice",
							   options->writes[i]));
	}
}

/*
 * Check the options of a definition whose targets have been checked.  Names in
 * the options are qualified.
 */
void
pj_definition_check_options(const PjDefinition *definition,
							const PjOptions *options)
{
	ArrayType  *targets = DatumGetArrayTypeP(definition->targets);

	check_kind(definition, options);
	check_retries(definition, options);
	check_ignored(definition, options,
				  ArrayGetNItems(ARR_NDIM(targets), ARR_DIMS(targets)));
	check_written(options);
}
