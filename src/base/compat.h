/*
 * compat.h
 *	  Differences between the supported major versions of PostgreSQL.
 *
 * Version 15 is the only one so far.  When another is added, all code that
 * depends on the version goes here.
 */
#ifndef PJ_COMPAT_H
#define PJ_COMPAT_H

#include "postgres.h"

#if PG_VERSION_NUM < 150000
#error "projector needs PostgreSQL 15 or later"
#endif

#endif							/* PJ_COMPAT_H */
