/*
 * definition_hash.c
 *	  The hash of a definition: of everything that a read model depends on.
 *
 * The hash includes the source of the projection's function, which can be
 * replaced, and replaced back, without our knowledge.  It also includes how
 * often the definition was changed by projector_alter() or projector_create().
 * So a definition that is changed back has a new hash: events may have been
 * left out, or applied with the other definition, in between.
 *
 * Names of targets are not included: a renamed or restored table still has its
 * rows.
 */
#include "base/compat.h"

#include "common/sha2.h"
#include "lib/stringinfo.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"
#include "utils/hsearch.h"
#include "utils/inval.h"

#include "base/generation.h"
#include "kinds/definition.h"

/*
 * What a session caches: the hash of a projection's definition.  It is valid
 * for one version of the registry row, and until a function changes.
 */
typedef struct Kept
{
	int32		id;				/* key */
	uint64		version;
	uint64		generation;
	bool		missing;		/* the function is missing */
	char		hash[VARHDRSZ + PG_SHA256_DIGEST_LENGTH];
} Kept;

static HTAB *kept_hashes = NULL;

/* Returns the hash of a definition; NULL if the function is missing. */
bytea *
pj_definition_hash(const PjDefinition *definition)
{
	StringInfoData str;
	text	   *image;
	char	   *source = definition->kind->source_text(definition);

	if (source == NULL)
		return NULL;
	initStringInfo(&str);
	appendStringInfo(&str, "%s\n%s", pj_kind_names[definition->kind->id],
					 source);
	if (definition->redefinitions > 0)
		appendStringInfo(&str, "\nredefinitions %d",
						 definition->redefinitions);
	if (definition->event_types)
		appendStringInfo(&str, "\n%s",
						 OidOutputFunctionCall(F_ARRAY_OUT,
											   pj_definition_types(definition)));
	if (JB_ROOT_COUNT(definition->settings) > 0)
		appendStringInfo(&str, "\n%s",
						 JsonbToCString(NULL, &definition->settings->root,
										VARSIZE(definition->settings)));
	image = cstring_to_text_with_len(str.data, str.len);
	return DatumGetByteaPP(DirectFunctionCall1(sha256_bytea,
											   PointerGetDatum(image)));
}

static Kept *
find_kept(int32 id, bool *found)
{
	if (kept_hashes == NULL)
	{
		HASHCTL		ctl = {.keysize = sizeof(int32),.entrysize = sizeof(Kept)};

		kept_hashes = hash_create("projector definitions", 16, &ctl,
								  HASH_ELEM | HASH_BLOBS);
	}
	return hash_search(kept_hashes, &id, HASH_ENTER, found);
}

/*
 * Returns the hash of a projection's current definition; NULL if the function
 * is missing.  The result belongs to the cache, and is valid until the next
 * call.  Only the system caches are used: nothing is locked, and no privileges
 * are checked.
 */
const bytea *
pj_definition_peek(const PjProjection *projection)
{
	bool		found;
	Kept	   *kept = find_kept(projection->id, &found);

	AcceptInvalidationMessages();
	if (!found || kept->version != projection->version ||
		kept->generation != pj_code_generation())
	{
		uint64		generation = pj_code_generation();
		PjDefinition definition;
		bytea	   *hash;

		kept->generation = 0;	/* not valid, if there is an error */
		definition = pj_definition_of(projection);
		hash = pj_definition_hash(&definition);
		kept->missing = hash == NULL;
		if (hash)
		{
			SET_VARSIZE(kept->hash, sizeof(kept->hash));
			memcpy(VARDATA(kept->hash), VARDATA_ANY(hash),
				   PG_SHA256_DIGEST_LENGTH);
		}
		kept->version = projection->version;
		kept->generation = generation;
	}
	return kept->missing ? NULL : (const bytea *) kept->hash;
}

/* Returns a copy of the same. */
bytea *
pj_definition_now(const PjProjection *projection)
{
	const bytea *hash = pj_definition_peek(projection);

	return hash ? DatumGetByteaPCopy(PointerGetDatum(hash)) : NULL;
}

/* Forget the hashes of projections that have been dropped. */
void
pj_definitions_sweep(void)
{
	HASH_SEQ_STATUS status;
	Kept	   *kept;

	if (kept_hashes == NULL)
		return;
	hash_seq_init(&status, kept_hashes);
	while ((kept = hash_seq_search(&status)) != NULL)
		if (pj_kind_is_gone(kept->id))
			hash_search(kept_hashes, &kept->id, HASH_REMOVE, NULL);
}
