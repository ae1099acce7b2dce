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

-- Applies one queued event now, whatever its back-off, and says what became
-- of it: applied, failed, held (behind an earlier one) or none (not queued).
-- Tables: as projector_drain.
CREATE FUNCTION projector_retry(
    name text, tenant_id text, aggregate_id text, sequence_number bigint)
RETURNS text
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_retry';
COMMENT ON FUNCTION projector_retry IS 'apply one queued event now';

-- Sets checkpoints back to 0 without touching the read model; the log is
-- read again.  Returns how many offsets were set back.
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

-- For handlers: is the event one that has been read from the log again, by a
-- reset or for a new projection, and not just appended?  A handler with effects
-- beyond its read model leaves them out then.  Tables: none.
CREATE FUNCTION projector_is_replay() RETURNS boolean
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_is_replay';
COMMENT ON FUNCTION projector_is_replay IS
    'for handlers: is the event being replayed?';
