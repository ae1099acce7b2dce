/*
 * fold_cache.h
 *	  What a session keeps of a fold between batches.
 */
#ifndef PJ_FOLD_CACHE_H
#define PJ_FOLD_CACHE_H

#include "base/compat.h"

#include "kinds/fold_expr.h"
#include "registry/function.h"
#include "registry/projection.h"

/*
 * What this session keeps of a fold between batches: good as long as the
 * registry's row is the same, and no function, role or type has changed, nor
 * the target.
 */
typedef struct PjKeptFold
{
	int32		id;				/* hash key */
	uint64		version;		/* of the registry's row */
	uint64		generation;		/* of functions */
	Oid			target;			/* invalid if there is no code */
	bool		changed;		/* the target has */
	Oid			function;		/* invalid if there are expressions */
	PjFoldCode *code;
	MemoryContext context;		/* of the code */
	bool		running;		/* still so after an error */
} PjKeptFold;

extern PjSignature pj_fold_signature(Oid relid);
extern PjKeptFold *pj_fold_find(const PjProjection *projection);
extern void pj_fold_compile_if_changed(PjKeptFold *kept,
									   const PjProjection *projection);
extern void pj_folds_sweep(void);

#endif							/* PJ_FOLD_CACHE_H */
