-- The registry.  Functions, tables and roles are kept as text: an oid would
-- not survive a dump, and a regproc column blocks pg_upgrade.
CREATE TABLE projector.projections (
    projection_id    integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name             text COLLATE "C" NOT NULL UNIQUE,
    owner            text NOT NULL,
    source           text NOT NULL DEFAULT 'events',
    kind             text NOT NULL
        CHECK (kind IN ('handler', 'fold', 'fold_columns', 'statement')),
    handler          text,
    fold             text,
    fold_columns     jsonb,
    statement        text,
    targets          text[] NOT NULL DEFAULT '{}',
    key              text NOT NULL DEFAULT 'aggregate_id',
    event_types      text[],
    mode             text NOT NULL CHECK (mode IN
        ('off', 'shadow', 'async', 'follow', 'inline', 'strict')),
    ordering         text NOT NULL CHECK (ordering IN ('aggregate', 'log')),
    options          jsonb NOT NULL DEFAULT '{}',
    paused           boolean NOT NULL DEFAULT false,
    paused_by        text,
    pause_reason     text,
    overrides        boolean NOT NULL DEFAULT false,
    skips            boolean NOT NULL DEFAULT false,
    handover_log_seq bigint,
    started          boolean NOT NULL DEFAULT false,
    home             text NOT NULL,
    definition_hash  bytea NOT NULL,
    search_path      text NOT NULL,
    created_at       timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE projector.projections IS 'the registered projections';
COMMENT ON COLUMN projector.projections.overrides IS
    'some tenant has a mode, a pause or a run of its own in projection_cursors';
COMMENT ON COLUMN projector.projections.skips IS
    'some event is to be passed over';
COMMENT ON COLUMN projector.projections.handover_log_seq IS
    'events up to here are read from the log, later ones come by themselves';
COMMENT ON COLUMN projector.projections.started IS
    'it has been handed over before: of a tenant not met until then all events are new';
COMMENT ON COLUMN projector.projections.home IS
    'the database this projection lives in; elsewhere it is dormant';
COMMENT ON COLUMN projector.projections.search_path IS
    'the path its code runs with, pinned when it was created';

-- Tells every session that its copy of the registry is out of date.
CREATE FUNCTION projector.projections_changed() RETURNS trigger
LANGUAGE C AS 'MODULE_PATHNAME', 'projector_projections_changed';
CREATE TRIGGER projections_changed
    AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON projector.projections
    FOR EACH STATEMENT EXECUTE FUNCTION projector.projections_changed();

-- The last event applied, by projection and aggregate.  Every batch updates
-- its rows in place: there is room on each page, and no index on anything
-- that changes.
CREATE TABLE projector.projection_offsets (
    projection_id        integer NOT NULL,
    tenant_id            text COLLATE "C" NOT NULL,
    aggregate_id         text COLLATE "C" NOT NULL,
    last_sequence_number bigint NOT NULL,
    last_event_id        uuid,
    error_count          integer NOT NULL DEFAULT 0,
    last_error           text,
    updated_at           timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (projection_id, tenant_id, aggregate_id)
) WITH (fillfactor = 70);
COMMENT ON TABLE projector.projection_offsets IS
    'the last sequence number each projection applied for each aggregate';

-- One row per projection and tenant that a drain has seen or an operator has
-- given a setting of its own.
CREATE TABLE projector.projection_cursors (
    projection_id integer NOT NULL,
    tenant_id     text COLLATE "C" NOT NULL,
    last_log_seq  bigint NOT NULL DEFAULT 0,
    state         text NOT NULL DEFAULT 'live' CHECK (state IN
        ('live', 'replaying', 'switching', 'stopped')),
    mode          text CHECK (mode IN
        ('off', 'shadow', 'async', 'follow', 'inline', 'strict')),
    paused_by     text,
    pause_reason  text,
    run_id        bigint,
    applied_count bigint NOT NULL DEFAULT 0,
    failed_count  bigint NOT NULL DEFAULT 0,
    updated_at    timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (projection_id, tenant_id)
) WITH (fillfactor = 50);
COMMENT ON TABLE projector.projection_cursors IS
    'how far each projection has read each tenant''s log, and how it is run';
CREATE INDEX projection_cursors_behind_idx ON projector.projection_cursors
    (projection_id, tenant_id) WHERE state IN ('replaying', 'switching');

-- The work list.  A pending row is claimed through claim_idx.  Once its
-- aggregate is found to be waiting for a failed or dead event, the row is
-- marked as held, so that a claim does not look at it again.
CREATE TABLE projector.apply_outbox (
    projection_id   integer NOT NULL,
    log_seq         bigint NOT NULL,
    tenant_id       text COLLATE "C" NOT NULL,
    aggregate_id    text COLLATE "C" NOT NULL,
    sequence_number bigint NOT NULL,
    event_type      text COLLATE "C" NOT NULL,
    status          text NOT NULL DEFAULT 'pending'
        CHECK (status IN ('pending', 'failed', 'dead')),
    held            boolean NOT NULL DEFAULT false,
    replay          boolean NOT NULL DEFAULT false,
    shadow          text CHECK (shadow IN ('passed', 'failed', 'untested')),
    attempt_count   integer NOT NULL DEFAULT 0,
    next_attempt_at timestamptz NOT NULL DEFAULT now(),
    last_error      text,
    updated_at      timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (projection_id, log_seq)
);
COMMENT ON TABLE projector.apply_outbox IS
    'the events each projection has yet to apply';
COMMENT ON COLUMN projector.apply_outbox.held IS
    'claims pass it by: it waits for a failed or dead event of its aggregate, or has been tried in mode shadow';
COMMENT ON COLUMN projector.apply_outbox.replay IS
    'the event was read from the log again, not just appended';
COMMENT ON COLUMN projector.apply_outbox.shadow IS
    'what became of a trial in mode shadow; such a row is marked as held too';
CREATE INDEX apply_outbox_claim_idx ON projector.apply_outbox
    (projection_id, tenant_id, log_seq) WHERE status = 'pending' AND NOT held;
CREATE INDEX apply_outbox_retry_idx ON projector.apply_outbox
    (projection_id, tenant_id, next_attempt_at) WHERE status = 'failed';
CREATE INDEX apply_outbox_dead_idx ON projector.apply_outbox
    (projection_id, next_attempt_at) WHERE status = 'dead';
CREATE INDEX apply_outbox_blocked_idx ON projector.apply_outbox
    (projection_id, tenant_id, aggregate_id, sequence_number)
    WHERE held OR status IN ('failed', 'dead');

-- One row per event that failed; open until it is applied, skipped or
-- rebuilt.
CREATE TABLE projector.projection_failures (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    projection_id   integer NOT NULL,
    tenant_id       text COLLATE "C" NOT NULL,
    aggregate_id    text COLLATE "C" NOT NULL,
    sequence_number bigint NOT NULL,
    log_seq         bigint NOT NULL,
    event_id        uuid,
    event_type      text COLLATE "C" NOT NULL,
    error_code      text NOT NULL,
    error_message   text NOT NULL,
    error_detail    text,
    error_hint      text,
    error_context   text,
    retry_count     integer NOT NULL DEFAULT 0,
    recoverable     boolean NOT NULL,
    metadata        jsonb NOT NULL DEFAULT '{}',
    first_failed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_failed_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    resolved_at     timestamptz,
    resolution      text CHECK (resolution IN ('applied', 'skipped', 'rebuilt')),
    CHECK ((resolved_at IS NULL) = (resolution IS NULL))
);
COMMENT ON TABLE projector.projection_failures IS
    'the events that failed, with their errors';
CREATE UNIQUE INDEX projection_failures_open_idx
    ON projector.projection_failures (projection_id, log_seq)
    WHERE resolved_at IS NULL;
-- Passed over because an operator said so.  (The failure of an event that is no
-- longer subscribed to is closed as skipped too, but binds no replay.)
CREATE UNIQUE INDEX projection_failures_skipped_idx
    ON projector.projection_failures (projection_id, log_seq)
    WHERE resolution = 'skipped' AND metadata ? 'skip_reason';
