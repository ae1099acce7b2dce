/*
 * apply.h
 *	  The one way in which events are applied.
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
	PJ_BY_APPEND,				/* inline: what cannot be applied is queued */
	PJ_BY_STRICT_APPEND,		/* what cannot be applied is an error */
	PJ_BY_QUEUE,				/* claimed items */
	PJ_BY_RETRY,				/* one item, whatever its back-off */
	PJ_BY_LOG					/* the log is being read; else as PJ_BY_APPEND */
} PjDriver;

/* What to do with an event that fails. */
typedef enum PjOnError
{
	PJ_ERROR_RECORDED,			/* keep it, to be tried again */
	PJ_ERROR_RAISED,
	PJ_ERROR_SKIPPED			/* skip it at once */
} PjOnError;

/* What is to come of it. */
typedef enum PjPurpose
{
	PJ_TO_APPLY,
	PJ_TO_ANNOUNCE,				/* count the first event's attempt, and apply
								 * nothing (see caution.c) */
	PJ_TO_TRY					/* apply, and roll back: nothing is changed
								 * (see shadow.c) */
} PjPurpose;

/* What trying it has shown of a claimed item. */
typedef enum PjVerdict
{
	PJ_WOULD_PASS,
	PJ_WOULD_FAIL,
	PJ_UNTESTED					/* behind one that failed, or too far ahead */
} PjVerdict;

/* What to apply, and how. */
typedef struct PjApplyRequest
{
	PjPurpose	purpose;
	PjPair	   *pair;
	PjDriver	driver;
	PjRange    *ranges;			/* aggregates, each up to which event */
	int			nranges;
	PjEvent    *given;			/* the ranges' last events, except for items;
								 * if log-ordered, as they are in the log */
	int			ngiven;
	PjClaim    *claims;			/* the ranges' items, if they come from some */
	int			nclaims;
	int64		retry;			/* log_seq of the event to be tried even if it
								 * is dead or its time has not come, or 0 */
	bool		counted;		/* its attempt has been counted already */
	PjOnError	on_error;
	bool		rebuild;		/* the events are read again, all of them */
	struct PjReplayCache *cache;	/* keeps what is written, or NULL; errors
									 * must be raised then */
} PjApplyRequest;

/* What became of it. */
typedef struct PjApplyResult
{
	int64		applied;
	int64		skipped;
	int64		failed;
	int64		failed_at;		/* the last failed event's sequence number */
	int64		dead;			/* events that are dead now */
	const PjEvent *announced;	/* the event whose attempt was counted */
	int64		us;				/* microseconds it took */
	PjDigest	digest;			/* how the read model's has changed */
	int64		first_log_seq;	/* the first position of an event applied */
	int64		last_log_seq;	/* the last one */
	int64		passed;			/* if log-ordered: all up to this log_seq are
								 * done with */
	int64		held;			/* items newly marked as held */
	int64		blocked;		/* aggregates that wait for something */
	bool		released;		/* items that were held no longer are */
	int64		dropped;		/* items there was nothing left to do for */
	bool		busy;			/* an open transaction has moved some offset */
	bool		conflict;		/* another transaction kept moving an offset,
								 * or the projection can no longer run */
	bool		incomplete;		/* the limit cut something off */
	PjVerdict  *verdicts;		/* of the claims, if they were to be tried and
								 * nothing was in conflict */
} PjApplyResult;

/* Is it the transaction that appends the events which applies them? */
static inline bool
pj_is_append(const PjApplyRequest *request)
{
	return request->driver == PJ_BY_APPEND ||
		request->driver == PJ_BY_STRICT_APPEND;
}

/* Add to what has been done for the pair. */
static inline void
pj_apply_count(const PjApplyResult *result, PjCounts *counts)
{
	counts->applied += result->applied;
	counts->failed += result->failed;
	counts->dead += result->dead;
	counts->batches += result->applied > 0;
	counts->us += result->us;
}

/* the error of an event that was announced */
extern const char pj_suspect_message[];

extern void pj_apply(const PjApplyRequest *request, PjApplyResult *result);
extern void pj_apply_keep_digest(const PjPair *pair, const PjDigest *by,
								 int64 log_seq);

#endif							/* PJ_APPLY_H */
