/*
 * verify.c
 *	  Check that a read model is what the log implies (verify), and show
 *	  what another definition would change (preview).
 *
 * Both replay on trial (dry_run.c) and change nothing.
 */
#include "base/compat.h"

#include "fmgr.h"
#include "funcapi.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/json.h"
#include "utils/jsonb.h"
#include "utils/memutils.h"
#include "utils/tuplestore.h"

#include "base/args.h"
#include "ipc/operation.h"
#include "kinds/change.h"
#include "kinds/definition.h"
#include "log/log_read.h"
#include "rebuild/clear.h"
#include "rebuild/dry_run.h"
#include "rebuild/tenant.h"
#include "registry/projection.h"
#include "registry/target.h"
#include "registry/target_guard.h"
#include "sandbox/user_context.h"

PG_FUNCTION_INFO_V1(projector_verify);
PG_FUNCTION_INFO_V1(projector_preview);

/* Number of differing rows that verify shows. */
#define SAMPLE_ROWS	10

/* ---- verify ---- */

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

/* Returns the differences as an array of objects. */
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
	int64		ndone;			/* tenants that have been verified */
} Verification;

static void
verify_tenant(const PjDestination *place, Verification *verification,
			  Datum tenant)
{
	PjTrial		trial = {.bounded = true,.max = SAMPLE_ROWS};
	Datum		values[6] = {tenant};
	bool		nulls[6] = {false};

	pj_operation_pair(verification->projection->id, tenant);
	pj_trial_enter(&trial, verification->projection, tenant);
	pj_trial_run(place, &trial);
	pj_operation_tenants(++verification->ndone);
	values[1] = BoolGetDatum(trial.ndifferences == 0);
	values[2] = CStringGetTextDatum(pj_digest_text(&trial.live_digest));
	values[3] = CStringGetTextDatum(pj_digest_text(&trial.rebuilt_digest));
	values[4] = Int64GetDatum(trial.ndifferences);
	values[5] = sample_of(&trial);
	nulls[5] = trial.ndifferences == 0;
	tuplestore_putvalues(verification->result->setResult,
						 verification->result->setDesc, values, nulls);
}

/*
 * Verify these tenants, without those in "except"; each with separate memory.
 */
static void
verify_each(const PjDestination *place, Verification *verification,
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
 * Verify one tenant; or all tenants in the log, and those found only in the
 * read model.
 */
static void
verify_tenants(const PjDestination *place, void *arg)
{
	Verification *verification = arg;
	Datum		types = verification->projection->event_types;
	PjTenants	all;
	Datum	   *others;
	int			n;

	if (verification->tenant)
	{
		PjPair		pair;

		pj_pair_look(&pair, verification->projection, verification->tenant);
		pj_tenant_require(&pair);
		pj_operation_total(pj_source_estimate(verification->tenant, 0,
											  PG_INT64_MAX, types), 1);
		verify_each(place, verification, &verification->tenant, 1, NULL);
		return;
	}
	n = pj_clear_tenants(verification->projection, &others);
	pj_source_tenants(&all);
	pj_operation_total(pj_source_estimate(0, 0, PG_INT64_MAX, types),
					   all.count);
	verify_each(place, verification, all.tenants, all.count, NULL);
	verify_each(place, verification, others, n, &all);
}

/* Compares a read model with the result of a rebuild. */
Datum
projector_verify(PG_FUNCTION_ARGS)
{
	char	   *name = pj_required_name(fcinfo, 0, "name");
	Verification verification = {
		.tenant = pj_optional_text(fcinfo, 1, "tenant_id"),
		.result = (ReturnSetInfo *) fcinfo->resultinfo,
	};
	PjContext	saved;

	verification.projection = pj_take_alone("projector_verify", name,
											verification.tenant);
	InitMaterializedSRF(fcinfo, 0);
	pj_guard_report_writes(verification.projection);
	pj_enter_internal(&saved);
	pj_operation_begin(PJ_DOES_VERIFY, verification.projection->id);
	pj_trials(verification.projection, verify_tenants, &verification);
	pj_operation_end();
	pj_leave_internal(&saved);

	PG_RETURN_NULL();
}

/* ---- preview ---- */

/* One aggregate can be previewed only if its rows are known. */
static void
check_one_aggregate(const PjProjection *projection)
{
	if (pj_clear_by_aggregate(projection))
		return;
	ereport(ERROR,
			errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			errmsg("projection \"%s\" cannot be previewed for one aggregate",
				   projection->name),
			errdetail("Only a fold whose key is the aggregate knows which rows belong to an aggregate."),
			errhint("Leave out aggregate_id."));
}

static void
run_trial(const PjDestination *place, void *arg)
{
	pj_trial_run(place, arg);
}

/* Lists the rows that another definition would change. */
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
	projection = pj_take_alone("projector_preview", name, tenant);
	definition = pj_definition_of(projection);
	(void) pj_definition_change(&definition, changes);
	if (definition.owner != pj_projection_role(projection))
		ereport(ERROR,
				errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				errmsg("projector_preview cannot change the owner of projection \"%s\"",
					   projection->name),
				errhint("Use projector_alter."));
	pj_definition_check(&definition, pj_projection_owner(projection));
	pj_projection_changed(projection, &definition, &changed);
	if (trial.aggregate)
		check_one_aggregate(&changed);

	InitMaterializedSRF(fcinfo, 0);
	pj_enter_internal(&saved);
	pj_trial_enter(&trial, &changed, tenant);
	pj_tenant_require(&trial.pair);
	pj_operation_begin(PJ_DOES_PREVIEW, projection->id);
	pj_operation_pair(projection->id, tenant);
	if (trial.aggregate == 0)
		pj_operation_total(pj_source_estimate(tenant, 0, PG_INT64_MAX,
											  changed.event_types), 1);
	pj_trials(&changed, run_trial, &trial);
	pj_operation_end();
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
