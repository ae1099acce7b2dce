/*
 * blame.c
 *	  Which pair a worker is working on, and which pairs it leaves alone.
 *
 * An error that is not an event's own is blamed on the pair that the worker was
 * working on.  The worker leaves that pair alone for a while: a pair that always
 * fails must not be all there is.
 */
#include "base/compat.h"

#include "nodes/pg_list.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "base/text.h"
#include "worker/blame.h"

/* A pair that is left alone. */
typedef struct Penalty
{
	int32		projection_id;
	Datum		tenant;
	TimestampTz until;
} Penalty;

static List *penalties = NIL;	/* of Penalty, in TopMemoryContext */

/* The pair that is worked on, in memory that lasts. */
static struct
{
	int32		projection_id;	/* 0 if there is none */
	Datum		tenant;
} current;

static Datum
copy_tenant(Datum tenant)
{
	MemoryContext caller = MemoryContextSwitchTo(TopMemoryContext);
	Datum		copy = PointerGetDatum(DatumGetTextPCopy(tenant));

	MemoryContextSwitchTo(caller);
	return copy;
}

/* An error, or the end of the worker, is blamed on this pair from now on. */
void
pj_current_set(int32 projection_id, Datum tenant)
{
	Datum		copy = copy_tenant(tenant);

	pj_current_clear();
	current.projection_id = projection_id;
	current.tenant = copy;
}

void
pj_current_clear(void)
{
	if (current.tenant)
		pfree(DatumGetPointer(current.tenant));
	current.projection_id = 0;
	current.tenant = 0;
}

/* The pair that is worked on.  Returns false if there is none. */
bool
pj_current(int32 *projection_id, Datum *tenant)
{
	*projection_id = current.projection_id;
	*tenant = current.tenant;
	return current.projection_id != 0;
}

static void
forget_old_penalties(TimestampTz now)
{
	ListCell   *cell;

	foreach(cell, penalties)
	{
		Penalty    *penalty = lfirst(cell);

		if (penalty->until > now)
			continue;
		penalties = foreach_delete_current(penalties, cell);
		pfree(DatumGetPointer(penalty->tenant));
		pfree(penalty);
	}
}

/* Leave the pair that is worked on, if there is one, alone for a while. */
void
pj_penalize(int ms)
{
	TimestampTz now = GetCurrentTimestamp();
	MemoryContext caller = MemoryContextSwitchTo(TopMemoryContext);

	forget_old_penalties(now);
	if (current.projection_id != 0)
	{
		Penalty    *penalty = palloc(sizeof(Penalty));

		penalty->projection_id = current.projection_id;
		penalty->tenant = copy_tenant(current.tenant);
		penalty->until = TimestampTzPlusMilliseconds(now, ms);
		penalties = lappend(penalties, penalty);
	}
	MemoryContextSwitchTo(caller);
}

/* Is a pair left alone for now?  If so, until when? */
bool
pj_is_penalized(int32 projection_id, Datum tenant, TimestampTz *until)
{
	TimestampTz now;
	ListCell   *cell;

	if (penalties == NIL)
		return false;
	now = GetCurrentTimestamp();
	foreach(cell, penalties)
	{
		Penalty    *penalty = lfirst(cell);

		if (penalty->projection_id != projection_id ||
			!pj_text_equal(penalty->tenant, tenant) ||
			penalty->until <= now)
			continue;
		*until = penalty->until;
		return true;
	}
	return false;
}
