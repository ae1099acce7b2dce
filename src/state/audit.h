/*
 * audit.h
 *	  A record of what users have done with projections.
 */
#ifndef PJ_AUDIT_H
#define PJ_AUDIT_H

#include "base/compat.h"
#include "datatype/timestamp.h"
#include "fmgr.h"

extern void pj_audit(FunctionCallInfo fcinfo, const char *projection,
					 const char *result);
extern void pj_audit_count(FunctionCallInfo fcinfo, int64 count);
extern int64 pj_audit_prune(int max_rows);

#endif							/* PJ_AUDIT_H */
