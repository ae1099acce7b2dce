/*
 * log_sample.c
 *	  A sample of a tenant's events: about how many there are, and how they
 *	  are distributed over the aggregates.
 *
 * However large the log is, a fixed number of events is read, each by one
 * search of the index on tenant and log position.  The planner's statistics are
 * not used: they are of all tenants together, and there may be none.
 *
 * The positions from the tenant's first event to its last are cut into stretches
 * of the same length.  In each, the events that follow some random positions are
 * looked up.  How far they are away says how dense the tenant's events are
 * there, and so how many there are.
 */
#include "base/compat.h"

#include "utils/array.h"
#include "utils/builtins.h"

#include "base/statement.h"
#include "base/text.h"
#include "log/log_read.h"
#include "log/log_sample.h"

#define STRETCHES	32
#define PROBES		16			/* in each stretch */

static PjStatement select_first = {
	.sql = "SELECT log_seq FROM projector.events WHERE tenant_id = $1"
	" ORDER BY log_seq LIMIT 1",
	.expect = SPI_OK_SELECT,
	.nargs = 1,
	.argtypes = {TEXTOID},
};

/* For each position, the tenant's next event. */
static PjStatement select_next = {
	.sql = "SELECT e.aggregate_id, e.log_seq"
	" FROM unnest($2) WITH ORDINALITY AS p (log_seq, n)"
	" CROSS JOIN LATERAL (SELECT e.aggregate_id, e.log_seq"
	" FROM projector.events e WHERE e.tenant_id = $1"
	" AND e.log_seq >= p.log_seq ORDER BY e.log_seq LIMIT 1) e ORDER BY p.n",
	.expect = SPI_OK_SELECT,
	.nargs = 2,
	.argtypes = {TEXTOID, INT8ARRAYOID},
};

/*
 * Draw the positions.  There is always an event at or after them, because the
 * last one is there.
 */
static void
draw_positions(int64 first, int64 last, int64 *positions)
{
	double		width = ((double) (last - first) + 1) / STRETCHES;

	for (int i = 0; i < STRETCHES * PROBES; i++)
	{
		double		at = (i / PROBES + pj_random()) * width;

		positions[i] = Min(first + (int64) at, last);
	}
}

/* Estimate how many events there are in a stretch, from its probes. */
static double
count_stretch(double width, const int64 *positions, const int64 *found)
{
	double		distance = 0;

	for (int i = 0; i < PROBES; i++)
		distance += found[i] - positions[i] + 1;
	return width * PROBES / distance;
}

static int
compare_sampled(const void *a, const void *b)
{
	return pj_text_compare(((const PjSampled *) a)->aggregate,
						   ((const PjSampled *) b)->aggregate);
}

/* Sample a tenant's events.  A tenant without events has no sample. */
void
pj_source_sample(Datum tenant, PjSample *sample)
{
	int64		positions[STRETCHES * PROBES];
	int64		found[STRETCHES * PROBES] = {0};
	Datum		values[2] = {tenant};
	int64		first,
				last = pj_source_last_of(tenant);
	bool		isnull;

	memset(sample, 0, sizeof(PjSample));
	if (pj_execute(&select_first, values, NULL) == 0)
		return;
	first = DatumGetInt64(pj_result(0, 1, &isnull));
	draw_positions(first, last, positions);
	values[1] = pj_int8_array(positions, lengthof(positions));
	if (pj_execute(&select_next, values, NULL) != lengthof(positions))
		return;					/* events were deleted meanwhile */
	sample->count = lengthof(positions);
	sample->sampled = palloc(sizeof(PjSampled) * sample->count);
	for (int i = 0; i < sample->count; i++)
	{
		Datum		aggregate = pj_result(i, 1, &isnull);

		sample->sampled[i].aggregate =
			PointerGetDatum(DatumGetTextPCopy(aggregate));
		found[i] = DatumGetInt64(pj_result(i, 2, &isnull));
	}
	for (int i = 0; i < sample->count; i += PROBES)
	{
		double		events = count_stretch(((double) (last - first) + 1) /
										   STRETCHES, &positions[i],
										   &found[i]);

		sample->events += events;
		for (int j = i; j < i + PROBES; j++)
			sample->sampled[j].events = events / PROBES;
	}
	qsort(sample->sampled, sample->count, sizeof(PjSampled), compare_sampled);
}
