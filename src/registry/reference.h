/*
 * reference.h
 *	  Foreign keys that refer to a read model.
 */
#ifndef PJ_REFERENCE_H
#define PJ_REFERENCE_H

#include "base/compat.h"
#include "nodes/pg_list.h"

extern void pj_references_check(const List *targets, const char *projection,
								const char **writes);

#endif							/* PJ_REFERENCE_H */
