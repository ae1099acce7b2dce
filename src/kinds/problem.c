/*
 * problem.c
 *	  Why a projection cannot run now: its owner, a target or its function
 *	  is missing, its registry row cannot be read, or the extension must be
 *	  updated.
 *
 * No event is to blame for this, so the projection stops as a whole.  Workers
 * and drains skip it, inline appends are queued, and no attempts are counted.
 * It continues automatically once the cause is gone, because this check is
 * made before every batch.
 *
 * The answer is cached until the registry row, a function, a role or one of
 * the targets changes, so that a check costs one lookup in a hash table.
 */
#include "base/compat.h"

#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "base/generation.h"
#include "base/version.h"
#include "kinds/definition.h"
#include "kinds/kind.h"
#include "kinds/problem.h"
#include "registry/function.h"
#include "registry/target.h"
#include "registry/target_guard.h"

typedef struct KeptProblem
{
	int32		id;				/* hash key */
	uint64		version;		/* version of the registry row */
	uint64		generation;		/* pj_code_generation() of the check */
	uint64		seen;			/* last registry generation that had it */
	bool		changed;		/* a target has changed, or the entry is new */
	MemoryContext context;		/* for targets and problem */
	int			ntargets;
	Oid		   *targets;
	const char *problem;		/* NULL if there is none */
	char	   *reported;		/* what was reported last, or NULL */
} KeptProblem;

static HTAB *kept_problems = NULL;

/* Relation cache callback. */
static void
relation_changed(Datum arg, Oid relid)
{
	HASH_SEQ_STATUS status;
	KeptProblem *kept;

	hash_seq_init(&status, kept_problems);
	while ((kept = hash_seq_search(&status)) != NULL)
	{
		kept->changed = kept->changed || relid == InvalidOid;
		for (int i = 0; i < kept->ntargets && !kept->changed; i++)
			kept->changed = kept->targets[i] == relid;
	}
}

/*
 * Remove the entries of dropped projections, once per generation of the
 * registry.
 */
static void
sweep(KeptProblem *fresh)
{
	static uint64 swept = 0;
	HASH_SEQ_STATUS status;
	PjProjection *projections;
	int			n = pj_projections(&projections);
	uint64		generation = pj_projections_generation();
	KeptProblem *kept;

	if (swept == generation)
		return;
	swept = generation;
	fresh->seen = generation;
	for (int i = 0; i < n; i++)
	{
		kept = hash_search(kept_problems, &projections[i].id, HASH_FIND, NULL);
		if (kept)
			kept->seen = generation;
	}
	hash_seq_init(&status, kept_problems);
	while ((kept = hash_seq_search(&status)) != NULL)
	{
		if (kept->seen == generation)
			continue;
		if (kept->context)
			MemoryContextDelete(kept->context);
		if (kept->reported)
			pfree(kept->reported);
		hash_search(kept_problems, &kept->id, HASH_REMOVE, NULL);
	}
}

static KeptProblem *
find_kept(int32 id)
{
	KeptProblem *kept;
	bool		found;

	if (kept_problems == NULL)
	{
		HASHCTL		ctl = {.keysize = sizeof(int32),.entrysize = sizeof(KeptProblem)};

		kept_problems = hash_create("projector problems", 16, &ctl,
									HASH_ELEM | HASH_BLOBS);
		CacheRegisterRelcacheCallback(relation_changed, (Datum) 0);
	}
	kept = hash_search(kept_problems, &id, HASH_ENTER, &found);
	if (!found)
	{
		memset((char *) kept + sizeof(int32), 0,
			   sizeof(KeptProblem) - sizeof(int32));
		kept->changed = true;
		sweep(kept);
	}
	return kept;
}

/* ---- finding problems ---- */

static const char *
find_target_problem(const PjProjection *projection, Oid owner)
{
	for (int i = 0; i < pj_target_count(projection); i++)
	{
		Oid			relid = pj_target_find(projection, i);
		const char *name = pj_target_find_name(relid);

		if (name == NULL)
			return psprintf(OidIsValid(pj_target_by_name(pj_target_noted_name(projection, i))) ?
							"target table %s was dropped, and another table has its name: name it with projector_alter, then rebuild" :
							"target table %s does not exist",
							pj_target_noted_name(projection, i));
		if (!pj_owns_table(relid, owner))
			return psprintf("its owner \"%s\" does not own target table %s",
							GetUserNameFromId(owner, false), name);
		if (get_rel_persistence(relid) != RELPERSISTENCE_PERMANENT)
			return psprintf("target table %s is unlogged, and would be empty after a crash",
							name);
		if (!pj_is_fold(projection->kind) && !pj_guard_is_on(relid))
			return psprintf("trigger projector_guard of target table %s is missing or disabled: projector_alter(%s, '{}') restores it",
							name, quote_literal_cstr(projection->name));
	}
	return NULL;
}

static const char *
find_problem(const PjProjection *projection)
{
	Oid			owner = pj_projection_role(projection);
	const PjKind *kind = pj_kind(projection->kind);
	const char *problem;
	PjDefinition definition;

	if (!OidIsValid(owner))
		return psprintf("its owner \"%s\" does not exist", projection->owner);
	problem = find_target_problem(projection, owner);
	if (problem == NULL)
		problem = pj_settings_problem(projection->settings);
	if (problem || kind->problem == NULL)
		return problem;
	definition = pj_definition_of(projection);
	return kind->problem(&definition);
}

/* Compute the answer again, and cache it. */
static void
refresh(KeptProblem *kept, const PjProjection *projection)
{
	int			n = pj_target_count(projection);
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "projector problem",
												  ALLOCSET_SMALL_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);
	Oid		   *targets = palloc(sizeof(Oid) * Max(n, 1));
	uint64		generation = pj_code_generation();
	const char *problem;

	for (int i = 0; i < n; i++)
		targets[i] = pj_target_find(projection, i);
	if (kept->context)
		MemoryContextDelete(kept->context);
	MemoryContextSetParent(context, CacheMemoryContext);
	kept->context = context;
	kept->targets = targets;
	kept->ntargets = n;

	/*
	 * Mark the entry invalid first.  Then it stays invalid if find_problem()
	 * raises an error, and a change during the call sets "changed" again.
	 */
	kept->problem = NULL;
	kept->version = 0;
	kept->changed = false;
	problem = find_problem(projection);
	kept->problem = problem;
	kept->version = projection->version;
	kept->generation = generation;
	MemoryContextSwitchTo(caller);
}

/*
 * Returns why a projection cannot run now, in a few words, or NULL if it can.
 * The string is valid until the next call.
 */
const char *
pj_projection_problem(const PjProjection *projection)
{
	KeptProblem *kept;

	if (!pj_version_is_current())
		return pj_version_problem();
	if (projection->unreadable)
		return projection->unreadable;
	kept = find_kept(projection->id);
	if (kept->changed || kept->version != projection->version ||
		kept->generation != pj_code_generation())
		refresh(kept, projection);
	return kept->problem;
}

/*
 * Raise an error if the projection cannot run.  Used when a user asks to run
 * it.
 */
void
pj_refuse_problem(const PjProjection *projection)
{
	const char *problem;

	pj_version_require_current();
	problem = pj_projection_problem(projection);
	if (problem)
		ereport(ERROR,
				errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("projection \"%s\" cannot run", projection->name),
				errdetail("%s", problem),
				errhint("Repair the cause, or change the projection with projector_alter."));
}

/* ---- reporting ---- */

/*
 * Log the beginning and the end of a problem.  Returns true if it has ended.
 */
static bool
report_projection(const PjProjection *projection)
{
	const char *problem = pj_projection_problem(projection);
	KeptProblem *kept = find_kept(projection->id);
	bool		ended = kept->reported && !problem;

	if (problem && (!kept->reported ||
					strcmp(kept->reported, problem) != 0))
		ereport(WARNING,
				errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("projection \"%s\" has stopped: %s", projection->name,
					   problem),
				errhint("Repair the cause, or change the projection with projector_alter. The projection then continues automatically."));
	if (ended)
		ereport(LOG,
				errmsg("projection \"%s\" continues", projection->name));
	if (kept->reported)
		pfree(kept->reported);
	kept->reported = problem ?
		MemoryContextStrdup(TopMemoryContext, problem) : NULL;
	return ended;
}

/*
 * Report all projections, each problem once.  Returns true if some projection
 * can continue.
 */
bool
pj_problems_report(void)
{
	PjProjection *projections;
	int			n = pj_projections(&projections);
	bool		ended = false;

	for (int i = 0; i < n; i++)
		if (!projections[i].dormant && projections[i].mode != PJ_OFF)
			ended = report_projection(&projections[i]) || ended;
	return ended;
}
