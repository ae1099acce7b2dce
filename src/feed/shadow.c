/*
 * shadow.c
 *	  Trying events without applying them: mode "shadow".
 *
 * A trial takes an aggregate's events from the offset on, because the second
 * may need what the first does, and is rolled back.  Its result is kept with
 * the items, each of which is tried once; what would fail is recorded as a
 * failure, marked as such.  When the mode changes the items are applied like
 * any others.
 */
#include "base/compat.h"

#include "utils/builtins.h"
#include "utils/memutils.h"

#include "apply/apply.h"
#include "base/subxact.h"
#include "feed/shadow.h"
#include "kinds/kind.h"
#include "sandbox/deadline.h"
#include "sandbox/user_context.h"
#include "state/failure.h"
#include "state/offset.h"
#include "state/outbox.h"

typedef enum Result
{
	PASSED,
	FAILED,
	UNTESTED					/* behind one that failed, or too far ahead */
} Result;

static const char *const result_names[] = {"passed", "failed", "untested"};

typedef struct Trial
{
	PjPair	   *pair;
	PjClaim    *claims;
	int			nclaims;
	Result	   *results;		/* of the claims */
	PjWork		work;
} Trial;

/* Those of the items that have not been tried; what has failed is known. */
static void
claim_untried(Trial *trial, int limit, int64 upto)
{
	PjPair	   *pair = trial->pair;

	trial->nclaims = pj_outbox_claim_pending(pair->projection->id,
											 pair->tenant, limit, upto,
											 &trial->claims);
	trial->results = palloc(sizeof(Result) * Max(trial->nclaims, 1));
}

/* Load an aggregate's events from the offset on. */
static int
load_events(const Trial *trial, PjRange *range, PjEvent ***events)
{
	PjPair	   *pair = trial->pair;
	const PjProjection *projection = pair->projection;
	PjOffset	offset = {.aggregate = range->aggregate};
	PjEvent    *loaded;
	int			n;

	pj_offsets_load(projection->id, pair->tenant, &offset, 1);
	range->after = offset.last;
	range->max = projection->options.batch_size;
	n = pj_source_load(pair->tenant, range, 1, projection->event_types,
					   &loaded);
	*events = palloc(sizeof(PjEvent *) * Max(n, 1));
	for (int i = 0; i < n; i++)
		(*events)[i] = &loaded[i];
	if (projection->skips)
		pj_failure_mark_skipped(projection, *events, n);
	return n;
}

/* Run the projection's code, and have it rolled back. */
static bool
try_events(void *arg)
{
	Trial	   *trial = arg;

	pj_kind(trial->work.projection->kind)->apply(&trial->work);
	return false;
}

/*
 * Find the results of items lo .. hi - 1, which are of the aggregate just
 * tried.
 */
static void
note_results(Trial *trial, int lo, int hi, ErrorData *error)
{
	const PjWork *work = &trial->work;
	int			failed = error ? work->at : work->hi;

	for (int c = lo, i = 0; c < hi; c++)
	{
		int64		log_seq = pj_event_log_seq(&trial->claims[c].event);

		while (i < work->hi && pj_event_log_seq(work->events[i]) < log_seq)
			i++;
		if (i == work->hi || i > failed ||
			pj_event_log_seq(work->events[i]) != log_seq)
			trial->results[c] = UNTESTED;
		else if (i < failed)
			trial->results[c] = PASSED;
		else
		{
			trial->results[c] = FAILED;
			pj_failure_record_shadow(trial->pair, work->events[i], error);
		}
	}
}

/* Try an aggregate's first n events.  On error, work.at may be PJ_UNKNOWN. */
static ErrorData *
try_first(Trial *trial, int n)
{
	ErrorData  *error = NULL;
	bool		kept;

	trial->work.hi = n;
	trial->work.at = 0;
	pj_deadline_begin(0);
	pj_forget_cancel();
	if (n > 0)
		error = pj_subtransaction(try_events, trial, &kept);
	pj_failure_name_timeout(error);
	if (error && !pj_failure_swallowed(error))
		ReThrowError(error);
	return error;
}

/* All n events together fail: find the first that does. */
static ErrorData *
find_failing(Trial *trial, int n, ErrorData *error)
{
	int			works = 0;		/* so many do not fail */
	int			fails = n;		/* so many do */

	while (trial->work.at == PJ_UNKNOWN && fails - works > 1)
	{
		int			middle = works + (fails - works) / 2;
		ErrorData  *found = try_first(trial, middle);

		if (found == NULL)
		{
			works = middle;
			trial->work.at = PJ_UNKNOWN;
			continue;
		}
		fails = middle;
		error = found;
	}
	if (trial->work.at == PJ_UNKNOWN)
		trial->work.at = fails - 1;
	return error;
}

/* Try the aggregate of items lo .. hi - 1. */
static void
try_aggregate(Trial *trial, PjRange *range, int lo, int hi)
{
	ErrorData  *error;
	PjEvent   **events;
	int			n = load_events(trial, range, &events);

	trial->work = (PjWork)
	{
		.projection = trial->pair->projection,
			.tenant = TextDatumGetCString(trial->pair->tenant),
			.events = events,
	};
	error = try_first(trial, n);
	if (error)
		error = find_failing(trial, n, error);
	trial->work.hi = n;
	note_results(trial, lo, hi, error);
}

/* Try aggregate after aggregate, each in memory of its own. */
static void
try_all(Trial *trial)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "projector trial",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = CurrentMemoryContext;
	PjRange    *ranges;
	int			nranges = pj_outbox_ranges(trial->claims, trial->nclaims,
										   &ranges);
	int			lo = 0;

	for (int r = 0; r < nranges; r++)
	{
		int			hi = lo;

		while (hi < trial->nclaims && trial->claims[hi].range == r)
			hi++;
		MemoryContextSwitchTo(context);
		try_aggregate(trial, &ranges[r], lo, hi);
		MemoryContextSwitchTo(caller);
		MemoryContextReset(context);
		lo = hi;
	}
	MemoryContextDelete(context);
}

static void
save_results(const Trial *trial)
{
	PjClaim    *alike = palloc(sizeof(PjClaim) * trial->nclaims);

	for (Result result = PASSED; result <= UNTESTED; result++)
	{
		int			n = 0;

		for (int c = 0; c < trial->nclaims; c++)
			if (trial->results[c] == result)
				alike[n++] = trial->claims[c];
		if (n > 0)
			pj_outbox_try(alike, n, result_names[result]);
	}
}

/*
 * Try the next items of a pair.  The caller has its driver lock.  Returns
 * whether there were any.  "announce" says that one of them may have ended the
 * worker or the server: then they are not tried.
 */
bool
pj_shadow(PjPair *pair, int limit, int64 upto, bool announce)
{
	Trial		trial = {.pair = pair};

	claim_untried(&trial, limit, upto);
	if (trial.nclaims == 0)
		return false;
	if (announce)
		for (int c = 0; c < trial.nclaims; c++)
			trial.results[c] = UNTESTED;
	else
		try_all(&trial);
	save_results(&trial);
	return true;
}
