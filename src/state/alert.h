/*
 * alert.h
 *	  Alerts that a person should act on.
 */
#ifndef PJ_ALERT_H
#define PJ_ALERT_H

#include "base/compat.h"

#include "registry/projection.h"

extern void pj_alert(const PjProjection *projection, const PjEvent *event,
					 const char *what, int errors, const ErrorData *error);

#endif							/* PJ_ALERT_H */
