/*
 * text.h
 *	  Helpers for values passed from SQL.
 */
#ifndef PJ_TEXT_H
#define PJ_TEXT_H

#include "base/compat.h"

#include "utils/jsonb.h"

extern bool pj_text_equal(Datum a, Datum b);
extern int	pj_text_compare(Datum a, Datum b);
extern int	pj_texts_unique(Datum *texts, int n);
extern bool pj_text_among(Datum value, const Datum *sorted, int n);
extern bool pj_json_member(Jsonb *json, const char *name, JsonbValue *value);

#endif							/* PJ_TEXT_H */
