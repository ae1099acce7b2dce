/*
 * failure.h
 *	  What happens when an event fails.
 */
#ifndef PJ_FAILURE_H
#define PJ_FAILURE_H

#include "base/compat.h"

#include "state/pair.h"

/*
 * Condition for the rows of projection_failures that record a decision to
 * skip.
 */
#define PJ_SKIP_DECIDED "resolution = 'skipped' AND metadata ? 'skip_reason'"

/* Transient errors get this many times the attempts. */
#define PJ_TRANSIENT_FACTOR 4

/* What to do with an event that has failed. */
typedef enum PjOutcome
{
	PJ_TRY_AGAIN,				/* retry it later */
	PJ_GIVE_UP,					/* mark it dead */
	PJ_PASS_OVER				/* skip it, as option on_error says */
} PjOutcome;

extern void pj_failure_name_timeout(ErrorData *error);
extern bool pj_failure_swallowed(const ErrorData *error);
extern bool pj_failure_transient(const ErrorData *error);
extern PjOutcome pj_failure_record(const PjPair *pair, const PjEvent *event,
								   int attempts_before,
								   const ErrorData *error);
extern PjOutcome pj_failure_record_missing(const PjPair *pair,
										   const PjEvent *event,
										   int attempts_before);
extern void pj_failure_pass_over(const PjPair *pair, const PjEvent *event,
								 const ErrorData *error);
extern void pj_failure_rebuilt(const PjProjection *projection, Datum tenant,
							   Datum aggregate, int64 upto);
extern void pj_failure_record_shadow(const PjPair *pair,
									 const PjEvent *event,
									 const ErrorData *error);
extern void pj_failure_resolve(const PjPair *pair, const int64 *log_seqs,
							   int n, const char *resolution);

extern void pj_failure_mark_skipped(const PjProjection *projection,
									PjEvent *const *events, int n);
extern bool pj_failure_skip(const PjPair *pair, const PjEvent *event,
							Datum reason, const char *who);
extern bool pj_failure_unskip(const PjProjection *projection, int64 log_seq);
extern void pj_failure_note_skips(const PjProjection *projection);
extern int32 pj_failure_projection(int64 failure_id);
extern void pj_failure_note(int64 failure_id, Datum remarks);

#endif							/* PJ_FAILURE_H */
