/*
 * settings.c
 *	  The settings that users' code runs with.
 *
 * The same events must give the same rows in every session that appends,
 * rebuilds or verifies them.  So every setting that affects how values are
 * read, written or compared has a fixed value while a projection's code runs,
 * and while rows are hashed or compared.  Using the creator's settings instead
 * would be wrong: they depend on what a client driver happens to set.
 *
 * A projection can override them with "settings", which are set on top of the
 * fixed ones while its code runs.
 *
 * Setting a variable costs about a microsecond, so only variables with a
 * different value are set.  Their current values are read from the server's
 * own variables.
 */
#include "base/compat.h"

#include "commands/trigger.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/bytea.h"
#include "utils/guc.h"
#include "utils/guc_tables.h"
#include "utils/memutils.h"
#include "utils/numeric.h"
#include "utils/xml.h"

#include "sandbox/settings.h"

/* A setting with a fixed value. */
typedef struct FixedSetting
{
	const char *name;
	const char *value;
	int			number;			/* the value, unless it is a string */
	const char *const *same;	/* equivalent values, or NULL */
} FixedSetting;

/*
 * Locales in which messages are the same as in "C".  Changing lc_messages is
 * by far the most expensive, because it also changes the locale and the
 * environment of the process.
 */
static const char *const untranslated[] = {"C.UTF-8", "C.utf8", "POSIX", NULL};

static const FixedSetting fixed_settings[] = {
	{"quote_all_identifiers", "off", false},	/* first: it affects how
												 * others are quoted */
	{"TimeZone", "UTC"},
	{"timezone_abbreviations", "Default"},
	{"DateStyle", "ISO, YMD"},
	{"IntervalStyle", "postgres", INTSTYLE_POSTGRES},
	{"extra_float_digits", "1", 1},
	{"bytea_output", "hex", BYTEA_OUTPUT_HEX},
	{"lc_messages", "C", 0, untranslated},
	{"lc_monetary", "C"},
	{"lc_numeric", "C"},
	{"lc_time", "C"},
	{"default_text_search_config", "pg_catalog.simple"},
	{"xmloption", "content", XMLOPTION_CONTENT},
	{"xmlbinary", "base64", XMLBINARY_BASE64},
	{"array_nulls", "on", true},
	{"transform_null_equals", "off", false},
	{"standard_conforming_strings", "on", true},
	{"gin_fuzzy_search_limit", "0", 0},
	{"row_security", "on", true},
	{"session_replication_role", "origin", SESSION_REPLICATION_ROLE_ORIGIN},
	{"exit_on_error", "off", false},
};

/* The server's variables for these settings. */
static struct config_generic *variables[lengthof(fixed_settings)];
static bool variables_found = false;

/* Settings that a projection may not set itself. */
static const char *const reserved[] = {"search_path", "role",
	"session_authorization", "session_replication_role", "is_superuser",
	"exit_on_error", "client_encoding", "seed", "temp_buffers",
	"local_preload_libraries", "session_preload_libraries",
	"transaction_isolation", "transaction_read_only", "transaction_deferrable",
	"transaction_timeout",
NULL};

/* A variable of PL/pgSQL; it exists once the language has been used. */
#define VARIABLE_CONFLICT	"plpgsql.variable_conflict"

/* ---- fixed settings ---- */

/* Built-in variables keep their addresses for the life of the process. */
static void
find_variables(void)
{
	int			n;
	struct config_generic **all = pj_all_settings(&n);

	for (int i = 0; i < lengthof(fixed_settings); i++)
	{
		for (int v = 0; v < n && variables[i] == NULL; v++)
			if (pg_strcasecmp(all[v]->name, fixed_settings[i].name) == 0)
				variables[i] = all[v];
		if (variables[i] == NULL)
			elog(ERROR, "there is no setting \"%s\"", fixed_settings[i].name);
	}
	variables_found = true;
}

/* Is a string equal or equivalent to the fixed value? */
static bool
is_same(const char *value, const FixedSetting *fixed)
{
	if (strcmp(value, fixed->value) == 0)
		return true;
	for (const char *const *name = fixed->same; name && *name; name++)
		if (strcmp(value, *name) == 0)
			return true;
	return false;
}

/* Does the variable have its fixed value? */
static bool
is_as_fixed(const struct config_generic *variable, const FixedSetting *fixed)
{
	switch (variable->vartype)
	{
		case PGC_BOOL:
			return *((struct config_bool *) variable)->variable ==
				(bool) fixed->number;
		case PGC_INT:
			return *((struct config_int *) variable)->variable ==
				fixed->number;
		case PGC_ENUM:
			return *((struct config_enum *) variable)->variable ==
				fixed->number;
		case PGC_STRING:
			{
				const char *now = *((struct config_string *) variable)->variable;

				return now && is_same(now, fixed);
			}
		default:
			return false;
	}
}

/* Set a variable until the caller's GUC nest level ends. */
void
pj_set_local(const char *name, const char *value)
{
	(void) set_config_option(name, value, PGC_SUSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
}

/*
 * Set all variables to their fixed values.  The caller has opened a GUC nest
 * level, whose end restores them.
 */
void
pj_pin_settings(void)
{
	const char *conflict;

	if (!variables_found)
		find_variables();
	for (int i = 0; i < lengthof(fixed_settings); i++)
		if (!is_as_fixed(variables[i], &fixed_settings[i]))
			pj_set_local(fixed_settings[i].name, fixed_settings[i].value);

	conflict = GetConfigOption(VARIABLE_CONFLICT, true, false);
	if (conflict && strcmp(conflict, "error") != 0)
		pj_set_local(VARIABLE_CONFLICT, "error");
}

/*
 * Set the fixed values for the whole session, in a process that only runs
 * users' code.  Then no batch has to set anything.  lc_messages is left
 * unchanged, so that messages stay in the language of the server log.
 */
void
pj_pin_session(void)
{
	for (int i = 0; i < lengthof(fixed_settings); i++)
		if (strcmp(fixed_settings[i].name, "lc_messages") != 0)
			SetConfigOption(fixed_settings[i].name, fixed_settings[i].value,
							PGC_SUSET, PGC_S_OVERRIDE);
}

/*
 * Has the running code changed a setting without restoring it?  The
 * projection's own settings are not checked.  Returns the name of the setting,
 * or NULL.
 */
const char *
pj_changed_setting(const PjSetting *settings)
{
	for (int i = 0; i < lengthof(fixed_settings); i++)
	{
		bool		own = false;

		if (is_as_fixed(variables[i], &fixed_settings[i]))
			continue;
		for (const PjSetting *s = settings; s && s->name; s++)
			own = own || pg_strcasecmp(s->name, fixed_settings[i].name) == 0;
		if (!own)
			return fixed_settings[i].name;
	}
	return NULL;
}

/* Install a check hook for a variable of the server. */
void
pj_guard_bool_setting(const char *name, GucBoolCheckHook hook)
{
	int			n;
	struct config_generic **all = pj_all_settings(&n);

	for (int v = 0; v < n; v++)
		if (strcmp(all[v]->name, name) == 0 && all[v]->vartype == PGC_BOOL &&
			((struct config_bool *) all[v])->check_hook == NULL)
			((struct config_bool *) all[v])->check_hook = hook;
}

/* The same for one that is a number.  Not every server has all of them. */
void
pj_guard_int_setting(const char *name, GucIntCheckHook hook)
{
	int			n;
	struct config_generic **all = pj_all_settings(&n);

	for (int v = 0; v < n; v++)
		if (strcmp(all[v]->name, name) == 0 && all[v]->vartype == PGC_INT &&
			((struct config_int *) all[v])->check_hook == NULL)
			((struct config_int *) all[v])->check_hook = hook;
}

/* ---- a projection's own settings ---- */

/* Returns a JSON value as text, or NULL if it cannot be a setting's value. */
static const char *
value_text(JsonbValue *value)
{
	switch (value->type)
	{
		case jbvString:
			return pnstrdup(value->val.string.val, value->val.string.len);
		case jbvNumeric:
			return numeric_normalize(value->val.numeric);
		case jbvBool:
			return value->val.boolean ? "on" : "off";
		default:
			return NULL;
	}
}

/*
 * Read a list of settings from a JSON object, leaving out those that cannot be
 * read.  Returns what is wrong, or NULL.
 */
const char *
pj_settings_read(Jsonb *json, PjSetting **settings)
{
	const char *problem = NULL;
	JsonbIterator *it;
	JsonbIteratorToken token;
	JsonbValue	value;
	int			n = 0;

	if (!JB_ROOT_IS_OBJECT(json))
	{
		*settings = palloc0(sizeof(PjSetting));
		return "settings must be a JSON object";
	}
	*settings = palloc0(sizeof(PjSetting) * (JB_ROOT_COUNT(json) + 1));
	it = JsonbIteratorInit(&json->root);
	while ((token = JsonbIteratorNext(&it, &value, true)) != WJB_DONE)
	{
		char	   *name;
		const char *setting;

		if (token != WJB_KEY)
			continue;
		name = pnstrdup(value.val.string.val, value.val.string.len);
		(void) JsonbIteratorNext(&it, &value, true);
		setting = value_text(&value);
		if (setting)
			(*settings)[n++] = (PjSetting) {name, setting};
		else
			problem = psprintf("setting \"%s\" must be a string, a number, true or false",
							   name);
	}
	return problem;
}

/* Like pj_settings_read, but raises an error. */
PjSetting *
pj_settings_parse(Jsonb *json)
{
	PjSetting  *settings;
	const char *problem = pj_settings_read(json, &settings);

	if (problem)
		ereport(ERROR,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("%s", problem),
				errhint("For example {\"TimeZone\": \"Europe/Berlin\"}."));
	return settings;
}

static bool
is_reserved(const char *name)
{
	if (pg_strncasecmp(name, "projector.", strlen("projector.")) == 0)
		return true;
	for (int i = 0; reserved[i]; i++)
		if (pg_strcasecmp(name, reserved[i]) == 0)
			return true;
	return false;
}

/* Raise an error if a projection cannot have these settings. */
void
pj_settings_check(const PjSetting *settings)
{
	for (; settings->name; settings++)
	{
		if (is_reserved(settings->name))
			ereport(ERROR,
					errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					errmsg("a projection cannot have a setting \"%s\"",
						   settings->name),
					errdetail("It belongs to the session, the transaction or the runtime."));
		(void) set_config_option(settings->name, settings->value,
								 PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE,
								 false, ERROR, false);
	}
}

/*
 * Returns why a projection's settings cannot be set on this server, or NULL.
 * After a restore, the server may not know a value.
 */
const char *
pj_settings_problem(const PjSetting *settings)
{
	for (; settings->name; settings++)
		if (is_reserved(settings->name) ||
			set_config_option(settings->name, settings->value, PGC_USERSET,
							  PGC_S_SESSION, GUC_ACTION_SAVE, false, DEBUG5,
							  false) == 0)
			return psprintf("setting \"%s\" cannot be \"%s\" on this server",
							settings->name, settings->value);
	return NULL;
}

/*
 * Set them until the caller's GUC nest level ends.  The current user is the
 * projection's owner, so only what an ordinary user may set can be set.
 */
void
pj_settings_apply(const PjSetting *settings)
{
	for (; settings && settings->name; settings++)
		(void) set_config_option(settings->name, settings->value,
								 PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE,
								 true, 0, false);
}
