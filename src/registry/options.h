/*
 * options.h
 *	  A projection's options.
 */
#ifndef PJ_OPTIONS_H
#define PJ_OPTIONS_H

#include "base/compat.h"
#include "utils/jsonb.h"

typedef struct PjOptions
{
	int			batch_size;
	int			max_attempts;
	int			error_threshold;
	int64		retry_base;		/* durations in microseconds */
	int64		retry_max;
	int64		timeout;
	bool		idempotent;
	bool		may_append;
	const char *checkpoint;		/* "none" or "check" */
	const char *on_error;		/* "hold", "stop" or "skip" */
	bool		skip_errors;	/* on_error is "skip" */
	const char *on_rebuild_error;	/* "raise", "hold" or "skip" */
	const char *clear;			/* name of a function, or NULL */
	bool		digest;
	const char **digest_ignore; /* names of columns; ends with NULL */
	const char **writes;		/* names of tables; ends with NULL */
	bool		shared_targets; /* another projection may write them too */
	const char **depends_on;	/* names of projections; ends with NULL */
} PjOptions;

extern void pj_options_parse(Jsonb *json, PjOptions *options);
extern Jsonb *pj_options_set_text(Jsonb *json, const char *option,
								  const char *string);
extern Jsonb *pj_options_set_names(Jsonb *json, const char *option,
								   const char **names);
extern const char *pj_options_read(Jsonb *json, PjOptions *options);
extern const char *pj_choose(const char *value, const char *const *choices,
							 const char *what);
extern bool pj_options_ignore(const PjOptions *options, const char *column);

#endif							/* PJ_OPTIONS_H */
