-- Everything a user sees lives in two places: tables, views and types in the
-- schema "projector", which belongs to the extension, and functions named
-- projector_* in the schema the extension is created in.
CREATE SCHEMA projector;
COMMENT ON SCHEMA projector IS 'event log, projections and their checkpoints';

-- What a handler receives, whatever the table it was read from looks like.
-- The columns have the default collation, so that a handler's comparisons
-- use the indexes of its own tables.
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
