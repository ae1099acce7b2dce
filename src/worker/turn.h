/*
 * turn.h
 *	  Sharing worker processes between databases.
 */
#ifndef PJ_TURN_H
#define PJ_TURN_H

#include "base/compat.h"
#include "datatype/timestamp.h"

extern bool pj_turn_is_over(TimestampTz idle_since, TimestampTz next_due);
extern void pj_turn_start_others(void);

#endif							/* PJ_TURN_H */
