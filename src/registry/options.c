/*
 * options.c
 *	  A projection's options.  One table defines their names, types and
 *	  defaults.
 *
 * Options are validated when they are written.  A value read back from the
 * registry goes through the same code, but an invalid value is only reported
 * to the caller, not raised as an error: one unreadable row must not make
 * every append fail.
 */
#include "base/compat.h"

#include "catalog/pg_type.h"
#include "datatype/timestamp.h"
#include "lib/stringinfo.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/datetime.h"
#include "utils/fmgrprotos.h"
#include "utils/numeric.h"
#include "utils/timestamp.h"

#include "registry/options.h"

typedef enum OptionType
{
	OPTION_INT,
	OPTION_DURATION,
	OPTION_BOOL,
	OPTION_CHOICE,
	OPTION_TEXT,
	OPTION_NAMES
} OptionType;

static const char *const checkpoint_names[] = {
	[PJ_CHECKPOINT_NONE] = "none",
	[PJ_CHECKPOINT_CHECK] = "check",
	NULL
};

const char *const pj_on_error_names[] = {
	[PJ_ON_ERROR_HOLD] = "hold",
	[PJ_ON_ERROR_SKIP] = "skip",
	[PJ_ON_ERROR_STOP] = "stop",
	NULL
};

static const char *const on_rebuild_error_names[] = {
	[PJ_ON_REBUILD_ERROR_RAISE] = "raise",
	[PJ_ON_REBUILD_ERROR_HOLD] = "hold",
	[PJ_ON_REBUILD_ERROR_SKIP] = "skip",
	NULL
};

typedef struct OptionDef
{
	const char *name;
	OptionType	type;
	size_t		offset;			/* of the field in PjOptions */
	int64		initial;		/* an int, a duration in ms, or a bool */
	int64		max;			/* of an int; the minimum is 1 */
	const char *const *choices; /* names of the enum's values, default first;
								 * ends with NULL */
} OptionDef;

/* An invalid option: the error message and hint. */
typedef struct OptionError
{
	const char *message;		/* NULL if the options are valid */
	const char *hint;
} OptionError;

#define MAX_DURATION_DAYS 365

#define FIELD(name) offsetof(PjOptions, name)

static const OptionDef option_defs[] = {
	{"batch_size", OPTION_INT, FIELD(batch_size), 1000, 100000},
	{"max_attempts", OPTION_INT, FIELD(max_attempts), 8, 1000},
	{"error_threshold", OPTION_INT, FIELD(error_threshold), 5, 1000000},
	{"retry_base", OPTION_DURATION, FIELD(retry_base), 1000},
	{"retry_max", OPTION_DURATION, FIELD(retry_max), 5 * 60 * 1000},
	{"timeout", OPTION_DURATION, FIELD(timeout), 30 * 1000},
	{"idempotent", OPTION_BOOL, FIELD(idempotent), false},
	{"may_append", OPTION_BOOL, FIELD(may_append), false},
	{"checkpoint", OPTION_CHOICE, FIELD(checkpoint),.choices = checkpoint_names},
	{"on_error", OPTION_CHOICE, FIELD(on_error),.choices = pj_on_error_names},
	{"on_rebuild_error", OPTION_CHOICE, FIELD(on_rebuild_error),.choices = on_rebuild_error_names},
	{"clear", OPTION_TEXT, FIELD(clear)},
	{"digest", OPTION_BOOL, FIELD(digest), true},
	{"digest_ignore", OPTION_NAMES, FIELD(digest_ignore)},
	{"writes", OPTION_NAMES, FIELD(writes)},
	{"shared_targets", OPTION_BOOL, FIELD(shared_targets), false},
	{"depends_on", OPTION_NAMES, FIELD(depends_on)},
};

/* A choice is stored through an int pointer, so the enums must be as wide. */
StaticAssertDecl(sizeof(PjCheckpoint) == sizeof(int) &&
				 sizeof(PjErrorChoice) == sizeof(int) &&
				 sizeof(PjRebuildErrorChoice) == sizeof(int),
				 "enums of options are as wide as an int");

#define field_of(options, def, type) \
	((type *) ((char *) (options) + (def)->offset))

static char *
list_choices(const char *const *choices)
{
	StringInfoData list;

	initStringInfo(&list);
	for (int i = 0; choices[i]; i++)
		appendStringInfo(&list, "%s\"%s\"", i ? ", " : "", choices[i]);
	return list.data;
}

/* Returns the index of value in choices, or -1 if it is not there. */
int
pj_choice(const char *value, const char *const *choices)
{
	for (int i = 0; choices[i]; i++)
		if (strcmp(value, choices[i]) == 0)
			return i;
	return -1;
}

/* Like pj_choice, but raises an error if value is not one of the choices. */
int
pj_choose(const char *value, const char *const *choices, const char *what)
{
	int			found = pj_choice(value, choices);

	if (found < 0)
		ereport(ERROR,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("invalid %s \"%s\"", what, value),
				errhint("Possible values are %s.", list_choices(choices)));
	return found;
}

static void
read_int(const OptionDef *def, JsonbValue *value, PjOptions *options,
		 OptionError *wrong)
{
	bool		error = true;
	int32		number = 0;

	if (value->type == jbvNumeric)
	{
		Datum		given = NumericGetDatum(value->val.numeric);

		number = numeric_int4_opt_error(value->val.numeric, &error);
		if (!DatumGetBool(DirectFunctionCall2(numeric_eq, given,
											  NumericGetDatum(int64_to_numeric(number)))))
			error = true;		/* the value was rounded */
	}
	if (error || number < 1 || number > def->max)
		wrong->message = psprintf("option \"%s\" must be an integer from 1 to %lld",
								  def->name, (long long) def->max);
	else
		*field_of(options, def, int) = number;
}

/*
 * Parse an interval and return it in microseconds.  Returns 0 if it is not an
 * interval, or not one that can be used as a waiting time.  (interval_in()
 * would raise an error that does not name the option.)
 */
static int64
parse_interval(const char *str)
{
	char		workbuf[256];
	char	   *field[MAXDATEFIELDS];
	int			ftype[MAXDATEFIELDS];
	int			nf;
	PjInterval	interval;

	if (ParseDateTime(str, workbuf, sizeof(workbuf), field, ftype,
					  MAXDATEFIELDS, &nf) != 0 ||
		!pj_decode_interval(field, ftype, nf, &interval) ||
		interval.years != 0 || interval.months != 0 ||
		interval.days > MAX_DURATION_DAYS ||
		interval.microseconds > MAX_DURATION_DAYS * USECS_PER_DAY)
		return 0;
	return interval.days * USECS_PER_DAY + interval.microseconds;
}

static void
read_duration(const OptionDef *def, JsonbValue *value, PjOptions *options,
			  OptionError *wrong)
{
	int64		duration = 0;

	if (value->type == jbvString)
		duration = parse_interval(pnstrdup(value->val.string.val,
										   value->val.string.len));
	if (duration <= 0)
		wrong->message = psprintf("option \"%s\" must be an interval in quotes, for example \"5 s\", of more than 0 and at most %d days",
								  def->name, MAX_DURATION_DAYS);
	else
		*field_of(options, def, int64) = duration;
}

static void
read_bool(const OptionDef *def, JsonbValue *value, PjOptions *options,
		  OptionError *wrong)
{
	if (value->type != jbvBool)
		wrong->message = psprintf("option \"%s\" must be true or false",
								  def->name);
	else
		*field_of(options, def, bool) = value->val.boolean;
}

static void
read_choice(const OptionDef *def, JsonbValue *value, PjOptions *options,
			OptionError *wrong)
{
	char	   *given = NULL;
	int			found = -1;

	if (value->type == jbvString)
		given = pnstrdup(value->val.string.val, value->val.string.len);
	if (given)
		found = pj_choice(given, def->choices);
	if (found >= 0)
	{
		*field_of(options, def, int) = found;
		return;
	}
	wrong->message = given ?
		psprintf("invalid value of option \"%s\": \"%s\"", def->name, given) :
		psprintf("option \"%s\" must be a string", def->name);
	wrong->hint = psprintf("Possible values are %s.",
						   list_choices(def->choices));
}

static void
read_text(const OptionDef *def, JsonbValue *value, PjOptions *options,
		  OptionError *wrong)
{
	if (value->type != jbvString || value->val.string.len == 0)
		wrong->message = psprintf("option \"%s\" must be a string that is not empty",
								  def->name);
	else
		*field_of(options, def, const char *) =
			pnstrdup(value->val.string.val, value->val.string.len);
}

static void
read_names(const OptionDef *def, JsonbValue *value, PjOptions *options,
		   OptionError *wrong)
{
	const char **names;
	JsonbIterator *it;
	JsonbIteratorToken token;
	JsonbValue	elem;
	int			n = 0;

	if (value->type != jbvBinary ||
		!JsonContainerIsArray(value->val.binary.data))
	{
		wrong->message = psprintf("option \"%s\" must be an array of names",
								  def->name);
		return;
	}
	names = palloc0(sizeof(char *) *
					(JsonContainerSize(value->val.binary.data) + 1));
	it = JsonbIteratorInit(value->val.binary.data);
	while ((token = JsonbIteratorNext(&it, &elem, true)) != WJB_DONE)
	{
		if (token != WJB_ELEM)
			continue;
		if (elem.type != jbvString)
		{
			wrong->message = psprintf("option \"%s\" must be an array of names",
									  def->name);
			return;
		}
		names[n++] = pnstrdup(elem.val.string.val, elem.val.string.len);
	}
	*field_of(options, def, const char **) = names;
}

static void
note_unknown(const char *name, OptionError *wrong)
{
	StringInfoData list;

	initStringInfo(&list);
	for (int i = 0; i < lengthof(option_defs); i++)
		appendStringInfo(&list, "%s\"%s\"", i ? ", " : "",
						 option_defs[i].name);
	wrong->message = psprintf("unknown option \"%s\"", name);
	wrong->hint = psprintf("The options are %s.", list.data);
}

static const OptionDef *
find_option(const char *name)
{
	for (int i = 0; i < lengthof(option_defs); i++)
		if (strcmp(option_defs[i].name, name) == 0)
			return &option_defs[i];
	return NULL;
}

static void
set_initial(PjOptions *options)
{
	for (int i = 0; i < lengthof(option_defs); i++)
	{
		const OptionDef *def = &option_defs[i];

		switch (def->type)
		{
			case OPTION_INT:
				*field_of(options, def, int) = def->initial;
				break;
			case OPTION_DURATION:
				*field_of(options, def, int64) = def->initial * 1000;
				break;
			case OPTION_BOOL:
				*field_of(options, def, bool) = def->initial;
				break;
			case OPTION_CHOICE:
				*field_of(options, def, int) = 0;
				break;
			case OPTION_TEXT:
				*field_of(options, def, const char *) = NULL;
				break;
			case OPTION_NAMES:
				*field_of(options, def, const char **) =
					palloc0(sizeof(char *));
				break;
		}
	}
}

/*
 * Read options from a JSON object.  An option that cannot be read keeps its
 * default; the first error is returned in *first.
 */
static void
read_options(Jsonb *json, PjOptions *options, OptionError *first)
{
	static void (*const readers[]) (const OptionDef *, JsonbValue *,
									PjOptions *, OptionError *) = {
		[OPTION_INT] = read_int,
		[OPTION_DURATION] = read_duration,
		[OPTION_BOOL] = read_bool,
		[OPTION_CHOICE] = read_choice,
		[OPTION_TEXT] = read_text,
		[OPTION_NAMES] = read_names,
	};
	JsonbIterator *it;
	JsonbValue	value;
	JsonbIteratorToken token;

	set_initial(options);
	if (!JB_ROOT_IS_OBJECT(json))
	{
		first->message = "options must be a JSON object";
		return;
	}

	it = JsonbIteratorInit(&json->root);
	while ((token = JsonbIteratorNext(&it, &value, true)) != WJB_DONE)
	{
		const OptionDef *def;
		OptionError wrong = {NULL};
		char	   *name;

		if (token != WJB_KEY)
			continue;
		name = pnstrdup(value.val.string.val, value.val.string.len);
		def = find_option(name);
		(void) JsonbIteratorNext(&it, &value, true);
		if (def)
			readers[def->type] (def, &value, options, &wrong);
		else
			note_unknown(name, &wrong);
		if (wrong.message && !first->message)
			*first = wrong;
	}
}

/* Read options from a JSON object; raises an error if one is invalid. */
void
pj_options_parse(Jsonb *json, PjOptions *options)
{
	OptionError wrong = {NULL};

	read_options(json, options, &wrong);
	if (wrong.message)
		ereport(ERROR,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("%s", wrong.message),
				wrong.hint ? errhint("%s", wrong.hint) : 0);
}

/* Read options from a registry row.  Returns the first problem, or NULL. */
const char *
pj_options_read(Jsonb *json, PjOptions *options)
{
	OptionError wrong = {NULL};

	read_options(json, options, &wrong);
	return wrong.message;
}

/* ---- names in options ---- */

static Jsonb *
replace_option(Jsonb *json, const char *option, JsonbValue *value)
{
	Datum		name = CStringGetTextDatum(option);
	ArrayType  *path = construct_array(&name, 1, TEXTOID, -1, false,
									   TYPALIGN_INT);

	return DatumGetJsonbP(DirectFunctionCall4(jsonb_set,
											  JsonbPGetDatum(json),
											  PointerGetDatum(path),
											  JsonbPGetDatum(JsonbValueToJsonb(value)),
											  BoolGetDatum(false)));
}

static JsonbValue
string_value(const char *string)
{
	return (JsonbValue)
	{
		.type = jbvString,
			.val.string = {strlen(string), (char *) string},
	};
}

/* Returns a copy of the options with an existing text option replaced. */
Jsonb *
pj_options_set_text(Jsonb *json, const char *option, const char *string)
{
	JsonbValue	value = string_value(string);

	return replace_option(json, option, &value);
}

/* Returns a copy of the options with an existing list of names replaced. */
Jsonb *
pj_options_set_names(Jsonb *json, const char *option, const char **names)
{
	JsonbParseState *state = NULL;

	pushJsonbValue(&state, WJB_BEGIN_ARRAY, NULL);
	for (int i = 0; names[i]; i++)
	{
		JsonbValue	value = string_value(names[i]);

		pushJsonbValue(&state, WJB_ELEM, &value);
	}
	return replace_option(json, option,
						  pushJsonbValue(&state, WJB_END_ARRAY, NULL));
}

/* Does option "digest_ignore" name the column? */
bool
pj_options_ignore(const PjOptions *options, const char *column)
{
	for (int i = 0; options->digest_ignore[i]; i++)
		if (strcmp(options->digest_ignore[i], column) == 0)
			return true;
	return false;
}
