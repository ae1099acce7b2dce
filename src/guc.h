/*
 * guc.h
 *	  Settings.
 */
#ifndef PJ_GUC_H
#define PJ_GUC_H

#include "compat.h"
#include "datatype/timestamp.h"

extern int	pj_tail_wait;
extern bool pj_verify_payload;

extern TimestampTz pj_now(void);
extern void pj_guc_init(void);

#endif							/* PJ_GUC_H */
