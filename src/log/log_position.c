/*
 * log_position.c
 *	  Where an event is in the log, as things are now.
 *
 * What is looked for may be an event that another transaction is adding.  It is
 * waited for: until it commits nobody can know whether there will be one.  So
 * an append, and whoever checks what comes before an event, sees what is there
 * whatever its snapshot.
 */
#include "base/compat.h"

#include "access/htup_details.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "storage/lmgr.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "base/fetch.h"
#include "log/log_read.h"
#include "log/log_table.h"

/* What a row says of its event's place. */
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
 * Find one event of an aggregate, or its last one if sequence_number is 0.
 * If a transaction is adding it, *writer becomes that transaction, and nothing
 * else is known; *token is as in SnapshotData.
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
 * Find one event of an aggregate, or its last one if sequence_number is 0,
 * after waiting for the transaction that is adding it, if one is.
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
			return found;

		/*
		 * An INSERT ... ON CONFLICT that is not yet sure of its row may take
		 * it back, and then wait for us: do not wait for its transaction.
		 */
		if (token != 0)
			SpeculativeInsertionWait(writer, token);
		else
			XactLockTableWait(writer, NULL, NULL, XLTW_None);
	}
}
