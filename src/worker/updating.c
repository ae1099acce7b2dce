/*
 * updating.c
 *	  ALTER EXTENSION projector UPDATE.
 *
 * Every upgrade script begins with projector.begin_update().  It waits until
 * no transaction is appending events, and keeps others from beginning to, so
 * that no append meets tables of two versions.  Nothing else of ours changes
 * the tables then: before the update the library only appends and queues
 * (version.c).  When the update commits, sessions read the version again, and
 * the workers begin to apply.
 */
#include "base/compat.h"

#include "fmgr.h"
#include "storage/lmgr.h"

#include "base/version.h"
#include "ipc/wakeup.h"
#include "log/log_read.h"

PG_FUNCTION_INFO_V1(projector_begin_update);

Datum
projector_begin_update(PG_FUNCTION_ARGS)
{
	if (!pj_version_in_script())
		ereport(ERROR,
				errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("projector.begin_update() is called by upgrade scripts only"),
				errhint("Run ALTER EXTENSION projector UPDATE."));
	LockRelationOid(pj_source_relid(), ExclusiveLock);
	pj_version_changed();
	pj_hint_all_at_commit();
	pj_wake_at_commit();
	PG_RETURN_VOID();
}
