/*
 * model_rows.c
 *	  Read the rows of a read model: those of one tenant, each with its
 *	  hash.
 *
 * Everything runs as the projection's owner in the sandbox, with fixed
 * settings and the projection's search_path.  The rows of the target and those
 * of a build are read by the same query.  So the same row always gives the
 * same text, and the code of a column's type runs with the owner's privileges
 * only.
 */
#include "base/compat.h"

#include "access/table.h"
#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "apply/model_rows.h"
#include "registry/target.h"
#include "sandbox/table_query.h"

/* The result's columns before those of the table. */
#define COLUMN_KEY		0
#define COLUMN_TEXT		1
#define COLUMN_JSON		2
#define FIRST_COLUMN	3

typedef struct Reading
{
	PjRowReader *reader;
	PjHasher	hasher;
	MemoryContext per_row;
} Reading;

/* Without a usable primary key, a row is identified by its hash. */
static void
name_row(PjRow *row, TupleTableSlot *slot)
{
	row->unique = !slot->tts_isnull[COLUMN_KEY];
	row->key = row->unique ?
		TextDatumGetCString(slot->tts_values[COLUMN_KEY]) :
		pj_digest_text(&row->hash);
}

static void
receive_row(void *arg, TupleTableSlot *slot)
{
	Reading    *reading = arg;
	MemoryContext caller = MemoryContextSwitchTo(reading->per_row);
	PjRow		row = {0};

	slot_getallattrs(slot);
	pj_hasher_row(&reading->hasher, slot->tts_values + FIRST_COLUMN,
				  slot->tts_isnull + FIRST_COLUMN, &row.hash);
	name_row(&row, slot);
	if (reading->reader->shown)
	{
		row.text = TextDatumGetCString(slot->tts_values[COLUMN_TEXT]);
		row.json = slot->tts_values[COLUMN_JSON];
	}
	reading->reader->receive(reading->reader->arg, &row);
	MemoryContextSwitchTo(caller);
	MemoryContextReset(reading->per_row);
}

/* The part that runs as the projection's owner. */
static void
read_rows(void *arg)
{
	Reading    *reading = arg;
	PjRowReader *reader = reading->reader;
	Oid			relid = pj_target_oid(reader->projection, reader->target);
	Relation	rel = table_open(relid, AccessShareLock);
	PjTableQuery query = {
		.nargs = reader->key ? 2 : 1,
		.types = {TEXTOID, TEXTOID},
		.values = {reader->tenant, reader->key},
		.instead = reader->table,
		.snapshot = reader->snapshot,
		.receive = receive_row,
		.arg = reading,
	};

	query.sql = pj_target_rows_query(rel, reader->projection, reader->shown,
									 reader->key != 0);
	pj_hasher_begin(&reading->hasher, rel, reader->projection,
					reader->target);
	reader->layout = reading->hasher.layout;
	(void) pj_table_query(&query);
	pj_hasher_end(&reading->hasher);
	table_close(rel, NoLock);
}

/* Read rows of a projection's target, or of its build. */
void
pj_rows_read(PjRowReader *reader)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "projector rows",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);
	Reading		reading = {.reader = reader};

	reading.per_row = AllocSetContextCreate(context, "projector row",
											ALLOCSET_DEFAULT_SIZES);
	pj_read_as_owner(reader->projection, TextDatumGetCString(reader->tenant),
					 read_rows, &reading);
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(context);
}
