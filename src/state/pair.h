/*
 * pair.h
 *	  A projection and a tenant: what is applied for whom, and to where.
 *
 * A projection says what is projected, and is always the registry's row, or,
 * for a preview, one that is like it.  Where that is written is the pair's
 * destination: the live read model, or one that readers do not see.
 */
#ifndef PJ_PAIR_H
#define PJ_PAIR_H

#include "base/compat.h"

#include "registry/projection.h"

typedef enum PjState
{
	PJ_LIVE,
	PJ_REPLAYING,				/* the log is to be read up to the handover */
	PJ_SWITCHING,				/* so it is here, after having been off */
	PJ_STOPPED					/* at a dead event, in log order */
} PjState;

/*
 * Where events are applied to, if not to the live read model: a build of a run,
 * or a dry run that will be rolled back.  Its offsets, items, failures and
 * digest are kept under a number of their own, so that they never meet those
 * of the live read model.
 */
typedef struct PjDestination
{
	int32		books;			/* the number they are kept under, in column
								 * projection_id */
	Oid			table;			/* has a fold's rows; if invalid the target
								 * has them */
	bool		trial;			/* all of it will be rolled back */
	bool		blank;			/* nothing was kept under that number when it
								 * was made */
} PjDestination;

typedef struct PjPair
{
	PjProjection *projection;
	Datum		tenant;
	const PjDestination *destination;	/* NULL: the live read model */
	PjMode		mode;			/* the tenant's own, or the projection's */
	bool		paused;
	int64		run_id;			/* of the active run, or 0 */
	int64		last_log_seq;
	PjState		state;
	int64		handover;		/* if it is behind: read the log up to here */
	bool		own_handover;	/* which is its own, and may not be settled */
	bool		exists;			/* there is a row */
} PjPair;

/*
 * The number that the books of a projection's build are kept under.  There is
 * one for all of its builds: a tenant has one at a time.
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

/* The number that a pair's books are kept under. */
static inline int32
pj_pair_books(const PjPair *pair)
{
	return pair->destination ? pair->destination->books :
		pair->projection->id;
}

/* The table that has a fold's rows instead of its target, or InvalidOid. */
static inline Oid
pj_pair_table(const PjPair *pair)
{
	return pair->destination ? pair->destination->table : InvalidOid;
}

/* Will all that is applied be rolled back?  Then nobody asks for its digest. */
static inline bool
pj_pair_is_trial(const PjPair *pair)
{
	return pair->destination && pair->destination->trial;
}

/* Is the log to be read before anything else? */
static inline bool
pj_pair_behind(const PjPair *pair)
{
	return pair->state == PJ_REPLAYING || pair->state == PJ_SWITCHING;
}

/* Do all of its events come from the log, and none from the outbox alone? */
static inline bool
pj_pair_reads_log(const PjPair *pair)
{
	return pair->mode == PJ_FOLLOW || pair->projection->log_ordered;
}

/* Is it read up to the log's tail, now? */
static inline bool
pj_pair_needs_tail(const PjPair *pair)
{
	return pj_pair_reads_log(pair) ||
		(pj_pair_behind(pair) && pair->own_handover);
}

/* Has it come to its handover?  Then the capture trigger queues its events. */
static inline bool
pj_pair_caught_up(const PjPair *pair)
{
	return pj_pair_behind(pair) && pair->projection->handed_over &&
		pair->last_log_seq >= pair->handover;
}

extern void pj_pair_lock(int32 projection_id, Datum tenant, LOCKMODE mode);
extern PjProjection *pj_take_alone(const char *function, const char *name,
								   Datum tenant);
extern PjProjection *pj_take_driver(const char *function, const char *name,
									Datum tenant, LOCKMODE mode);

#endif							/* PJ_PAIR_H */
