/*
 * made_by.h
 *	  Note with which definition a pair's rows are made.
 */
#ifndef PJ_MADE_BY_H
#define PJ_MADE_BY_H

#include "base/compat.h"

#include "state/pair.h"

extern void pj_made_by_note(PjPair *pair);
extern bool pj_made_by_append(const PjPair *pair, bool wait);

#endif							/* PJ_MADE_BY_H */
