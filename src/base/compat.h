/*
 * compat.h
 *	  What the supported major versions of PostgreSQL do differently.
 *
 * Version 15 is the only one so far.  When another is added, its differences
 * are bridged here and nowhere else.
 */
#ifndef PJ_COMPAT_H
#define PJ_COMPAT_H

#include "postgres.h"

#if PG_VERSION_NUM < 150000
#error "projector needs PostgreSQL 15 or later"
#endif

#endif							/* PJ_COMPAT_H */
