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

CREATE VIEW projector.runs AS
SELECT p.name AS projection_name, r.id, r.tenant_id, r.mode, r.state,
       r.since_log_seq, r.until_log_seq, r.total_events, r.processed_events,
       r.last_log_seq, r.error_code, r.error_message, r.error_context,
       r.requested_by, r.queued_at, r.started_at, r.finished_at
FROM projector.projection_runs r
JOIN projector.projections p USING (projection_id);
COMMENT ON VIEW projector.runs IS 'rebuilds and catch-ups in the background';

-- The active runs.  The total is an estimate: a run that has come past it is
-- shown as all but done.
CREATE VIEW projector.progress AS
SELECT run_id, projection_name, tenant_id, mode, state, processed_events,
       total_events,
       round(100.0 * processed_events / nullif(total_events, 0), 1) AS percent,
       round(rate::numeric, 1) AS events_per_second,
       CASE WHEN rate > 0 THEN pg_catalog.date_trunc('second', pg_catalog.make_interval(secs =>
            (total_events - processed_events) / rate)) END AS time_left,
       last_log_seq, started_at
FROM (SELECT r.id AS run_id, p.name AS projection_name, r.tenant_id, r.mode,
             r.state, r.processed_events,
             CASE WHEN r.total_events IS NOT NULL
                  THEN greatest(r.total_events, r.processed_events)
             END AS total_events, r.last_log_seq, r.started_at,
             r.processed_events / nullif(extract(epoch FROM
                 clock_timestamp() - r.started_at), 0)::float8 AS rate
      FROM projector.projection_runs r
      JOIN projector.projections p USING (projection_id)
      WHERE r.state IN ('queued', 'running')) a
ORDER BY state DESC, run_id;
COMMENT ON VIEW projector.progress IS 'how far the active runs are';

-- With what appends have applied inline and not been added up yet.
CREATE VIEW projector.digests AS
SELECT p.name AS projection_name, tenant_id,
       projector.digest_add(
           coalesce(d.digest, repeat('0', 32)),
           coalesce(x.digest, repeat('0', 32))) AS digest,
       coalesce(d.row_count, 0) + coalesce(x.row_count, 0) AS row_count,
       greatest(d.last_log_seq, x.last_log_seq) AS last_log_seq,
       d.refreshed_at
FROM projector.projection_digests d
FULL JOIN (SELECT projection_id, tenant_id, projector.digest_sum(digest) AS digest,
                  sum(row_count)::bigint AS row_count, max(last_log_seq) AS last_log_seq
           FROM projector.projection_deltas WHERE digest IS NOT NULL
           GROUP BY 1, 2) x USING (projection_id, tenant_id)
JOIN projector.projections p USING (projection_id);
COMMENT ON VIEW projector.digests IS 'the digest of each tenant''s read model';
