/*
 * worker.h
 *	  A worker process, which applies events in one database.
 */
#ifndef PJ_WORKER_H
#define PJ_WORKER_H

#include "base/compat.h"

extern PGDLLEXPORT void projector_worker_main(Datum arg) pg_attribute_noreturn();

#endif							/* PJ_WORKER_H */
