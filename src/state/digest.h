/*
 * digest.h
 *	  Row hashes, and their sum over a read model.
 */
#ifndef PJ_DIGEST_H
#define PJ_DIGEST_H

#include "base/compat.h"
#include "fmgr.h"
#include "utils/relcache.h"

#include "registry/projection.h"

/* A sum of row hashes, modulo 2^128, and the number of rows. */
typedef struct PjDigest
{
	uint64		high;
	uint64		low;
	int64		rows;
	int64		layout;			/* of the hashed rows; 0 if there are none */
} PjDigest;

/* The digest of rows that some events have made. */
typedef struct PjDigestSum
{
	PjDigest	digest;
	int64		last_log_seq;	/* the last position of these events */
} PjDigestSum;

/* The layout of a sum of rows that were hashed differently. */
#define PJ_LAYOUTS_DIFFER	(-1)

/* The state for hashing rows of a table. */
typedef struct PjHasher
{
	int			natts;
	FmgrInfo   *outputs;		/* one per column; fn_oid is invalid if the
								 * column is left out */
	uint64		seed;			/* distinguishes the projection's tables */
	int64		layout;			/* identifies the table, its columns and their
								 * types */
	MemoryContext context;		/* for the text of one row */
	bool		pinned;			/* settings have been set, at this GUC nest
								 * level */
	int			guc_level;
} PjHasher;

extern void pj_hasher_begin(PjHasher *hasher, Relation rel,
							const PjProjection *projection, int target);
extern void pj_hasher_row(PjHasher *hasher, const Datum *values,
						  const bool *nulls, PjDigest *hash);
extern void pj_hasher_end(PjHasher *hasher);

extern void pj_digest_add(PjDigest *digest, const PjDigest *more);
extern void pj_digest_add_change(PjDigestSum *sum, const PjDigest *by,
								 int64 log_seq);
extern void pj_digest_subtract(PjDigest *digest, const PjDigest *less);
extern bool pj_digest_is_zero(const PjDigest *digest);
extern char *pj_digest_text(const PjDigest *digest);
extern void pj_digest_read(Datum value, PjDigest *digest);

extern Datum projector_digest_add(PG_FUNCTION_ARGS);

extern bool pj_digest_is_kept(const PjProjection *projection);

/* "books" is the id of a projection, or that of its builds (pair.h) */
extern bool pj_digest_fits(int32 books, Datum tenant, int64 layout);
extern bool pj_digest_change(int32 books, Datum tenant,
							 const PjDigest *change, int64 log_seq);
extern void pj_digest_set(int32 books, Datum tenant, const PjDigest *digest,
						  int64 log_seq);
extern void pj_digest_forget(int32 books, Datum tenant);
extern void pj_digests_forget(int32 projection_id);

#endif							/* PJ_DIGEST_H */
