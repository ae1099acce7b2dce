/*
 * by_pair.h
 *	  Reading a table pair by pair, in the order of an index.
 */
#ifndef PJ_BY_PAIR_H
#define PJ_BY_PAIR_H

#include "base/compat.h"

#include "base/fetch.h"

typedef struct PjByPair
{
	PjTable    *table;			/* its index begins with projection_id,
								 * tenant_id */
	AttrNumber	tenant;			/* the number of tenant_id in the table */

	/* set by pj_by_pair_init() */
	Snapshot	snapshot;
	MemoryContext context;		/* of the scan */
	bool		one_tenant;		/* rows of other tenants are not read */

	/* kept by by_pair.c */
	PjFetch		fetch;
	bool		open;
	bool		at_row;
	int32		projection_id;	/* whose rows are being read */
} PjByPair;

extern void pj_by_pair_init(PjByPair *reader, Snapshot snapshot,
							bool one_tenant);
extern void pj_by_pair_start(PjByPair *reader, int32 projection_id,
							 Datum tenant);
extern bool pj_by_pair_find(PjByPair *reader, int32 projection_id,
							Datum tenant);
extern void pj_by_pair_step(PjByPair *reader);
extern bool pj_by_pair_at(PjByPair *reader, Datum tenant);
extern Datum pj_by_pair_get(PjByPair *reader, AttrNumber column,
							bool *isnull);
extern void pj_by_pair_end(PjByPair *reader);

#endif							/* PJ_BY_PAIR_H */
