/*
 * shadow.c
 *	  Trying events without applying them: mode "shadow".
 *
 * An aggregate's events are tried from the offset on, because the second may
 * need what the first does, and rolled back (apply.c).  The result is kept with
 * the items, each of which is tried once; what would fail is recorded as a
 * failure, marked as such.  When the mode changes the items are applied
 * like any others.
 */
#include "base/compat.h"

#include "utils/memutils.h"

#include "apply/apply.h"
#include "base/lock.h"
#include "feed/shadow.h"
#include "state/outbox.h"

/* An item whose aggregate could not be tried now stays as it is. */
#define NOT_NOW		(PJ_UNTESTED + 1)

static const char *const result_names[] = {
	[PJ_WOULD_PASS] = "passed",
	[PJ_WOULD_FAIL] = "failed",
	[PJ_UNTESTED] = "untested",
};

/* Items to be tried, sorted by aggregate, and what became of each. */
typedef struct Attempt
{
	PjPair	   *pair;
	PjClaim    *claims;
	int		   *results;		/* of the claims: PjVerdict, or NOT_NOW */
	int			nclaims;
	bool		busy;			/* some could not be tried now */
} Attempt;

/* Try the aggregate of the items from "first" on; "own" says how many. */
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

/* Try aggregate after aggregate, each in memory of its own. */
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

/* Keep the results with the items.  Returns how many have one. */
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
 * Try those of a pair's next items that have not been tried; what has failed is
 * known.  Returns whether there were any.  "announce" says that one of them may
 * have ended the worker or the server: then they are not tried.  *busy becomes
 * true if some have to wait.
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
