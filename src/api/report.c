/*
 * report.c
 *	  Functions that describe a projection, used by the views.
 *
 * The views call them as the user who reads the view.  So all users may execute
 * them, but a definition and its problems are shown only to users who may read
 * one of the views.
 */
#include "base/compat.h"

#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/snapmgr.h"

#include "kinds/definition.h"
#include "kinds/problem.h"
#include "registry/projection.h"
#include "state/outbox_look.h"
#include "worker/control.h"

PG_FUNCTION_INFO_V1(projector_is_home);
PG_FUNCTION_INFO_V1(projector_definition_now);
PG_FUNCTION_INFO_V1(projector_problem);
PG_FUNCTION_INFO_V1(projector_item_waits);

/* Does a projection with this home live in this database? */
Datum
projector_is_home(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(strcmp(text_to_cstring(PG_GETARG_TEXT_PP(0)),
						  pj_home()) == 0);
}

/* Find a projection, for users who may see it. */
static PjProjection *
find_projection(int32 id)
{
	return pj_may_see_status() ? pj_projection_by_id(id) : NULL;
}

/* Returns the hash of a projection's current definition, or null. */
Datum
projector_definition_now(PG_FUNCTION_ARGS)
{
	PjProjection *projection = find_projection(PG_GETARG_INT32(0));
	bytea	   *hash = projection ? pj_definition_now(projection) : NULL;

	if (hash == NULL)
		PG_RETURN_NULL();
	PG_RETURN_BYTEA_P(hash);
}

/* Returns why a projection cannot run, or null. */
Datum
projector_problem(PG_FUNCTION_ARGS)
{
	PjProjection *projection = find_projection(PG_GETARG_INT32(0));
	const char *problem = projection && !projection->dormant ?
	pj_projection_problem(projection) : NULL;

	if (problem == NULL)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(problem));
}

/* Returns whether an item waits for a failed or dead one. */
Datum
projector_item_waits(PG_FUNCTION_ARGS)
{
	static const bool refused = false;
	static const bool allowed = true;
	PjItemKey	item = {PG_GETARG_INT32(0), PG_GETARG_DATUM(1),
	PG_GETARG_DATUM(2), PG_GETARG_INT64(3), PG_GETARG_INT64(4)};

	/* the view calls it for each row: ask once */
	if (fcinfo->flinfo->fn_extra == NULL)
		fcinfo->flinfo->fn_extra = unconstify(bool *, pj_may_see("outbox") ?
											  &allowed : &refused);
	PG_RETURN_BOOL(*(bool *) fcinfo->flinfo->fn_extra &&
				   pj_outbox_waits(&item, PG_GETARG_BOOL(5),
								   GetActiveSnapshot()));
}
