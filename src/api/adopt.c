/*
 * adopt.c
 *	  projector_adopt(): let the projections of a copied database run in
 *	  the copy.
 */
#include "base/compat.h"

#include "utils/builtins.h"

#include "base/lock.h"
#include "base/statement.h"
#include "ipc/wakeup.h"
#include "rebuild/run.h"
#include "registry/identity.h"
#include "sandbox/user_context.h"
#include "state/audit.h"

PG_FUNCTION_INFO_V1(projector_adopt);

static PjStatement adopt = {
	.sql = "UPDATE projector.projections SET home = $2, handover_log_seq = NULL"
	" WHERE projection_id = $1",
	.expect = SPI_OK_UPDATE,
	.nargs = 2,
	.argtypes = {INT4OID, TEXTOID},
};

/*
 * The copied cursors and outbox are valid, so the log is read from the cursors
 * on.
 */
static PjStatement replay_cursors = {
	.sql = "UPDATE projector.projection_cursors"
	" SET state = 'replaying', updated_at = now() WHERE projection_id = $1",
	.expect = SPI_OK_UPDATE,
	.nargs = 1,
	.argtypes = {INT4OID},
};

/*
 * The tables of a run in the original may be incomplete in the copy, but the
 * log is complete.
 */
static void
abandon_runs(const PjProjection *projection)
{
	PjRun	   *runs;
	int			n = pj_runs_of(projection, &runs);

	for (int i = 0; i < n; i++)
		pj_run_abandon(&runs[i],
					   "its database was copied while the run was active");
}

static bool
needs_adopting(const PjProjection *projection)
{
	return projection->dormant || !pj_identity_is_complete(projection);
}

/*
 * Adopt one projection, if that is still needed.  Returns 1 if it was dormant.
 */
static int
adopt_projection(int32 id)
{
	Datum		values[2] = {Int32GetDatum(id),
	CStringGetTextDatum(pj_home())};
	PjProjection *projection;

	pj_lock_projection(id, ExclusiveLock, true);

	/* it may have been changed, adopted or dropped while we waited */
	projection = pj_projection_by_id(id);
	if (projection == NULL || !needs_adopting(projection))
		return 0;
	pj_identity_adopt(projection);
	if (!projection->dormant)
		return 0;
	abandon_runs(projection);
	pj_execute(&replay_cursors, values, NULL);
	return pj_execute(&adopt, values, NULL);
}

/* Lets the projections of a copied database run in it. */
Datum
projector_adopt(PG_FUNCTION_ARGS)
{
	PjProjection *projections;
	int			n = pj_projections(&projections);
	int64		adopted = 0;
	PjContext	saved;

	pj_require_read_committed("projector_adopt");
	pj_refuse_in_user_code("projector_adopt");
	pj_wake_at_commit();
	pj_enter_internal(&saved);
	for (int i = 0; i < n; i++)
		if (needs_adopting(&projections[i]))
			adopted += adopt_projection(projections[i].id);
	pj_leave_internal(&saved);
	pj_audit_count(fcinfo, adopted);

	PG_RETURN_INT64(adopted);
}
