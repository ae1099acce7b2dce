/*
 * launcher.h
 *	  The launcher: keeps workers running in every database that has the
 *	  extension.
 */
#ifndef PJ_LAUNCHER_H
#define PJ_LAUNCHER_H

#include "base/compat.h"

PJ_NORETURN extern PGDLLEXPORT void projector_launcher_main(Datum arg);
extern void pj_launcher_init(void);

#endif							/* PJ_LAUNCHER_H */
