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
