/*
 * sha256.h
 *	  SHA-256.
 */
#ifndef PJ_SHA256_H
#define PJ_SHA256_H

#include "base/compat.h"

#define PJ_SHA256_LEN	32

extern void pj_sha256(const char *data, Size len, uint8 *digest);

#endif							/* PJ_SHA256_H */
