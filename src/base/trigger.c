/*
 * trigger.c
 *	  What our trigger functions rely on.
 *
 * Whoever may execute a trigger function can create a trigger with it on any
 * other table, and for any event.  Ours take a row apart by the columns of the
 * one table they are made for, so they refuse every other call.
 */
#include "base/compat.h"

#include "fmgr.h"
#include "utils/rel.h"

#include "base/trigger.h"

/* Is it called by the trigger that it is made for? */
static bool
is_own_trigger(FunctionCallInfo fcinfo, PjTable *table, int when, int event)
{
	TriggerData *data = (TriggerData *) fcinfo->context;

	return CALLED_AS_TRIGGER(fcinfo) &&
		RelationGetRelid(data->tg_relation) == pj_relid(table) &&
		(data->tg_event & (TRIGGER_EVENT_ROW | TRIGGER_EVENT_TIMINGMASK)) ==
		when &&
		(event == PJ_ANY_EVENT ||
		 (data->tg_event & TRIGGER_EVENT_OPMASK) == event);
}

/* The data of a trigger function's call; an error if it is not as it should be. */
TriggerData *
pj_trigger_data(FunctionCallInfo fcinfo, const char *function, PjTable *table,
				int when, int event)
{
	if (!is_own_trigger(fcinfo, table, when, event))
		ereport(ERROR,
				errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				errmsg("projector.%s can be called by the trigger on table projector.%s only",
					   function, table->name),
				errhint("Drop the trigger that calls it."));
	return (TriggerData *) fcinfo->context;
}
