/*
 * read_model.c
 *	  A read model as a whole: the digest of all of a tenant's rows.
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

/* Find the digest of the rows that a reader reads, in all targets. */
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
 * The digest of a tenant's rows, from the tables themselves, as a snapshot sees
 * them, or if it is NULL as they are now.
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
 * Find the digest from the rows, and keep it.  The caller is alone with the
 * pair, or its digest is not kept with each batch: what an append has changed
 * after the rows were read must not be forgotten.  What is built aside has
 * books that nobody else uses.  And the caller is in our own context.
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
 * Have a pair to ourselves, if nobody works on it.  If that fails no lock is
 * left that others would wait for: it is kept to the end of the transaction.
 */
static bool
lock_alone(int32 projection_id, Datum tenant)
{
	if (!pj_lock_projection(projection_id, ShareLock, false) ||
		!pj_lock_driver(projection_id, tenant, false))
		return false;
	if (pj_lock_pair(projection_id, tenant, ExclusiveLock, false))
		return true;
	pj_unlock_driver(projection_id, tenant);
	return false;
}

/*
 * Find the digests of pairs from the rows whose target has been altered since
 * something was noted: of a projection and tenant, or all if these are 0.  A
 * pair that somebody else works on is left for later.
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

		if (!lock_alone(ids[i], tenants[i]))
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
