-- Every table, column, key, function, view and type, with its exact signature;
-- who may do what; and what a dump contains.
CREATE SCHEMA app;
CREATE EXTENSION projector SCHEMA app;
SET search_path = app, public;

SELECT plan(60);

-- ---- where things live ----
SELECT has_schema('projector');
SELECT is((SELECT extversion FROM pg_extension WHERE extname = 'projector'), '1.0', 'version');
SELECT is((SELECT extrelocatable FROM pg_extension WHERE extname = 'projector'), false, 'not relocatable');
SELECT is_empty($$
    SELECT p.oid::regprocedure FROM pg_proc p JOIN pg_depend d ON d.objid = p.oid
        AND d.classid = 'pg_proc'::regclass AND d.deptype = 'e'
    JOIN pg_extension e ON e.oid = d.refobjid AND e.extname = 'projector'
    WHERE p.pronamespace <> CASE WHEN p.proname LIKE 'projector\_%' THEN 'app' ELSE 'projector' END::regnamespace
$$, 'functions projector_* live in the schema of CREATE EXTENSION, the others in projector');
SELECT is_empty($$
    SELECT c.oid::regclass FROM pg_class c JOIN pg_depend d ON d.objid = c.oid
        AND d.classid = 'pg_class'::regclass AND d.deptype = 'e'
    JOIN pg_extension e ON e.oid = d.refobjid AND e.extname = 'projector'
    WHERE c.relnamespace <> 'projector'::regnamespace
$$, 'tables and views live in schema projector');

-- ---- tables ----
SELECT tables_are('projector', '{events,projections,projection_offsets,projection_cursors,apply_outbox,projection_failures,projection_runs,projection_run_slices,projection_deltas,projection_digests,worker_marks,audit_log}'::name[]);
SELECT views_are('projector', '{outbox,offsets,failures,runs,progress,status,status_by_tenant,problems,missing_events,audit,metrics,metrics_by_tenant}'::name[]);

CREATE FUNCTION columns_of(rel text) RETURNS TABLE (column_name name, type text, required boolean)
LANGUAGE sql AS $$
    SELECT attname, format_type(atttypid, atttypmod), attnotnull
    FROM pg_attribute WHERE attrelid = rel::regclass AND attnum > 0 AND NOT attisdropped
$$;

SELECT set_eq($$ SELECT * FROM columns_of('projector.events') $$, $$ VALUES
    ('log_seq'::name, 'bigint', true), ('tenant_id', 'text', true),
    ('aggregate_id', 'text', true), ('sequence_number', 'bigint', true),
    ('event_id', 'uuid', true), ('event_type', 'text', true),
    ('payload', 'jsonb', true), ('metadata', 'jsonb', true),
    ('payload_hash', 'bytea', true), ('recorded_at', 'timestamp with time zone', true)
$$, 'columns of events');
SELECT set_has($$ SELECT * FROM columns_of('projector.projections') $$, $$ VALUES
    ('projection_id'::name, 'integer', true), ('name', 'text', true),
    ('owner', 'text', true), ('source', 'text', true), ('kind', 'text', true),
    ('handler', 'text', false), ('fold', 'text', false),
    ('fold_columns', 'jsonb', false), ('statement', 'text', false),
    ('targets', 'text[]', true), ('key', 'text', true),
    ('event_types', 'text[]', false), ('mode', 'text', true),
    ('ordering', 'text', true), ('options', 'jsonb', true),
    ('paused', 'boolean', true), ('handover_log_seq', 'bigint', false),
    ('home', 'text', true), ('definition_hash', 'bytea', true),
    ('created_at', 'timestamp with time zone', true)
$$, 'columns of projections');
SELECT set_has($$ SELECT * FROM columns_of('projector.projection_offsets') $$, $$ VALUES
    ('projection_id'::name, 'integer', true), ('tenant_id', 'text', true),
    ('aggregate_id', 'text', true), ('last_sequence_number', 'bigint', true),
    ('last_event_id', 'uuid', false), ('error_count', 'integer', true),
    ('last_error', 'text', false), ('updated_at', 'timestamp with time zone', true)
$$, 'columns of projection_offsets');
SELECT set_has($$ SELECT * FROM columns_of('projector.projection_cursors') $$, $$ VALUES
    ('projection_id'::name, 'integer', true), ('tenant_id', 'text', true),
    ('last_log_seq', 'bigint', true), ('state', 'text', true),
    ('mode', 'text', false), ('paused_by', 'text', false),
    ('pause_reason', 'text', false), ('run_id', 'bigint', false),
    ('applied_count', 'bigint', true), ('failed_count', 'bigint', true),
    ('updated_at', 'timestamp with time zone', true)
$$, 'columns of projection_cursors');
SELECT set_has($$ SELECT * FROM columns_of('projector.apply_outbox') $$, $$ VALUES
    ('projection_id'::name, 'integer', true), ('log_seq', 'bigint', true),
    ('tenant_id', 'text', true), ('aggregate_id', 'text', true),
    ('sequence_number', 'bigint', true), ('event_type', 'text', true),
    ('status', 'text', true), ('attempt_count', 'integer', true),
    ('next_attempt_at', 'timestamp with time zone', true),
    ('last_error', 'text', false), ('updated_at', 'timestamp with time zone', true)
$$, 'columns of apply_outbox');
SELECT set_has($$ SELECT * FROM columns_of('projector.projection_failures') $$, $$ VALUES
    ('id'::name, 'bigint', true), ('projection_id', 'integer', true),
    ('tenant_id', 'text', true), ('aggregate_id', 'text', true),
    ('sequence_number', 'bigint', true), ('log_seq', 'bigint', true),
    ('event_id', 'uuid', false), ('event_type', 'text', true),
    ('error_code', 'text', true), ('error_message', 'text', true),
    ('error_detail', 'text', false), ('error_context', 'text', false),
    ('retry_count', 'integer', true), ('recoverable', 'boolean', true),
    ('metadata', 'jsonb', true),
    ('first_failed_at', 'timestamp with time zone', true),
    ('last_failed_at', 'timestamp with time zone', true),
    ('resolved_at', 'timestamp with time zone', false), ('resolution', 'text', false)
$$, 'columns of projection_failures');
SELECT set_has($$ SELECT * FROM columns_of('projector.projection_digests') $$, $$ VALUES
    ('projection_id'::name, 'integer', true), ('tenant_id', 'text', true),
    ('digest', 'text', true), ('row_count', 'bigint', true),
    ('last_log_seq', 'bigint', true), ('refreshed_at', 'timestamp with time zone', true)
$$, 'columns of projection_digests');
SELECT set_has($$ SELECT * FROM columns_of('projector.projection_runs') $$, $$ VALUES
    ('id'::name, 'bigint', true), ('projection_id', 'integer', true),
    ('tenant_id', 'text', true), ('mode', 'text', true), ('state', 'text', true),
    ('since_log_seq', 'bigint', false), ('until_log_seq', 'bigint', false),
    ('total_events', 'bigint', false), ('processed_events', 'bigint', true),
    ('last_log_seq', 'bigint', true), ('error_code', 'text', false),
    ('error_message', 'text', false), ('requested_by', 'text', true),
    ('queued_at', 'timestamp with time zone', true),
    ('started_at', 'timestamp with time zone', false),
    ('finished_at', 'timestamp with time zone', false)
$$, 'columns of projection_runs');

-- ---- keys and defaults ----
SELECT col_is_pk('projector', 'events', '{tenant_id,aggregate_id,sequence_number}'::name[], 'key of events');
SELECT col_is_unique('projector', 'events', '{tenant_id,log_seq}'::name[], 'events: log_seq is unique within its tenant');
SELECT col_is_unique('projector', 'events', '{tenant_id,event_id}'::name[], 'events: event_id is unique within its tenant');
SELECT is_empty($$ SELECT indexrelid::regclass FROM pg_index i
    WHERE indrelid = 'projector.events'::regclass AND indisunique
      AND indkey[0] <> (SELECT attnum FROM pg_attribute WHERE attrelid = i.indrelid AND attname = 'tenant_id')
$$, 'events: every unique index begins with tenant_id, so that it can be partitioned');
SELECT col_is_pk('projector', 'projections', '{projection_id}'::name[], 'key of projections');
SELECT col_is_pk('projector', 'projection_digests', '{projection_id,tenant_id}'::name[], 'key of projection_digests');
SELECT col_is_pk('projector', 'projection_runs', '{id}'::name[], 'key of projection_runs');
SELECT col_is_unique('projector', 'projections', '{name}'::name[], 'the name of a projection is unique');
SELECT col_is_pk('projector', 'projection_offsets', '{projection_id,tenant_id,aggregate_id}'::name[], 'key of projection_offsets');
SELECT col_is_pk('projector', 'projection_cursors', '{projection_id,tenant_id}'::name[], 'key of projection_cursors');
SELECT col_is_pk('projector', 'apply_outbox', '{projection_id,log_seq}'::name[], 'key of apply_outbox');
SELECT col_is_pk('projector', 'projection_failures', '{id}'::name[], 'key of projection_failures');

SELECT is((SELECT attidentity FROM pg_attribute WHERE attrelid = 'projector.events'::regclass AND attname = 'log_seq'), 'a',
    'events.log_seq is an identity, ALWAYS');
SELECT results_eq($$ SELECT seqcache, seqincrement, seqcycle FROM pg_sequence
    WHERE seqrelid = pg_get_serial_sequence('projector.events', 'log_seq')::regclass $$,
    $$ VALUES (1::bigint, 1::bigint, false) $$, 'events.log_seq has CACHE 1');
SELECT col_default_is('projector', 'events', 'event_id', 'gen_random_uuid()', 'default of events.event_id');
SELECT col_default_is('projector', 'events', 'metadata', '{}'::jsonb, 'default of events.metadata');
SELECT is_empty($$ SELECT attrelid::regclass, attname FROM pg_attribute
    WHERE attrelid IN (SELECT oid FROM pg_class WHERE relnamespace = 'projector'::regnamespace AND relkind = 'r')
      AND atttypid IN ('regproc'::regtype, 'regprocedure'::regtype, 'regclass'::regtype, 'regrole'::regtype, 'oid'::regtype)
      AND attnum > 0 AND (attrelid, attname) NOT IN
          (('projector.projections'::regclass, 'owner_oid'), ('projector.projections'::regclass, 'resolved_in')) $$,
    'no column keeps an oid, but those of the registry that are beside a name');
SELECT is_empty($$ SELECT attrelid::regclass, attname FROM pg_attribute
    WHERE attrelid IN (SELECT oid FROM pg_class WHERE relnamespace = 'projector'::regnamespace AND relkind = 'r')
      AND attname IN ('tenant_id', 'aggregate_id', 'event_type') AND attcollation <> '"C"'::regcollation $$,
    'identifiers compare bytewise');

CREATE FUNCTION choices(rel text, col text) RETURNS SETOF text LANGUAGE sql AS $$
    SELECT m[1] FROM pg_constraint, regexp_matches(pg_get_constraintdef(oid), '''([a-z_]+)''', 'g') m
    WHERE conrelid = rel::regclass AND contype = 'c'
      AND conkey = ARRAY[(SELECT attnum FROM pg_attribute WHERE attrelid = conrelid AND attname = col)]
$$;
SELECT set_eq($$ SELECT choices('projector.apply_outbox', 'status') $$, '{pending,failed,dead}'::text[], 'status of an outbox row');
SELECT set_eq($$ SELECT choices('projector.projection_cursors', 'state') $$, '{live,replaying,switching,stopped}'::text[], 'state of a cursor');
SELECT set_eq($$ SELECT choices('projector.projection_failures', 'resolution') $$, '{applied,skipped,rebuilt}'::text[], 'resolution of a failure');
SELECT set_eq($$ SELECT choices('projector.projections', 'mode') $$, '{off,shadow,async,follow,inline,strict}'::text[], 'modes');
SELECT set_eq($$ SELECT choices('projector.projections', 'ordering') $$, '{aggregate,log}'::text[], 'orderings');

-- ---- the type handlers receive ----
SELECT results_eq($$ SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute
    WHERE attrelid = 'projector.event'::regclass AND attnum > 0 ORDER BY attnum $$, $$ VALUES
    ('log_seq'::name, 'bigint'), ('tenant_id', 'text'), ('aggregate_id', 'text'),
    ('sequence_number', 'bigint'), ('event_id', 'uuid'), ('event_type', 'text'),
    ('payload', 'jsonb'), ('metadata', 'jsonb'), ('recorded_at', 'timestamp with time zone')
$$, 'type projector.event');

-- ---- views ----
SELECT set_eq($$ SELECT column_name, type FROM columns_of('projector.outbox') $$, $$ VALUES
    ('projection_name'::name, 'text'), ('tenant_id', 'text'), ('aggregate_id', 'text'),
    ('sequence_number', 'bigint'), ('log_seq', 'bigint'), ('event_type', 'text'),
    ('status', 'text'), ('attempt_count', 'integer'),
    ('next_attempt_at', 'timestamp with time zone'), ('last_error', 'text'),
    ('updated_at', 'timestamp with time zone'), ('shadow', 'text')
$$, 'view outbox');
SELECT set_eq($$ SELECT column_name, type FROM columns_of('projector.offsets') $$,
    $$ SELECT 'projection_name'::name, 'text' UNION ALL
       SELECT column_name, type FROM columns_of('projector.projection_offsets') WHERE column_name <> 'projection_id' $$,
    'view offsets');
SELECT set_has($$ SELECT column_name, type FROM columns_of('projector.failures') $$,
    $$ SELECT 'projection_name'::name, 'text' UNION ALL
       SELECT column_name, type FROM columns_of('projector.projection_failures') WHERE column_name <> 'projection_id' $$,
    'view failures');
SELECT set_has($$ SELECT column_name, type FROM columns_of('projector.projection_runs')
       WHERE column_name IN ('id', 'tenant_id', 'mode', 'state', 'since_log_seq', 'until_log_seq', 'total_events',
           'processed_events', 'last_log_seq', 'error_code', 'error_message', 'requested_by', 'queued_at', 'started_at', 'finished_at') $$,
    $$ SELECT column_name, type FROM columns_of('projector.runs') WHERE column_name NOT IN ('projection_name', 'error_context') $$,
    'view runs');
SELECT results_eq($$ SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 'projector.status'::regclass AND attnum > 0 ORDER BY attnum $$,
    $$ VALUES ('projection_name'::name, 'text'), ('mode', 'text'), ('state', 'text'), ('tenants_not_ok', 'bigint'), ('lag_events', 'bigint'),
       ('lag_time', 'interval'), ('dead', 'bigint'), ('why', 'text') $$, 'view status');
SELECT results_eq($$ SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 'projector.problems'::regclass AND attnum > 0 ORDER BY attnum $$,
    $$ VALUES ('level'::name, 'text'), ('problem', 'text'), ('projection_name', 'text'), ('tenant_id', 'text'), ('since', 'timestamp with time zone'),
       ('events', 'bigint'), ('detail', 'text'), ('remedy', 'text') $$, 'view problems');

-- ---- functions ----
SELECT set_eq($$ SELECT proname::text COLLATE "default" || '(' || pg_get_function_arguments(oid) || ') -> ' || pg_get_function_result(oid)
    FROM pg_proc WHERE pronamespace = 'app'::regnamespace AND proname LIKE 'projector\_%'$$,
    ARRAY[
    'projector_adopt() -> bigint',
    'projector_alter(name text, changes jsonb) -> void',
    'projector_append(tenant_id text, aggregate_id text, event_type text, payload jsonb, expected_version bigint DEFAULT NULL::bigint, metadata jsonb DEFAULT ''{}''::jsonb, event_id uuid DEFAULT NULL::uuid) -> bigint',
    'projector_append_batch(tenant_id text, aggregate_id text, events jsonb, expected_version bigint DEFAULT NULL::bigint) -> bigint',
    'projector_cancel_run(run_id bigint) -> boolean',
    'projector_catch_up(name text, tenant_id text DEFAULT NULL::text, until_log_seq bigint DEFAULT NULL::bigint) -> bigint',
    'projector_check_digests(name text DEFAULT NULL::text, tenant_id text DEFAULT NULL::text) -> TABLE(projection_name text, tenant_id text, matches boolean, kept_digest text, found_digest text)',
    'projector_create(name text, handler text DEFAULT NULL::text, fold text DEFAULT NULL::text, fold_columns jsonb DEFAULT NULL::jsonb, statement text DEFAULT NULL::text, targets text[] DEFAULT NULL::text[], key text DEFAULT ''aggregate_id''::text, event_types text[] DEFAULT NULL::text[], mode text DEFAULT ''async''::text, ordering text DEFAULT NULL::text, source text DEFAULT ''events''::text, options jsonb DEFAULT ''{}''::jsonb, or_replace boolean DEFAULT false, settings jsonb DEFAULT ''{}''::jsonb) -> text',
    'projector_definitions() -> SETOF text',
    'projector_digest(name text, tenant_id text) -> text',
    'projector_digest_all(tenant_id text) -> text',
    'projector_drain(name text DEFAULT NULL::text, tenant_id text DEFAULT NULL::text, max_events bigint DEFAULT NULL::bigint) -> bigint',
    'projector_drop(name text) -> void',
    'projector_explain(name text, tenant_id text, key text) -> TABLE(log_seq bigint, aggregate_id text, sequence_number bigint, event_type text, recorded_at timestamp with time zone, payload jsonb, state jsonb)',
    'projector_grant(role text, "as" text) -> void',
    'projector_health(OUT level text, OUT reason text) -> record',
    'projector_openmetrics() -> text',
    'projector_is_replay() -> boolean',
    'projector_note(failure_id bigint, note jsonb) -> void',
    'projector_pause(name text, tenant_id text DEFAULT NULL::text, reason text DEFAULT NULL::text) -> void',
    'projector_preview(name text, changes jsonb, tenant_id text, aggregate_id text DEFAULT NULL::text, max_rows integer DEFAULT 100) -> TABLE(key text, live jsonb, rebuilt jsonb)',
    'projector_prune(older_than interval DEFAULT ''30 days''::interval) -> bigint',
    'projector_rebuild(name text, tenant_id text DEFAULT NULL::text, aggregate_id text DEFAULT NULL::text) -> bigint',
    'projector_requeue(name text DEFAULT NULL::text, tenant_id text DEFAULT NULL::text, aggregate_id text DEFAULT NULL::text, sequence_number bigint DEFAULT NULL::bigint, max_rows integer DEFAULT 100) -> TABLE(projection_name text, tenant_id text, aggregate_id text, sequence_number bigint)',
    'projector_reset(name text, tenant_id text DEFAULT NULL::text, aggregate_id text DEFAULT NULL::text, force boolean DEFAULT false) -> bigint',
    'projector_resume(name text, tenant_id text DEFAULT NULL::text) -> void',
    'projector_retry(name text, tenant_id text, aggregate_id text, sequence_number bigint) -> text',
    'projector_set_mode(name text, mode text, tenant_id text DEFAULT NULL::text) -> void',
    'projector_skip(name text, tenant_id text, aggregate_id text, sequence_number bigint, reason text) -> boolean',
    'projector_start_run(name text, tenant_id text DEFAULT NULL::text, mode text DEFAULT ''rebuild''::text, until_log_seq bigint DEFAULT NULL::bigint) -> SETOF bigint',
    'projector_tenant_id() -> text',
    'projector_unskip(name text, tenant_id text, aggregate_id text, sequence_number bigint) -> boolean',
    'projector_verify(name text, tenant_id text DEFAULT NULL::text) -> TABLE(tenant_id text, matches boolean, live_digest text, rebuilt_digest text, differing_rows bigint, sample jsonb)',
    'projector_wait(name text, tenant_id text, aggregate_id text, sequence_number bigint, timeout interval DEFAULT ''00:00:05''::interval) -> text',
    'projector_wait_log(name text, tenant_id text, log_seq bigint, timeout interval DEFAULT ''00:00:05''::interval) -> text',
    'projector_worker_start() -> integer',
    'projector_worker_stop() -> integer'
    ], 'functions, arguments, defaults and results');
SELECT is_empty($$ SELECT oid::regprocedure FROM pg_proc WHERE pronamespace IN ('app'::regnamespace, 'projector'::regnamespace)
    AND proname LIKE 'projector\_%' AND proname NOT IN ('projector_health', 'projector_definitions', 'projector_tenant_id') AND (provolatile <> 'v' OR proparallel <> 'u') $$,
    'functions that write are volatile and not parallel');

-- ---- settings ----
SELECT results_eq($$ SELECT name, context FROM pg_settings WHERE name = 'projector.tenant_id' $$,
    $$ VALUES ('projector.tenant_id', 'superuser') $$, 'projector.tenant_id can be set by superusers only');

-- ---- privileges ----
SELECT is_empty($$ SELECT p.oid::regprocedure FROM pg_proc p
    JOIN pg_depend d ON d.objid = p.oid AND d.classid = 'pg_proc'::regclass AND d.deptype = 'e'
    JOIN pg_extension e ON e.oid = d.refobjid AND e.extname = 'projector',
    aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
    WHERE a.grantee = 0 AND p.proname NOT IN ('projector_tenant_id', 'in_projection', 'guard_tenant',
        'is_home', 'definition_now', 'problem', 'no_worker', 'appenders', 'worker_activity', 'worker_waits_since', 'item_waits',
        'metrics_of_projections', 'metrics_of_tenants') $$,
    'PUBLIC may not execute any function but those for policies and triggers, and those that views call');
SELECT is_empty($$ SELECT c.oid::regclass, a.privilege_type FROM pg_class c,
    aclexplode(coalesce(c.relacl, acldefault(CASE c.relkind WHEN 'S' THEN 's'::"char" ELSE 'r' END, c.relowner))) a
    WHERE c.relnamespace = 'projector'::regnamespace AND c.relkind IN ('r', 'v', 'S', 'p', 'm') AND a.grantee = 0 $$,
    'PUBLIC has no privilege on any table, view or sequence');
SELECT is_empty($$ SELECT attrelid::regclass, attname FROM pg_attribute JOIN pg_class c ON c.oid = attrelid
    WHERE relnamespace = 'projector'::regnamespace AND attacl IS NOT NULL $$,
    'nobody has a privilege on a column');
SELECT is_empty($$ SELECT a.* FROM pg_namespace n, aclexplode(coalesce(nspacl, acldefault('n', nspowner))) a
    WHERE nspname = 'projector' AND a.grantee = 0 $$, 'PUBLIC has no privilege on the schema');
SELECT set_eq($$ SELECT proname::text COLLATE "default", provolatile, proconfig[1] COLLATE "default" FROM pg_proc WHERE prosecdef
    AND pronamespace IN ('app'::regnamespace, 'projector'::regnamespace) $$,
    $$ SELECT f, 's'::"char", 'search_path=pg_catalog, pg_temp' FROM unnest('{projector_health,projector_definitions}'::text[]) f $$,
    'only what reads is SECURITY DEFINER: it is not volatile, and its search_path is pinned');

-- ---- dump ----
SELECT set_eq($$ SELECT unnest(extconfig)::regclass::text FROM pg_extension WHERE extname = 'projector' $$,
    $$ SELECT oid::regclass::text FROM pg_class WHERE relnamespace = 'projector'::regnamespace AND relkind IN ('r', 'S')
       AND relname <> 'worker_marks' $$,
    'a dump carries every table and sequence, but not how the workers of this server have ended');
SELECT is((SELECT count(*) FROM pg_extension, unnest(extcondition) c WHERE extname = 'projector' AND c <> ''), 0::bigint,
    'and all of their rows');

-- ---- documented in the catalog ----
SELECT is_empty($$ SELECT oid::regclass FROM pg_class WHERE relnamespace = 'projector'::regnamespace
    AND relkind IN ('r', 'v') AND obj_description(oid, 'pg_class') IS NULL $$, 'every table and view has a comment');
SELECT is_empty($$ SELECT a.attrelid::regclass, a.attname FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
    WHERE c.relnamespace = 'projector'::regnamespace AND c.relkind = 'v' AND a.attnum > 0
    AND col_description(a.attrelid, a.attnum) IS NULL $$, 'every column of every view has a comment');
SELECT is_empty($$ SELECT oid::regprocedure FROM pg_proc WHERE pronamespace = 'app'::regnamespace
    AND proname LIKE 'projector\_%' AND obj_description(oid, 'pg_proc') IS NULL $$, 'every function has a comment');

-- ---- dropping the extension leaves nothing behind ----
DROP EXTENSION projector CASCADE;
SELECT hasnt_schema('projector');
SELECT is_empty($$ SELECT oid::regprocedure FROM pg_proc WHERE proname LIKE 'projector\_%' $$, 'no function is left');

SELECT * FROM finish();
