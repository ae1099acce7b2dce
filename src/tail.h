/*
 * tail.h
 *	  Up to where the log is settled.
 */
#ifndef PJ_TAIL_H
#define PJ_TAIL_H

#include "compat.h"

extern bool pj_tail_writers_gone(int timeout_ms);
extern bool pj_tail_settled(int timeout_ms, int64 *tail);

#endif							/* PJ_TAIL_H */
