/*
 * read_model.c
 *	  A read model as a whole: the digest of all rows of a tenant.
 */
#include "base/compat.h"

#include "apply/model_rows.h"
#include "apply/read_model.h"
#include "base/lock.h"
#include "kinds/problem.h"
#include "registry/target.h"
#include "state/cursor.h"
#include "state/delta.h"

static void
add_row(void *arg, const PjRow *row)
{
	pj_digest_add(arg, &row->hash);
}

/* Compute the digest of the rows that a reader reads, in all targets. */
static void
read_digest(PjRowReader *reader, PjDigest *digest)
{
	memset(digest, 0, sizeof(*digest));
	reader->receive = add_row;
	reader->arg = digest;
	for (int i = 0; i < pj_target_count(reader->projection); i++)
	{
		reader->target = i;
		pj_rows_read(reader);
		digest->layout = reader->layout;
	}
}

/*
 * Compute the digest of a tenant's rows from the tables, as a snapshot sees
 * them, or with the latest if it is NULL.
 */
void
pj_model_digest(const PjProjection *projection, Datum tenant,
				Snapshot snapshot, PjDigest *digest)
{
	PjRowReader reader = {.projection = projection,.tenant = tenant,
	.snapshot = snapshot};

	read_digest(&reader, digest);
}

/*
 * Compute the digest from the rows, and store it.  The caller holds the pair's
 * lock exclusively, or the digest is not updated by each batch; otherwise the
 * change of an append after the rows were read would be lost.  The books of a
 * build are used only by its run.  The caller has called pj_enter_internal().
 */
void
pj_model_refresh(const PjPair *pair, int64 log_seq)
{
	PjRowReader reader = {.projection = pair->projection,
	.tenant = pair->tenant,.table = pj_pair_table(pair)};
	int32		books = pj_pair_books(pair);
	PjDigest	digest;

	Assert(pair->destination || !pj_digest_is_kept(pair->projection) ||
		   pj_pair_is_ours(books, pair->tenant));
	read_digest(&reader, &digest);
	pj_digest_forget(books, pair->tenant);
	pj_digest_set(books, pair->tenant, &digest, log_seq);
}

/*
 * Recompute the digests of pairs whose target has been altered since something
 * was recorded: of a projection and tenant, or of all if these are 0.  A pair
 * that is locked is left for later.
 */
void
pj_models_refresh_altered(int32 projection_id, Datum tenant)
{
	int32	   *ids;
	Datum	   *tenants;
	int			n = pj_deltas_of_other_layouts(projection_id, tenant, &ids,
											   &tenants);

	for (int i = 0; i < n; i++)
	{
		PjProjection *projection;
		PjPair		pair;

		if (!pj_lock_projection(ids[i], ShareLock, false) ||
			!pj_pair_try_lock(ids[i], tenants[i], ExclusiveLock))
			continue;
		projection = pj_projection_by_id(ids[i]);
		if (projection == NULL || projection->dormant ||
			pj_projection_problem(projection) != NULL)
			continue;
		pj_pair_look(&pair, projection, tenants[i]);
		if (pj_digest_is_kept(projection))
			pj_model_refresh(&pair, pair.last_log_seq);
		else
			pj_digest_forget(projection->id, tenants[i]);
	}
}
