/*
 * hints.c
 *	  Hints to workers: which tenants have new events.
 *
 * Each worker slot has a ring of tenants' names.  A transaction that has
 * appended events adds the names of their tenants to the rings of all workers
 * of its database, once its events are visible.  Each worker reads its own.
 *
 * A hint saves a look at all tenants, no more than that.  If there is no room
 * for one, or too many to tell, the ring says that some are lost, and its
 * worker looks at all tenants (feed/active_tenants.c).
 */
#include "base/compat.h"

#include "ipc/shared.h"

/* Add the names, or note that some are missing.  The spinlock is held. */
static void
write_ring(HintRing *ring, const char *names, int length)
{
	uint64		place = ring->written % HINT_BYTES;
	int			first = Min(length, HINT_BYTES - place);

	if (length < 0 || ring->written - ring->read + length > HINT_BYTES)
	{
		ring->lost = true;
		return;
	}
	memcpy(ring->bytes + place, names, first);
	memcpy(ring->bytes, names + first, length - first);
	ring->written += length;
}

/*
 * Tell the workers of a database which tenants have new events.  The names
 * come one after the other, each behind its length, as pj_hint_put() writes
 * them; a length of -1 stands for more than can be told.
 *
 * The transaction has ended, so nothing here may fail: the caller has called
 * pj_shmem_attach() before it did.
 */
void
pj_hints_add(Oid dboid, const char *names, int length)
{
	pj_lock_shared(LW_SHARED);
	for (int i = 0; i < pj_nslots; i++)
	{
		WorkerSlot *slot = &pj_area->slots[i];

		if (!slot->in_use || slot->dboid != dboid)
			continue;
		SpinLockAcquire(&slot->hints.lock);
		write_ring(&slot->hints, names, length);
		SpinLockRelease(&slot->hints.lock);
	}
	pj_unlock_shared();
}

/* Start with an empty ring.  Its worker has yet to look at all tenants. */
void
pj_hints_reset(HintRing *ring)
{
	SpinLockAcquire(&ring->lock);
	ring->read = ring->written = 0;
	ring->lost = true;
	SpinLockRelease(&ring->lock);
}

/*
 * Take all hints to this worker into a buffer of PJ_HINT_BYTES.  Returns how
 * many bytes there are, or -1 if some hints are lost.
 */
int
pj_hints_take(char *names)
{
	HintRing   *ring = &pj_area->slots[pj_slot_mine()].hints;
	int			length;
	bool		lost;

	SpinLockAcquire(&ring->lock);
	length = ring->written - ring->read;
	for (int done = 0; done < length;)
	{
		int			place = (ring->read + done) % HINT_BYTES;
		int			part = Min(length - done, HINT_BYTES - place);

		memcpy(names + done, ring->bytes + place, part);
		done += part;
	}
	ring->read = ring->written;
	lost = ring->lost;
	ring->lost = false;
	SpinLockRelease(&ring->lock);
	return lost ? -1 : length;
}

/*
 * Append one name to a buffer that has "room" bytes left.  Returns how many
 * bytes that took, or -1 if it does not fit.
 */
int
pj_hint_put(char *buffer, int room, const char *name, int length)
{
	uint16		prefix = length;

	if (length > PG_UINT16_MAX || length + (int) sizeof(prefix) > room)
		return -1;
	memcpy(buffer, &prefix, sizeof(prefix));
	memcpy(buffer + sizeof(prefix), name, length);
	return length + sizeof(prefix);
}

/* Read one name.  Returns how many bytes it takes in the buffer. */
int
pj_hint_get(const char *buffer, const char **name, int *length)
{
	uint16		prefix;

	memcpy(&prefix, buffer, sizeof(prefix));
	*name = buffer + sizeof(prefix);
	*length = prefix;
	return prefix + sizeof(prefix);
}
