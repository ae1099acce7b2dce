/*
 * subxact.c
 *	  Run a function in a subtransaction.  This is the only place where
 *	  errors are caught.
 */
#include "base/compat.h"

#include "access/xact.h"
#include "utils/memutils.h"
#include "utils/resowner.h"

#include "base/subxact.h"

/*
 * Run body(arg) in a subtransaction.  It is committed if body returns true,
 * and rolled back if body returns false or raises an error.  The error, if
 * any, is returned, in the caller's memory context.
 */
ErrorData *
pj_subtransaction(bool (*body) (void *), void *arg, bool *kept)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	ErrorData  *volatile error = NULL;
	volatile bool done = false;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	PG_TRY();
	{
		done = body(arg);
		if (done)
			ReleaseCurrentSubTransaction();
		else
			RollbackAndReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		done = false;
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;

	*kept = done;
	return error;
}
