/*
 * log_insert.h
 *	  Inserting one event into the log without SQL.
 */
#ifndef PJ_LOG_INSERT_H
#define PJ_LOG_INSERT_H

#include "base/compat.h"

#include "log/event.h"
#include "log/log_write.h"

/* What the capture trigger does with a new event; set by capture.c. */
extern void (*pj_log_capture) (PjEvent *event);

extern bool pj_log_insert(const PjNewEvents *events, int64 after);

#endif							/* PJ_LOG_INSERT_H */
