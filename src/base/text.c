/*
 * text.c
 *	  Small helpers for values that SQL passes to us: members of JSON objects.
 */
#include "base/compat.h"

#include "base/text.h"

/* Look up a member of a JSON object.  Returns whether there is one. */
bool
pj_json_member(Jsonb *json, const char *name, JsonbValue *value)
{
	return getKeyJsonValueFromContainer(&json->root, name, strlen(name),
										value) != NULL;
}
