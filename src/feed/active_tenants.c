/*
 * active_tenants.c
 *	  Which tenants may have events that have not been read from the log.
 *
 * There may be many tenants, few of which had events recently.  An append
 * leaves a hint in shared memory (shmem.c) once its events are visible: a hash
 * of the tenant.  A worker collects the hints.  It remembers each tenant until
 * its cursors have passed every position drawn up to the time the hint was
 * read.  The tenant's new events must be among those.
 *
 * Hints can be lost, if there were too many, or because the worker has just
 * started.  If that happens, if a hash is unknown, or if the registry has
 * changed, all tenants in the log are checked.  This is also done
 * periodically.
 */
#include "base/compat.h"

#include "lib/ilist.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "feed/active_tenants.h"
#include "ipc/shmem.h"
#include "ipc/wakeup.h"
#include "registry/projection.h"

/*
 * All tenants are checked this often, but not for more than this share of the
 * time.
 */
#define FULL_LOOK_MS		10000
#define FULL_LOOK_SHARE		0.01

/* Up to which position something must be done for a tenant. */
typedef struct Task
{
	dlist_node	node;			/* in the list of active tasks */
	bool		active;
	Datum		tenant;
	int64		upto;
} Task;

typedef struct Tenant
{
	uint64		hash;			/* hash key */
	Task		read;			/* there may be unread events */
	Task		follow;			/* its cursors may have to follow */
} Tenant;

static HTAB *tenants = NULL;
static MemoryContext context = NULL;	/* for the tenants' names */
static dlist_head to_read;
static dlist_head to_follow;
static bool ambiguous = false;	/* two tenants have the same hash */
static uint64 next_hint = 0;
static uint64 registry = 0;		/* generation when all were checked */
static TimestampTz next_full_look = 0;

static void
init_tenants(void)
{
	HASHCTL		ctl = {.keysize = sizeof(uint64),.entrysize = sizeof(Tenant)};

	if (context == NULL)
		context = AllocSetContextCreate(TopMemoryContext, "projector tenants",
										ALLOCSET_DEFAULT_SIZES);
	if (tenants != NULL)
		hash_destroy(tenants);
	tenants = NULL;				/* stays so after an error */
	MemoryContextReset(context);
	ctl.hcxt = context;
	tenants = hash_create("projector tenants", 64, &ctl,
						  HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	dlist_init(&to_read);
	dlist_init(&to_follow);
	ambiguous = false;
}

static void
set_task(Task *task, dlist_head *list, int64 upto)
{
	task->upto = Max(task->upto, upto);
	if (!task->active)
		dlist_push_tail(list, &task->node);
	task->active = true;
}

static void
end_task(Task *task)
{
	if (task->active)
		dlist_delete(&task->node);
	task->active = false;
	task->upto = 0;
}

static void
set_tasks(Tenant *tenant, int64 upto)
{
	set_task(&tenant->read, &to_read, upto);
	set_task(&tenant->follow, &to_follow, upto);
}

static Tenant *
find_tenant(Datum name)
{
	uint64		hash = pj_tenant_hash(name);
	bool		found;
	Tenant	   *tenant = hash_search(tenants, &hash, HASH_ENTER, &found);

	if (!found)
	{
		MemoryContext caller = MemoryContextSwitchTo(context);

		memset(&tenant->read, 0, sizeof(Task));
		memset(&tenant->follow, 0, sizeof(Task));
		tenant->read.tenant = tenant->follow.tenant =
			PointerGetDatum(DatumGetTextPCopy(name));
		MemoryContextSwitchTo(caller);
	}
	else if (!pj_text_equal(tenant->read.tenant, name))
		ambiguous = true;
	return tenant;
}

/* Check all tenants in the log. */
static void
look_at_all(void)
{
	TimestampTz start = GetCurrentTimestamp();
	TimestampTz end;
	PjTenants	all;

	init_tenants();
	pj_source_tenants(&all);
	for (int i = 0; i < all.count; i++)
		set_tasks(find_tenant(all.tenants[i]), all.last[i]);
	end = GetCurrentTimestamp();
	next_full_look = TimestampTzPlusMilliseconds(end, FULL_LOOK_MS) +
		(int64) ((end - start) / FULL_LOOK_SHARE);
}

/* Process hints.  Returns false if all tenants must be checked instead. */
static bool
follow_hints(const uint64 *hints, int n)
{
	int64		last = n > 0 ? pj_source_last_log_seq() : 0;

	for (int i = 0; i < n; i++)
	{
		Tenant	   *tenant = hash_search(tenants, &hints[i], HASH_FIND, NULL);

		if (tenant == NULL)
			return false;
		set_tasks(tenant, last);
	}
	return true;
}

/* Find out which tenants have new events. */
void
pj_active_refresh(void)
{
	uint64		hints[PJ_MAX_HINTS];
	PjProjection *projections;
	int			n = pj_hints_read(&next_hint, hints);
	uint64		before = registry;
	uint64		generation;

	registry = 0;				/* if an error occurs now, hints are lost */
	(void) pj_projections(&projections);
	generation = pj_projections_generation();
	if (tenants == NULL || ambiguous || n < 0 || before != generation ||
		GetCurrentTimestamp() >= next_full_look || !follow_hints(hints, n))
		look_at_all();
	registry = generation;
}

static void
list_tasks(dlist_head *list, PjTenants *all)
{
	int			room = 16;
	dlist_iter	iter;

	all->count = 0;
	all->tenants = palloc(sizeof(Datum) * room);
	all->last = palloc(sizeof(int64) * room);
	dlist_foreach(iter, list)
	{
		Task	   *task = dlist_container(Task, node, iter.cur);

		if (all->count == room)
		{
			room *= 2;
			all->tenants = repalloc(all->tenants, sizeof(Datum) * room);
			all->last = repalloc(all->last, sizeof(int64) * room);
		}
		all->tenants[all->count] = task->tenant;
		all->last[all->count++] = task->upto;
	}
}

/*
 * Returns the tenants that may have unread events, and up to which position.
 */
void
pj_active_unread(PjTenants *all)
{
	list_tasks(&to_read, all);
}

/* Forget the tenants that had no unread events up to the tail. */
void
pj_active_forget_read(const PjTenants *all, int64 tail)
{
	for (int i = 0; i < all->count; i++)
		if (!all->unread[i] && all->last[i] <= tail)
			end_task(&find_tenant(all->tenants[i])->read);
}

/* There may be unread events of a tenant up to log_seq. */
void
pj_active_add(Datum tenant, int64 log_seq)
{
	set_task(&find_tenant(tenant)->read, &to_read, log_seq);
}

/* Returns the tenants whose cursors have not followed their events. */
void
pj_active_unfollowed(PjTenants *all)
{
	list_tasks(&to_follow, all);
}

/* All cursors have followed up to the tail. */
void
pj_active_followed(int64 tail)
{
	dlist_mutable_iter iter;

	dlist_foreach_modify(iter, &to_follow)
	{
		Task	   *task = dlist_container(Task, node, iter.cur);

		if (task->upto <= tail)
			end_task(task);
	}
}
