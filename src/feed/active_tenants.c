/*
 * active_tenants.c
 *	  Which tenants may have events that have not been read from the log.
 *
 * There may be many tenants, of which few have had events lately.  An append
 * leaves a hint, the name of its tenant (ipc/hints.c).  A worker takes the
 * hints and remembers each tenant until its cursors have passed what the hint
 * stands for: every position drawn by the time the hint was read, because the
 * tenant's new events are among those.
 *
 * If hints were lost, if the worker is new, or if the registry has changed,
 * any tenant may have unread events.  Then the worker scans the tenants of the
 * log, a slice with each look, so that other work goes on meanwhile.  It also
 * does so every now and then without a reason, at leisure.
 */
#include "base/compat.h"

#include "common/hashfn.h"
#include "lib/ilist.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "feed/active_tenants.h"
#include "ipc/shmem.h"
#include "registry/projection.h"

/* So many tenants are looked at in one slice of a scan. */
#define SLICE_TENANTS		256

/* A scan without a reason begins so often, and may take this share of time. */
#define SCAN_MS				10000
#define SCAN_SHARE			0.01

/* Up to which position something must be done for a tenant. */
typedef struct Task
{
	dlist_node	node;			/* in the list of active tasks */
	bool		active;
	int64		upto;
} Task;

typedef struct Tenant
{
	text	   *name;			/* hash key */
	Task		read;			/* there may be unread events */
	Task		follow;			/* cursors have not followed */
	bool		unread;			/* there were some at the last look */
	int64		checked;		/* if not: the log's tail at that look */
} Tenant;

static HTAB *tenants = NULL;
static MemoryContext context = NULL;	/* for the tenants' names */
static dlist_head to_read;
static dlist_head to_follow;
static int	nfollow = 0;		/* how many are in that list */
static int64 last_upto = 0;		/* the last position among those to read */
static uint64 registry = 0;		/* its generation at the last look */

/* The scan of all tenants. */
static struct
{
	bool		going;
	bool		urgent;			/* something may have been missed */
	bool		again;			/* and again since it began */
	text	   *after;			/* the last tenant seen, or NULL */
	TimestampTz next;			/* when to go on if it is not urgent */
} scan;

/* ---- the tenants ---- */

static uint32
hash_name(const void *key, Size keysize)
{
	const text *name = *(text *const *) key;

	return hash_bytes((const unsigned char *) VARDATA_ANY(name),
					  VARSIZE_ANY_EXHDR(name));
}

/* As memcmp(): 0 if they are equal. */
static int
match_names(const void *a, const void *b, Size keysize)
{
	return pj_text_equal(PointerGetDatum(*(text *const *) a),
						 PointerGetDatum(*(text *const *) b)) ? 0 : 1;
}

static void
init_tenants(void)
{
	HASHCTL		ctl = {.keysize = sizeof(text *),.entrysize = sizeof(Tenant),
	.hash = hash_name,.match = match_names};

	context = AllocSetContextCreate(TopMemoryContext, "projector tenants",
									ALLOCSET_DEFAULT_SIZES);
	ctl.hcxt = context;
	dlist_init(&to_read);
	dlist_init(&to_follow);
	tenants = hash_create("projector tenants", 64, &ctl,
						  HASH_ELEM | HASH_FUNCTION | HASH_COMPARE |
						  HASH_CONTEXT);
}

static text *
copy_name(Datum name)
{
	MemoryContext caller = MemoryContextSwitchTo(context);
	text	   *copy = DatumGetTextPCopy(name);

	MemoryContextSwitchTo(caller);
	return copy;
}

static Tenant *
find_tenant(Datum name)
{
	text	   *key = DatumGetTextPP(name);
	Tenant	   *tenant = hash_search(tenants, &key, HASH_FIND, NULL);

	if (tenant == NULL)
	{
		key = copy_name(name);
		tenant = hash_search(tenants, &key, HASH_ENTER, NULL);
		memset((char *) tenant + sizeof(text *), 0,
			   sizeof(Tenant) - sizeof(text *));
	}
	return tenant;
}

/* Forget a tenant that nothing is to be done for. */
static void
release_tenant(Tenant *tenant)
{
	text	   *name = tenant->name;

	if (tenant->read.active || tenant->follow.active)
		return;
	hash_search(tenants, &name, HASH_REMOVE, NULL);
	pfree(name);
}

static void
set_read(Tenant *tenant, int64 upto)
{
	Task	   *task = &tenant->read;

	if (!task->active)
	{
		dlist_push_tail(&to_read, &task->node);
		tenant->unread = false;
	}
	task->active = true;
	tenant->checked = -1;
	task->upto = Max(task->upto, upto);
	last_upto = Max(last_upto, upto);
}

static void
set_follow(Tenant *tenant, int64 upto)
{
	Task	   *task = &tenant->follow;

	if (!task->active)
	{
		dlist_push_tail(&to_follow, &task->node);
		nfollow++;
	}
	task->active = true;
	task->upto = Max(task->upto, upto);
}

static void
end_task(Task *task)
{
	if (task->active)
		dlist_delete(&task->node);
	task->active = false;
	task->upto = 0;
}

/* A tenant may have new events.  One worker of the database moves cursors. */
static void
set_tasks(Datum name, int64 upto, bool follows)
{
	Tenant	   *tenant = find_tenant(name);

	set_read(tenant, upto);
	if (follows)
		set_follow(tenant, upto);
}

/* ---- the scan ---- */

/* Any tenant may have events that we do not know of. */
void
pj_active_scan(void)
{
	if (scan.going && scan.urgent)
	{
		scan.again = true;		/* it must get to the end */
		return;
	}
	scan.going = scan.urgent = true;
	if (scan.after)
		pfree(scan.after);
	scan.after = NULL;
}

static void
end_scan(void)
{
	scan.going = scan.urgent = scan.again;
	scan.again = false;
	scan.next = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), SCAN_MS);
}

/* Look at the next tenants. */
static void
scan_slice(bool follows)
{
	TimestampTz start = GetCurrentTimestamp();
	TimestampTz end;
	text	   *after = scan.after;
	PjTenants	slice;

	pj_source_tenants_after(PointerGetDatum(after), SLICE_TENANTS, &slice);
	for (int i = 0; i < slice.count; i++)
		set_tasks(slice.tenants[i], slice.last[i], follows);
	scan.after = slice.count < SLICE_TENANTS ? NULL :
		copy_name(slice.tenants[slice.count - 1]);
	if (after)
		pfree(after);
	end = GetCurrentTimestamp();
	scan.next = end + (int64) ((end - start) / SCAN_SHARE);
	if (scan.after == NULL)
		end_scan();
}

/* ---- looking ---- */

static void
take_hints(bool follows)
{
	static char hints[PJ_HINT_BYTES];
	int			length = pj_hints_take(hints);
	int64		last = length > 0 ? pj_source_last_log_seq() : 0;
	int			place = 0;

	if (length < 0)
		pj_active_scan();
	while (place < length)
	{
		const char *name;
		int			n;

		place += pj_hint_get(hints + place, &name, &n);
		set_tasks(PointerGetDatum(cstring_to_text_with_len(name, n)), last,
				  follows);
	}
}

/*
 * Find out which tenants have new events.  Returns whether there are more to
 * find, so that the caller should look again soon.
 */
bool
pj_active_refresh(void)
{
	bool		follows = !pj_slot_surplus(1);
	PjProjection *projections;
	uint64		generation;

	if (tenants == NULL)
		init_tenants();
	(void) pj_projections(&projections);
	generation = pj_projections_generation();
	if (registry != generation)
		pj_active_scan();
	registry = 0;				/* after an error, hints are lost */
	take_hints(follows);
	if (!scan.going && GetCurrentTimestamp() >= scan.next)
		scan.going = true;
	if (scan.going && (scan.urgent || GetCurrentTimestamp() >= scan.next))
		scan_slice(follows);
	registry = generation;
	return scan.urgent;
}

/* ---- reading ---- */

static void
add_tenant(PjTenants *all, int *room, const Tenant *tenant, int64 upto)
{
	if (all->count == *room)
	{
		*room *= 2;
		all->tenants = repalloc(all->tenants, sizeof(Datum) * *room);
		all->last = repalloc(all->last, sizeof(int64) * *room);
	}
	all->tenants[all->count] = PointerGetDatum(tenant->name);
	all->last[all->count++] = upto;
}

static void
begin_list(PjTenants *all, int *room)
{
	*room = 16;
	all->count = 0;
	all->tenants = palloc(sizeof(Datum) * *room);
	all->last = palloc(sizeof(int64) * *room);
}

/*
 * The tenants that may have unread events before the tail, and up to where.
 * One that had none when the tail was there already has none now.  Returns
 * whether some have events, or may have, after the tail.
 */
bool
pj_active_unread(PjTenants *all, int64 tail)
{
	int			room;
	dlist_iter	iter;

	begin_list(all, &room);
	dlist_foreach(iter, &to_read)
	{
		Tenant	   *tenant = dlist_container(Tenant, read.node, iter.cur);

		if (tenant->unread || tail > tenant->checked)
			add_tenant(all, &room, tenant, tenant->read.upto);
	}
	return last_upto > tail;
}

/* That is what was found of them: forget those who have nothing to read. */
void
pj_active_checked(const PjTenants *all, int64 tail)
{
	for (int i = 0; i < all->count; i++)
	{
		Tenant	   *tenant = find_tenant(all->tenants[i]);

		tenant->unread = all->unread[i];
		tenant->checked = tail;
		if (!tenant->unread && tenant->read.upto <= tail)
		{
			end_task(&tenant->read);
			release_tenant(tenant);
		}
	}
}

/* No projection reads the log. */
void
pj_active_none_reads(void)
{
	dlist_mutable_iter iter;

	dlist_foreach_modify(iter, &to_read)
	{
		Tenant	   *tenant = dlist_container(Tenant, read.node, iter.cur);

		end_task(&tenant->read);
		release_tenant(tenant);
	}
	last_upto = 0;
}

/* There may be unread events of a tenant up to log_seq. */
void
pj_active_add(Datum tenant, int64 log_seq)
{
	Tenant	   *found = find_tenant(tenant);

	set_read(found, log_seq);
	found->unread = true;
}

/* ---- following ---- */

/*
 * Some tenants whose cursors have not followed their events.  Returns how many
 * there are in all.
 */
int
pj_active_unfollowed(PjTenants *all, int limit)
{
	int			room;
	dlist_iter	iter;

	begin_list(all, &room);
	dlist_foreach(iter, &to_follow)
	{
		Tenant	   *tenant = dlist_container(Tenant, follow.node, iter.cur);

		if (all->count == limit)
			break;
		add_tenant(all, &room, tenant, tenant->follow.upto);
	}
	return nfollow;
}

/* They have followed up to the tail.  Those with more to come go to the end. */
void
pj_active_followed(const PjTenants *all, int64 tail)
{
	for (int i = 0; i < all->count; i++)
	{
		Tenant	   *tenant = find_tenant(all->tenants[i]);
		int64		upto = tenant->follow.upto;

		if (!tenant->follow.active)
			continue;
		end_task(&tenant->follow);
		nfollow--;
		if (upto > tail)
			set_follow(tenant, upto);
		else
			release_tenant(tenant);
	}
}
