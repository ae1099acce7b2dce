/*
 * sha256.c
 *	  SHA-256 of short texts.
 *
 * For each call, the server's function makes a context of its library and looks
 * up the algorithm.  That takes several times as long as hashing a payload of
 * usual size.  If the processor has instructions for SHA-256, they are used
 * here, without a context; otherwise the server's function is.
 */
#include "base/compat.h"

#include "utils/fmgrprotos.h"

#include "log/sha256.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define PJ_SHA256_X86
#include <cpuid.h>
#include <immintrin.h>
#endif

#ifdef PJ_SHA256_X86

#define BLOCK	64

/* The last block ends with the length in bits. */
#define LENGTH_BYTES	8

/* Fractional parts of the cube roots of the first 64 primes. */
static const uint32 constants[BLOCK] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
	0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
	0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
	0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
	0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
	0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
	0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
	0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
	0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2
};

/* The eight variables of the algorithm, as the instructions expect them. */
typedef struct State
{
	__m128i		abef;
	__m128i		cdgh;
} State;

/* Hash whole blocks. */
__attribute__((target("sha,sse4.1")))
static void
hash_blocks(State *state, const uint8 *data, Size nblocks)
{
	const		__m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0bLL,
											  0x0405060700010203LL);

	for (; nblocks > 0; nblocks--, data += BLOCK)
	{
		State		now = *state;
		__m128i		words[16];

		for (int i = 0; i < 16; i++)
		{
			__m128i		sum;

			if (i < 4)
				words[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *) data + i),
											swap);
			else
			{
				sum = _mm_add_epi32(_mm_sha256msg1_epu32(words[i - 4],
														 words[i - 3]),
									_mm_alignr_epi8(words[i - 1],
													words[i - 2], 4));
				words[i] = _mm_sha256msg2_epu32(sum, words[i - 1]);
			}

			/* two rounds each; the variables change places */
			sum = _mm_add_epi32(words[i],
								_mm_loadu_si128((const __m128i *) constants + i));
			now.cdgh = _mm_sha256rnds2_epu32(now.cdgh, now.abef, sum);
			sum = _mm_shuffle_epi32(sum, 0x0e);
			now.abef = _mm_sha256rnds2_epu32(now.abef, now.cdgh, sum);
		}
		state->abef = _mm_add_epi32(state->abef, now.abef);
		state->cdgh = _mm_add_epi32(state->cdgh, now.cdgh);
	}
}

static void
store_digest(const State *state, uint8 *digest)
{
	/* lowest first: f e b a, h g d c */
	static const int order[] = {3, 2, 7, 6, 1, 0, 5, 4};
	uint32		values[8];

	memcpy(values, &state->abef, 16);
	memcpy(values + 4, &state->cdgh, 16);
	for (int i = 0; i < 8; i++)
	{
		uint32		value = values[order[i]];

		for (int byte = 0; byte < 4; byte++)
			*digest++ = (uint8) (value >> (24 - 8 * byte));
	}
}

static void
hash_by_instructions(const char *data, Size len, uint8 *digest)
{
	State		state = {
		_mm_set_epi32(0x6a09e667, 0xbb67ae85, 0x510e527f, 0x9b05688c),
		_mm_set_epi32(0x3c6ef372, 0xa54ff53a, 0x1f83d9ab, 0x5be0cd19)
	};
	Size		whole = len / BLOCK;
	Size		rest = len % BLOCK;
	uint8		last[2 * BLOCK] = {0};
	Size		nlast = rest + 1 + LENGTH_BYTES <= BLOCK ? 1 : 2;

	hash_blocks(&state, (const uint8 *) data, whole);
	memcpy(last, data + whole * BLOCK, rest);
	last[rest] = 0x80;
	for (int i = 0; i < LENGTH_BYTES; i++)
		last[nlast * BLOCK - 1 - i] = (uint8) (((uint64) len * 8) >> (8 * i));
	hash_blocks(&state, last, nlast);
	store_digest(&state, digest);
}

static bool
has_instructions(void)
{
	unsigned int a,
				b,
				c,
				d;

	return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_SSE4_1) &&
		(c & bit_SSSE3) && __get_cpuid_count(7, 0, &a, &b, &c, &d) &&
		(b & bit_SHA);
}
#endif							/* PJ_SHA256_X86 */

static void
hash_by_server(const char *data, Size len, uint8 *digest)
{
	bytea	   *image = palloc(VARHDRSZ + len);
	bytea	   *result;

	SET_VARSIZE(image, VARHDRSZ + len);
	memcpy(VARDATA(image), data, len);
	result = DatumGetByteaPP(DirectFunctionCall1(sha256_bytea,
												 PointerGetDatum(image)));
	memcpy(digest, VARDATA_ANY(result), PJ_SHA256_LEN);
	pfree(result);
	pfree(image);
}

/* Compute the hash of some bytes; "digest" has room for PJ_SHA256_LEN. */
void
pj_sha256(const char *data, Size len, uint8 *digest)
{
	static void (*hash) (const char *, Size, uint8 *) = NULL;

	if (hash == NULL)
	{
		hash = hash_by_server;
#ifdef PJ_SHA256_X86
		if (has_instructions())
			hash = hash_by_instructions;
#endif
	}
	hash(data, len, digest);
}
