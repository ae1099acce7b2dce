/*
 * portals.c
 *	  Keeping a client's cursors from a projection's code.
 *
 * An inline append runs a projection's code in a client's session, and cursors
 * are known by name to all code of a session.  The code could fetch from a
 * client's cursor what its owner may not read, or close it and open another of
 * the same name, which the client would then run.  (PL/pgSQL does that without
 * a command that a hook could see.)
 *
 * So cursors that could be fetched from are marked as active while the code
 * runs: PostgreSQL then refuses to fetch from them and to close them.  A cursor
 * that the code leaves open is closed.  Most sessions have no cursor open, which
 * is found out without looking at any.
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
	.sql = "SELECT name FROM pg_catalog.pg_cursor()",
	.expect = SPI_OK_SELECT,
};

/*
 * Is there any portal that could be fetched from?  If there is, PostgreSQL's
 * function leaves its scan of the portals open, because its own callers then
 * raise an error: end it as they do.  Nobody runs users' code within such a
 * scan, so there is no other one at this level.
 */
static bool
is_any_ready(void)
{
	if (ThereAreNoReadyPortals())
		return false;
	AtEOSubXact_HashTables(false, GetCurrentTransactionNestLevel());
	return true;
}

/* The portals that could be fetched from. */
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
 * Hide the session's cursors.  Returns which, in the current memory context.
 * They cannot go away meanwhile.
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

/* Show them again, whatever has happened. */
void
pj_portals_show(List *hidden)
{
	ListCell   *cell;

	foreach(cell, hidden)
		((Portal) lfirst(cell))->status = PORTAL_READY;
}

/* Close the cursors that code has left open; the others are hidden now. */
void
pj_portals_drop_left(void)
{
	List	   *left = ready_portals();
	ListCell   *cell;

	foreach(cell, left)
		PortalDrop((Portal) lfirst(cell), false);
}
