/*
 * shared.h
 *	  What is in shared memory, for the files of this folder alone.
 *
 * The control structure is small enough to be allocated by whichever process
 * first needs it.  The rest depends on max_worker_processes, and follows it in
 * main shared memory if the library is preloaded; otherwise it is a segment of
 * dynamic shared memory that stays for as long as the server runs.
 */
#ifndef PJ_SHARED_H
#define PJ_SHARED_H

#include "base/compat.h"

#include "port/atomics.h"
#include "storage/dsm.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "storage/spin.h"
#include "utils/timestamp.h"

#include "ipc/shmem.h"

/* Databases the launcher is told of at a time; of more it is told "some". */
#define MAX_CHANGED		16

/* Databases in which workers are stopped, and that wait for one. */
#define MAX_STOPPED		1024
#define MAX_WAITING		256

/* Databases whose settled tail is known. */
#define MAX_TAILS		1024

/* Room for the name of a worker's tenant; longer ones are cut. */
#define MAX_TENANT		1024

/* What a worker does now.  It alone writes this, under the spinlock. */
typedef struct SlotActivity
{
	slock_t		lock;
	PjActivity	activity;
	int32		projection_id;	/* 0 if it works on none */
	TimestampTz since;
	int			tenant_length;
	char		tenant[MAX_TENANT];
} SlotActivity;

/*
 * One apply worker.  The control structure's lock protects every field but the
 * last two: shared to read, exclusive to change.
 */
typedef struct WorkerSlot
{
	bool		in_use;
	bool		serving;		/* it has found the extension */
	bool		absent;			/* it has not, or may not run, and is gone */
	uint32		generation;		/* bumped each time the slot is taken */
	Oid			dboid;			/* database it serves */
	PGPROC	   *proc;			/* NULL until the worker has attached */
	TimestampTz reserved_at;	/* one that never attaches is given up */
	pg_atomic_uint32 wakeups;	/* how often it was told of work, by anybody */
	SlotActivity doing;
} WorkerSlot;

/* A database that should have a worker, for which there is no room. */
typedef struct WaitingDatabase
{
	Oid			dboid;
	bool		urgent;			/* events wait there */
	TimestampTz since;
} WaitingDatabase;

/* Up to where the log of a database is settled, for all that anybody knows. */
typedef struct PublishedTail
{
	Oid			dboid;
	Oid			relid;			/* of the events table */
	int64		settled;		/* or will be, when those are gone who write */
	int64		confirmed;		/* those are gone */
} PublishedTail;

/* All under the control structure's lock, but the tails. */
typedef struct SharedArea
{
	int			nstopped;
	Oid			stopped[MAX_STOPPED];
	int			nwaiting;
	WaitingDatabase waiting[MAX_WAITING];

	/* under their own lock */
	slock_t		tails_lock;
	int			ntails;
	PublishedTail tails[MAX_TAILS];

	WorkerSlot	slots[FLEXIBLE_ARRAY_MEMBER];
} SharedArea;

typedef struct SharedControl
{
	LWLock		lock;
	PGPROC	   *launcher;		/* NULL unless it runs; under lock */
	bool		changed_more;	/* under lock, as are these two */
	int			nchanged;
	Oid			changed[MAX_CHANGED];	/* databases to look at again */

	/* Where the area is, if it does not follow; under AddinShmemInitLock. */
	dsm_handle	handle;

	/* A ring, and how many were ever put into it; under its own lock. */
	slock_t		hints_lock;
	uint64		nhints;
	uint64		hints[PJ_MAX_HINTS];	/* 0: too many to tell */
	Oid			hint_databases[PJ_MAX_HINTS];
} SharedControl;

extern SharedControl *pj_control;
extern SharedArea *pj_area;		/* NULL if there was no memory for it */
extern int	pj_nslots;			/* 0 if there is no area */

extern void pj_lock_shared(LWLockMode mode);
extern void pj_unlock_shared(void);

/* For functions that are called with the control structure's lock. */
#define pj_assert_shared_locked() \
	Assert(LWLockHeldByMe(&pj_control->lock))

/* slot.c and database.c: for callers that have the lock */
extern int	pj_slots_taken(Oid dboid, bool *serving);
extern bool pj_database_is_stopped(Oid dboid);
extern void pj_waiting_add(Oid dboid);
extern void pj_waiting_remove(Oid dboid);

#endif							/* PJ_SHARED_H */
