/*
 * projector.c
 *	  Initialization when the library is loaded.
 */
#include "base/compat.h"

#include "fmgr.h"

#include "base/guc.h"
#include "base/version.h"
#include "feed/capture.h"
#include "ipc/latency.h"
#include "ipc/shmem.h"
#include "ipc/waiters.h"
#include "ipc/wakeup.h"
#include "log/intake.h"
#include "sandbox/command_guard.h"
#include "worker/launcher.h"

PG_MODULE_MAGIC;

void		_PG_init(void);

void
_PG_init(void)
{
	pj_guc_init();
	pj_version_init();
	pj_shmem_init();
	pj_wakeup_init();
	pj_latency_init();
	pj_intake_init();
	pj_capture_init();
	pj_waiters_init();
	pj_guard_init();
	pj_launcher_init();
}
