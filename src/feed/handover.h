/*
 * handover.h
 *	  The position from which on the capture trigger passes events to a
 *	  projection.
 */
#ifndef PJ_HANDOVER_H
#define PJ_HANDOVER_H

#include "base/compat.h"

extern int32 pj_hand_over(const int32 *ids, int n, int timeout_ms);
extern bool pj_hand_over_some(const int32 *ids, int n);
extern bool pj_awaits_handover(int32 id);

#endif							/* PJ_HANDOVER_H */
