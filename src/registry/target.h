/*
 * target.h
 *	  The target tables of a projection.
 */
#ifndef PJ_TARGET_H
#define PJ_TARGET_H

#include "base/compat.h"
#include "nodes/pg_list.h"
#include "nodes/primnodes.h"
#include "utils/relcache.h"

#include "registry/projection.h"

/* What a target must have besides a column tenant_id. */
typedef enum PjTargetNeed
{
	PJ_NEEDS_NOTHING,
	PJ_NEEDS_CHECKPOINT,		/* the columns for option "checkpoint" */
	PJ_NEEDS_FOLD,				/* the key and stamps of a fold */
	PJ_NEEDS_LOG_FOLD			/* the same, with several aggregates per row */
} PjTargetNeed;

/* target_check.c */
extern Oid	pj_target_check(const char *name, Oid owner, PjTargetNeed need);
extern void pj_target_recheck(Oid relid, Oid owner, PjTargetNeed need);
extern void pj_target_check_fold(Relation rel, Oid owner, bool several);
extern void pj_target_check_storage(Relation rel);
extern char *pj_target_key_column(Oid relid);
extern char *pj_target_key(Relation rel);

/* target.c */
extern bool pj_name_is_readable(const char *name);
extern List *pj_parse_name(const char *name, const char *what);
extern RangeVar *pj_parse_table(const char *name);
extern Oid	pj_target_by_name(const char *name);
extern Oid	pj_target_find(const PjProjection *projection, int i);
extern Oid	pj_target_oid(const PjProjection *projection, int i);
extern char *pj_target_find_name(Oid relid);
extern char *pj_target_name(Oid relid);
extern Oid	pj_target_owner(Oid relid);
extern char *pj_target_noted_name(const PjProjection *projection, int i);
extern void pj_target_refuse_altered(const PjProjection *projection,
									 const char *table);
extern bool pj_target_has_rows(Oid relid);
extern bool pj_target_is(const PjProjection *projection, Oid relid);
extern int	pj_target_count(const PjProjection *projection);

/* target_query.c */
extern char *pj_target_delete_query(Oid relid, bool aggregate);
extern char *pj_target_rows_query(Relation rel, const PjProjection *projection,
								  bool shown, bool one_key);
extern char *pj_target_exists_query(Oid relid);
extern char *pj_target_tenants_query(Oid relid);
extern char *pj_target_checkpoint_query(const PjProjection *projection);

#endif							/* PJ_TARGET_H */
