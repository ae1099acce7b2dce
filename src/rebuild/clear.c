/*
 * clear.c
 *	  Clear read models: all rows of a tenant, or those of an aggregate.
 *
 * Rows are removed with DELETE, never TRUNCATE, so that readers see the old
 * ones until the transaction commits.  Referencing tables come before the
 * tables they reference.  If a projection's rows cannot be found by tenant_id,
 * it has a function for this in option "clear".  All of this runs as the
 * projection's owner, in the sandbox.
 *
 * A foreign key with an action could also delete or change rows of other
 * tables.  A replay does not restore those unless their tables are targets.
 * So such a foreign key is refused (reference.c).
 */
#include "base/compat.h"

#include "access/genam.h"
#include "access/table.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "nodes/pg_list.h"
#include "utils/builtins.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "base/statement.h"
#include "rebuild/clear.h"
#include "registry/function.h"
#include "registry/reference.h"
#include "registry/target.h"
#include "sandbox/table_query.h"
#include "sandbox/user_context.h"
#include "state/digest.h"

/* The state of one clear operation. */
typedef struct Clearing
{
	const PjProjection *projection;
	Datum		tenant;
	Datum		aggregate;		/* 0 for all */
	int64		count;			/* number of deleted rows */
	Datum	   *tenants;		/* tenants found in the read model */
	int			ntenants;
	int			room;			/* allocated size of tenants */
	MemoryContext context;		/* for the tenants */
} Clearing;

/* Is it known which rows belong to an aggregate? */
bool
pj_clear_by_aggregate(const PjProjection *projection)
{
	return pj_is_fold(projection->kind) &&
		pj_key_is_aggregate(projection->key);
}

/* ---- order ---- */

/* Does one table have a foreign key to another? */
static bool
refers_to(Oid relid, Oid other)
{
	Relation	rel = table_open(relid, AccessShareLock);
	List	   *keys = RelationGetFKeyList(rel);
	ListCell   *cell;
	bool		found = false;

	foreach(cell, keys)
		found = found || ((ForeignKeyCacheInfo *) lfirst(cell))->confrelid == other;
	table_close(rel, AccessShareLock);
	return found;
}

/* Returns the targets, referencing tables before referenced ones. */
static List *
targets_in_order(const PjProjection *projection)
{
	List	   *left = NIL;
	List	   *ordered = NIL;

	for (int i = 0; i < pj_target_count(projection); i++)
		left = lappend_oid(left, pj_target_oid(projection, i));
	while (left != NIL)
	{
		Oid			next = linitial_oid(left);
		ListCell   *cell,
				   *other;

		/* find one that no other refers to; in a cycle, take any */
		foreach(cell, left)
		{
			bool		referred = false;

			foreach(other, left)
				referred = referred ||
				(lfirst_oid(other) != lfirst_oid(cell) &&
				 refers_to(lfirst_oid(other), lfirst_oid(cell)));
			if (!referred)
			{
				next = lfirst_oid(cell);
				break;
			}
		}
		ordered = lappend_oid(ordered, next);
		left = list_delete_oid(left, next);
	}
	return ordered;
}

/* ---- removing rows ---- */

/* Call the function of option "clear". */
static void
call_function(const Clearing *clearing)
{
	const PjProjection *projection = clearing->projection;
	bool		aggregate = clearing->aggregate != 0;
	PjSignature signature = pj_clear_signature(aggregate);
	Oid			function = pj_function_find(&signature,
											projection->options.clear,
											pj_projection_owner(projection));
	char	   *call = psprintf(aggregate ? "SELECT %s($1, $2)" :
								"SELECT %s($1)", pj_function_name(function));
	Oid			types[2] = {TEXTOID, TEXTOID};
	Datum		values[2] = {clearing->tenant, clearing->aggregate};
	int			rc;

	PushActiveSnapshot(GetTransactionSnapshot());
	SPI_connect();
	rc = SPI_execute_with_args(call, aggregate ? 2 : 1, types, values, NULL,
							   false, 0);
	if (rc < 0)
		elog(ERROR, "could not run \"%s\": %s", call,
			 SPI_result_code_string(rc));
	SPI_finish();
	PopActiveSnapshot();
}

static void
remove_rows(void *arg)
{
	Clearing   *clearing = arg;
	List	   *targets;
	ListCell   *cell;

	if (clearing->projection->options.clear)
	{
		call_function(clearing);
		return;
	}
	targets = targets_in_order(clearing->projection);
	pj_references_check(targets, clearing->projection->name,
						clearing->projection->options.writes);
	foreach(cell, targets)
	{
		PjTableQuery query = {
			.sql = pj_target_delete_query(lfirst_oid(cell),
										  clearing->aggregate != 0),
			.nargs = clearing->aggregate ? 2 : 1,
			.types = {TEXTOID, TEXTOID},
			.values = {clearing->tenant, clearing->aggregate},
		};

		clearing->count += pj_table_query(&query);
	}
}

/*
 * Forget the digest of a tenant that was cleared.  For an aggregate, the
 * caller computes the digest again afterwards.
 */
static void
note_digest(const Clearing *clearing)
{
	PjContext	saved;

	if (clearing->aggregate)
		return;
	pj_enter_internal(&saved);
	pj_digest_forget(clearing->projection->id, clearing->tenant);
	pj_leave_internal(&saved);
}

/*
 * Raise an error if the read model cannot be cleared, as a whole or for one
 * aggregate.
 */
void
pj_clear_check(const PjProjection *projection, bool aggregate)
{
	if (projection->options.clear)
		return;					/* its function is checked when it is called */
	if (pj_target_count(projection) == 0)
		ereport(ERROR,
				errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("projection \"%s\" has no targets to clear",
					   projection->name),
				errhint("Name its tables with projector_alter, or a function with option \"clear\"."));
	if (aggregate && !pj_clear_by_aggregate(projection))
		ereport(ERROR,
				errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("projection \"%s\" cannot be cleared for one aggregate",
					   projection->name),
				errdetail("Only a fold whose key is the aggregate knows which rows belong to an aggregate."),
				errhint("Rebuild the tenant, or set option \"clear\" to a function (tenant_id text, aggregate_id text)."));
}

/*
 * Delete a tenant's rows, or those of one aggregate.  Returns their number; 0
 * if the function of option "clear" did it.
 */
int64
pj_clear(const PjProjection *projection, Datum tenant, Datum aggregate)
{
	Clearing	clearing = {projection, tenant, aggregate};

	pj_clear_check(projection, aggregate != 0);
	pj_run_as_owner(projection, TextDatumGetCString(tenant), remove_rows,
					&clearing);
	note_digest(&clearing);
	return clearing.count;
}

/* ---- tenants ---- */

static void
find_rows(void *arg)
{
	Clearing   *clearing = arg;

	for (int i = 0; i < pj_target_count(clearing->projection) &&
		 clearing->count == 0; i++)
	{
		PjTableQuery query = {
			.sql = pj_target_exists_query(pj_target_oid(clearing->projection,
														i)),
			.nargs = 1,
			.types = {TEXTOID},
			.values = {clearing->tenant},
		};

		clearing->count = pj_table_query(&query);
	}
}

/* Does the read model have rows of a tenant? */
bool
pj_clear_has_rows(const PjProjection *projection, Datum tenant)
{
	Clearing	clearing = {projection, tenant};

	pj_read_as_owner(projection, TextDatumGetCString(tenant), find_rows,
					 &clearing);
	return clearing.count > 0;
}

static void
add_tenant(void *arg, TupleTableSlot *slot)
{
	Clearing   *clearing = arg;
	MemoryContext caller = MemoryContextSwitchTo(clearing->context);
	bool		isnull;
	Datum		tenant = slot_getattr(slot, 1, &isnull);

	if (clearing->ntenants == clearing->room)
		clearing->tenants = repalloc(clearing->tenants,
									 sizeof(Datum) * (clearing->room *= 2));
	clearing->tenants[clearing->ntenants++] =
		PointerGetDatum(DatumGetTextPCopy(tenant));
	MemoryContextSwitchTo(caller);
}

static void
find_tenants(void *arg)
{
	Clearing   *clearing = arg;

	for (int i = 0; i < pj_target_count(clearing->projection); i++)
	{
		PjTableQuery query = {
			.sql = pj_target_tenants_query(pj_target_oid(clearing->projection,
														 i)),
			.receive = add_tenant,
			.arg = clearing,
		};

		(void) pj_table_query(&query);
	}
}

/* Returns the tenants that have rows in the read model. */
int
pj_clear_tenants(const PjProjection *projection, Datum **tenants)
{
	Clearing	clearing = {projection,.context = CurrentMemoryContext,
	.room = 16};

	clearing.tenants = palloc(sizeof(Datum) * clearing.room);
	pj_read_as_owner(projection, "", find_tenants, &clearing);
	*tenants = clearing.tenants;
	return pj_texts_unique(clearing.tenants, clearing.ntenants);
}
