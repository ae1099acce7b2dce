/*
 * projector.c
 *	  What happens when the library is loaded.
 */
#include "compat.h"

#include "fmgr.h"

#include "guard.h"
#include "guc.h"
#include "intake.h"
#include "launcher.h"
#include "shmem.h"
#include "waiters.h"
#include "wakeup.h"

PG_MODULE_MAGIC;

void		_PG_init(void);

void
_PG_init(void)
{
	pj_guc_init();
	pj_shmem_init();
	pj_wakeup_init();
	pj_intake_init();
	pj_waiters_init();
	pj_guard_init();
	pj_launcher_init();
}
