-- How things are.  The views need no function that writes; who may read them
-- also needs EXECUTE on these three, which ask for what no table says.

-- Does a projection that lives in this database say so?  If not, it is a copy.
CREATE FUNCTION projector.is_home(home text) RETURNS boolean
LANGUAGE C STABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'projector_is_home';

-- What the workers of this database do now: "idle", "looking" (for work),
-- "applying" (a batch of a projection and tenant), "run" (a batch of their run)
-- or "chores", and since when.  Only those who may read view projector.status
-- get rows.  Tables: none; it is in shared memory.
CREATE FUNCTION projector.worker_activity(
    OUT slot integer, OUT pid integer, OUT projection_id integer,
    OUT tenant_id text, OUT activity text, OUT since timestamptz)
RETURNS SETOF record
LANGUAGE C VOLATILE PARALLEL RESTRICTED ROWS 10
AS 'MODULE_PATHNAME', 'projector_worker_activity';
COMMENT ON FUNCTION projector.worker_activity IS
    'what each worker of this database does now';

-- The hash of a projection's definition as it is now, function and all; null
-- if the function is missing.
CREATE FUNCTION projector.definition_now(projection_id integer) RETURNS bytea
LANGUAGE C STABLE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_definition_now';

-- Why a projection cannot run now: something of it is missing, or its row
-- cannot be read.  Null if it can.
CREATE FUNCTION projector.problem(projection_id integer) RETURNS text
LANGUAGE C STABLE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_problem';

-- Every projection with every tenant of the log, and every one it has been
-- run for.  Where there is no cursor yet it is as it will be made.
CREATE VIEW projector.pairs AS
WITH RECURSIVE t (tenant_id) AS (
    (SELECT tenant_id FROM projector.events ORDER BY tenant_id LIMIT 1)
    UNION ALL
    SELECT (SELECT e.tenant_id FROM projector.events e
            WHERE e.tenant_id > t.tenant_id ORDER BY e.tenant_id LIMIT 1)
    FROM t WHERE t.tenant_id IS NOT NULL)
SELECT p.projection_id, p.name AS projection_name, k.tenant_id, p.kind,
       p.ordering, p.event_types, coalesce(c.mode, p.mode) AS mode,
       coalesce(c.state, CASE WHEN p.handover_log_seq IS NOT NULL THEN 'live'
                         WHEN p.started THEN 'switching'
                         ELSE 'replaying' END) AS state,
       coalesce(c.last_log_seq, 0) AS last_log_seq,
       p.handover_log_seq IS NOT NULL AS handed_over,
       NOT projector.is_home(p.home) AS dormant,
       p.paused OR c.paused_by IS NOT NULL AS paused,
       coalesce(c.paused_by, p.paused_by) AS paused_by,
       coalesce(c.paused_at, p.paused_at) AS paused_at,
       coalesce(c.pause_reason, p.pause_reason) AS pause_reason, c.run_id,
       coalesce(c.applied_count, 0) AS applied_count,
       coalesce(c.failed_count, 0) AS failed_count,
       coalesce(c.dead_count, 0) AS dead_count,
       coalesce(c.batch_count, 0) AS batch_count,
       coalesce(c.apply_time, '0') AS apply_time, c.last_applied_at,
       coalesce(c.definition_hash, p.definition_hash) AS definition_hash,
       projector.problem(p.projection_id) AS problem
FROM projector.projections p
CROSS JOIN LATERAL (
    SELECT t.tenant_id FROM t WHERE t.tenant_id IS NOT NULL
    UNION
    SELECT o.tenant_id FROM projector.projection_cursors o
    WHERE o.projection_id = p.projection_id) k
LEFT JOIN projector.projection_cursors c
    ON c.projection_id = p.projection_id AND c.tenant_id = k.tenant_id;
COMMENT ON VIEW projector.pairs IS 'every projection and tenant';

-- What has not been applied: what waits in the outbox, and what is to be read
-- from the log, which in log order is all there is.  The time is that since
-- the oldest of these events was recorded.
CREATE VIEW projector.lag AS
SELECT p.projection_name, p.tenant_id, q.items + l.events AS lag_events,
       clock_timestamp() - o.recorded_at AS lag_time,
       least(q.oldest, l.oldest) AS oldest_log_seq, p.last_log_seq
FROM projector.pairs p
CROSS JOIN LATERAL (
    SELECT count(*) AS items, min(i.log_seq) AS oldest
    FROM (SELECT a.log_seq FROM projector.apply_outbox a
          WHERE a.projection_id = p.projection_id
            AND a.tenant_id = p.tenant_id
            AND a.status = 'pending' AND NOT a.held
          UNION ALL
          SELECT a.log_seq FROM projector.apply_outbox a
          WHERE a.projection_id = p.projection_id
            AND a.tenant_id = p.tenant_id
            AND (a.held OR a.status IN ('failed', 'dead'))) i
    WHERE p.ordering = 'aggregate') q
CROSS JOIN LATERAL (
    SELECT count(*) AS events, min(e.log_seq) AS oldest
    FROM projector.events e
    WHERE e.tenant_id = p.tenant_id AND e.log_seq > p.last_log_seq
      AND (p.event_types IS NULL OR e.event_type = ANY (p.event_types))
      AND (p.ordering = 'log' OR p.mode IN ('off', 'follow')
           OR p.state IN ('replaying', 'switching') OR p.dormant)
      AND (p.ordering = 'log' OR NOT EXISTS (
               SELECT FROM projector.apply_outbox a
               WHERE a.projection_id = p.projection_id
                 AND a.log_seq = e.log_seq)
           AND NOT EXISTS (
               SELECT FROM projector.projection_offsets f
               WHERE f.projection_id = p.projection_id
                 AND f.tenant_id = e.tenant_id
                 AND f.aggregate_id = e.aggregate_id
                 AND f.last_sequence_number >= e.sequence_number))) l
LEFT JOIN projector.events o
    ON o.tenant_id = p.tenant_id AND o.log_seq = least(q.oldest, l.oldest);
COMMENT ON VIEW projector.lag IS 'how many events are unapplied, and for how long';

CREATE VIEW projector.status AS
SELECT p.projection_name, p.tenant_id, p.kind, p.mode, p.state,
       CASE WHEN p.dormant
            THEN 'dormant: this database is a copy, see projector_adopt()'
            WHEN p.run_id IS NOT NULL THEN format('run %s is at work', p.run_id)
            WHEN p.paused
            THEN format('paused by %s since %s%s', p.paused_by,
                        to_char(p.paused_at, 'YYYY-MM-DD HH24:MI:SS TZ'),
                        ': ' || p.pause_reason)
            WHEN p.mode = 'off' THEN 'switched off'
            WHEN p.problem IS NOT NULL
            THEN format('cannot run: %s', p.problem)
            WHEN p.state = 'stopped' THEN 'stopped at a dead event'
            WHEN NOT p.handed_over AND p.state <> 'live'
            THEN 'not taken up yet: waits for a worker, and for open transactions that append events'
            WHEN p.state <> 'live' THEN 'reads the log'
       END AS why,
       l.lag_events, l.lag_time, i.pending, i.held, i.failed, i.dead,
       f.error_count, f.last_error, f.last_failed_at,
       p.paused_by, p.paused_at, p.run_id,
       (SELECT min(a.pid) FROM projector.worker_activity() a
        WHERE a.activity = 'applying' AND a.projection_id = p.projection_id
          AND a.tenant_id = p.tenant_id) AS worker_pid,
       (p.applied_count > 0 OR d.applied_count > 0)
           AND coalesce(projector.definition_now(p.projection_id)
                        <> p.definition_hash, false) AS stale,
       p.applied_count + d.applied_count AS applied_count,
       p.failed_count + d.failed_count AS failed_count,
       p.dead_count + d.dead_count AS dead_count,
       p.batch_count + d.batch_count AS batch_count,
       p.apply_time + d.apply_time AS apply_time,
       greatest(p.last_applied_at, d.last_applied_at) AS last_applied_at,
       l.last_log_seq
FROM projector.pairs p
JOIN projector.lag l USING (projection_name, tenant_id)
CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE a.status = 'pending' AND NOT a.held) AS pending,
           count(*) FILTER (WHERE a.status = 'pending' AND a.held) AS held,
           count(*) FILTER (WHERE a.status = 'failed') AS failed,
           count(*) FILTER (WHERE a.status = 'dead') AS dead
    FROM (SELECT o.status, o.held FROM projector.apply_outbox o
          WHERE o.projection_id = p.projection_id
            AND o.tenant_id = p.tenant_id
            AND o.status = 'pending' AND NOT o.held
          UNION ALL
          SELECT o.status, o.held FROM projector.apply_outbox o
          WHERE o.projection_id = p.projection_id
            AND o.tenant_id = p.tenant_id
            AND (o.held OR o.status IN ('failed', 'dead'))) a) i
CROSS JOIN LATERAL (
    SELECT coalesce(sum(e.retry_count + 1), 0) AS error_count,
           (array_agg(e.error_message ORDER BY e.last_failed_at DESC))[1] AS last_error,
           max(e.last_failed_at) AS last_failed_at
    FROM projector.projection_failures e
    WHERE e.projection_id = p.projection_id AND e.resolved_at IS NULL
      AND e.tenant_id = p.tenant_id) f
CROSS JOIN LATERAL (
    SELECT coalesce(sum(x.applied_count), 0)::bigint AS applied_count,
           coalesce(sum(x.failed_count), 0)::bigint AS failed_count,
           coalesce(sum(x.dead_count), 0)::bigint AS dead_count,
           count(*) FILTER (WHERE x.applied_count > 0) AS batch_count,
           coalesce(sum(x.apply_time), '0') AS apply_time,
           max(x.last_applied_at) FILTER (WHERE x.applied_count > 0) AS last_applied_at
    FROM projector.projection_deltas x
    WHERE x.projection_id = p.projection_id AND x.tenant_id = p.tenant_id) d
ORDER BY p.projection_name, p.tenant_id;
COMMENT ON VIEW projector.status IS 'one row per projection and tenant';

-- What needs somebody: events that are dead, aggregates whose events keep
-- failing, runs that have failed and have not been followed by another.
CREATE VIEW projector.alerts AS
SELECT p.name AS projection_name, a.tenant_id, a.alert, a.events, a.since,
       a.example_log_seq, a.error_message
FROM projector.projections p
JOIN (SELECT o.projection_id, o.tenant_id, 'dead' AS alert, count(*) AS events,
             min(o.updated_at) AS since, min(o.log_seq) AS example_log_seq,
             (array_agg(o.last_error ORDER BY o.log_seq))[1] AS error_message
      FROM projector.apply_outbox o WHERE o.status = 'dead' GROUP BY 1, 2
      UNION ALL
      SELECT f.projection_id, f.tenant_id, 'error_threshold', count(*),
             min(f.first_failed_at), min(f.log_seq),
             (array_agg(f.error_message ORDER BY f.log_seq))[1]
      FROM projector.projection_failures f
      JOIN projector.projection_offsets s
          ON s.projection_id = f.projection_id AND s.tenant_id = f.tenant_id
             AND s.aggregate_id = f.aggregate_id
      JOIN projector.projections p ON p.projection_id = f.projection_id
      WHERE f.resolved_at IS NULL
        AND s.error_count >= coalesce((p.options->>'error_threshold')::int, 5)
        AND NOT EXISTS (SELECT FROM projector.apply_outbox o
                        WHERE o.projection_id = f.projection_id
                          AND o.log_seq = f.log_seq AND o.status = 'dead')
      GROUP BY 1, 2
      UNION ALL
      SELECT r.projection_id, r.tenant_id, 'run_failed', 1, r.finished_at,
             r.last_log_seq, r.error_message
      FROM projector.projection_runs r
      WHERE r.state = 'failed' AND NOT EXISTS (
          SELECT FROM projector.projection_runs n
          WHERE n.projection_id = r.projection_id
            AND n.tenant_id = r.tenant_id AND n.id > r.id)) a
    ON a.projection_id = p.projection_id
ORDER BY a.since;
COMMENT ON VIEW projector.alerts IS 'what needs somebody to look at it';
