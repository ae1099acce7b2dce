/*
 * kind_handler.c
 *	  Projections of kind handler: a function f(projector.event) RETURNS
 *	  void, called once per event.
 *
 * The registry stores the function's name.  The function is looked up again
 * whenever a function or a role has changed.  If it no longer exists, no
 * longer has the right signature, or the owner may no longer call it, the
 * first event of the batch fails with that error.
 */
#include "base/compat.h"

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/typcache.h"
#include "utils/uuid.h"

#include "base/errcodes.h"
#include "base/generation.h"
#include "kinds/kind.h"
#include "registry/function.h"
#include "registry/target.h"
#include "sandbox/deadline.h"
#include "sandbox/user_context.h"

/*
 * A session's cache entry for a projection, found by id.  It is valid as long
 * as the registry row is the same; the function's OID only until any function
 * or role changes.
 */
typedef struct KeptCode
{
	int32		id;				/* hash key */
	uint64		version;		/* version of the registry row */
	uint64		generation;		/* pj_code_generation() of the lookup */
	Oid			function;		/* invalid if it must be looked up */
	SPIPlanPtr	checkpoint;		/* reads a row's stamp; NULL until needed */
	char	   *query;			/* its text, with the target's name at that
								 * time */
} KeptCode;

/* The state of one call of handler_apply. */
typedef struct HandlerBatch
{
	const PjProjection *projection;
	PjWork	   *work;
	KeptCode   *kept;
	FmgrInfo	function;
	TupleDesc	event_desc;
	SPIPlanPtr	checkpoint;		/* reads the row's stamp, or NULL */
	int			timeout_ms;		/* of one call, or 0 for none */
} HandlerBatch;

static HTAB *kept_codes = NULL;

static void
forget_checkpoint(KeptCode *kept)
{
	SPIPlanPtr	plan = kept->checkpoint;

	if (plan == NULL)
		return;
	kept->checkpoint = NULL;
	SPI_freeplan(plan);
	pfree(kept->query);
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
	}
	kept = hash_search(kept_codes, &projection->id, HASH_ENTER, &found);
	if (!found)
		kept->checkpoint = NULL;
	if (!found || kept->version != projection->version)
	{
		forget_checkpoint(kept);
		kept->function = InvalidOid;
		kept->version = projection->version;
	}
	return kept;
}

static void
handler_sweep(void)
{
	HASH_SEQ_STATUS status;
	KeptCode   *kept;

	if (kept_codes == NULL)
		return;
	hash_seq_init(&status, kept_codes);
	while ((kept = hash_seq_search(&status)) != NULL)
		if (pj_kind_is_gone(kept->id))
		{
			forget_checkpoint(kept);
			hash_search(kept_codes, &kept->id, HASH_REMOVE, NULL);
		}
}

static PjSignature
handler_signature(void)
{
	return (PjSignature)
	{
		.what = "handler",
			.nargs = 1,
			.argtypes = {pj_event_type_oid()},
			.rettype = VOIDOID,
			.arguments = "e projector.event",
			.takes = "one argument of type projector.event",
			.result = "void",
	};
}

static void
handler_check(PjDefinition *definition, Oid owner)
{
	PjSignature signature = handler_signature();

	definition->handler =
		pj_function_name(pj_function_find(&signature, definition->handler,
										  owner));
}

static char *
handler_source_text(const PjDefinition *definition)
{
	PjSignature signature = handler_signature();
	char	   *body = pj_function_source(&signature, definition->handler);

	return body ? psprintf("%s\n%s", definition->handler, body) : NULL;
}

static const char *
handler_problem(const PjDefinition *definition)
{
	PjSignature signature = handler_signature();

	return pj_function_problem(&signature, definition->handler,
							   definition->owner);
}

/*
 * Returns the projection's function; looks it up again if anything has
 * changed.
 */
static Oid
current_handler(const PjProjection *projection, KeptCode *kept)
{
	uint64		generation = pj_code_generation();

	if (!OidIsValid(kept->function) || kept->generation != generation)
	{
		PjSignature signature = handler_signature();
		PjContext	saved;

		/* the session that appends may lack privileges on the schema */
		kept->function = InvalidOid;
		pj_enter_internal(&saved);
		kept->function = pj_function_find(&signature, projection->handler,
										  pj_projection_owner(projection));
		pj_leave_internal(&saved);
		kept->generation = generation;
	}
	return kept->function;
}

/* Returns the plan that reads the stamp of an event's row. */
static SPIPlanPtr
checkpoint_plan(const PjProjection *projection, KeptCode *kept)
{
	Oid			argtypes[2] = {TEXTOID, TEXTOID};
	char	   *query = pj_target_checkpoint_query(projection);

	/* the target may have been renamed */
	if (kept->checkpoint && strcmp(query, kept->query) != 0)
		forget_checkpoint(kept);
	if (kept->checkpoint == NULL)
	{
		SPIPlanPtr	plan = SPI_prepare(query, 2, argtypes);

		if (plan == NULL)
			elog(ERROR, "could not prepare the query for checkpoints: %s",
				 SPI_result_code_string(SPI_result));
		kept->query = MemoryContextStrdup(TopMemoryContext, query);
		SPI_keepplan(plan);
		kept->checkpoint = plan;
	}
	return kept->checkpoint;
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

/* Call the handler with the event as a row of type projector.event. */
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
	if (batch->projection->options.checkpoint == PJ_CHECKPOINT_CHECK)
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
		pj_set_replay(work->events[i]->replay);
		CHECK_FOR_INTERRUPTS();
		CommandCounterIncrement();
		UpdateActiveSnapshotCommandId();

		/* Each call starts with the same settings; undo what it changes. */
		if (several)
			guc_level = NewGUCNestLevel();
		pj_deadline_begin(batch->timeout_ms);
		call_handler(batch, work->events[i]);
		pj_deadline_end();
		pj_raise_caught_cancel();
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
	HandlerBatch batch = {projection, work, kept_code(projection),
	.timeout_ms = pj_kind_timeout(projection)};

	fmgr_info(current_handler(projection, batch.kept), &batch.function);
	batch.event_desc = lookup_rowtype_tupdesc(pj_event_type_oid(), -1);
	pj_kind_run(work, false, call_for_each, &batch);
	ReleaseTupleDesc(batch.event_desc);
}

const PjKind pj_kind_handler = {
	.id = PJ_KIND_HANDLER,
	.check = handler_check,
	.source_text = handler_source_text,
	.problem = handler_problem,
	.sweep = handler_sweep,
	.apply = handler_apply,
};
