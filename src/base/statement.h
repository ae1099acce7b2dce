/*
 * statement.h
 *	  Our own SQL statements, planned once per session.
 */
#ifndef PJ_STATEMENT_H
#define PJ_STATEMENT_H

#include "base/compat.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"

#define PJ_STATEMENT_MAX_ARGS 20

typedef struct PjStatement
{
	const char *sql;
	int			expect;			/* the SPI_OK_... code it must return */
	int			nargs;
	Oid			argtypes[PJ_STATEMENT_MAX_ARGS];

	/*
	 * The statement fires triggers, and so may run users' code, which must be
	 * planned with the session's own settings.
	 */
	bool		fires_triggers;

	/* It joins sets that have no key, such as views of the server's. */
	bool		joins_sets;

	/*
	 * It only reads, and sees what the query sees that called us.  Others see
	 * what is committed by now.
	 */
	bool		as_caller;

	SPIPlanPtr	plan;			/* set by pj_execute */
} PjStatement;

extern uint64 pj_execute(PjStatement *stmt, Datum *values, const char *nulls);
extern Datum pj_result(int row, int column, bool *isnull);
extern int	pj_result_texts(Datum **texts);
extern Datum pj_text_array(Datum *elems, int nelems);
extern Datum pj_int8_array(const int64 *elems, int nelems);
extern Datum pj_oid_array(const Oid *elems, int nelems);

#endif							/* PJ_STATEMENT_H */
