/*
 * chores.h
 *	  Periodic tasks of one worker per database.
 */
#ifndef PJ_CHORES_H
#define PJ_CHORES_H

#include "base/compat.h"

extern void pj_chores_init(void);
extern bool pj_chores_are_due(bool idle);
extern void pj_chores(void);
extern bool pj_chores_go_on(void);
extern bool pj_chores_part_is_due(bool idle);
extern void pj_chores_part(void);

#endif							/* PJ_CHORES_H */
