\echo Use "CREATE EXTENSION projector" to load this file. \quit
-- Everything that users see is in two places: tables, views and types are in
-- schema "projector", which belongs to the extension; functions named
-- projector_* are in the schema in which the extension is created.
CREATE SCHEMA projector;
COMMENT ON SCHEMA projector IS 'event log, projections and their checkpoints';

-- What a handler receives, independent of the table that the event was read
-- from.  The columns have the default collation, so that a handler's
-- comparisons can use the indexes of its own tables.
CREATE TYPE projector.event AS (
    log_seq         bigint,
    tenant_id       text,
    aggregate_id    text,
    sequence_number bigint,
    event_id        uuid,
    event_type      text,
    payload         jsonb,
    metadata        jsonb,
    recorded_at     timestamptz
);
COMMENT ON TYPE projector.event IS 'one event, as handlers receive it';
-- The log.  Identifiers are compared bytewise: their order must not depend on
-- the operating system's collations, and bytewise comparison is the fastest.
-- All unique keys begin with tenant_id, so that the table can be partitioned
-- by it.
CREATE TABLE projector.events (
    log_seq         bigint GENERATED ALWAYS AS IDENTITY (CACHE 1),
    tenant_id       text COLLATE "C" NOT NULL,
    aggregate_id    text COLLATE "C" NOT NULL,
    sequence_number bigint NOT NULL,
    event_id        uuid NOT NULL DEFAULT gen_random_uuid(),
    event_type      text COLLATE "C" NOT NULL,
    payload         jsonb NOT NULL,
    metadata        jsonb NOT NULL DEFAULT '{}',
    payload_hash    bytea NOT NULL,
    recorded_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant_id, aggregate_id, sequence_number),
    UNIQUE (tenant_id, log_seq),
    UNIQUE (tenant_id, event_id)
);
COMMENT ON TABLE projector.events IS 'the append-only event log';
COMMENT ON COLUMN projector.events.log_seq IS
    'position in the log; rises within an aggregate, may have gaps';
COMMENT ON COLUMN projector.events.sequence_number IS
    'position in the aggregate: 1, 2, 3, ... without gaps';
COMMENT ON COLUMN projector.events.payload_hash IS
    'sha256(convert_to(payload::text, ''UTF8''))';

-- Before a statement draws log positions: records which ones readers have
-- passed.
CREATE FUNCTION projector.events_before_statement() RETURNS trigger
LANGUAGE C AS 'MODULE_PATHNAME', 'projector_events_before_statement';

-- Checks the columns of one new event, and sets or checks its payload hash.
CREATE FUNCTION projector.events_before_insert() RETURNS trigger
LANGUAGE C AS 'MODULE_PATHNAME', 'projector_events_before_insert';

-- Checks the order of a statement's new events within their aggregates, and
-- passes them to the projections that subscribe to them.
CREATE FUNCTION projector.events_capture() RETURNS trigger
LANGUAGE C AS 'MODULE_PATHNAME', 'projector_events_capture';

-- Refuses to change or delete events.
CREATE FUNCTION projector.events_append_only() RETURNS trigger
LANGUAGE C AS 'MODULE_PATHNAME', 'projector_events_append_only';

CREATE TRIGGER events_before_statement BEFORE INSERT ON projector.events
    FOR EACH STATEMENT EXECUTE FUNCTION projector.events_before_statement();
CREATE TRIGGER events_before_insert BEFORE INSERT ON projector.events
    FOR EACH ROW EXECUTE FUNCTION projector.events_before_insert();
CREATE TRIGGER events_capture AFTER INSERT ON projector.events
    REFERENCING NEW TABLE AS new_events
    FOR EACH STATEMENT EXECUTE FUNCTION projector.events_capture();
CREATE TRIGGER events_append_only BEFORE UPDATE OR DELETE OR TRUNCATE
    ON projector.events
    FOR EACH STATEMENT EXECUTE FUNCTION projector.events_append_only();

-- Appends one event to an aggregate and returns its sequence number.
-- Projections see the event only if the calling transaction commits.
-- Tables: events (insert), and those that events_capture writes.
CREATE FUNCTION projector_append(
    tenant_id text, aggregate_id text, event_type text, payload jsonb,
    expected_version bigint DEFAULT NULL, metadata jsonb DEFAULT '{}',
    event_id uuid DEFAULT NULL)
RETURNS bigint
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_append';
COMMENT ON FUNCTION projector_append IS 'append one event to an aggregate';

-- Appends an array of events to one aggregate, all or none, and returns the
-- sequence number of the last.
-- Tables: as projector_append.
CREATE FUNCTION projector_append_batch(
    tenant_id text, aggregate_id text, events jsonb,
    expected_version bigint DEFAULT NULL)
RETURNS bigint
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_append_batch';
COMMENT ON FUNCTION projector_append_batch IS
    'append several events to an aggregate, all or none';

-- Gaps in the log: events that were appended but no longer exist.  There are
-- none, unless events were deleted while the triggers were disabled.  Reads
-- the whole log.
CREATE VIEW projector.missing_events AS
SELECT tenant_id, aggregate_id, before + 1 AS first_sequence_number,
       sequence_number - 1 AS last_sequence_number
FROM (SELECT e.tenant_id, e.aggregate_id, e.sequence_number,
             coalesce(lag(e.sequence_number) OVER (
                 PARTITION BY e.tenant_id, e.aggregate_id
                 ORDER BY e.sequence_number), 0) AS before
      FROM projector.events e) s
WHERE sequence_number > before + 1;
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
-- The same rows with the projection's name.

-- Does an item wait for a failed or dead one: of its aggregate, or in log order
-- of its tenant?  Returns false to users who may not read view outbox.  It is a
-- function, and cheap to the planner, because a subquery for each row would make
-- it use JIT compilation.
CREATE FUNCTION projector.item_waits(
    projection_id integer, tenant_id text, aggregate_id text,
    sequence_number bigint, log_seq bigint, in_log_order boolean)
RETURNS boolean
LANGUAGE C STABLE STRICT PARALLEL SAFE COST 1
AS 'MODULE_PATHNAME', 'projector_item_waits';

-- "held" is computed here, because a row may wait for a failed one (of its
-- aggregate or, in log order, of its tenant) without being marked yet.  So is
-- "processing": a row is being applied if its xmax is a transaction that is
-- still running, and so holds the lock on its own transaction id.
CREATE VIEW projector.outbox AS
SELECT p.name AS projection_name, o.tenant_id, o.aggregate_id,
       o.sequence_number, o.log_seq, o.event_type,
       CASE WHEN o.xmax IN (
                SELECT l.transactionid FROM pg_catalog.pg_locks l
                WHERE l.locktype = 'transactionid' AND l.granted
                  AND l.mode = 'ExclusiveLock'
                  AND l.pid IS DISTINCT FROM pg_catalog.pg_backend_pid())
            THEN 'processing'
            WHEN o.status <> 'pending' THEN o.status
            WHEN o.held AND o.shadow IS NULL THEN 'held'
            WHEN projector.item_waits(o.projection_id, o.tenant_id, o.aggregate_id,
                     o.sequence_number, o.log_seq, p.ordering = 'log')
            THEN 'held'
            ELSE 'pending' END AS status,
       o.attempt_count, o.next_attempt_at, o.last_error, o.updated_at,
       CASE WHEN coalesce(c.mode, p.mode) = 'shadow' AND o.status = 'pending'
            THEN coalesce(o.shadow, 'untested') END AS shadow
FROM projector.apply_outbox o
JOIN projector.projections p USING (projection_id)
LEFT JOIN projector.projection_cursors c USING (projection_id, tenant_id);

CREATE VIEW projector.offsets AS
SELECT p.name AS projection_name, o.tenant_id, o.aggregate_id,
       o.last_sequence_number, o.last_event_id, o.error_count, o.last_error,
       o.updated_at
FROM projector.projection_offsets o
JOIN projector.projections p USING (projection_id);

CREATE VIEW projector.failures AS
SELECT p.name AS projection_name, f.*
FROM projector.projection_failures f
JOIN projector.projections p USING (projection_id);

-- What a run has done includes what its slices have done.
CREATE VIEW projector.runs AS
SELECT p.name AS projection_name, r.id, r.tenant_id, r.mode, r.state,
       r.since_log_seq, r.until_log_seq, r.total_events,
       r.processed_events + coalesce(s.processed_events, 0) AS processed_events,
       greatest(r.last_log_seq, s.last_log_seq) AS last_log_seq, r.error_code, r.error_message, r.error_context,
       r.requested_by, r.queued_at, r.started_at, r.finished_at
FROM projector.projection_runs r
JOIN projector.projections p USING (projection_id)
LEFT JOIN LATERAL (
    SELECT sum(x.processed_events)::bigint AS processed_events,
           max(x.last_log_seq) AS last_log_seq
    FROM projector.projection_run_slices x
    WHERE x.run_id = r.id AND r.slice_count > 0 AND r.state = 'running') s ON true;

-- The active runs.  The total is an estimate: a run that has exceeded it is
-- shown as almost done.
CREATE VIEW projector.progress AS
SELECT a.run_id, a.projection_name, a.tenant_id, a.mode, a.state,
       round(100.0 * a.processed_events / nullif(a.total_events, 0), 1) AS percent,
       round(a.rate)::bigint AS per_second,
       CASE WHEN a.rate > 0
            THEN pg_catalog.make_interval(secs => pg_catalog.round(
                (a.total_events - a.processed_events) / a.rate)::float8) END AS time_left
FROM (SELECT r.id AS run_id, r.projection_name, r.tenant_id, r.mode,
             r.state, r.processed_events,
             CASE WHEN r.total_events IS NOT NULL
                  THEN greatest(r.total_events, r.processed_events)
             END AS total_events,
             r.processed_events / nullif(extract(epoch FROM
                 clock_timestamp() - r.started_at), 0)::float8 AS rate
      FROM projector.runs r
      WHERE r.state IN ('queued', 'running')) a
ORDER BY a.state DESC, a.run_id;
-- What the workers of this database are doing, and since when: "idle",
-- "looking" (for work), "applying" (a batch of a projection and tenant), "run"
-- (a batch of a run) or "chores".  Returns rows only to users who may read a
-- status view.
-- Tables: none; it reads shared memory.
CREATE FUNCTION projector.worker_activity(
    OUT slot integer, OUT pid integer, OUT projection_id integer,
    OUT tenant_id text, OUT activity text, OUT since timestamptz)
RETURNS SETOF record
LANGUAGE C VOLATILE PARALLEL RESTRICTED ROWS 1
AS 'MODULE_PATHNAME', 'projector_worker_activity';
COMMENT ON FUNCTION projector.worker_activity IS
    'what each worker of this database does now';

-- Since when this database has waited for a worker because no worker process
-- is free; NULL if it does not wait.
-- Tables: none.
CREATE FUNCTION projector.worker_waits_since() RETURNS timestamptz
LANGUAGE C VOLATILE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'projector_worker_waits_since';
-- The views for operators.  A user who may read these views needs no other
-- privilege: everyone may execute the functions below, which the views call.

-- Does a projection live in this database?  If not, the database is a copy.
CREATE FUNCTION projector.is_home(home text) RETURNS boolean
LANGUAGE C STABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'projector_is_home';

-- The following functions return something only to users who may read one of the
-- views.

-- The hash of a projection's current definition, including its functions; null
-- if a function is missing.
CREATE FUNCTION projector.definition_now(projection_id integer) RETURNS bytea
LANGUAGE C STABLE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_definition_now';

-- Why a projection cannot run now: something that it needs is missing, or its
-- registry row cannot be read.  Null if it can run.
CREATE FUNCTION projector.problem(projection_id integer) RETURNS text
LANGUAGE C STABLE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_problem';

-- Why no worker runs in this database, and the command to change that; no row
-- if one runs.
CREATE FUNCTION projector.no_worker(OUT reason text, OUT remedy text)
RETURNS SETOF record
LANGUAGE C VOLATILE PARALLEL UNSAFE ROWS 1
AS 'MODULE_PATHNAME', 'projector_no_worker';

-- The open transactions that have appended events, oldest first.  The end of
-- the log is not settled until they end.
CREATE FUNCTION projector.appenders(
    OUT pid integer, OUT gid text, OUT role text, OUT state text,
    OUT since timestamptz)
RETURNS SETOF record
LANGUAGE C VOLATILE PARALLEL UNSAFE ROWS 1
AS 'MODULE_PATHNAME', 'projector_appenders';

-- The status of every projection for every tenant of the log, and for every
-- tenant that it has a cursor for.  A projection without tenants has one row,
-- whose tenant_id is null.  The views below read this table.  It is a foreign
-- table whose rows are computed when it is read, because the planner passes
-- conditions on projection_name and tenant_id to a foreign table: the status of
-- one tenant costs the same however many there are.  Counts stop at 10,000.
CREATE FUNCTION projector.pairs_handler() RETURNS fdw_handler
LANGUAGE C AS 'MODULE_PATHNAME', 'projector_pairs_handler';
CREATE FOREIGN DATA WRAPPER projector_pairs HANDLER projector.pairs_handler;
CREATE SERVER projector_pairs FOREIGN DATA WRAPPER projector_pairs;
CREATE FOREIGN TABLE projector.pairs (
    projection_name   text COLLATE "C" NOT NULL,
    tenant_id         text COLLATE "C",
    kind              text,
    projection_mode   text,
    mode              text,
    state             text,
    rank              integer,     -- of the state: 0 is the worst
    why               text,
    worst             boolean,     -- no tenant before it is in such a bad state
    worst_why         text,        -- if so, why
    cursor_state      text,
    last_log_seq      bigint,
    lag_events        bigint,
    lag_share         bigint,      -- lag_events, until the projection has 10,000
    lag_time          interval,
    oldest_log_seq    bigint,
    pending           bigint,
    held              bigint,
    failed            bigint,
    dead              bigint,
    error_count       bigint,
    last_error        text,
    last_failed_at    timestamptz,
    paused_by         text,
    paused_at         timestamptz,
    run_id            bigint,
    worker_pid        integer,
    stale             boolean,
    applied_count     bigint,
    failed_count      bigint,
    dead_count        bigint,
    batch_count       bigint,
    apply_time        interval,
    last_applied_at   timestamptz,
    digest            text,
    row_count         bigint,
    late              boolean,     -- lag_time is over projector.lag_warning
    awaits_log        boolean,     -- it cannot read past an open transaction
    dead_since        timestamptz,
    dead_why          text,        -- the first dead event
    failing_aggregate text,        -- the first failed event
    failing_sequence  bigint,
    failing_since     timestamptz,
    failing_why       text,
    locker_pid        integer,     -- the session that the state is due to
    locker_since      timestamptz
) SERVER projector_pairs;
COMMENT ON FOREIGN TABLE projector.pairs IS
    'the status of each projection and tenant, read by the views';

-- One row per projection and tenant.
CREATE VIEW projector.status_by_tenant AS
SELECT s.projection_name, s.tenant_id, s.state, s.why, s.kind, s.mode,
       s.cursor_state, s.last_log_seq, s.lag_events, s.lag_time,
       s.oldest_log_seq, s.pending, s.held, s.failed, s.dead,
       s.error_count, s.last_error, s.last_failed_at,
       s.paused_by, s.paused_at, s.run_id, s.worker_pid, s.stale,
       s.applied_count, s.failed_count, s.dead_count, s.batch_count,
       s.apply_time, s.last_applied_at, s.digest, s.row_count
FROM projector.pairs s
WHERE s.tenant_id IS NOT NULL
ORDER BY s.projection_name, s.tenant_id;

-- One row per projection, with the state of its worst tenant.
CREATE VIEW projector.status AS
SELECT s.projection_name, s.mode, s.state, s.tenants_not_ok, s.lag_events,
       s.lag_time, s.dead,
       CASE WHEN length(s.why) > 23 THEN left(s.why, 20) || '...'
            ELSE s.why END AS why
FROM (SELECT p.projection_name, min(p.projection_mode) AS mode,
             (array_agg(p.state ORDER BY p.rank) FILTER (WHERE p.worst))[1] AS state,
             count(*) FILTER (WHERE p.state <> 'ok' AND p.tenant_id IS NOT NULL) AS tenants_not_ok,
             least(10000, sum(p.lag_share))::bigint AS lag_events,
             max(p.lag_time) AS lag_time,
             least(10000, sum(p.dead))::bigint AS dead,
             (array_agg(p.worst_why ORDER BY p.rank) FILTER (WHERE p.worst))[1] AS why
      FROM projector.pairs p
      GROUP BY p.projection_name) s
ORDER BY s.projection_name;

-- All problems that an operator should act on, worst first, with the command
-- that helps.
CREATE VIEW projector.problems AS
WITH p AS MATERIALIZED (
    SELECT q.projection_id, q.name, q.owner_oid, q.mode, q.paused, q.paused_by, q.paused_at,
           q.pause_reason, NOT projector.is_home(q.home) AS dormant,
           projector.problem(q.projection_id) AS problem
    FROM projector.projections q),
s AS MATERIALIZED (
    SELECT x.projection_name, x.tenant_id, x.state, x.why, x.mode, x.lag_events,
           x.lag_time, x.pending, x.held, x.failed, x.dead, x.run_id, x.stale, x.late,
           x.awaits_log, x.dead_since, x.dead_why, x.failing_aggregate, x.failing_sequence,
           x.failing_since, x.failing_why, x.locker_pid, x.locker_since
    FROM projector.pairs x
    WHERE x.tenant_id IS NOT NULL AND (x.state <> 'ok' OR x.stale)),
-- of each tenant the last run
run AS (
    SELECT r.projection_id, r.tenant_id, max(r.id) AS id
    FROM projector.projection_runs r
    GROUP BY r.projection_id, r.tenant_id
    HAVING max(r.id) = max(r.id) FILTER (WHERE r.state = 'failed')),
found AS (
    SELECT 1 AS rank, 'critical' AS level, 'cannot_run' AS problem, p.name AS projection_name,
           NULL AS tenant_id, NULL::timestamptz AS since, NULL::bigint AS events,
           p.problem AS detail,
           CASE WHEN EXISTS (SELECT FROM pg_catalog.pg_roles o WHERE o.oid = p.owner_oid)
                THEN format('SELECT projector_alter(%L, ''{}'')  -- once what is missing is back', p.name)
                ELSE format('SELECT projector_alter(%L, jsonb_build_object(''owner'', current_user))', p.name) END AS remedy
    FROM p WHERE p.mode <> 'off' AND p.problem IS NOT NULL
    UNION ALL
    SELECT 2, 'critical', 'dead', s.projection_name, s.tenant_id, s.dead_since, s.dead + s.held,
           coalesce(s.dead_why, s.why),
           format('SELECT * FROM projector_requeue(%L, %L)  -- once the cause is repaired', s.projection_name, s.tenant_id)
    FROM s WHERE s.dead > 0
    UNION ALL
    SELECT 3, 'critical', 'run_failed', p.name, r.tenant_id, r.finished_at, NULL,
           format('run %s, %s: %s', r.id, r.mode, r.error_message),
           format('SELECT projector_start_run(%L, %L, %L)', p.name, r.tenant_id, r.mode)
    FROM run
    JOIN projector.projection_runs r ON r.id = run.id
    JOIN p ON p.projection_id = r.projection_id
    UNION ALL
    SELECT 4, 'critical', 'no_worker', NULL, NULL,
           least(pg_catalog.now() - w.lag_time, r.since), w.work,
           i.reason || CASE WHEN r.since IS NOT NULL THEN ', and a run waits' ELSE '' END, i.remedy
    FROM projector.no_worker() i
    CROSS JOIN (SELECT min(q.queued_at) AS since FROM projector.projection_runs q
                WHERE q.state IN ('queued', 'running')) r
    CROSS JOIN (SELECT least(10000, coalesce(sum(s.lag_events), 0)) AS work, max(s.lag_time) AS lag_time
                FROM s WHERE s.lag_events > 0
                  AND (s.state IN ('no_worker', 'failing', 'starting')
                       OR s.state = 'blocked' AND s.pending > 0)) w
    WHERE i.reason IS NOT NULL AND (w.work > 0 OR r.since IS NOT NULL)
    UNION ALL
    SELECT 5, 'warning', 'failing', s.projection_name, s.tenant_id, s.failing_since,
           s.failed + CASE WHEN s.dead = 0 THEN s.held ELSE 0 END, s.failing_why,
           format('SELECT projector_retry(%L, %L, %L, %s)', s.projection_name, s.tenant_id,
                  s.failing_aggregate, s.failing_sequence)
    FROM s WHERE s.failed > 0 AND s.mode NOT IN ('off', 'shadow')
    UNION ALL
    SELECT 6, 'warning', 'open_transaction', NULL, NULL, a.since, w.work,
           format('%s has an open transaction that appends events; projections that wait for its end: %s',
                  CASE WHEN a.pid IS NULL THEN format('prepared transaction %L', a.gid)
                       ELSE format('process %s (%s, %s)', a.pid, a.role, a.state) END, w.waiting),
           CASE WHEN a.pid IS NULL THEN format('ROLLBACK PREPARED %L  -- or COMMIT PREPARED', a.gid)
                ELSE format('SELECT pg_terminate_backend(%s)', a.pid) END
    FROM projector.appenders() a
    CROSS JOIN (SELECT least(10000, coalesce(sum(s.lag_events), 0)) AS work, count(DISTINCT s.projection_name) AS waiting
                FROM s WHERE s.lag_events > 0 AND s.state IN ('starting', 'waiting') AND s.awaits_log) w
    WHERE w.work > 0
    UNION ALL
    SELECT 7, 'warning', 'locked', s.projection_name, s.tenant_id, s.locker_since, s.lag_events, s.why,
           format('SELECT pg_terminate_backend(%s)', s.locker_pid)
    FROM s WHERE s.locker_pid IS NOT NULL AND s.lag_events > 0 AND s.late
    UNION ALL
    SELECT 8, 'warning', 'dormant', p.name, NULL, NULL, NULL,
           'this database is a copy: its projections do nothing', 'SELECT projector_adopt()'
    FROM p WHERE p.dormant
    UNION ALL
    SELECT 9, 'warning', 'paused', p.name, NULL, p.paused_at, NULL,
           format('by %s%s', p.paused_by, ': ' || p.pause_reason),
           format('SELECT projector_resume(%L)', p.name)
    FROM p WHERE p.paused
    UNION ALL
    SELECT 9, 'warning', 'paused', p.name, c.tenant_id, c.paused_at, NULL,
           format('by %s%s', c.paused_by, ': ' || c.pause_reason),
           format('SELECT projector_resume(%L, %L)', p.name, c.tenant_id)
    FROM projector.projection_cursors c JOIN p USING (projection_id)
    WHERE c.paused_by IS NOT NULL
    UNION ALL
    SELECT 10, 'warning', 'lagging', s.projection_name, s.tenant_id,
           pg_catalog.now() - s.lag_time, s.lag_events, s.why,
           format('SELECT projector_drain(%L, %L)', s.projection_name, s.tenant_id)
    FROM s WHERE s.state = 'lagging'
    UNION ALL
    SELECT 11, 'warning', 'stale', s.projection_name, NULL, NULL, NULL,
           format('built with an earlier definition: %s', CASE count(*)
                  WHEN 1 THEN 'one tenant' ELSE count(*) || ' tenants' END),
           format('SELECT projector_start_run(%L)', s.projection_name)
    FROM s WHERE s.stale AND s.state NOT IN ('dormant', 'rebuilding')
      AND s.mode <> 'shadow' AND s.run_id IS NULL
    GROUP BY s.projection_name)
SELECT f.level, f.problem, f.projection_name, f.tenant_id, f.since, f.events::bigint AS events,
       f.detail, f.remedy
FROM found f
ORDER BY f.rank, f.since, f.projection_name, f.tenant_id;

-- For monitoring: the worst problem in two words.
CREATE FUNCTION projector_health(OUT level text, OUT reason text)
LANGUAGE sql STABLE PARALLEL RESTRICTED SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT coalesce(f.level, 'ok'), coalesce(f.reason, '')
    FROM (SELECT) one
    LEFT JOIN (
        SELECT p.level, regexp_replace(
                   concat_ws(' ', p.problem || ':', p.projection_name,
                             'tenant ' || p.tenant_id || ':', p.detail),
                   '\s+', ' ', 'g') AS reason
        FROM projector.problems p LIMIT 1) f ON true
$$;
COMMENT ON FUNCTION projector_health IS
    'the worst problem: its level (ok, warning, critical) and what it is';
-- Descriptions of the views and their columns.  A test compares them with the
-- reference manual.

COMMENT ON VIEW projector.status IS
    'how each projection is: one row each';
COMMENT ON COLUMN projector.status.projection_name IS
    'the projection';
COMMENT ON COLUMN projector.status.mode IS
    'how it is applied, unless a tenant has a mode of its own';
COMMENT ON COLUMN projector.status.state IS
    'the state of the tenant that is worst off: dormant, off, paused, blocked, failing, rebuilding, starting, no_worker, waiting, lagging, shadow or ok';
COMMENT ON COLUMN projector.status.tenants_not_ok IS
    'how many tenants are in another state than ok';
COMMENT ON COLUMN projector.status.lag_events IS
    'how many events are unapplied; 10000 means that many or more';
COMMENT ON COLUMN projector.status.lag_time IS
    'how long ago the oldest unapplied event was recorded';
COMMENT ON COLUMN projector.status.dead IS
    'how many events are dead: tried max_attempts times and given up; at most 10000';
COMMENT ON COLUMN projector.status.why IS
    'the reason for the state, shortened; the whole is in status_by_tenant';

COMMENT ON VIEW projector.status_by_tenant IS
    'how each projection is for each tenant';
COMMENT ON COLUMN projector.status_by_tenant.projection_name IS
    'the projection';
COMMENT ON COLUMN projector.status_by_tenant.tenant_id IS
    'the tenant';
COMMENT ON COLUMN projector.status_by_tenant.state IS
    'the first that holds of dormant, off, paused, blocked, failing, rebuilding, starting, no_worker, waiting, lagging, shadow and ok';
COMMENT ON COLUMN projector.status_by_tenant.why IS
    'the reason for the state; null if it is ok';
COMMENT ON COLUMN projector.status_by_tenant.kind IS
    'handler, fold, fold_columns or statement';
COMMENT ON COLUMN projector.status_by_tenant.mode IS
    'how it is applied for this tenant';
COMMENT ON COLUMN projector.status_by_tenant.cursor_state IS
    'live, or replaying, switching (the log is being read) or stopped (at a dead event, in log order)';
COMMENT ON COLUMN projector.status_by_tenant.last_log_seq IS
    'the cursor: every event up to this position is applied, skipped, not wanted or queued';
COMMENT ON COLUMN projector.status_by_tenant.lag_events IS
    'how many events are unapplied; 10000 means that many or more';
COMMENT ON COLUMN projector.status_by_tenant.lag_time IS
    'how long ago the oldest unapplied event was recorded';
COMMENT ON COLUMN projector.status_by_tenant.oldest_log_seq IS
    'the position of that event';
COMMENT ON COLUMN projector.status_by_tenant.pending IS
    'queued events that wait for a worker';
COMMENT ON COLUMN projector.status_by_tenant.held IS
    'queued events that wait for a failed or dead event of their aggregate';
COMMENT ON COLUMN projector.status_by_tenant.failed IS
    'queued events that failed and will be tried again';
COMMENT ON COLUMN projector.status_by_tenant.dead IS
    'queued events that were given up';
COMMENT ON COLUMN projector.status_by_tenant.error_count IS
    'how often events failed that are not applied yet';
COMMENT ON COLUMN projector.status_by_tenant.last_error IS
    'the message of the latest of these errors';
COMMENT ON COLUMN projector.status_by_tenant.last_failed_at IS
    'when it happened';
COMMENT ON COLUMN projector.status_by_tenant.paused_by IS
    'who paused it';
COMMENT ON COLUMN projector.status_by_tenant.paused_at IS
    'when it was paused';
COMMENT ON COLUMN projector.status_by_tenant.run_id IS
    'the active run of this tenant';
COMMENT ON COLUMN projector.status_by_tenant.worker_pid IS
    'the worker that applies events of this tenant now';
COMMENT ON COLUMN projector.status_by_tenant.stale IS
    'the definition has changed since the read model was built: rebuild it';
COMMENT ON COLUMN projector.status_by_tenant.applied_count IS
    'how many events have been applied, replays included';
COMMENT ON COLUMN projector.status_by_tenant.failed_count IS
    'how many attempts failed';
COMMENT ON COLUMN projector.status_by_tenant.dead_count IS
    'how many events have become dead';
COMMENT ON COLUMN projector.status_by_tenant.batch_count IS
    'how many batches applied something';
COMMENT ON COLUMN projector.status_by_tenant.apply_time IS
    'how long these batches took';
COMMENT ON COLUMN projector.status_by_tenant.last_applied_at IS
    'when the latest of them was applied';
COMMENT ON COLUMN projector.status_by_tenant.digest IS
    'the kept digest of the read model; folds have one';
COMMENT ON COLUMN projector.status_by_tenant.row_count IS
    'how many rows it covers';

COMMENT ON VIEW projector.problems IS
    'everything that needs somebody, the worst first';
COMMENT ON COLUMN projector.problems.level IS
    'critical or warning';
COMMENT ON COLUMN projector.problems.problem IS
    'cannot_run, dead, run_failed, no_worker, failing, open_transaction, locked, dormant, paused, lagging or stale';
COMMENT ON COLUMN projector.problems.projection_name IS
    'the projection; null if all are concerned';
COMMENT ON COLUMN projector.problems.tenant_id IS
    'the tenant; null if all are concerned';
COMMENT ON COLUMN projector.problems.since IS
    'since when, if that is known';
COMMENT ON COLUMN projector.problems.events IS
    'how many events wait because of it; at most 10000';
COMMENT ON COLUMN projector.problems.detail IS
    'what has happened';
COMMENT ON COLUMN projector.problems.remedy IS
    'the command that helps';

COMMENT ON VIEW projector.progress IS
    'how far the active runs are';
COMMENT ON COLUMN projector.progress.run_id IS
    'the run: its row is in projector.runs';
COMMENT ON COLUMN projector.progress.projection_name IS
    'the projection';
COMMENT ON COLUMN projector.progress.tenant_id IS
    'the tenant';
COMMENT ON COLUMN projector.progress.mode IS
    'rebuild or catch_up';
COMMENT ON COLUMN projector.progress.state IS
    'queued or running';
COMMENT ON COLUMN projector.progress.percent IS
    'how much is done, of an estimate';
COMMENT ON COLUMN projector.progress.per_second IS
    'events per second since it began';
COMMENT ON COLUMN projector.progress.time_left IS
    'how long the rest takes at that rate';

COMMENT ON VIEW projector.outbox IS
    'the work list: events that are to be applied';
COMMENT ON COLUMN projector.outbox.projection_name IS
    'the projection';
COMMENT ON COLUMN projector.outbox.tenant_id IS
    'the tenant';
COMMENT ON COLUMN projector.outbox.aggregate_id IS
    'the aggregate';
COMMENT ON COLUMN projector.outbox.sequence_number IS
    'the event''s number in its aggregate';
COMMENT ON COLUMN projector.outbox.log_seq IS
    'its position in the log';
COMMENT ON COLUMN projector.outbox.event_type IS
    'its type';
COMMENT ON COLUMN projector.outbox.status IS
    'pending, processing (a worker applies it now), held (it waits for a failed or dead event), failed or dead';
COMMENT ON COLUMN projector.outbox.attempt_count IS
    'how often it was tried';
COMMENT ON COLUMN projector.outbox.next_attempt_at IS
    'when it is tried next';
COMMENT ON COLUMN projector.outbox.last_error IS
    'the message of its latest error';
COMMENT ON COLUMN projector.outbox.updated_at IS
    'when its status changed';
COMMENT ON COLUMN projector.outbox.shadow IS
    'in mode shadow: passed, failed or untested';

COMMENT ON VIEW projector.offsets IS
    'the last event applied, by projection and aggregate';
COMMENT ON COLUMN projector.offsets.projection_name IS
    'the projection';
COMMENT ON COLUMN projector.offsets.tenant_id IS
    'the tenant';
COMMENT ON COLUMN projector.offsets.aggregate_id IS
    'the aggregate';
COMMENT ON COLUMN projector.offsets.last_sequence_number IS
    'the number of the last event applied';
COMMENT ON COLUMN projector.offsets.last_event_id IS
    'that event';
COMMENT ON COLUMN projector.offsets.error_count IS
    'errors in a row since then';
COMMENT ON COLUMN projector.offsets.last_error IS
    'the latest of them';
COMMENT ON COLUMN projector.offsets.updated_at IS
    'when the offset changed';

COMMENT ON VIEW projector.failures IS
    'the events that failed, with their errors';
COMMENT ON COLUMN projector.failures.projection_name IS
    'the projection';
COMMENT ON COLUMN projector.failures.id IS
    'the failure, for projector_note';
COMMENT ON COLUMN projector.failures.projection_id IS
    'the projection''s number';
COMMENT ON COLUMN projector.failures.tenant_id IS
    'the tenant';
COMMENT ON COLUMN projector.failures.aggregate_id IS
    'the aggregate';
COMMENT ON COLUMN projector.failures.sequence_number IS
    'the event''s number in its aggregate';
COMMENT ON COLUMN projector.failures.log_seq IS
    'its position in the log';
COMMENT ON COLUMN projector.failures.event_id IS
    'its id';
COMMENT ON COLUMN projector.failures.event_type IS
    'its type';
COMMENT ON COLUMN projector.failures.error_code IS
    'the SQLSTATE';
COMMENT ON COLUMN projector.failures.error_message IS
    'the error''s message';
COMMENT ON COLUMN projector.failures.error_detail IS
    'its detail';
COMMENT ON COLUMN projector.failures.error_hint IS
    'its hint';
COMMENT ON COLUMN projector.failures.error_context IS
    'where it was raised';
COMMENT ON COLUMN projector.failures.retry_count IS
    'how often it failed again';
COMMENT ON COLUMN projector.failures.recoverable IS
    'it may go away by itself: four times as many attempts are made';
COMMENT ON COLUMN projector.failures.metadata IS
    'remarks of operators, and why it was skipped';
COMMENT ON COLUMN projector.failures.first_failed_at IS
    'when it failed first';
COMMENT ON COLUMN projector.failures.last_failed_at IS
    'when it failed last';
COMMENT ON COLUMN projector.failures.resolved_at IS
    'when that was resolved; null while it is open';
COMMENT ON COLUMN projector.failures.resolution IS
    'applied, skipped or rebuilt';

COMMENT ON VIEW projector.runs IS
    'rebuilds and catch-ups in the background';
COMMENT ON COLUMN projector.runs.projection_name IS
    'the projection';
COMMENT ON COLUMN projector.runs.id IS
    'the run, for projector_cancel_run';
COMMENT ON COLUMN projector.runs.tenant_id IS
    'the tenant';
COMMENT ON COLUMN projector.runs.mode IS
    'rebuild or catch_up';
COMMENT ON COLUMN projector.runs.state IS
    'queued, running, completed, failed or cancelled';
COMMENT ON COLUMN projector.runs.since_log_seq IS
    'the position it began behind';
COMMENT ON COLUMN projector.runs.until_log_seq IS
    'the last position it reads';
COMMENT ON COLUMN projector.runs.total_events IS
    'how many events it has to read: an estimate until it has completed';
COMMENT ON COLUMN projector.runs.processed_events IS
    'how many it has read';
COMMENT ON COLUMN projector.runs.last_log_seq IS
    'the position of the last of them';
COMMENT ON COLUMN projector.runs.error_code IS
    'the SQLSTATE it failed with';
COMMENT ON COLUMN projector.runs.error_message IS
    'the message it failed with';
COMMENT ON COLUMN projector.runs.error_context IS
    'where that was raised';
COMMENT ON COLUMN projector.runs.requested_by IS
    'who asked for it';
COMMENT ON COLUMN projector.runs.queued_at IS
    'when it was asked for';
COMMENT ON COLUMN projector.runs.started_at IS
    'when it began';
COMMENT ON COLUMN projector.runs.finished_at IS
    'when it ended';

COMMENT ON VIEW projector.missing_events IS
    'gaps in the log: events that were removed from it';
COMMENT ON COLUMN projector.missing_events.tenant_id IS
    'the tenant';
COMMENT ON COLUMN projector.missing_events.aggregate_id IS
    'the aggregate';
COMMENT ON COLUMN projector.missing_events.first_sequence_number IS
    'the first event that is missing';
COMMENT ON COLUMN projector.missing_events.last_sequence_number IS
    'the last one before the next that is there';
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
-- Applies queued events in the calling session, in order, and returns how
-- many.  Tables: projection_offsets, projection_cursors, apply_outbox,
-- projection_failures, and what the projections write.
CREATE FUNCTION projector_drain(
    name text DEFAULT NULL, tenant_id text DEFAULT NULL,
    max_events bigint DEFAULT NULL)
RETURNS bigint
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_drain';
COMMENT ON FUNCTION projector_drain IS 'apply queued events in this session';

-- Applies one queued event now, regardless of its next attempt time, and
-- returns the result: applied, failed, held (it waits for an earlier event) or
-- none (not queued).
-- Tables: as projector_drain.
CREATE FUNCTION projector_retry(
    name text, tenant_id text, aggregate_id text, sequence_number bigint)
RETURNS text
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_retry';
COMMENT ON FUNCTION projector_retry IS 'apply one queued event now';

-- Sets checkpoints back to 0 without changing the read model; the log is read
-- again.  Returns the number of offsets.
-- Tables: projections, projection_offsets, projection_cursors (update),
-- apply_outbox (delete, insert).
CREATE FUNCTION projector_reset(
    name text, tenant_id text DEFAULT NULL, aggregate_id text DEFAULT NULL,
    force boolean DEFAULT false)
RETURNS bigint
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_reset';
COMMENT ON FUNCTION projector_reset IS
    'set checkpoints back to 0 and read the log again';

-- Clears a read model and rebuilds it from the log, in the calling
-- transaction: for one aggregate, one tenant, or all.  If name is null, all
-- projections are rebuilt, each after those it depends on.  Returns how many
-- events were applied.
-- Tables: as projector_drain.
CREATE FUNCTION projector_rebuild(
    name text, tenant_id text DEFAULT NULL, aggregate_id text DEFAULT NULL)
RETURNS bigint
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_rebuild';
COMMENT ON FUNCTION projector_rebuild IS 'build a read model from the log again';

-- Applies queued events and those in the log after the cursor, up to a
-- position or to the settled end of the log, whatever the mode.  Returns how
-- many events.
-- Tables: as projector_drain.
CREATE FUNCTION projector_catch_up(
    name text, tenant_id text DEFAULT NULL, until_log_seq bigint DEFAULT NULL)
RETURNS bigint
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_catch_up';
COMMENT ON FUNCTION projector_catch_up IS
    'apply all that a projection has not applied yet';

-- Queues rebuilds or catch-ups for workers, one for each tenant, and returns
-- their ids.  If name is null, it does so for all projections, each after
-- those it depends on.
-- Tables: projection_runs (insert), projections.
CREATE FUNCTION projector_start_run(
    name text, tenant_id text DEFAULT NULL, mode text DEFAULT 'rebuild',
    until_log_seq bigint DEFAULT NULL)
RETURNS SETOF bigint
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_start_run';
COMMENT ON FUNCTION projector_start_run IS
    'rebuild or catch up in the background';

-- Ends a run after its current batch; what it has committed is kept.  Returns
-- false if it had already ended.
-- Tables: projection_runs, projection_cursors (update).
CREATE FUNCTION projector_cancel_run(run_id bigint) RETURNS boolean
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_cancel_run';
COMMENT ON FUNCTION projector_cancel_run IS 'end a run';

-- Waits until a projection has applied an event and all earlier ones of its
-- aggregate, and returns the result: applied, timeout, blocked (by a dead
-- event) or paused.  Call it as a statement of its own.
-- Tables: none are written.
CREATE FUNCTION projector_wait(
    name text, tenant_id text, aggregate_id text, sequence_number bigint,
    timeout interval DEFAULT '5 s')
RETURNS text
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_wait';
COMMENT ON FUNCTION projector_wait IS 'wait until an event has been applied';

-- The same for all events of a tenant up to a position in the log.
-- Tables: none are written.
CREATE FUNCTION projector_wait_log(
    name text, tenant_id text, log_seq bigint, timeout interval DEFAULT '5 s')
RETURNS text
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_wait_log';
COMMENT ON FUNCTION projector_wait_log IS
    'wait until the log has been applied up to a position';

-- For row-level security policies: the tenant of the event that a projection's
-- code is applying; null in all other code.  Unlike a setting, a session
-- cannot choose it.
-- Tables: none.
CREATE FUNCTION projector_tenant_id() RETURNS text
LANGUAGE C STABLE PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'projector_tenant_id';
COMMENT ON FUNCTION projector_tenant_id IS
    'the tenant whose event is being applied; null outside of a projection''s code';

-- For handlers: was the event read from the log again, by a reset or for a new
-- projection, and not just appended?  Then a handler should leave out effects
-- outside its read model.
-- Tables: none.
CREATE FUNCTION projector_is_replay() RETURNS boolean
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_is_replay';
COMMENT ON FUNCTION projector_is_replay IS
    'for handlers: is the event being replayed?';

-- Makes failed and dead events pending again, oldest first, and returns them.
-- Events that waited for them are released.  Null means all: all projections
-- that the caller may manage, all tenants, aggregates or events.
-- Tables: apply_outbox (update).
CREATE FUNCTION projector_requeue(
    name text DEFAULT NULL, tenant_id text DEFAULT NULL,
    aggregate_id text DEFAULT NULL, sequence_number bigint DEFAULT NULL,
    max_rows integer DEFAULT 100)
RETURNS TABLE (projection_name text, tenant_id text, aggregate_id text,
    sequence_number bigint)
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_requeue';
COMMENT ON FUNCTION projector_requeue IS
    'make failed and dead events pending again';

-- Skips one event permanently, now or when it is reached, and in every replay.
-- Returns false if that was decided already.
-- Tables: projection_failures, apply_outbox, projections.
CREATE FUNCTION projector_skip(
    name text, tenant_id text, aggregate_id text, sequence_number bigint,
    reason text)
RETURNS boolean
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_skip';
COMMENT ON FUNCTION projector_skip IS 'skip one event permanently';

-- Undoes projector_skip.  Returns false if the event was not skipped.
-- Tables: projection_failures, projections.
CREATE FUNCTION projector_unskip(
    name text, tenant_id text, aggregate_id text, sequence_number bigint)
RETURNS boolean
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_unskip';
COMMENT ON FUNCTION projector_unskip IS 'no longer skip one event';

-- Adds an operator's remarks to a failure.  Tables: projection_failures.
CREATE FUNCTION projector_note(failure_id bigint, note jsonb) RETURNS void
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_note';
COMMENT ON FUNCTION projector_note IS 'add remarks to a failure';

-- Starts a worker for this database, unless it already has projector.workers
-- of them, and returns how many it has.
-- Tables: none.
CREATE FUNCTION projector_worker_start() RETURNS integer
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_worker_start';
COMMENT ON FUNCTION projector_worker_start IS
    'start a worker for this database';

-- Stops this database's workers and returns how many there were.  None is
-- started again until projector_worker_start is called or the server restarts.
-- Tables: none.
CREATE FUNCTION projector_worker_stop() RETURNS integer
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_worker_stop';
COMMENT ON FUNCTION projector_worker_stop IS
    'stop this database''s workers';

-- Stops this database's workers before the extension is dropped.
CREATE FUNCTION projector.before_drop_extension() RETURNS event_trigger
LANGUAGE C AS 'MODULE_PATHNAME', 'projector_before_drop_extension';
CREATE EVENT TRIGGER projector_before_drop_extension ON ddl_command_start
    WHEN TAG IN ('DROP EXTENSION', 'DROP SCHEMA', 'DROP OWNED')
    EXECUTE FUNCTION projector.before_drop_extension();
-- Deletes resolved failures (except decisions to skip) and finished runs that
-- are older than a given time, and returns the number of rows.
-- Tables: projection_failures, projection_runs (delete).
CREATE FUNCTION projector_prune(older_than interval DEFAULT '30 days')
RETURNS bigint
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_prune';
COMMENT ON FUNCTION projector_prune IS
    'remove resolved failures and finished runs';
-- Functions that check read models and change nothing in them.

-- The digest of a tenant's read model, computed from its rows.  For folds a
-- digest is also updated with every batch (projector.status_by_tenant), and
-- both must agree.  For other kinds the computed digest is stored.
-- Tables: projection_digests.
CREATE FUNCTION projector_digest(name text, tenant_id text) RETURNS text
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_digest';
COMMENT ON FUNCTION projector_digest IS 'the digest of a tenant''s read model';

-- One digest for all projections of a tenant.
-- Tables: projection_digests.
CREATE FUNCTION projector_digest_all(tenant_id text) RETURNS text
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_digest_all';
COMMENT ON FUNCTION projector_digest_all IS
    'the digest of all read models of a tenant';

-- Compares the stored digests of folds' read models with the rows, both as one
-- snapshot sees them, without locks.  matches is false if rows have been
-- changed from outside, and null while a digest is being recomputed after the
-- table was altered.
-- Tables: none are changed.
CREATE FUNCTION projector_check_digests(
    name text DEFAULT NULL, tenant_id text DEFAULT NULL)
RETURNS TABLE (projection_name text, tenant_id text, matches boolean,
    kept_digest text, found_digest text)
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_check_digests';
COMMENT ON FUNCTION projector_check_digests IS
    'compare kept digests with the rows';

-- Replays what a projection has applied, compares the result with the read
-- model, and rolls it back.  Returns one row for each tenant, with some of the
-- rows that differ.
-- Tables: none are changed.
CREATE FUNCTION projector_verify(name text, tenant_id text DEFAULT NULL)
RETURNS TABLE (tenant_id text, matches boolean, live_digest text,
    rebuilt_digest text, differing_rows bigint, sample jsonb)
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_verify';
COMMENT ON FUNCTION projector_verify IS
    'compare a read model with what the log implies';

-- The rows that would change if the projection were altered in this way and
-- rebuilt.
-- Tables: none are changed.
CREATE FUNCTION projector_preview(
    name text, changes jsonb, tenant_id text, aggregate_id text DEFAULT NULL,
    max_rows integer DEFAULT 100)
RETURNS TABLE (key text, live jsonb, rebuilt jsonb)
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_preview';
COMMENT ON FUNCTION projector_preview IS
    'which rows a changed definition would change';

-- The events that have produced one row, in order, and for folds the row after
-- each.
-- Tables: none are changed.
CREATE FUNCTION projector_explain(name text, tenant_id text, key text)
RETURNS TABLE (log_seq bigint, aggregate_id text, sequence_number bigint,
    event_type text, recorded_at timestamptz, payload jsonb, state jsonb)
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_explain';
COMMENT ON FUNCTION projector_explain IS 'the events that built one row';
-- Refuse to drop a live projection's target or a column that it uses, and to
-- alter a target so that it can no longer be one.  projector.guard_ddl = off
-- disables this.
-- Tables: projections (read).
CREATE FUNCTION projector.guard_start() RETURNS event_trigger
LANGUAGE C AS 'MODULE_PATHNAME', 'projector_guard_start';
CREATE FUNCTION projector.guard_drop() RETURNS event_trigger
LANGUAGE C AS 'MODULE_PATHNAME', 'projector_guard_drop';
CREATE FUNCTION projector.guard_alter() RETURNS event_trigger
LANGUAGE C AS 'MODULE_PATHNAME', 'projector_guard_alter';

-- A command is not refused for what was broken before it.
CREATE EVENT TRIGGER projector_guard_start ON ddl_command_start
    WHEN TAG IN ('DROP TABLE', 'ALTER TABLE', 'DROP SCHEMA', 'DROP OWNED',
                 'DROP TYPE', 'DROP DOMAIN', 'DROP COLLATION', 'DROP EXTENSION',
                 'ALTER TYPE')
    EXECUTE FUNCTION projector.guard_start();
CREATE EVENT TRIGGER projector_guard_drop ON sql_drop
    WHEN TAG IN ('DROP TABLE', 'ALTER TABLE', 'DROP SCHEMA', 'DROP OWNED',
                 'DROP TYPE', 'DROP DOMAIN', 'DROP COLLATION', 'DROP EXTENSION',
                 'ALTER TYPE')
    EXECUTE FUNCTION projector.guard_drop();
CREATE EVENT TRIGGER projector_guard_alter ON ddl_command_end
    WHEN TAG IN ('ALTER TABLE')
    EXECUTE FUNCTION projector.guard_alter();
-- Only the extension's owner has privileges at first; projector_grant() grants
-- what a role needs.
REVOKE ALL ON ALL TABLES IN SCHEMA projector FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA projector FROM PUBLIC;
REVOKE ALL ON FUNCTION
    projector_append, projector_append_batch,
    projector_create, projector_alter, projector_drop, projector_definitions,
    projector_set_mode, projector_pause, projector_resume,
    projector_wait, projector_wait_log,
    projector_rebuild, projector_catch_up, projector_reset,
    projector_start_run, projector_cancel_run,
    projector_retry, projector_requeue, projector_skip, projector_unskip,
    projector_note,
    projector_verify, projector_digest, projector_digest_all,
    projector_check_digests, projector_preview, projector_explain,
    projector_health,
    projector_drain, projector_adopt, projector_prune, projector_worker_start,
    projector_worker_stop, projector_grant, projector_is_replay
    FROM PUBLIC;

-- Policies and triggers on users' tables call these, as any user who writes
-- the tables.
GRANT EXECUTE ON FUNCTION
    projector_tenant_id, projector.in_projection, projector.guard_tenant
    TO PUBLIC;
-- Views call these, as any user who reads the views.
GRANT EXECUTE ON FUNCTION
    projector.is_home, projector.definition_now, projector.problem,
    projector.no_worker, projector.appenders, projector.worker_activity,
    projector.worker_waits_since, projector.item_waits
    TO PUBLIC;

-- A dump includes the data, and the sequences that number it.
SELECT pg_catalog.pg_extension_config_dump('projector.events', '');
SELECT pg_catalog.pg_extension_config_dump('projector.events_log_seq_seq', '');
SELECT pg_catalog.pg_extension_config_dump('projector.projections', '');
SELECT pg_catalog.pg_extension_config_dump('projector.projections_projection_id_seq', '');
SELECT pg_catalog.pg_extension_config_dump('projector.projection_offsets', '');
SELECT pg_catalog.pg_extension_config_dump('projector.projection_cursors', '');
SELECT pg_catalog.pg_extension_config_dump('projector.projection_deltas', '');
SELECT pg_catalog.pg_extension_config_dump('projector.projection_digests', '');
SELECT pg_catalog.pg_extension_config_dump('projector.apply_outbox', '');
SELECT pg_catalog.pg_extension_config_dump('projector.projection_failures', '');
SELECT pg_catalog.pg_extension_config_dump('projector.projection_failures_id_seq', '');
SELECT pg_catalog.pg_extension_config_dump('projector.projection_runs', '');
SELECT pg_catalog.pg_extension_config_dump('projector.projection_runs_id_seq', '');
SELECT pg_catalog.pg_extension_config_dump('projector.projection_run_slices', '');
