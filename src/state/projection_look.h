/*
 * projection_look.h
 *	  What the metrics want to know of a projection, whatever its tenants.
 */
#ifndef PJ_PROJECTION_LOOK_H
#define PJ_PROJECTION_LOOK_H

#include "base/compat.h"
#include "datatype/timestamp.h"

#include "registry/projection.h"
#include "state/own_modes.h"
#include "state/pair_look.h"

/* A pair that reads the log, and has not read all of it. */
typedef struct PjBehind
{
	Datum		tenant;
	int64		position;
	bool		stuck;			/* at a dead event, or paused */
} PjBehind;

typedef struct PjProjectionLook
{
	/* set by the caller */
	int32		id;
	PjMode		mode;
	bool		log_ordered;
	TimestampTz created_at;
	const Datum *types;			/* event types, sorted; NULL for all */
	int			ntypes;

	/* what has been done */
	int64		applied;
	int64		failed;
	int64		dead;
	int64		batches;
	int64		us;				/* time taken */

	/* what is to be done */
	PjOwnModes	modes;
	PjOutboxCounts outbox;
	int64		items;			/* of pairs that apply events */
	PjBehind   *behind;			/* those furthest behind first */
	int			nbehind;
	int			room;
	int64		read_upto;		/* where the first of those is that read it */
	TimestampTz read_at;		/* when it came there */
	int64		unread;			/* events that have yet to be read */
	bool		has_work;		/* in the log, for a worker */
	TimestampTz oldest_at;		/* of all that is to be done, or 0 */

	Datum	   *paused;			/* some tenants that are */
	int			npaused;
	int64		runs_active;
	int64		runs_failed;	/* and not been followed by another run */
	int64		run_processed;	/* events of active runs */
	int64		run_total;
} PjProjectionLook;

extern void pj_projections_look(PjPairLook *pairs, PjProjectionLook *looks,
								int n, int max_tenants);
extern bool pj_projection_look_has_items(PjPairLook *pairs,
										 const PjProjectionLook *look);
extern int	pj_projection_look_tenants(PjPairLook *pairs,
									   const PjProjectionLook *look,
									   int max_tenants, Datum *tenants);

#endif							/* PJ_PROJECTION_LOOK_H */
