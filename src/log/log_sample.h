/*
 * log_sample.h
 *	  A sample of a tenant's events.
 */
#ifndef PJ_LOG_SAMPLE_H
#define PJ_LOG_SAMPLE_H

#include "base/compat.h"

/* An aggregate of a sample, and how many events it stands for. */
typedef struct PjSampled
{
	Datum		aggregate;
	double		events;
} PjSampled;

typedef struct PjSample
{
	PjSampled  *sampled;		/* sorted by aggregate; some may be equal */
	int			count;
	double		events;			/* how many the tenant has, about */
} PjSample;

extern void pj_source_sample(Datum tenant, PjSample *sample);

#endif							/* PJ_LOG_SAMPLE_H */
