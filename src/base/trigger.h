/*
 * trigger.h
 *	  Checks for our trigger functions.
 */
#ifndef PJ_TRIGGER_H
#define PJ_TRIGGER_H

#include "base/compat.h"

#include "commands/trigger.h"

#include "base/fetch.h"

/*
 * When a trigger fires: combinations of TRIGGER_EVENT_ROW and
 * TRIGGER_EVENT_BEFORE.
 */
#define PJ_BEFORE_ROW		(TRIGGER_EVENT_BEFORE | TRIGGER_EVENT_ROW)
#define PJ_BEFORE_STATEMENT	TRIGGER_EVENT_BEFORE
#define PJ_AFTER_STATEMENT	0

/* Use this if the trigger fires for more than one kind of event. */
#define PJ_ANY_EVENT		(-1)

extern TriggerData *pj_trigger_data(FunctionCallInfo fcinfo,
									const char *function, PjTable *table,
									int when, int event);

#endif							/* PJ_TRIGGER_H */
