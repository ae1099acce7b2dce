/*
 * published.c
 *	  Up to where the log of each database is settled, as its readers say.
 *
 * A reader that has found the log settled up to a position publishes that
 * before it relies on it.  From then on nobody may add an event at or below it:
 * the reader would never look there again.  The sequence does not give out such
 * numbers, unless somebody has set it back or has let sessions keep numbers in
 * store (CACHE); see capture.c, which refuses them.
 */
#include "compat.h"

#include "miscadmin.h"

#include "shared.h"

/* The entry of this database.  The caller has the lock. */
static PublishedTail *
find_tail(Oid relid)
{
	static int	last = 0;		/* where it was the last time */

	for (int n = 0; n < pj_area->ntails; n++)
	{
		int			i = (last + n) % pj_area->ntails;

		if (pj_area->tails[i].dboid != MyDatabaseId ||
			pj_area->tails[i].relid != relid)
			continue;
		last = i;
		return &pj_area->tails[i];
	}
	return NULL;
}

/*
 * Make an entry.  If there is no room another one is given up, whose database
 * is protected again as soon as it is read.
 */
static PublishedTail *
new_tail(Oid relid)
{
	PublishedTail *tail;

	if (pj_area->ntails < MAX_TAILS)
		tail = &pj_area->tails[pj_area->ntails++];
	else
		tail = &pj_area->tails[MyDatabaseId % MAX_TAILS];
	tail->dboid = MyDatabaseId;
	tail->relid = relid;
	tail->settled = 0;
	return tail;
}

/* The log, kept in a table, is settled up to this position. */
void
pj_publish_tail(Oid relid, int64 settled)
{
	PublishedTail *tail;

	pj_shmem_attach();
	if (pj_area == NULL)
		return;
	SpinLockAcquire(&pj_area->tails_lock);
	tail = find_tail(relid);
	if (tail == NULL)
		tail = new_tail(relid);
	tail->settled = Max(tail->settled, settled);
	SpinLockRelease(&pj_area->tails_lock);
}

/* Up to where, for all that readers have published, is it settled? */
int64
pj_published_tail(Oid relid)
{
	PublishedTail *tail;
	int64		settled;

	pj_shmem_attach();
	if (pj_area == NULL)
		return 0;
	SpinLockAcquire(&pj_area->tails_lock);
	tail = find_tail(relid);
	settled = tail ? tail->settled : 0;
	SpinLockRelease(&pj_area->tails_lock);
	return settled;
}
