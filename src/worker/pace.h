/*
 * pace.h
 *	  How fast a worker processes runs.
 */
#ifndef PJ_PACE_H
#define PJ_PACE_H

#include "base/compat.h"
#include "datatype/timestamp.h"

extern int	pj_pace_batch(void);
extern void pj_pace_used(TimestampTz started_at, int events);
extern bool pj_pace_is_due(TimestampTz *at);

#endif							/* PJ_PACE_H */
