/*
 * apply.h
 *	  Apply events.
 */
#ifndef PJ_APPLY_H
#define PJ_APPLY_H

#include "base/compat.h"

#include "log/log_read.h"
#include "state/cursor.h"
#include "state/digest.h"
#include "state/outbox.h"

typedef enum PjDriver
{
	PJ_BY_APPEND,				/* inline: queue what cannot be applied */
	PJ_BY_STRICT_APPEND,		/* raise an error if it cannot be applied */
	PJ_BY_QUEUE,				/* claimed items */
	PJ_BY_RETRY,				/* one item, regardless of its next attempt
								 * time */
	PJ_BY_LOG					/* events read from the log; else as
								 * PJ_BY_APPEND */
} PjDriver;

/* What to do with an event that fails. */
typedef enum PjOnError
{
	PJ_ERROR_RECORDED,			/* keep it for a retry */
	PJ_ERROR_RAISED,
	PJ_ERROR_SKIPPED			/* skip it at once */
} PjOnError;

/* The purpose of a request. */
typedef enum PjPurpose
{
	PJ_TO_APPLY,
	PJ_TO_ANNOUNCE,				/* count an attempt of the first event, and
								 * apply nothing (see caution.c) */
	PJ_TO_TRY					/* apply, then roll back (see shadow.c) */
} PjPurpose;

/* The result of a trial, for a claimed item. */
typedef enum PjVerdict
{
	PJ_WOULD_PASS,
	PJ_WOULD_FAIL,
	PJ_UNTESTED					/* after one that failed, or too far ahead */
} PjVerdict;

/* What to apply, and how. */
typedef struct PjApplyRequest
{
	PjPurpose	purpose;
	PjPair	   *pair;
	PjDriver	driver;
	PjRange    *ranges;			/* aggregates, each with a last event */
	int			nranges;
	PjEvent    *given;			/* the ranges' last events, unless there are
								 * items; in log order if log-ordered */
	int			ngiven;
	PjClaim    *claims;			/* the ranges' items, if the source is the
								 * outbox */
	int			nclaims;
	int64		retry;			/* log_seq of an event to try even if it is
								 * dead or not due, or 0 */
	bool		counted;		/* its attempt has been counted already */
	PjOnError	on_error;
	bool		rebuild;		/* all events are read again from the log */
	struct PjReplayCache *cache;	/* keeps rows and offsets in memory, or
									 * NULL; errors must be raised then */
} PjApplyRequest;

/* The results of a request. */
typedef struct PjApplyResult
{
	int64		applied;
	int64		skipped;
	int64		failed;
	int64		failed_at;		/* sequence number of the last failed event */
	int64		dead;			/* events that are dead now */
	const PjEvent *announced;	/* the event whose attempt was counted */
	int64		us;				/* time taken, in microseconds */
	PjDigest	digest;			/* change of the read model's digest */
	int64		first_log_seq;	/* lowest log position of an applied event */
	int64		last_log_seq;	/* log position of the last applied event */
	int64		passed;			/* if log-ordered: all events up to this
								 * log_seq are done */
	int64		held;			/* items newly marked as held */
	int64		blocked;		/* aggregates that cannot continue now */
	bool		released;		/* some items are no longer held */
	int64		dropped;		/* items that needed no more work */
	bool		busy;			/* an open transaction has moved some offset */
	bool		conflict;		/* another transaction kept moving an offset,
								 * or the projection can no longer run */
	bool		incomplete;		/* the limit cut something off */
	PjVerdict  *verdicts;		/* per claim, if they were tried and there was
								 * no conflict */
} PjApplyResult;

/* Are the events applied by the transaction that appends them? */
static inline bool
pj_is_append(const PjApplyRequest *request)
{
	return request->driver == PJ_BY_APPEND ||
		request->driver == PJ_BY_STRICT_APPEND;
}

/* Add the results to a pair's counters. */
static inline void
pj_apply_count(const PjApplyResult *result, PjCounts *counts)
{
	counts->applied += result->applied;
	counts->failed += result->failed;
	counts->dead += result->dead;
	counts->batches += result->applied > 0;
	counts->us += result->us;
}

/* the error message of an announced event */
extern const char pj_suspect_message[];

extern void pj_apply(const PjApplyRequest *request, PjApplyResult *result);
extern void pj_apply_keep_digest(const PjPair *pair, const PjDigest *by,
								 int64 log_seq);

#endif							/* PJ_APPLY_H */
