/*
 * kind_handler.c
 *	  Projections that are a function f(projector.event) RETURNS void, called
 *	  once per event.
 *
 * The function is registered by name, and looked up again whenever a function
 * or a role has changed: if it is gone, is no handler any more, or may no
 * longer be called by the owner, the batch's first event fails and says so.
 */
#include "compat.h"

#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "nodes/pg_list.h"
#include "parser/parse_func.h"
#include "pgstat.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/typcache.h"
#include "utils/uuid.h"

#include "context.h"
#include "deadline.h"
#include "errcodes.h"
#include "kind.h"
#include "shmem.h"
#include "target.h"

/*
 * What this session keeps of a projection between batches.  It is found
 * again by id, and good as long as the registry's row is the same; the
 * function's oid also only until some function or role changes.
 */
typedef struct KeptCode
{
	int32		id;				/* hash key */
	TransactionId version;		/* of the registry's row */
	uint64		generation;		/* of the function's oid */
	Oid			function;		/* invalid if it is to be looked up */
	SPIPlanPtr	checkpoint;		/* reads a row's stamp; NULL until needed */
} KeptCode;

/* What one call of handler_apply works on. */
typedef struct HandlerBatch
{
	const PjProjection *projection;
	PjWork	   *work;
	PjUserCode *code;
	KeptCode   *kept;
	FmgrInfo	function;
	TupleDesc	event_desc;
	SPIPlanPtr	checkpoint;		/* reads the row's stamp, or NULL */
	int			timeout_ms;		/* of one call, or 0 */
} HandlerBatch;

static HTAB *kept_codes = NULL;
static uint64 code_generation = 0;

static void
code_changed(Datum arg, int cacheid, uint32 hashvalue)
{
	code_generation++;
}

static KeptCode *
kept_code(const PjProjection *projection)
{
	KeptCode   *kept;
	bool		found;

	if (kept_codes == NULL)
	{
		HASHCTL		ctl = {.keysize = sizeof(int32),.entrysize = sizeof(KeptCode)};

		kept_codes = hash_create("projector handlers", 16, &ctl,
								 HASH_ELEM | HASH_BLOBS);
		CacheRegisterSyscacheCallback(PROCOID, code_changed, (Datum) 0);
		CacheRegisterSyscacheCallback(NAMESPACEOID, code_changed, (Datum) 0);
		CacheRegisterSyscacheCallback(AUTHOID, code_changed, (Datum) 0);
		CacheRegisterSyscacheCallback(AUTHMEMROLEMEM, code_changed, (Datum) 0);
	}
	kept = hash_search(kept_codes, &projection->id, HASH_ENTER, &found);
	if (!found)
		kept->checkpoint = NULL;
	if (!found || kept->version != projection->version)
	{
		if (kept->checkpoint)
			SPI_freeplan(kept->checkpoint);
		kept->checkpoint = NULL;
		kept->function = InvalidOid;
		kept->version = projection->version;
	}
	return kept;
}

static Oid
event_type_oid(void)
{
	return GetSysCacheOid2(TYPENAMENSP, Anum_pg_type_oid,
						   CStringGetDatum("event"),
						   ObjectIdGetDatum(get_namespace_oid("projector",
															  false)));
}

static Oid
lookup_handler(const char *name)
{
	Oid			argtype = event_type_oid();

	return LookupFuncName(pj_parse_name(name, "handler"), 1, &argtype, true);
}

/* A function of that name exists, but takes or returns something else. */
static void
refuse_signature(const char *name, const char *detail)
{
	ereport(ERROR,
			errcode(ERRCODE_INVALID_FUNCTION_DEFINITION),
			errmsg("function %s cannot be a handler", name),
			errdetail("%s", detail),
			errhint("A handler is a function %s(e projector.event) RETURNS void.",
					name));
}

static void
refuse_missing(const char *name)
{
	if (FuncnameGetCandidates(pj_parse_name(name, "handler"), -1, NIL,
							  false, false, false, true) != NULL)
		refuse_signature(name, "No function of that name takes one argument of type projector.event.");
	ereport(ERROR,
			errcode(ERRCODE_UNDEFINED_FUNCTION),
			errmsg("function %s(projector.event) does not exist", name),
			errhint("Create the function, or name another one: handler => 'schema.name'."));
}

/* Find a handler by name, and check that its owner may call it. */
static Oid
find_handler(const char *name, Oid owner)
{
	Oid			oid = lookup_handler(name);
	HeapTuple	tuple;
	Form_pg_proc proc;

	if (!OidIsValid(oid))
		refuse_missing(name);
	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(oid));
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for function %u", oid);
	proc = (Form_pg_proc) GETSTRUCT(tuple);
	if (proc->prokind != PROKIND_FUNCTION)
		refuse_signature(name, "It is a procedure, an aggregate or a window function.");
	if (proc->prorettype != VOIDOID || proc->proretset)
		refuse_signature(name, "It does not return void.");
	ReleaseSysCache(tuple);

	if (pg_proc_aclcheck(oid, owner, ACL_EXECUTE) != ACLCHECK_OK)
		ereport(ERROR,
				errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				errmsg("\"%s\" may not execute function %s",
					   GetUserNameFromId(owner, false), name),
				errhint("The projection's owner needs EXECUTE on its handler."));
	return oid;
}

static char *
handler_check(const char *code, Oid owner)
{
	Oid			oid = find_handler(code, owner);

	return quote_qualified_identifier(get_namespace_name(get_func_namespace(oid)),
									  get_func_name(oid));
}

static char *
handler_source_text(const char *code)
{
	Oid			oid = lookup_handler(code);
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(oid));
	char	   *body = "";
	bool		isnull;
	Datum		prosrc;

	if (!HeapTupleIsValid(tuple))
		return body;

	/* LANGUAGE sql with a body in SQL syntax keeps it in another column */
	prosrc = SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_prosqlbody, &isnull);
	if (isnull)
		prosrc = SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_prosrc, &isnull);
	if (!isnull)
		body = TextDatumGetCString(prosrc);
	ReleaseSysCache(tuple);

	return body;
}

/* The projection's function, looked up again if anything has changed. */
static Oid
current_handler(const PjProjection *projection, KeptCode *kept, Oid owner)
{
	uint64		generation = code_generation;

	if (!OidIsValid(kept->function) || kept->generation != generation)
	{
		PjContext	saved;

		/* whoever appends need not have rights on the handler's schema */
		kept->function = InvalidOid;
		pj_enter_internal(&saved);
		kept->function = find_handler(projection->handler, owner);
		pj_leave_internal(&saved);
		kept->generation = generation;
	}
	return kept->function;
}

/* The plan that reads the stamp of an event's row. */
static SPIPlanPtr
checkpoint_plan(const PjProjection *projection, KeptCode *kept)
{
	Oid			argtypes[2] = {TEXTOID, TEXTOID};
	SPIPlanPtr	plan = kept->checkpoint;

	if (plan == NULL)
	{
		plan = SPI_prepare(pj_target_checkpoint_query(projection), 2,
						   argtypes);
		if (plan == NULL)
			elog(ERROR, "could not prepare the query for checkpoints: %s",
				 SPI_result_code_string(SPI_result));
		SPI_keepplan(plan);
		kept->checkpoint = plan;
	}
	return plan;
}

static void
check_checkpoint(HandlerBatch *batch, const PjEvent *event)
{
	Datum		values[2] = {pj_event_tenant(event), pj_event_aggregate(event)};
	int64		expected = pj_event_sequence(event);
	bool		version_null,
				id_null;
	int64		version;
	Datum		id;

	if (SPI_execute_plan(batch->checkpoint, values, NULL, false, 1) != SPI_OK_SELECT)
		elog(ERROR, "could not read a checkpoint");
	if (SPI_processed == 0)
		return;

	version = DatumGetInt64(SPI_getbinval(SPI_tuptable->vals[0],
										  SPI_tuptable->tupdesc, 1,
										  &version_null));
	id = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 2,
					   &id_null);
	if (version_null || version < expected ||
		(version == expected &&
		 (id_null || memcmp(DatumGetUUIDP(id),
							DatumGetUUIDP(pj_event_id(event)), UUID_LEN) != 0)))
		ereport(ERROR,
				errcode(ERRCODE_PJ_CHECKPOINT),
				errmsg("handler of projection \"%s\" did not stamp the row of aggregate \"%s\"",
					   batch->projection->name,
					   TextDatumGetCString(pj_event_aggregate(event))),
				errdetail("Event %lld was applied, but the row's %s.",
						  (long long) expected,
						  version_null ? "last_event_version is null" :
						  version < expected ?
						  psprintf("last_event_version is %lld",
								   (long long) version) :
						  "last_event_id is not that event's"),
				errhint("Set last_event_id and last_event_version to those of the event whenever the row is written."));
	SPI_freetuptable(SPI_tuptable);
}

/* One call, with the event as a row of type projector.event. */
static void
call_handler(HandlerBatch *batch, const PjEvent *event)
{
	LOCAL_FCINFO(fcinfo, 1);
	bool		nulls[PJ_EVENT_COLUMNS] = {false};
	PgStat_FunctionCallUsage usage;
	HeapTuple	tuple;

	tuple = heap_form_tuple(batch->event_desc,
							(Datum *) event->values, nulls);
	InitFunctionCallInfoData(*fcinfo, &batch->function, 1, InvalidOid, NULL,
							 NULL);
	fcinfo->args[0].value = HeapTupleGetDatum(tuple);
	fcinfo->args[0].isnull = false;
	pgstat_init_function_usage(fcinfo, &usage);
	(void) FunctionCallInvoke(fcinfo);
	pgstat_end_function_usage(&usage, true);
}

static void
describe_event(void *arg)
{
	HandlerBatch *batch = arg;
	const PjEvent *event = batch->work->events[batch->work->at];

	errcontext("projection \"%s\", event %lld (%s) of aggregate \"%s\" of tenant \"%s\"",
			   batch->projection->name,
			   (long long) pj_event_sequence(event),
			   TextDatumGetCString(pj_event_type(event)),
			   TextDatumGetCString(pj_event_aggregate(event)),
			   TextDatumGetCString(pj_event_tenant(event)));
}

/* The part of a batch that runs as the projection's owner. */
static void
call_for_each(void *arg)
{
	HandlerBatch *batch = arg;
	PjWork	   *work = batch->work;
	bool		several = work->hi - work->lo > 1;
	MemoryContext per_event,
				caller;

	per_event = AllocSetContextCreate(CurrentMemoryContext,
									  "projector event",
									  ALLOCSET_DEFAULT_SIZES);
	caller = MemoryContextSwitchTo(per_event);
	if (strcmp(batch->projection->options.checkpoint, "check") == 0)
	{
		SPI_connect();
		batch->checkpoint = checkpoint_plan(batch->projection, batch->kept);
		MemoryContextSwitchTo(per_event);
	}

	PushCopiedSnapshot(GetTransactionSnapshot());
	for (int i = work->lo; i < work->hi; i++)
	{
		int			guc_level = 0;

		work->at = i;
		if (work->events[i]->skipped)
			continue;
		batch->code->replay = work->events[i]->replay;
		CHECK_FOR_INTERRUPTS();
		CommandCounterIncrement();
		UpdateActiveSnapshotCommandId();

		/* No call finds settings that the one before it has left. */
		if (several)
			guc_level = NewGUCNestLevel();
		pj_deadline_begin(batch->timeout_ms);
		call_handler(batch, work->events[i]);
		pj_deadline_end();
		if (several)
			AtEOXact_GUC(false, guc_level);
		if (batch->checkpoint)
			check_checkpoint(batch, work->events[i]);
		MemoryContextSwitchTo(per_event);
		MemoryContextReset(per_event);
	}
	PopActiveSnapshot();

	if (batch->checkpoint)
		SPI_finish();
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(per_event);
}

static void
handler_apply(PjWork *work)
{
	const PjProjection *projection = work->projection;
	PjUserCode	code = {
		.projection = projection->name,
		.search_path = projection->search_path,
		.tenant = work->tenant,
		.may_append = projection->options.may_append,
	};
	HandlerBatch batch = {projection, work, &code, kept_code(projection)};
	ErrorContextCallback callback = {error_context_stack, describe_event,
	&batch};

	error_context_stack = &callback;
	if (pj_is_worker())
		batch.timeout_ms = Max(projection->options.timeout / 1000, 1);
	code.owner = pj_projection_owner(projection);
	fmgr_info(current_handler(projection, batch.kept, code.owner),
			  &batch.function);
	batch.event_desc = lookup_rowtype_tupdesc(event_type_oid(), -1);
	pj_run_user_code(&code, call_for_each, &batch);
	ReleaseTupleDesc(batch.event_desc);
	error_context_stack = callback.previous;
}

const PjKind pj_kind_handler = {
	.name = "handler",
	.check = handler_check,
	.source_text = handler_source_text,
	.apply = handler_apply,
};
