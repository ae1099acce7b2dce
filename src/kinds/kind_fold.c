/*
 * kind_fold.c
 *	  Projections of kind fold: a row and an event make the next row.
 *
 * A fold is written as a function, f(s target, e projector.event) RETURNS
 * target, or as an SQL expression for each column.  Per batch the rows of all
 * keys are read, the events folded into them in memory, in order, and each
 * changed row is written once.  (If the target has triggers that change rows
 * before they are written, each event's is written by itself.  And if the rows
 * grow large, they are written and forgotten in between, so that memory does not
 * grow with the batch.)
 *
 * The runtime stamps rows with the event they are the result of.  An event that
 * a row has seen is passed over, even if offsets were lost.  A row's tenant and
 * key are those of its events; a fold that says otherwise fails.
 */
#include "base/compat.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "pgstat.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/sortsupport.h"
#include "utils/syscache.h"
#include "utils/typcache.h"
#include "utils/uuid.h"

#include "base/errcodes.h"
#include "base/generation.h"
#include "kinds/fold_expr.h"
#include "kinds/fold_row.h"
#include "kinds/fold_trace.h"
#include "kinds/kind.h"
#include "registry/function.h"
#include "registry/target.h"
#include "sandbox/deadline.h"
#include "sandbox/user_context.h"

/*
 * What this session keeps of a fold between batches: good as long as the
 * registry's row is the same, and no function, role or type has changed, nor
 * the target.
 */
typedef struct KeptFold
{
	int32		id;				/* hash key */
	uint64		version;		/* of the registry's row */
	uint64		generation;		/* of functions */
	Oid			target;			/* invalid if there is no code */
	bool		changed;		/* the target has */
	Oid			function;		/* invalid if there are expressions */
	PjFoldCode *code;
	MemoryContext context;		/* of the code */
	bool		running;		/* still so after an error */
} KeptFold;

/* A batch being folded. */
typedef struct FoldBatch
{
	PjWork	   *work;
	KeptFold   *kept;
	PjFoldTarget target;
	PjFoldRow  *rows;
	int			nrows;
	int		   *row_of;			/* index of each event's row; -1 for none */
	FmgrInfo	function;
	TupleDesc	event_desc;
	int			timeout_ms;
	MemoryContext caller;		/* the caller's */
	MemoryContext context;		/* of all of the batch */
	volatile AttrNumber at_column;	/* whose expression is evaluated, or 0 */
	volatile bool at_default;	/* it is the column's default */
	MemoryContext per_event;
} FoldBatch;

static HTAB *kept_folds = NULL;

/* ---- definition ---- */

static PjSignature
fold_signature(Oid relid)
{
	Oid			rowtype = get_rel_type_id(relid);
	char	   *name = format_type_be(rowtype);

	return (PjSignature)
	{
		.what = "fold",
			.nargs = 2,
			.argtypes = {rowtype, pj_event_type_oid()},
			.rettype = rowtype,
			.arguments = psprintf("s %s, e projector.event", name),
			.takes = "a row of the target and a projector.event",
			.result = name,
	};
}

static void
check_function(Oid oid, const char *name)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(oid));
	Form_pg_proc proc = (Form_pg_proc) GETSTRUCT(tuple);

	if (proc->proisstrict)
		ereport(ERROR,
				errcode(ERRCODE_INVALID_FUNCTION_DEFINITION),
				errmsg("function %s cannot be a fold", name),
				errdetail("It is STRICT: it would not be called for the first event, when the row is null."),
				errhint("Create it without STRICT."));
	if (proc->provolatile == PROVOLATILE_VOLATILE)
		ereport(NOTICE,
				errmsg("function %s is declared as volatile", name),
				errdetail("A fold must be pure: the same row and event always give the same row. That is not checked."),
				errhint("Declare it as IMMUTABLE or STABLE to say so."));
	ReleaseSysCache(tuple);
}

/* Compile the expressions once, to see that it can be done. */
static void
try_expressions(void *arg)
{
	const PjDefinition *definition = arg;
	Relation	target = table_open(definition->target_oids[0],
									AccessShareLock);
	PjOptions	options;

	bool		other_key = !pj_key_is_aggregate(definition->key);
	PjFoldCode *code;

	pj_options_parse(definition->options, &options);
	code = pj_fold_compile(target, definition->fold_columns,
						   other_key ? definition->key : NULL,
						   options.digest_ignore);
	if (definition->fold_columns)
		pj_fold_check_not_null(code, target, other_key);
	table_close(target, AccessShareLock);
}

static void
fold_check(PjDefinition *definition, Oid owner)
{
	if (definition->fold)
	{
		PjSignature signature = fold_signature(definition->target_oids[0]);
		Oid			oid = pj_function_find(&signature, definition->fold,
										   owner);

		definition->fold = pj_function_name(oid);
		check_function(oid, definition->fold);
	}
	else if (!JB_ROOT_IS_OBJECT(definition->fold_columns) ||
			 JB_ROOT_COUNT(definition->fold_columns) == 0)
		ereport(ERROR,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("fold_columns must be a JSON object with an expression for each column that events change"));
	pj_kind_try(definition, owner, try_expressions, definition);
}

static void
fold_retry(const PjDefinition *definition)
{
	pj_kind_try(definition, definition->owner, try_expressions,
				(void *) definition);
}

static char *
fold_source_text(const PjDefinition *definition)
{
	if (definition->fold)
	{
		PjSignature signature = fold_signature(definition->target_oids[0]);
		char	   *body = pj_function_source(&signature, definition->fold);

		return body ? psprintf("%s\n%s\n%s", definition->key,
							   definition->fold, body) : NULL;
	}
	return psprintf("%s\n%s", definition->key,
					JsonbToCString(NULL, &definition->fold_columns->root,
								   VARSIZE(definition->fold_columns)));
}

static const char *
fold_problem(const PjDefinition *definition)
{
	PjSignature signature;

	if (definition->fold == NULL)
		return NULL;
	signature = fold_signature(definition->target_oids[0]);
	return pj_function_problem(&signature, definition->fold,
							   definition->owner);
}

/* ---- what is kept ---- */

/* Relation cache callback. */
static void
relation_changed(Datum arg, Oid relid)
{
	HASH_SEQ_STATUS status;
	KeptFold   *kept;

	hash_seq_init(&status, kept_folds);
	while ((kept = hash_seq_search(&status)) != NULL)
		if (relid == InvalidOid || kept->target == relid)
			kept->changed = true;
}

static KeptFold *
find_kept(const PjProjection *projection)
{
	KeptFold   *kept;
	bool		found;

	if (kept_folds == NULL)
	{
		HASHCTL		ctl = {.keysize = sizeof(int32),.entrysize = sizeof(KeptFold)};

		kept_folds = hash_create("projector folds", 16, &ctl,
								 HASH_ELEM | HASH_BLOBS);
		CacheRegisterRelcacheCallback(relation_changed, (Datum) 0);
	}
	kept = hash_search(kept_folds, &projection->id, HASH_ENTER, &found);
	if (!found)
	{
		kept->context = NULL;
		kept->target = InvalidOid;
	}
	return kept;
}

static void
fold_sweep(void)
{
	HASH_SEQ_STATUS status;
	KeptFold   *kept;

	if (kept_folds == NULL)
		return;
	hash_seq_init(&status, kept_folds);
	while ((kept = hash_seq_search(&status)) != NULL)
		if (pj_kind_is_gone(kept->id))
		{
			if (kept->context)
				MemoryContextDelete(kept->context);
			hash_search(kept_folds, &kept->id, HASH_REMOVE, NULL);
		}
}

static bool
is_good(const KeptFold *kept, const PjProjection *projection)
{
	return OidIsValid(kept->target) && !kept->changed && !kept->running &&
		kept->version == projection->version &&
		kept->generation == pj_code_generation();
}

/* Find the target, the function and the expressions, as the owner. */
static void
compile_fold(KeptFold *kept, const PjProjection *projection)
{
	MemoryContext caller;
	Relation	target;
	Oid			relid = pj_target_oid(projection, 0);
	Oid			owner = pj_projection_owner(projection);
	bool		other_key = !pj_key_is_aggregate(projection->key);

	kept->target = InvalidOid;
	kept->running = false;
	kept->version = projection->version;
	kept->generation = pj_code_generation();
	if (kept->context)
		MemoryContextDelete(kept->context);
	kept->context = AllocSetContextCreate(CacheMemoryContext,
										  "projector fold",
										  ALLOCSET_SMALL_SIZES);
	target = table_open(relid, RowExclusiveLock);
	pj_target_check_fold(target, owner, other_key);
	kept->function = InvalidOid;
	if (projection->fold)
	{
		PjSignature signature = fold_signature(relid);

		kept->function = pj_function_find(&signature, projection->fold,
										  owner);
	}
	caller = MemoryContextSwitchTo(kept->context);
	kept->code = pj_fold_compile(target, projection->fold_columns,
								 other_key ? projection->key : NULL,
								 projection->options.digest_ignore);
	MemoryContextSwitchTo(caller);
	table_close(target, NoLock);
	kept->changed = false;		/* the lock keeps it as it is */
	kept->target = relid;
}

/*
 * Have code that fits the target as it is, and keep it so.  Only who has the
 * lock knows what has changed.
 */
static void
lock_and_compile(KeptFold *kept, const PjProjection *projection)
{
	if (OidIsValid(kept->target))
		LockRelationOid(kept->target, RowExclusiveLock);
	if (!is_good(kept, projection))
	{
		pj_pin_user_code();
		compile_fold(kept, projection);
	}
	if (!kept->code->plain)
		pj_pin_user_code();
}

/* ---- keys ---- */

/* The key of an event; false if it is not for this projection. */
static bool
event_key(FoldBatch *batch, const PjEvent *event, Datum *key)
{
	PjFoldCode *code = batch->kept->code;
	Form_pg_attribute attribute =
	TupleDescAttr(batch->target.desc, batch->target.columns.key - 1);
	bool		isnull = false;

	if (code->key == NULL)
	{
		*key = pj_id_as(pj_event_aggregate(event), attribute);
		return true;
	}
	pj_fold_set_event(code, event);
	batch->at_column = batch->target.columns.key;
	*key = ExecEvalExprSwitchContext(code->key, code->econtext, &isnull);
	batch->at_column = 0;
	if (!isnull)
		*key = datumCopy(*key, attribute->attbyval, attribute->attlen);
	ResetExprContext(code->econtext);
	return !isnull;
}

typedef struct KeyPlace
{
	Datum		key;
	int			event;
} KeyPlace;

static int
compare_keys(const KeyPlace *a, const KeyPlace *b, SortSupport sort)
{
	return ApplySortComparator(a->key, false, b->key, false, sort);
}

/* Of equal keys the first event's comes first: a new row is written so. */
static int
compare_places(const void *a, const void *b, void *arg)
{
	const KeyPlace *pa = a;
	const KeyPlace *pb = b;
	int			result = compare_keys(pa, pb, (SortSupport) arg);

	return result != 0 ? result : pa->event - pb->event;
}

static void
add_row(FoldBatch *batch, Datum key)
{
	memset(&batch->rows[batch->nrows], 0, sizeof(PjFoldRow));
	batch->rows[batch->nrows++].key = key;
}

/* Events of one aggregate go into one row. */
static void
rows_by_aggregate(FoldBatch *batch)
{
	PjWork	   *work = batch->work;
	int			nranges = 0;
	int		   *row_of_range;

	for (int i = work->lo; i < work->hi; i++)
		nranges = Max(nranges, work->events[i]->range + 1);
	row_of_range = palloc(sizeof(int) * nranges);
	memset(row_of_range, -1, sizeof(int) * nranges);
	for (int i = work->lo; i < work->hi; i++)
	{
		int			range = work->events[i]->range;
		Datum		key;

		work->at = i;
		batch->row_of[i - work->lo] = -1;
		if (work->events[i]->skipped)
			continue;
		if (row_of_range[range] < 0)
		{
			(void) event_key(batch, work->events[i], &key);
			row_of_range[range] = batch->nrows;
			add_row(batch, key);
		}
		batch->row_of[i - work->lo] = row_of_range[range];
	}
}

/*
 * Events of equal keys go into one row.  The key's expression is called once
 * for each event; how the keys compare may be a user's code, too.
 */
static void
rows_by_key(FoldBatch *batch)
{
	PjWork	   *work = batch->work;
	KeyPlace   *places = palloc(sizeof(KeyPlace) * (work->hi - work->lo));
	Form_pg_attribute attribute =
	TupleDescAttr(batch->target.desc, batch->target.columns.key - 1);
	SortSupportData sort = {.ssup_cxt = CurrentMemoryContext,
		.ssup_collation = attribute->attcollation,
	.ssup_attno = 1};
	TypeCacheEntry *type = lookup_type_cache(attribute->atttypid,
											 TYPECACHE_LT_OPR);
	int			n = 0;

	for (int i = work->lo; i < work->hi; i++)
	{
		work->at = i;
		batch->row_of[i - work->lo] = -1;
		if (work->events[i]->skipped)
			continue;
		pj_deadline_begin(batch->timeout_ms);
		if (event_key(batch, work->events[i], &places[n].key))
			places[n++].event = i;
		pj_deadline_end();
	}
	pj_deadline_begin(batch->timeout_ms);
	PrepareSortSupportFromOrderingOp(type->lt_opr, &sort);
	qsort_arg(places, n, sizeof(KeyPlace), compare_places, &sort);
	for (int p = 0; p < n; p++)
	{
		if (p == 0 || compare_keys(&places[p - 1], &places[p], &sort) != 0)
			add_row(batch, places[p].key);
		batch->row_of[places[p].event - work->lo] = batch->nrows - 1;
	}
	pj_deadline_end();
}

/* ---- folding ---- */

/* Has the row seen this event?  An error if it has seen another in its place. */
static bool
has_seen(const FoldBatch *batch, const PjFoldRow *row, const PjEvent *event)
{
	const PjFoldColumns *columns = &batch->target.columns;
	int64		version;

	if (!row->present)
		return false;
	if (columns->log_seq)
		return !row->nulls[columns->log_seq - 1] &&
			DatumGetInt64(row->values[columns->log_seq - 1]) >=
			pj_event_log_seq(event);
	if (row->nulls[columns->version - 1])
		return false;
	version = DatumGetInt64(row->values[columns->version - 1]);
	if (version == pj_event_sequence(event) &&
		!row->nulls[columns->event_id - 1] &&
		memcmp(DatumGetUUIDP(row->values[columns->event_id - 1]),
			   DatumGetUUIDP(pj_event_id(event)), UUID_LEN) != 0)
		ereport(ERROR,
				errcode(ERRCODE_PJ_EVENT_MISMATCH),
				errmsg("row of aggregate \"%s\" has seen another event %lld",
					   TextDatumGetCString(pj_event_aggregate(event)),
					   (long long) version),
				errdetail("Its last_event_id is not that of the event in the log."),
				errhint("Compare the log with a backup, or rebuild the aggregate."));
	return version >= pj_event_sequence(event);
}

/* Put the event's stamp on a row. */
static void
stamp_row(const FoldBatch *batch, Datum *values, bool *nulls,
		  const PjEvent *event)
{
	const PjFoldColumns *columns = &batch->target.columns;

	/* its memory is the event's */
	values[columns->event_id - 1] = pj_event_id(event);
	values[columns->version - 1] = event->values[PJ_EVENT_SEQUENCE_NUMBER];
	nulls[columns->event_id - 1] = nulls[columns->version - 1] = false;
	if (columns->log_seq)
	{
		values[columns->log_seq - 1] = event->values[PJ_EVENT_LOG_SEQ];
		nulls[columns->log_seq - 1] = false;
	}
}

/*
 * May this be the tenant, or the key?  If the key is not the aggregate, keys
 * that are equal mean the same row, however they are written.
 */
static bool
is_own(FoldBatch *batch, AttrNumber attno, Datum value, Datum expected)
{
	return pj_fold_same(&batch->target, attno, value, expected) ||
		(attno == batch->target.columns.key && batch->kept->code->key &&
		 pj_fold_equal(&batch->target, attno, value, expected));
}

/* A fold must leave tenant and key alone. */
static void
check_own(FoldBatch *batch, AttrNumber attno, Datum *values, bool *nulls,
		  Datum expected)
{
	if (!nulls[attno - 1] &&
		is_own(batch, attno, values[attno - 1], expected))
		return;
	ereport(ERROR,
			errcode(ERRCODE_PJ_ISOLATION),
			errmsg("fold returned a row with another %s",
				   NameStr(TupleDescAttr(batch->target.desc, attno - 1)->attname)),
			errdetail("A row's tenant and key are those of the event."),
			errhint("Set both from the event when the row is null, and leave them alone otherwise."));
}

/* A row found by its key may be that of another tenant or aggregate. */
static void
check_found(FoldBatch *batch, AttrNumber attno, const PjFoldRow *row,
			Datum expected, Datum id)
{
	Form_pg_attribute attribute = TupleDescAttr(batch->target.desc, attno - 1);
	Oid			output;
	bool		varlena;

	if (is_own(batch, attno, row->values[attno - 1], expected))
		return;
	getTypeOutputInfo(attribute->atttypid, &output, &varlena);
	ereport(ERROR,
			errcode(ERRCODE_PJ_ISOLATION),
			errmsg("row of \"%s\" is that of \"%s\"",
				   TextDatumGetCString(id),
				   OidOutputFunctionCall(output, row->values[attno - 1])),
			errdetail("To column \"%s\" both are equal, but they are different ids.",
					  NameStr(attribute->attname)),
			errhint("Make the column of type text, with a collation that is deterministic."));
}

/* The values that a row has are no longer needed. */
static void
forget_values(FoldBatch *batch, PjFoldRow *row)
{
	for (int i = 0; i < batch->target.desc->natts; i++)
		pj_fold_set(&batch->target, row, i, (Datum) 0, true);
}

/* Call the fold's function.  Returns false if it returned null. */
static bool
call_function(FoldBatch *batch, PjFoldRow *row, const PjEvent *event,
			  Datum *values, bool *nulls)
{
	LOCAL_FCINFO(fcinfo, 2);
	bool		event_nulls[PJ_EVENT_COLUMNS] = {false};
	PgStat_FunctionCallUsage usage;
	HeapTupleHeader result;
	HeapTupleData tuple;

	InitFunctionCallInfoData(*fcinfo, &batch->function, 2, InvalidOid, NULL,
							 NULL);
	fcinfo->args[0].isnull = !row->present;
	if (row->present)
		fcinfo->args[0].value =
			HeapTupleGetDatum(heap_form_tuple(batch->target.desc, row->values,
											  row->nulls));
	fcinfo->args[1].isnull = false;
	fcinfo->args[1].value =
		HeapTupleGetDatum(heap_form_tuple(batch->event_desc,
										  (Datum *) event->values,
										  event_nulls));
	pgstat_init_function_usage(fcinfo, &usage);
	result = (HeapTupleHeader) DatumGetPointer(FunctionCallInvoke(fcinfo));
	pgstat_end_function_usage(&usage, true);
	if (fcinfo->isnull)
		return false;

	result = DatumGetHeapTupleHeader(PointerGetDatum(result));
	tuple.t_len = HeapTupleHeaderGetDatumLength(result);
	tuple.t_data = result;
	ItemPointerSetInvalid(&tuple.t_self);
	tuple.t_tableOid = InvalidOid;
	heap_deform_tuple(&tuple, batch->target.desc, values, nulls);
	return true;
}

/* Fold an event into its row by calling the function. */
static void
fold_by_function(FoldBatch *batch, PjFoldRow *row, const PjEvent *event)
{
	int			natts = batch->target.desc->natts;
	MemoryContext caller = MemoryContextSwitchTo(batch->per_event);
	Datum	   *values = palloc(sizeof(Datum) * natts);
	bool	   *nulls = palloc(sizeof(bool) * natts);
	HeapTuple	before = row->tuple;
	bool		present = call_function(batch, row, event, values, nulls);

	if (present)
	{
		check_own(batch, batch->target.columns.tenant, values, nulls,
				  batch->target.tenant);
		check_own(batch, batch->target.columns.key, values, nulls, row->key);
		stamp_row(batch, values, nulls, event);
	}
	MemoryContextSwitchTo(caller);

	/* what lives on is a copy of its own */
	forget_values(batch, row);
	row->tuple = present ? heap_form_tuple(batch->target.desc, values, nulls) :
		NULL;
	if (present)
		heap_deform_tuple(row->tuple, batch->target.desc, row->values,
						  row->nulls);
	row->present = present;
	batch->target.bytes -= row->size;
	row->size = row->tuple ? row->tuple->t_len : 0;
	batch->target.bytes += row->size;
	if (before)
		heap_freetuple(before);
	MemoryContextReset(batch->per_event);
}

/* The runtime's own columns get values that belong to others. */
static void
disown_runtime_columns(FoldBatch *batch, PjFoldRow *row)
{
	const PjFoldColumns *columns = &batch->target.columns;

	pj_fold_set(&batch->target, row, columns->tenant - 1, (Datum) 0, true);
	pj_fold_set(&batch->target, row, columns->key - 1, (Datum) 0, true);
	pj_fold_set(&batch->target, row, columns->event_id - 1, (Datum) 0, true);
}

/* A new row starts from the columns' defaults. */
static void
start_row(FoldBatch *batch, PjFoldRow *row)
{
	PjFoldCode *code = batch->kept->code;
	TupleDesc	desc = batch->target.desc;

	for (int i = 0; i < desc->natts; i++)
	{
		Datum		value = (Datum) 0;
		bool		isnull = true;

		batch->at_column = i + 1;
		batch->at_default = true;
		if (code->defaults[i])
			value = ExecEvalExpr(code->defaults[i], code->econtext, &isnull);
		if (!isnull)
			value = datumCopy(value, TupleDescAttr(desc, i)->attbyval,
							  TupleDescAttr(desc, i)->attlen);
		pj_fold_set(&batch->target, row, i, value, isnull);
	}
	batch->at_column = 0;
	batch->at_default = false;
	disown_runtime_columns(batch, row);
	row->values[batch->target.columns.tenant - 1] = batch->target.tenant;
	row->values[batch->target.columns.key - 1] = row->key;
	row->nulls[batch->target.columns.tenant - 1] =
		row->nulls[batch->target.columns.key - 1] = false;
	row->present = true;
}

/* Fold an event into its row by evaluating the expressions. */
static void
fold_by_expressions(FoldBatch *batch, PjFoldRow *row, const PjEvent *event)
{
	PjFoldCode *code = batch->kept->code;
	TupleDesc	desc = batch->target.desc;
	Datum		values[MaxHeapAttributeNumber];
	bool		nulls[MaxHeapAttributeNumber];
	bool		kept[MaxHeapAttributeNumber];

	if (!row->present)
		start_row(batch, row);

	/* all see the row as it was */
	ExecClearTuple(code->row_slot);
	memcpy(code->row_slot->tts_values, row->values,
		   sizeof(Datum) * desc->natts);
	memcpy(code->row_slot->tts_isnull, row->nulls, sizeof(bool) * desc->natts);
	ExecStoreVirtualTuple(code->row_slot);
	pj_fold_set_event(code, event);
	for (int i = 0; i < code->ncolumns; i++)
	{
		batch->at_column = code->attnos[i];
		values[i] = ExecEvalExprSwitchContext(code->columns[i],
											  code->econtext, &nulls[i]);
	}
	batch->at_column = 0;

	for (int i = 0; i < code->ncolumns; i++)
	{
		int			place = code->attnos[i] - 1;
		Form_pg_attribute attribute = TupleDescAttr(desc, place);

		/* a value that was passed on is where it was */
		kept[i] = !nulls[i] && !row->nulls[place] && !attribute->attbyval &&
			values[i] == row->values[place];
		if (!nulls[i] && !kept[i])
			values[i] = datumCopy(values[i], attribute->attbyval,
								  attribute->attlen);
	}
	for (int i = 0; i < code->ncolumns; i++)
		if (!kept[i])
			pj_fold_set(&batch->target, row, code->attnos[i] - 1, values[i],
						nulls[i]);
	stamp_row(batch, row->values, row->nulls, event);
	ResetExprContext(code->econtext);
}

/*
 * Hash rows that have been read, or that events have been folded into.  No code
 * of the projection's runs meanwhile.
 */
static void
hash_rows(FoldBatch *batch, PjFoldRow *rows, int n, bool after)
{
	PjHasher	hasher;

	if (!pj_digest_is_kept(batch->work->projection))
		return;
	pj_hasher_begin(&hasher, batch->target.heap, batch->work->projection, 0);
	for (int i = 0; i < n; i++)
	{
		PjFoldRow  *row = &rows[i];
		PjDigest	now = {.layout = hasher.layout};

		if (after && !row->touched)
			continue;
		if (row->present)
			pj_hasher_row(&hasher, row->values, row->nulls, &now);
		if (after)
		{
			pj_digest_add(&batch->work->digest, &now);
			pj_digest_subtract(&batch->work->digest, &row->before);
		}
		else
			row->before = now;
	}
	pj_hasher_end(&hasher);
}

/* Read rows, to fold events into them. */
static void
load_rows(FoldBatch *batch, PjFoldRow *rows, int n)
{
	pj_fold_load(&batch->target, rows, n);
	hash_rows(batch, rows, n, false);
}

/*
 * Write the rows that have changed.  What is found out only now may be any
 * event's fault.
 */
static void
write_rows(FoldBatch *batch)
{
	batch->work->at = PJ_UNKNOWN;
	pj_deadline_begin(batch->timeout_ms);
	pj_fold_write(&batch->target, batch->rows, batch->nrows);
	hash_rows(batch, batch->rows, batch->nrows, true);
	pj_deadline_end();
}

/*
 * The rows have become large: write those that have changed, and forget them.
 * They are read again if there are more events for them.
 */
static void
flush_rows(FoldBatch *batch)
{
	write_rows(batch);
	for (int i = 0; i < batch->nrows; i++)
		if (batch->rows[i].touched)
		{
			pj_fold_forget(&batch->target, &batch->rows[i]);
			batch->rows[i].touched = false;
		}
}

/* A row found by its key must be that of the event. */
static void
check_row(FoldBatch *batch, const PjFoldRow *row, const PjEvent *event)
{
	if (!row->stored || row->changed)
		return;
	check_found(batch, batch->target.columns.tenant, row, batch->target.tenant,
				pj_event_tenant(event));
	check_found(batch, batch->target.columns.key, row, row->key,
				pj_event_aggregate(event));
}

/* Fold all events into their rows, in order. */
static void
fold_events(FoldBatch *batch)
{
	PjWork	   *work = batch->work;
	bool		one_by_one = pj_fold_has_triggers(batch->target.heap);

	for (int i = work->lo; i < work->hi; i++)
	{
		const PjEvent *event = work->events[i];
		int			which = batch->row_of[i - work->lo];
		PjFoldRow  *row = &batch->rows[Max(which, 0)];

		work->at = i;
		if (event->skipped || which < 0)
			continue;
		if (!row->loaded)
			load_rows(batch, row, 1);
		check_row(batch, row, event);
		if (has_seen(batch, row, event))
			continue;
		CHECK_FOR_INTERRUPTS();
		pj_set_replay(event->replay);
		pj_deadline_begin(batch->timeout_ms);
		if (OidIsValid(batch->kept->function))
			fold_by_function(batch, row, event);
		else
			fold_by_expressions(batch, row, event);
		row->changed = row->touched = true;
		if (one_by_one)
			pj_fold_write_now(&batch->target, row);
		else
			pj_fold_check(&batch->target, row);
		pj_deadline_end();
		pj_raise_caught_cancel();
		pj_check_pinned();
		if (batch->target.bytes > PJ_BATCH_BYTES)
			flush_rows(batch);
	}
}

/* Get ready to fold, in memory of the batch's own. */
static void
begin_fold(FoldBatch *batch)
{
	batch->context = AllocSetContextCreate(CurrentMemoryContext,
										   "projector fold batch",
										   ALLOCSET_DEFAULT_SIZES);
	batch->caller = MemoryContextSwitchTo(batch->context);
	PushCopiedSnapshot(GetTransactionSnapshot());
	lock_and_compile(batch->kept, batch->work->projection);
	batch->kept->running = true;
	if (OidIsValid(batch->kept->function))
		fmgr_info(batch->kept->function, &batch->function);
	batch->event_desc = lookup_rowtype_tupdesc(pj_event_type_oid(), -1);
	batch->per_event = AllocSetContextCreate(batch->context,
											 "projector fold event",
											 ALLOCSET_DEFAULT_SIZES);
	pj_fold_open(&batch->target, batch->work->projection, batch->kept->target,
				 batch->work->table, batch->work->tenant);
}

static void
end_fold(FoldBatch *batch)
{
	pj_fold_close(&batch->target);
	ReleaseTupleDesc(batch->event_desc);
	batch->kept->running = false;
	PopActiveSnapshot();
	MemoryContextSwitchTo(batch->caller);
	MemoryContextDelete(batch->context);
}

/* Says which expression an error happened in. */
static void
describe_column(void *arg)
{
	const FoldBatch *batch = arg;
	const char *name;

	if (batch->at_column == 0)
		return;
	name = NameStr(TupleDescAttr(batch->target.desc,
								 batch->at_column - 1)->attname);
	if (batch->at_default)
		errcontext("default of column \"%s\"", name);
	else
		errcontext("expression for %s \"%s\"",
				   batch->at_column == batch->target.columns.key ?
				   "key column" : "column", name);
}

/* The part of a batch that runs as the projection's owner. */
static void
run_fold(void *arg)
{
	FoldBatch  *batch = arg;
	PjWork	   *work = batch->work;
	int			n = work->hi - work->lo;
	ErrorContextCallback callback = {error_context_stack, describe_column,
	batch};

	begin_fold(batch);
	error_context_stack = &callback;
	batch->rows = palloc(sizeof(PjFoldRow) * n);
	batch->row_of = palloc(sizeof(int) * n);
	if (batch->kept->code->key)
		rows_by_key(batch);
	else
		rows_by_aggregate(batch);
	work->at = PJ_UNKNOWN;
	pj_deadline_begin(batch->timeout_ms);
	load_rows(batch, batch->rows, batch->nrows);
	pj_deadline_end();
	fold_events(batch);
	write_rows(batch);
	error_context_stack = callback.previous;
	end_fold(batch);
}

/* ---- tracing ---- */

/* The key of the row that is traced, as its column's type has it. */
static Datum
traced_key(FoldBatch *batch, Datum key)
{
	Form_pg_attribute attribute =
	TupleDescAttr(batch->target.desc, batch->target.columns.key - 1);
	Oid			input,
				ioparam;

	if (batch->kept->code->key == NULL)
		return pj_id_as(key, attribute);
	getTypeInputInfo(attribute->atttypid, &input, &ioparam);
	return OidInputFunctionCall(input, TextDatumGetCString(key), ioparam,
								attribute->atttypmod);
}

/* A row as jsonb, written as verify would write it. */
static Datum
row_as_json(FoldBatch *batch, const PjFoldRow *row)
{
	FmgrInfo	to_jsonb;
	Oid			type = batch->target.heap->rd_rel->reltype;
	HeapTuple	tuple = heap_form_tuple(batch->target.desc, row->values,
										row->nulls);
	int			level = NewGUCNestLevel();
	Datum		json;

	fmgr_info(F_TO_JSONB, &to_jsonb);
	fmgr_info_set_expr((Node *) makeFuncExpr(F_TO_JSONB, JSONBOID,
											 list_make1(makeNullConst(type, -1, InvalidOid)),
											 InvalidOid, InvalidOid,
											 COERCE_EXPLICIT_CALL), &to_jsonb);
	pj_pin_settings();
	json = FunctionCall1(&to_jsonb, HeapTupleGetDatum(tuple));
	AtEOXact_GUC(false, level);
	return json;
}

/* Fold the events that are the row's. */
static void
trace_events(FoldBatch *batch, PjFoldTrace *trace, PjFoldRow *row)
{
	PjWork	   *work = batch->work;
	MemoryContext caller = CurrentMemoryContext;

	for (int i = work->lo; i < work->hi; i++)
	{
		const PjEvent *event = work->events[i];
		bool		before = row->present;
		Datum		key;

		CHECK_FOR_INTERRUPTS();
		work->at = i;
		if (event->skipped)
			continue;
		if (batch->kept->code->key &&
			(!event_key(batch, event, &key) ||
			 !pj_fold_equal(&batch->target, batch->target.columns.key, key,
							row->key)))
			continue;
		if (has_seen(batch, row, event))
			continue;
		if (OidIsValid(batch->kept->function))
			fold_by_function(batch, row, event);
		else
			fold_by_expressions(batch, row, event);
		pj_fold_check(&batch->target, row);
		if (!before && !row->present)
			continue;
		MemoryContextSwitchTo(batch->per_event);
		trace->watch(trace->arg, event,
					 row->present ? row_as_json(batch, row) : (Datum) 0);
		MemoryContextSwitchTo(caller);
		MemoryContextReset(batch->per_event);
	}
}

/* A batch being traced. */
typedef struct Tracing
{
	FoldBatch	batch;
	PjFoldTrace *trace;
} Tracing;

/* The part that runs as the projection's owner. */
static void
run_trace(void *arg)
{
	Tracing    *tracing = arg;
	FoldBatch  *batch = &tracing->batch;
	PjFoldTrace *trace = tracing->trace;
	PjFoldRow	row = {.present = trace->row != NULL,.tuple = NULL};
	MemoryContext caller;
	int			natts;

	begin_fold(batch);
	natts = batch->target.desc->natts;
	row.key = traced_key(batch, trace->key);
	row.values = palloc(sizeof(Datum) * natts);
	row.nulls = palloc(sizeof(bool) * natts);
	row.owned = palloc0(sizeof(bool) * natts);
	if (trace->row)
		heap_deform_tuple(trace->row, batch->target.desc, row.values,
						  row.nulls);
	pj_set_replay(true);
	trace_events(batch, trace, &row);
	caller = MemoryContextSwitchTo(trace->context);
	trace->row = row.present ? heap_form_tuple(batch->target.desc, row.values,
											   row.nulls) : NULL;
	MemoryContextSwitchTo(caller);
	end_fold(batch);
}

/*
 * Can it be told without writing rows what events make of them?  Not if
 * triggers change rows as they are written.
 */
bool
pj_fold_can_trace(const PjProjection *projection)
{
	Relation	target = table_open(pj_target_oid(projection, 0),
									AccessShareLock);
	bool		possible = !pj_fold_has_triggers(target);

	table_close(target, AccessShareLock);
	return possible;
}

/* Fold events into one row, in memory, as they have been applied before. */
void
pj_fold_trace(PjWork *work, PjFoldTrace *trace)
{
	Tracing		tracing = {{.work = work,.kept = find_kept(work->projection)},
	trace};

	pj_kind_run(work, false, run_trace, &tracing);
}

static void
fold_apply(PjWork *work)
{
	FoldBatch	batch = {.work = work,.kept = find_kept(work->projection),
	.timeout_ms = pj_kind_timeout(work->projection)};

	pj_kind_run(work, true, run_fold, &batch);
}

const PjKind pj_kind_fold = {
	.id = PJ_KIND_FOLD,
	.check = fold_check,
	.source_text = fold_source_text,
	.problem = fold_problem,
	.retry_code = fold_retry,
	.sweep = fold_sweep,
	.apply = fold_apply,
};

const PjKind pj_kind_fold_columns = {
	.id = PJ_KIND_FOLD_COLUMNS,
	.check = fold_check,
	.source_text = fold_source_text,
	.problem = fold_problem,
	.retry_code = fold_retry,
	.sweep = fold_sweep,
	.apply = fold_apply,
};
