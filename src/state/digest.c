/*
 * digest.c
 *	  Row hashes, and their sum over a read model.
 *
 * The digest of a tenant's rows is the sum, modulo 2^128, of the hashes of the
 * rows.  It does not depend on the order in which rows were written.  Changing
 * a row changes it by the difference of two hashes, so keeping it up to date
 * costs per changed row and not per table.
 *
 * A row's hash is computed from the text of its columns, as produced by their
 * output functions with fixed settings.  So it does not depend on the session.
 * Columns named in option "digest_ignore" are left out.
 */
#include "base/compat.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/pg_enum.h"
#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "utils/builtins.h"
#include "utils/catcache.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
#include "utils/typcache.h"

#include "base/fetch.h"
#include "base/lock.h"
#include "base/row.h"
#include "base/statement.h"
#include "state/digest.h"
#include "state/pair.h"

PG_FUNCTION_INFO_V1(projector_digest_add);

/* The columns of table projection_digests, in order. */
enum
{
	Anum_projection_id = 1,
	Anum_tenant_id,
	Anum_digest,
	Anum_row_count,
	Anum_last_log_seq,
	Anum_refreshed_at,
	Anum_layout,
	Natts = Anum_layout
};

#define NUM_CHECKS	1

static PjTable digests_table = {"projection_digests",
"projection_digests_pkey"};

/*
 * Add a change to the digest, or store it as the first one.  Does nothing if
 * the layout has changed.
 */
static PjStatement change = {
	.sql = "INSERT INTO projector.projection_digests AS d"
	" (projection_id, tenant_id, digest, row_count, last_log_seq, layout)"
	" VALUES ($1, $2, $3, $4, $5, $6)"
	" ON CONFLICT (projection_id, tenant_id) DO UPDATE"
	" SET digest = projector.digest_add(d.digest, excluded.digest),"
	" row_count = d.row_count + excluded.row_count,"
	" last_log_seq = greatest(d.last_log_seq, excluded.last_log_seq),"
	" refreshed_at = now() WHERE d.layout = excluded.layout",
	.expect = SPI_OK_INSERT,
	.nargs = 6,
	.argtypes = {INT4OID, TEXTOID, TEXTOID, INT8OID, INT8OID, INT8OID},
};

static PjStatement set = {
	.sql = "INSERT INTO projector.projection_digests AS d"
	" (projection_id, tenant_id, digest, row_count, last_log_seq, layout)"
	" VALUES ($1, $2, $3, $4, $5, $6)"
	" ON CONFLICT (projection_id, tenant_id) DO UPDATE"
	" SET digest = excluded.digest, row_count = excluded.row_count,"
	" last_log_seq = excluded.last_log_seq, layout = excluded.layout,"
	" refreshed_at = now()",
	.expect = SPI_OK_INSERT,
	.nargs = 6,
	.argtypes = {INT4OID, TEXTOID, TEXTOID, INT8OID, INT8OID, INT8OID},
};

/*
 * Also removes digests from rows of inline appends that were not yet added up.
 */
static PjStatement forget = {
	.sql = "WITH noted AS (UPDATE projector.projection_deltas"
	" SET digest = NULL, row_count = 0"
	" WHERE projection_id = $1 AND tenant_id = $2 AND digest IS NOT NULL)"
	" DELETE FROM projector.projection_digests"
	" WHERE projection_id = $1 AND tenant_id = $2",
	.expect = SPI_OK_DELETE,
	.nargs = 2,
	.argtypes = {INT4OID, TEXTOID},
};

static PjStatement forget_noted = {
	.sql = "UPDATE projector.projection_deltas SET digest = NULL,"
	" row_count = 0 WHERE projection_id = $1 AND digest IS NOT NULL",
	.expect = SPI_OK_UPDATE,
	.nargs = 1,
	.argtypes = {INT4OID},
};

static PjStatement forget_all = {
	.sql = "DELETE FROM projector.projection_digests WHERE projection_id = $1",
	.expect = SPI_OK_DELETE,
	.nargs = 1,
	.argtypes = {INT4OID},
};

/* ---- sums ---- */

void
pj_digest_add(PjDigest *digest, const PjDigest *more)
{
	uint64		low = digest->low + more->low;

	digest->high += more->high + (low < more->low);
	digest->low = low;
	digest->rows += more->rows;
	digest->layout = more->layout ? more->layout : digest->layout;
}

/*
 * Events up to some position have changed rows: add the change to a sum.  If
 * their rows were hashed differently the sum means nothing, which is noted in
 * its layout.
 */
void
pj_digest_add_change(PjDigestSum *sum, const PjDigest *by, int64 log_seq)
{
	PjDigest   *digest = &sum->digest;
	bool		alike = digest->layout == 0 || by->layout == 0 ||
	digest->layout == by->layout;

	pj_digest_add(digest, by);
	if (!alike)
		digest->layout = PJ_LAYOUTS_DIFFER;
	sum->last_log_seq = Max(sum->last_log_seq, log_seq);
}

void
pj_digest_subtract(PjDigest *digest, const PjDigest *less)
{
	digest->high -= less->high + (digest->low < less->low);
	digest->low -= less->low;
	digest->rows -= less->rows;
	digest->layout = less->layout ? less->layout : digest->layout;
}

bool
pj_digest_is_zero(const PjDigest *digest)
{
	return digest->high == 0 && digest->low == 0 && digest->rows == 0;
}

/* 32 hexadecimal digits. */
char *
pj_digest_text(const PjDigest *digest)
{
	return psprintf("%016llx%016llx", (unsigned long long) digest->high,
					(unsigned long long) digest->low);
}

/* Read the sum of hashes from its text. */
void
pj_digest_read(Datum value, PjDigest *digest)
{
	unsigned long long high,
				low;
	char	   *str = TextDatumGetCString(value);

	if (strlen(str) != 32 || sscanf(str, "%16llx%16llx", &high, &low) != 2)
		ereport(ERROR,
				errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
				errmsg("invalid digest \"%s\"", str));
	digest->high = high;
	digest->low = low;
	digest->rows = digest->layout = 0;
}

/* SQL function: returns the sum of two digests. */
Datum
projector_digest_add(PG_FUNCTION_ARGS)
{
	PjDigest	a,
				b;

	pj_digest_read(PG_GETARG_DATUM(0), &a);
	pj_digest_read(PG_GETARG_DATUM(1), &b);
	pj_digest_add(&a, &b);
	PG_RETURN_TEXT_P(cstring_to_text(pj_digest_text(&a)));
}

/* ---- hashing ---- */

/* Is the text of values of this type independent of all settings? */
static bool
is_always_alike(Oid type)
{
	switch (type)
	{
		case BOOLOID:
		case INT2OID:
		case INT4OID:
		case INT8OID:
		case NUMERICOID:
		case TEXTOID:
		case VARCHAROID:
		case BPCHAROID:
		case UUIDOID:
		case JSONOID:
		case JSONBOID:
			return true;
		default:
			return false;
	}
}

static int64 add_column(int64 layout, Form_pg_attribute attribute);

/* A change of a composite type changes the layout, too. */
static int64
add_attributes(int64 layout, Oid type)
{
	TupleDesc	desc = lookup_rowtype_tupdesc(type, -1);

	for (int i = 0; i < desc->natts; i++)
		if (!TupleDescAttr(desc, i)->attisdropped)
			layout = add_column(layout, TupleDescAttr(desc, i));
	ReleaseTupleDesc(desc);
	return layout;
}

/* Renaming an enum label changes the text of rows that contain it. */
static int64
add_labels(int64 layout, Oid type)
{
	CatCList   *labels;

	type = getBaseType(type);
	if (OidIsValid(get_element_type(type)))
		type = getBaseType(get_element_type(type));
	if (get_typtype(type) == TYPTYPE_COMPOSITE)
		return add_attributes(layout, type);
	if (get_typtype(type) != TYPTYPE_ENUM)
		return layout;
	labels = SearchSysCacheList1(ENUMTYPOIDNAME, ObjectIdGetDatum(type));
	for (int i = 0; i < labels->n_members; i++)
	{
		Form_pg_enum label = (Form_pg_enum) GETSTRUCT(&labels->members[i]->tuple);

		/* labels come in no particular order */
		layout += hash_bytes_extended((unsigned char *) NameStr(label->enumlabel),
									  strlen(NameStr(label->enumlabel)),
									  label->oid);
	}
	ReleaseCatCacheList(labels);
	return layout;
}

/*
 * Add a column to a layout.  A layout is a number that changes if the text of
 * rows may have changed: because it is another table, or because a column was
 * added, dropped or given another type.
 */
static int64
add_column(int64 layout, Form_pg_attribute attribute)
{
	const char *name = NameStr(attribute->attname);
	int32		type[4] = {attribute->atttypid, attribute->atttypmod,
	attribute->attcollation, attribute->attnum};
	uint64		seed = hash_bytes_extended((unsigned char *) type,
										   sizeof(type), 0);

	layout = hash_combine64(layout,
							hash_bytes_extended((unsigned char *) name,
												strlen(name), seed));
	return attribute->atttypid >= FirstNormalObjectId ?
		add_labels(layout, attribute->atttypid) : layout;
}

/*
 * Prepare to hash rows of a projection's target, counted from 0.  The caller
 * has become the projection's owner in the sandbox, because output functions
 * are run.  Until pj_hasher_end() no other code should run: settings may have
 * been changed.
 */
void
pj_hasher_begin(PjHasher *hasher, Relation rel,
				const PjProjection *projection, int target)
{
	TupleDesc	desc = RelationGetDescr(rel);
	bool		alike = true;

	memset(hasher, 0, sizeof(*hasher));
	hasher->natts = desc->natts;
	hasher->seed = target;
	hasher->outputs = palloc0(sizeof(FmgrInfo) * Max(desc->natts, 1));
	hasher->layout = RelationGetRelid(rel);
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(desc, i);
		Oid			output;
		bool		varlena;

		if (attribute->attisdropped ||
			pj_options_ignore(&projection->options, NameStr(attribute->attname)))
			continue;
		getTypeOutputInfo(attribute->atttypid, &output, &varlena);
		fmgr_info(output, &hasher->outputs[i]);
		hasher->layout = add_column(hasher->layout, attribute);
		alike = alike && is_always_alike(attribute->atttypid);
	}
	hasher->layout |= 1;		/* never 0 */
	hasher->context = AllocSetContextCreate(CurrentMemoryContext,
											"projector row hash",
											ALLOCSET_DEFAULT_SIZES);
	if (alike)
		return;
	hasher->pinned = true;
	hasher->guc_level = NewGUCNestLevel();
	pj_pin_settings();
}

/* Add a column's text, or NULL for a null, to a row's hash. */
static void
hash_column(PjDigest *hash, uint64 seed, const char *str)
{
	Size		length = str ? strlen(str) : 0;
	const unsigned char *bytes = (const unsigned char *) (str ? str : "");

	hash->high = hash_combine64(hash->high,
								hash_bytes_extended(bytes, length, seed));
	hash->low = hash_combine64(hash->low,
							   hash_bytes_extended(bytes, length, ~seed));
	hash->low += str ? length + 1 : 0;
}

/*
 * Compute the hash of a row, as a digest of one row.  Values are detoasted and
 * converted to text in memory that is freed afterwards.
 */
void
pj_hasher_row(PjHasher *hasher, const Datum *values, const bool *nulls,
			  PjDigest *hash)
{
	MemoryContext caller = MemoryContextSwitchTo(hasher->context);

	hash->high = hash->low = hasher->seed;
	for (int i = 0; i < hasher->natts; i++)
	{
		if (!OidIsValid(hasher->outputs[i].fn_oid))
			continue;
		hash_column(hash, hasher->seed, nulls[i] ? NULL :
					OutputFunctionCall(&hasher->outputs[i], values[i]));
	}
	hash->rows = 1;
	hash->layout = hasher->layout;
	MemoryContextSwitchTo(caller);
	MemoryContextReset(hasher->context);
}

void
pj_hasher_end(PjHasher *hasher)
{
	if (hasher->pinned)
		AtEOXact_GUC(false, hasher->guc_level);
	MemoryContextDelete(hasher->context);
	pfree(hasher->outputs);
}

/* ---- stored digests ---- */

/* Is the projection's digest updated by every batch? */
bool
pj_digest_is_kept(const PjProjection *projection)
{
	return projection->options.digest && pj_is_fold(projection->kind);
}

/* As for cursors.  The rows of a build are used only by its run. */
static void
assert_locked(int32 books, Datum tenant)
{
	Assert(pj_books_are_of_build(books) ||
		   pj_driver_is_locked(books, tenant));
}

static uint64
store(PjStatement *stmt, int32 books, Datum tenant, const PjDigest *digest,
	  int64 log_seq)
{
	Datum		values[6] = {Int32GetDatum(books), tenant,
		CStringGetTextDatum(pj_digest_text(digest)),
		Int64GetDatum(digest->rows), Int64GetDatum(log_seq),
	Int64GetDatum(digest->layout)};

	return pj_execute(stmt, values, NULL);
}

/* Change the row of a digest.  Returns false if it is outdated. */
static bool
update_row(Relation heap, HeapTuple row, const Datum *old,
		   const PjDigest *by, int64 log_seq)
{
	int			columns[] = {Anum_digest, Anum_row_count, Anum_last_log_seq,
	Anum_refreshed_at};
	bool		nulls[lengthof(columns)] = {false};
	Datum		values[lengthof(columns)];
	PjRowChange update = {lengthof(columns), columns, values, nulls};
	PjDigest	sum;

	pj_digest_read(old[Anum_digest - 1], &sum);
	pj_digest_add(&sum, by);
	values[0] = CStringGetTextDatum(pj_digest_text(&sum));
	values[1] = Int64GetDatum(DatumGetInt64(old[Anum_row_count - 1]) +
							  by->rows);
	values[2] = Int64GetDatum(Max(DatumGetInt64(old[Anum_last_log_seq - 1]),
								  log_seq));
	values[3] = TimestampTzGetDatum(GetCurrentTransactionStartTimestamp());
	return pj_row_update(heap, row, &update);
}

/* A copy of a digest's row, or NULL. */
static HeapTuple
fetch_row(int32 books, Datum tenant)
{
	ScanKeyData keys[2];

	pj_key_int4(&keys[0], 1, books);
	pj_key_text(&keys[1], 2, tenant);
	return pj_fetch_copy(&digests_table, 2, keys);
}

/*
 * Can a change of rows with this layout be added to a digest?  Not if it is of
 * other columns.
 */
bool
pj_digest_fits(int32 books, Datum tenant, int64 layout)
{
	HeapTuple	row = fetch_row(books, tenant);
	Relation	heap;
	bool		isnull,
				fits;

	if (row == NULL)
		return true;
	heap = table_open(pj_relid(&digests_table), AccessShareLock);
	fits = DatumGetInt64(heap_getattr(row, Anum_layout, RelationGetDescr(heap),
									  &isnull)) == layout;
	table_close(heap, NoLock);
	return fits;
}

/*
 * Add a change to a digest without SQL.  Returns false if that cannot be done:
 * there is no row, or not one that can be changed so.
 */
static bool
change_row(int32 books, Datum tenant, const PjDigest *by, int64 log_seq)
{
	HeapTuple	row = fetch_row(books, tenant);
	Relation	heap;
	Datum	   *old;
	bool	   *nulls;
	bool		changed;

	if (row == NULL)
		return false;
	heap = table_open(pj_relid(&digests_table), RowExclusiveLock);
	pj_deform(row, RelationGetDescr(heap), &old, &nulls);
	changed = pj_row_is_ours(heap, Natts, NUM_CHECKS) &&
		DatumGetInt64(old[Anum_layout - 1]) == by->layout &&
		update_row(heap, row, old, by, log_seq);
	table_close(heap, NoLock);
	CommandCounterIncrement();
	return changed;
}

/*
 * A batch up to some position has changed the read model.  Returns false if
 * the table's columns have changed since, so that the digest must be
 * recomputed.
 */
bool
pj_digest_change(int32 books, Datum tenant, const PjDigest *by,
				 int64 log_seq)
{
	assert_locked(books, tenant);
	return change_row(books, tenant, by, log_seq) ||
		store(&change, books, tenant, by, log_seq) == 1;
}

/*
 * Store a digest computed from the rows of the read model.  If the
 * projection's digest is not updated by every batch, any session that has
 * computed it may store it.
 */
void
pj_digest_set(int32 books, Datum tenant, const PjDigest *digest,
			  int64 log_seq)
{
	(void) store(&set, books, tenant, digest, log_seq);
}

/* The read model has been cleared: forget its digest. */
void
pj_digest_forget(int32 books, Datum tenant)
{
	Datum		values[2] = {Int32GetDatum(books), tenant};

	assert_locked(books, tenant);
	pj_execute(&forget, values, NULL);
}

/* Rows of all tenants will be hashed differently: forget their digests. */
void
pj_digests_forget(int32 projection_id)
{
	Datum		values[1] = {Int32GetDatum(projection_id)};

	Assert(pj_projection_is_locked(projection_id, ExclusiveLock));
	pj_execute(&forget_noted, values, NULL);
	pj_execute(&forget_all, values, NULL);
}
