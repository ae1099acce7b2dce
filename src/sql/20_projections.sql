-- The registry.  Functions are stored as text: an OID would not survive a
-- dump, and a regproc column blocks pg_upgrade.  Owner and targets are
-- identified by OID in the database that the projection lives in.  So renames
-- are followed, and a new role that reuses an old name gets no privileges.
-- Their names are stored for dumps.
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
    created_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    paused_at        timestamptz,
    owner_oid        oid NOT NULL DEFAULT 0,
    target_oids      oid[] NOT NULL DEFAULT '{}',
    resolved_in      oid NOT NULL DEFAULT 0,
    redefinitions    integer NOT NULL DEFAULT 0,
    settings         jsonb NOT NULL DEFAULT '{}'
);
COMMENT ON TABLE projector.projections IS 'the registered projections';
COMMENT ON COLUMN projector.projections.overrides IS
    'some tenant has a mode, a pause or a run of its own in projection_cursors';
COMMENT ON COLUMN projector.projections.skips IS
    'some event is to be skipped';
COMMENT ON COLUMN projector.projections.handover_log_seq IS
    'events up to here are read from the log, later ones come by themselves';
COMMENT ON COLUMN projector.projections.started IS
    'it has been handed over before: of a tenant not met until then all events are new';
COMMENT ON COLUMN projector.projections.home IS
    'the database this projection lives in; elsewhere it is dormant';
COMMENT ON COLUMN projector.projections.search_path IS
    'the path its code runs with, pinned when it was created';
COMMENT ON COLUMN projector.projections.owner IS
    'the owner''s name, refreshed from owner_oid';
COMMENT ON COLUMN projector.projections.targets IS
    'the targets'' names, refreshed from target_oids';
COMMENT ON COLUMN projector.projections.owner_oid IS
    'the role its code runs as; 0 if there is none of that name';
COMMENT ON COLUMN projector.projections.target_oids IS
    'the tables it writes; 0 where there is none of that name';
COMMENT ON COLUMN projector.projections.resolved_in IS
    'the oid of this table when the oids were noted: in a restored one the names count';
COMMENT ON COLUMN projector.projections.redefinitions IS
    'how often projector_alter or projector_create changed the definition, of which this number is a part';
COMMENT ON COLUMN projector.projections.settings IS
    'settings its code runs with, on top of those that are fixed for all';

-- Tells every session that its cached copy of the registry is out of date.
CREATE FUNCTION projector.projections_changed() RETURNS trigger
LANGUAGE C AS 'MODULE_PATHNAME', 'projector_projections_changed';
CREATE TRIGGER projections_changed
    AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON projector.projections
    FOR EACH STATEMENT EXECUTE FUNCTION projector.projections_changed();
-- The trigger must also fire if session_replication_role is replica.
ALTER TABLE projector.projections ENABLE ALWAYS TRIGGER projections_changed;

-- The last event applied, per projection and aggregate.  Every batch updates
-- these rows.  The fillfactor leaves room on each page and no index contains a
-- column that changes, so that the updates are HOT.
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

-- One row per projection and tenant, created when a worker or drain first
-- processes the tenant, or when an operator gives it a mode or pause of its
-- own.
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
    handover_log_seq bigint,
    paused_at     timestamptz,
    dead_count    bigint NOT NULL DEFAULT 0,
    batch_count   bigint NOT NULL DEFAULT 0,
    apply_time    interval NOT NULL DEFAULT '0',
    last_applied_at timestamptz,
    definition_hash bytea,
    PRIMARY KEY (projection_id, tenant_id)
) WITH (fillfactor = 50);
COMMENT ON TABLE projector.projection_cursors IS
    'how far each projection has read each tenant''s log, and how it is run';
COMMENT ON COLUMN projector.projection_cursors.run_id IS
    'the run that is at work on it; live apply waits for its end';
COMMENT ON COLUMN projector.projection_cursors.handover_log_seq IS
    'as that of the projection, if this tenant''s is later: a run that broke off has forgotten what was applied up to here';
COMMENT ON COLUMN projector.projection_cursors.batch_count IS
    'batches that have applied something, and appends that have';
COMMENT ON COLUMN projector.projection_cursors.definition_hash IS
    'of the definition that made the rows, if not that of the projection; empty if several definitions did';
CREATE INDEX projection_cursors_behind_idx ON projector.projection_cursors
    (projection_id, tenant_id) WHERE state IN ('replaying', 'switching');

-- The sum of the row hashes of each tenant's read model.  For folds it is
-- updated with every batch.
CREATE TABLE projector.projection_digests (
    projection_id integer NOT NULL,
    tenant_id     text COLLATE "C" NOT NULL,
    digest        text COLLATE "C" NOT NULL CHECK (digest ~ '^[0-9a-f]{32}$'),
    row_count     bigint NOT NULL,
    last_log_seq  bigint NOT NULL,
    refreshed_at  timestamptz NOT NULL DEFAULT now(),
    layout        bigint NOT NULL,
    PRIMARY KEY (projection_id, tenant_id)
) WITH (fillfactor = 50);
COMMENT ON TABLE projector.projection_digests IS
    'the digest of each tenant''s read model';
COMMENT ON COLUMN projector.projection_digests.layout IS
    'tells whether the same columns were hashed';

-- Adds digests, modulo 2^128.
CREATE FUNCTION projector.digest_add(a text, b text) RETURNS text
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'projector_digest_add';
CREATE AGGREGATE projector.digest_sum(text) (
    SFUNC = projector.digest_add, STYPE = text,
    INITCOND = '00000000000000000000000000000000', PARALLEL = SAFE);

-- Counts and digests of inline appends, which a worker later adds to the
-- cursors.  If all appends of a tenant updated the same row, they would wait
-- for each other.
CREATE TABLE projector.projection_deltas (
    projection_id   integer NOT NULL,
    tenant_id       text COLLATE "C" NOT NULL,
    applied_count   bigint NOT NULL,
    failed_count    bigint NOT NULL,
    dead_count      bigint NOT NULL,
    apply_time      interval NOT NULL,
    last_applied_at timestamptz NOT NULL,
    digest          text COLLATE "C",
    row_count       bigint NOT NULL,
    layout          bigint NOT NULL,
    last_log_seq    bigint NOT NULL
);
-- Otherwise a publication of all tables would prevent deleting rows.
ALTER TABLE projector.projection_deltas REPLICA IDENTITY FULL;
COMMENT ON TABLE projector.projection_deltas IS
    'what has been applied inline, and not been added to the cursors yet';

-- The outbox.  A pending row is claimed through claim_idx.  If its aggregate
-- waits for a failed or dead event, the row is marked as held, so that it is
-- not claimed again.
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
CREATE INDEX apply_outbox_due_idx ON projector.apply_outbox
    (projection_id, next_attempt_at) WHERE status = 'failed';
CREATE INDEX apply_outbox_dead_idx ON projector.apply_outbox
    (projection_id, tenant_id, log_seq) WHERE status = 'dead';
CREATE INDEX apply_outbox_blocked_idx ON projector.apply_outbox
    (projection_id, tenant_id, aggregate_id, sequence_number)
    WHERE held OR status IN ('failed', 'dead');

-- One row per event that failed.  It is open until the event is applied,
-- skipped or rebuilt.
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
    traceparent     text,
    correlation_id  text,
    CHECK ((resolved_at IS NULL) = (resolution IS NULL))
);
COMMENT ON TABLE projector.projection_failures IS
    'the events that failed, with their errors';
CREATE UNIQUE INDEX projection_failures_open_idx
    ON projector.projection_failures (projection_id, log_seq)
    WHERE resolved_at IS NULL;
CREATE INDEX projection_failures_tenant_idx
    ON projector.projection_failures (projection_id, tenant_id)
    WHERE resolved_at IS NULL;
CREATE INDEX projection_failures_resolved_idx
    ON projector.projection_failures (resolved_at)
    WHERE resolved_at IS NOT NULL;
-- Events that must be skipped by decision of an operator, or of option
-- on_error or on_rebuild_error.  (The failure of an event that is no longer
-- subscribed to is also closed as skipped, but a replay does not skip it.)
CREATE UNIQUE INDEX projection_failures_skipped_idx
    ON projector.projection_failures (projection_id, log_seq)
    WHERE resolution = 'skipped' AND metadata ? 'skip_reason';

-- Rebuilds and catch-ups in the background, one row for each tenant.  The row
-- contains the progress of the run, so that any worker can continue it.
CREATE TABLE projector.projection_runs (
    id                   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    projection_id        integer NOT NULL,
    tenant_id            text COLLATE "C" NOT NULL,
    mode                 text NOT NULL CHECK (mode IN ('catch_up', 'rebuild')),
    state                text COLLATE "C" NOT NULL DEFAULT 'queued' CHECK (state IN
        ('queued', 'running', 'completed', 'failed', 'cancelled')),
    since_log_seq        bigint,
    until_log_seq        bigint,
    total_events         bigint,
    processed_events     bigint NOT NULL DEFAULT 0,
    last_log_seq         bigint NOT NULL DEFAULT 0,
    error_code           text,
    error_message        text,
    error_context        text,
    requested_by         text NOT NULL,
    queued_at            timestamptz NOT NULL DEFAULT clock_timestamp(),
    started_at           timestamptz,
    finished_at          timestamptz,
    prepared             boolean NOT NULL DEFAULT false,
    settled_log_seq      bigint,
    last_aggregate_id    text COLLATE "C",
    last_sequence_number bigint,
    attempt_count        integer NOT NULL DEFAULT 0,
    built_aside          boolean NOT NULL DEFAULT false,
    definition_hash      bytea,
    slice_count          integer NOT NULL DEFAULT 0,
    CHECK ((state IN ('completed', 'failed', 'cancelled'))
           = (finished_at IS NOT NULL)),
    CHECK (state <> 'failed' OR error_code IS NOT NULL AND error_message IS NOT NULL)
) WITH (fillfactor = 50);
COMMENT ON TABLE projector.projection_runs IS
    'rebuilds and catch-ups in the background';
COMMENT ON COLUMN projector.projection_runs.total_events IS
    'an estimate, until it has completed';
COMMENT ON COLUMN projector.projection_runs.last_log_seq IS
    'the last position of an event processed; in aggregate order, not all before it have been';
COMMENT ON COLUMN projector.projection_runs.until_log_seq IS
    'later events are not read; set when it starts, unless given';
COMMENT ON COLUMN projector.projection_runs.settled_log_seq IS
    'where the cursor goes when it has completed';
COMMENT ON COLUMN projector.projection_runs.prepared IS
    'a rebuild: the read model has been cleared, or the place to build it aside made';
COMMENT ON COLUMN projector.projection_runs.attempt_count IS
    'how often its next batch has met an error that may go away by itself';
COMMENT ON COLUMN projector.projection_runs.slice_count IS
    'into how many slices of aggregates it is cut, so that several workers can process it; 0 if it is not';
CREATE UNIQUE INDEX projection_runs_active_idx ON projector.projection_runs
    (projection_id, tenant_id) WHERE state IN ('queued', 'running');
CREATE INDEX projection_runs_next_idx ON projector.projection_runs
    (state, (-id)) WHERE state IN ('queued', 'running');
CREATE INDEX projection_runs_finished_idx ON projector.projection_runs
    (finished_at) WHERE finished_at IS NOT NULL;

-- Allows only these changes: from queued to running or to a final state, and
-- from running to a final state.
CREATE FUNCTION projector.runs_check_state() RETURNS trigger
LANGUAGE C AS 'MODULE_PATHNAME', 'projector_runs_check_state';
CREATE TRIGGER runs_check_state
    BEFORE UPDATE OF state ON projector.projection_runs
    FOR EACH ROW EXECUTE FUNCTION projector.runs_check_state();

-- The slices of a run.  Each has the aggregates after one and up to another, and
-- its own progress.  The rows are deleted when the run ends.
CREATE TABLE projector.projection_run_slices (
    run_id               bigint NOT NULL,
    slice                integer NOT NULL,
    projection_id        integer NOT NULL,
    after_aggregate_id   text COLLATE "C",
    upto_aggregate_id    text COLLATE "C",
    done                 boolean NOT NULL DEFAULT false,
    last_aggregate_id    text COLLATE "C",
    last_sequence_number bigint,
    last_log_seq         bigint NOT NULL DEFAULT 0,
    processed_events     bigint NOT NULL DEFAULT 0,
    applied_count        bigint NOT NULL DEFAULT 0,
    failed_count         bigint NOT NULL DEFAULT 0,
    dead_count           bigint NOT NULL DEFAULT 0,
    batch_count          bigint NOT NULL DEFAULT 0,
    apply_us             bigint NOT NULL DEFAULT 0,
    digest               text NOT NULL DEFAULT '00000000000000000000000000000000',
    row_count            bigint NOT NULL DEFAULT 0,
    layout               bigint NOT NULL DEFAULT 0,
    redefined            boolean NOT NULL DEFAULT false,
    attempt_count        integer NOT NULL DEFAULT 0,
    error_code           text,
    error_message        text,
    error_context        text,
    PRIMARY KEY (run_id, slice)
) WITH (fillfactor = 50);
COMMENT ON TABLE projector.projection_run_slices IS
    'the slices of runs that several workers can process, and their progress';
COMMENT ON COLUMN projector.projection_run_slices.upto_aggregate_id IS
    'the last aggregate of the slice, null if it has all that follow';
COMMENT ON COLUMN projector.projection_run_slices.redefined IS
    'a batch was applied with another definition than the one the run began with';
COMMENT ON COLUMN projector.projection_run_slices.error_code IS
    'the error that the run is going to end with';

-- One row per worker, from its start until it exits normally.  A row of a
-- worker that is gone was left by a crash, or by code that ignored its
-- timeout.
CREATE TABLE projector.worker_marks (
    slot          integer PRIMARY KEY,
    started_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    cautious      boolean NOT NULL DEFAULT false,
    projection_id integer,
    tenant_id     text COLLATE "C"
);
COMMENT ON TABLE projector.worker_marks IS
    'the workers that have not ended in an orderly way';
COMMENT ON COLUMN projector.worker_marks.cautious IS
    'it applies one event at a time, because another has crashed';
COMMENT ON COLUMN projector.worker_marks.projection_id IS
    'with tenant_id, the pair whose code ignored its timeout';

-- What users have done with projections: a row for each call of a function
-- that changes them or what has become of their events.
CREATE TABLE projector.audit_log (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    happened_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    role            text NOT NULL,
    session_role    text NOT NULL,
    action          text NOT NULL,
    projection_name text COLLATE "C",
    tenant_id       text COLLATE "C",
    arguments       jsonb NOT NULL,
    result          text
);
COMMENT ON TABLE projector.audit_log IS
    'who has called which function of ours; see the view projector.audit';

-- Refuses to change rows, and to delete them before their time.
CREATE FUNCTION projector.audit_guard() RETURNS trigger
LANGUAGE C AS 'MODULE_PATHNAME', 'projector_audit_guard';
CREATE TRIGGER audit_guard BEFORE UPDATE OR TRUNCATE ON projector.audit_log
    FOR EACH STATEMENT EXECUTE FUNCTION projector.audit_guard();
CREATE TRIGGER audit_guard_rows BEFORE DELETE ON projector.audit_log
    FOR EACH ROW EXECUTE FUNCTION projector.audit_guard();
