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

/* How a projection defines what it does with events. */
typedef enum PjKindId
{
	PJ_KIND_HANDLER,
	PJ_KIND_FOLD,
	PJ_KIND_FOLD_COLUMNS,
	PJ_KIND_STATEMENT
} PjKindId;

/* Which events must be applied in order. */
typedef enum PjOrdering
{
	PJ_ORDERING_UNSET = -1,		/* as required by the kind */
	PJ_ORDERING_AGGREGATE,		/* those of one aggregate */
	PJ_ORDERING_LOG				/* those of one tenant */
} PjOrdering;

extern const char *const pj_mode_names[];
extern const char *const pj_kind_names[];
extern const char *const pj_ordering_names[];

/*
 * What is projected: a row of the registry.  PjDestination says where the
 * results are written.
 */
typedef struct PjProjection
{
	int32		id;
	const char *name;
	const char *owner;			/* the owner's name when the row was written */
	PjKindId	kind;
	const char *handler;		/* one of these four, according to kind; names
								 * are schema-qualified and quoted */
	const char *fold;
	Jsonb	   *fold_columns;
	const char *statement;
	Datum		targets;		/* text[] of such names */
	bool		resolved;		/* the next two are valid; else use the names */
	Oid			owner_oid;
	Oid		   *target_oids;	/* one per target; InvalidOid if missing */
	int			redefinitions;	/* how often the definition was changed */
	const bytea *definition_hash;	/* of the definition last registered */
	const char *key;
	Datum		event_types;	/* text[], or 0 for all */
	Datum	   *types;			/* the same as an array of Datums */
	int			ntypes;
	PjMode		mode;
	PjOrdering	ordering;
	bool		log_ordered;	/* ordering is PJ_ORDERING_LOG */
	Jsonb	   *options_json;
	PjOptions	options;
	bool		paused;
	bool		overrides;		/* a tenant has a mode, pause or run of its
								 * own */
	bool		skips;			/* some events may have been skipped */
	bool		handed_over;	/* handover_log_seq is set */
	int64		handover_log_seq;
	bool		started;		/* has been handed over before */
	TransactionId written_by;	/* the transaction that wrote the registry's
								 * row */
	uint64		version;		/* of that row; different after each change */
	bool		dormant;		/* its home is another database */
	const char *unreadable;		/* what is wrong with the row, or NULL */
	bool		misnamed;		/* column targets is unreadable */
	const char *search_path;
	Jsonb	   *settings_json;
	PjSetting  *settings;		/* the same, parsed */
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

/* Is it a fold, defined by a function or by expressions? */
static inline bool
pj_is_fold(PjKindId kind)
{
	return kind == PJ_KIND_FOLD || kind == PJ_KIND_FOLD_COLUMNS;
}

/* Is a fold's key the aggregate, so that each aggregate has its own row? */
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
