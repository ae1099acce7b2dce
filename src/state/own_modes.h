/*
 * own_modes.h
 *	  The pairs of a projection that have a mode of their own, or are stuck.
 */
#ifndef PJ_OWN_MODES_H
#define PJ_OWN_MODES_H

#include "base/compat.h"

#include "registry/projection.h"

typedef struct PjOwnMode
{
	Datum		tenant;
	PjMode		mode;			/* what holds for the pair */
	bool		stuck;			/* paused, or at a dead event */
} PjOwnMode;

typedef struct PjOwnModes
{
	PjMode		mode;			/* of all other pairs */
	bool		applies;		/* does any pair apply events? */
	bool		differ;			/* do some apply events, and others not? */
	PjOwnMode  *pairs;
	int			npairs;
	int			room;
} PjOwnModes;

extern bool pj_mode_applies(PjMode mode);
extern void pj_own_modes_init(PjOwnModes *modes, PjMode mode);
extern void pj_own_modes_add(PjOwnModes *modes, Datum tenant, PjMode mode,
							 bool stuck);
extern void pj_own_modes_sort(PjOwnModes *modes);
extern bool pj_own_modes_applies(const PjOwnModes *modes, Datum tenant);
extern bool pj_own_modes_works(const PjOwnModes *modes, Datum tenant);

#endif							/* PJ_OWN_MODES_H */
