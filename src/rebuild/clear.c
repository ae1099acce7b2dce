/*
 * clear.c
 *	  Emptying read models: all rows of a tenant, or those of an aggregate.
 *
 * Rows are removed by DELETE, never by TRUNCATE, so that readers see the old
 * ones until the transaction commits.  Tables that refer to others go first.  A
 * projection whose rows cannot be told by their tenant has a function of its
 * own, option "clear".  All of it runs as the projection's owner, contained like
 * the rest of its code.
 *
 * Rows of other tables that refer to a target may go, too, or lose the
 * reference, by a foreign key with an action.  A replay does not bring them
 * back unless they are targets.  So that is refused (reference.c).
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

/* Something to be emptied. */
typedef struct Clearing
{
	const PjProjection *projection;
	Datum		tenant;
	Datum		aggregate;		/* 0 for all */
	int64		count;			/* of rows removed */
	Datum	   *tenants;		/* found in the read model */
	int			ntenants;
	int			room;			/* for more */
	MemoryContext context;		/* of these */
} Clearing;

/* Is it known which rows are those of an aggregate? */
bool
pj_clear_by_aggregate(const PjProjection *projection)
{
	return pj_is_fold(projection->kind) &&
		pj_key_is_aggregate(projection->key);
}

/* ---- order ---- */

/* Does one table refer to another? */
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

/* The targets, those first that refer to others. */
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

		/* one that no other refers to; in a cycle, any */
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

/* The projection has a function for it. */
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
 * What is left has another digest.  Of a tenant there is nothing left; whoever
 * clears an aggregate computes the digest again afterwards.
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

/* Can the read model be emptied, in whole or for one aggregate? */
void
pj_clear_check(const PjProjection *projection, bool aggregate)
{
	if (projection->options.clear)
		return;					/* its function is looked up when it is called */
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
				errdetail("Which rows are those of an aggregate is known for folds only whose key is the aggregate."),
				errhint("Rebuild the tenant, or set option \"clear\" to a function (tenant_id text, aggregate_id text)."));
}

/*
 * Remove a tenant's rows, or those of one aggregate.  Returns how many; 0 if a
 * function of the projection's own has done it.
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

/* Has the read model rows of a tenant? */
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

/* The tenants that the read model has rows of. */
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
