/*
 * operation.h
 *	  Long operations that sessions execute, and how far they are.
 */
#ifndef PJ_OPERATION_H
#define PJ_OPERATION_H

#include "base/compat.h"
#include "datatype/timestamp.h"

typedef enum PjOperation
{
	PJ_DOES_REBUILD,
	PJ_DOES_CATCH_UP,
	PJ_DOES_RESET,
	PJ_DOES_VERIFY,
	PJ_DOES_PREVIEW,
	PJ_DOES_DRAIN
} PjOperation;

typedef enum PjPhase
{
	PJ_PHASE_PREPARING,
	PJ_PHASE_CLEARING,			/* the read model */
	PJ_PHASE_REPLAYING,			/* the log */
	PJ_PHASE_APPLYING,			/* queued events and the log */
	PJ_PHASE_READING,			/* the live read model */
	PJ_PHASE_COMPARING,
	PJ_PHASE_OFFSETS,			/* are set back */
	PJ_PHASE_OUTBOX,			/* is emptied */
	PJ_PHASE_CURSORS			/* are set back */
} PjPhase;

/* What a session does; unknown numbers are -1. */
typedef struct PjOperationRow
{
	int			pid;
	PjOperation operation;
	PjPhase		phase;
	int32		projection_id;	/* 0 if it is of several */
	char	   *tenant;			/* which it is at now, truncated if very long;
								 * NULL if it is of all at once */
	int64		events_done;
	int64		events_total;	/* an estimate */
	int64		tenants_done;
	int64		tenants_total;
	TimestampTz started_at;
} PjOperationRow;

extern void pj_operation_begin(PjOperation operation, int32 projection_id);
extern void pj_operation_total(int64 events, int64 tenants);
extern void pj_operation_pair(int32 projection_id, Datum tenant);
extern void pj_operation_tenants(int64 done);
extern void pj_operation_phase(PjPhase phase);
extern void pj_operation_add(int64 events);
extern void pj_operation_end(void);
extern int	pj_operations(PjOperationRow **rows);
extern void pj_operation_init(void);

#endif							/* PJ_OPERATION_H */
