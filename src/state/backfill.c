/*
 * backfill.c
 *	  How far the pairs of a projection are that read the log first, because
 *	  the projection is new, was reset or was switched on.
 *
 * A view asks this, so it must not look at all of 100,000 cursors.  It counts
 * up to MAX_COUNTED of them.  If there are more, it looks at some blocks of the
 * table and takes them for all: always the same ones, so that the figures of two
 * looks can be compared.
 *
 * How far a pair is, is estimated from the position of its cursor in the log.
 */
#include "base/compat.h"

#include "access/relation.h"
#include "catalog/namespace.h"
#include "storage/bufmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "base/statement.h"
#include "state/backfill.h"

#define MAX_COUNTED		10000
#define SAMPLED_BLOCKS	1024

/* $1 is the projection, $2 its mode.  A run has its own progress. */
#define IS_BEHIND \
	"state IN ('replaying', 'switching') AND run_id IS NULL" \
	" AND coalesce(mode, $2) NOT IN ('off', 'shadow')"

/* $3 is the position that they read up to. */
static PjStatement count_behind = {
	.sql = "SELECT count(*), sum(least(last_log_seq, $3))::float8 FROM"
	" (SELECT last_log_seq FROM projector.projection_cursors"
	" WHERE projection_id = $1 AND " IS_BEHIND " LIMIT $4) c",
	.expect = SPI_OK_SELECT,
	.nargs = 4,
	.argtypes = {INT4OID, TEXTOID, INT8OID, INT8OID},
};

static PjStatement count_all = {
	.sql = "SELECT count(*) FROM (SELECT FROM projector.projection_cursors"
	" WHERE projection_id = $1 LIMIT $2) c",
	.expect = SPI_OK_SELECT,
	.nargs = 2,
	.argtypes = {INT4OID, INT8OID},
};

/* $4 is the share of the table to look at, in percent. */
static PjStatement sample = {
	.sql = "SELECT count(*) FILTER (WHERE " IS_BEHIND "),"
	" sum(least(last_log_seq, $3)) FILTER (WHERE " IS_BEHIND ")::float8,"
	" count(*) FROM projector.projection_cursors"
	" TABLESAMPLE SYSTEM ($4) REPEATABLE (0) WHERE projection_id = $1",
	.expect = SPI_OK_SELECT,
	.nargs = 4,
	.argtypes = {INT4OID, TEXTOID, INT8OID, FLOAT4OID},
};

static int64
int8_result(int column)
{
	bool		isnull;

	return DatumGetInt64(pj_result(0, column, &isnull));
}

/* Returns 0 if it is null. */
static double
float8_result(int column)
{
	bool		isnull;
	Datum		value = pj_result(0, column, &isnull);

	return isnull ? 0 : DatumGetFloat8(value);
}

/* The share of the cursors' table that makes up a sample. */
static double
sampled_share(void)
{
	Oid			relid = get_relname_relid("projection_cursors",
										  get_namespace_oid("projector", false));
	Relation	rel = relation_open(relid, AccessShareLock);
	double		blocks = RelationGetNumberOfBlocks(rel);

	relation_close(rel, NoLock);
	return Min(SAMPLED_BLOCKS / Max(blocks, 1), 1);
}

/*
 * Find out how many pairs of a projection read the log up to a position, and
 * how far they are.  The caller has called pj_enter_internal().
 */
void
pj_backfill_look(const PjProjection *projection, int64 upto,
				 PjBackfill *backfill)
{
	Datum		id = Int32GetDatum(projection->id);
	Datum		values[4] = {id,
		CStringGetTextDatum(pj_mode_names[projection->mode]),
	Int64GetDatum(upto), Int64GetDatum(MAX_COUNTED)};
	Datum		counted[2] = {id, Int64GetDatum(MAX_COUNTED)};
	double		read;			/* the sum of their positions */

	pj_execute(&count_behind, values, NULL);
	backfill->left = int8_result(1);
	read = float8_result(2);
	if (backfill->left == 0)
	{
		backfill->total = 0;
		backfill->done = 0;
		return;
	}
	pj_execute(&count_all, counted, NULL);
	backfill->total = int8_result(1);
	if (backfill->total == MAX_COUNTED)
	{
		double		share = sampled_share();

		values[3] = Float4GetDatum(share * 100);
		pj_execute(&sample, values, NULL);
		backfill->total = Max(int8_result(3) / share, MAX_COUNTED);
		if (backfill->left == MAX_COUNTED)
		{
			backfill->left = Max(int8_result(1) / share, MAX_COUNTED);
			read = float8_result(2) / share;
		}
	}
	backfill->done = upto == 0 ? 0 :
		1 - (backfill->left - read / upto) / backfill->total;
}
