/*
 * generation.c
 *	  A number that changes whenever a function, schema, role or type
 *	  changes.
 *
 * Sessions cache what they have looked up by name together with this number,
 * and look it up again when the number has changed.
 */
#include "base/compat.h"

#include "utils/inval.h"
#include "utils/syscache.h"

#include "base/generation.h"

static uint64 generation = 0;

static void
code_changed(Datum arg, int cacheid, uint32 hashvalue)
{
	generation++;
}

/*
 * Returns the number.  If it has changed, a name may mean another function, or
 * another role may be allowed to call it.
 */
uint64
pj_code_generation(void)
{
	if (generation == 0)
	{
		static const int caches[] = {PROCOID, NAMESPACEOID, AUTHOID,
		AUTHMEMROLEMEM, TYPEOID};

		for (int i = 0; i < lengthof(caches); i++)
			CacheRegisterSyscacheCallback(caches[i], code_changed, (Datum) 0);
		generation = 1;
	}
	return generation;
}
