/*
 * log_position.c
 *	  Find an event's current position in the log.
 *
 * If another transaction is adding the event, we wait for it: until it ends,
 * we cannot know whether the event will exist.  So appends, and the check of
 * an event's predecessor, see the current log, whatever their snapshot.
 *
 * An append finds the last event of an aggregate, and then the check of the new
 * event asks for that same event.  So the last answer is remembered.  It holds
 * until the subtransaction ends: an event that is there stays, unless it is our
 * own and is rolled back.
 */
#include "base/compat.h"

#include "access/htup_details.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "storage/lmgr.h"
#include "storage/proc.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "base/fetch.h"
#include "log/log_read.h"
#include "log/log_table.h"

/* Ids are at most that long; see log_write.c. */
#define MAX_ID	1000

typedef struct KeptId
{
	int			length;
	char		bytes[MAX_ID];
} KeptId;

/* The event that was found last. */
static struct
{
	LocalTransactionId lxid;	/* when it was found */
	SubTransactionId subxid;
	Oid			relid;
	KeptId		tenant;
	KeptId		aggregate;
	PjPosition	position;
} found_last;

static bool
is_id(const KeptId *kept, Datum value)
{
	text	   *id = DatumGetTextPP(value);

	return kept->length == VARSIZE_ANY_EXHDR(id) &&
		memcmp(kept->bytes, VARDATA_ANY(id), kept->length) == 0;
}

static void
set_id(KeptId *kept, Datum value)
{
	text	   *id = DatumGetTextPP(value);

	kept->length = VARSIZE_ANY_EXHDR(id);
	memcpy(kept->bytes, VARDATA_ANY(id), kept->length);
}

/* Was this event found last? */
static bool
is_remembered(Datum tenant, Datum aggregate, int64 sequence_number)
{
	return found_last.position.sequence_number == sequence_number &&
		found_last.lxid == pj_transaction() &&
		found_last.subxid == GetCurrentSubTransactionId() &&
		found_last.relid == pj_relid(&pj_events_table) &&
		is_id(&found_last.aggregate, aggregate) &&
		is_id(&found_last.tenant, tenant);
}

static void
remember(Datum tenant, Datum aggregate, const PjPosition *position)
{
	found_last.lxid = InvalidLocalTransactionId;
	if (VARSIZE_ANY_EXHDR(DatumGetTextPP(tenant)) > MAX_ID ||
		VARSIZE_ANY_EXHDR(DatumGetTextPP(aggregate)) > MAX_ID)
		return;					/* it was restored from a dump */
	set_id(&found_last.tenant, tenant);
	set_id(&found_last.aggregate, aggregate);
	found_last.position = *position;
	found_last.subxid = GetCurrentSubTransactionId();
	found_last.relid = pj_relid(&pj_events_table);
	found_last.lxid = pj_transaction();
}

/* Get an event's position from its row. */
static void
read_position(PjFetch *fetch, HeapTuple tuple, PjPosition *position)
{
	TupleDesc	desc = RelationGetDescr(fetch->heap);
	TransactionId writer = HeapTupleHeaderGetXmin(tuple->t_data);
	bool		isnull;

	position->sequence_number =
		DatumGetInt64(heap_getattr(tuple, Anum_sequence_number, desc,
								   &isnull));
	position->log_seq = DatumGetInt64(heap_getattr(tuple, Anum_log_seq, desc,
												   &isnull));
	position->visible = !IsolationUsesXactSnapshot() ||
		TransactionIdIsCurrentTransactionId(writer) ||
		table_tuple_satisfies_snapshot(fetch->heap, fetch->slot,
									   GetTransactionSnapshot());
}

/*
 * Find one event of an aggregate, or its last one if sequence_number is 0.  If
 * a transaction is adding it, *writer is set to that transaction, and
 * *position is not set; *token is as in SnapshotData.
 */
static bool
find_position(Datum tenant, Datum aggregate, int64 sequence_number,
			  PjPosition *position, TransactionId *writer, uint32 *token)
{
	SnapshotData dirty;
	ScanKeyData keys[3];
	PjFetch		fetch;
	HeapTuple	tuple;
	bool		found;

	InitDirtySnapshot(dirty);
	pj_key_text(&keys[0], 1, tenant);
	pj_key_text(&keys[1], 2, aggregate);
	pj_key_int8(&keys[2], 3, sequence_number);
	pj_fetch_begin(&fetch, &pj_events_table, &dirty,
				   sequence_number > 0 ? 3 : 2, keys);
	tuple = pj_fetch_next(&fetch, BackwardScanDirection);
	found = HeapTupleIsValid(tuple);
	*writer = found ? dirty.xmin : InvalidTransactionId;
	*token = found ? dirty.speculativeToken : 0;
	if (found && !TransactionIdIsValid(*writer))
		read_position(&fetch, tuple, position);
	pj_fetch_end(&fetch);
	return found;
}

/*
 * Find one event of an aggregate, or its last one if sequence_number is 0.  If
 * a transaction is adding it, wait for that transaction first.
 */
bool
pj_source_position(Datum tenant, Datum aggregate, int64 sequence_number,
				   PjPosition *position)
{
	for (;;)
	{
		TransactionId writer;
		uint32		token;
		bool		found = find_position(tenant, aggregate, sequence_number,
										  position, &writer, &token);

		if (!TransactionIdIsValid(writer))
		{
			if (found)
				remember(tenant, aggregate, position);
			return found;
		}

		/*
		 * A speculative insertion (INSERT ... ON CONFLICT) may still be
		 * undone, and its transaction may then wait for us.  So wait only for
		 * the insertion, not for the transaction.
		 */
		if (token != 0)
			SpeculativeInsertionWait(writer, token);
		else
			XactLockTableWait(writer, NULL, NULL, XLTW_None);
	}
}

/*
 * The same for the predecessor of an event that is being added.  An append has
 * just found it.
 */
bool
pj_source_predecessor(Datum tenant, Datum aggregate, int64 sequence_number,
					  PjPosition *position)
{
	if (!is_remembered(tenant, aggregate, sequence_number))
		return pj_source_position(tenant, aggregate, sequence_number,
								  position);
	*position = found_last.position;
	return true;
}
