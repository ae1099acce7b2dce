/*
 * by_pair.c
 *	  Reading a table pair by pair, in the order of an index.
 *
 * A query for many pairs asks several tables about each of them, and most
 * often there is no row.  A reader stands at the next row that there is, so
 * that the answer for the pairs before it costs a comparison.  Pairs are asked
 * for in the order of tenants, projection by projection.
 *
 * What a row says is good until the reader moves.
 */
#include "base/compat.h"

#include "utils/builtins.h"
#include "utils/memutils.h"

#include "base/by_pair.h"
#include "base/text.h"

/* So many rows of other pairs are read before the index is searched again. */
#define MAX_STEPS	1

void
pj_by_pair_init(PjByPair *reader, Snapshot snapshot, bool one_tenant)
{
	reader->snapshot = snapshot;
	reader->context = CurrentMemoryContext;
	reader->one_tenant = one_tenant;
	reader->open = reader->at_row = false;
	reader->projection_id = 0;
}

/* Go to the next row of the projection. */
void
pj_by_pair_step(PjByPair *reader)
{
	MemoryContext caller = MemoryContextSwitchTo(reader->context);

	/* an index scan must not be asked again once it has come to its end */
	reader->at_row = reader->at_row &&
		pj_fetch_next(&reader->fetch, ForwardScanDirection) != NULL;
	MemoryContextSwitchTo(caller);
}

/*
 * Go to the projection's first row, or to its first row of a tenant or a later
 * one.  The tenant must stay in memory as long as the reader reads on.
 */
void
pj_by_pair_start(PjByPair *reader, int32 projection_id, Datum tenant)
{
	MemoryContext caller = MemoryContextSwitchTo(reader->context);
	ScanKeyData keys[2];

	pj_key_int4(&keys[0], 1, projection_id);
	if (reader->one_tenant)
		pj_key_text(&keys[1], 2, tenant);
	else
		pj_key_text_from(&keys[1], 2,
						 tenant ? tenant : CStringGetTextDatum(""));
	if (reader->open)
		pj_fetch_again(&reader->fetch, 2, keys);
	else
		pj_fetch_begin(&reader->fetch, reader->table, reader->snapshot, 2,
					   keys);
	reader->open = reader->at_row = true;
	reader->projection_id = projection_id;
	MemoryContextSwitchTo(caller);
	pj_by_pair_step(reader);
}

/* How the tenant of the row compares with another. */
static int
compare_tenant(PjByPair *reader, Datum tenant)
{
	bool		isnull;

	return pj_text_compare(pj_by_pair_get(reader, reader->tenant, &isnull),
						   tenant);
}

/* Does the reader stand at a row of this tenant? */
bool
pj_by_pair_at(PjByPair *reader, Datum tenant)
{
	return reader->at_row && compare_tenant(reader, tenant) == 0;
}

/*
 * Go to the first row of a pair.  Returns whether there is one.  The next pair
 * of the same projection must be of a later tenant.
 */
bool
pj_by_pair_find(PjByPair *reader, int32 projection_id, Datum tenant)
{
	int			steps = 0;

	if (!reader->open || reader->projection_id != projection_id)
		pj_by_pair_start(reader, projection_id, tenant);
	while (reader->at_row && compare_tenant(reader, tenant) < 0)
	{
		if (steps++ < MAX_STEPS)
			pj_by_pair_step(reader);
		else
			pj_by_pair_start(reader, projection_id, tenant);
	}
	return pj_by_pair_at(reader, tenant);
}

/* A column of the row. */
Datum
pj_by_pair_get(PjByPair *reader, AttrNumber column, bool *isnull)
{
	return slot_getattr(reader->fetch.slot, column, isnull);
}

void
pj_by_pair_end(PjByPair *reader)
{
	if (reader->open)
		pj_fetch_end(&reader->fetch);
	reader->open = reader->at_row = false;
}
