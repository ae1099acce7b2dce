/*
 * made_by.c
 *	  Note with which definition a pair's rows are made.
 *
 * A read model is stale as long as any of its rows may have been made by a
 * definition other than the present one.  A projection's function can be
 * replaced, and replaced back, without our knowledge.  So before events are
 * applied, the hash of the present definition is compared with the one noted
 * for the pair.  If they differ, the cursor gets an empty hash, which equals
 * none.  Only a rebuild sets it to the hash of one definition again.
 *
 * Appends do not read the cursor's row.  They do it here, once per session and
 * tenant, until a function or the registry row changes.
 */
#include "base/compat.h"

#include "utils/datum.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"

#include "apply/made_by.h"
#include "base/generation.h"
#include "base/lock.h"
#include "kinds/definition.h"
#include "sandbox/user_context.h"
#include "state/cursor.h"

/* The tenant of a projection that an append has last compared. */
typedef struct Compared
{
	int32		id;				/* key */
	uint64		version;		/* of the registry row */
	uint64		generation;		/* of functions */
	Datum		tenant;
} Compared;

static HTAB *compared = NULL;

/* Is a definition other than the one that made the pair's rows? */
static bool
is_other(const PjPair *pair, const bytea *hash)
{
	return hash != NULL && !pair->made_by.several &&
		memcmp(VARDATA_ANY(hash), pair->made_by.hash,
			   sizeof(pair->made_by.hash)) != 0;
}

/*
 * Compare, and note a difference.  The caller holds the pair's driver lock, so
 * that the pair's members are up to date.
 */
void
pj_made_by_note(PjPair *pair)
{
	const bytea *hash = pj_definition_peek(pair->projection);
	PjContext	saved;

	if (!is_other(pair, hash))
		return;
	pj_enter_internal(&saved);
	pj_cursor_note_definition(pair, hash);
	pj_leave_internal(&saved);
}

static Compared *
find_compared(int32 id)
{
	Compared   *entry;
	bool		found;

	if (compared == NULL)
	{
		HASHCTL		ctl = {.keysize = sizeof(int32),.entrysize = sizeof(Compared)};

		compared = hash_create("projector definitions compared", 16, &ctl,
							   HASH_ELEM | HASH_BLOBS);
	}
	entry = hash_search(compared, &id, HASH_ENTER, &found);
	if (!found)
		entry->tenant = 0;
	return entry;
}

static bool
is_compared(const Compared *entry, const PjProjection *projection,
			Datum tenant)
{
	return entry->tenant && entry->version == projection->version &&
		entry->generation == pj_code_generation() &&
		pj_text_equal(entry->tenant, tenant);
}

static void
remember(Compared *entry, const PjProjection *projection, Datum tenant)
{
	MemoryContext caller = MemoryContextSwitchTo(TopMemoryContext);
	Datum		before = entry->tenant;

	entry->tenant = datumCopy(tenant, false, -1);
	entry->version = projection->version;
	entry->generation = pj_code_generation();
	if (before)
		pfree(DatumGetPointer(before));
	MemoryContextSwitchTo(caller);
}

/*
 * The same for an append, which holds the pair's lock.  A difference is noted
 * under the driver lock.  Returns false if that is taken, and the caller does
 * not wait.  A row that this transaction wrote is not remembered: the
 * transaction may still fail.
 */
bool
pj_made_by_append(const PjPair *pair, bool wait)
{
	PjProjection *projection = pair->projection;
	Compared   *entry = find_compared(projection->id);
	const bytea *hash = pj_definition_peek(projection);
	PjPair		stored;

	if (is_compared(entry, projection, pair->tenant))
		return true;
	pj_pair_look(&stored, projection, pair->tenant);
	if (!is_other(&stored, hash))
	{
		if (!stored.unsaved)
			remember(entry, projection, pair->tenant);
		return true;
	}
	if (!pj_lock_driver(projection->id, pair->tenant, wait))
		return false;
	pj_pair_look(&stored, projection, pair->tenant);
	pj_made_by_note(&stored);
	return true;
}
