/*
 * kind.h
 *	  What the kinds of projections have in common.
 */
#ifndef PJ_KIND_H
#define PJ_KIND_H

#include "compat.h"

#include "projection.h"

/* Events for a projection's code to apply. */
typedef struct PjWork
{
	const PjProjection *projection;
	const char *tenant;
	PjEvent *const *events;
	int			lo;				/* the first */
	int			hi;				/* behind the last */
	volatile int at;			/* the one being applied */
} PjWork;

typedef struct PjKind
{
	const char *name;

	/*
	 * Find out whether a definition can work, with names resolved by the
	 * caller's search_path and rights checked for the owner, and return the
	 * code's name, qualified and quoted.
	 */
	char	   *(*check) (const char *code, Oid owner);

	/* The text whose change makes the read model stale. */
	char	   *(*source_text) (const char *code);

	/*
	 * Apply events in order, except those that are skipped; on error
	 * work->at is the one that failed.
	 */
	void		(*apply) (PjWork *work);
} PjKind;

extern const PjKind pj_kind_handler;

#endif							/* PJ_KIND_H */
