/*
 * active_tenants.h
 *	  Which tenants may have events that have not been read from the log.
 */
#ifndef PJ_ACTIVE_TENANTS_H
#define PJ_ACTIVE_TENANTS_H

#include "base/compat.h"

#include "log/log_read.h"

extern void pj_active_refresh(void);
extern void pj_active_unread(PjTenants *all);
extern void pj_active_forget_read(const PjTenants *all, int64 tail);
extern void pj_active_add(Datum tenant, int64 log_seq);
extern void pj_active_unfollowed(PjTenants *all);
extern void pj_active_followed(int64 tail);

#endif							/* PJ_ACTIVE_TENANTS_H */
