/*
 * table_query.h
 *	  Running a query of ours on tables of users.
 */
#ifndef PJ_TABLE_QUERY_H
#define PJ_TABLE_QUERY_H

#include "base/compat.h"
#include "executor/tuptable.h"
#include "utils/snapshot.h"

typedef struct PjTableQuery
{
	const char *sql;			/* of one table; see target.c */
	int			nargs;
	Oid			types[3];
	Datum		values[3];
	Oid			instead;		/* a table with the same columns that takes
								 * that table's place, or invalid */
	Snapshot	snapshot;		/* NULL: what is there now */

	/* called for each row, if not NULL, in memory that it may reset */
	void		(*receive) (void *arg, TupleTableSlot *slot);
	void	   *arg;
} PjTableQuery;

extern uint64 pj_table_query(const PjTableQuery *query);

#endif							/* PJ_TABLE_QUERY_H */
