/*
 * portals.c
 *	  Protect a client's cursors from a projection's code.
 *
 * An inline append runs a projection's code in a client's session, and all
 * code in a session can use its cursors by name.  The code could fetch rows
 * that its owner may not read from a client's cursor.  Or it could close the
 * cursor and open another one with the same name, from which the client would
 * then fetch.  (PL/pgSQL does that without a command that a hook could see.)
 *
 * So while the code runs, cursors that could be fetched from are marked as
 * active: PostgreSQL then refuses to fetch from them or close them.  Cursors
 * that the code leaves open are closed.  Most sessions have no open cursor,
 * which can be found out without scanning the portals.
 */
#include "base/compat.h"

#include "access/xact.h"
#include "executor/spi.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/portal.h"

#include "base/statement.h"
#include "sandbox/portals.h"
#include "sandbox/user_context.h"

static PjStatement select_cursors = {
	.sql = "SELECT name FROM pg_catalog.pg_cursor() /* projector */",
	.expect = SPI_OK_SELECT,
};

/*
 * Is there a portal that could be fetched from?  If there is,
 * ThereAreNoReadyPortals() leaves its hash scan open, because its own callers
 * then raise an error.  End the scan as they do.  Users' code never runs
 * within such a scan, so there is no other scan at this nesting level.
 */
static bool
is_any_ready(void)
{
	if (ThereAreNoReadyPortals())
		return false;
	AtEOSubXact_HashTables(false, GetCurrentTransactionNestLevel());
	return true;
}

/* Returns the portals that could be fetched from. */
static List *
ready_portals(void)
{
	List	   *portals = NIL;
	PjContext	saved;
	Datum	   *names;
	int			n;

	if (!is_any_ready())
		return NIL;
	pj_enter_internal(&saved);
	pj_execute(&select_cursors, NULL, NULL);
	n = pj_result_texts(&names);
	pj_leave_internal(&saved);
	for (int i = 0; i < n; i++)
	{
		Portal		portal = GetPortalByName(TextDatumGetCString(names[i]));

		if (PortalIsValid(portal) && portal->status == PORTAL_READY)
			portals = lappend(portals, portal);
	}
	return portals;
}

/*
 * Hide the session's cursors.  Returns a list of them, in the current memory
 * context.  They cannot be dropped until pj_portals_show().
 */
List *
pj_portals_hide(void)
{
	List	   *hidden = ready_portals();
	ListCell   *cell;

	foreach(cell, hidden)
		((Portal) lfirst(cell))->status = PORTAL_ACTIVE;
	return hidden;
}

/* Show the hidden cursors again, also after an error. */
void
pj_portals_show(List *hidden)
{
	ListCell   *cell;

	foreach(cell, hidden)
		((Portal) lfirst(cell))->status = PORTAL_READY;
}

/* Close the cursors that the code has left open; all others are hidden now. */
void
pj_portals_drop_left(void)
{
	List	   *left = ready_portals();
	ListCell   *cell;

	foreach(cell, left)
		PortalDrop((Portal) lfirst(cell), false);
}
