/*
 * fold_cache.c
 *	  What a session caches of a fold between batches: its function, its
 *	  compiled expressions, and the table they were compiled for.
 *
 * An entry is found by the projection's id.  It is used only if nothing has
 * changed since: not the registry row, no function, role or type, and not the
 * target.  The target must be locked before checking whether it has changed.
 */
#include "base/compat.h"

#include "access/table.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "base/generation.h"
#include "kinds/fold_cache.h"
#include "kinds/kind.h"
#include "registry/target.h"
#include "sandbox/user_context.h"

static HTAB *kept_folds = NULL;

/* Returns the signature that the function of a fold must have. */
PjSignature
pj_fold_signature(Oid relid)
{
	Oid			rowtype = get_rel_type_id(relid);
	char	   *name = format_type_be_qualified(rowtype);

	return (PjSignature)
	{
		.what = "fold",
			.nargs = 2,
			.argtypes = {rowtype, pj_event_type_oid()},
			.rettype = rowtype,
			.arguments = psprintf("s %s, e projector.event", name),
			.takes = "a row of the target and a projector.event",
			.result = name,
	};
}

/* Relation cache callback. */
static void
relation_changed(Datum arg, Oid relid)
{
	HASH_SEQ_STATUS status;
	PjKeptFold *kept;

	hash_seq_init(&status, kept_folds);
	while ((kept = hash_seq_search(&status)) != NULL)
		if (relid == InvalidOid || kept->target == relid)
			kept->changed = true;
}

/* Returns the cache entry of a projection, which may be new or out of date. */
PjKeptFold *
pj_fold_find(const PjProjection *projection)
{
	PjKeptFold *kept;
	bool		found;

	if (kept_folds == NULL)
	{
		HASHCTL		ctl = {.keysize = sizeof(int32),.entrysize = sizeof(PjKeptFold)};

		kept_folds = hash_create("projector folds", 16, &ctl,
								 HASH_ELEM | HASH_BLOBS);
		CacheRegisterRelcacheCallback(relation_changed, (Datum) 0);
	}
	kept = hash_search(kept_folds, &projection->id, HASH_ENTER, &found);
	if (!found)
	{
		kept->context = NULL;
		kept->target = InvalidOid;
	}
	return kept;
}

/* Remove the entries of projections that have been dropped. */
void
pj_folds_sweep(void)
{
	HASH_SEQ_STATUS status;
	PjKeptFold *kept;

	if (kept_folds == NULL)
		return;
	hash_seq_init(&status, kept_folds);
	while ((kept = hash_seq_search(&status)) != NULL)
		if (pj_kind_is_gone(kept->id))
		{
			if (kept->context)
				MemoryContextDelete(kept->context);
			hash_search(kept_folds, &kept->id, HASH_REMOVE, NULL);
		}
}

static bool
is_good(const PjKeptFold *kept, const PjProjection *projection)
{
	return OidIsValid(kept->target) && !kept->changed && !kept->running &&
		kept->version == projection->version &&
		kept->generation == pj_code_generation();
}

/*
 * Look up the target and the function and compile the expressions, as the
 * owner.
 */
static void
compile_fold(PjKeptFold *kept, const PjProjection *projection)
{
	MemoryContext caller;
	Relation	target;
	Oid			relid = pj_target_oid(projection, 0);
	Oid			owner = pj_projection_owner(projection);
	bool		other_key = !pj_key_is_aggregate(projection->key);

	kept->target = InvalidOid;
	kept->running = false;
	kept->version = projection->version;
	kept->generation = pj_code_generation();
	if (kept->context)
		MemoryContextDelete(kept->context);
	kept->context = AllocSetContextCreate(CacheMemoryContext,
										  "projector fold",
										  ALLOCSET_SMALL_SIZES);
	target = table_open(relid, RowExclusiveLock);
	pj_target_check_fold(target, owner, other_key);
	kept->function = InvalidOid;
	if (projection->fold)
	{
		PjSignature signature = pj_fold_signature(relid);

		kept->function = pj_function_find(&signature, projection->fold,
										  owner);
	}
	caller = MemoryContextSwitchTo(kept->context);
	kept->code = pj_fold_compile(target, projection->fold_columns,
								 other_key ? projection->key : NULL,
								 projection->options.digest_ignore);
	MemoryContextSwitchTo(caller);
	table_close(target, NoLock);
	kept->changed = false;		/* we hold the lock, so it cannot change now */
	kept->target = relid;
}

/*
 * Lock the target, so that it cannot change any more, and compile the code
 * again if it is out of date.
 */
void
pj_fold_compile_if_changed(PjKeptFold *kept, const PjProjection *projection)
{
	if (OidIsValid(kept->target))
		LockRelationOid(kept->target, RowExclusiveLock);
	if (!is_good(kept, projection))
	{
		pj_pin_user_code();
		compile_fold(kept, projection);
	}
	if (!kept->code->plain)
		pj_pin_user_code();
}
