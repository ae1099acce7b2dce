/*
 * published.c
 *	  The settled position of the log of each database, as published by its
 *	  readers.
 *
 * A reader publishes the last position drawn, and then finds out which
 * transactions are writing.  Once those have ended, the log is settled up to
 * that position, and the reader never reads that part again.  intake.c refuses
 * new events at such positions.
 *
 * When they have ended, the reader confirms the position, so that other
 * processes need not find out again.
 */
#include "base/compat.h"

#include "miscadmin.h"

#include "ipc/shared.h"

/* Returns the entry of this database. */
static PublishedTail *
find_tail(Oid relid)
{
	static int	last = 0;		/* index of the last one found */

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
 * Create an entry.  If there is no room, another one is replaced; its database
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

/* Raise the positions of this database; 0 leaves one as it is. */
static void
raise_tail(Oid relid, int64 settled, int64 confirmed)
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
	tail->confirmed = Max(tail->confirmed, confirmed);
	SpinLockRelease(&pj_area->tails_lock);
}

/* Returns a copy of the positions of this database. */
static PublishedTail
read_tail(Oid relid)
{
	PublishedTail copy = {0};
	PublishedTail *tail;

	pj_shmem_attach();
	if (pj_area == NULL)
		return copy;
	SpinLockAcquire(&pj_area->tails_lock);
	tail = find_tail(relid);
	if (tail)
		copy = *tail;
	SpinLockRelease(&pj_area->tails_lock);
	return copy;
}

/*
 * Publish that readers will treat the log in table relid as settled up to
 * here.
 */
void
pj_publish_tail(Oid relid, int64 settled)
{
	raise_tail(relid, settled, 0);
}

/* Returns the published position. */
int64
pj_published_tail(Oid relid)
{
	return read_tail(relid).settled;
}

/*
 * The log is settled up to here: every snapshot taken from now on sees all
 * events up to this position.
 */
void
pj_confirm_tail(Oid relid, int64 settled)
{
	raise_tail(relid, 0, settled);
}

/* Returns the highest position that a reader has confirmed. */
int64
pj_confirmed_tail(Oid relid)
{
	return read_tail(relid).confirmed;
}
