-- The same rows with the projection's name, as a person wants to read them.

-- "held" is worked out here: a row may wait behind a failed one (of its
-- aggregate, or in log order of its tenant) without having been marked yet.  So is "processing": a row that is being applied is
-- one whose xmax is another transaction that is still at work, which holds the
-- lock on its own number.
CREATE VIEW projector.outbox AS
SELECT p.name AS projection_name, o.tenant_id, o.aggregate_id,
       o.sequence_number, o.log_seq, o.event_type,
       CASE WHEN o.xmax IN (
                SELECT l.transactionid FROM pg_catalog.pg_locks l
                WHERE l.locktype = 'transactionid' AND l.granted
                  AND l.mode = 'ExclusiveLock'
                  AND l.pid IS DISTINCT FROM pg_catalog.pg_backend_pid())
            THEN 'processing'
            WHEN o.status = 'pending' AND (o.held AND o.shadow IS NULL OR EXISTS (
                SELECT FROM projector.apply_outbox b
                WHERE b.projection_id = o.projection_id
                  AND b.tenant_id = o.tenant_id
                  AND (p.ordering = 'log' OR b.aggregate_id = o.aggregate_id)
                  AND b.log_seq < o.log_seq
                  AND b.status IN ('failed', 'dead')))
            THEN 'held' ELSE o.status END AS status,
       o.attempt_count, o.next_attempt_at, o.last_error, o.updated_at,
       CASE WHEN coalesce(c.mode, p.mode) = 'shadow' AND o.status = 'pending'
            THEN coalesce(o.shadow, 'untested') END AS shadow
FROM projector.apply_outbox o
JOIN projector.projections p USING (projection_id)
LEFT JOIN projector.projection_cursors c USING (projection_id, tenant_id);
COMMENT ON VIEW projector.outbox IS 'the work list, with held items shown as such';

CREATE VIEW projector.offsets AS
SELECT p.name AS projection_name, o.tenant_id, o.aggregate_id,
       o.last_sequence_number, o.last_event_id, o.error_count, o.last_error,
       o.updated_at
FROM projector.projection_offsets o
JOIN projector.projections p USING (projection_id);
COMMENT ON VIEW projector.offsets IS 'the checkpoints';

CREATE VIEW projector.failures AS
SELECT p.name AS projection_name, f.*
FROM projector.projection_failures f
JOIN projector.projections p USING (projection_id);
COMMENT ON VIEW projector.failures IS 'the recorded errors';
