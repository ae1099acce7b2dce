/*
 * errcodes.h
 *	  SQLSTATEs of class PJ, for errors that clients must be able to
 *	  distinguish.
 *
 * All other errors have standard codes.
 */
#ifndef PJ_ERRCODES_H
#define PJ_ERRCODES_H

#include "base/compat.h"
#include "utils/elog.h"

/* the aggregate is not at the version the caller expected */
#define ERRCODE_PJ_VERSION_CONFLICT		MAKE_SQLSTATE('P','J','0','0','1')
/* a sequence has a gap, or log_seq does not rise with it */
#define ERRCODE_PJ_SEQUENCE_VIOLATION	MAKE_SQLSTATE('P','J','0','0','2')
/* an event does not match its hash or its id */
#define ERRCODE_PJ_EVENT_MISMATCH		MAKE_SQLSTATE('P','J','0','0','3')
/*
 * a projection wrote a row of another tenant, or a fold a row of another key
 */
#define ERRCODE_PJ_ISOLATION			MAKE_SQLSTATE('P','J','0','0','4')
/* only some events of a batch are already in the log */
#define ERRCODE_PJ_PARTIAL_BATCH		MAKE_SQLSTATE('P','J','0','0','6')
/* an event is missing from the log */
#define ERRCODE_PJ_EVENT_MISSING		MAKE_SQLSTATE('P','J','0','0','7')
/* a handler did not stamp the row it wrote */
#define ERRCODE_PJ_CHECKPOINT			MAKE_SQLSTATE('P','J','0','0','8')
/* a projection's code wrote a table that was not declared */
#define ERRCODE_PJ_UNDECLARED			MAKE_SQLSTATE('P','J','0','0','9')
/* the worker or the server ended while the event was being applied */
#define ERRCODE_PJ_SUSPECT				MAKE_SQLSTATE('P','J','0','1','0')

#endif							/* PJ_ERRCODES_H */
