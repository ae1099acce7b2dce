/*
 * projection.h
 *	  The registry of projections.
 */
#ifndef PJ_PROJECTION_H
#define PJ_PROJECTION_H

#include "base/compat.h"
#include "storage/lockdefs.h"

#include "log/log_read.h"
#include "registry/options.h"
#include "sandbox/settings.h"

typedef enum PjMode
{
	PJ_OFF,
	PJ_SHADOW,
	PJ_ASYNC,
	PJ_FOLLOW,
	PJ_INLINE,
	PJ_STRICT
} PjMode;

/* In which way a projection says what it does with events. */
typedef enum PjKindId
{
	PJ_KIND_HANDLER,
	PJ_KIND_FOLD,
	PJ_KIND_FOLD_COLUMNS,
	PJ_KIND_STATEMENT
} PjKindId;

/* Which events must not overtake each other. */
typedef enum PjOrdering
{
	PJ_ORDERING_UNSET = -1,		/* as the kind needs it */
	PJ_ORDERING_AGGREGATE,		/* those of an aggregate */
	PJ_ORDERING_LOG				/* those of a tenant */
} PjOrdering;

extern const char *const pj_mode_names[];
extern const char *const pj_kind_names[];
extern const char *const pj_ordering_names[];

/*
 * What is projected: a row of the registry.  Where it is written is said by
 * PjDestination.
 */
typedef struct PjProjection
{
	int32		id;
	const char *name;
	const char *owner;			/* its name when the row was written */
	PjKindId	kind;
	const char *handler;		/* one of these four, according to kind; names
								 * are schema-qualified and quoted */
	const char *fold;
	Jsonb	   *fold_columns;
	const char *statement;
	Datum		targets;		/* text[] of such names */
	bool		resolved;		/* the next two are known; else names count */
	Oid			owner_oid;
	Oid		   *target_oids;	/* as many as targets; invalid if missing */
	int			target_changes; /* how often targets were changed */
	const char *key;
	Datum		event_types;	/* text[], or 0 for all */
	Datum	   *types;			/* the same, taken apart */
	int			ntypes;
	PjMode		mode;
	PjOrdering	ordering;
	bool		log_ordered;	/* ordering is PJ_ORDERING_LOG */
	Jsonb	   *options_json;
	PjOptions	options;
	bool		paused;
	bool		overrides;		/* look at projection_cursors too */
	bool		skips;			/* look for skipped events too */
	bool		handed_over;	/* handover_log_seq is set */
	int64		handover_log_seq;
	bool		started;		/* it has been handed over before */
	TransactionId written_by;	/* the transaction that wrote the registry's
								 * row */
	uint64		version;		/* of that row: another one after each change */
	bool		dormant;		/* it lives in another database */
	const char *unreadable;		/* what is wrong with the row, or NULL */
	bool		misnamed;		/* what is wrong are the targets' names */
	const char *search_path;
	Jsonb	   *settings_json;
	PjSetting  *settings;		/* the same, taken apart */
} PjProjection;

struct PjStatement;

extern int	pj_projections(PjProjection **projections);
extern int	pj_projections_in_order(PjProjection ***ordered);
extern uint64 pj_projections_generation(void);
extern PjProjection *pj_projection_by_id(int32 id);
extern bool pj_projection_exists(const char *name);
extern PjProjection *pj_projection_find(const char *name);
extern bool pj_projection_is_own(const PjProjection *projection);
extern void pj_projection_check_own(const PjProjection *projection);
extern PjProjection *pj_projection_own(const char *name, LOCKMODE mode);

/* Is it a fold, written as a function or as expressions? */
static inline bool
pj_is_fold(PjKindId kind)
{
	return kind == PJ_KIND_FOLD || kind == PJ_KIND_FOLD_COLUMNS;
}

/* Is a fold's key the aggregate, so that each has a row of its own? */
static inline bool
pj_key_is_aggregate(const char *key)
{
	return strcmp(key, "aggregate_id") == 0;
}

extern PjMode pj_mode(const char *name);
extern PjOrdering pj_ordering(const char *name);
extern bool pj_mode_queues(PjMode mode);
extern bool pj_projection_wants(const PjProjection *projection,
								const PjEvent *event);
extern Oid	pj_projection_role(const PjProjection *projection);
extern Oid	pj_projection_owner(const PjProjection *projection);
extern Oid	pj_registry_relid(void);
extern void pj_run_as_owner(const PjProjection *projection, const char *tenant,
							void (*body) (void *), void *arg);
extern void pj_read_as_owner(const PjProjection *projection,
							 const char *tenant, void (*body) (void *),
							 void *arg);
extern void pj_registry_update(struct PjStatement *stmt, Datum *values,
							   const char *nulls);
extern void pj_registry_note_overrides(const PjProjection *projection,
									   bool forget_handover);
extern void pj_refuse_dormant(const PjProjection *projection);
extern char *pj_home(void);

#endif							/* PJ_PROJECTION_H */
