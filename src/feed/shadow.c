/*
 * shadow.c
 *	  Mode "shadow": try events without applying them.
 *
 * An aggregate's events are tried from its offset on, because a later event
 * may depend on an earlier one.  Then everything is rolled back (apply.c).
 * The result is stored in the items, each of which is tried once.  An event
 * that would fail is recorded as a failure with a mark.  When the mode
 * changes, the items are applied like any others.
 */
#include "base/compat.h"

#include "utils/memutils.h"

#include "apply/apply.h"
#include "base/lock.h"
#include "feed/shadow.h"
#include "state/outbox.h"

/*
 * Result of an item whose aggregate could not be tried now; it stays
 * unchanged.
 */
#define NOT_NOW		(PJ_UNTESTED + 1)

static const char *const result_names[] = {
	[PJ_WOULD_PASS] = "passed",
	[PJ_WOULD_FAIL] = "failed",
	[PJ_UNTESTED] = "untested",
};

/* Items to be tried, sorted by aggregate, and the result of each. */
typedef struct Attempt
{
	PjPair	   *pair;
	PjClaim    *claims;
	int		   *results;		/* per claim: a PjVerdict, or NOT_NOW */
	int			nclaims;
	bool		busy;			/* some could not be tried now */
} Attempt;

/* Try one aggregate, whose "own" items start at "first". */
static void
try_aggregate(Attempt *attempt, int first, int own, PjRange range)
{
	PjClaim    *claims = palloc(sizeof(PjClaim) * own);
	PjApplyRequest request = {
		.purpose = PJ_TO_TRY,
		.pair = attempt->pair,
		.driver = PJ_BY_QUEUE,
		.ranges = &range,
		.nranges = 1,
		.claims = claims,
		.nclaims = own,
	};
	PjApplyResult result;

	for (int i = 0; i < own; i++)
	{
		claims[i] = attempt->claims[first + i];
		claims[i].range = 0;
	}
	pj_apply(&request, &result);
	if (result.busy || result.conflict)
		attempt->busy = true;
	for (int i = 0; i < own; i++)
		attempt->results[first + i] = result.busy || result.conflict ?
			NOT_NOW : result.verdicts[i];
}

/* Try the aggregates one by one, with separate memory for each. */
static void
try_all(Attempt *attempt)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "projector shadow",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = CurrentMemoryContext;
	PjRange    *ranges;
	int			nranges = pj_outbox_ranges(attempt->claims, attempt->nclaims,
										   &ranges);
	int			first = 0;

	for (int r = 0; r < nranges; r++)
	{
		MemoryContextSwitchTo(context);
		try_aggregate(attempt, first, ranges[r].own, ranges[r]);
		MemoryContextSwitchTo(caller);
		MemoryContextReset(context);
		first += ranges[r].own;
	}
	MemoryContextDelete(context);
}

/* Store the results in the items.  Returns how many have one. */
static int
save_results(const Attempt *attempt)
{
	PjClaim    *alike = palloc(sizeof(PjClaim) * attempt->nclaims);
	int			saved = 0;

	for (int result = PJ_WOULD_PASS; result <= PJ_UNTESTED; result++)
	{
		int			n = 0;

		for (int c = 0; c < attempt->nclaims; c++)
			if (attempt->results[c] == result)
				alike[n++] = attempt->claims[c];
		if (n > 0)
			pj_outbox_try(alike, n, result_names[result]);
		saved += n;
	}
	return saved;
}

/*
 * Try those of a pair's next items that have not been tried.  Items that have
 * failed are not tried again.  Returns true if there were any.  "announce"
 * says that one of them may have crashed the worker or the server: then they
 * are marked as untested instead of being tried.  *busy is set if some have to
 * wait.
 */
bool
pj_shadow(PjPair *pair, int limit, int64 upto, bool announce, bool *busy)
{
	Attempt		attempt = {.pair = pair};

	Assert(pj_driver_is_locked(pair->projection->id, pair->tenant));
	attempt.nclaims = pj_outbox_claim_pending(pair->projection->id,
											  pair->tenant, limit, upto,
											  &attempt.claims);
	if (attempt.nclaims == 0)
		return false;
	attempt.results = palloc(sizeof(int) * attempt.nclaims);
	if (announce)
		for (int c = 0; c < attempt.nclaims; c++)
			attempt.results[c] = PJ_UNTESTED;
	else
		try_all(&attempt);
	*busy = *busy || attempt.busy;
	return save_results(&attempt) > 0;
}
