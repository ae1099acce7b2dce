/*
 * shared.h
 *	  The structures in shared memory, only for the files of this folder.
 *
 * The control structure is small enough to be allocated by the first process
 * that needs it.  The size of the rest depends on max_worker_processes and
 * max_connections.  If the library is preloaded, it follows the control structure in main shared
 * memory.  Otherwise it is a segment of dynamic shared memory that exists as
 * long as the server runs.
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

#include "ipc/latency.h"
#include "ipc/operation.h"
#include "ipc/shmem.h"

/*
 * Number of databases in the launcher's list; if there are more, it checks
 * all.
 */
#define MAX_CHANGED		16

/* Number of databases in which workers are stopped, and that wait for one. */
#define MAX_STOPPED		1024
#define MAX_WAITING		256

/* Number of databases whose settled tail is stored. */
#define MAX_TAILS		1024

/* Number of databases whose latencies are counted. */
#define MAX_LATENCIES	256

/* Maximum length of a worker's tenant; longer names are truncated. */
#define MAX_TENANT		1024

/* The same, of a session's operation: there may be many sessions. */
#define MAX_SHOWN_TENANT	256

/* Room for hints to one worker. */
#define HINT_BYTES		PJ_HINT_BYTES

/* What a worker does now.  It alone writes this, under the spinlock. */
typedef struct SlotActivity
{
	slock_t		lock;
	PjActivity	activity;
	int32		projection_id;	/* 0 if it works on no pair */
	TimestampTz since;
	int			tenant_length;
	char		tenant[MAX_TENANT];
} SlotActivity;

/* Names of tenants that have new events, for one worker; see hints.c. */
typedef struct HintRing
{
	slock_t		lock;
	bool		lost;			/* some did not fit */
	uint64		written;		/* bytes, ever */
	uint64		read;
	char		bytes[HINT_BYTES];
} HintRing;

/*
 * One apply worker.  The control structure's lock protects every field but the
 * last three: shared to read, exclusive to change.
 */
typedef struct WorkerSlot
{
	bool		in_use;
	bool		serving;		/* it has found the extension */
	bool		absent;			/* it did not, or may not run, and has exited */
	uint32		generation;		/* incremented each time the slot is taken */
	Oid			dboid;			/* database it serves */
	PGPROC	   *proc;			/* NULL until the worker has attached */
	TimestampTz reserved_at;	/* if the worker never attaches, the slot is
								 * freed some time after this */
	pg_atomic_uint32 wakeups;	/* number of wake-ups by other sessions */
	SlotActivity doing;
	HintRing	hints;
} WorkerSlot;

/* A database that should have a worker, but for which no process is free. */
typedef struct WaitingDatabase
{
	Oid			dboid;
	bool		urgent;			/* events wait there */
	TimestampTz since;
} WaitingDatabase;

/* The published settled position of a database's log. */
typedef struct PublishedTail
{
	Oid			dboid;
	Oid			relid;			/* of the events table */
	int64		settled;		/* or will be, when the writers have ended */
	int64		confirmed;		/* the writers have ended */
} PublishedTail;

/* How long events of a database waited until they were applied; latency.c. */
typedef struct LatencyCounts
{
	Oid			dboid;
	pg_atomic_uint64 counts[PJ_LATENCY_BUCKETS];
	pg_atomic_uint64 seconds;	/* the bits of a double */
} LatencyCounts;

/* Protected by the control structure's lock, except for the tails. */
typedef struct SharedArea
{
	int			nstopped;
	Oid			stopped[MAX_STOPPED];
	int			nwaiting;
	WaitingDatabase waiting[MAX_WAITING];
	int			nlatencies;
	LatencyCounts latencies[MAX_LATENCIES];

	/* protected by their own lock */
	slock_t		tails_lock;
	int			ntails;
	PublishedTail tails[MAX_TAILS];

	WorkerSlot	slots[FLEXIBLE_ARRAY_MEMBER];

	/* followed by an OperationEntry for each backend */
} SharedArea;

/*
 * What a session does; see operation.c.  The session alone writes this, under
 * the spinlock.
 */
typedef struct OperationEntry
{
	slock_t		lock;
	int			pid;			/* 0 if the entry is not in use */
	Oid			dboid;
	PjOperation operation;
	PjPhase		phase;
	int32		projection_id;	/* 0 if it is of several */
	int64		events_done;
	int64		events_total;	/* -1 if unknown */
	int64		tenants_done;
	int64		tenants_total;	/* -1 if unknown */
	TimestampTz started_at;
	int			tenant_length;	/* -1 if it is of no tenant in particular */
	char		tenant[MAX_SHOWN_TENANT];
} OperationEntry;

typedef struct SharedControl
{
	LWLock		lock;
	PGPROC	   *launcher;		/* NULL unless it runs; under lock */
	bool		changed_more;	/* under lock, like the next two */
	int			nchanged;
	Oid			changed[MAX_CHANGED];	/* databases to check again */

	/*
	 * The area's DSM handle, if it is not in main shared memory; protected by
	 * AddinShmemInitLock.
	 */
	dsm_handle	handle;
} SharedControl;

extern SharedControl *pj_control;
extern SharedArea *pj_area;		/* NULL if there was not enough memory */
extern int	pj_nslots;			/* 0 if there is no area */
extern OperationEntry *pj_operation_entries;	/* in the area, or NULL */

extern void pj_lock_shared(LWLockMode mode);
extern void pj_unlock_shared(void);

/* For functions that require the control structure's lock. */
#define pj_assert_shared_locked() \
	Assert(LWLockHeldByMe(&pj_control->lock))

/* hints.c */
extern void pj_hints_reset(HintRing *ring);

/* slot.c and database.c: for callers that have the lock */
extern int	pj_slots_taken(Oid dboid, bool *serving);
extern bool pj_database_is_stopped(Oid dboid);
extern void pj_waiting_add(Oid dboid);
extern void pj_waiting_remove(Oid dboid);

#endif							/* PJ_SHARED_H */
