/*
 * function.h
 *	  User-written functions of projections.
 */
#ifndef PJ_FUNCTION_H
#define PJ_FUNCTION_H

#include "base/compat.h"

/* The signature a function must have. */
typedef struct PjSignature
{
	const char *what;			/* "handler", "fold" or "clear" */
	int			nargs;
	Oid			argtypes[2];
	Oid			rettype;
	const char *arguments;		/* the argument types, as in SQL, for messages */
	const char *takes;			/* ... and in words */
	const char *result;
} PjSignature;

extern Oid	pj_function_find(const PjSignature *signature, const char *name,
							 Oid owner);
extern bool pj_function_exists(const PjSignature *signature,
							   const char *name);
extern const char *pj_function_problem(const PjSignature *signature,
									   const char *name, Oid owner);
extern char *pj_function_name(Oid oid);
extern char *pj_function_source(const PjSignature *signature,
								const char *name);
extern PjSignature pj_clear_signature(bool aggregate);
extern char *pj_clear_function(const char *name, Oid owner);

#endif							/* PJ_FUNCTION_H */
