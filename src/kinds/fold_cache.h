/*
 * fold_cache.h
 *	  What a session caches of a fold between batches.
 */
#ifndef PJ_FOLD_CACHE_H
#define PJ_FOLD_CACHE_H

#include "base/compat.h"

#include "kinds/fold_expr.h"
#include "registry/function.h"
#include "registry/projection.h"

/*
 * A session's cache entry for a fold.  It is valid until the registry row, the
 * target, or any function, role or type changes.
 */
typedef struct PjKeptFold
{
	int32		id;				/* hash key */
	uint64		version;		/* version of the registry row */
	uint64		generation;		/* pj_code_generation() when compiled */
	Oid			target;			/* invalid if nothing is compiled */
	bool		changed;		/* the target has changed */
	Oid			function;		/* invalid if defined by expressions */
	PjFoldCode *code;
	MemoryContext context;		/* for the code */
	bool		running;		/* stays true after an error */
} PjKeptFold;

extern PjSignature pj_fold_signature(Oid relid);
extern PjKeptFold *pj_fold_find(const PjProjection *projection);
extern void pj_fold_compile_if_changed(PjKeptFold *kept,
									   const PjProjection *projection);
extern void pj_folds_sweep(void);

#endif							/* PJ_FOLD_CACHE_H */
