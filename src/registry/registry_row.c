/*
 * registry_row.c
 *	  Read a row of the registry into a PjProjection.
 *
 * A row may have been written by hand, or by a later version.  A value that
 * cannot be read is described in PjProjection.unreadable and replaced by a
 * harmless one.  No error is raised: one unreadable row must not make every
 * append fail.
 */
#include "base/compat.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/jsonb.h"

#include "base/fetch.h"
#include "base/statement.h"
#include "registry/registry_row.h"
#include "registry/target.h"

/* The columns of table projections, in order. */
enum
{
	Anum_projection_id = 1,
	Anum_name,
	Anum_owner,
	Anum_source,
	Anum_kind,
	Anum_handler,
	Anum_fold,
	Anum_fold_columns,
	Anum_statement,
	Anum_targets,
	Anum_key,
	Anum_event_types,
	Anum_mode,
	Anum_ordering,
	Anum_options,
	Anum_paused,
	Anum_paused_by,
	Anum_pause_reason,
	Anum_overrides,
	Anum_skips,
	Anum_handover_log_seq,
	Anum_started,
	Anum_home,
	Anum_definition_hash,
	Anum_search_path,
	Anum_created_at,
	Anum_paused_at,
	Anum_owner_oid,
	Anum_target_oids,
	Anum_resolved_in,
	Anum_redefinitions,
	Anum_settings
};

/* Read the event types the projection subscribes to. */
static void
read_event_types(PjProjection *p, Datum column)
{
	ArrayType  *array = DatumGetArrayTypePCopy(column);
	bool	   *nulls;

	p->event_types = PointerGetDatum(array);
	deconstruct_array(array, TEXTOID, -1, false, TYPALIGN_INT,
					  &p->types, &nulls, &p->ntypes);
	for (int i = 0; i < p->ntypes; i++)
		if (nulls[i])
		{
			p->unreadable = "event_types contains null";
			p->event_types = (Datum) 0; /* subscribe to all types */
		}
}

/*
 * Read a qualified and quoted name.  An unreadable one is replaced by a name
 * that can be parsed and that matches no object, because it is not qualified.
 */
static const char *
read_name(PjProjection *p, const char *name, const char *column)
{
	if (name == NULL)
		p->unreadable = psprintf(strcmp(column, "targets") == 0 ?
								 "%s contains null" : "%s is null", column);
	else if (!pj_name_is_readable(name))
		p->unreadable = psprintf("invalid name in %s: \"%s\"", column, name);
	else
		return name;
	return quote_identifier(name ? name : "null");
}

/* Read the one of the four columns that the kind uses. */
static void
read_code(PjProjection *p, const char *handler, const char *fold,
		  Jsonb *fold_columns, const char *statement)
{
	switch (p->kind)
	{
		case PJ_KIND_HANDLER:
			p->handler = read_name(p, handler, "handler");
			break;
		case PJ_KIND_FOLD:
			p->fold = read_name(p, fold, "fold");
			break;
		case PJ_KIND_FOLD_COLUMNS:
			if (fold_columns == NULL || !JB_ROOT_IS_OBJECT(fold_columns))
				p->unreadable = "fold_columns is not a JSON object";
			p->fold_columns = p->unreadable == NULL ? fold_columns :
				DatumGetJsonbP(DirectFunctionCall1(jsonb_in,
												   CStringGetDatum("{}")));
			break;
		case PJ_KIND_STATEMENT:
			if (statement == NULL)
				p->unreadable = "statement is null";
			p->statement = statement ? statement : "";
			break;
	}
}

/* Read the targets; every element becomes a name that can be parsed. */
static void
read_targets(PjProjection *p, Datum column)
{
	ArrayType  *array = DatumGetArrayTypePCopy(column);
	const char *before = p->unreadable;
	Datum	   *names;
	bool	   *nulls;
	int			n;

	deconstruct_array(array, TEXTOID, -1, false, TYPALIGN_INT, &names, &nulls,
					  &n);
	if (ARR_NDIM(array) > 1)
		p->unreadable = "targets has more than one dimension";
	for (int i = 0; i < n; i++)
		names[i] = CStringGetTextDatum(read_name(p, nulls[i] ? NULL :
												 TextDatumGetCString(names[i]),
												 "targets"));
	if (pj_is_fold(p->kind) && n != 1)
		p->unreadable = "targets of a fold is not one table";
	if (pj_is_fold(p->kind) && n == 0)
	{
		Datum		none = CStringGetTextDatum("\"null\"");

		p->targets = pj_text_array(&none, 1);	/* a fold must have one target */
	}
	else
		p->targets = pj_text_array(names, n);
	p->misnamed = p->unreadable != before;
}

/*
 * Read a column that names an enum value.  A row that was written by hand, or
 * by a later version, may contain an unknown name: then return "otherwise".
 */
static int
read_choice(PjProjection *p, const char *name, const char *const *names,
			const char *what, int otherwise)
{
	int			choice = pj_choice(name, names);

	if (choice >= 0)
		return choice;
	p->unreadable = psprintf("unknown %s \"%s\"", what, name);
	return otherwise;
}

/* Read the row's options. */
static void
read_options(PjProjection *p)
{
	const char *problem = pj_options_read(p->options_json, &p->options);

	if (problem)
		p->unreadable = problem;
	for (int i = 0; p->options.writes[i]; i++)
		p->options.writes[i] = read_name(p, p->options.writes[i],
										 "option \"writes\"");
	if (p->options.clear)
		p->options.clear = read_name(p, p->options.clear,
									 "option \"clear\"");
}

/*
 * Read the OIDs, if they were stored in this database.  A restored row has the
 * OIDs of the database it was dumped from.
 */
static void
read_oids(PjProjection *p, Datum owner, Datum targets, bool resolved)
{
	ArrayType  *array = DatumGetArrayTypePCopy(targets);
	Datum	   *oids;
	bool	   *nulls;
	int			n;

	p->resolved = !p->dormant && resolved;
	if (!p->resolved)
		return;
	deconstruct_array(array, OIDOID, sizeof(Oid), true, TYPALIGN_INT, &oids,
					  &nulls, &n);
	p->owner_oid = DatumGetObjectId(owner);
	p->target_oids = palloc0(sizeof(Oid) * (pj_target_count(p) + 1));
	for (int i = 0; i < Min(n, pj_target_count(p)); i++)
		p->target_oids[i] = nulls[i] ? InvalidOid : DatumGetObjectId(oids[i]);
}

/* Read a row of table projections; relid is the table's OID. */
void
pj_registry_read_row(HeapTuple tuple, TupleDesc desc, Oid relid,
					 PjProjection *p)
{
	Datum	   *columns;
	bool	   *nulls;
	const char *problem;

	pj_deform(tuple, desc, &columns, &nulls);
	memset(p, 0, sizeof(*p));

#define text_column(anum) \
	(nulls[(anum) - 1] ? NULL : TextDatumGetCString(columns[(anum) - 1]))

	p->id = DatumGetInt32(columns[Anum_projection_id - 1]);
	p->name = text_column(Anum_name);
	p->owner = text_column(Anum_owner);
	p->kind = read_choice(p, text_column(Anum_kind), pj_kind_names, "kind",
						  PJ_KIND_STATEMENT);
	read_code(p, text_column(Anum_handler), text_column(Anum_fold),
			  nulls[Anum_fold_columns - 1] ? NULL :
			  DatumGetJsonbPCopy(columns[Anum_fold_columns - 1]),
			  text_column(Anum_statement));
	p->key = text_column(Anum_key);
	read_targets(p, columns[Anum_targets - 1]);
	if (!nulls[Anum_event_types - 1])
		read_event_types(p, columns[Anum_event_types - 1]);
	p->ordering = read_choice(p, text_column(Anum_ordering),
							  pj_ordering_names, "ordering",
							  PJ_ORDERING_AGGREGATE);
	p->log_ordered = p->ordering == PJ_ORDERING_LOG;
	p->mode = read_choice(p, text_column(Anum_mode), pj_mode_names, "mode",
						  PJ_ASYNC);
	p->options_json = DatumGetJsonbPCopy(columns[Anum_options - 1]);
	read_options(p);
	p->paused = DatumGetBool(columns[Anum_paused - 1]);
	p->overrides = DatumGetBool(columns[Anum_overrides - 1]);
	p->skips = DatumGetBool(columns[Anum_skips - 1]) ||
		p->options.on_error == PJ_ON_ERROR_SKIP ||
		p->options.on_rebuild_error == PJ_ON_REBUILD_ERROR_SKIP;
	p->handed_over = !nulls[Anum_handover_log_seq - 1];
	if (p->handed_over)
		p->handover_log_seq = DatumGetInt64(columns[Anum_handover_log_seq - 1]);
	p->started = DatumGetBool(columns[Anum_started - 1]);
	/* the raw xmin, as column xmin shows it even for a frozen row */
	p->written_by = HeapTupleHeaderGetRawXmin(tuple->t_data);
	p->version = (uint64) p->written_by << 32 |
		HeapTupleHeaderGetRawCommandId(tuple->t_data);
	p->dormant = strcmp(TextDatumGetCString(columns[Anum_home - 1]),
						pj_home()) != 0;
	p->search_path = text_column(Anum_search_path);
	read_oids(p, columns[Anum_owner_oid - 1], columns[Anum_target_oids - 1],
			  DatumGetObjectId(columns[Anum_resolved_in - 1]) == relid);
	p->redefinitions = DatumGetInt32(columns[Anum_redefinitions - 1]);
	p->definition_hash = DatumGetByteaPCopy(columns[Anum_definition_hash - 1]);
	p->settings_json = DatumGetJsonbPCopy(columns[Anum_settings - 1]);
	problem = pj_settings_read(p->settings_json, &p->settings);
	if (problem)
		p->unreadable = problem;
}
