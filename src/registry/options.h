/*
 * options.h
 *	  A projection's options.
 */
#ifndef PJ_OPTIONS_H
#define PJ_OPTIONS_H

#include "base/compat.h"
#include "utils/jsonb.h"

/* Option "checkpoint": must a handler stamp the row with each event? */
typedef enum PjCheckpoint
{
	PJ_CHECKPOINT_NONE,
	PJ_CHECKPOINT_CHECK
} PjCheckpoint;

/* Option "on_error": what to do with an event that has failed too often. */
typedef enum PjErrorChoice
{
	PJ_ON_ERROR_HOLD,			/* hold its aggregate */
	PJ_ON_ERROR_SKIP,			/* skip the event */
	PJ_ON_ERROR_STOP			/* stop its tenant, in log order */
} PjErrorChoice;

/* Option "on_rebuild_error": the same, during a rebuild. */
typedef enum PjRebuildErrorChoice
{
	PJ_ON_REBUILD_ERROR_RAISE,	/* the rebuild fails */
	PJ_ON_REBUILD_ERROR_HOLD,
	PJ_ON_REBUILD_ERROR_SKIP
} PjRebuildErrorChoice;

extern const char *const pj_on_error_names[];

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
	PjCheckpoint checkpoint;
	PjErrorChoice on_error;
	PjRebuildErrorChoice on_rebuild_error;
	const char *clear;			/* name of a function, or NULL */
	bool		digest;
	const char **digest_ignore; /* names of columns; ends with NULL */
	const char **writes;		/* names of tables; ends with NULL */
	bool		shared_targets; /* another projection may have the same
								 * targets */
	const char **depends_on;	/* names of projections; ends with NULL */
} PjOptions;

extern void pj_options_parse(Jsonb *json, PjOptions *options);
extern Jsonb *pj_options_set_text(Jsonb *json, const char *option,
								  const char *string);
extern Jsonb *pj_options_set_names(Jsonb *json, const char *option,
								   const char **names);
extern const char *pj_options_read(Jsonb *json, PjOptions *options);
extern int	pj_choice(const char *value, const char *const *choices);
extern int	pj_choose(const char *value, const char *const *choices,
					  const char *what);
extern bool pj_options_ignore(const PjOptions *options, const char *column);

#endif							/* PJ_OPTIONS_H */
