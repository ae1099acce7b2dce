/*
 * own_modes.c
 *	  The pairs of a projection that have a mode of their own, or are stuck;
 *	  for the metrics.
 *
 * What such a pair has in the outbox may be nobody's work: a pair that is off,
 * paused, or stopped at a dead event leaves it there, and one in mode shadow
 * never applies it.
 */
#include "base/compat.h"

#include "base/text.h"
#include "state/own_modes.h"

/* Does a pair in this mode apply events? */
bool
pj_mode_applies(PjMode mode)
{
	return mode != PJ_OFF && mode != PJ_SHADOW;
}

/* There are none yet.  "mode" is the projection's. */
void
pj_own_modes_init(PjOwnModes *modes, PjMode mode)
{
	memset(modes, 0, sizeof(PjOwnModes));
	modes->mode = mode;
	modes->applies = pj_mode_applies(mode);
}

/* Add a pair.  The tenant stays in memory. */
void
pj_own_modes_add(PjOwnModes *modes, Datum tenant, PjMode mode, bool stuck)
{
	PjOwnMode	pair = {.tenant = tenant,.mode = mode,.stuck = stuck};

	if (modes->npairs == modes->room)
	{
		modes->room = Max(64, modes->room * 2);
		modes->pairs = modes->pairs ?
			repalloc_huge(modes->pairs, sizeof(PjOwnMode) * modes->room) :
			palloc(sizeof(PjOwnMode) * modes->room);
	}
	modes->pairs[modes->npairs++] = pair;
	modes->applies = modes->applies || pj_mode_applies(mode);
	modes->differ = modes->differ ||
		pj_mode_applies(mode) != pj_mode_applies(modes->mode);
}

static int
compare_tenants(const void *a, const void *b)
{
	return pj_text_compare(((const PjOwnMode *) a)->tenant,
						   ((const PjOwnMode *) b)->tenant);
}

/* All have been added.  The functions below need this. */
void
pj_own_modes_sort(PjOwnModes *modes)
{
	if (modes->npairs > 1)
		qsort(modes->pairs, modes->npairs, sizeof(PjOwnMode), compare_tenants);
}

static PjOwnMode
find_mode(const PjOwnModes *modes, Datum tenant)
{
	PjOwnMode	wanted = {.tenant = tenant,.mode = modes->mode};
	PjOwnMode  *found = modes->npairs == 0 ? NULL :
	bsearch(&wanted, modes->pairs, modes->npairs, sizeof(PjOwnMode),
			compare_tenants);

	return found ? *found : wanted;
}

/* Does a pair apply its events, now or when it goes on? */
bool
pj_own_modes_applies(const PjOwnModes *modes, Datum tenant)
{
	return pj_mode_applies(find_mode(modes, tenant).mode);
}

/* Would a worker apply or try a pair's events now? */
bool
pj_own_modes_works(const PjOwnModes *modes, Datum tenant)
{
	PjOwnMode	pair = find_mode(modes, tenant);

	return pair.mode != PJ_OFF && !pair.stuck;
}
