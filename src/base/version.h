/*
 * version.h
 *	  Which version of the extension's SQL objects this database has, and
 *	  whether the library serves it.
 */
#ifndef PJ_VERSION_H
#define PJ_VERSION_H

#include "base/compat.h"

/* The version that belongs to this library: default_version in the control file. */
#define PJ_VERSION			"1.0"

/* The release before it. */
#define PJ_PREVIOUS_VERSION	"0.9"

extern bool pj_version_is_current(void);
extern bool pj_version_is_served(void);
extern void pj_version_require_served(void);
extern void pj_version_require_current(void);
extern const char *pj_version_problem(void);
extern const char *pj_version_hint(void);
extern bool pj_version_in_script(void);
extern void pj_version_forget(void);
extern void pj_version_changed(void);
extern void pj_version_init(void);

#endif							/* PJ_VERSION_H */
