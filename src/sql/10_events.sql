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
