/*
 * items.h
 *	  What is done with one queued event.
 */
#ifndef PJ_ITEMS_H
#define PJ_ITEMS_H

#include "base/compat.h"

#include "feed/pair_step.h"

extern void pj_item_apply_announced(const PjStep *step);

#endif							/* PJ_ITEMS_H */
