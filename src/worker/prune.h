/*
 * prune.h
 *	  Removing what is history.
 */
#ifndef PJ_PRUNE_H
#define PJ_PRUNE_H

#include "base/compat.h"

extern void pj_prune_a_little(void);

#endif							/* PJ_PRUNE_H */
