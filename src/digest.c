/*
 * digest.c
 *	  Row hashes, and their sum over a read model.
 *
 * The digest of a tenant's rows is the sum, modulo 2^128, of a hash of each
 * row.  It does not depend on the order in which rows came about, and changes
 * with a row by the difference of two hashes, so that keeping it up to date
 * costs per changed row and not per table.
 *
 * A row's hash is that of its columns' text, as their types write it under
 * settings that are always the same, so that it does not depend on who asks.
 * Columns named in option "digest_ignore" do not count.
 */
#include "compat.h"

#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "lib/stringinfo.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"

#include "digest.h"
#include "lock.h"
#include "statement.h"

PG_FUNCTION_INFO_V1(projector_digest_add);

/* Settings that decide how values are written. */
static const char *const pinned_settings[][2] = {
	{"DateStyle", "ISO, YMD"},
	{"IntervalStyle", "postgres"},
	{"TimeZone", "UTC"},
	{"extra_float_digits", "1"},
	{"bytea_output", "hex"},
	{"lc_monetary", "C"},
	{"xmloption", "content"},
};

/* The same projection's digest, changed; or the change alone, if it is new. */
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

/* What appends have noted goes too. */
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

static void
read_digest(text *value, PjDigest *digest)
{
	unsigned long long high,
				low;
	char	   *str = text_to_cstring(value);

	if (strlen(str) != 32 || sscanf(str, "%16llx%16llx", &high, &low) != 2)
		ereport(ERROR,
				errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
				errmsg("invalid digest \"%s\"", str));
	digest->high = high;
	digest->low = low;
	digest->rows = digest->layout = 0;
}

/* See the install script. */
Datum
projector_digest_add(PG_FUNCTION_ARGS)
{
	PjDigest	a,
				b;

	read_digest(PG_GETARG_TEXT_PP(0), &a);
	read_digest(PG_GETARG_TEXT_PP(1), &b);
	pj_digest_add(&a, &b);
	PG_RETURN_TEXT_P(cstring_to_text(pj_digest_text(&a)));
}

/* ---- hashing ---- */

/* Is it certain that values of this type are always written alike? */
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

static bool
is_ignored(const PjProjection *projection, const char *column)
{
	for (int i = 0; projection->options.digest_ignore[i]; i++)
		if (strcmp(projection->options.digest_ignore[i], column) == 0)
			return true;
	return false;
}

static void
pin_settings(PjHasher *hasher)
{
	hasher->pinned = true;
	hasher->guc_level = NewGUCNestLevel();
	for (int i = 0; i < lengthof(pinned_settings); i++)
		(void) set_config_option(pinned_settings[i][0], pinned_settings[i][1],
								 PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE,
								 true, 0, false);
}

/*
 * Get ready to hash rows of a projection's target, counted from 0.  Until
 * pj_hasher_end() no other code should run: settings may have been changed.
 */
void
pj_hasher_begin(PjHasher *hasher, TupleDesc desc,
				const PjProjection *projection, int target)
{
	bool		alike = true;

	memset(hasher, 0, sizeof(*hasher));
	hasher->desc = desc;
	hasher->seed = target;
	hasher->outputs = palloc0(sizeof(FmgrInfo) * Max(desc->natts, 1));
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(desc, i);
		Oid			output;
		bool		varlena;

		if (attribute->attisdropped ||
			is_ignored(projection, NameStr(attribute->attname)))
			continue;
		getTypeOutputInfo(attribute->atttypid, &output, &varlena);
		fmgr_info(output, &hasher->outputs[i]);
		hasher->layout = hash_combine64(hasher->layout,
										hash_bytes_extended((unsigned char *) NameStr(attribute->attname),
															strlen(NameStr(attribute->attname)),
															attribute->atttypid));
		alike = alike && is_always_alike(attribute->atttypid);
	}
	hasher->layout |= 1;		/* it is never 0 */
	if (!alike)
		pin_settings(hasher);
}

/* The hash of a row, as a sum of one. */
void
pj_hasher_row(PjHasher *hasher, const Datum *values, const bool *nulls,
			  PjDigest *hash)
{
	StringInfoData image;

	initStringInfo(&image);
	for (int i = 0; i < hasher->desc->natts; i++)
	{
		char	   *str;

		if (!OidIsValid(hasher->outputs[i].fn_oid))
			continue;
		if (nulls[i])
		{
			appendStringInfoChar(&image, 'n');
			continue;
		}
		str = OutputFunctionCall(&hasher->outputs[i], values[i]);
		appendStringInfo(&image, "%zu:%s", strlen(str), str);
		pfree(str);
	}
	hash->high = hash_bytes_extended((unsigned char *) image.data, image.len,
									 2 * hasher->seed);
	hash->low = hash_bytes_extended((unsigned char *) image.data, image.len,
									2 * hasher->seed + 1);
	hash->rows = 1;
	hash->layout = hasher->layout;
	pfree(image.data);
}

void
pj_hasher_end(PjHasher *hasher)
{
	if (hasher->pinned)
		AtEOXact_GUC(false, hasher->guc_level);
	pfree(hasher->outputs);
}

/* ---- what is kept ---- */

/* Is the projection's digest kept up to date with every batch? */
bool
pj_digest_is_kept(const PjProjection *projection)
{
	return projection->options.digest && pj_is_fold(projection->kind);
}

/* As for cursors; what is built aside has a number that nobody else uses. */
static void
assert_locked(int32 projection_id, Datum tenant)
{
	Assert(projection_id < 0 || pj_driver_is_locked(projection_id, tenant));
}

static uint64
store(PjStatement *stmt, int32 projection_id, Datum tenant,
	  const PjDigest *digest, int64 log_seq)
{
	Datum		values[6] = {Int32GetDatum(projection_id), tenant,
		CStringGetTextDatum(pj_digest_text(digest)),
		Int64GetDatum(digest->rows), Int64GetDatum(log_seq),
	Int64GetDatum(digest->layout)};

	return pj_execute(stmt, values, NULL);
}

/*
 * A batch up to some position has changed the read model.  Returns false if the
 * table's columns have changed since: the digest must be found anew.
 */
bool
pj_digest_change(int32 projection_id, Datum tenant, const PjDigest *by,
				 int64 log_seq)
{
	assert_locked(projection_id, tenant);
	return store(&change, projection_id, tenant, by, log_seq) == 1;
}

/* The digest is known from the read model itself. */
void
pj_digest_set(int32 projection_id, Datum tenant, const PjDigest *digest,
			  int64 log_seq)
{
	(void) store(&set, projection_id, tenant, digest, log_seq);
}

/* The read model has been emptied. */
void
pj_digest_forget(int32 projection_id, Datum tenant)
{
	Datum		values[2] = {Int32GetDatum(projection_id), tenant};

	assert_locked(projection_id, tenant);
	pj_execute(&forget, values, NULL);
}
