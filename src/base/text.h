/*
 * text.h
 *	  Small helpers for values that SQL passes to us.
 */
#ifndef PJ_TEXT_H
#define PJ_TEXT_H

#include "base/compat.h"

#include "utils/jsonb.h"

extern bool pj_json_member(Jsonb *json, const char *name, JsonbValue *value);

#endif							/* PJ_TEXT_H */
