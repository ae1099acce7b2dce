/*
 * outbox_add.c
 *	  Inserting into the outbox.
 *
 * Every append to an asynchronous projection inserts a row.  If the table has
 * not been altered, this is done without SQL.  All other commands are in
 * outbox.c.
 */
#include "base/compat.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

#include "base/fetch.h"
#include "base/row.h"
#include "base/statement.h"
#include "sandbox/user_context.h"
#include "state/outbox.h"
#include "state/outbox_table.h"

/*
 * The table's constraints and indexes.  A new row is added to the first two
 * indexes.
 */
#define NUM_CHECKS 2
static const struct
{
	const char *name;
	PjIndexShape shape;
} own_indexes[] = {

	{"apply_outbox_pkey",
	{2, {Anum_projection_id, Anum_log_seq}, true}},
	{"apply_outbox_claim_idx",
	{3, {Anum_projection_id, Anum_tenant_id, Anum_log_seq}, false, true}},
	{"apply_outbox_retry_idx",
	{3, {Anum_projection_id, Anum_tenant_id, Anum_next_attempt_at}, false, true}},
	{"apply_outbox_due_idx",
	{2, {Anum_projection_id, Anum_next_attempt_at}, false, true}},
	{"apply_outbox_dead_idx",
	{3, {Anum_projection_id, Anum_tenant_id, Anum_log_seq}, false, true}},
	{"apply_outbox_blocked_idx",
		{4, {Anum_projection_id, Anum_tenant_id, Anum_aggregate_id,
	Anum_sequence_number}, false, true}},
};

/* Rows that are inserted together. */
#define ROWS_AT_ONCE	100

static PjTable outbox_by_key = {"apply_outbox", "apply_outbox_pkey"};
static PjTable outbox_by_claim = {"apply_outbox", "apply_outbox_claim_idx"};

static PjStatement enqueue = {
	.sql = "INSERT INTO projector.apply_outbox (projection_id, log_seq,"
	" tenant_id, aggregate_id, sequence_number, event_type, replay)"
	" SELECT $1, i.* FROM unnest($2, $3, $4, $5, $6, $7) AS i"
	" ON CONFLICT DO NOTHING",
	.expect = SPI_OK_INSERT,
	.nargs = 7,
	.argtypes = {INT4OID, INT8ARRAYOID, TEXTARRAYOID, TEXTARRAYOID,
	INT8ARRAYOID, TEXTARRAYOID, BOOLARRAYOID},
};

/* Returns the events' log positions as an array. */
Datum
pj_log_seqs(PjEvent *const *events, int n)
{
	int64	   *log_seqs = palloc(sizeof(int64) * Max(n, 1));

	for (int i = 0; i < n; i++)
		log_seqs[i] = pj_event_log_seq(events[i]);
	return pj_int8_array(log_seqs, n);
}

static bool
is_own_index(Oid relid)
{
	char	   *name = get_rel_name(relid);

	for (int i = 0; name && i < lengthof(own_indexes); i++)
		if (strcmp(name, own_indexes[i].name) == 0)
			return pj_index_is_ours(relid, &own_indexes[i].shape);
	return false;
}

/* Are these the table's original indexes?  The result is cached. */
static bool
are_own_indexes(const List *indexes)
{
	static Oid	known[lengthof(own_indexes)];

	if (list_length(indexes) != lengthof(own_indexes))
		return false;
	for (int i = 0; i < lengthof(own_indexes); i++)
	{
		Oid			relid = list_nth_oid(indexes, i);

		if (relid != known[i] && !is_own_index(relid))
			return false;
		known[i] = relid;
	}
	return true;
}

/* Is the table unchanged, or has a user added something to it? */
bool
pj_outbox_is_original(Relation heap)
{
	TupleDesc	desc = RelationGetDescr(heap);
	List	   *indexes;
	bool		original;

	if (desc->natts != Natts || desc->constr->num_check != NUM_CHECKS ||
		heap->trigdesc != NULL)
		return false;
	indexes = RelationGetIndexList(heap);
	original = are_own_indexes(indexes);
	list_free(indexes);
	return original;
}

/* ---- inserting ---- */

/* The rows that are being inserted. */
typedef struct Insertion
{
	Relation	heap;
	Relation	by_key;
	Relation	by_claim;
	Datum		values[Natts];	/* of the next row */
	TupleTableSlot *slots[ROWS_AT_ONCE];
	int			nslots;			/* slots made so far */
	int			count;			/* rows in them */
} Insertion;

static void
begin_insertion(Insertion *insertion, Relation heap)
{
	Datum		now = TimestampTzGetDatum(GetCurrentTransactionStartTimestamp());
	Datum	   *values = insertion->values;

	insertion->heap = heap;
	insertion->by_key = index_open(pj_indexid(&outbox_by_key),
								   RowExclusiveLock);
	insertion->by_claim = index_open(pj_indexid(&outbox_by_claim),
									 RowExclusiveLock);
	insertion->nslots = insertion->count = 0;
	memset(values, 0, sizeof(insertion->values));
	values[Anum_status - 1] = CStringGetTextDatum("pending");
	values[Anum_next_attempt_at - 1] = now;
	values[Anum_updated_at - 1] = now;
}

/* Add a row, whose columns are in the slot, to the two indexes. */
static void
insert_entries(Insertion *insertion, TupleTableSlot *slot)
{
	bool		nulls[3] = {false};
	Datum		key[2],
				claim_key[3];

	slot_getsomeattrs(slot, Anum_tenant_id);
	key[0] = claim_key[0] = slot->tts_values[Anum_projection_id - 1];
	key[1] = claim_key[2] = slot->tts_values[Anum_log_seq - 1];
	claim_key[1] = slot->tts_values[Anum_tenant_id - 1];
	index_insert(insertion->by_key, key, nulls, &slot->tts_tid,
				 insertion->heap, UNIQUE_CHECK_YES, false, NULL);
	index_insert(insertion->by_claim, claim_key, nulls, &slot->tts_tid,
				 insertion->heap, UNIQUE_CHECK_NO, false, NULL);
}

/* Insert the rows collected so far. */
static void
flush_rows(Insertion *insertion)
{
	if (insertion->count == 0)
		return;
	heap_multi_insert(insertion->heap, insertion->slots, insertion->count,
					  GetCurrentCommandId(true), 0, NULL);
	for (int i = 0; i < insertion->count; i++)
		insert_entries(insertion, insertion->slots[i]);
	insertion->count = 0;
}

static void
add_row(Insertion *insertion, int32 projection_id, const PjEvent *event)
{
	static const bool nulls[Natts] = {[Anum_shadow - 1] = true,
	[Anum_last_error - 1] = true};
	TupleDesc	desc = RelationGetDescr(insertion->heap);
	Datum	   *values = insertion->values;
	int			i = insertion->count++;

	if (i == insertion->nslots)
		insertion->slots[insertion->nslots++] =
			MakeSingleTupleTableSlot(desc, &TTSOpsHeapTuple);
	values[Anum_projection_id - 1] = Int32GetDatum(projection_id);
	values[Anum_log_seq - 1] = event->values[PJ_EVENT_LOG_SEQ];
	values[Anum_tenant_id - 1] = pj_event_tenant(event);
	values[Anum_aggregate_id - 1] = pj_event_aggregate(event);
	values[Anum_sequence_number - 1] =
		event->values[PJ_EVENT_SEQUENCE_NUMBER];
	values[Anum_event_type - 1] = pj_event_type(event);
	ExecStoreHeapTuple(heap_form_tuple(desc, values, (bool *) nulls),
					   insertion->slots[i], true);
	if (insertion->count == ROWS_AT_ONCE)
		flush_rows(insertion);
}

static void
end_insertion(Insertion *insertion)
{
	flush_rows(insertion);
	for (int i = 0; i < insertion->nslots; i++)
		ExecDropSingleTupleTableSlot(insertion->slots[i]);
	index_close(insertion->by_claim, NoLock);
	index_close(insertion->by_key, NoLock);
}

static void
add_directly(Relation heap, const List *queued)
{
	Insertion	insertion;
	ListCell   *lc;

	begin_insertion(&insertion, heap);
	foreach(lc, queued)
	{
		const PjQueued *item = lfirst(lc);

		for (int i = 0; i < item->count; i++)
			add_row(&insertion, item->projection_id, item->events[i]);
	}
	end_insertion(&insertion);
}

static void
add_by_sql(const List *queued)
{
	PjContext	saved;
	ListCell   *lc;

	pj_enter_previous(&saved);
	foreach(lc, queued)
	{
		const PjQueued *item = lfirst(lc);

		pj_outbox_enqueue(item->projection_id, item->events, item->count);
	}
	pj_leave_internal(&saved);
}

/*
 * Insert rows for events that are just being appended, and so have none: a
 * list of PjQueued.
 * Every append to asynchronous projections comes here.  The rows for all
 * projections are inserted together, without SPI, which would cost more than
 * the append itself.
 */
void
pj_outbox_add(const List *queued)
{
	Relation	heap = table_open(pj_relid(&outbox_by_key), RowExclusiveLock);

	if (pj_outbox_is_original(heap))
		add_directly(heap, queued);
	else
		add_by_sql(queued);
	table_close(heap, NoLock);
}

/* Insert rows for events; existing rows are left unchanged. */
void
pj_outbox_enqueue(int32 projection_id, PjEvent *const *events, int n)
{
	Datum	   *tenants = palloc(sizeof(Datum) * n);
	Datum	   *aggregates = palloc(sizeof(Datum) * n);
	Datum	   *types = palloc(sizeof(Datum) * n);
	int64	   *sequences = palloc(sizeof(int64) * n);
	Datum	   *replays = palloc(sizeof(Datum) * n);
	Datum		values[7];

	for (int i = 0; i < n; i++)
	{
		tenants[i] = pj_event_tenant(events[i]);
		aggregates[i] = pj_event_aggregate(events[i]);
		types[i] = pj_event_type(events[i]);
		sequences[i] = pj_event_sequence(events[i]);
		replays[i] = BoolGetDatum(events[i]->replay);
	}
	values[0] = Int32GetDatum(projection_id);
	values[1] = pj_log_seqs(events, n);
	values[2] = pj_text_array(tenants, n);
	values[3] = pj_text_array(aggregates, n);
	values[4] = pj_int8_array(sequences, n);
	values[5] = pj_text_array(types, n);
	values[6] = PointerGetDatum(construct_array(replays, n, BOOLOID,
												sizeof(bool), true,
												TYPALIGN_CHAR));
	pj_execute(&enqueue, values, NULL);
}
