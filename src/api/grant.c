/*
 * grant.c
 *	  projector_grant(): grant a role the privileges it needs for a task.
 *
 * The commands run with the caller's own privileges.  GRANT adds what is
 * missing and does not complain about what is there.  So the function can be
 * called again after an upgrade that has added functions.
 */
#include "base/compat.h"

#include "executor/spi.h"
#include "fmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "base/args.h"
#include "registry/options.h"
#include "sandbox/user_context.h"
#include "state/audit.h"

PG_FUNCTION_INFO_V1(projector_grant);

/* In the order of the names below; function names without "projector_". */
typedef struct Grants
{
	const char *functions;
	const char *relations;		/* relations in schema projector that it may
								 * read */
	bool		inserts;		/* it may insert events */
} Grants;

#define READ_FUNCTIONS	"wait wait_log health definitions openmetrics"

#define READ_RELATIONS	"status status_by_tenant problems progress outbox" \
	" offsets failures runs audit metrics metrics_by_tenant missing_events projections projection_cursors" \
	" worker_marks"

#define MODEL_FUNCTIONS	"create alter drop set_mode pause resume rebuild" \
	" catch_up reset start_run cancel_run retry requeue skip unskip note" \
	" verify digest digest_all check_digests preview explain drain is_replay"

static const Grants grants[] = {
	{"append append_batch wait wait_log", "", true},
	{READ_FUNCTIONS, READ_RELATIONS, false},
	{READ_FUNCTIONS " " MODEL_FUNCTIONS, READ_RELATIONS, false},
	{READ_FUNCTIONS " " MODEL_FUNCTIONS
		" adopt prune worker_start worker_stop", READ_RELATIONS,
	false},
};

static void
run(const char *command)
{
	int			rc = SPI_execute(command, false, 0);

	if (rc < 0)
		elog(ERROR, "could not run \"%s\": %s", command,
			 SPI_result_code_string(rc));
}

/* Run a command for each name in a list. */
static void
grant_each(const char *format, const char *schema, const char *names,
		   const char *role)
{
	char	   *place;

	for (char *name = strtok_r(pstrdup(names), " ", &place); name;
		 name = strtok_r(NULL, " ", &place))
		run(psprintf(format, schema, name, role));
}

/* Grants a role the privileges of an appender, a reader and so on. */
Datum
projector_grant(PG_FUNCTION_ARGS)
{
	static const char *const names[] = {"appender", "reader", "modeller",
	"operator", NULL};
	char	   *role = pj_required_name(fcinfo, 0, "role");
	const Grants *grant = &grants[pj_choose(pj_required_name(fcinfo, 1, "as"),
											names, "kind of role")];
	const char *schema;

	pj_refuse_in_user_code("projector_grant");
	(void) get_role_oid(role, false);
	role = pstrdup(quote_identifier(role));
	SPI_connect();
	run(psprintf("GRANT USAGE ON SCHEMA projector TO %s", role));
	schema = get_namespace_name(get_func_namespace(fcinfo->flinfo->fn_oid));
	grant_each("GRANT EXECUTE ON FUNCTION %s.projector_%s TO %s",
			   quote_identifier(schema), grant->functions, role);
	grant_each("GRANT SELECT ON %s.%s TO %s", "projector", grant->relations,
			   role);
	if (grant->inserts)
		run(psprintf("GRANT INSERT (tenant_id, aggregate_id, sequence_number,"
					 " event_id, event_type, payload, metadata)"
					 " ON projector.events TO %s", role));
	SPI_finish();
	pj_audit(fcinfo, NULL, NULL);

	PG_RETURN_VOID();
}
