-- The same rows with the projection's name.

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
            WHEN p.ordering = 'aggregate' AND EXISTS (
                SELECT FROM projector.apply_outbox b
                WHERE b.projection_id = o.projection_id
                  AND b.tenant_id = o.tenant_id
                  AND b.aggregate_id = o.aggregate_id
                  AND b.sequence_number < o.sequence_number
                  AND (b.held OR b.status IN ('failed', 'dead'))
                  AND b.status IN ('failed', 'dead'))
            THEN 'held'
            WHEN p.ordering = 'log' AND o.log_seq > (
                SELECT min(b.log_seq) FROM projector.apply_outbox b
                WHERE b.projection_id = o.projection_id
                  AND b.tenant_id = o.tenant_id
                  AND (b.held OR b.status IN ('failed', 'dead'))
                  AND b.status IN ('failed', 'dead'))
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

CREATE VIEW projector.runs AS
SELECT p.name AS projection_name, r.id, r.tenant_id, r.mode, r.state,
       r.since_log_seq, r.until_log_seq, r.total_events, r.processed_events,
       r.last_log_seq, r.error_code, r.error_message, r.error_context,
       r.requested_by, r.queued_at, r.started_at, r.finished_at
FROM projector.projection_runs r
JOIN projector.projections p USING (projection_id);

-- The active runs.  The total is an estimate: a run that has exceeded it is
-- shown as almost done.
CREATE VIEW projector.progress AS
SELECT a.run_id, a.projection_name, a.tenant_id, a.mode, a.state,
       round(100.0 * a.processed_events / nullif(a.total_events, 0), 1) AS percent,
       round(a.rate)::bigint AS per_second,
       CASE WHEN a.rate > 0
            THEN pg_catalog.make_interval(secs => pg_catalog.round(
                (a.total_events - a.processed_events) / a.rate)::float8) END AS time_left
FROM (SELECT r.id AS run_id, p.name AS projection_name, r.tenant_id, r.mode,
             r.state, r.processed_events,
             CASE WHEN r.total_events IS NOT NULL
                  THEN greatest(r.total_events, r.processed_events)
             END AS total_events,
             r.processed_events / nullif(extract(epoch FROM
                 clock_timestamp() - r.started_at), 0)::float8 AS rate
      FROM projector.projection_runs r
      JOIN projector.projections p USING (projection_id)
      WHERE r.state IN ('queued', 'running')) a
ORDER BY a.state DESC, a.run_id;
