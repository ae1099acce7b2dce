/*
 * blame.h
 *	  Which pair a worker is working on, and which pairs it leaves alone.
 */
#ifndef PJ_BLAME_H
#define PJ_BLAME_H

#include "base/compat.h"
#include "datatype/timestamp.h"

extern void pj_current_set(int32 projection_id, Datum tenant);
extern void pj_current_clear(void);
extern bool pj_current(int32 *projection_id, Datum *tenant);

extern void pj_penalize(int ms);
extern bool pj_is_penalized(int32 projection_id, Datum tenant,
							TimestampTz *until);

#endif							/* PJ_BLAME_H */
