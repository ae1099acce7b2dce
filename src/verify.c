/*
 * verify.c
 *	  Proving that a read model is what the log implies, and finding out what
 *	  would be otherwise: digests, verify, preview and explain.
 *
 * All of them replay on trial (trial.c) and change nothing.
 */
#include "compat.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "fmgr.h"
#include "funcapi.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "storage/lockdefs.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/json.h"
#include "utils/jsonb.h"
#include "utils/memutils.h"
#include "utils/tuplestore.h"

#include "args.h"
#include "change.h"
#include "clear.h"
#include "context.h"
#include "definition.h"
#include "lock.h"
#include "model.h"
#include "projection.h"
#include "source.h"
#include "statement.h"
#include "target.h"
#include "targetguard.h"
#include "trial.h"

PG_FUNCTION_INFO_V1(projector_digest);
PG_FUNCTION_INFO_V1(projector_digest_all);
PG_FUNCTION_INFO_V1(projector_verify);
PG_FUNCTION_INFO_V1(projector_preview);
PG_FUNCTION_INFO_V1(projector_explain);

/* So many differing rows are shown by verify. */
#define SAMPLE_ROWS	10

static PjStatement select_events = {
	.sql = "SELECT e.log_seq, e.aggregate_id, e.sequence_number, e.event_type,"
	" e.recorded_at, e.payload FROM projector.events e"
	" WHERE e.tenant_id = $1 AND e.aggregate_id = $2 AND e.sequence_number <="
	" (SELECT last_sequence_number FROM projector.projection_offsets o"
	" WHERE o.projection_id = $3 AND o.tenant_id = $1 AND o.aggregate_id = $2)"
	" AND ($4 IS NULL OR e.event_type = ANY ($4))"
	" ORDER BY e.sequence_number",
	.expect = SPI_OK_SELECT,
	.nargs = 4,
	.argtypes = {TEXTOID, TEXTOID, INT4OID, TEXTARRAYOID},
};

static PjStatement select_event = {
	.sql = "SELECT e.log_seq, e.aggregate_id, e.sequence_number, e.event_type,"
	" e.recorded_at, e.payload FROM projector.events e"
	" WHERE e.tenant_id = $1 AND e.log_seq = $2",
	.expect = SPI_OK_SELECT,
	.nargs = 2,
	.argtypes = {TEXTOID, INT8OID},
};

/* ---- digests ---- */

/* The digest of a tenant's rows; that of handlers and statements is kept. */
static char *
find_digest(PjProjection *projection, Datum tenant)
{
	PjDigest	digest;
	PjContext	saved;
	PjPair		pair;

	pj_refuse_dormant(projection);
	pj_model_digest(projection, tenant, NULL, &digest);
	if (projection->options.digest && !pj_is_fold(projection->kind) &&
		!XactReadOnly && !RecoveryInProgress())
	{
		pj_enter_internal(&saved);
		pj_pair_look(&pair, projection, tenant);
		pj_digest_set(projection->id, tenant, &digest, pair.last_log_seq);
		pj_leave_internal(&saved);
	}
	return pj_digest_text(&digest);
}

/* See the install script. */
Datum
projector_digest(PG_FUNCTION_ARGS)
{
	char	   *name = pj_required_name(fcinfo, 0, "name");
	Datum		tenant = pj_required_text(fcinfo, 1, "tenant_id");

	pj_refuse_in_user_code("projector_digest");
	PG_RETURN_TEXT_P(cstring_to_text(find_digest(pj_projection_find(name),
												 tenant)));
}

static int
compare_names(const void *a, const void *b)
{
	return strcmp((*(PjProjection *const *) a)->name,
				  (*(PjProjection *const *) b)->name);
}

/* See the install script. */
Datum
projector_digest_all(PG_FUNCTION_ARGS)
{
	Datum		tenant = pj_required_text(fcinfo, 0, "tenant_id");
	PjProjection **projections;
	int			n = pj_projections_in_order(&projections);
	StringInfoData all;
	PjDigest	digest;

	pj_refuse_in_user_code("projector_digest_all");
	qsort(projections, n, sizeof(PjProjection *), compare_names);
	initStringInfo(&all);
	for (int i = 0; i < n; i++)
		appendStringInfo(&all, "%s %s\n", projections[i]->name,
						 find_digest(projections[i], tenant));
	digest.high = hash_bytes_extended((unsigned char *) all.data, all.len, 0);
	digest.low = hash_bytes_extended((unsigned char *) all.data, all.len, 1);
	PG_RETURN_TEXT_P(cstring_to_text(pj_digest_text(&digest)));
}

/* ---- verify ---- */

/*
 * The projection, with one tenant's pair or all of them to ourselves.
 */
static PjProjection *
lock_alone(const char *function, const char *name, Datum tenant)
{
	PjProjection *projection;

	pj_require_read_committed(function);
	pj_refuse_in_user_code(function);
	projection = pj_projection_own(name, tenant ? ShareLock : ExclusiveLock);
	pj_refuse_dormant(projection);
	if (tenant)
	{
		pj_lock_pair(projection->id, tenant, ExclusiveLock, true);
		pj_lock_driver(projection->id, tenant, true);
	}
	return projection;
}

static void
add_text(StringInfo json, const char *name, const char *value)
{
	appendStringInfo(json, "%s\"%s\": ", json->data[json->len - 1] == '{' ?
					 "" : ", ", name);
	if (value)
		escape_json(json, value);
	else
		appendStringInfoString(json, "null");
}

static void
add_json(StringInfo json, const char *name, Datum value)
{
	appendStringInfo(json, ", \"%s\": %s", name, value ?
					 JsonbToCString(NULL, &DatumGetJsonbP(value)->root,
									VARSIZE(DatumGetPointer(value))) : "null");
}

static const char *
shown_key(const PjDifference *difference)
{
	return difference->shown ? difference->shown : difference->key;
}

/* The differences, as an array of objects. */
static Datum
sample_of(const PjTrial *trial)
{
	StringInfoData json;

	initStringInfo(&json);
	appendStringInfoChar(&json, '[');
	for (int i = 0; i < trial->nshown; i++)
	{
		const PjDifference *difference = &trial->differences[i];

		appendStringInfoString(&json, json.len > 1 ? ", {" : "{");
		add_text(&json, "key", shown_key(difference));
		add_json(&json, "live", difference->live);
		add_json(&json, "rebuilt", difference->rebuilt);
		appendStringInfoChar(&json, '}');
	}
	appendStringInfoChar(&json, ']');
	return DirectFunctionCall1(jsonb_in, CStringGetDatum(json.data));
}

typedef struct Verification
{
	PjProjection *projection;
	Datum		tenant;			/* 0 for all */
	ReturnSetInfo *result;
} Verification;

static void
verify_tenant(PjTrialPlace *place, const Verification *verification,
			  Datum tenant)
{
	PjTrial		trial = {.bounded = true,.max = SAMPLE_ROWS};
	Datum		values[6] = {tenant};
	bool		nulls[6] = {false};

	pj_trial_enter(&trial, verification->projection, tenant);
	pj_trial_run(place, &trial);
	values[1] = BoolGetDatum(trial.ndifferences == 0);
	values[2] = CStringGetTextDatum(pj_digest_text(&trial.live_digest));
	values[3] = CStringGetTextDatum(pj_digest_text(&trial.rebuilt_digest));
	values[4] = Int64GetDatum(trial.ndifferences);
	values[5] = sample_of(&trial);
	nulls[5] = trial.ndifferences == 0;
	tuplestore_putvalues(verification->result->setResult,
						 verification->result->setDesc, values, nulls);
}

/* Some tenants, except those that are among others; each in its own memory. */
static void
verify_each(PjTrialPlace *place, const Verification *verification,
			const Datum *tenants, int n, const PjTenants *except)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "projector verify",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);

	for (int i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (except && pj_text_among(tenants[i], except->tenants, except->count))
			continue;
		verify_tenant(place, verification, tenants[i]);
		MemoryContextReset(context);
	}
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(context);
}

/*
 * Every tenant of the log, and those that are in the read model alone; or one.
 */
static void
verify_tenants(PjTrialPlace *place, void *arg)
{
	Verification *verification = arg;
	PjTenants	all;
	Datum	   *others;
	int			n;

	if (verification->tenant)
	{
		verify_each(place, verification, &verification->tenant, 1, NULL);
		return;
	}
	n = pj_clear_tenants(verification->projection, &others);
	pj_source_tenants(&all);
	verify_each(place, verification, all.tenants, all.count, NULL);
	verify_each(place, verification, others, n, &all);
}

/* See the install script. */
Datum
projector_verify(PG_FUNCTION_ARGS)
{
	char	   *name = pj_required_name(fcinfo, 0, "name");
	Verification verification = {
		.tenant = pj_optional_text(fcinfo, 1, "tenant_id"),
		.result = (ReturnSetInfo *) fcinfo->resultinfo,
	};
	PjContext	saved;

	verification.projection = lock_alone("projector_verify", name,
										 verification.tenant);
	InitMaterializedSRF(fcinfo, 0);
	pj_guard_report_writes(verification.projection);
	pj_enter_internal(&saved);
	pj_trials(verification.projection, verify_tenants, &verification);
	pj_leave_internal(&saved);

	PG_RETURN_NULL();
}

/* ---- preview ---- */

/* Of one aggregate only the row of a fold whose key it is can be told. */
static void
check_one_aggregate(const PjProjection *projection)
{
	if (pj_clear_by_aggregate(projection))
		return;
	ereport(ERROR,
			errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			errmsg("projection \"%s\" cannot be previewed for one aggregate",
				   projection->name),
			errdetail("Which rows are those of an aggregate is known for folds only whose key is the aggregate."),
			errhint("Leave out aggregate_id."));
}

static void
run_trial(PjTrialPlace *place, void *arg)
{
	pj_trial_run(place, arg);
}

/* See the install script. */
Datum
projector_preview(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	char	   *name = pj_required_name(fcinfo, 0, "name");
	Jsonb	   *changes = DatumGetJsonbP(pj_required(fcinfo, 1, "changes"));
	Datum		tenant = pj_required_text(fcinfo, 2, "tenant_id");
	PjTrial		trial = {.aggregate = pj_optional_text(fcinfo, 3,
													   "aggregate_id"),
	.max = DatumGetInt32(pj_required(fcinfo, 4, "max_rows"))};
	PjProjection *projection;
	PjProjection changed;
	PjDefinition definition;
	PjContext	saved;

	if (trial.max < 1)
		ereport(ERROR,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("max_rows must be positive"));
	projection = lock_alone("projector_preview", name, tenant);
	definition = pj_definition_of(projection);
	(void) pj_definition_change(&definition, changes);
	pj_definition_check(&definition, pj_projection_owner(projection));
	pj_projection_changed(projection, &definition, &changed);
	if (trial.aggregate)
		check_one_aggregate(&changed);

	InitMaterializedSRF(fcinfo, 0);
	pj_enter_internal(&saved);
	pj_trial_enter(&trial, &changed, tenant);
	pj_trials(&changed, run_trial, &trial);
	pj_leave_internal(&saved);
	for (int i = 0; i < trial.nshown; i++)
	{
		const PjDifference *difference = &trial.differences[i];
		Datum		values[3] = {CStringGetTextDatum(shown_key(difference)),
		difference->live, difference->rebuilt};
		bool		nulls[3] = {false, difference->live == 0,
		difference->rebuilt == 0};

		tuplestore_putvalues(result->setResult, result->setDesc, values,
							 nulls);
	}
	PG_RETURN_NULL();
}

/* ---- explain ---- */

typedef struct Explanation
{
	ReturnSetInfo *result;
	Datum		key;
	Datum		before;			/* the row before the last event, or 0 */
	MemoryContext context;
} Explanation;

/* Add row i of the last result, with the state after that event. */
static void
add_event(const Explanation *explanation, int i, Datum state)
{
	Datum		values[7];
	bool		nulls[7] = {false};

	for (int column = 0; column < 6; column++)
		values[column] = pj_result(i, column + 1, &nulls[column]);
	values[6] = state;
	nulls[6] = state == 0;
	tuplestore_putvalues(explanation->result->setResult,
						 explanation->result->setDesc, values, nulls);
}

static bool
is_same_json(Datum a, Datum b)
{
	if (a == 0 || b == 0)
		return a == b;
	return compareJsonbContainers(&DatumGetJsonbP(a)->root,
								  &DatumGetJsonbP(b)->root) == 0;
}

/* An event has been replayed: was it one of the row's? */
static void
watch_event(PjTrial *trial, const PjReplay *replay)
{
	Explanation *explanation = trial->watcher;
	Datum		now = pj_trial_row(trial, explanation->key);
	Datum		values[2] = {trial->pair.tenant,
	Int64GetDatum(replay->last_log_seq)};
	MemoryContext caller;

	/* its stamp changes with every event; a row that is gone has none */
	if (is_same_json(now, explanation->before))
		return;
	pj_execute(&select_event, values, NULL);
	add_event(explanation, 0, now);
	caller = MemoryContextSwitchTo(explanation->context);
	explanation->before = now ? PointerGetDatum(DatumGetJsonbPCopy(now)) : 0;
	MemoryContextSwitchTo(caller);
}

/* See the install script. */
Datum
projector_explain(PG_FUNCTION_ARGS)
{
	char	   *name = pj_required_name(fcinfo, 0, "name");
	Datum		tenant = pj_required_text(fcinfo, 1, "tenant_id");
	Explanation explanation = {
		.result = (ReturnSetInfo *) fcinfo->resultinfo,
		.key = pj_required_text(fcinfo, 2, "key"),
		.context = CurrentMemoryContext,
	};
	PjTrial		trial = {.bounded = true,.watch = watch_event,
	.watcher = &explanation};
	PjProjection *projection = lock_alone("projector_explain", name, tenant);
	PjContext	saved;

	InitMaterializedSRF(fcinfo, 0);
	pj_enter_internal(&saved);
	if (pj_is_fold(projection->kind))
	{
		if (pj_clear_by_aggregate(projection))
			trial.aggregate = explanation.key;
		pj_trial_enter(&trial, projection, tenant);
		pj_trials(projection, run_trial, &trial);
	}
	else
	{
		Datum		values[4] = {tenant, explanation.key,
		Int32GetDatum(projection->id), projection->event_types};
		int			n = pj_execute(&select_events, values,
								   projection->event_types ? NULL : "   n");

		for (int i = 0; i < n; i++)
			add_event(&explanation, i, 0);
	}
	pj_leave_internal(&saved);

	PG_RETURN_NULL();
}
