/*
 * digest_check.c
 *	  SQL functions for digests: of one read model, of all read models of a
 *	  tenant, and a check of the stored ones.
 *
 * A stored digest changes in the same transaction as the rows: either its own
 * row, or a row in projection_deltas added by an append.  So in any snapshot
 * the digest plus these rows equals the digest of the read model, and the
 * check needs no lock.
 */
#include "base/compat.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "fmgr.h"
#include "funcapi.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/tuplestore.h"

#include "apply/read_model.h"
#include "base/args.h"
#include "base/lock.h"
#include "base/statement.h"
#include "kinds/problem.h"
#include "registry/projection.h"
#include "registry/target.h"
#include "sandbox/user_context.h"
#include "state/cursor.h"

PG_FUNCTION_INFO_V1(projector_digest);
PG_FUNCTION_INFO_V1(projector_digest_all);
PG_FUNCTION_INFO_V1(projector_check_digests);

/* The stored digests of a projection, including deltas, and their layouts. */
static const char select_kept[] =
"SELECT tenant_id, projector.digest_add(coalesce(d.digest, repeat('0', 32)),"
" coalesce(x.digest, repeat('0', 32))), d.layout, x.least, x.greatest"
" FROM (SELECT * FROM projector.projection_digests WHERE projection_id = $1) d"
" FULL JOIN (SELECT tenant_id, projector.digest_sum(digest) AS digest,"
" min(layout) AS least, max(layout) AS greatest"
" FROM projector.projection_deltas"
" WHERE projection_id = $1 AND digest IS NOT NULL GROUP BY tenant_id) x"
" USING (tenant_id) WHERE $2 IS NULL OR tenant_id = $2 ORDER BY tenant_id";

/*
 * Is the digest to be stored?  It is for handlers and statements, if the pair
 * is free: its locks are taken, but not waited for.
 */
static bool
is_stored(const PjProjection *projection, Datum tenant)
{
	return projection->options.digest && !pj_is_fold(projection->kind) &&
		!XactReadOnly && !RecoveryInProgress() &&
		pj_lock_projection(projection->id, ShareLock, false) &&
		pj_lock_driver(projection->id, tenant, false);
}

/* Returns the digest of a tenant's rows, and stores it if possible. */
static char *
find_digest(int32 id, Datum tenant)
{
	PjProjection *projection = pj_projection_by_id(id);
	bool		stored = is_stored(projection, tenant);
	PjDigest	digest;
	PjContext	saved;
	PjPair		pair;

	/* it may have changed before we had the lock */
	projection = pj_projection_by_id(id);
	if (projection == NULL)
		elog(ERROR, "projection %d has just been dropped", id);
	pj_model_digest(projection, tenant, NULL, &digest);
	if (stored)
	{
		pj_enter_internal(&saved);
		pj_pair_look(&pair, projection, tenant);
		pj_digest_set(id, tenant, &digest, pair.last_log_seq);
		pj_leave_internal(&saved);
	}
	return pj_digest_text(&digest);
}

/*
 * Are a projection's rows out of reach, because its owner or a target is
 * missing?  Then the caller goes on without it, and says so.
 */
static bool
is_out_of_reach(const PjProjection *projection)
{
	bool		missing = projection->unreadable != NULL ||
	!OidIsValid(pj_projection_role(projection));

	for (int i = 0; !missing && i < pj_target_count(projection); i++)
		missing = pj_target_find_name(pj_target_find(projection, i)) == NULL;
	if (missing)
		ereport(WARNING,
				errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("the read model of projection \"%s\" cannot be read",
					   projection->name),
				errdetail("%s", pj_projection_problem(projection)));
	return missing;
}

/* Returns the digest of a projection's rows of one tenant. */
Datum
projector_digest(PG_FUNCTION_ARGS)
{
	char	   *name = pj_required_name(fcinfo, 0, "name");
	Datum		tenant = pj_required_text(fcinfo, 1, "tenant_id");
	PjProjection *projection;

	pj_refuse_in_user_code("projector_digest");
	projection = pj_projection_find(name);
	pj_projection_check_own(projection);
	pj_refuse_dormant(projection);
	PG_RETURN_TEXT_P(cstring_to_text(find_digest(projection->id, tenant)));
}

static int
compare_names(const void *a, const void *b)
{
	return strcmp((*(PjProjection *const *) a)->name,
				  (*(PjProjection *const *) b)->name);
}

/* Returns the digest as text; a dash if the rows are out of reach. */
static const char *
find_any_digest(const PjProjection *projection, Datum tenant)
{
	pj_projection_check_own(projection);
	pj_refuse_dormant(projection);
	return is_out_of_reach(projection) ? "-" :
		find_digest(projection->id, tenant);
}

/* Returns one digest of all of a tenant's read models. */
Datum
projector_digest_all(PG_FUNCTION_ARGS)
{
	Datum		tenant = pj_required_text(fcinfo, 0, "tenant_id");
	PjProjection **projections;
	int			n = pj_projections_in_order(&projections);
	StringInfoData all;
	PjDigest	digest;

	pj_refuse_in_user_code("projector_digest_all");
	qsort(projections, n, sizeof(PjProjection *), compare_names);
	initStringInfo(&all);
	for (int i = 0; i < n; i++)
		appendStringInfo(&all, "%s %s\n", projections[i]->name,
						 find_any_digest(projections[i], tenant));
	digest.high = hash_bytes_extended((unsigned char *) all.data, all.len, 0);
	digest.low = hash_bytes_extended((unsigned char *) all.data, all.len, 1);
	PG_RETURN_TEXT_P(cstring_to_text(pj_digest_text(&digest)));
}

/* ---- checking stored digests ---- */

/* One stored digest. */
typedef struct Kept
{
	Datum		tenant;
	char	   *digest;
	int64		layouts[3];		/* 0 if there is none */
} Kept;

/* Find a projection's stored digests, as a snapshot sees them. */
static int
find_kept(const PjProjection *projection, Datum tenant, Snapshot snapshot,
		  Kept **kept)
{
	Oid			types[2] = {INT4OID, TEXTOID};
	Datum		values[2] = {Int32GetDatum(projection->id), tenant};
	MemoryContext caller = CurrentMemoryContext;
	PjContext	saved;
	int			n;

	pj_enter_internal(&saved);
	PushActiveSnapshot(snapshot);
	if (SPI_execute_with_args(select_kept, 2, types, values,
							  tenant ? NULL : " n", true,
							  0) != SPI_OK_SELECT)
		elog(ERROR, "could not read the digests");
	PopActiveSnapshot();
	MemoryContextSwitchTo(caller);
	n = SPI_processed;
	*kept = palloc(sizeof(Kept) * Max(n, 1));
	for (int i = 0; i < n; i++)
	{
		Kept	   *one = &(*kept)[i];
		bool		isnull;

		one->tenant = PointerGetDatum(DatumGetTextPCopy(pj_result(i, 1,
																  &isnull)));
		one->digest = TextDatumGetCString(pj_result(i, 2, &isnull));
		for (int l = 0; l < 3; l++)
		{
			one->layouts[l] = DatumGetInt64(pj_result(i, 3 + l, &isnull));
			if (isnull)
				one->layouts[l] = 0;
		}
	}
	pj_leave_internal(&saved);
	return n;
}

/*
 * Compare one digest with the rows.  If the table has been altered since, the
 * result is null: the digest will be recomputed from the rows soon.  It is
 * null, too, if the rows are out of reach.
 */
static void
check_kept(const PjProjection *projection, const Kept *kept,
		   Snapshot snapshot, ReturnSetInfo *result)
{
	PjDigest	found;
	Datum		values[5] = {CStringGetTextDatum(projection->name),
	kept->tenant, 0, CStringGetTextDatum(kept->digest), 0};
	bool		nulls[5] = {[2] = true,[4] = true};

	if (snapshot)
	{
		pj_model_digest(projection, kept->tenant, snapshot, &found);
		values[2] = BoolGetDatum(strcmp(kept->digest,
										pj_digest_text(&found)) == 0);
		values[4] = CStringGetTextDatum(pj_digest_text(&found));
		nulls[2] = nulls[4] = false;
		for (int i = 0; i < 3; i++)
			nulls[2] = nulls[2] || (kept->layouts[i] != 0 &&
									kept->layouts[i] != found.layout);
	}
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

static void
check_projection(const PjProjection *projection, Datum tenant,
				 Snapshot snapshot, ReturnSetInfo *result)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "projector digest",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = CurrentMemoryContext;
	Kept	   *kept;
	int			n = find_kept(projection, tenant, snapshot, &kept);

	if (is_out_of_reach(projection))
		snapshot = NULL;
	for (int i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		MemoryContextSwitchTo(context);
		check_kept(projection, &kept[i], snapshot, result);
		MemoryContextSwitchTo(caller);
		MemoryContextReset(context);
	}
	MemoryContextDelete(context);
}

/* Compares the stored digests with the rows. */
Datum
projector_check_digests(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	Datum		name = pj_optional_text(fcinfo, 0, "name");
	Datum		tenant = pj_optional_text(fcinfo, 1, "tenant_id");
	PjProjection **projections;
	int			n;
	Snapshot	snapshot;

	pj_refuse_in_user_code("projector_check_digests");
	if (name)
	{
		PjProjection *projection = pj_projection_find(TextDatumGetCString(name));

		pj_projection_check_own(projection);
		pj_refuse_dormant(projection);
	}
	n = pj_projections_in_order(&projections);
	qsort(projections, n, sizeof(PjProjection *), compare_names);
	InitMaterializedSRF(fcinfo, 0);
	snapshot = RegisterSnapshot(GetLatestSnapshot());
	for (int i = 0; i < n; i++)
		if (pj_digest_is_kept(projections[i]) && !projections[i]->dormant &&
			pj_projection_is_own(projections[i]) &&
			(!name || strcmp(projections[i]->name,
							 TextDatumGetCString(name)) == 0))
			check_projection(projections[i], tenant, snapshot, result);
	UnregisterSnapshot(snapshot);
	PG_RETURN_NULL();
}
