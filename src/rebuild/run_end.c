/*
 * run_end.c
 *	  End runs from outside: those that are cancelled, or whose projection is
 *	  dropped or adopted, and the flag that says that a projection has runs.
 *
 * The caller has locked out all batches of the run.
 */
#include "base/compat.h"

#include "storage/lockdefs.h"
#include "utils/errcodes.h"

#include "base/lock.h"
#include "base/statement.h"
#include "rebuild/build_aside.h"
#include "rebuild/run.h"
#include "rebuild/run_slices.h"
#include "registry/projection.h"
#include "state/cursor.h"

/* Projections whose flag "overrides" is out of date. */
static PjStatement select_overridden = {
	.sql = "SELECT projection_id FROM projector.projections p WHERE overrides"
	" AND NOT EXISTS (SELECT FROM projector.projection_cursors c"
	" WHERE c.projection_id = p.projection_id AND (c.mode IS NOT NULL"
	" OR c.paused_by IS NOT NULL OR c.run_id IS NOT NULL))"
	" AND NOT EXISTS (SELECT FROM projector.projection_runs r"
	" WHERE r.projection_id = p.projection_id"
	" AND r.state IN ('queued', 'running'))",
	.expect = SPI_OK_SELECT,
};

/* End a run early. */
void
pj_run_abandon(const PjRun *run, const char *why)
{
	PjProjection *projection = pj_projection_by_id(run->projection_id);
	ErrorData	error = {.sqlerrcode = ERRCODE_QUERY_CANCELED,
	.message = (char *) why};
	PjRun		ended = *run;
	PjPair		pair;

	Assert(pj_driver_is_locked(run->projection_id, run->tenant));
	if (run->aside)
		pj_aside_drop(run);
	if (run->running)
	{
		pj_pair_look(&pair, projection, run->tenant);
		pj_slices_end(&ended, &pair);
		pj_cursor_set_run(&pair, 0);
	}
	pj_run_end(run, "cancelled", &error);
}

/* A projection is being dropped: remove all traces of its runs. */
void
pj_runs_forget(const PjProjection *projection)
{
	PjRun	   *runs;
	int			n = pj_runs_of(projection, &runs);

	for (int i = 0; i < n; i++)
		if (runs[i].aside)
			pj_aside_drop(&runs[i]);
}

/*
 * Runs have ended.  If no tenant has a mode, pause or run of its own any more,
 * clear "overrides", so that appends need not check.  A projection that is
 * locked is left for later.
 */
void
pj_runs_settle(void)
{
	int			n = pj_execute(&select_overridden, NULL, NULL);
	int32	   *ids = palloc(sizeof(int32) * Max(n, 1));

	for (int i = 0; i < n; i++)
	{
		bool		isnull;

		ids[i] = DatumGetInt32(pj_result(i, 1, &isnull));
	}
	for (int i = 0; i < n; i++)
	{
		PjProjection *projection;

		if (!pj_lock_projection(ids[i], ExclusiveLock, false))
			continue;
		projection = pj_projection_by_id(ids[i]);
		if (projection && !projection->dormant)
			pj_registry_note_overrides(projection, false);
	}
}
