/*
 * guc.c
 *	  Settings, and the clock that decides when retries are due.
 *
 * A superuser can move the clock forward, so that tests of retries do not have
 * to wait.
 */
#include "base/compat.h"

#include <limits.h>

#include "utils/guc.h"
#include "utils/timestamp.h"

#include "base/guc.h"

int			pj_tail_wait = 2000;
bool		pj_verify_payload = true;
bool		pj_enabled = true;
bool		pj_autostart = true;
bool		pj_guard_ddl = true;
int			pj_workers = 1;
int			pj_naptime = 1000;
int			pj_retention = 30 * 24 * 60;
int			pj_audit_retention = 365 * 24 * 60;
int			pj_progress_interval = 5000;
int			pj_progress_level = NOTICE;
int			pj_lag_warning = 60 * 1000;
int			pj_slice_events = 10000;
int			pj_metrics_tenants = 20;

static int	clock_offset = 0;

static const struct config_enum_entry progress_levels[] = {
	{"debug1", DEBUG1, false},
	{"log", LOG, false},
	{"info", INFO, false},
	{"notice", NOTICE, false},
	{NULL, 0, false}
};

/* Only read by handlers and policies, with current_setting(). */
static char *tenant_id = NULL;

/* Returns the time that decides whether a retry is due. */
TimestampTz
pj_now(void)
{
	return TimestampTzPlusMilliseconds(GetCurrentTimestamp(),
									   (int64) clock_offset * 1000);
}

void
pj_guc_init(void)
{
	DefineCustomStringVariable("projector.tenant_id",
							   "The tenant whose event is being applied.",
							   "Set around every call of a projection's code; "
							   "row-level security policies can rely on it.",
							   &tenant_id,
							   "",
							   PGC_SUSET, GUC_DISALLOW_IN_FILE,
							   NULL, NULL, NULL);

	DefineCustomBoolVariable("projector.verify_payload",
							 "Check each payload's hash when an event is read "
							 "from the log.",
							 NULL,
							 &pj_verify_payload,
							 true,
							 PGC_SUSET, 0,
							 NULL, NULL, NULL);

	DefineCustomBoolVariable("projector.enabled",
							 "Lets worker processes run.",
							 "If off, workers exit and none are started; "
							 "events are queued.",
							 &pj_enabled,
							 true,
							 PGC_SUSET, 0,
							 NULL, NULL, NULL);

	DefineCustomBoolVariable("projector.autostart",
							 "Starts a worker when there is work and the "
							 "library is not preloaded.",
							 NULL,
							 &pj_autostart,
							 true,
							 PGC_SUSET, 0,
							 NULL, NULL, NULL);

	DefineCustomBoolVariable("projector.guard_ddl",
							 "Refuses to drop or alter what a live projection "
							 "needs of its targets.",
							 NULL,
							 &pj_guard_ddl,
							 true,
							 PGC_USERSET, 0,
							 NULL, NULL, NULL);

	DefineCustomIntVariable("projector.workers",
							"Workers per database.",
							NULL,
							&pj_workers,
							1, 1, PJ_MAX_WORKERS_PER_DATABASE,
							PGC_SIGHUP, 0,
							NULL, NULL, NULL);

	DefineCustomIntVariable("projector.naptime",
							"How long an idle worker sleeps before it looks "
							"for work without having been woken.",
							"Appends wake workers at commit; this finds what "
							"was committed by COMMIT PREPARED.",
							&pj_naptime,
							1000, 10, 60 * 60 * 1000,
							PGC_SIGHUP, GUC_UNIT_MS,
							NULL, NULL, NULL);

	DefineCustomIntVariable("projector.retention",
							"How long resolved failures and finished runs are "
							"kept.",
							"0 keeps them permanently.",
							&pj_retention,
							30 * 24 * 60, 0, INT_MAX,
							PGC_SIGHUP, GUC_UNIT_MIN,
							NULL, NULL, NULL);

	DefineCustomIntVariable("projector.audit_retention",
							"How long the record of what users did is kept.",
							"0 keeps it permanently.",
							&pj_audit_retention,
							365 * 24 * 60, 0, INT_MAX,
							PGC_SIGHUP, GUC_UNIT_MIN,
							NULL, NULL, NULL);

	DefineCustomIntVariable("projector.lag_warning",
							"A projection whose oldest unapplied event is "
							"older than this is shown as lagging.",
							NULL,
							&pj_lag_warning,
							60 * 1000, 0, INT_MAX,
							PGC_USERSET, GUC_UNIT_MS,
							NULL, NULL, NULL);

	DefineCustomIntVariable("projector.metrics_tenants",
							"At most so many tenants are in the metrics.",
							"They are the worst of those that are not ok.",
							&pj_metrics_tenants,
							20, 0, 1000,
							PGC_USERSET, 0,
							NULL, NULL, NULL);

	DefineCustomIntVariable("projector.progress_interval",
							"How often a rebuild reports its progress.",
							"0 is never.",
							&pj_progress_interval,
							5000, 0, INT_MAX,
							PGC_USERSET, GUC_UNIT_MS,
							NULL, NULL, NULL);

	DefineCustomEnumVariable("projector.progress_level",
							 "The level of these progress messages.",
							 NULL,
							 &pj_progress_level,
							 NOTICE, progress_levels,
							 PGC_USERSET, 0,
							 NULL, NULL, NULL);

	DefineCustomIntVariable("projector.tail_wait",
							"How long to wait for open appending transactions "
							"before giving up on reading the log's end.",
							NULL,
							&pj_tail_wait,
							2000, 0, INT_MAX,
							PGC_USERSET, GUC_UNIT_MS,
							NULL, NULL, NULL);

	DefineCustomIntVariable("projector.slice_events",
							"A background rebuild is cut into slices of at "
							"least so many events.",
							"Several workers can process the slices of one "
							"tenant at the same time.",
							&pj_slice_events,
							10000, 1, INT_MAX,
							PGC_SUSET, GUC_NOT_IN_SAMPLE,
							NULL, NULL, NULL);

	DefineCustomIntVariable("projector.clock_offset",
							"Moves the clock that decides when retries are due.",
							"For tests.",
							&clock_offset,
							0, 0, INT_MAX,
							PGC_SUSET, GUC_UNIT_S | GUC_NOT_IN_SAMPLE,
							NULL, NULL, NULL);

	MarkGUCPrefixReserved("projector");
}
