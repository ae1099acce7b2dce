/*
 * generation.h
 *	  A number that changes whenever a function, schema, role or type changes.
 */
#ifndef PJ_GENERATION_H
#define PJ_GENERATION_H

#include "base/compat.h"

extern uint64 pj_code_generation(void);

#endif							/* PJ_GENERATION_H */
