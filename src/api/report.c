/*
 * report.c
 *	  Functions used by the views.
 */
#include "base/compat.h"

#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "base/guc.h"
#include "kinds/definition.h"
#include "kinds/problem.h"
#include "registry/projection.h"
#include "sandbox/user_context.h"

PG_FUNCTION_INFO_V1(projector_is_home);
PG_FUNCTION_INFO_V1(projector_definition_now);
PG_FUNCTION_INFO_V1(projector_problem);
PG_FUNCTION_INFO_V1(projector_lag_warning);

/* Does a projection with this home live in this database? */
Datum
projector_is_home(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(strcmp(text_to_cstring(PG_GETARG_TEXT_PP(0)),
						  pj_home()) == 0);
}

/* Returns the hash of a projection's current definition, or null. */
Datum
projector_definition_now(PG_FUNCTION_ARGS)
{
	PjProjection *projection = pj_projection_by_id(PG_GETARG_INT32(0));
	bytea	   *hash = projection ? pj_definition_now(projection) : NULL;

	if (hash == NULL)
		PG_RETURN_NULL();
	PG_RETURN_BYTEA_P(hash);
}

/* Returns why a projection cannot run, or null. */
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

/* Returns the setting projector.lag_warning as an interval. */
Datum
projector_lag_warning(PG_FUNCTION_ARGS)
{
	Interval   *result = palloc0(sizeof(Interval));

	result->time = (TimeOffset) pj_lag_warning * 1000;
	PG_RETURN_INTERVAL_P(result);
}
