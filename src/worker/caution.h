/*
 * caution.h
 *	  What workers do after a crash of a worker or of the server.
 */
#ifndef PJ_CAUTION_H
#define PJ_CAUTION_H

#include "base/compat.h"

extern void pj_caution_begin(void);
extern bool pj_caution_is_on(void);
extern bool pj_caution_needed(int32 projection_id, Datum tenant);
extern void pj_caution_passed(int32 projection_id, Datum tenant,
							  int batch_size);
extern void pj_caution_idle(int32 projection_id, Datum tenant);
extern void pj_caution_end_if_over(bool suspects);

#endif							/* PJ_CAUTION_H */
