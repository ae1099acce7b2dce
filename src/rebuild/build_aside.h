/*
 * build_aside.h
 *	  Build a fold's read model in a separate table.
 */
#ifndef PJ_BUILD_ASIDE_H
#define PJ_BUILD_ASIDE_H

#include "base/compat.h"

#include "state/pair.h"
#include "state/run_row.h"

extern bool pj_aside_possible(const PjProjection *projection);
extern char *pj_aside_name(int64 run_id);
extern void pj_aside_make(const PjProjection *projection, const char *name);
extern bool pj_aside_find(const PjProjection *projection, const char *name,
						  PjDestination *build);
extern void pj_aside_take_over(const PjProjection *projection,
							   const PjRun *run);
extern void pj_aside_drop(const PjRun *run);
extern bool pj_aside_is_blank(int32 projection_id);
extern void pj_aside_forget(int32 projection_id, Datum tenant);
extern void pj_aside_empty(Oid aside);

#endif							/* PJ_BUILD_ASIDE_H */
