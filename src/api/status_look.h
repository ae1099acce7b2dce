/*
 * status_look.h
 *	  One look at how things are: what is found out once, and the rows of the
 *	  status views.
 */
#ifndef PJ_STATUS_LOOK_H
#define PJ_STATUS_LOOK_H

#include "base/compat.h"
#include "datatype/timestamp.h"

#include "ipc/shmem.h"
#include "state/pair.h"
#include "state/pair_look.h"

/* How a pair is: the first of these that holds.  In status_why.c by name. */
typedef enum PjStatus
{
	PJ_IS_DORMANT,
	PJ_IS_OFF,
	PJ_IS_PAUSED,
	PJ_IS_BLOCKED,
	PJ_IS_FAILING,
	PJ_IS_REBUILDING,
	PJ_IS_STARTING,
	PJ_HAS_NO_WORKER,
	PJ_IS_WAITING,
	PJ_IS_LAGGING,
	PJ_IS_SHADOW,
	PJ_IS_OK,
	PJ_STATUS_COUNT
} PjStatus;

/* A session that keeps others from a projection or a pair. */
typedef struct PjLocker
{
	int			class;			/* of the lock */
	int64		key;			/* the projection, or the pair's hash */
	int			pid;
	char	   *role;
	TimestampTz since;
} PjLocker;

/* An open transaction that has appended events. */
typedef struct PjAppender
{
	char	   *name;			/* the process or the prepared transaction */
	TimestampTz since;
} PjAppender;

/* A projection, as its row in the registry is, whether it can be read or not. */
typedef struct PjStatusProjection
{
	int32		id;
	Datum		name;
	Datum		kind;
	Datum		mode_name;
	PjMode		mode;
	bool		log_ordered;
	Datum	   *types;			/* event types, sorted; NULL for all */
	int			ntypes;
	bool		handed_over;
	bool		started;
	bool		paused;
	Datum		paused_by;		/* 0 if null, and so are the others */
	Datum		pause_reason;
	TimestampTz paused_at;
	Datum		definition_hash;
	TimestampTz created_at;

	bool		dormant;
	char	   *problem;		/* why it cannot run, or NULL */
	Datum		definition_now; /* or 0 */
} PjStatusProjection;

/* What is wanted of pairs beyond what tells their state. */
typedef struct PjStatusNeeds
{
	bool		why;
	bool		totals;
	bool		digests;
	bool		errors;
	bool		failing;
} PjStatusNeeds;

typedef struct PjStatusLook
{
	MemoryContext context;		/* of everything that is kept */
	PjStatusNeeds needs;
	int64		limit;			/* of what is counted for a pair */
	TimestampTz now;
	PjPairLook	pairs;
	PjTenants	tenants;		/* of the log, in their order */
	PjStatusProjection *projections;	/* in the order of their names */
	int			nprojections;
	PjWorkerActivity *workers;
	int			nworkers;
	char	   *no_worker;		/* why there is none, or NULL */
	PjLocker   *lockers;		/* by class and key */
	int			nlockers;
	bool		appender_known; /* the next one has been looked for */
	PjAppender *appender;		/* the oldest, or NULL */
} PjStatusLook;

/* How a pair is; without a tenant, a projection that has none. */
typedef struct PjStatusRow
{
	const PjStatusProjection *projection;
	Datum		tenant;			/* or 0 */
	PjStatus	state;
	PjMode		mode;
	PjState		cursor_state;
	PjCursorRow cursor;
	bool		paused;
	PjOutboxCounts outbox;
	PjActiveRun run;
	int64		lag_events;
	int64		oldest;			/* the oldest of them, or 0 */
	bool		has_lag_time;
	Interval	lag_time;
	bool		late;			/* longer than projector.lag_warning */
	bool		awaits_log;		/* an open transaction is in its way */
	int			worker_pid;		/* or 0 */
	const PjLocker *locker;		/* who has it alone, or NULL */
	const PjLocker *driver;		/* who keeps drivers out, or NULL */
	PjPairTotals totals;
	bool		stale;
	PjErrors	errors;
	TimestampTz failing_since;
} PjStatusRow;

extern void pj_status_look_begin(PjStatusLook *look, Snapshot snapshot,
								 Datum name, bool one_tenant);
extern void pj_status_look(PjStatusLook *look, Snapshot snapshot, Datum name,
						   Datum tenant);
extern void pj_status_look_end(PjStatusLook *look);
extern const PjAppender *pj_status_appender(PjStatusLook *look);
extern const PjLocker *pj_status_locker(const PjStatusLook *look, int class,
										int64 key);

/* status_row.c */
extern void pj_status_row(PjStatusLook *look,
						  const PjStatusProjection *projection, Datum tenant,
						  int64 *last, PjStatusRow *row);

/* status_why.c */
extern const char *const pj_status_names[];
extern char *pj_status_why(PjStatusLook *look, const PjStatusRow *row);
extern char *pj_status_dead(const PjBrokenItem *item);
extern char *pj_status_failing(const PjStatusRow *row);

#endif							/* PJ_STATUS_LOOK_H */
