/*
 * latency.c
 *	  How long events waited until they were applied: a histogram for each
 *	  database, since the server started.
 *
 * A transaction counts its events by itself, and adds them to the histogram
 * when it commits.
 */
#include "base/compat.h"

#include "access/xact.h"
#include "miscadmin.h"

#include "ipc/latency.h"
#include "ipc/shared.h"

const double pj_latency_bounds[PJ_LATENCY_BUCKETS - 1] = {
	0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
	60, 300, 1800
};

/* the same in microseconds */
static const int64 bounds[PJ_LATENCY_BUCKETS - 1] = {
	1000, 2500, 5000, 10000, 25000, 50000, 100000, 250000, 500000, 1000000,
	2500000, 5000000, 10000000, 30000000, 60000000, 300000000, 1800000000
};

/* What this transaction has applied. */
static bool any = false;
static uint64 counts[PJ_LATENCY_BUCKETS];
static uint64 microseconds;

/* An event has been applied. */
void
pj_latency_note(TimestampTz recorded_at, TimestampTz now)
{
	int64		us = Max(now - recorded_at, 0);
	int			i = 0;

	if (!any)
		pj_shmem_attach();		/* it cannot be done after the commit */
	any = true;
	while (i < PJ_LATENCY_BUCKETS - 1 && us > bounds[i])
		i++;
	counts[i]++;
	microseconds += us;
}

/* Find this database's histogram; the caller has the lock. */
static LatencyCounts *
find_counts(void)
{
	for (int i = 0; i < pj_area->nlatencies; i++)
		if (pj_area->latencies[i].dboid == MyDatabaseId)
			return &pj_area->latencies[i];
	return NULL;
}

/* Make one.  If there is no room, another database's is begun anew. */
static LatencyCounts *
new_counts(void)
{
	LatencyCounts *found;

	pj_assert_shared_locked();
	found = &pj_area->latencies[pj_area->nlatencies < MAX_LATENCIES ?
								pj_area->nlatencies++ :
								MyDatabaseId % MAX_LATENCIES];
	found->dboid = MyDatabaseId;
	for (int i = 0; i < PJ_LATENCY_BUCKETS; i++)
		pg_atomic_write_u64(&found->counts[i], 0);
	pg_atomic_write_u64(&found->microseconds, 0);
	return found;
}

/* The histogram of this database. */
static LatencyCounts *
my_counts(void)
{
	static LatencyCounts *mine = NULL;

	if (mine && mine->dboid == MyDatabaseId)
		return mine;
	pj_lock_shared(LW_EXCLUSIVE);
	mine = pj_area ? find_counts() : NULL;
	if (pj_area && mine == NULL)
		mine = new_counts();
	pj_unlock_shared();
	return mine;
}

static void
add_counts(void)
{
	LatencyCounts *mine = my_counts();

	for (int i = 0; mine && i < PJ_LATENCY_BUCKETS; i++)
		if (counts[i] > 0)
			pg_atomic_fetch_add_u64(&mine->counts[i], counts[i]);
	if (mine)
		pg_atomic_fetch_add_u64(&mine->microseconds, microseconds);
}

static void
at_transaction_event(XactEvent event, void *arg)
{
	if (!any || event == XACT_EVENT_PRE_COMMIT ||
		event == XACT_EVENT_PRE_PREPARE ||
		event == XACT_EVENT_PARALLEL_PRE_COMMIT)
		return;
	if (event == XACT_EVENT_COMMIT)
		add_counts();
	any = false;
	memset(counts, 0, sizeof(counts));
	microseconds = 0;
}

/* What has been counted in this database.  Returns false if nothing could be. */
bool
pj_latency_read(PjLatency *latency)
{
	LatencyCounts *mine;

	memset(latency, 0, sizeof(PjLatency));
	pj_shmem_attach();
	mine = my_counts();
	if (mine == NULL)
		return false;
	for (int i = 0; i < PJ_LATENCY_BUCKETS; i++)
		latency->counts[i] = pg_atomic_read_u64(&mine->counts[i]);
	latency->seconds = pg_atomic_read_u64(&mine->microseconds) / 1e6;
	return true;
}

void
pj_latency_init(void)
{
	RegisterXactCallback(at_transaction_event, NULL);
}
