/*
 * settings.h
 *	  The settings that users' code runs with.
 */
#ifndef PJ_SETTINGS_H
#define PJ_SETTINGS_H

#include "base/compat.h"
#include "utils/guc.h"
#include "utils/jsonb.h"

/* One of a projection's own settings; a NULL name ends a list. */
typedef struct PjSetting
{
	const char *name;
	const char *value;
} PjSetting;

extern void pj_pin_settings(void);
extern void pj_pin_session(void);
extern const char *pj_changed_setting(const PjSetting *settings);
extern void pj_guard_bool_setting(const char *name, GucBoolCheckHook hook);
extern void pj_guard_int_setting(const char *name, GucIntCheckHook hook);
extern void pj_set_local(const char *name, const char *value);
extern const char *pj_settings_read(Jsonb *json, PjSetting **settings);
extern PjSetting *pj_settings_parse(Jsonb *json);
extern void pj_settings_check(const PjSetting *settings);
extern const char *pj_settings_problem(const PjSetting *settings);
extern void pj_settings_apply(const PjSetting *settings);

#endif							/* PJ_SETTINGS_H */
