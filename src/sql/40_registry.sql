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

-- The calls that create all current projections, one per row, each after those
-- it depends on.  Pauses and modes of single tenants are not included.
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
        WHERE d.depth < (SELECT count(*) FROM projector.projections))
    SELECT format('SELECT projector_create(%L, %s);', p.name, concat_ws(', ',
               'handler => ' || quote_literal(p.handler),
               'fold => ' || quote_literal(p.fold),
               'fold_columns => ' || quote_literal(p.fold_columns),
               'statement => ' || quote_literal(p.statement),
               'targets => ' || quote_literal(p.targets),
               CASE WHEN p.key <> 'aggregate_id' THEN 'key => ' || quote_literal(p.key) END,
               'event_types => ' || quote_literal(p.event_types),
               CASE WHEN p.mode <> 'async' THEN 'mode => ' || quote_literal(p.mode) END,
               CASE WHEN p.ordering = 'log' THEN 'ordering => ' || quote_literal(p.ordering) END,
               CASE WHEN p.source <> 'events' THEN 'source => ' || quote_literal(p.source) END,
               CASE WHEN p.options <> '{}' THEN 'options => ' || quote_literal(p.options) END,
               CASE WHEN p.settings <> '{}' THEN 'settings => ' || quote_literal(p.settings) END))
    FROM projector.projections p
    ORDER BY (SELECT max(d.depth) FROM deep d WHERE d.name = p.name), p.projection_id
$$;
COMMENT ON FUNCTION projector_definitions IS
    'the calls that create all projections as they are';

-- Grants a role the privileges of an appender, a reader, a modeller (who
-- creates projections) or an operator (who manages all of them).
-- Tables: none.
CREATE FUNCTION projector_grant(role text, "as" text) RETURNS void
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_grant';
COMMENT ON FUNCTION projector_grant IS
    'grant a role what it needs as appender, reader, modeller or operator';
