/*
 * active_tenants.h
 *	  Which tenants may have events that have not been read from the log.
 */
#ifndef PJ_ACTIVE_TENANTS_H
#define PJ_ACTIVE_TENANTS_H

#include "base/compat.h"

#include "log/log_read.h"

extern void pj_active_scan(void);
extern bool pj_active_refresh(void);
extern bool pj_active_unread(PjTenants *all, int64 tail);
extern void pj_active_checked(const PjTenants *all, int64 tail);
extern void pj_active_none_reads(void);
extern void pj_active_add(Datum tenant, int64 log_seq);
extern int	pj_active_unfollowed(PjTenants *all, int limit);
extern void pj_active_followed(const PjTenants *all, int64 tail);

#endif							/* PJ_ACTIVE_TENANTS_H */
