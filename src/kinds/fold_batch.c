/*
 * fold_batch.c
 *	  Fold a batch: read the rows of all keys, fold the events into them in
 *	  memory, in order, and write each changed row once.
 *
 * If the target has triggers that change rows before they are written, the row
 * is written after each event instead.  If the rows grow large, they are
 * written and freed during the batch, so that memory does not grow with the
 * batch.
 *
 * A replay in one transaction may keep rows from batch to batch and write them
 * later (row_cache.c).
 */
#include "base/compat.h"

#include "access/htup_details.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/typcache.h"

#include "kinds/fold_batch.h"
#include "kinds/row_cache.h"
#include "sandbox/deadline.h"
#include "sandbox/user_context.h"

/* Cached rows written at a time. */
#define FLUSH_ROWS	1000

/*
 * Hash rows, before or after events are folded into them.  This runs no code
 * of the projection.
 */
static void
hash_rows(PjFoldBatch *batch, PjFoldRow *rows, int n, bool after)
{
	PjHasher	hasher;

	if (batch->work->trial || !pj_digest_is_kept(batch->work->projection))
		return;
	pj_hasher_begin(&hasher, batch->target.heap, batch->work->projection, 0);
	for (int i = 0; i < n; i++)
	{
		PjFoldRow  *row = &rows[i];
		PjDigest	now = {.layout = hasher.layout};

		/* the first hash of a touched row is known already */
		if (after != row->touched)
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

/* Read rows that events will be folded into. */
static void
load_rows(PjFoldBatch *batch, PjFoldRow *rows, int n)
{
	pj_fold_load(&batch->target, rows, n);
	hash_rows(batch, rows, n, false);
}

/*
 * Write the rows that have changed.  An error found here may have been caused
 * by any event of the batch.
 */
static void
write_rows(PjFoldBatch *batch)
{
	batch->work->at = PJ_UNKNOWN;
	pj_deadline_begin(batch->timeout_ms);
	pj_fold_write(&batch->target, batch->rows, batch->nrows);
	hash_rows(batch, batch->rows, batch->nrows, true);
	pj_deadline_end();
}

/*
 * The rows have become large: write the changed ones and free them.  A row is
 * read again if there are more events for it.
 */
static void
flush_rows(PjFoldBatch *batch)
{
	write_rows(batch);
	for (int i = 0; i < batch->nrows; i++)
		if (batch->rows[i].touched)
		{
			pj_fold_forget(&batch->target, &batch->rows[i]);
			batch->rows[i].touched = false;
		}
}

/* Fold all events into their rows, in order. */
static void
fold_events(PjFoldBatch *batch)
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
		pj_fold_check_found(batch, row, event);
		if (pj_fold_has_seen(batch, row, event))
			continue;
		CHECK_FOR_INTERRUPTS();
		pj_set_replay(event->replay);
		pj_deadline_begin(batch->timeout_ms);
		pj_fold_event(batch, row, event);
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

/* Prepare to fold, in a memory context of the batch. */
void
pj_fold_begin(PjFoldBatch *batch)
{
	batch->context = AllocSetContextCreate(CurrentMemoryContext,
										   "projector fold batch",
										   ALLOCSET_DEFAULT_SIZES);
	batch->caller = MemoryContextSwitchTo(batch->context);
	PushCopiedSnapshot(GetTransactionSnapshot());
	pj_fold_compile_if_changed(batch->kept, batch->work->projection);
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

void
pj_fold_end(PjFoldBatch *batch)
{
	pj_fold_close(&batch->target);
	ReleaseTupleDesc(batch->event_desc);
	batch->kept->running = false;
	PopActiveSnapshot();
	MemoryContextSwitchTo(batch->caller);
	MemoryContextDelete(batch->context);
}

/* Error context callback: name the expression in which the error occurred. */
static void
describe_column(void *arg)
{
	const PjFoldBatch *batch = arg;
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
void
pj_fold_run(void *arg)
{
	PjFoldBatch *batch = arg;
	PjWork	   *work = batch->work;
	ErrorContextCallback callback = {error_context_stack, describe_column,
	batch};
	bool		keep;

	pj_fold_begin(batch);
	error_context_stack = &callback;
	keep = pj_row_cache_can_keep(batch);
	pj_fold_find_rows(batch);
	work->at = PJ_UNKNOWN;
	pj_deadline_begin(batch->timeout_ms);
	if (keep)
		pj_row_cache_take(batch);
	load_rows(batch, batch->rows, batch->nrows);
	pj_deadline_end();
	fold_events(batch);
	if (keep)
		pj_row_cache_keep(batch);
	else
		write_rows(batch);
	error_context_stack = callback.previous;
	pj_fold_end(batch);
}

/* Write the cached rows, some at a time.  Runs as the projection's owner. */
void
pj_fold_flush(void *arg)
{
	PjFoldBatch *batch = arg;
	bool		more;

	do
	{
		pj_fold_begin(batch);
		batch->rows = palloc(sizeof(PjFoldRow) * FLUSH_ROWS);
		more = pj_row_cache_next(batch, FLUSH_ROWS) > 0;
		if (more)
			write_rows(batch);
		pj_fold_end(batch);
	} while (more);
}
