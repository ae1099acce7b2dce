/*
 * identity.c
 *	  The owner and the target tables of a projection.  They are identified
 *	  by OID in the database where the projection lives, and by name in a
 *	  dump.
 *
 * An OID survives a rename, and a new role that reuses an old name gets a new
 * OID.  But OIDs mean nothing in another database, so names are stored too.
 * Renaming a role fires no trigger.  So names are refreshed whenever a
 * registry row is written, and periodically by the workers.
 *
 * If a row's resolved_in is not the OID of this table, the row was restored
 * from a dump.  In its home database the names are used until the next refresh
 * stores the OIDs.  In any other database they are used until
 * projector_adopt() is run.
 *
 * Writing here requires an exclusive lock on the projection, like every change
 * to a registry row.  write_identity() asserts it.
 */
#include "base/compat.h"

#include "catalog/pg_type.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "storage/lockdefs.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"

#include "base/lock.h"
#include "base/statement.h"
#include "registry/identity.h"
#include "registry/target.h"

static PjStatement note_identity = {
	.sql = "UPDATE projector.projections SET owner = $2, targets = $3,"
	" owner_oid = $4, target_oids = $5, resolved_in = $6"
	" WHERE projection_id = $1",
	.expect = SPI_OK_UPDATE,
	.nargs = 6,
	.argtypes = {INT4OID, TEXTOID, TEXTARRAYOID, OIDOID, OIDARRAYOID, OIDOID},
};

/* The identity of a projection, as stored or about to be stored. */
typedef struct Identity
{
	char	   *owner;
	Oid			owner_oid;
	int			ntargets;
	Datum	   *targets;
	Oid		   *target_oids;
	bool		changed;		/* differs from what the registry has */
} Identity;

/*
 * Get the current names of the owner and the targets.  An object that no
 * longer exists keeps its last known name.
 */
static void
look_at(const PjProjection *projection, Identity *now)
{
	Oid			role = pj_projection_role(projection);

	now->owner = OidIsValid(role) ? GetUserNameFromId(role, false) :
		pstrdup(projection->owner);
	now->owner_oid = projection->resolved ? projection->owner_oid : role;
	now->changed = !projection->resolved ||
		strcmp(now->owner, projection->owner) != 0;
	deconstruct_array(DatumGetArrayTypeP(projection->targets), TEXTOID, -1,
					  false, TYPALIGN_INT, &now->targets, NULL,
					  &now->ntargets);
	now->target_oids = palloc(sizeof(Oid) * Max(now->ntargets, 1));
	for (int i = 0; i < now->ntargets; i++)
	{
		Oid			relid = pj_target_find(projection, i);
		char	   *current = pj_target_find_name(relid);
		Datum		name = current ? CStringGetTextDatum(current) :
		now->targets[i];

		now->target_oids[i] = projection->resolved ?
			projection->target_oids[i] : relid;
		now->changed = now->changed || !pj_text_equal(name, now->targets[i]);
		now->targets[i] = name;
	}
}

static void
write_identity(const PjProjection *projection, const Identity *identity)
{
	Datum		values[6] = {Int32GetDatum(projection->id),
		CStringGetTextDatum(identity->owner),
		pj_text_array(identity->targets, identity->ntargets),
		ObjectIdGetDatum(identity->owner_oid),
		pj_oid_array(identity->target_oids, identity->ntargets),
	ObjectIdGetDatum(pj_registry_relid())};

	Assert(pj_projection_is_locked(projection->id, ExclusiveLock));
	pj_execute(&note_identity, values, NULL);
}

/*
 * Store the current names of a projection's owner and targets, if they have
 * changed.  Returns true if they have.
 */
bool
pj_identity_note(const PjProjection *projection)
{
	Identity	now;

	/* never store the placeholder for an unreadable name */
	if (projection->dormant || projection->misnamed)
		return false;
	look_at(projection, &now);
	if (now.changed)
		write_identity(projection, &now);
	return now.changed;
}

/*
 * Do the same for all projections.  A projection that another transaction has
 * locked is skipped.
 */
void
pj_identities_refresh(void)
{
	PjProjection *projections;
	int			n = pj_projections(&projections);

	for (int i = 0; i < n; i++)
	{
		PjProjection *projection = &projections[i];
		Identity	now;

		if (projection->dormant || projection->misnamed)
			continue;
		look_at(projection, &now);
		if (!now.changed ||
			!pj_lock_projection(projection->id, ExclusiveLock, false))
			continue;
		projection = pj_projection_by_id(projection->id);
		if (projection)
			(void) pj_identity_note(projection);
	}
}

/* ---- adopting ---- */

static void
warn_missing(const PjProjection *projection, const char *what,
			 const char *name)
{
	ereport(WARNING,
			errcode(ERRCODE_UNDEFINED_OBJECT),
			errmsg("projection \"%s\" cannot run: %s %s does not exist",
				   projection->name, what, name),
			errhint("Create it and run projector_adopt() again, or name another with projector_alter."));
}

/* Report which owner and targets were chosen. */
static void
tell_choice(const PjProjection *projection, const Identity *identity)
{
	StringInfoData list;

	initStringInfo(&list);
	for (int i = 0; i < identity->ntargets; i++)
		if (OidIsValid(identity->target_oids[i]))
			appendStringInfo(&list, "%s%s", list.len ? ", " : "",
							 TextDatumGetCString(identity->targets[i]));
	ereport(NOTICE,
			errmsg("projection \"%s\" is adopted: owner %s, targets %s",
				   projection->name,
				   OidIsValid(identity->owner_oid) ?
				   quote_identifier(identity->owner) : "none",
				   list.len ? list.data : "none"));
	if (!OidIsValid(identity->owner_oid))
		warn_missing(projection, "role", quote_identifier(identity->owner));
	for (int i = 0; i < identity->ntargets; i++)
		if (!OidIsValid(identity->target_oids[i]))
			warn_missing(projection, "target table",
						 TextDatumGetCString(identity->targets[i]));
}

/*
 * Have OIDs been found for the owner and all targets?  The objects need not
 * exist any more.
 */
bool
pj_identity_is_complete(const PjProjection *projection)
{
	Identity	now;
	bool		complete;

	look_at(projection, &now);
	complete = OidIsValid(now.owner_oid);
	for (int i = 0; i < now.ntargets; i++)
		complete = complete && OidIsValid(now.target_oids[i]);
	return complete;
}

/*
 * Look up owner and targets by name, store what was found and report it.  For
 * a projection in its home database, only look up what was never found before:
 * the OID of a dropped object must not be replaced by that of a new object
 * with the same name.  The caller has called pj_enter_internal().
 */
void
pj_identity_adopt(const PjProjection *projection)
{
	Identity	now;

	if (projection->misnamed)
	{
		ereport(WARNING,
				errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("projection \"%s\" cannot run: %s", projection->name,
					   projection->unreadable),
				errhint("Name its targets with projector_alter."));
		return;
	}
	look_at(projection, &now);
	if (!OidIsValid(now.owner_oid))
		now.owner_oid = get_role_oid(now.owner, true);
	for (int i = 0; i < now.ntargets; i++)
		if (!OidIsValid(now.target_oids[i]))
			now.target_oids[i] =
				pj_target_by_name(TextDatumGetCString(now.targets[i]));
	write_identity(projection, &now);
	tell_choice(projection, &now);
}
