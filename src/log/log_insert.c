/*
 * log_insert.c
 *	  Insert one event into the log without SQL.
 *
 * projector_append() needs a row, its index entries, and what the table's
 * triggers do.  An INSERT spends as much time on starting and ending the
 * executor as on all of these.  So if the table is as we created it, the row
 * is inserted directly, and the triggers' work is called directly.  If
 * somebody has added a trigger, an index, a policy or anything else to the
 * table, the caller runs an INSERT instead (log_write.c).
 *
 * The insertion is speculative, as in INSERT ... ON CONFLICT: a session that
 * meets the row waits for the end of the insertion only, not for the end of
 * our transaction, and the insertion can be undone.  If the row may conflict
 * with another, it is undone, and the caller runs the INSERT, which waits for
 * the other one.
 */
#include "base/compat.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_class.h"
#include "catalog/pg_trigger.h"
#include "catalog/pg_type.h"
#include "commands/sequence.h"
#include "commands/trigger.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/primnodes.h"
#include "storage/lmgr.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "base/row.h"
#include "log/intake.h"
#include "log/log_insert.h"
#include "log/log_read.h"
#include "log/log_table.h"

void		(*pj_log_capture) (PjEvent *event) = NULL;

static const Oid column_types[] = {INT8OID, TEXTOID, TEXTOID, INT8OID,
UUIDOID, TEXTOID, JSONBOID, JSONBOID, BYTEAOID, TIMESTAMPTZOID};

#define NATTS	lengthof(column_types)

typedef struct LogIndex
{
	PjTable		table;
	PjIndexShape shape;
} LogIndex;

static LogIndex indexes[] = {
	{{"events", "events_pkey"},
	{3, {Anum_tenant_id, Anum_aggregate_id, Anum_sequence_number}, true}},
	{{"events", "events_tenant_id_log_seq_key"},
	{2, {Anum_tenant_id, Anum_log_seq}, true}},
	{{"events", "events_tenant_id_event_id_key"},
	{2, {Anum_tenant_id, Anum_event_id}, true}},
};

/* ---- is the table as we created it? ---- */

static bool
is_own_trigger(const Trigger *trigger)
{
	static const char *const names[] = {"events_before_statement",
	"events_before_insert", "events_capture"};

	if (trigger->tgenabled != TRIGGER_FIRES_ON_ORIGIN &&
		trigger->tgenabled != TRIGGER_FIRES_ALWAYS)
		return false;
	for (int i = 0; i < lengthof(names); i++)
		if (strcmp(trigger->tgname, names[i]) == 0)
			return true;
	return false;
}

/* Do our own three triggers fire on INSERT, and no others? */
static bool
has_own_triggers(const TriggerDesc *triggers)
{
	int			own = 0;

	for (int i = 0; triggers && i < triggers->numtriggers; i++)
	{
		const Trigger *trigger = &triggers->triggers[i];

		if (!TRIGGER_FOR_INSERT(trigger->tgtype))
			continue;
		if (!is_own_trigger(trigger))
			return false;
		own++;
	}
	return own == 3;
}

/* Is a column's default a call of this function, without arguments? */
static bool
has_default(const TupleConstr *constr, AttrNumber attno, Oid function)
{
	for (int i = 0; i < constr->num_defval; i++)
	{
		Node	   *expr;

		if (constr->defval[i].adnum != attno)
			continue;
		expr = stringToNode(constr->defval[i].adbin);
		return IsA(expr, FuncExpr) && ((FuncExpr *) expr)->funcid == function &&
			((FuncExpr *) expr)->args == NIL;
	}
	return false;
}

static bool
has_own_columns(Relation heap)
{
	TupleDesc	desc = RelationGetDescr(heap);
	const TupleConstr *constr = desc->constr;

	if (desc->natts != NATTS || constr == NULL || constr->num_check > 0 ||
		constr->has_generated_stored || pj_has_virtual(heap))
		return false;
	for (int i = 0; i < NATTS; i++)
		if (TupleDescAttr(desc, i)->attisdropped ||
			TupleDescAttr(desc, i)->atttypid != column_types[i])
			return false;
	return TupleDescAttr(desc, Anum_log_seq - 1)->attidentity ==
		ATTRIBUTE_IDENTITY_ALWAYS &&
		has_default(constr, Anum_event_id, F_GEN_RANDOM_UUID) &&
		has_default(constr, Anum_recorded_at, F_CLOCK_TIMESTAMP);
}

static bool
has_own_indexes(Relation heap)
{
	List	   *oids = RelationGetIndexList(heap);
	bool		own = list_length(oids) == lengthof(indexes);

	for (int i = 0; i < lengthof(indexes) && own; i++)
	{
		Oid			indexid = pj_indexid(&indexes[i].table);

		own = list_member_oid(oids, indexid) &&
			pj_index_is_ours(indexid, &indexes[i].shape);
	}
	list_free(oids);
	return own;
}

static bool
examine(Relation heap)
{
	return heap->rd_rel->relkind == RELKIND_RELATION &&
		!heap->rd_rel->relispartition && !heap->rd_rel->relrowsecurity &&
		heap->rd_rules == NULL &&
		heap->rd_tableam == GetHeapamTableAmRoutine() &&
		has_own_triggers(heap->trigdesc) &&
		has_own_columns(heap) && has_own_indexes(heap);
}

/* The caller has locked the table.  The result is kept until it changes. */
static bool
is_original(Relation heap)
{
	static uint64 examined = 0;
	static bool original = false;

	if (SessionReplicationRole == SESSION_REPLICATION_ROLE_REPLICA)
		return false;			/* triggers do not fire */

	/* changes are counted only after the table has been looked up */
	(void) pj_relid(&pj_events_table);
	if (examined != pj_events_table.changes + 1)
	{
		uint64		now = pj_events_table.changes + 1;

		examined = 0;
		original = examine(heap);
		examined = now;
	}
	return original;
}

/* ---- inserting ---- */

static Datum
make_event_id(void)
{
	LOCAL_FCINFO(fcinfo, 0);

	InitFunctionCallInfoData(*fcinfo, NULL, 0, InvalidOid, NULL, NULL);
	return gen_random_uuid(fcinfo);
}

static Datum
detoasted(Datum value)
{
	return PointerGetDatum(PG_DETOAST_DATUM_PACKED(value));
}

/* Make the row, and check it as the BEFORE ROW trigger does. */
static void
make_row(const PjNewEvents *events, int64 after, Datum *columns)
{
	columns[Anum_log_seq - 1] =
		Int64GetDatum(nextval_internal(pj_intake_sequence(), false));
	columns[Anum_tenant_id - 1] = detoasted(events->tenant);
	columns[Anum_aggregate_id - 1] = detoasted(events->aggregate);
	columns[Anum_sequence_number - 1] = Int64GetDatum(after + 1);
	columns[Anum_event_id - 1] = events->event_ids[0] ?
		events->event_ids[0] : make_event_id();
	columns[Anum_event_type - 1] = detoasted(events->event_types[0]);
	columns[Anum_payload - 1] = detoasted(events->payloads[0]);
	columns[Anum_metadata - 1] = detoasted(events->metadatas[0]);
	columns[Anum_recorded_at - 1] = TimestampTzGetDatum(GetCurrentTimestamp());
	pj_source_complete_row(columns);
}

/*
 * Add the row to an index.  Returns false if there may be another row with the
 * same key.
 */
static bool
insert_entry(LogIndex *index, Relation heap, HeapTuple row,
			 const Datum *columns)
{
	Relation	relation = index_open(pj_indexid(&index->table),
									  RowExclusiveLock);
	Datum		values[PJ_MAX_INDEX_KEYS];
	bool		nulls[PJ_MAX_INDEX_KEYS] = {false};
	bool		unique;

	for (int i = 0; i < index->shape.nkeys; i++)
		values[i] = columns[index->shape.keys[i] - 1];
	unique = index_insert(relation, values, nulls, &row->t_self, heap,
						  UNIQUE_CHECK_PARTIAL, false, NULL);
	index_close(relation, NoLock);
	return unique;
}

/* Returns false if nothing was inserted, because there may be a conflict. */
static bool
insert_row(Relation heap, const Datum *columns)
{
	bool		nulls[NATTS] = {false};
	TransactionId xid = GetCurrentTransactionId();
	HeapTuple	row = heap_form_tuple(RelationGetDescr(heap),
									  (Datum *) columns, nulls);
	bool		unique = true;
	uint32		token;

	row->t_tableOid = RelationGetRelid(heap);

	/* the macro evaluates its argument twice */
	token = SpeculativeInsertionLockAcquire(xid);
	HeapTupleHeaderSetSpeculativeToken(row->t_data, token);
	heap_insert(heap, row, GetCurrentCommandId(true),
				HEAP_INSERT_SPECULATIVE, NULL);
	for (int i = 0; i < lengthof(indexes) && unique; i++)
		unique = insert_entry(&indexes[i], heap, row, columns);
	if (unique)
		heap_finish_speculative(heap, &row->t_self);
	else
		heap_abort_speculative(heap, &row->t_self);
	SpeculativeInsertionLockRelease(xid);
	heap_freetuple(row);
	return unique;
}

/* Pass the new event to the projections. */
static void
capture(const Datum *columns)
{
	PjEvent		event;

	pj_source_event_of(columns, &event);
	CommandCounterIncrement();
	PushActiveSnapshot(GetTransactionSnapshot());
	pj_log_capture(&event);
	PopActiveSnapshot();
	CommandCounterIncrement();
}

/*
 * Insert one event after its aggregate's last one, whose sequence number is
 * "after".  Returns false if the caller must run an INSERT.
 */
bool
pj_log_insert(const PjNewEvents *events, int64 after)
{
	Relation	heap = table_open(pj_source_relid(), RowExclusiveLock);
	Datum		columns[NATTS];
	bool		inserted = false;

	Assert(events->count == 1);
	if (is_original(heap))
	{
		PreventCommandIfReadOnly("INSERT");
		PreventCommandIfParallelMode("INSERT");
		pj_intake_begin();
		make_row(events, after, columns);
		inserted = insert_row(heap, columns);
		(void) pj_intake_end();
		if (inserted)
			capture(columns);
	}
	table_close(heap, NoLock);
	return inserted;
}
