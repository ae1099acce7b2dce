/*
 * args.c
 *	  Arguments of SQL functions.
 *
 * Our functions are not strict: a null argument that makes no sense raises an
 * error, instead of giving a null result.
 */
#include "base/compat.h"

#include "utils/builtins.h"

#include "base/args.h"

static void
refuse_empty(Datum value, const char *name)
{
	if (VARSIZE_ANY_EXHDR(DatumGetTextPP(value)) == 0)
		ereport(ERROR,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("%s must not be empty", name));
}

/* Returns an argument that must not be null. */
Datum
pj_required(FunctionCallInfo fcinfo, int argno, const char *name)
{
	if (PG_ARGISNULL(argno))
		ereport(ERROR,
				errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				errmsg("%s must not be null", name));
	return PG_GETARG_DATUM(argno);
}

/* Returns a text that must be neither null nor empty. */
Datum
pj_required_text(FunctionCallInfo fcinfo, int argno, const char *name)
{
	Datum		value = pj_required(fcinfo, argno, name);

	refuse_empty(value, name);
	return value;
}

/* Like pj_required_text, but returns a C string. */
char *
pj_required_name(FunctionCallInfo fcinfo, int argno, const char *name)
{
	return TextDatumGetCString(pj_required_text(fcinfo, argno, name));
}

/* Returns an argument of a type passed by reference, or 0 if it is null. */
Datum
pj_optional(FunctionCallInfo fcinfo, int argno)
{
	return PG_ARGISNULL(argno) ? (Datum) 0 : PG_GETARG_DATUM(argno);
}

/* Returns a text, or 0 if it is null; it must not be empty. */
Datum
pj_optional_text(FunctionCallInfo fcinfo, int argno, const char *name)
{
	Datum		value = pj_optional(fcinfo, argno);

	if (value)
		refuse_empty(value, name);
	return value;
}
