/*
 * latency.h
 *	  How long events waited until they were applied.
 */
#ifndef PJ_LATENCY_H
#define PJ_LATENCY_H

#include "base/compat.h"
#include "datatype/timestamp.h"

/* One for each bound, and one for what took longer. */
#define PJ_LATENCY_BUCKETS	18

extern const double pj_latency_bounds[PJ_LATENCY_BUCKETS - 1];	/* seconds */

/* How many events waited that long, and how long all of them together. */
typedef struct PjLatency
{
	uint64		counts[PJ_LATENCY_BUCKETS];
	double		seconds;
} PjLatency;

extern void pj_latency_note(TimestampTz recorded_at, TimestampTz now);
extern bool pj_latency_read(PjLatency *latency);
extern void pj_latency_init(void);

#endif							/* PJ_LATENCY_H */
