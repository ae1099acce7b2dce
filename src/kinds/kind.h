/*
 * kind.h
 *	  What all kinds of projections share.
 */
#ifndef PJ_KIND_H
#define PJ_KIND_H

#include "base/compat.h"

#include "registry/projection.h"
#include "state/digest.h"

/*
 * A definition as given by the user and, once checked, as stored in the
 * registry.
 */
typedef struct PjDefinition
{
	const char *name;
	const struct PjKind *kind;
	const char *handler;		/* one of these four, according to kind */
	const char *fold;
	Jsonb	   *fold_columns;
	const char *statement;
	Oid			owner;
	Datum		targets;		/* text[]; 0 if none */
	Oid		   *target_oids;	/* the same as OIDs, once checked */
	int			redefinitions;	/* how often the definition was changed */
	const char *key;
	Datum		event_types;	/* text[]; 0 for all */
	PjMode		mode;
	PjOrdering	ordering;
	Jsonb	   *options;
	const char *search_path;	/* the code's search_path */
	Jsonb	   *settings;		/* the code's own, on top of the fixed ones */
	const char **dependencies;	/* if registered, the previous value of option
								 * "depends_on"; else NULL */
} PjDefinition;

/* Rows of a fold that are kept from batch to batch (row_cache.c). */
typedef struct PjRowCache PjRowCache;

/* It is not known which event failed.  It is found by trying fewer events. */
#define PJ_UNKNOWN (-1)

/* Events for a projection's code to apply. */
typedef struct PjWork
{
	const PjProjection *projection;
	const char *tenant;
	Oid			table;			/* if valid, a fold's rows are in this table
								 * instead of its target */
	bool		trial;			/* no digest is needed */
	PjRowCache *cache;			/* keeps a fold's rows, or NULL */
	PjEvent    *const *events;
	int			lo;				/* the first event */
	int			hi;				/* one after the last event */
	volatile int at;			/* index of the current event, or PJ_UNKNOWN */
	PjDigest	digest;			/* change of the read model's digest, if one
								 * is kept */
} PjWork;

typedef struct PjKind
{
	PjKindId	id;

	/*
	 * Check whether a definition can work.  Resolve names with the caller's
	 * search_path, check privileges for the owner, and replace names by
	 * qualified and quoted ones.  Parse expressions and statements as they
	 * will be run: as the owner and with the projection's search_path.  The
	 * targets have been checked.
	 */
	void		(*check) (PjDefinition *definition, Oid owner);

	/*
	 * Returns the text whose change makes the read model stale; NULL if the
	 * function no longer exists.  Nothing is locked, and the caller's
	 * privileges are not checked.
	 */
	char	   *(*source_text) (const PjDefinition *definition);

	/*
	 * Returns why the code cannot be run at all, or NULL.  The owner and the
	 * targets are known to exist.  May be NULL if there is nothing to check.
	 */
	const char *(*problem) (const PjDefinition *definition);

	/*
	 * Parse the expressions or the statement again, as check does, after a
	 * target has been altered.  May be NULL.
	 */
	void		(*retry_code) (const PjDefinition *definition);

	/*
	 * Drop what is cached for projections that no longer exist.  May be NULL.
	 */
	void		(*sweep) (void);

	/*
	 * Apply events in order, except those that are skipped.  On error,
	 * work->at is the one that failed.
	 */
	void		(*apply) (PjWork *work);

	/*
	 * Write the rows in work->cache.  There are no events.  NULL if this kind
	 * caches no rows.
	 */
	void		(*flush) (PjWork *work);
} PjKind;

extern const PjKind pj_kind_handler;
extern const PjKind pj_kind_fold;
extern const PjKind pj_kind_fold_columns;
extern const PjKind pj_kind_statement;

extern const PjKind *pj_kind(PjKindId id);
extern void pj_kind_run(PjWork *work, bool lazy, void (*body) (void *),
						void *arg);
extern void pj_kind_try(const PjDefinition *definition, Oid owner,
						void (*body) (void *), void *arg);
extern int	pj_kind_timeout(const PjProjection *projection);
extern bool pj_kind_is_gone(int32 id);
extern void pj_kinds_sweep(void);

#endif							/* PJ_KIND_H */
