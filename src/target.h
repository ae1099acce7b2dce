/*
 * target.h
 *	  The tables a projection writes.
 */
#ifndef PJ_TARGET_H
#define PJ_TARGET_H

#include "compat.h"
#include "nodes/pg_list.h"

#include "projection.h"

extern List *pj_parse_name(const char *name, const char *what);
extern char *pj_target_check(const char *name, Oid owner, bool checkpoint);
extern char *pj_target_checkpoint_query(const PjProjection *projection);

#endif							/* PJ_TARGET_H */
