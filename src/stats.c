/*
 * stats.c
 *	  The functions behind the reports.
 */
#include "compat.h"

#include "fmgr.h"
#include "utils/builtins.h"

#include "options.h"

PG_FUNCTION_INFO_V1(projector_is_status);

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
