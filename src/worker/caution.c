/*
 * caution.c
 *	  What workers do after a crash of a worker or of the server.
 *
 * An event whose code crashes the server would do so again after each restart,
 * and everything in shared memory is lost.  So a worker commits a mark when it
 * starts, and deletes it when it exits normally.  A worker that finds the mark
 * of one that did not exit normally is cautious: it applies one event of each
 * pair at a time, and commits the attempt before it makes it ("announces" the
 * event).  So the attempt is counted whatever happens.  After max_attempts the
 * event is dead, and the others continue.
 *
 * A run is announced batch by batch; it fails after max_attempts.
 *
 * A pair is trusted again when a batch's number of events has been applied
 * this way, or when there are no more, and no failed event of it is waiting
 * for a retry.  A run in one piece is trusted after an announced batch, one in
 * slices when it has ended.  Caution ends when all pairs with work and all runs
 * are trusted, and no announced event is left.
 *
 * A worker that exits because some code ignores its timeout knows the pair,
 * and stores it in its mark.  Then caution is limited to that pair.
 */
#include "base/compat.h"

#include "access/xact.h"
#include "commands/extension.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "apply/apply.h"
#include "base/fetch.h"
#include "base/lock.h"
#include "base/statement.h"
#include "base/version.h"
#include "ipc/shmem.h"
#include "ipc/wakeup.h"
#include "sandbox/deadline.h"
#include "sandbox/user_context.h"
#include "worker/blame.h"
#include "worker/caution.h"

static PjTable marks_table = {"worker_marks", "worker_marks_pkey"};

static PjStatement select_marks = {
	.sql = "SELECT tenant_id, slot, cautious, projection_id"
	" FROM projector.worker_marks ORDER BY slot",
	.expect = SPI_OK_SELECT,
};

static PjStatement delete_mark = {
	.sql = "DELETE FROM projector.worker_marks WHERE slot = $1",
	.expect = SPI_OK_DELETE,
	.nargs = 1,
	.argtypes = {INT4OID},
};

static PjStatement write_mark = {
	.sql = "INSERT INTO projector.worker_marks"
	" (slot, cautious, projection_id, tenant_id) VALUES ($1, $2, $3, $4)"
	" ON CONFLICT (slot) DO UPDATE SET cautious = excluded.cautious,"
	" projection_id = excluded.projection_id, tenant_id = excluded.tenant_id",
	.expect = SPI_OK_INSERT,
	.nargs = 4,
	.argtypes = {INT4OID, BOOLOID, INT4OID, TEXTOID},
};

static PjStatement select_failed = {
	.sql = "SELECT FROM projector.apply_outbox WHERE projection_id = $1"
	" AND tenant_id = $2 AND status = 'failed' LIMIT 1",
	.expect = SPI_OK_SELECT,
	.nargs = 2,
	.argtypes = {INT4OID, TEXTOID},
};

/* Events that were announced, and have not been applied since. */
static PjStatement select_announced = {
	.sql = "SELECT FROM projector.apply_outbox WHERE status = 'failed'"
	" AND last_error = $1 LIMIT 1",
	.expect = SPI_OK_SELECT,
	.nargs = 1,
	.argtypes = {TEXTOID},
};

/* The key of a pair.  Two tenants with the same hash share an entry. */
typedef struct PairKey
{
	int32		projection_id;
	int32		unused;
	uint64		tenant;
} PairKey;

typedef struct Pair
{
	PairKey		key;
	bool		trusted;
	int			passed;			/* events tried since caution began */
} Pair;

static struct
{
	bool		all;			/* unknown pairs are not trusted, either */
	HTAB	   *pairs;			/* NULL if there is no caution */
} caution;

/* ---- pairs ---- */

static Pair *
find_pair(int32 projection_id, Datum tenant, bool enter)
{
	PairKey		key = {.projection_id = projection_id,
	.tenant = pj_tenant_hash(tenant)};
	bool		found;
	Pair	   *pair = hash_search(caution.pairs, &key,
								   enter ? HASH_ENTER : HASH_FIND, &found);

	if (enter && !found)
	{
		pair->trusted = false;
		pair->passed = 0;
	}
	return pair;
}

static void
begin_caution(void)
{
	HASHCTL		ctl = {.keysize = sizeof(PairKey),.entrysize = sizeof(Pair)};

	if (caution.pairs == NULL)
		caution.pairs = hash_create("projector caution", 64, &ctl,
									HASH_ELEM | HASH_BLOBS);
}

/* Is there a pair that may not be trusted? */
bool
pj_caution_is_on(void)
{
	return caution.pairs != NULL;
}

/* Must this pair's next event be announced and applied alone? */
bool
pj_caution_needed(int32 projection_id, Datum tenant)
{
	Pair	   *pair;

	if (caution.pairs == NULL)
		return false;
	pair = find_pair(projection_id, tenant, caution.all);
	return pair != NULL && !pair->trusted;
}

static void
trust(Pair *pair, int32 projection_id, Datum tenant)
{
	Datum		values[2] = {Int32GetDatum(projection_id), tenant};

	if (pair->trusted || pj_execute(&select_failed, values, NULL) > 0)
		return;
	pair->trusted = true;
}

/* An event of the pair was applied, or failed without a crash. */
void
pj_caution_passed(int32 projection_id, Datum tenant, int batch_size)
{
	Pair	   *pair = find_pair(projection_id, tenant, true);

	if (++pair->passed >= batch_size)
		trust(pair, projection_id, tenant);
}

/* The pair has nothing to do at present. */
void
pj_caution_idle(int32 projection_id, Datum tenant)
{
	trust(find_pair(projection_id, tenant, true), projection_id, tenant);
}

/* ---- marks ---- */

static void
save_mark(bool cautious, int32 projection_id, Datum tenant)
{
	Datum		values[4] = {Int32GetDatum(pj_slot_mine()),
	BoolGetDatum(cautious), Int32GetDatum(projection_id), tenant};

	pj_execute(&write_mark, values, projection_id ? NULL : "  nn");
}

/*
 * Called after looking for work.  Caution ends if no pair with work is suspect
 * and no announced event is waiting for a retry.
 */
void
pj_caution_end_if_over(bool suspects)
{
	Datum		values[1];

	if (suspects)
		return;
	values[0] = CStringGetTextDatum(pj_suspect_message);
	if (pj_execute(&select_announced, values, NULL) > 0)
		return;
	if (caution.all)
		save_mark(false, 0, 0);
	pj_release_slices();		/* batches that others have processed */
	hash_destroy(caution.pairs);
	caution.pairs = NULL;
	caution.all = false;
	ereport(LOG,
			errmsg("projector worker continues normally"));
}

/* Read one mark.  Returns true if its worker is gone. */
static bool
read_mark(int row)
{
	bool		isnull;
	Datum		tenant = pj_result(row, 1, &isnull);
	bool		names_pair = !isnull;
	int			slot = DatumGetInt32(pj_result(row, 2, &isnull));
	bool		cautious = DatumGetBool(pj_result(row, 3, &isnull));
	bool		gone = !pj_slot_is_other(slot);

	if (!gone && !cautious)
		return false;
	begin_caution();
	if (names_pair)
		(void) find_pair(DatumGetInt32(pj_result(row, 4, &isnull)), tenant,
						 true);
	else
		caution.all = true;
	return gone;
}

/*
 * Exit callback of a worker: delete its mark, unless there is still a reason
 * for caution.  If the table cannot be locked the mark stays, which is safe.
 */
static void
unmark(int code, Datum arg)
{
	PjContext	saved;
	Datum		values[1] = {Int32GetDatum(pj_slot_mine())};
	int32		projection_id;
	Datum		tenant;
	bool		at_pair = pj_current(&projection_id, &tenant);

	AbortOutOfAnyTransaction();
	if (pj_deadline_ignored())
		ereport(LOG,
				errmsg("projector worker ends because a projection's code ignores its option \"timeout\""),
				errdetail("It was working on projection %d, tenant \"%s\".",
						  projection_id,
						  at_pair ? TextDatumGetCString(tenant) : ""));
	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
	if (OidIsValid(get_extension_oid("projector", true)) &&
		pj_version_is_current() &&
		ConditionalLockRelationOid(pj_relid(&marks_table), RowExclusiveLock))
	{
		pj_enter_internal(&saved);
		if (pj_deadline_ignored() && at_pair)
			save_mark(caution.all, projection_id, tenant);
		else if (!pj_deadline_ignored() && !caution.all)
			pj_execute(&delete_mark, values, NULL);
		pj_leave_internal(&saved);
	}
	PopActiveSnapshot();
	CommitTransactionCommand();
}

/*
 * A worker starts: check how others have ended, and store a mark.  Runs in a
 * transaction of its own, after pj_enter_internal().
 */
void
pj_caution_begin(void)
{
	int			n = pj_execute(&select_marks, NULL, NULL);
	Datum	   *gone = palloc(sizeof(Datum) * Max(n, 1));
	int			ngone = 0;

	for (int i = 0; i < n; i++)
	{
		bool		isnull;
		Datum		slot = pj_result(i, 2, &isnull);

		if (read_mark(i))
			gone[ngone++] = slot;
	}
	for (int i = 0; i < ngone; i++)
		pj_execute(&delete_mark, &gone[i], NULL);
	save_mark(caution.all, 0, 0);
	before_shmem_exit(unmark, (Datum) 0);
	if (caution.pairs != NULL)
		ereport(LOG,
				errmsg("projector worker continues with caution, one event at a time"),
				errdetail("A previous worker did not exit normally."));
}
