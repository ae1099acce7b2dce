/*
 * version.c
 *	  Which version of the extension's SQL objects this database has, and
 *	  whether the library serves it.
 *
 * A server has one library, but each of its databases has SQL objects of its
 * own, which ALTER EXTENSION projector UPDATE changes.  So after the library
 * was replaced the two differ for a while.  What the library does depends on
 * the version in pg_extension:
 *
 * - its own version: everything.
 * - the release before: events are appended and queued, and the views show the
 *	 status, but nothing is applied or changed.  All projections have a problem
 *	 (problem.c), and our own SQL is refused (user_context.c) except for that
 *	 which an append, a view or the guard of targets runs.
 * - an older or a newer version: nothing.  Its tables may differ from what we
 *	 know.
 *
 * Nothing is refused inside the scripts of CREATE and ALTER EXTENSION.  They
 * name the version they lead to before they have made its objects.
 *
 * Appends ask for the version, so each session caches it.  pg_extension has no
 * cache of its own in the server, and a change of it is announced to nobody.
 * So projector.begin_update(), with which every upgrade script begins, and the
 * hook below announce it, as a relation cache invalidation of pg_extension.
 * Creating or dropping the extension also creates or drops schema projector,
 * which is announced by the server.
 */
#include "base/compat.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_extension.h"
#include "commands/extension.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "base/version.h"

typedef enum Service
{
	NOT_READ,					/* pg_extension must be read */
	CURRENT,
	PREVIOUS,
	OLDER,
	NEWER
} Service;

static Service cached = NOT_READ;
static bool changed = false;	/* since reading began */
static char found[NAMEDATALEN]; /* the version, if not our own */
static object_access_hook_type next_object_access = NULL;

/* ---- reading pg_extension ---- */

/*
 * Is one version later than another?  Versions are numbers with points between
 * them.  Anything else is a version that we do not know, and so a later one.
 */
static bool
is_later(const char *version, const char *than)
{
	for (;;)
	{
		char	   *end,
				   *than_end;
		long		number = strtol(version, &end, 10);
		long		other = strtol(than, &than_end, 10);

		if (end == version || (*end != '\0' && *end != '.'))
			return true;
		if (number != other)
			return number > other;
		if (*end == '\0')
			return false;
		if (*than_end == '\0')
			return true;
		version = end + 1;
		than = than_end + 1;
	}
}

static Service
judge(const char *version)
{
	if (strcmp(version, PJ_VERSION) == 0)
		return CURRENT;
	if (strcmp(version, PJ_PREVIOUS_VERSION) == 0)
		return PREVIOUS;
	return is_later(version, PJ_VERSION) ? NEWER : OLDER;
}

/*
 * Read the version of the extension's row that a key of an index selects, with
 * a snapshot or (NULL) the catalogs' own.  Returns false if there is no such
 * row, or if it is another extension's.
 */
static bool
read_version(Oid indexid, ScanKey key, Snapshot snapshot, char *version)
{
	Relation	rel = table_open(ExtensionRelationId, AccessShareLock);
	SysScanDesc scan = systable_beginscan(rel, indexid, true, snapshot, 1,
										  key);
	HeapTuple	tuple = systable_getnext(scan);
	bool		ours = HeapTupleIsValid(tuple) &&
	strcmp(NameStr(((Form_pg_extension) GETSTRUCT(tuple))->extname),
		   "projector") == 0;

	if (ours)
	{
		bool		isnull;
		Datum		value = heap_getattr(tuple, Anum_pg_extension_extversion,
										 RelationGetDescr(rel), &isnull);
		char	   *string = TextDatumGetCString(value);

		strlcpy(version, string, NAMEDATALEN);
		pfree(string);
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return ours;
}

/* Are we called by a script of CREATE or ALTER EXTENSION projector? */
bool
pj_version_in_script(void)
{
	return creating_extension &&
		CurrentExtensionObject == get_extension_oid("projector", true);
}

static void
relation_changed(Datum arg, Oid relid)
{
	if (relid == InvalidOid || relid == ExtensionRelationId)
	{
		cached = NOT_READ;
		changed = true;
	}
}

static void
schema_changed(Datum arg, int cacheid, uint32 hashvalue)
{
	cached = NOT_READ;
	changed = true;
}

/*
 * If there is no such extension, there is nothing to compare: callers find out
 * that our tables do not exist.
 */
static Service
service(void)
{
	static bool registered = false;
	ScanKeyData key;
	Service		now;

	if (pj_version_in_script())
		return CURRENT;
	if (cached != NOT_READ)
		return cached;
	if (!registered)
	{
		CacheRegisterRelcacheCallback(relation_changed, (Datum) 0);
		CacheRegisterSyscacheCallback(NAMESPACEOID, schema_changed,
									  (Datum) 0);
		registered = true;
	}
	changed = false;
	ScanKeyInit(&key, Anum_pg_extension_extname, BTEqualStrategyNumber,
				F_NAMEEQ, CStringGetDatum("projector"));
	if (!read_version(ExtensionNameIndexId, &key, NULL, found))
		return CURRENT;
	now = judge(found);

	/* if it changed while we read it, the next call reads it again */
	cached = changed ? NOT_READ : now;
	return now;
}

/* ---- what callers ask ---- */

/* Does this database have the library's own version? */
bool
pj_version_is_current(void)
{
	return service() == CURRENT;
}

/* Does the library at least accept events? */
bool
pj_version_is_served(void)
{
	Service		now = service();

	return now == CURRENT || now == PREVIOUS;
}

/* What to do about a version that is not current. */
const char *
pj_version_hint(void)
{
	return service() == NEWER ?
		psprintf("Install projector %s on this server and restart it. If it is installed, the restart is missing.",
				 found) :
		"Run ALTER EXTENSION projector UPDATE.";
}

/*
 * Returns why nothing is applied in this database, or NULL if its version is
 * current.  The string is in the current memory context.
 */
const char *
pj_version_problem(void)
{
	switch (service())
	{
		case CURRENT:
			return NULL;
		case NEWER:
			return psprintf("the extension has version %s, which the library of version %s does not know",
							found, PJ_VERSION);
		default:
			return psprintf("the extension has version %s, but the library has version %s: run ALTER EXTENSION projector UPDATE",
							found, PJ_VERSION);
	}
}

static void
refuse(void)
{
	ereport(ERROR,
			errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			errmsg("extension \"projector\" has version %s, which the library of version %s does not serve",
				   found, PJ_VERSION),
			errhint("%s", pj_version_hint()));
}

/* Raise an error if the library does not know the version. */
void
pj_version_require_served(void)
{
	if (likely(cached == CURRENT))
		return;
	if (!pj_version_is_served())
		refuse();
}

/* Raise an error if the version is not the library's own. */
void
pj_version_require_current(void)
{
	if (likely(cached == CURRENT))
		return;
	pj_version_require_served();
	if (!pj_version_is_current())
		ereport(ERROR,
				errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("extension \"projector\" has version %s, but the library has version %s",
					   found, PJ_VERSION),
				errdetail("Events are appended and queued, but nothing else is done until the extension is updated."),
				errhint("%s", pj_version_hint()));
}

/* ---- changes ---- */

/*
 * Read the version again when it is next asked for.  A session that is woken
 * by a commit may run before its invalidations have arrived.
 */
void
pj_version_forget(void)
{
	cached = NOT_READ;
}

/*
 * The version changes in this transaction: tell all sessions when it commits.
 */
void
pj_version_changed(void)
{
	cached = NOT_READ;
	changed = true;
	CacheInvalidateRelcacheByRelid(ExtensionRelationId);
}

/*
 * Object access hook: an extension has been created or altered, and its script
 * is going to run.  If that was made for a later library, refuse it: the
 * server still runs the one that it has loaded before that one was installed.
 * Older versions are allowed, because an update passes through them.  A binary
 * upgrade copies whatever there is.
 */
static void
notice_extension(ObjectAccessType access, Oid classId, Oid objectId,
				 int subId, void *arg)
{
	ScanKeyData key;
	char		version[NAMEDATALEN];

	if (next_object_access)
		next_object_access(access, classId, objectId, subId, arg);
	if (classId != ExtensionRelationId ||
		(access != OAT_POST_CREATE && access != OAT_POST_ALTER))
		return;

	ScanKeyInit(&key, Anum_pg_extension_oid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(objectId));
	if (!read_version(ExtensionOidIndexId, &key, SnapshotSelf, version))
		return;
	pj_version_changed();
	if (judge(version) == NEWER && !IsBinaryUpgrade)
		ereport(ERROR,
				errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("version %s of extension \"projector\" needs a later library than version %s",
					   version, PJ_VERSION),
				errhint("If projector %s is installed, restart the server, so that its library is loaded.",
						version));
}

void
pj_version_init(void)
{
	next_object_access = object_access_hook;
	object_access_hook = notice_extension;
}
