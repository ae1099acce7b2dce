/*
 * model.c
 *	  A read model as a whole: the digest of all of a tenant's rows.
 *
 * It is read as the projection's owner, contained like the rest of its code: a
 * policy on the table may keep him to the tenant.
 */
#include "compat.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "cursor.h"
#include "delta.h"
#include "lock.h"
#include "model.h"
#include "problem.h"
#include "target.h"

/* So many rows are read at a time. */
#define CHUNK_ROWS	1000

typedef struct Reading
{
	const PjProjection *projection;
	Datum		tenant;
	PjDigest   *digest;
} Reading;

/* Add the rows that have been fetched. */
static void
hash_rows(Reading *reading, int target)
{
	TupleDesc	desc = SPI_tuptable->tupdesc;
	Datum	   *values = palloc(sizeof(Datum) * desc->natts);
	bool	   *nulls = palloc(sizeof(bool) * desc->natts);
	PjHasher	hasher;

	pj_hasher_begin(&hasher, desc, reading->projection, target);
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		PjDigest	hash;

		heap_deform_tuple(SPI_tuptable->vals[i], desc, values, nulls);
		pj_hasher_row(&hasher, values, nulls, &hash);
		pj_digest_add(reading->digest, &hash);
	}
	if (target == 0)
		reading->digest->layout = hasher.layout;
	pj_hasher_end(&hasher);
}

static void
read_target(Reading *reading, int target)
{
	const PjProjection *projection = reading->projection;
	Oid			relid = OidIsValid(projection->aside) ? projection->aside :
		pj_target_oid(projection, target);
	Oid			types[1] = {TEXTOID};
	Datum		values[1] = {reading->tenant};
	Portal		portal;

	portal = SPI_cursor_open_with_args(NULL, pj_target_rows_query(relid), 1,
									   types, values, NULL, true, 0);
	do
	{
		CHECK_FOR_INTERRUPTS();
		SPI_cursor_fetch(portal, true, CHUNK_ROWS);
		hash_rows(reading, target);
		SPI_freetuptable(SPI_tuptable);
	} while (SPI_processed > 0);
	SPI_cursor_close(portal);
}

static void
read_model(void *arg)
{
	Reading    *reading = arg;

	PushActiveSnapshot(GetLatestSnapshot());
	SPI_connect();
	for (int i = 0; i < pj_target_count(reading->projection); i++)
		read_target(reading, i);
	SPI_finish();
	PopActiveSnapshot();
}

/* The digest of a tenant's rows, from the tables themselves. */
void
pj_model_digest(const PjProjection *projection, Datum tenant,
				PjDigest *digest)
{
	Reading		reading = {projection, tenant, digest};

	memset(digest, 0, sizeof(*digest));
	if (OidIsValid(projection->aside))
		read_model(&reading);	/* a table of ours */
	else
		pj_run_as_owner(projection, TextDatumGetCString(tenant), read_model,
						&reading);
}

/*
 * Find the digest anew and keep it.  The caller has the pair to itself, or
 * nobody else keeps its digest; and our own context.
 */
void
pj_model_refresh(const PjProjection *projection, Datum tenant, int64 log_seq)
{
	PjDigest	digest;

	pj_model_digest(projection, tenant, &digest);
	pj_digest_forget(projection->id, tenant);
	pj_digest_set(projection->id, tenant, &digest, log_seq);
}

/*
 * Find anew the digests of pairs whose target has been altered since appends
 * noted something.  Who is in the way is not waited for.
 */
void
pj_models_refresh_altered(void)
{
	int32	   *ids;
	Datum	   *tenants;
	int			n = pj_deltas_of_other_layouts(&ids, &tenants);

	for (int i = 0; i < n; i++)
	{
		PjProjection *projection;
		PjPair		pair;

		if (!pj_lock_projection(ids[i], ShareLock, false) ||
			!pj_lock_pair(ids[i], tenants[i], ExclusiveLock, false) ||
			!pj_lock_driver(ids[i], tenants[i], false))
			continue;
		projection = pj_projection_by_id(ids[i]);
		if (projection == NULL || projection->dormant ||
			pj_projection_problem(projection) != NULL)
			continue;
		pj_pair_look(&pair, projection, tenants[i]);
		pj_model_refresh(projection, tenants[i], pair.last_log_seq);
	}
}
