/*
 * kind.c
 *	  What all kinds of projections share: how their code is found and run.
 */
#include "base/compat.h"

#include "utils/builtins.h"

#include "ipc/shmem.h"
#include "kinds/definition.h"
#include "registry/target_guard.h"
#include "sandbox/user_context.h"

static const PjKind *const kinds[] = {
	[PJ_KIND_HANDLER] = &pj_kind_handler,
	[PJ_KIND_FOLD] = &pj_kind_fold,
	[PJ_KIND_FOLD_COLUMNS] = &pj_kind_fold_columns,
	[PJ_KIND_STATEMENT] = &pj_kind_statement,
};

const PjKind *
pj_kind(PjKindId id)
{
	Assert(id < lengthof(kinds) && kinds[id]->id == id);
	return kinds[id];
}

/* Has the projection with this id been dropped? */
bool
pj_kind_is_gone(int32 id)
{
	return pj_projection_by_id(id) == NULL;
}

/*
 * Drop cached plans and compiled expressions of projections that have been
 * dropped.  While a projection's code runs, nothing is removed, because it may
 * be in use.
 */
void
pj_kinds_sweep(void)
{
	static uint64 swept = 0;
	PjProjection *projections;

	(void) pj_projections(&projections);
	if (swept == pj_projections_generation() || pj_user_code() != NULL)
		return;
	swept = pj_projections_generation();
	for (int i = 0; i < lengthof(kinds); i++)
		if (kinds[i]->sweep)
			kinds[i]->sweep();
	pj_definitions_sweep();
}

/* Error context callback: say at which event the error occurred. */
static void
describe_event(void *arg)
{
	const PjWork *work = arg;
	const PjEvent *event;

	if (geterrcode() == ERRCODE_INSUFFICIENT_PRIVILEGE)
		errhint("The code runs as the projection's owner \"%s\": grant it what is missing; with row-level security, it needs a policy that allows the rows of projector_tenant_id(). A handler that appends events needs option \"may_append\" and the privileges of an appender.",
				work->projection->owner);
	if (work->hi == work->lo)
	{
		errcontext("projection \"%s\", rows of tenant \"%s\"",
				   work->projection->name, work->tenant);
		return;
	}
	if (work->at == PJ_UNKNOWN && work->hi - work->lo > 1)
	{
		errcontext("projection \"%s\", %d events of tenant \"%s\"",
				   work->projection->name, work->hi - work->lo, work->tenant);
		return;
	}
	event = work->events[work->at == PJ_UNKNOWN ? work->lo : work->at];
	errcontext("projection \"%s\", event %lld (%s) of aggregate \"%s\" of tenant \"%s\"",
			   work->projection->name,
			   (long long) pj_event_sequence(event),
			   TextDatumGetCString(pj_event_type(event)),
			   TextDatumGetCString(pj_event_aggregate(event)),
			   work->tenant);
}

/*
 * Run a projection's code as its owner, in the sandbox.  If "lazy", body must
 * call pj_pin_user_code() before it runs anything that may depend on a
 * setting.
 */
void
pj_kind_run(PjWork *work, bool lazy, void (*body) (void *), void *arg)
{
	const PjProjection *projection = work->projection;
	PjUserCode	code;
	ErrorContextCallback callback = {error_context_stack, describe_event,
	work};

	error_context_stack = &callback;
	pj_user_code_init(&code, projection, work->tenant);
	code.lazy = lazy;
	pj_run_user_code(&code, body, arg);
	error_context_stack = callback.previous;
}

/*
 * Parse or plan a projection's code, to check that it is valid.  Planning
 * evaluates immutable functions, so it must be done in the sandbox, too.
 */
void
pj_kind_try(const PjDefinition *definition, Oid owner, void (*body) (void *),
			void *arg)
{
	PjUserCode	code = {
		.projection = definition->name,
		.owner = owner,
		.search_path = definition->search_path,
		.settings = pj_settings_parse(definition->settings),
		.tenant = "",
	};

	pj_run_user_code(&code, body, arg);
}

/*
 * Returns the time limit of one call of a projection's code, in ms; 0 means no
 * limit.
 */
int
pj_kind_timeout(const PjProjection *projection)
{
	return pj_is_worker() ? Max(projection->options.timeout / 1000, 1) : 0;
}
