/*
 * published.c
 *	  Up to where the log of each database is settled, as its readers say.
 *
 * A reader publishes the last position that was given out before it looks who
 * is writing: when those have ended the log is settled up to it, and the reader
 * never looks there again.  intake.c refuses events at such positions.
 *
 * Once they have ended the reader confirms the position, so that others need not
 * find that out again.
 */
#include "base/compat.h"

#include "miscadmin.h"

#include "ipc/shared.h"

/* The entry of this database. */
static PublishedTail *
find_tail(Oid relid)
{
	static int	last = 0;		/* where it was the last time */

	Assert(!SpinLockFree(&pj_area->tails_lock));
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

	Assert(!SpinLockFree(&pj_area->tails_lock));
	if (pj_area->ntails < MAX_TAILS)
		tail = &pj_area->tails[pj_area->ntails++];
	else
		tail = &pj_area->tails[MyDatabaseId % MAX_TAILS];
	tail->dboid = MyDatabaseId;
	tail->relid = relid;
	tail->settled = tail->confirmed = 0;
	return tail;
}

/* Readers will take the log, kept in a table, as settled up to here. */
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

/* Up to where readers have said so. */
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

/*
 * The log is settled up to here: a snapshot that anybody takes from now on sees
 * all that is there.
 */
void
pj_confirm_tail(Oid relid, int64 settled)
{
	PublishedTail *tail;

	pj_shmem_attach();
	if (pj_area == NULL)
		return;
	SpinLockAcquire(&pj_area->tails_lock);
	tail = find_tail(relid);
	if (tail)
		tail->confirmed = Max(tail->confirmed, settled);
	SpinLockRelease(&pj_area->tails_lock);
}

/* Up to where somebody has confirmed it. */
int64
pj_confirmed_tail(Oid relid)
{
	PublishedTail *tail;
	int64		confirmed;

	pj_shmem_attach();
	if (pj_area == NULL)
		return 0;
	SpinLockAcquire(&pj_area->tails_lock);
	tail = find_tail(relid);
	confirmed = tail ? tail->confirmed : 0;
	SpinLockRelease(&pj_area->tails_lock);
	return confirmed;
}
