/*
 * context.h
 *	  As whom, and with which settings, code runs.
 */
#ifndef PJ_CONTEXT_H
#define PJ_CONTEXT_H

#include "compat.h"

typedef struct PjContext
{
	Oid			userid;
	int			sec_context;
	int			guc_level;
} PjContext;

/* The projection whose code is running, and what it may do. */
typedef struct PjUserCode
{
	const char *projection;
	Oid			owner;
	const char *search_path;
	const char *tenant;
	bool		may_append;
	bool		replay;			/* the event is not just being appended */
} PjUserCode;

extern void pj_enter_internal(PjContext *saved);
extern void pj_leave_internal(PjContext *saved);
extern void pj_run_user_code(PjUserCode *code, void (*body) (void *), void *arg);
extern const PjUserCode *pj_user_code(void);
extern void pj_set_replay(bool replay);
extern void pj_refuse_in_user_code(const char *function);
extern void pj_require_read_committed(const char *function);
extern void pj_context_init(void);

#endif							/* PJ_CONTEXT_H */
