/*
 * failure.h
 *	  What happens to an event that fails.
 */
#ifndef PJ_FAILURE_H
#define PJ_FAILURE_H

#include "compat.h"

#include "projection.h"

extern bool pj_failure_swallowed(const ErrorData *error);
extern bool pj_failure_transient(const ErrorData *error);
extern void pj_failure_record(const PjProjection *projection,
							  const PjEvent *event, int attempts_before,
							  const ErrorData *error);
extern void pj_failure_resolve(const PjProjection *projection,
							   const int64 *log_seqs, int n,
							   const char *resolution);

#endif							/* PJ_FAILURE_H */
