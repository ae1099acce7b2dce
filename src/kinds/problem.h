/*
 * problem.h
 *	  Why a projection cannot run now.
 */
#ifndef PJ_PROBLEM_H
#define PJ_PROBLEM_H

#include "base/compat.h"

#include "registry/projection.h"

extern const char *pj_projection_problem(const PjProjection *projection);
extern void pj_refuse_problem(const PjProjection *projection);
extern bool pj_problems_report(void);

#endif							/* PJ_PROBLEM_H */
