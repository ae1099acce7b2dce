/*
 * tail.h
 *	  The settled tail of the log.
 */
#ifndef PJ_TAIL_H
#define PJ_TAIL_H

#include "base/compat.h"
#include "storage/lock.h"

/* Transactions that were writing events at some time. */
typedef struct PjWriters
{
	VirtualTransactionId *ids;	/* those that may not have ended yet */
	int			count;
	bool		mine;			/* this transaction was one of them */
} PjWriters;

extern void pj_writers_note(PjWriters *writers);
extern bool pj_writers_gone(PjWriters *writers, int timeout_ms);
extern bool pj_tail_reaches(int64 log_seq, int timeout_ms);
extern int64 pj_tail(int timeout_ms);
extern bool pj_tail_is_known_to_reach(int64 log_seq);

#endif							/* PJ_TAIL_H */
