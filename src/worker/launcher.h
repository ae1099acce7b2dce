/*
 * launcher.h
 *	  The launcher: keeps workers running in every database that has the
 *	  extension.
 */
#ifndef PJ_LAUNCHER_H
#define PJ_LAUNCHER_H

#include "base/compat.h"

extern PGDLLEXPORT void projector_launcher_main(Datum arg) pg_attribute_noreturn();
extern void pj_launcher_init(void);

#endif							/* PJ_LAUNCHER_H */
