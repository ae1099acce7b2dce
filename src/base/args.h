/*
 * args.h
 *	  Arguments of SQL functions.
 */
#ifndef PJ_ARGS_H
#define PJ_ARGS_H

#include "base/compat.h"
#include "fmgr.h"

extern Datum pj_required(FunctionCallInfo fcinfo, int argno, const char *name);
extern Datum pj_required_text(FunctionCallInfo fcinfo, int argno,
							  const char *name);
extern char *pj_required_name(FunctionCallInfo fcinfo, int argno,
							  const char *name);
extern Datum pj_optional(FunctionCallInfo fcinfo, int argno);
extern Datum pj_optional_text(FunctionCallInfo fcinfo, int argno,
							  const char *name);

#endif							/* PJ_ARGS_H */
