/*
 * shmem.c
 *	  Shared memory: making it and finding it.
 *
 * shared.h has the structures.  Each process attaches or creates them when it
 * first needs them.  That may fail.  So code that needs shared memory after
 * its transaction has ended, when nothing may fail any more, calls
 * pj_shmem_attach() before.  If that could not get the area, it is not tried
 * again until the next transaction: an error after the commit would crash the
 * server.
 *
 * While the lock is held nothing is started, and no other lock is taken but
 * the spinlocks of a slot.
 */
#include "base/compat.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/shmem.h"

#include "ipc/shared.h"

SharedControl *pj_control = NULL;
SharedArea *pj_area = NULL;
int			pj_nslots = 0;
OperationEntry *pj_operation_entries = NULL;

static bool preloaded = false;

/* One slot for each worker process that the server can have. */
static Size
slots_end(void)
{
	return MAXALIGN(add_size(offsetof(SharedArea, slots),
							 mul_size(sizeof(WorkerSlot),
									  max_worker_processes)));
}

static Size
area_size(void)
{
	return add_size(slots_end(),
					mul_size(sizeof(OperationEntry), pj_max_backends()));
}

static OperationEntry *
entries_of(SharedArea *area)
{
	return (OperationEntry *) ((char *) area + slots_end());
}

static void
init_area(SharedArea *area)
{
	memset(area, 0, area_size());
	SpinLockInit(&area->tails_lock);
	for (int i = 0; i < MAX_LATENCIES; i++)
	{
		for (int j = 0; j < PJ_LATENCY_BUCKETS; j++)
			pg_atomic_init_u64(&area->latencies[i].counts[j], 0);
		pg_atomic_init_u64(&area->latencies[i].seconds, 0);
	}
	for (int i = 0; i < max_worker_processes; i++)
	{
		pg_atomic_init_u32(&area->slots[i].wakeups, 0);
		SpinLockInit(&area->slots[i].doing.lock);
		SpinLockInit(&area->slots[i].hints.lock);
	}
	for (int i = 0; i < MaxBackends; i++)
		SpinLockInit(&entries_of(area)[i].lock);
}

static void
init_control(SharedControl *control)
{
	memset(control, 0, sizeof(SharedControl));
	LWLockInitialize(&control->lock, LWLockNewTrancheId());
	control->handle = DSM_HANDLE_INVALID;
}

/*
 * Map the area in dynamic shared memory, or create it.  If there is not enough
 * memory, nothing is stored, and the next process that needs it tries again.
 */
static SharedArea *
map_area(void)
{
	dsm_segment *segment;
	bool		found = pj_control->handle != DSM_HANDLE_INVALID;

	if (found)
		segment = dsm_attach(pj_control->handle);
	else
		segment = dsm_create(area_size(), DSM_CREATE_NULL_IF_MAXSEGMENTS);
	if (segment == NULL)
		return NULL;
	dsm_pin_mapping(segment);
	if (!found)
	{
		init_area(dsm_segment_address(segment));
		dsm_pin_segment(segment);
		pj_control->handle = dsm_segment_handle(segment);
	}
	return dsm_segment_address(segment);
}

/* Attach the shared state, or create it if this is the first process. */
void
pj_shmem_attach(void)
{
	Size		size = MAXALIGN(sizeof(SharedControl));
	SharedControl *control;
	bool		found;

	if (pj_area != NULL)
		return;
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	control = ShmemInitStruct("projector", preloaded ?
							  add_size(size, area_size()) : size, &found);
	if (!found)
		init_control(control);
	if (!found && preloaded)
		init_area((SharedArea *) ((char *) control + size));
	if (pj_control == NULL)
		LWLockRegisterTranche(control->lock.tranche, "projector");
	pj_control = control;
	pj_area = preloaded ? (SharedArea *) ((char *) control + size) :
		map_area();
	pj_nslots = pj_area ? max_worker_processes : 0;
	pj_operation_entries = pj_area ? entries_of(pj_area) : NULL;
	LWLockRelease(AddinShmemInitLock);
}

/* While a transaction ends, use only what was attached before. */
void
pj_lock_shared(LWLockMode mode)
{
	if (pj_control == NULL || (pj_area == NULL && IsTransactionState()))
		pj_shmem_attach();
	LWLockAcquire(&pj_control->lock, mode);
}

void
pj_unlock_shared(void)
{
	LWLockRelease(&pj_control->lock);
}

/* ---- loading the library ---- */

/* Was the library preloaded when the server started? */
bool
pj_preloaded(void)
{
	return preloaded;
}

static void
reserve(void)
{
	RequestAddinShmemSpace(add_size(MAXALIGN(sizeof(SharedControl)),
									area_size()));
}

void
pj_shmem_init(void)
{
	StaticAssertStmt(sizeof(SharedControl) < 4096,
					 "the control structure must fit where nothing was reserved");

	preloaded = process_shared_preload_libraries_in_progress;
	if (preloaded)
		pj_when_reserving(reserve);
}
