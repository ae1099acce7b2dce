/*
 * row_cache.c
 *	  Rows of a fold that are changed by many batches, and written once.
 *
 * A transaction that writes a row in each of a thousand batches leaves a thousand
 * row versions.  They cannot be pruned before it ends, and each lookup passes all
 * of them.  So a replay in one transaction keeps changed rows in memory from
 * batch to batch.  It writes them at the end, or when they are large.  It must
 * have the pair to itself, and must not roll back to a savepoint.
 *
 * Rows are found by the hash function of their key's type.  Keys are equal if the
 * primary key says so.  Rows are not kept if the type has no hash function, or if
 * triggers of the target change rows as they are written.
 */
#include "base/compat.h"

#include "access/htup_details.h"
#include "utils/datum.h"
#include "utils/hsearch.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/typcache.h"

#include "kinds/row_cache.h"
#include "log/log_read.h"

/* A row that must be written. */
typedef struct Entry
{
	struct Entry *next;			/* of the same hash */
	PjFoldRow	row;			/* its values are in its tuple */
} Entry;

/* All rows of one hash. */
typedef struct Bucket
{
	uint32		hash;			/* hash key */
	Entry	   *first;
} Bucket;

struct PjRowCache
{
	HTAB	   *buckets;		/* NULL if there are no rows */
	MemoryContext context;		/* of the cache */
	MemoryContext rows;			/* of the buckets and rows */
	Size		bytes;
	HASH_SEQ_STATUS place;		/* of pj_row_cache_next() */
	bool		writing;		/* it has begun */
	bool		written;		/* it has returned all rows */
};

/* Make one, in the current memory context; it lives as long as that. */
PjRowCache *
pj_row_cache_make(void)
{
	PjRowCache *cache = palloc0(sizeof(PjRowCache));

	cache->context = CurrentMemoryContext;
	return cache;
}

bool
pj_row_cache_is_full(const PjRowCache *cache)
{
	return cache->bytes > PJ_BATCH_BYTES;
}

bool
pj_row_cache_is_empty(const PjRowCache *cache)
{
	return cache->buckets == NULL;
}

static Form_pg_attribute
key_attribute(const PjFoldBatch *batch)
{
	return TupleDescAttr(batch->target.desc, batch->target.columns.key - 1);
}

/* The operator by which the primary key finds a row. */
static Oid
key_operator(const PjFoldTarget *target)
{
	Relation	index = target->index;
	int			i = index->rd_index->indkey.values[0] != target->columns.key;

	return get_opfamily_member(index->rd_opfamily[i], index->rd_opcintype[i],
							   index->rd_opcintype[i], BTEqualStrategyNumber);
}

/*
 * Can rows of the batch be kept?  The hash function must match the primary key's
 * equality operator.
 */
bool
pj_row_cache_can_keep(PjFoldBatch *batch)
{
	TypeCacheEntry *type;

	if (batch->work->cache == NULL || pj_fold_has_triggers(batch->target.heap))
		return false;
	type = lookup_type_cache(key_attribute(batch)->atttypid,
							 TYPECACHE_EQ_OPR | TYPECACHE_HASH_PROC_FINFO);
	return OidIsValid(type->hash_proc_finfo.fn_oid) &&
		type->eq_opr == key_operator(&batch->target);
}

static uint32
hash_key(PjFoldBatch *batch, Datum key)
{
	Form_pg_attribute attribute = key_attribute(batch);
	TypeCacheEntry *type = lookup_type_cache(attribute->atttypid,
											 TYPECACHE_HASH_PROC_FINFO);

	return DatumGetUInt32(FunctionCall1Coll(&type->hash_proc_finfo,
											attribute->attcollation, key));
}

static void
make_buckets(PjRowCache *cache)
{
	HASHCTL		control = {
		.keysize = sizeof(uint32),
		.entrysize = sizeof(Bucket),
	};

	cache->rows = AllocSetContextCreate(cache->context,
										"projector row cache",
										ALLOCSET_DEFAULT_SIZES);
	control.hcxt = cache->rows;
	cache->buckets = hash_create("projector row cache", 1024, &control,
								 HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

static Size
entry_size(const Entry *entry)
{
	return sizeof(Entry) + sizeof(Bucket) +
		(entry->row.tuple ? entry->row.tuple->t_len : 0);
}

/* Copy an entry's row to one of the batch, which has room for its values. */
static void
restore_row(PjFoldBatch *batch, const Entry *entry, PjFoldRow *row)
{
	PjFoldRow	as_kept = entry->row;

	as_kept.key = row->key;
	as_kept.values = row->values;
	as_kept.nulls = row->nulls;
	as_kept.owned = row->owned;
	*row = as_kept;
	if (entry->row.tuple == NULL)
		return;
	row->tuple = heap_copytuple(entry->row.tuple);
	row->size = row->tuple->t_len;
	batch->target.bytes += row->size;
	heap_deform_tuple(row->tuple, batch->target.desc, row->values,
					  row->nulls);
}

static void
forget_entry(PjRowCache *cache, Entry *entry, bool by_value)
{
	cache->bytes -= entry_size(entry);
	if (entry->row.tuple)
		heap_freetuple(entry->row.tuple);
	if (!by_value)
		pfree(DatumGetPointer(entry->row.key));
	pfree(entry);
}

/* Take a row out of the cache, if it is there. */
static void
take_row(PjFoldBatch *batch, PjFoldRow *row)
{
	PjRowCache *cache = batch->work->cache;
	uint32		hash = hash_key(batch, row->key);
	Bucket	   *bucket = hash_search(cache->buckets, &hash, HASH_FIND, NULL);

	for (Entry **at = bucket ? &bucket->first : NULL; at && *at;
		 at = &(*at)->next)
	{
		Entry	   *entry = *at;

		if (!pj_fold_equal(&batch->target, batch->target.columns.key,
						   entry->row.key, row->key))
			continue;
		restore_row(batch, entry, row);
		*at = entry->next;
		forget_entry(cache, entry, key_attribute(batch)->attbyval);
		break;
	}
	if (bucket && bucket->first == NULL)
		hash_search(cache->buckets, &hash, HASH_REMOVE, NULL);
}

/* Move the batch's rows from the cache to the batch. */
void
pj_row_cache_take(PjFoldBatch *batch)
{
	MemoryContext caller = MemoryContextSwitchTo(batch->target.context);

	pj_fold_make_room(&batch->target, batch->rows, batch->nrows);
	if (!pj_row_cache_is_empty(batch->work->cache))
		for (int i = 0; i < batch->nrows; i++)
			take_row(batch, &batch->rows[i]);
	MemoryContextSwitchTo(caller);
}

static void
keep_row(PjFoldBatch *batch, const PjFoldRow *row)
{
	PjRowCache *cache = batch->work->cache;
	Form_pg_attribute attribute = key_attribute(batch);
	uint32		hash = hash_key(batch, row->key);
	bool		found;
	Bucket	   *bucket = hash_search(cache->buckets, &hash, HASH_ENTER,
									 &found);
	MemoryContext caller = MemoryContextSwitchTo(cache->rows);
	Entry	   *entry = palloc(sizeof(Entry));

	entry->row = *row;
	entry->row.key = datumCopy(row->key, attribute->attbyval,
							   attribute->attlen);
	entry->row.tuple = row->present ?
		heap_form_tuple(batch->target.desc, row->values, row->nulls) : NULL;
	entry->next = found ? bucket->first : NULL;
	bucket->first = entry;
	cache->bytes += entry_size(entry);
	MemoryContextSwitchTo(caller);
}

/* Keep the rows that a batch has changed, instead of writing them. */
void
pj_row_cache_keep(PjFoldBatch *batch)
{
	PjRowCache *cache = batch->work->cache;

	if (cache->buckets == NULL)
		make_buckets(cache);
	for (int i = 0; i < batch->nrows; i++)
	{
		const PjFoldRow *row = &batch->rows[i];

		/* a row that was created and deleted need not be written */
		if (row->touched && (row->stored || row->present))
			keep_row(batch, row);
	}
}

/* The next bucket to write, or NULL. */
static Bucket *
next_bucket(PjRowCache *cache)
{
	Bucket	   *bucket;

	if (cache->written)
		return NULL;
	if (!cache->writing)
		hash_seq_init(&cache->place, cache->buckets);
	cache->writing = true;
	bucket = hash_seq_search(&cache->place);
	cache->written = bucket == NULL;
	return bucket;
}

/* All rows have been returned: forget them. */
static void
end_writing(PjRowCache *cache)
{
	cache->writing = cache->written = false;
	cache->buckets = NULL;
	cache->bytes = 0;
	MemoryContextDelete(cache->rows);
}

/*
 * Copy the next rows to write to the batch: "max", or a few more if some have the
 * same hash.  Returns how many.  After the last row the cache is empty.
 */
int
pj_row_cache_next(PjFoldBatch *batch, int max)
{
	PjRowCache *cache = batch->work->cache;
	Bucket	   *bucket;

	batch->nrows = 0;
	if (cache->buckets == NULL)
		return 0;
	while (batch->nrows < max && (bucket = next_bucket(cache)) != NULL)
		for (Entry *entry = bucket->first; entry; entry = entry->next)
		{
			if (batch->nrows >= max)
				batch->rows = repalloc(batch->rows, sizeof(PjFoldRow) *
									   (batch->nrows + 1));
			memset(&batch->rows[batch->nrows], 0, sizeof(PjFoldRow));
			pj_fold_make_room(&batch->target, &batch->rows[batch->nrows], 1);
			batch->rows[batch->nrows].key = entry->row.key;
			restore_row(batch, entry, &batch->rows[batch->nrows++]);
		}
	if (batch->nrows == 0)
		end_writing(cache);
	return batch->nrows;
}
