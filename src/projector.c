/*
 * projector.c
 *	  What happens when the library is loaded.
 */
#include "compat.h"

#include "fmgr.h"

#include "context.h"
#include "guc.h"

PG_MODULE_MAGIC;

void		_PG_init(void);

void
_PG_init(void)
{
	pj_guc_init();
	pj_context_init();
}
