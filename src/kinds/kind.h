/*
 * kind.h
 *	  What the kinds of projections have in common.
 */
#ifndef PJ_KIND_H
#define PJ_KIND_H

#include "base/compat.h"

#include "registry/projection.h"
#include "state/digest.h"

/* A definition as given, and, once checked, as it goes into the registry. */
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
	Oid		   *target_oids;	/* the same, once checked */
	int			target_changes; /* how often they were others */
	const char *key;
	Datum		event_types;	/* text[]; 0 for all */
	PjMode		mode;
	PjOrdering	ordering;
	Jsonb	   *options;
	const char *search_path;	/* with which the code is run */
	Jsonb	   *settings;		/* so too, on top of the fixed ones */
	const char **dependencies;	/* of a registered one: option "depends_on" as
								 * it was, or NULL */
} PjDefinition;

/* Rows of a fold that are kept from batch to batch (row_cache.c). */
typedef struct PjRowCache PjRowCache;

/* Which event failed is not known; it is found by trying fewer of them. */
#define PJ_UNKNOWN (-1)

/* Events for a projection's code to apply. */
typedef struct PjWork
{
	const PjProjection *projection;
	const char *tenant;
	Oid			table;			/* has a fold's rows instead of its target, if
								 * valid */
	bool		trial;			/* nobody asks for the digest */
	PjRowCache *cache;			/* keeps a fold's rows, or NULL */
	PjEvent    *const *events;
	int			lo;				/* the first */
	int			hi;				/* behind the last */
	volatile int at;			/* the one being applied, or PJ_UNKNOWN */
	PjDigest	digest;			/* how the read model's has changed, if it is
								 * kept */
} PjWork;

typedef struct PjKind
{
	PjKindId	id;

	/*
	 * Find out whether a definition can work, with names resolved by the
	 * caller's search_path and rights checked for the owner, and replace
	 * names by qualified and quoted ones.  Expressions and statements are
	 * read as they will be run: as the owner, whoever asks, and with the
	 * projection's search_path.  The targets have been checked.
	 */
	void		(*check) (PjDefinition *definition, Oid owner);

	/*
	 * The text whose change makes the read model stale; NULL if the function
	 * is gone.  Nothing is locked, nor are the caller's rights asked for.
	 */
	char	   *(*source_text) (const PjDefinition *definition);

	/*
	 * Why the code cannot be run at all, or NULL.  Owner and targets are
	 * there.  May be NULL if there is nothing to ask.
	 */
	const char *(*problem) (const PjDefinition *definition);

	/*
	 * Read expressions or statement again, as check does, after a target has
	 * been altered.  May be NULL.
	 */
	void		(*retry_code) (const PjDefinition *definition);

	/* Forget what is kept of projections that are gone.  May be NULL. */
	void		(*sweep) (void);

	/*
	 * Apply events in order, except those that are skipped; on error work->at
	 * is the one that failed.
	 */
	void		(*apply) (PjWork *work);

	/*
	 * Write what work->cache keeps.  There are no events.  NULL if nothing is
	 * ever kept.
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
