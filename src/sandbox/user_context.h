/*
 * user_context.h
 *	  The role and the settings that code runs with.
 */
#ifndef PJ_USER_CONTEXT_H
#define PJ_USER_CONTEXT_H

#include "base/compat.h"

#include "sandbox/settings.h"

typedef struct PjContext
{
	Oid			userid;
	int			sec_context;
	int			guc_level;
	SubTransactionId internal;	/* see user_context.c */
} PjContext;

/* The projection whose code is running, and what it may do. */
typedef struct PjUserCode
{
	const char *projection;
	Oid			owner;
	const char *search_path;
	const PjSetting *settings;	/* the projection's own, or NULL */
	const char *tenant;
	bool		lazy;			/* settings are applied on demand */
	bool		pinned;			/* they have been applied */
	bool		may_append;
	bool		replay;			/* the event is replayed, not just appended */

	/*
	 * Raises an error if the code may not write a table, or if the table is
	 * not in a state to be written.  NULL: it may not write anything.
	 */
	void		(*check_write) (const struct PjUserCode *code, Oid relid);
	const void *definition;		/* for check_write */
} PjUserCode;

extern void pj_enter_internal(PjContext *saved);
extern void pj_enter_previous(PjContext *saved);
extern void pj_leave_internal(PjContext *saved);
extern void pj_run_user_code(PjUserCode *code, void (*body) (void *), void *arg);
extern void pj_pin_user_code(void);
extern void pj_check_pinned(void);
extern const PjUserCode *pj_user_code(void);
extern const PjUserCode *pj_user_code_executing(void);
extern bool pj_is_cancel(const ErrorData *error);
extern bool pj_was_cancelled(void);
extern void pj_forget_cancel(void);
extern void pj_raise_caught_cancel(void);
extern void pj_set_replay(bool replay);
extern void pj_refuse_in_user_code(const char *function);
extern void pj_require_read_committed(const char *function);

#endif							/* PJ_USER_CONTEXT_H */
