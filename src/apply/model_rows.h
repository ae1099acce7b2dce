/*
 * model_rows.h
 *	  Reading a read model's rows.
 */
#ifndef PJ_MODEL_ROWS_H
#define PJ_MODEL_ROWS_H

#include "base/compat.h"
#include "utils/snapshot.h"

#include "registry/projection.h"
#include "state/digest.h"

/* A row, in memory that is free again when the next one comes. */
typedef struct PjRow
{
	const char *key;			/* its primary key as text, or what else it is
								 * known by */
	bool		unique;			/* no other row has that key */
	PjDigest	hash;

	/* if the reader wants to show it */
	const char *text;
	Datum		json;			/* jsonb */
} PjRow;

/* What to read. */
typedef struct PjRowReader
{
	const PjProjection *projection;
	int			target;			/* counted from 0 */
	Oid			table;			/* has a fold's rows instead, if valid */
	Datum		tenant;
	Datum		key;			/* only this one; 0 for all */
	bool		shown;
	Snapshot	snapshot;		/* NULL: what is there now */
	void		(*receive) (void *arg, const PjRow *row);
	void	   *arg;

	int64		layout;			/* of the rows, if there are any or not */
} PjRowReader;

extern void pj_rows_read(PjRowReader *reader);

#endif							/* PJ_MODEL_ROWS_H */
