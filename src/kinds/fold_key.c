/*
 * fold_key.c
 *	  Find the row that each event of a batch belongs to.
 *
 * If the key is the aggregate, the batch already groups the events by it.
 * Otherwise the key's expression is evaluated for each event, and the events
 * are sorted by the result.
 */
#include "base/compat.h"

#include "executor/executor.h"
#include "utils/datum.h"
#include "utils/sortsupport.h"
#include "utils/typcache.h"

#include "kinds/fold_batch.h"
#include "sandbox/deadline.h"

/*
 * Get the key of an event.  Returns false if the key is null, so that the
 * event is not for this projection.
 */
bool
pj_fold_event_key(PjFoldBatch *batch, const PjEvent *event, Datum *key)
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

/* Among equal keys, the first event's comes first: a new row gets its key. */
static int
compare_places(const void *a, const void *b, void *arg)
{
	const KeyPlace *pa = a;
	const KeyPlace *pb = b;
	int			result = compare_keys(pa, pb, (SortSupport) arg);

	return result != 0 ? result : pa->event - pb->event;
}

static void
add_row(PjFoldBatch *batch, Datum key)
{
	memset(&batch->rows[batch->nrows], 0, sizeof(PjFoldRow));
	batch->rows[batch->nrows++].key = key;
}

/* Events of one aggregate go into one row. */
static void
rows_by_aggregate(PjFoldBatch *batch)
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
			(void) pj_fold_event_key(batch, work->events[i], &key);
			row_of_range[range] = batch->nrows;
			add_row(batch, key);
		}
		batch->row_of[i - work->lo] = row_of_range[range];
	}
}

/*
 * Events with equal keys go into one row.  The key's expression is evaluated
 * once per event.  Comparing keys may also run a user's code.
 */
static void
rows_by_key(PjFoldBatch *batch)
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
		if (pj_fold_event_key(batch, work->events[i], &places[n].key))
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

/* Find the row for each event of the batch. */
void
pj_fold_find_rows(PjFoldBatch *batch)
{
	int			n = batch->work->hi - batch->work->lo;

	batch->rows = palloc(sizeof(PjFoldRow) * n);
	batch->row_of = palloc(sizeof(int) * n);
	if (batch->kept->code->key)
		rows_by_key(batch);
	else
		rows_by_aggregate(batch);
}
