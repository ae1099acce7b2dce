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

CREATE VIEW projector.audit AS
SELECT id, happened_at, role, session_role, action, projection_name,
       tenant_id, arguments, result
FROM projector.audit_log;
