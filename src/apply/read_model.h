/*
 * read_model.h
 *	  A read model as a whole.
 */
#ifndef PJ_READ_MODEL_H
#define PJ_READ_MODEL_H

#include "base/compat.h"
#include "utils/snapshot.h"

#include "state/digest.h"
#include "state/pair.h"

extern void pj_model_digest(const PjProjection *projection, Datum tenant,
							Snapshot snapshot, PjDigest *digest);
extern void pj_model_refresh(const PjPair *pair, int64 log_seq);
extern void pj_models_refresh_altered(int32 projection_id, Datum tenant);

#endif							/* PJ_READ_MODEL_H */
