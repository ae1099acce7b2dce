/*
 * pair.h
 *	  A projection and a tenant: what is applied, for whom, and where it is
 *	  written.
 *
 * The projection says what is applied.  It is always the registry row or, for
 * a preview, a modified copy of it.  The destination says where the results
 * go: to the live read model, or to one that readers do not see.
 */
#ifndef PJ_PAIR_H
#define PJ_PAIR_H

#include "base/compat.h"
#include "common/sha2.h"

#include "registry/projection.h"

typedef enum PjState
{
	PJ_LIVE,
	PJ_REPLAYING,				/* the log must be read up to the handover */
	PJ_SWITCHING,				/* the same, after the pair was off */
	PJ_STOPPED					/* at a dead event, in log order */
} PjState;

extern const char *const pj_state_names[];

/*
 * Where events are applied if not to the live read model: to a build of a run,
 * or to a dry run that will be rolled back.  Its offsets, items, failures and
 * digest have an id of their own, so that they are kept apart from those of
 * the live read model.
 */
typedef struct PjDestination
{
	int32		books;			/* that id, in column projection_id */
	Oid			table;			/* contains a fold's rows; if invalid, the
								 * target does */
	bool		trial;			/* everything will be rolled back */
	bool		blank;			/* there were no rows under that id when the
								 * destination was made */
	struct PjDigestSum *digest; /* if not NULL, changes of the digest are
								 * added here, and the caller stores them */
} PjDestination;

/* Which definition made the rows of a pair's read model, as far as is noted. */
typedef struct PjMadeBy
{
	bool		several;		/* more than one, or another and the present */
	uint8		hash[PG_SHA256_DIGEST_LENGTH];	/* if it is one */
} PjMadeBy;

typedef struct PjPair
{
	PjProjection *projection;
	Datum		tenant;
	const PjDestination *destination;	/* NULL for the live read model */
	PjMode		mode;			/* the tenant's own mode, or the projection's */
	bool		paused;
	int64		run_id;			/* of the active run, or 0 */
	int64		last_log_seq;
	PjState		state;
	int64		handover;		/* while behind: read the log up to here */
	bool		own_handover;	/* the handover is the tenant's own; events up
								 * to it may not be visible yet */
	bool		exists;			/* the cursor's row exists */
	bool		unsaved;		/* this transaction wrote the cursor's row */
	PjMadeBy	made_by;
} PjPair;

/*
 * The id under which the books of a projection's builds are kept.  All of its
 * builds share one id, because a tenant has only one build at a time.
 */
#define PJ_BOOKS_OF_BUILD "(-$1)"	/* in SQL, of projection $1 */
#define PJ_PROJECTION_OF_BOOKS(books) "abs(" books ")"

static inline int32
pj_books_of_build(int32 projection_id)
{
	return -projection_id;
}

static inline bool
pj_books_are_of_build(int32 books)
{
	return books < 0;
}

/* Returns the id under which a pair's books are kept. */
static inline int32
pj_pair_books(const PjPair *pair)
{
	return pair->destination ? pair->destination->books :
		pair->projection->id;
}

/*
 * Returns the table that contains a fold's rows instead of its target, or
 * InvalidOid.
 */
static inline Oid
pj_pair_table(const PjPair *pair)
{
	return pair->destination ? pair->destination->table : InvalidOid;
}

/* Will everything be rolled back?  Then no digest is needed. */
static inline bool
pj_pair_is_trial(const PjPair *pair)
{
	return pair->destination && pair->destination->trial;
}

/* Must the log be read before anything else? */
static inline bool
pj_pair_behind(const PjPair *pair)
{
	return pair->state == PJ_REPLAYING || pair->state == PJ_SWITCHING;
}

/* Do all of its events come from the log, and none only from the outbox? */
static inline bool
pj_pair_reads_log(const PjPair *pair)
{
	return pair->mode == PJ_FOLLOW || pair->projection->log_ordered;
}

/* Is the log read up to its current tail? */
static inline bool
pj_pair_needs_tail(const PjPair *pair)
{
	return pj_pair_reads_log(pair) ||
		(pj_pair_behind(pair) && pair->own_handover);
}

/*
 * Has the pair reached its handover?  Then the capture trigger queues its
 * events.
 */
static inline bool
pj_pair_caught_up(const PjPair *pair)
{
	return pj_pair_behind(pair) && pair->projection->handed_over &&
		pair->last_log_seq >= pair->handover;
}

extern void pj_pair_lock(int32 projection_id, Datum tenant, LOCKMODE mode);
extern bool pj_pair_try_lock(int32 projection_id, Datum tenant,
							 LOCKMODE mode);
extern bool pj_pair_try_share(int32 projection_id, Datum tenant);
extern void pj_pair_unshare(int32 projection_id, Datum tenant);
extern PjProjection *pj_take_alone(const char *function, const char *name,
								   Datum tenant);
extern PjProjection *pj_take_driver(const char *function, const char *name,
									Datum tenant, LOCKMODE mode);

#endif							/* PJ_PAIR_H */
