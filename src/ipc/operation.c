/*
 * operation.c
 *	  Long operations that sessions execute, and how far they are.
 *
 * Such an operation is one transaction, so other sessions cannot see in the
 * tables how far it is.  Each session has an entry in shared memory for that.
 * Only the session writes it, once per batch, under the entry's spinlock.
 *
 * Invariant: an entry is in use only while its operation runs.  The operation
 * ends it when it returns.  If an error ends the operation, the transaction or
 * subtransaction that it began in is rolled back, and that ends the entry.
 * Subtransactions within the operation do not.
 *
 * A session has one operation at a time: a projection's code may not call the
 * functions that begin one.
 */
#include "base/compat.h"

#include "access/xact.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/timestamp.h"

#include "ipc/operation.h"
#include "ipc/shared.h"

static OperationEntry *mine = NULL; /* NULL if there is no operation */
static int	my_level;			/* of the transaction it began in */

/* ---- this session's operation ---- */

/*
 * Begin an operation.  Without shared memory it is not shown, and the functions
 * below do nothing.
 */
void
pj_operation_begin(PjOperation operation, int32 projection_id)
{
	TimestampTz now = GetCurrentTimestamp();

	pj_shmem_attach();
	if (pj_operation_entries == NULL)
		return;
	mine = &pj_operation_entries[pj_backend_index()];
	my_level = GetCurrentTransactionNestLevel();
	SpinLockAcquire(&mine->lock);
	mine->pid = MyProcPid;
	mine->dboid = MyDatabaseId;
	mine->operation = operation;
	mine->phase = PJ_PHASE_PREPARING;
	mine->projection_id = projection_id;
	mine->events_done = mine->tenants_done = 0;
	mine->events_total = mine->tenants_total = -1;
	mine->started_at = now;
	mine->tenant_length = -1;
	SpinLockRelease(&mine->lock);
}

/* How much there is to do, as far as is known: -1 stands for unknown. */
void
pj_operation_total(int64 events, int64 tenants)
{
	if (mine == NULL)
		return;
	SpinLockAcquire(&mine->lock);
	mine->events_total = events;
	mine->tenants_total = tenants;
	SpinLockRelease(&mine->lock);
}

/* The operation goes on with this pair. */
void
pj_operation_pair(int32 projection_id, Datum tenant)
{
	text	   *name;
	int			length;

	if (mine == NULL)
		return;
	name = DatumGetTextPP(tenant);
	length = VARSIZE_ANY_EXHDR(name);
	if (length > MAX_SHOWN_TENANT)
		length = pg_mbcliplen(VARDATA_ANY(name), length, MAX_SHOWN_TENANT);
	SpinLockAcquire(&mine->lock);
	mine->projection_id = projection_id;
	mine->tenant_length = length;
	memcpy(mine->tenant, VARDATA_ANY(name), length);
	SpinLockRelease(&mine->lock);
}

/* So many tenants are done. */
void
pj_operation_tenants(int64 done)
{
	if (mine == NULL)
		return;
	SpinLockAcquire(&mine->lock);
	mine->tenants_done = done;
	SpinLockRelease(&mine->lock);
}

void
pj_operation_phase(PjPhase phase)
{
	if (mine == NULL)
		return;
	SpinLockAcquire(&mine->lock);
	mine->phase = phase;
	SpinLockRelease(&mine->lock);
}

/* So many more events are done. */
void
pj_operation_add(int64 events)
{
	if (mine == NULL)
		return;
	SpinLockAcquire(&mine->lock);
	mine->events_done += events;
	SpinLockRelease(&mine->lock);
}

void
pj_operation_end(void)
{
	if (mine == NULL)
		return;
	SpinLockAcquire(&mine->lock);
	mine->pid = 0;
	SpinLockRelease(&mine->lock);
	mine = NULL;
}

/* ---- all of them ---- */

/*
 * Read an entry.  Returns false if there is no operation of this database.
 * row->tenant has room for the name.
 */
static bool
read_entry(OperationEntry *entry, PjOperationRow *row)
{
	int			length;
	bool		found;

	SpinLockAcquire(&entry->lock);
	found = entry->pid != 0 && entry->dboid == MyDatabaseId;
	row->pid = entry->pid;
	row->operation = entry->operation;
	row->phase = entry->phase;
	row->projection_id = entry->projection_id;
	row->events_done = entry->events_done;
	row->events_total = entry->events_total;
	row->tenants_done = entry->tenants_done;
	row->tenants_total = entry->tenants_total;
	row->started_at = entry->started_at;
	length = entry->tenant_length;
	if (found && length > 0)
		memcpy(row->tenant, entry->tenant, length);
	SpinLockRelease(&entry->lock);
	if (found && length >= 0)
		row->tenant[length] = '\0';
	else if (found)
		row->tenant = NULL;
	return found;
}

/* List the operations of this database.  Returns how many there are. */
int
pj_operations(PjOperationRow **rows)
{
	char	   *tenant = palloc(MAX_SHOWN_TENANT + 1);
	int			n = 0;

	pj_shmem_attach();
	*rows = palloc(sizeof(PjOperationRow) * MaxBackends);
	for (int i = 0; pj_operation_entries && i < MaxBackends; i++)
	{
		PjOperationRow *row = &(*rows)[n];

		row->tenant = tenant;
		if (!read_entry(&pj_operation_entries[i], row))
			continue;
		if (row->tenant)
			row->tenant = pstrdup(tenant);
		n++;
	}
	return n;
}

/* ---- loading the library ---- */

static void
at_transaction_event(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_ABORT ||
		event == XACT_EVENT_PREPARE)
		pj_operation_end();
}

static void
at_subtransaction_event(SubXactEvent event, SubTransactionId mySubid,
						SubTransactionId parentSubid, void *arg)
{
	if (event == SUBXACT_EVENT_ABORT_SUB &&
		GetCurrentTransactionNestLevel() <= my_level)
		pj_operation_end();
}

void
pj_operation_init(void)
{
	RegisterXactCallback(at_transaction_event, NULL);
	RegisterSubXactCallback(at_subtransaction_event, NULL);
}
