/*
 * item.h
 *	  What is done with one queued event.
 */
#ifndef PJ_ITEM_H
#define PJ_ITEM_H

#include "compat.h"

#include "step.h"

extern void pj_item_apply_announced(const PjStep *step);

#endif							/* PJ_ITEM_H */
