/*
 * latency.c
 *	  How long events waited until they were applied: a histogram for each
 *	  database, since the server started.
 *
 * A transaction counts its events by itself, and adds them to the histogram
 * when it commits.  What a subtransaction has counted is dropped if it is rolled
 * back.
 */
#include "base/compat.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "utils/memutils.h"

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

/*
 * What this transaction has applied, and those of its subtransactions that have
 * not ended; the innermost first.
 */
typedef struct Noted
{
	struct Noted *outer;
	int			level;			/* of the transaction */
	uint64		counts[PJ_LATENCY_BUCKETS];
	double		seconds;
} Noted;

static Noted *noted = NULL;

/* Begin to count for the current transaction. */
static void
begin_counting(int level)
{
	Noted	   *inner = MemoryContextAllocZero(TopTransactionContext,
											   sizeof(Noted));

	pj_shmem_attach();			/* it cannot be done after the commit */
	inner->outer = noted;
	inner->level = level;
	noted = inner;
}

/* An event has been applied. */
void
pj_latency_note(TimestampTz recorded_at, TimestampTz now)
{
	int64		us = now > recorded_at ? now - recorded_at : 0;
	int			level = GetCurrentTransactionNestLevel();
	int			i = 0;

	if (recorded_at == DT_NOBEGIN)
		us = 0;
	if (noted == NULL || noted->level < level)
		begin_counting(level);
	while (i < PJ_LATENCY_BUCKETS - 1 && us > bounds[i])
		i++;
	noted->counts[i]++;
	noted->seconds += us / (double) USECS_PER_SEC;
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
	pg_atomic_write_u64(&found->seconds, 0);
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

/* The number whose bits these are.  The bits of 0 are 0. */
static double
from_bits(uint64 bits)
{
	double		number;

	memcpy(&number, &bits, sizeof(number));
	return number;
}

/*
 * Add to the sum.  It is a double, because whole microseconds would overflow
 * after 30,000 events that are 20 years old.
 */
static void
add_seconds(pg_atomic_uint64 *sum, double seconds)
{
	uint64		before = pg_atomic_read_u64(sum);
	uint64		after;

	do
	{
		double		total = from_bits(before) + seconds;

		memcpy(&after, &total, sizeof(after));
	} while (!pg_atomic_compare_exchange_u64(sum, &before, after));
}

static void
add_counts(void)
{
	LatencyCounts *mine = my_counts();

	for (int i = 0; mine && i < PJ_LATENCY_BUCKETS; i++)
		if (noted->counts[i] > 0)
			pg_atomic_fetch_add_u64(&mine->counts[i], noted->counts[i]);
	if (mine)
		add_seconds(&mine->seconds, noted->seconds);
}

static void
at_transaction_event(XactEvent event, void *arg)
{
	if (noted == NULL || event == XACT_EVENT_PRE_COMMIT ||
		event == XACT_EVENT_PRE_PREPARE ||
		event == XACT_EVENT_PARALLEL_PRE_COMMIT)
		return;
	if (event == XACT_EVENT_COMMIT)
		add_counts();
	noted = NULL;
}

/* What a subtransaction has counted becomes its parent's, or is dropped. */
static void
at_subtransaction_event(SubXactEvent event, SubTransactionId mySubid,
						SubTransactionId parentSubid, void *arg)
{
	int			level = GetCurrentTransactionNestLevel();
	Noted	   *inner = noted;

	if (inner == NULL || inner->level < level ||
		(event != SUBXACT_EVENT_COMMIT_SUB &&
		 event != SUBXACT_EVENT_ABORT_SUB))
		return;
	if (event == SUBXACT_EVENT_ABORT_SUB)
		noted = inner->outer;
	else if (inner->outer == NULL || inner->outer->level < level - 1)
		inner->level = level - 1;
	else
	{
		noted = inner->outer;
		for (int i = 0; i < PJ_LATENCY_BUCKETS; i++)
			noted->counts[i] += inner->counts[i];
		noted->seconds += inner->seconds;
	}
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
	latency->seconds = from_bits(pg_atomic_read_u64(&mine->seconds));
	return true;
}

void
pj_latency_init(void)
{
	RegisterXactCallback(at_transaction_event, NULL);
	RegisterSubXactCallback(at_subtransaction_event, NULL);
}
