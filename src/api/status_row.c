/*
 * status_row.c
 *	  How a pair is: what it has to do, what is in its way, and the state that
 *	  follows from that.
 */
#include "base/compat.h"

#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "api/status_look.h"
#include "base/guc.h"
#include "base/lock.h"
#include "base/text.h"

static bool
is_behind(const PjStatusRow *row)
{
	return row->cursor_state == PJ_REPLAYING ||
		row->cursor_state == PJ_SWITCHING;
}

/* Of a tenant that has no cursor, and a projection, what the state would be. */
static PjState
default_state(const PjStatusProjection *projection)
{
	return projection->handed_over ? PJ_LIVE :
		projection->started ? PJ_SWITCHING : PJ_REPLAYING;
}

static PjState
read_state(Datum state)
{
	char	   *name = TextDatumGetCString(state);

	for (int i = PJ_LIVE; i < PJ_STOPPED; i++)
		if (strcmp(name, pj_state_names[i]) == 0)
			return i;
	return PJ_STOPPED;
}

static void
read_cursor(PjStatusLook *look, PjStatusRow *row)
{
	const PjStatusProjection *projection = row->projection;
	PjCursorRow *cursor = &row->cursor;

	memset(cursor, 0, sizeof(PjCursorRow));
	if (row->tenant)
		(void) pj_pair_look_cursor(&look->pairs, row->tenant, cursor);
	row->mode = cursor->mode ? pj_mode(TextDatumGetCString(cursor->mode)) :
		projection->mode;
	row->cursor_state = cursor->state ? read_state(cursor->state) :
		default_state(projection);
	row->paused = projection->paused || cursor->paused_by;
	if (cursor->paused_by == 0)
		cursor->paused_by = projection->paused_by;
	if (cursor->pause_reason == 0)
		cursor->pause_reason = projection->pause_reason;
	if (cursor->paused_at == 0)
		cursor->paused_at = projection->paused_at;
	if (cursor->definition_hash == 0)
		cursor->definition_hash = projection->definition_hash;
}

/* The age of the oldest event that is to be applied, in whole seconds. */
static void
set_lag_time(PjStatusLook *look, PjStatusRow *row, TimestampTz oldest_at)
{
	int64		age = look->now - oldest_at;

	row->has_lag_time = oldest_at != 0;
	if (!row->has_lag_time)
		return;
	age -= age % USECS_PER_SEC + (age % USECS_PER_SEC < 0 ? USECS_PER_SEC : 0);
	row->lag_time.time = age;
	row->late = age > (int64) pj_lag_warning * 1000;
}

/*
 * What is to be applied: the items, and what is to be read from the log, which
 * in log order is everything.
 */
static void
count_lag(PjStatusLook *look, PjStatusRow *row, int64 *last)
{
	const PjStatusProjection *projection = row->projection;
	bool		counts_items = !projection->log_ordered;
	bool		reads_log = projection->log_ordered || row->mode == PJ_OFF ||
	row->mode == PJ_FOLLOW || is_behind(row) || projection->dormant;
	PjUnread	unread = {.projection_id = projection->id,
		.tenant = row->tenant,.after = row->cursor.last_log_seq,
		.types = projection->types,.ntypes = projection->ntypes,
		.log_ordered = projection->log_ordered,
	.items = row->outbox.items > 0,.limit = look->limit};
	TimestampTz oldest_at;

	/* what one projection finds of the tenant's last event helps the next */
	if (reads_log && *last > unread.after)
	{
		pj_pair_look_unread(&look->pairs, &unread);
		if (unread.looked == 0)
			*last = unread.after;
	}
	row->lag_events = Min(look->limit, unread.count +
						  (counts_items ? row->outbox.items : 0));
	row->oldest = unread.oldest;
	oldest_at = unread.oldest_at;
	if (counts_items && row->outbox.oldest != 0 &&
		(row->oldest == 0 || row->outbox.oldest < row->oldest))
	{
		row->oldest = row->outbox.oldest;
		oldest_at = pj_pair_look_recorded_at(&look->pairs, row->tenant,
											 row->oldest);
	}
	set_lag_time(look, row, oldest_at);
}

/* The worker that applies its events, and the sessions that block it. */
static void
find_others(PjStatusLook *look, PjStatusRow *row)
{
	int32		id = row->projection->id;

	for (int i = 0; i < look->nworkers && row->worker_pid == 0; i++)
		if (look->workers[i].projection_id == id &&
			strcmp(look->workers[i].tenant,
				   TextDatumGetCString(row->tenant)) == 0)
			row->worker_pid = look->workers[i].pid;
	if (look->nlockers > 0)
	{
		uint64		key = pj_pair_lock_key(id, row->tenant);

		row->locker = pj_status_locker(look, PJ_LOCK_PROJECTION, id);
		if (row->locker == NULL)
			row->locker = pj_status_locker(look, PJ_LOCK_PAIR, key);
		row->driver = pj_status_locker(look, PJ_LOCK_DRIVER, key);
	}
	pj_pair_look_run(&look->pairs, id, row->tenant, &row->run);
}

/* Is there an open transaction that it cannot read past? */
static bool
awaits_transaction(PjStatusLook *look, const PjStatusRow *row)
{
	return row->awaits_log && pj_status_appender(look) != NULL;
}

static PjStatus
judge_work(PjStatusLook *look, const PjStatusRow *row)
{
	int64		work = row->mode == PJ_SHADOW ? row->outbox.untried :
	row->lag_events;

	if (work > 0 && look->no_worker)
		return PJ_HAS_NO_WORKER;
	if (work > 0 && (row->driver || awaits_transaction(look, row)))
		return PJ_IS_WAITING;
	if (work > 0 && row->late)
		return PJ_IS_LAGGING;
	return row->mode == PJ_SHADOW ? PJ_IS_SHADOW : PJ_IS_OK;
}

static PjStatus
judge(PjStatusLook *look, const PjStatusRow *row)
{
	if (row->projection->dormant)
		return PJ_IS_DORMANT;
	if (row->mode == PJ_OFF)
		return PJ_IS_OFF;
	if (row->paused)
		return PJ_IS_PAUSED;
	if (row->projection->problem || row->outbox.dead > 0 ||
		row->cursor_state == PJ_STOPPED)
		return PJ_IS_BLOCKED;
	if (row->tenant == 0)
		return PJ_IS_OK;
	if (row->outbox.failed > 0)
		return PJ_IS_FAILING;
	if (row->run.id != 0 || row->locker)
		return PJ_IS_REBUILDING;
	if (row->mode != PJ_SHADOW && is_behind(row))
		return PJ_IS_STARTING;
	return judge_work(look, row);
}

static void
read_more(PjStatusLook *look, PjStatusRow *row)
{
	const PjStatusProjection *projection = row->projection;
	const PjStatusNeeds *needs = &look->needs;

	if (needs->totals)
	{
		pj_pair_look_totals(&look->pairs, projection->id, row->tenant,
							needs->digests, &row->totals);
		row->stale = row->totals.applied > 0 && projection->definition_now &&
			!pj_text_equal(projection->definition_now,
						   row->cursor.definition_hash);
	}
	if (needs->errors)
		pj_pair_look_errors(&look->pairs, projection->id, row->tenant,
							&row->errors);
	if (needs->failing && row->outbox.failed > 0)
		row->failing_since =
			pj_pair_look_failed_since(&look->pairs, projection->id,
									  row->outbox.first_failed.log_seq);
}

/*
 * Find out how a pair is.  The tenant's last event is not after *last.  The
 * reader of cursors stands at the pair's row, if it has one.  Without a tenant,
 * how a projection is that has none.
 */
void
pj_status_row(PjStatusLook *look, const PjStatusProjection *projection,
			  Datum tenant, int64 *last, PjStatusRow *row)
{
	memset(row, 0, sizeof(PjStatusRow));
	row->projection = projection;
	row->tenant = tenant;
	read_cursor(look, row);
	if (tenant)
	{
		/* what was tried in mode shadow is in no particular order */
		look->pairs.outbox.limit = row->mode == PJ_SHADOW ? PJ_MAX_COUNT :
			look->limit;
		pj_outbox_look(&look->pairs.outbox, projection->id, tenant,
					   &row->outbox);
		count_lag(look, row, last);
		find_others(look, row);
		row->awaits_log = projection->log_ordered ||
			row->mode == PJ_FOLLOW || is_behind(row) ||
			!projection->handed_over;
		read_more(look, row);
	}
	row->state = judge(look, row);
}
