/*
 * tenant.c
 *	  Check that a tenant exists: for a misspelt name, functions must not
 *	  report that there is nothing to do.
 *
 * A tenant exists for a projection if it has events, a cursor, or rows in the
 * read model.
 */
#include "base/compat.h"

#include "utils/builtins.h"

#include "log/log_read.h"
#include "rebuild/clear.h"
#include "rebuild/tenant.h"

/*
 * Raise an error if an aggregate of an existing tenant has no events.  The
 * caller has found no rows of the aggregate; rows that a function clears are
 * not counted.
 */
void
pj_tenant_refuse(const PjPair *pair, Datum aggregate)
{
	if (pj_source_has(pair->tenant, aggregate))
		return;
	ereport(ERROR,
			errcode(ERRCODE_UNDEFINED_OBJECT),
			errmsg("aggregate \"%s\" of tenant \"%s\" does not exist",
				   TextDatumGetCString(aggregate),
				   TextDatumGetCString(pair->tenant)),
			pair->projection->options.clear ?
			errdetail("It has no events.") :
			errdetail("It has no events, and no rows in the read model of projection \"%s\".",
					  pair->projection->name),
			pair->projection->options.clear ?
			errhint("If there are rows of it, rebuild the tenant.") : 0);
}

/* Raise an error if the tenant does not exist. */
void
pj_tenant_require(const PjPair *pair)
{
	if (pair->exists || pj_source_has(pair->tenant, 0) ||
		pj_clear_has_rows(pair->projection, pair->tenant))
		return;
	ereport(ERROR,
			errcode(ERRCODE_UNDEFINED_OBJECT),
			errmsg("tenant \"%s\" does not exist",
				   TextDatumGetCString(pair->tenant)),
			errdetail("It has no events, and projection \"%s\" has no cursor and no rows of it.",
					  pair->projection->name));
}
