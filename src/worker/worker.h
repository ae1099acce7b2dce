/*
 * worker.h
 *	  A worker process, which applies events in one database.
 */
#ifndef PJ_WORKER_H
#define PJ_WORKER_H

#include "base/compat.h"

PJ_NORETURN extern PGDLLEXPORT void projector_worker_main(Datum arg);

#endif							/* PJ_WORKER_H */
