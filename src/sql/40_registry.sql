-- Registers a projection.  The caller becomes its owner.
-- Tables: projections (insert).
CREATE FUNCTION projector_create(
    name text, handler text DEFAULT NULL, fold text DEFAULT NULL,
    fold_columns jsonb DEFAULT NULL, statement text DEFAULT NULL,
    targets text[] DEFAULT NULL, key text DEFAULT 'aggregate_id',
    event_types text[] DEFAULT NULL, mode text DEFAULT 'async',
    ordering text DEFAULT NULL, source text DEFAULT 'events',
    options jsonb DEFAULT '{}', settings jsonb DEFAULT '{}')
RETURNS void
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_create';
COMMENT ON FUNCTION projector_create IS 'register a projection';

-- Keeps a projection's code to the rows of its event's tenant: a trigger on each
-- target of handlers and statements, which is not fired while no such code runs.
CREATE FUNCTION projector.in_projection() RETURNS boolean
LANGUAGE C STABLE PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'projector_in_projection';
CREATE FUNCTION projector.guard_tenant() RETURNS trigger
LANGUAGE C AS 'MODULE_PATHNAME', 'projector_guard_tenant';

-- Changes a projection's definition or options.  Tables: projections (update).
CREATE FUNCTION projector_alter(name text, changes jsonb) RETURNS void
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_alter';
COMMENT ON FUNCTION projector_alter IS
    'change a projection''s definition or options';

-- Changes how a projection is applied, for all tenants or for one.
-- Tables: projections (update), projection_cursors (insert, update).
CREATE FUNCTION projector_set_mode(
    name text, mode text, tenant_id text DEFAULT NULL)
RETURNS void
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_set_mode';
COMMENT ON FUNCTION projector_set_mode IS 'change how a projection is applied';

-- Stops applying; events queue meanwhile.  Tables: as projector_set_mode.
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

-- Lets the projections of a copied database, restored or made from a
-- template, run in it, and returns how many.  Offsets and queued events are
-- kept; the next drain reads the log from where each cursor stands.
-- Tables: projections, projection_cursors (update).
CREATE FUNCTION projector_adopt() RETURNS bigint
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_adopt';
COMMENT ON FUNCTION projector_adopt IS
    'let the projections of a copied database run';

-- Removes a projection and everything kept about it, but not its read model.
-- Tables: projections, projection_offsets, projection_cursors, apply_outbox,
-- projection_failures (delete).
CREATE FUNCTION projector_drop(name text) RETURNS void
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_drop';
COMMENT ON FUNCTION projector_drop IS
    'remove a projection, but not its read model';
