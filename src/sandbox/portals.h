/*
 * portals.h
 *	  Protect a client's cursors from a projection's code.
 */
#ifndef PJ_PORTALS_H
#define PJ_PORTALS_H

#include "base/compat.h"
#include "nodes/pg_list.h"

extern List *pj_portals_hide(void);
extern void pj_portals_show(List *hidden);
extern void pj_portals_drop_left(void);

#endif							/* PJ_PORTALS_H */
