/*
 * capture.h
 *	  New events, in the transaction that appends them.
 */
#ifndef PJ_CAPTURE_H
#define PJ_CAPTURE_H

#include "base/compat.h"

extern void pj_capture_init(void);

#endif							/* PJ_CAPTURE_H */
