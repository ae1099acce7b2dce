/*
 * expr_purity.c
 *	  What the value of an expression depends on.  The same row and event
 *	  must always give the same value, in every session and every rebuild.
 */
#include "base/compat.h"

#include <ctype.h>

#include "access/transam.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/regproc.h"

#include "kinds/expr_purity.h"

/*
 * Does a built-in function return the time, the user, or any other state of
 * the session?  Such a function is stable within a statement, but not from one
 * rebuild to the next.  (Functions that depend only on settings are allowed,
 * because settings are fixed.)
 */
static bool
asks_session(Oid function)
{
	static const char *const names[] = {"current_setting", "current_schemas",
	"pg_has_role", "row_security_active"};
	const char *name = get_func_name(function);
	size_t		length = strlen(name);

	if (func_volatile(function) == PROVOLATILE_IMMUTABLE)
		return false;
	if (get_func_nargs(function) == 0)
		return true;
	for (int i = 0; i < lengthof(names); i++)
		if (strcmp(name, names[i]) == 0)
			return true;

	/* has_table_privilege() and similar; age(timestamp), which uses today */
	return (strncmp(name, "has_", 4) == 0 && length > 10 &&
			strcmp(name + length - 10, "_privilege") == 0) ||
		(strcmp(name, "age") == 0 && get_func_nargs(function) == 1);
}

/*
 * We cannot know what a user's function depends on, so it must be marked
 * immutable.
 */
static void
check_immutable(Oid function, const char *what)
{
	if (func_volatile(function) != PROVOLATILE_IMMUTABLE)
		ereport(ERROR,
				errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
				errmsg("expression for %s calls function %s, which is not IMMUTABLE",
					   what, format_procedure(function)),
				errdetail("The same events must always give the same rows."),
				errhint("Declare the function IMMUTABLE if its result depends on its arguments alone."));
}

static bool
is_unfit_function(Oid function, void *arg)
{
	if (function < FirstNormalObjectId)
		return func_volatile(function) == PROVOLATILE_VOLATILE ||
			asks_session(function);
	check_immutable(function, arg);
	return false;
}

/* Does an expression depend on anything but its row and event? */
static bool
is_unfit(Node *node, void *arg)
{
	if (node == NULL)
		return false;
	if (IsA(node, SQLValueFunction) || IsA(node, NextValueExpr) ||
		check_functions_in_node(node, is_unfit_function, arg))
		return true;
	return expression_tree_walker(node, is_unfit, arg);
}

/*
 * Does a date or time type read this text as a time relative to the present?
 */
static bool
is_word_for_now(const char *str, size_t length)
{
	static const char *const words[] = {"now", "today", "tomorrow",
	"yesterday"};

	for (size_t i = 0; i < length; i++)
		for (int w = 0; w < lengthof(words); w++)
			if ((i == 0 || !isalpha((unsigned char) str[i - 1])) &&
				pg_strncasecmp(str + i, words[w], strlen(words[w])) == 0 &&
				!isalpha((unsigned char) str[i + strlen(words[w])]))
				return true;
	return false;
}

static bool
is_time_type(Oid type)
{
	type = getBaseType(type);
	return type == DATEOID || type == TIMESTAMPOID || type == TIMESTAMPTZOID ||
		type == TIMEOID || type == TIMETZOID;
}

/*
 * Check a literal in the expression's text, between its first and last quote.
 */
static bool
is_literal_now(const char *source, int location)
{
	const char *start,
			   *end;

	if (location < 0 || location >= strlen(source))
		return false;
	start = strchr(source + location, '\'');
	end = start ? strchr(start + 1, '\'') : NULL;
	return end && is_word_for_now(start + 1, end - start - 1);
}

/*
 * Is there a literal such as 'now'?  It may have been evaluated when the
 * expression was parsed, or be evaluated each time.
 */
static bool
has_literal_now(Node *node, void *arg)
{
	const char *source = arg;

	if (node == NULL)
		return false;
	if (IsA(node, Const) && is_time_type(((Const *) node)->consttype) &&
		is_literal_now(source, ((Const *) node)->location))
		return true;
	if (IsA(node, CoerceViaIO) &&
		is_time_type(((CoerceViaIO *) node)->resulttype))
	{
		Const	   *literal = (Const *) ((CoerceViaIO *) node)->arg;

		if (IsA(literal, Const) && !literal->constisnull &&
			literal->consttype == TEXTOID)
		{
			char	   *str = TextDatumGetCString(literal->constvalue);

			if (is_word_for_now(str, strlen(str)))
				return true;
		}
	}
	return expression_tree_walker(node, has_literal_now, arg);
}

/* May the function's result depend on a setting?  Any user's function may. */
static bool
is_users_or_mutable(Oid function, void *arg)
{
	return function >= FirstNormalObjectId ||
		func_volatile(function) != PROVOLATILE_IMMUTABLE;
}

static bool
may_ask_settings(Node *node, void *arg)
{
	if (node == NULL)
		return false;
	if (IsA(node, CoerceToDomain) ||
		check_functions_in_node(node, is_users_or_mutable, arg))
		return true;
	return expression_tree_walker(node, may_ask_settings, arg);
}

/*
 * Does an expression depend on anything but its row and event?  "what"
 * describes the expression in error messages.
 */
bool
pj_expr_depends_on_more(Node *expr, const char *what)
{
	return is_unfit(expr, (void *) what);
}

/*
 * Does a literal in the expression mean the present time?  "source" is the
 * expression's text.
 */
bool
pj_expr_has_literal_now(Node *expr, const char *source)
{
	return has_literal_now(expr, (void *) source);
}

/* May the value of the expression depend on a setting? */
bool
pj_expr_may_ask_settings(Node *expr)
{
	return may_ask_settings(expr, NULL);
}
