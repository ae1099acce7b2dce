/*
 * trigger.c
 *	  Checks for our trigger functions.
 *
 * A user who may execute a trigger function can create a trigger with it on
 * any table, and for any event.  Our functions rely on the columns of one
 * particular table, so they refuse all other calls.
 */
#include "base/compat.h"

#include "fmgr.h"
#include "utils/rel.h"

#include "base/trigger.h"

/* Is the function called by the trigger it was written for? */
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

/*
 * Returns a trigger function's TriggerData; raises an error if the call is not
 * as expected.
 */
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
