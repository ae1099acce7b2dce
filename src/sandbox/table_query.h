/*
 * table_query.h
 *	  Run one of our own queries on users' tables.
 */
#ifndef PJ_TABLE_QUERY_H
#define PJ_TABLE_QUERY_H

#include "base/compat.h"
#include "executor/tuptable.h"
#include "utils/snapshot.h"

typedef struct PjTableQuery
{
	const char *sql;			/* on one table; see target_query.c */
	int			nargs;
	Oid			types[3];
	Datum		values[3];
	Oid			instead;		/* a table with the same columns to use
								 * instead of that one, or invalid */
	Snapshot	snapshot;		/* NULL for the latest */

	/* Called for each row, if not NULL, in memory that it may reset. */
	void		(*receive) (void *arg, TupleTableSlot *slot);
	void	   *arg;
} PjTableQuery;

extern uint64 pj_table_query(const PjTableQuery *query);

#endif							/* PJ_TABLE_QUERY_H */
