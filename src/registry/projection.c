/*
 * projection.c
 *	  The registry of projections, kept in each session.
 *
 * Every append must know who subscribes to it, so the registry is read once
 * and kept until it changes.  Changes are announced through the relation
 * cache: a trigger on the table invalidates it, and whoever uses the copy
 * accepts pending invalidations first.  The copy is read with the latest
 * snapshot, because a transaction with an old one must apply or queue its
 * events by today's rules.
 *
 * A pointer into the copy stays valid until the end of the transaction.
 */
#include "base/compat.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/fmgrprotos.h"
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
#include "ipc/waiters.h"
#include "registry/identity.h"
#include "registry/projection.h"
#include "registry/target.h"
#include "registry/target_guard.h"
#include "sandbox/user_context.h"

PG_FUNCTION_INFO_V1(projector_projections_changed);

/* The columns of table projections, in order. */
enum
{
	Anum_projection_id = 1,
	Anum_name,
	Anum_owner,
	Anum_source,
	Anum_kind,
	Anum_handler,
	Anum_fold,
	Anum_fold_columns,
	Anum_statement,
	Anum_targets,
	Anum_key,
	Anum_event_types,
	Anum_mode,
	Anum_ordering,
	Anum_options,
	Anum_paused,
	Anum_paused_by,
	Anum_pause_reason,
	Anum_overrides,
	Anum_skips,
	Anum_handover_log_seq,
	Anum_started,
	Anum_home,
	Anum_definition_hash,
	Anum_search_path,
	Anum_created_at,
	Anum_paused_at,
	Anum_owner_oid,
	Anum_target_oids,
	Anum_resolved_in,
	Anum_target_changes,
	Anum_settings
};

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
	bool		changed;		/* since loading it began */
	bool		callback_registered;
	uint64		generation;		/* how often it was loaded */
	Oid			relid;			/* of table projections */
	MemoryContext context;		/* of everything below */
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

/* AFTER any change of table projections. */
Datum
projector_projections_changed(PG_FUNCTION_ARGS)
{
	TriggerData *trigdata = pj_trigger_data(fcinfo, "projections_changed",
											&projections_table,
											PJ_AFTER_STATEMENT, PJ_ANY_EVENT);

	CacheInvalidateRelcache(trigdata->tg_relation);
	return PointerGetDatum(NULL);
}

/* Names this database among all of all servers. */
char *
pj_home(void)
{
	return psprintf(UINT64_FORMAT "/%u", GetSystemIdentifier(), MyDatabaseId);
}

PjMode
pj_mode(const char *name)
{
	const char *found = pj_choose(name, pj_mode_names, "mode");

	for (int mode = PJ_OFF; mode <= PJ_STRICT; mode++)
		if (pj_mode_names[mode] == found)
			return mode;
	pg_unreachable();
}

/*
 * Does an append in this mode apply or queue its events?  In the others it
 * leaves no trace but in the log.
 */
bool
pj_mode_queues(PjMode mode)
{
	return mode != PJ_OFF && mode != PJ_FOLLOW;
}

/* The types subscribed to, taken apart. */
static void
read_event_types(PjProjection *p, Datum column)
{
	ArrayType  *array = DatumGetArrayTypePCopy(column);
	bool	   *nulls;

	p->event_types = PointerGetDatum(array);
	deconstruct_array(array, TEXTOID, -1, false, TYPALIGN_INT,
					  &p->types, &nulls, &p->ntypes);
	for (int i = 0; i < p->ntypes; i++)
		if (nulls[i])
		{
			p->unreadable = "event_types contains null";
			p->event_types = (Datum) 0; /* it may be any */
		}
}

/*
 * A name, qualified and quoted.  One that cannot be read becomes a name that can
 * be, and that nothing has, because it is not qualified.
 */
static const char *
read_name(PjProjection *p, const char *name, const char *column)
{
	if (name == NULL)
		p->unreadable = psprintf(strcmp(column, "targets") == 0 ?
								 "%s contains null" : "%s is null", column);
	else if (!pj_name_is_readable(name))
		p->unreadable = psprintf("invalid name in %s: \"%s\"", column, name);
	else
		return name;
	return quote_identifier(name ? name : "null");
}

/* Exactly the one of the four that the kind says. */
static void
read_code(PjProjection *p, const char *handler, const char *fold,
		  Jsonb *fold_columns, const char *statement)
{
	if (strcmp(p->kind, "handler") == 0)
		p->handler = read_name(p, handler, "handler");
	else if (strcmp(p->kind, "fold") == 0)
		p->fold = read_name(p, fold, "fold");
	else if (strcmp(p->kind, "fold_columns") == 0)
	{
		if (fold_columns == NULL || !JB_ROOT_IS_OBJECT(fold_columns))
			p->unreadable = "fold_columns is not a JSON object";
		p->fold_columns = p->unreadable == NULL ? fold_columns :
			DatumGetJsonbP(DirectFunctionCall1(jsonb_in,
											   CStringGetDatum("{}")));
	}
	else
	{
		if (statement == NULL)
			p->unreadable = "statement is null";
		p->statement = statement ? statement : "";
	}
}

/* As many names as there are, each of which can be read. */
static void
read_targets(PjProjection *p, Datum column)
{
	ArrayType  *array = DatumGetArrayTypePCopy(column);
	const char *before = p->unreadable;
	Datum	   *names;
	bool	   *nulls;
	int			n;

	deconstruct_array(array, TEXTOID, -1, false, TYPALIGN_INT, &names, &nulls,
					  &n);
	if (ARR_NDIM(array) > 1)
		p->unreadable = "targets has more than one dimension";
	for (int i = 0; i < n; i++)
		names[i] = CStringGetTextDatum(read_name(p, nulls[i] ? NULL :
												 TextDatumGetCString(names[i]),
												 "targets"));
	if (pj_is_fold(p->kind) && n != 1)
		p->unreadable = "targets of a fold is not one table";
	if (pj_is_fold(p->kind) && n == 0)
	{
		Datum		none = CStringGetTextDatum("\"null\"");

		p->targets = pj_text_array(&none, 1);	/* code counts on it */
	}
	else
		p->targets = pj_text_array(names, n);
	p->misnamed = p->unreadable != before;
}

/* What may be wrong in a row that was written by hand, or by a later version. */
static void
read_choices(PjProjection *p, const char *mode)
{
	const char *problem;
	int			i = PJ_OFF;

	while (pj_mode_names[i] && strcmp(pj_mode_names[i], mode) != 0)
		i++;
	p->mode = pj_mode_names[i] ? i : PJ_ASYNC;
	if (pj_mode_names[i] == NULL)
		p->unreadable = psprintf("unknown mode \"%s\"", mode);
	p->log_ordered = strcmp(p->ordering, "log") == 0;
	problem = pj_options_read(p->options_json, &p->options);
	if (problem)
		p->unreadable = problem;
	for (i = 0; p->options.writes[i]; i++)
		p->options.writes[i] = read_name(p, p->options.writes[i],
										 "option \"writes\"");
	if (p->options.clear)
		p->options.clear = read_name(p, p->options.clear,
									 "option \"clear\"");
}

/*
 * The oids, if they are those of this database.  A restored row brings the
 * oids that were.
 */
static void
read_oids(PjProjection *p, Datum owner, Datum targets, Oid resolved_in)
{
	ArrayType  *array = DatumGetArrayTypePCopy(targets);
	Datum	   *oids;
	bool	   *nulls;
	int			n;

	p->resolved = !p->dormant && resolved_in == registry.relid;
	if (!p->resolved)
		return;
	deconstruct_array(array, OIDOID, sizeof(Oid), true, TYPALIGN_INT, &oids,
					  &nulls, &n);
	p->owner_oid = DatumGetObjectId(owner);
	p->target_oids = palloc0(sizeof(Oid) * (pj_target_count(p) + 1));
	for (int i = 0; i < Min(n, pj_target_count(p)); i++)
		p->target_oids[i] = nulls[i] ? InvalidOid : DatumGetObjectId(oids[i]);
}

static void
read_row(HeapTuple tuple, TupleDesc desc, PjProjection *p)
{
	Datum	   *columns;
	bool	   *nulls;
	const char *problem;

	pj_deform(tuple, desc, &columns, &nulls);
	memset(p, 0, sizeof(*p));

#define text_column(anum) \
	(nulls[(anum) - 1] ? NULL : TextDatumGetCString(columns[(anum) - 1]))

	p->id = p->base_id = DatumGetInt32(columns[Anum_projection_id - 1]);
	p->name = text_column(Anum_name);
	p->owner = text_column(Anum_owner);
	p->kind = text_column(Anum_kind);
	read_code(p, text_column(Anum_handler), text_column(Anum_fold),
			  nulls[Anum_fold_columns - 1] ? NULL :
			  DatumGetJsonbPCopy(columns[Anum_fold_columns - 1]),
			  text_column(Anum_statement));
	p->key = text_column(Anum_key);
	read_targets(p, columns[Anum_targets - 1]);
	if (!nulls[Anum_event_types - 1])
		read_event_types(p, columns[Anum_event_types - 1]);
	p->ordering = text_column(Anum_ordering);
	p->options_json = DatumGetJsonbPCopy(columns[Anum_options - 1]);
	read_choices(p, text_column(Anum_mode));
	p->paused = DatumGetBool(columns[Anum_paused - 1]);
	p->overrides = DatumGetBool(columns[Anum_overrides - 1]);
	p->skips = DatumGetBool(columns[Anum_skips - 1]) ||
		p->options.skip_errors ||
		strcmp(p->options.on_rebuild_error, "skip") == 0;
	p->handed_over = !nulls[Anum_handover_log_seq - 1];
	if (p->handed_over)
		p->handover_log_seq = DatumGetInt64(columns[Anum_handover_log_seq - 1]);
	p->started = DatumGetBool(columns[Anum_started - 1]);
	/* as column xmin has it: that of a frozen row, too */
	p->written_by = HeapTupleHeaderGetRawXmin(tuple->t_data);
	p->version = (uint64) p->written_by << 32 |
		HeapTupleHeaderGetRawCommandId(tuple->t_data);
	p->dormant = strcmp(TextDatumGetCString(columns[Anum_home - 1]),
						pj_home()) != 0;
	p->search_path = text_column(Anum_search_path);
	read_oids(p, columns[Anum_owner_oid - 1], columns[Anum_target_oids - 1],
			  DatumGetObjectId(columns[Anum_resolved_in - 1]));
	p->target_changes = DatumGetInt32(columns[Anum_target_changes - 1]);
	p->settings_json = DatumGetJsonbPCopy(columns[Anum_settings - 1]);
	problem = pj_settings_read(p->settings_json, &p->settings);
	if (problem)
		p->unreadable = problem;
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
		read_row(tuple, RelationGetDescr(fetch.heap), &projections[count++]);
	}
	pj_fetch_end(&fetch);
	UnregisterSnapshot(snapshot);
	MemoryContextSwitchTo(caller);

	/* Somebody further up may still use the old copy. */
	if (registry.context)
		MemoryContextSetParent(registry.context, TopTransactionContext);
	MemoryContextSetParent(context, CacheMemoryContext);
	registry.context = context;
	registry.projections = projections;
	registry.count = count;
	registry.generation++;

	/* What changed while we read is read by the next who asks. */
	registry.valid = !registry.changed;
}

/*
 * All projections, in the order of their creation.  One reading is enough: its
 * snapshot is taken after the invalidations were accepted, so it sees whatever
 * was announced before the call.  What is announced meanwhile could as well
 * have come later.  (Reading until nothing comes would never end where each
 * access to a catalog invalidates everything: debug_discard_caches.)
 */
int
pj_projections(PjProjection **projections)
{
	AcceptInvalidationMessages();
	if (!registry.valid)
		load_registry();
	*projections = registry.projections;
	return registry.count;
}

/* Another number than before says that the registry may have changed. */
uint64
pj_projections_generation(void)
{
	return registry.generation;
}

/* Is everything it depends on done with? */
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

/* All projections, those first that others depend on. */
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
			elog(ERROR, "projections depend on each other in a circle");
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

/* The projection of that name; an error if there is none. */
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

/* The oid of table projections. */
Oid
pj_registry_relid(void)
{
	return pj_relid(&projections_table);
}

/*
 * The role a projection's code runs as; invalid if it is gone.  Where the
 * projection is not at home, or has just been restored, the name counts.
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

/* The same; an error if it is gone. */
Oid
pj_projection_owner(const PjProjection *projection)
{
	Oid			owner = pj_projection_role(projection);

	if (!OidIsValid(owner))
		ereport(ERROR,
				errcode(ERRCODE_UNDEFINED_OBJECT),
				errmsg("owner \"%s\" of projection \"%s\" does not exist",
					   projection->owner, projection->name),
				errdetail("A role that was given its name since is another one."),
				errhint("A superuser can give it another owner: projector_alter('%s', '{\"owner\": \"role\"}').",
						projection->name));
	return owner;
}

/*
 * Run something that is not an event's, but may run a projection's code or
 * triggers, as its owner and contained.
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
 * Read a projection's rows, to hash or show them.  That is done with the fixed
 * settings alone, so that it does not depend on the projection's own.
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

/* An error if the caller is not. */
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
 * The projection of that name, locked until the end of the transaction, for
 * its owner, a member of that role, or a superuser.
 */
PjProjection *
pj_projection_own(const char *name, LOCKMODE mode)
{
	PjProjection *projection = pj_projection_find(name);
	int32		id = projection->id;

	pj_projection_check_own(projection);
	pj_lock_projection(id, mode, true);

	/* It may have been changed or dropped while we waited. */
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
				errhint("Run projector_adopt() if projections shall run here."));
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
 * Change the registry's row of the projection whose id is the statement's first
 * parameter, and refresh the names in it.  A transaction with an old snapshot
 * may not find it.
 */
void
pj_registry_update(PjStatement *stmt, Datum *values, const char *nulls)
{
	PjProjection *projection;

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
 * Note in the registry whether some tenant is run in a way of its own, and
 * perhaps that there is to be a new handover.  The caller has the projection's
 * lock exclusively.
 */
void
pj_registry_note_overrides(const PjProjection *projection,
						   bool forget_handover)
{
	Datum		values[2] = {Int32GetDatum(projection->id),
	BoolGetDatum(forget_handover)};

	pj_registry_update(&note_overrides, values, NULL);
}
