/*
 * report.c
 *	  The functions behind the views and reports.
 */
#include "base/compat.h"

#include "fmgr.h"
#include "utils/builtins.h"

#include "kinds/definition.h"
#include "kinds/problem.h"
#include "registry/options.h"
#include "registry/projection.h"
#include "sandbox/user_context.h"

PG_FUNCTION_INFO_V1(projector_is_status);
PG_FUNCTION_INFO_V1(projector_is_home);
PG_FUNCTION_INFO_V1(projector_definition_now);
PG_FUNCTION_INFO_V1(projector_problem);

/* See the install script. */
Datum
projector_is_status(PG_FUNCTION_ARGS)
{
	static const char *const statuses[] = {"pending", "held", "processing",
	"failed", "dead", NULL};

	if (!PG_ARGISNULL(0))
		(void) pj_choose(text_to_cstring(PG_GETARG_TEXT_PP(0)), statuses,
						 "status");
	PG_RETURN_BOOL(true);
}

/* See the install script. */
Datum
projector_is_home(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(strcmp(text_to_cstring(PG_GETARG_TEXT_PP(0)),
						  pj_home()) == 0);
}

/* See the install script. */
Datum
projector_definition_now(PG_FUNCTION_ARGS)
{
	PjProjection *projection = pj_projection_by_id(PG_GETARG_INT32(0));
	bytea	   *hash = projection ? pj_definition_now(projection) : NULL;

	if (hash == NULL)
		PG_RETURN_NULL();
	PG_RETURN_BYTEA_P(hash);
}

/* See the install script. */
Datum
projector_problem(PG_FUNCTION_ARGS)
{
	PjProjection *projection = pj_projection_by_id(PG_GETARG_INT32(0));
	const char *problem = projection && !projection->dormant ?
		pj_projection_problem(projection) : NULL;

	if (problem == NULL)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(problem));
}
