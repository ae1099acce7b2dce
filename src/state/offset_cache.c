/*
 * offset_cache.c
 *	  Offsets that are moved in memory, and written once.
 *
 * A transaction that moves an offset a thousand times leaves a thousand row
 * versions.  They cannot be pruned before it ends, and each lookup passes all of
 * them.  So a replay in one transaction moves offsets in memory.  It writes them
 * at the end, or when there are many.  It must have the pair to itself, and must
 * not roll back to a savepoint.
 */
#include "base/compat.h"

#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/uuid.h"

#include "base/text.h"
#include "state/offset_cache.h"

/* Offsets kept in memory. */
#define MAX_ENTRIES	50000

/* Offsets written at a time. */
#define WRITE_SIZE	1000

typedef struct Entry
{
	Datum		aggregate;		/* hash key */
	PjOffset	stored;			/* as it is in the table */
	int64		last;
	pg_uuid_t	event_id;
} Entry;

struct PjOffsetCache
{
	int32		projection_id;
	Datum		tenant;
	HTAB	   *entries;
	MemoryContext context;		/* of the cache */
	MemoryContext keys;			/* of the entries */
};

static uint32
hash_aggregate(const void *key, Size size)
{
	text	   *id = DatumGetTextPP(*(const Datum *) key);

	return hash_bytes((const unsigned char *) VARDATA_ANY(id),
					  VARSIZE_ANY_EXHDR(id));
}

static int
match_aggregates(const void *a, const void *b, Size size)
{
	return !pj_text_equal(*(const Datum *) a, *(const Datum *) b);
}

static void
make_entries(PjOffsetCache *cache)
{
	HASHCTL		control = {
		.keysize = sizeof(Datum),
		.entrysize = sizeof(Entry),
		.hash = hash_aggregate,
		.match = match_aggregates,
	};

	cache->keys = AllocSetContextCreate(cache->context,
										"projector offset cache",
										ALLOCSET_DEFAULT_SIZES);
	control.hcxt = cache->keys;
	cache->entries = hash_create("projector offset cache", 1024, &control,
								 HASH_ELEM | HASH_FUNCTION | HASH_COMPARE |
								 HASH_CONTEXT);
}

/* Make one, in the current memory context; it lives as long as that. */
PjOffsetCache *
pj_offset_cache_make(int32 projection_id, Datum tenant)
{
	PjOffsetCache *cache = palloc0(sizeof(PjOffsetCache));

	cache->projection_id = projection_id;
	cache->tenant = tenant;
	cache->context = CurrentMemoryContext;
	make_entries(cache);
	return cache;
}

static Entry *
find_entry(PjOffsetCache *cache, Datum aggregate)
{
	return hash_search(cache->entries, &aggregate, HASH_FIND, NULL);
}

/* Does what pj_offsets_load() does.  Reads offsets that are not in memory. */
void
pj_offset_cache_load(PjOffsetCache *cache, PjOffset *offsets, int n)
{
	for (int i = 0; i < n; i++)
	{
		Entry	   *entry = find_entry(cache, offsets[i].aggregate);

		if (entry == NULL)
		{
			pj_offsets_load(cache->projection_id, cache->tenant, &offsets[i],
							1);
			continue;
		}
		offsets[i].busy = false;
		offsets[i].exists = true;
		offsets[i].last = entry->last;
		offsets[i].row = NULL;
	}
}

/* Move offsets that have just been loaded. */
void
pj_offset_cache_move(PjOffsetCache *cache, const PjOffsetMove *moves, int n)
{
	for (int i = 0; i < n; i++)
	{
		const PjOffset *from = moves[i].from;
		bool		found;
		Entry	   *entry = hash_search(cache->entries, &from->aggregate,
										HASH_ENTER, &found);

		if (!found)
		{
			MemoryContext caller = MemoryContextSwitchTo(cache->keys);

			entry->aggregate = datumCopy(from->aggregate, false, -1);
			entry->stored = *from;
			entry->stored.aggregate = entry->aggregate;
			entry->stored.row = NULL;
			MemoryContextSwitchTo(caller);
		}
		entry->last = moves[i].to;
		entry->event_id = *DatumGetUUIDP(moves[i].event_id);
	}
}

bool
pj_offset_cache_is_full(const PjOffsetCache *cache)
{
	return hash_get_num_entries(cache->entries) >= MAX_ENTRIES;
}

static int
compare_entries(const void *a, const void *b)
{
	return pj_text_compare((*(Entry *const *) a)->aggregate,
						   (*(Entry *const *) b)->aggregate);
}

/* Returns all entries in the order of the table's index. */
static int
sort_entries(PjOffsetCache *cache, Entry ***entries)
{
	HASH_SEQ_STATUS status;
	Entry	   *entry;
	int			n = 0;

	*entries = MemoryContextAlloc(cache->keys, sizeof(Entry *) *
								  (hash_get_num_entries(cache->entries) + 1));
	hash_seq_init(&status, cache->entries);
	while ((entry = hash_seq_search(&status)) != NULL)
		(*entries)[n++] = entry;
	qsort(*entries, n, sizeof(Entry *), compare_entries);
	return n;
}

/* Write some of them. */
static bool
write_entries(PjOffsetCache *cache, Entry **entries, int n)
{
	MemoryContext context = AllocSetContextCreate(cache->context,
												  "projector offsets",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);
	PjOffsetMove *moves = palloc(sizeof(PjOffsetMove) * n);
	bool		written;

	for (int i = 0; i < n; i++)
		moves[i] = (PjOffsetMove)
	{
		&entries[i]->stored, entries[i]->last,
			UUIDPGetDatum(&entries[i]->event_id)
	};
	written = pj_offsets_move(cache->projection_id, cache->tenant, moves, n,
							  true);
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(context);
	return written;
}

/*
 * Write all and forget them.  Returns false if one was not where it should be.
 */
bool
pj_offset_cache_flush(PjOffsetCache *cache)
{
	Entry	  **entries;
	int			n = sort_entries(cache, &entries);
	bool		written = true;

	for (int i = 0; i < n && written; i += WRITE_SIZE)
		written = write_entries(cache, entries + i, Min(WRITE_SIZE, n - i));
	MemoryContextDelete(cache->keys);
	make_entries(cache);
	return written;
}
