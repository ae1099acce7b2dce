-- Registers a projection and returns 'created'.  The caller becomes its owner.
-- With or_replace, an existing projection of that name is changed to what the
-- arguments say, except for its mode and pauses; the result is then 'changed'
-- or 'unchanged'.
-- Tables: projections (insert, update).
CREATE FUNCTION projector_create(
    name text, handler text DEFAULT NULL, fold text DEFAULT NULL,
    fold_columns jsonb DEFAULT NULL, statement text DEFAULT NULL,
    targets text[] DEFAULT NULL, key text DEFAULT 'aggregate_id',
    event_types text[] DEFAULT NULL, mode text DEFAULT 'async',
    ordering text DEFAULT NULL, source text DEFAULT 'events',
    options jsonb DEFAULT '{}', or_replace boolean DEFAULT false,
    settings jsonb DEFAULT '{}')
RETURNS text
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_create';
COMMENT ON FUNCTION projector_create IS 'register a projection';

-- Restrict a projection's code to the rows of its event's tenant: used by a
-- trigger on each target of handlers and statements, which fires only while
-- such code runs.
CREATE FUNCTION projector.in_projection() RETURNS boolean
LANGUAGE C STABLE PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'projector_in_projection';
CREATE FUNCTION projector.guard_tenant() RETURNS trigger
LANGUAGE C AS 'MODULE_PATHNAME', 'projector_guard_tenant';

-- Changes a projection's definition, options, settings, owner or name.
-- Tables: projections (update).
CREATE FUNCTION projector_alter(name text, changes jsonb) RETURNS void
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_alter';
COMMENT ON FUNCTION projector_alter IS
    'change a projection''s definition or options';

-- Changes a projection's mode, for all tenants or for one.
-- Tables: projections (update), projection_cursors (insert, update).
CREATE FUNCTION projector_set_mode(
    name text, mode text, tenant_id text DEFAULT NULL)
RETURNS void
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_set_mode';
COMMENT ON FUNCTION projector_set_mode IS 'change how a projection is applied';

-- Pauses a projection; events are queued until it is resumed.
-- Tables: as projector_set_mode.
CREATE FUNCTION projector_pause(
    name text, tenant_id text DEFAULT NULL, reason text DEFAULT NULL)
RETURNS void
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_pause';
COMMENT ON FUNCTION projector_pause IS 'stop applying, keep queueing';

-- Ends a pause.  Tables: as projector_set_mode.
CREATE FUNCTION projector_resume(name text, tenant_id text DEFAULT NULL)
RETURNS void
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_resume';
COMMENT ON FUNCTION projector_resume IS 'end a pause';

-- Lets the projections of a copied database, restored or made from a template,
-- run in it, and returns how many.  Offsets and queued events are kept; the
-- next drain reads the log from the position of each cursor.
-- Tables: projections, projection_cursors (update).
CREATE FUNCTION projector_adopt() RETURNS bigint
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_adopt';
COMMENT ON FUNCTION projector_adopt IS
    'let the projections of a copied database run';

-- Drops a projection and all of its bookkeeping, but not its read model.
-- Tables: projections, projection_offsets, projection_cursors, apply_outbox,
-- projection_failures (delete).
CREATE FUNCTION projector_drop(name text) RETURNS void
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_drop';
COMMENT ON FUNCTION projector_drop IS
    'remove a projection, but not its read model';

-- The commands that create all current projections, one per row, each after
-- those it depends on.  A row sets search_path if the next projection needs
-- another one, and a row gives a projection to its owner, if that is not the
-- session's user.  Pauses and modes of single tenants are not included.
-- Tables: projections (read).
CREATE FUNCTION projector_definitions() RETURNS SETOF text
LANGUAGE sql STABLE PARALLEL RESTRICTED SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
    WITH RECURSIVE deep (name, depth) AS (
        SELECT name, 0 FROM projector.projections
        UNION
        SELECT p.name, d.depth + 1 FROM deep d
        JOIN projector.projections p ON p.options->'depends_on' ? d.name
        WHERE d.depth < (SELECT count(*) FROM projector.projections)),
    listed AS (
        SELECT p.*, p.resolved_in = 'projector.projections'::regclass AS resolved,
               row_number() OVER (ORDER BY d.depth, p.projection_id) AS place
        FROM projector.projections p
        JOIN (SELECT name, max(depth) AS depth FROM deep GROUP BY name) d USING (name)),
    -- names as they are now: owners and targets may have been renamed
    named AS (
        SELECT p.*, lag(p.search_path) OVER (ORDER BY p.place) AS path_before,
               coalesce((SELECT r.rolname FROM pg_roles r
                         WHERE r.oid = p.owner_oid AND p.resolved), p.owner) AS owner_now,
               coalesce((SELECT array_agg(coalesce(format('%I.%I', n.nspname, c.relname), t.name)
                                          ORDER BY t.i)
                         FROM unnest(p.targets, p.target_oids) WITH ORDINALITY t (name, oid, i)
                         LEFT JOIN (pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace)
                             ON c.oid = t.oid AND p.resolved), p.targets) AS targets_now
        FROM listed p)
    SELECT l.command
    FROM named p
    CROSS JOIN LATERAL (
        VALUES (1, CASE WHEN p.path_before IS DISTINCT FROM p.search_path
                        THEN format('SET search_path = %s;', p.search_path) END),
               (2, format('SELECT projector_create(%L, %s);', p.name, concat_ws(', ',
                   'handler => ' || quote_literal(p.handler),
                   'fold => ' || quote_literal(p.fold),
                   'fold_columns => ' || quote_literal(p.fold_columns),
                   'statement => ' || quote_literal(p.statement),
                   'targets => ' || quote_literal(p.targets_now),
                   CASE WHEN p.key <> 'aggregate_id' THEN 'key => ' || quote_literal(p.key) END,
                   'event_types => ' || quote_literal(p.event_types),
                   CASE WHEN p.mode <> 'async' THEN 'mode => ' || quote_literal(p.mode) END,
                   CASE WHEN p.ordering = 'log' THEN 'ordering => ' || quote_literal(p.ordering) END,
                   CASE WHEN p.source <> 'events' THEN 'source => ' || quote_literal(p.source) END,
                   CASE WHEN p.options <> '{}' THEN 'options => ' || quote_literal(p.options) END,
                   CASE WHEN p.settings <> '{}' THEN 'settings => ' || quote_literal(p.settings) END))),
               (3, CASE WHEN p.owner_now <> session_user
                        THEN format('SELECT projector_alter(%L, %L);', p.name,
                                    jsonb_build_object('owner', p.owner_now)) END)) l (part, command)
    WHERE l.command IS NOT NULL
    ORDER BY p.place, l.part
$$;
COMMENT ON FUNCTION projector_definitions IS
    'the commands that create all projections as they are';

-- Grants a role the privileges of an appender, a reader, a modeller (who
-- creates projections) or an operator (who manages all of them).
-- Tables: none.
CREATE FUNCTION projector_grant(role text, "as" text) RETURNS void
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_grant';
COMMENT ON FUNCTION projector_grant IS
    'grant a role what it needs as appender, reader, modeller or operator';
