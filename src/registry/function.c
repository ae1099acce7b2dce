/*
 * function.c
 *	  User-written functions of projections: look them up by name and
 *	  signature, and check them.
 *
 * The registry stores names, not OIDs, because OIDs do not survive a dump.
 * Each session caches the OIDs it has looked up until a function, role or
 * table changes.
 */
#include "base/compat.h"

#include "catalog/namespace.h"
#include "catalog/pg_proc.h"
#include "miscadmin.h"
#include "parser/parse_func.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "registry/function.h"
#include "registry/target.h"

static Oid
lookup(const PjSignature *signature, const char *name)
{
	return LookupFuncName(pj_parse_name(name, signature->what),
						  signature->nargs, signature->argtypes, true);
}

/*
 * Look up a function by qualified name; all names in the registry are
 * qualified.  Returns InvalidOid if there is none.  No privileges on the
 * schema are checked.
 */
static Oid
lookup_registered(const PjSignature *signature, const char *name)
{
	char	   *schema,
			   *function;
	oidvector  *argtypes = buildoidvector(signature->argtypes,
										  signature->nargs);
	Oid			namespace;

	DeconstructQualifiedName(pj_parse_name(name, signature->what), &schema,
							 &function);
	namespace = schema ? get_namespace_oid(schema, true) : InvalidOid;
	if (!OidIsValid(namespace))
		return InvalidOid;
	return GetSysCacheOid3(PROCNAMEARGSNSP, Anum_pg_proc_oid,
						   CStringGetDatum(function),
						   PointerGetDatum(argtypes),
						   ObjectIdGetDatum(namespace));
}

/*
 * Raise an error: a function of that name exists, but its arguments or result
 * type are wrong.
 */
static void
refuse_signature(const PjSignature *signature, const char *name,
				 const char *detail)
{
	ereport(ERROR,
			errcode(ERRCODE_INVALID_FUNCTION_DEFINITION),
			errmsg("function %s cannot be a %s", name, signature->what),
			errdetail("%s", detail),
			errhint("A %s is a function %s(%s) RETURNS %s.",
					signature->what, name, signature->arguments,
					signature->result));
}

static void
refuse_missing(const PjSignature *signature, const char *name)
{
	if (FuncnameGetCandidates(pj_parse_name(name, signature->what), -1, NIL,
							  false, false, false, true) != NULL)
		refuse_signature(signature, name,
						 psprintf("No function of that name takes %s.",
								  signature->takes));
	ereport(ERROR,
			errcode(ERRCODE_UNDEFINED_FUNCTION),
			errmsg("function %s(%s) does not exist", name,
				   signature->arguments),
			errhint("Create the function, or name another one: %s => 'schema.name'.",
					signature->what));
}

/* Returns why a function cannot be used for its purpose, or NULL if it can. */
static char *
misfit(const PjSignature *signature, Oid oid)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(oid));
	Form_pg_proc proc;
	char	   *why = NULL;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for function %u", oid);
	proc = (Form_pg_proc) GETSTRUCT(tuple);
	if (proc->prokind != PROKIND_FUNCTION)
		why = "It is a procedure, an aggregate or a window function.";
	else if (proc->proretset)
		why = "It returns a set.";
	else if (proc->prorettype != signature->rettype)
		why = psprintf("It does not return %s.", signature->result);
	ReleaseSysCache(tuple);
	return why;
}

/* Does a function with this name and these arguments exist? */
bool
pj_function_exists(const PjSignature *signature, const char *name)
{
	return OidIsValid(lookup(signature, name));
}

/*
 * Look up a function by name, and check that the projection's owner may call
 * it.
 */
Oid
pj_function_find(const PjSignature *signature, const char *name, Oid owner)
{
	Oid			oid = lookup(signature, name);
	char	   *why;

	if (!OidIsValid(oid))
		refuse_missing(signature, name);
	why = misfit(signature, oid);
	if (why)
		refuse_signature(signature, name, why);
	if (!pj_may_execute(oid, owner))
		ereport(ERROR,
				errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				errmsg("\"%s\" may not execute function %s",
					   GetUserNameFromId(owner, false), name),
				errhint("The projection's owner needs EXECUTE on its %s.",
						signature->what));
	return oid;
}

/*
 * Returns why a projection's function cannot be called, or NULL if it can.
 * The name comes from the registry.
 */
const char *
pj_function_problem(const PjSignature *signature, const char *name, Oid owner)
{
	Oid			oid = lookup_registered(signature, name);
	char	   *why;

	if (!OidIsValid(oid))
		return psprintf("function %s(%s) does not exist", name,
						signature->arguments);
	why = misfit(signature, oid);
	if (why)
		return psprintf("function %s cannot be a %s: %s", name,
						signature->what, why);
	if (!pj_may_execute(oid, owner))
		return psprintf("\"%s\" may not execute function %s",
						GetUserNameFromId(owner, false), name);
	return NULL;
}

/* Returns a function's name, qualified and quoted. */
char *
pj_function_name(Oid oid)
{
	return quote_qualified_identifier(get_namespace_name(get_func_namespace(oid)),
									  get_func_name(oid));
}

/*
 * Returns a function's body, or NULL if the function no longer exists.  The
 * name comes from the registry.
 */
char *
pj_function_source(const PjSignature *signature, const char *name)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID,
										ObjectIdGetDatum(lookup_registered(signature,
																		   name)));
	char	   *body = "";
	bool		isnull;
	Datum		prosrc;

	if (!HeapTupleIsValid(tuple))
		return NULL;

	/* the body of an SQL-standard function is in prosqlbody */
	prosrc = SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_prosqlbody, &isnull);
	if (isnull)
		prosrc = SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_prosrc, &isnull);
	if (!isnull)
		body = TextDatumGetCString(prosrc);
	ReleaseSysCache(tuple);

	return body;
}

/* f(tenant_id text) or f(tenant_id text, aggregate_id text). */
PjSignature
pj_clear_signature(bool aggregate)
{
	return (PjSignature)
	{
		.what = "clear",
			.nargs = aggregate ? 2 : 1,
			.argtypes = {TEXTOID, TEXTOID},
			.rettype = VOIDOID,
			.arguments = aggregate ? "tenant_id text, aggregate_id text" :
			"tenant_id text",
			.takes = aggregate ? "tenant_id and aggregate_id, both text" :
			"tenant_id, a text",
			.result = "void",
	};
}

/*
 * Returns the function of option "clear", qualified and quoted.  A version for
 * tenants, one for aggregates, or both must exist, and the owner must be
 * allowed to call them.
 */
char *
pj_clear_function(const char *name, Oid owner)
{
	PjSignature tenant = pj_clear_signature(false);
	PjSignature aggregate = pj_clear_signature(true);
	char	   *qualified = NULL;

	if (pj_function_exists(&tenant, name))
		qualified = pj_function_name(pj_function_find(&tenant, name, owner));
	if (pj_function_exists(&aggregate, qualified ? qualified : name))
		qualified = pj_function_name(pj_function_find(&aggregate,
													  qualified ? qualified :
													  name, owner));
	if (qualified == NULL)
		ereport(ERROR,
				errcode(ERRCODE_UNDEFINED_FUNCTION),
				errmsg("function %s(tenant_id text) of option \"clear\" does not exist",
					   name),
				errhint("Create a function %s(tenant_id text) RETURNS void and, if aggregates are to be rebuilt one by one, %s(tenant_id text, aggregate_id text) RETURNS void.",
						name, name));
	return qualified;
}
