/*
 * model_rows.h
 *	  Read the rows of a read model.
 */
#ifndef PJ_MODEL_ROWS_H
#define PJ_MODEL_ROWS_H

#include "base/compat.h"
#include "utils/snapshot.h"

#include "registry/projection.h"
#include "state/digest.h"

/* A row, in memory that is freed before the next one is read. */
typedef struct PjRow
{
	const char *key;			/* its primary key as text, or another
								 * identification */
	bool		unique;			/* no other row has this key */
	PjDigest	hash;

	/* only if the reader wants to show it */
	const char *text;
	Datum		json;			/* jsonb */
} PjRow;

/* A request to read rows. */
typedef struct PjRowReader
{
	const PjProjection *projection;
	int			target;			/* counted from 0 */
	Oid			table;			/* if valid, a fold's rows are in this table
								 * instead */
	Datum		tenant;
	Datum		key;			/* only this one; 0 for all */
	bool		shown;
	Snapshot	snapshot;		/* NULL for the latest */
	void		(*receive) (void *arg, const PjRow *row);
	void	   *arg;

	int64		layout;			/* of the rows; set even if there are none */
} PjRowReader;

extern void pj_rows_read(PjRowReader *reader);

#endif							/* PJ_MODEL_ROWS_H */
