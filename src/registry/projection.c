/*
 * projection.c
 *	  The registry of projections, and the copy that each session caches.
 *
 * Every append must know which projections subscribe to its events.  So each
 * session reads the registry once and caches it until it changes.  A trigger
 * on the table sends a relation cache invalidation, and pending invalidations
 * are processed before each use of the copy.  The copy is read with the latest
 * snapshot: even a transaction with an old snapshot must apply or queue its
 * events according to the current definitions.
 *
 * A pointer into the copy stays valid until the end of the transaction.
 */
#include "base/compat.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/jsonb.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "base/fetch.h"
#include "base/lock.h"
#include "base/statement.h"
#include "base/trigger.h"
#include "base/version.h"
#include "ipc/waiters.h"
#include "registry/identity.h"
#include "registry/projection.h"
#include "registry/registry_row.h"
#include "registry/target_guard.h"
#include "sandbox/user_context.h"

PG_FUNCTION_INFO_V1(projector_projections_changed);

static PjTable projections_table = {"projections", "projections_pkey"};

const char *const pj_mode_names[] = {
	[PJ_OFF] = "off",
	[PJ_SHADOW] = "shadow",
	[PJ_ASYNC] = "async",
	[PJ_FOLLOW] = "follow",
	[PJ_INLINE] = "inline",
	[PJ_STRICT] = "strict",
	NULL
};

const char *const pj_kind_names[] = {
	[PJ_KIND_HANDLER] = "handler",
	[PJ_KIND_FOLD] = "fold",
	[PJ_KIND_FOLD_COLUMNS] = "fold_columns",
	[PJ_KIND_STATEMENT] = "statement",
	NULL
};

const char *const pj_ordering_names[] = {
	[PJ_ORDERING_AGGREGATE] = "aggregate",
	[PJ_ORDERING_LOG] = "log",
	NULL
};

static PjStatement note_overrides = {
	.sql = "UPDATE projector.projections SET overrides = EXISTS"
	" (SELECT FROM projector.projection_cursors c"
	" WHERE c.projection_id = $1 AND (c.mode IS NOT NULL"
	" OR c.paused_by IS NOT NULL OR c.run_id IS NOT NULL))"
	" OR EXISTS (SELECT FROM projector.projection_runs r"
	" WHERE r.projection_id = $1 AND r.state IN ('queued', 'running')),"
	" handover_log_seq = CASE WHEN $2 THEN NULL ELSE handover_log_seq END"
	" WHERE projection_id = $1",
	.expect = SPI_OK_UPDATE,
	.nargs = 2,
	.argtypes = {INT4OID, BOOLOID},
};

static struct
{
	bool		valid;
	bool		changed;		/* since loading began */
	bool		callback_registered;
	uint64		generation;		/* how often the registry was loaded */
	Oid			relid;			/* OID of table projections */
	MemoryContext context;		/* for everything below */
	PjProjection *projections;
	int			count;
} registry;

/* Relation cache callback: our table, or all tables, may have changed. */
static void
registry_changed(Datum arg, Oid relid)
{
	if (relid == InvalidOid || relid == registry.relid)
	{
		registry.valid = false;
		registry.changed = true;
	}
}

/* Trigger function: runs after any change to table projections. */
Datum
projector_projections_changed(PG_FUNCTION_ARGS)
{
	TriggerData *trigdata = pj_trigger_data(fcinfo, "projections_changed",
											&projections_table,
											PJ_AFTER_STATEMENT, PJ_ANY_EVENT);

	CacheInvalidateRelcache(trigdata->tg_relation);
	return PointerGetDatum(NULL);
}

/* Returns an identifier of this database that is unique across all servers. */
char *
pj_home(void)
{
	return psprintf(UINT64_FORMAT "/%u", GetSystemIdentifier(), MyDatabaseId);
}

PjMode
pj_mode(const char *name)
{
	return pj_choose(name, pj_mode_names, "mode");
}

PjOrdering
pj_ordering(const char *name)
{
	return pj_choose(name, pj_ordering_names, "ordering");
}

/*
 * Does an append in this mode apply or queue its events?  In the other modes
 * it only writes to the log.
 */
bool
pj_mode_queues(PjMode mode)
{
	return mode != PJ_OFF && mode != PJ_FOLLOW;
}

static void
load_registry(void)
{
	MemoryContext context,
				caller;
	Snapshot	snapshot;
	PjFetch		fetch;
	HeapTuple	tuple;
	PjProjection *projections;
	int			count = 0,
				room = 8;

	if (!registry.callback_registered)
	{
		CacheRegisterRelcacheCallback(registry_changed, (Datum) 0);
		registry.callback_registered = true;
	}

	registry.relid = pj_relid(&projections_table);
	registry.changed = false;

	context = AllocSetContextCreate(CurrentMemoryContext,
									"projector registry",
									ALLOCSET_SMALL_SIZES);
	caller = MemoryContextSwitchTo(context);
	projections = palloc(sizeof(PjProjection) * room);
	snapshot = RegisterSnapshot(GetLatestSnapshot());
	pj_fetch_begin(&fetch, &projections_table, snapshot, 0,
				   NULL);
	while ((tuple = pj_fetch_next(&fetch, ForwardScanDirection)) != NULL)
	{
		if (count == room)
			projections = repalloc(projections,
								   sizeof(PjProjection) * (room *= 2));
		pj_registry_read_row(tuple, RelationGetDescr(fetch.heap),
							 registry.relid, &projections[count++]);
	}
	pj_fetch_end(&fetch);
	UnregisterSnapshot(snapshot);
	MemoryContextSwitchTo(caller);

	/*
	 * Keep the old copy until the end of the transaction: a caller further up
	 * the stack may still use it.
	 */
	if (registry.context)
		MemoryContextSetParent(registry.context, TopTransactionContext);
	MemoryContextSetParent(context, CacheMemoryContext);
	registry.context = context;
	registry.projections = projections;
	registry.count = count;
	registry.generation++;

	/* If the table changed while we read it, the next call reads it again. */
	registry.valid = !registry.changed;
}

/*
 * Returns all projections, in order of creation.  Reading the table once is
 * enough.  The snapshot is taken after pending invalidations were processed,
 * so it sees every change announced before the call.  A change announced
 * during the read may be treated as if it came after the call.  (Repeating
 * until nothing is announced might never end: with debug_discard_caches each
 * catalog access invalidates everything.)
 */
int
pj_projections(PjProjection **projections)
{
	AcceptInvalidationMessages();
	pj_version_require_served();
	if (!registry.valid)
		load_registry();
	*projections = registry.projections;
	return registry.count;
}

/* Returns a number that changes whenever the registry may have changed. */
uint64
pj_projections_generation(void)
{
	return registry.generation;
}

/* Are all projections it depends on already in the list? */
static bool
is_ready(const PjProjection *projection, PjProjection *projections, int n,
		 const bool *done)
{
	for (int d = 0; projection->options.depends_on[d]; d++)
		for (int i = 0; i < n; i++)
			if (!done[i] && strcmp(projections[i].name,
								   projection->options.depends_on[d]) == 0)
				return false;
	return true;
}

/*
 * Projections depend on each other in a circle, which only a change of the
 * registry by hand can cause.  Returns the one to take first.
 */
static int
break_circle(const PjProjection *projections, const bool *done)
{
	int			first = 0;

	while (done[first])
		first++;
	ereport(WARNING,
			errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			errmsg("projection \"%s\" depends on itself",
				   projections[first].name),
			errhint("Correct its option \"depends_on\" with projector_alter."));
	return first;
}

/* Returns all projections, each after those it depends on. */
int
pj_projections_in_order(PjProjection ***ordered)
{
	PjProjection *projections;
	int			n = pj_projections(&projections);
	bool	   *done = palloc0(sizeof(bool) * Max(n, 1));
	int			count = 0;

	*ordered = palloc(sizeof(PjProjection *) * Max(n, 1));
	while (count < n)
	{
		int			before = count;

		for (int i = 0; i < n; i++)
		{
			if (done[i] || !is_ready(&projections[i], projections, n, done))
				continue;
			done[i] = true;
			(*ordered)[count++] = &projections[i];
		}
		if (count == before)
		{
			int			first = break_circle(projections, done);

			done[first] = true;
			(*ordered)[count++] = &projections[first];
		}
	}
	return count;
}

PjProjection *
pj_projection_by_id(int32 id)
{
	PjProjection *projections;
	int			count = pj_projections(&projections);

	for (int i = 0; i < count; i++)
		if (projections[i].id == id)
			return &projections[i];
	return NULL;
}

static PjProjection *
find_by_name(const char *name)
{
	PjProjection *projections;
	int			count = pj_projections(&projections);

	for (int i = 0; i < count; i++)
		if (strcmp(projections[i].name, name) == 0)
			return &projections[i];
	return NULL;
}

bool
pj_projection_exists(const char *name)
{
	return find_by_name(name) != NULL;
}

/* Returns the projection with that name; raises an error if there is none. */
PjProjection *
pj_projection_find(const char *name)
{
	PjProjection *projection = find_by_name(name);

	if (projection == NULL)
		ereport(ERROR,
				errcode(ERRCODE_UNDEFINED_OBJECT),
				errmsg("projection \"%s\" does not exist", name),
				errhint("The projections are listed in projector.projections."));
	return projection;
}

/* Returns the OID of table projections. */
Oid
pj_registry_relid(void)
{
	return pj_relid(&projections_table);
}

/*
 * Returns the role that a projection's code runs as; InvalidOid if the role no
 * longer exists.  If the projection is not in its home database, or was just
 * restored, the role is looked up by name.
 */
Oid
pj_projection_role(const PjProjection *projection)
{
	if (!projection->resolved)
		return get_role_oid(projection->owner, true);
	return SearchSysCacheExists1(AUTHOID,
								 ObjectIdGetDatum(projection->owner_oid)) ?
		projection->owner_oid : InvalidOid;
}

/* Like pj_projection_role, but raises an error if the role does not exist. */
Oid
pj_projection_owner(const PjProjection *projection)
{
	Oid			owner = pj_projection_role(projection);

	if (!OidIsValid(owner))
		ereport(ERROR,
				errcode(ERRCODE_UNDEFINED_OBJECT),
				errmsg("owner \"%s\" of projection \"%s\" does not exist",
					   projection->owner, projection->name),
				errdetail("A new role with the same name is a different role."),
				errhint("A superuser can give it another owner: projector_alter(%s, '{\"owner\": \"role\"}').",
						quote_literal_cstr(projection->name)));
	return owner;
}

/*
 * Run, as the owner and in the sandbox, something that is not the application
 * of an event but may call the projection's code or fire triggers.
 */
void
pj_run_as_owner(const PjProjection *projection, const char *tenant,
				void (*body) (void *), void *arg)
{
	PjUserCode	code;

	pj_user_code_init(&code, projection, tenant);
	code.replay = true;
	pj_run_user_code(&code, body, arg);
}

/*
 * Read a projection's rows, to hash or display them.  Only the fixed settings
 * are used, so that the result does not depend on the projection's own
 * settings.
 */
void
pj_read_as_owner(const PjProjection *projection, const char *tenant,
				 void (*body) (void *), void *arg)
{
	PjUserCode	code;

	pj_user_code_init(&code, projection, tenant);
	code.replay = true;
	code.settings = NULL;
	code.check_write = NULL;
	pj_run_user_code(&code, body, arg);
}

/* Is the caller its owner, a member of that role, or a superuser? */
bool
pj_projection_is_own(const PjProjection *projection)
{
	Oid			owner = pj_projection_role(projection);

	return superuser() ||
		(OidIsValid(owner) && has_privs_of_role(GetUserId(), owner));
}

/* Raise an error if the caller is not. */
void
pj_projection_check_own(const PjProjection *projection)
{
	if (!pj_projection_is_own(projection))
		ereport(ERROR,
				errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				errmsg("must be owner of projection \"%s\"",
					   projection->name),
				errdetail("Its owner is \"%s\".", projection->owner));
}

/*
 * Lock the projection with that name until the end of the transaction, and
 * return it.  The caller must be its owner, a member of that role, or a
 * superuser.
 */
PjProjection *
pj_projection_own(const char *name, LOCKMODE mode)
{
	PjProjection *projection = pj_projection_find(name);
	int32		id = projection->id;

	pj_projection_check_own(projection);
	pj_lock_projection(id, mode, true);

	/* It may have been changed or dropped while we waited for the lock. */
	projection = pj_projection_by_id(id);
	if (projection == NULL)
		ereport(ERROR,
				errcode(ERRCODE_UNDEFINED_OBJECT),
				errmsg("projection \"%s\" does not exist", name),
				errdetail("It has just been dropped."));
	return projection;
}

void
pj_refuse_dormant(const PjProjection *projection)
{
	if (projection->dormant)
		ereport(ERROR,
				errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("projection \"%s\" is dormant", projection->name),
				errdetail("It was registered in another database, of which this is a copy."),
				errhint("Run projector_adopt() to let projections run here."));
}

/* Does the projection subscribe to events of this type? */
bool
pj_projection_wants(const PjProjection *projection, const PjEvent *event)
{
	if (projection->event_types == 0)
		return true;
	for (int i = 0; i < projection->ntypes; i++)
		if (pj_text_equal(projection->types[i], pj_event_type(event)))
			return true;
	return false;
}

/*
 * Run an UPDATE of a projection's registry row, then refresh the names in it.
 * The statement's first parameter is the projection's id.  In a transaction
 * with an old snapshot the row may not be found.
 */
void
pj_registry_update(PjStatement *stmt, Datum *values, const char *nulls)
{
	PjProjection *projection;

	Assert(pj_projection_is_locked(DatumGetInt32(values[0]), ExclusiveLock));
	pj_waiters_tell_all();
	if (pj_execute(stmt, values, nulls) != 1)
		ereport(ERROR,
				errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				errmsg("could not serialize access to the registry"),
				errdetail("The projection has been created or changed since this transaction began."),
				errhint("The transaction might succeed if retried."));
	projection = pj_projection_by_id(DatumGetInt32(values[0]));
	if (projection)
		(void) pj_identity_note(projection);
}

/*
 * Recompute column "overrides": does some tenant have a mode, pause or run of
 * its own, or is a run queued or running?  If forget_handover, also clear
 * handover_log_seq, so that a new handover is made.
 */
void
pj_registry_note_overrides(const PjProjection *projection,
						   bool forget_handover)
{
	Datum		values[2] = {Int32GetDatum(projection->id),
	BoolGetDatum(forget_handover)};

	pj_registry_update(&note_overrides, values, NULL);
}
