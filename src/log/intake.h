/*
 * intake.h
 *	  State of the statement that is inserting events.
 */
#ifndef PJ_INTAKE_H
#define PJ_INTAKE_H

#include "base/compat.h"

extern Oid	pj_intake_sequence(void);
extern void pj_intake_begin(void);
extern void pj_intake_row(bool restored);
extern void pj_intake_check(int64 log_seq);
extern bool pj_intake_end(void);
extern void pj_intake_init(void);

#endif							/* PJ_INTAKE_H */
