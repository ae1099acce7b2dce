/*
 * definition.h
 *	  Checking what a user says a projection is.
 */
#ifndef PJ_DEFINITION_H
#define PJ_DEFINITION_H

#include "compat.h"

#include "kind.h"
#include "options.h"
#include "projection.h"

/* A definition as given, and, once checked, as it goes into the registry. */
typedef struct PjDefinition
{
	const char *name;
	const char *handler;
	Datum		targets;		/* text[]; 0 if none */
	Datum		event_types;	/* text[]; 0 for all */
	PjMode		mode;
	const char *ordering;
	Jsonb	   *options;
} PjDefinition;

extern void pj_definition_check(PjDefinition *definition, Oid owner);
extern void pj_definition_check_mode(const char *name, PjMode mode,
									 const char *ordering);
extern bytea *pj_definition_hash(const PjDefinition *definition);

#endif							/* PJ_DEFINITION_H */
