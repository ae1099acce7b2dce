-- The views for operators.  A user who may read these views needs no other
-- privilege: everyone may execute the functions below, which the views call.

-- Does a projection live in this database?  If not, the database is a copy.
CREATE FUNCTION projector.is_home(home text) RETURNS boolean
LANGUAGE C STABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'projector_is_home';

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

-- The setting projector.lag_warning.
CREATE FUNCTION projector.lag_warning() RETURNS interval
LANGUAGE C STABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'projector_lag_warning';

-- The following functions return rows only to users who may read one of the
-- views.

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

-- The sessions, other than workers, that hold exclusive locks on a projection
-- (class 20554, the key is the projection's id) or on one of its tenants
-- (20555, and 20556 for a lock that excludes all but appends; the key is the
-- hash used for the tenant's lock).
CREATE FUNCTION projector.lockers(
    OUT pid integer, OUT role text, OUT since timestamptz,
    OUT class integer, OUT key bigint)
RETURNS SETOF record
LANGUAGE C VOLATILE PARALLEL UNSAFE ROWS 1
AS 'MODULE_PATHNAME', 'projector_lockers';

-- Every projection with every tenant in the log, and every tenant that it has
-- a cursor for.  ROWS 1 is set on purpose: with a realistic estimate the
-- planner would use JIT compilation for the views, which takes seconds.
CREATE FUNCTION projector.pairs(OUT projection_id integer, OUT tenant_id text)
RETURNS SETOF record
LANGUAGE C VOLATILE PARALLEL UNSAFE ROWS 1
AS 'MODULE_PATHNAME', 'projector_pairs';

-- One row per projection and tenant.  Counts stop at 10,000.
CREATE VIEW projector.status_by_tenant AS
WITH p AS MATERIALIZED (
    SELECT q.*, NOT projector.is_home(q.home) AS dormant,
           projector.problem(q.projection_id) AS problem,
           projector.definition_now(q.projection_id) AS definition_now
    FROM projector.projections q),
worker AS MATERIALIZED (SELECT * FROM projector.worker_activity()),
idle AS MATERIALIZED (SELECT reason FROM projector.no_worker()),
appender AS MATERIALIZED (SELECT * FROM projector.appenders() LIMIT 1),
locker AS MATERIALIZED (SELECT * FROM projector.lockers()),
delta AS MATERIALIZED (
    SELECT x.projection_id, x.tenant_id,
           sum(x.applied_count)::bigint AS applied_count,
           sum(x.failed_count)::bigint AS failed_count,
           sum(x.dead_count)::bigint AS dead_count,
           count(*) FILTER (WHERE x.applied_count > 0) AS batch_count,
           sum(x.apply_time) AS apply_time,
           max(x.last_applied_at) FILTER (WHERE x.applied_count > 0) AS last_applied_at,
           CASE WHEN count(x.digest) > 0 THEN projector.digest_sum(x.digest) END AS digest,
           sum(x.row_count) FILTER (WHERE x.digest IS NOT NULL)::bigint AS row_count
    FROM projector.projection_deltas x GROUP BY 1, 2),
pair AS (
    SELECT p.projection_id, p.name AS projection_name,
           k.tenant_id COLLATE "C" AS tenant_id, p.kind,
           p.ordering, p.event_types, coalesce(c.mode, p.mode) AS mode,
           p.dormant, p.problem, p.definition_now,
           coalesce(c.state, CASE WHEN p.handover_log_seq IS NOT NULL THEN 'live'
                             WHEN p.started THEN 'switching'
                             ELSE 'replaying' END) AS cursor_state,
           p.handover_log_seq IS NOT NULL AS handed_over,
           coalesce(c.last_log_seq, 0) AS last_log_seq,
           p.paused OR c.paused_by IS NOT NULL AS paused,
           coalesce(c.paused_by, p.paused_by) AS paused_by,
           coalesce(c.paused_at, p.paused_at) AS paused_at,
           coalesce(c.pause_reason, p.pause_reason) AS pause_reason, c.run_id,
           coalesce(c.applied_count, 0) + coalesce(d.applied_count, 0) AS applied_count,
           coalesce(c.failed_count, 0) + coalesce(d.failed_count, 0) AS failed_count,
           coalesce(c.dead_count, 0) + coalesce(d.dead_count, 0) AS dead_count,
           coalesce(c.batch_count, 0) + coalesce(d.batch_count, 0) AS batch_count,
           coalesce(c.apply_time, '0') + coalesce(d.apply_time, '0') AS apply_time,
           greatest(c.last_applied_at, d.last_applied_at) AS last_applied_at,
           coalesce(c.definition_hash, p.definition_hash) AS definition_hash,
           CASE WHEN g.digest IS NOT NULL OR d.digest IS NOT NULL
                THEN projector.digest_add(coalesce(g.digest, repeat('0', 32)),
                                          coalesce(d.digest, repeat('0', 32)))
           END AS digest,
           CASE WHEN g.digest IS NOT NULL OR d.digest IS NOT NULL
                THEN coalesce(g.row_count, 0) + coalesce(d.row_count, 0)
           END AS row_count,
           pg_catalog.hashtextextended(k.tenant_id, p.projection_id) AS lock_key
    FROM projector.pairs() k
    JOIN p ON p.projection_id = k.projection_id
    LEFT JOIN projector.projection_cursors c
        ON c.projection_id = p.projection_id AND c.tenant_id = k.tenant_id
    LEFT JOIN projector.projection_digests g
        ON g.projection_id = p.projection_id AND g.tenant_id = k.tenant_id
    LEFT JOIN delta d
        ON d.projection_id = p.projection_id AND d.tenant_id = k.tenant_id),
seen AS (
    SELECT a.*, i.pending, i.held, i.failed, i.dead, i.untried, i.would_fail,
           i.next_attempt_at,
           least(10000, CASE a.ordering WHEN 'aggregate'
                 THEN i.items ELSE 0 END + l.events) AS lag_events,
           least(CASE a.ordering WHEN 'aggregate' THEN i.oldest END,
                 l.oldest) AS oldest_log_seq,
           b.aggregate_id AS broken_aggregate,
           b.sequence_number AS broken_sequence, b.attempt_count,
           b.last_error AS broken_error,
           f.error_count, f.last_error, f.last_failed_at
    FROM pair a
    -- the outbox: items that can be claimed, failed ones, and those that wait
    -- for them
    CROSS JOIN LATERAL (
        SELECT count(*) AS items, min(x.log_seq) AS oldest,
               count(*) FILTER (WHERE x.status = 'pending' AND (NOT x.held OR x.shadow IS NOT NULL)) AS pending,
               count(*) FILTER (WHERE x.status = 'pending' AND x.held AND x.shadow IS NULL) AS held,
               count(*) FILTER (WHERE x.status = 'failed') AS failed,
               count(*) FILTER (WHERE x.status = 'dead') AS dead,
               count(*) FILTER (WHERE x.status = 'pending' AND NOT x.held) AS untried,
               count(*) FILTER (WHERE x.shadow = 'failed') AS would_fail,
               min(x.next_attempt_at) FILTER (WHERE x.status = 'failed') AS next_attempt_at
        FROM ((SELECT o.status, o.held, o.shadow, o.log_seq, o.next_attempt_at
               FROM projector.apply_outbox o
               WHERE o.projection_id = a.projection_id
                 AND o.tenant_id = a.tenant_id
                 AND o.status = 'pending' AND NOT o.held
               ORDER BY o.log_seq LIMIT 10000)
              UNION ALL
              (SELECT o.status, o.held, o.shadow, o.log_seq, o.next_attempt_at
               FROM projector.apply_outbox o
               WHERE o.projection_id = a.projection_id
                 AND o.tenant_id = a.tenant_id
                 AND (o.held OR o.status IN ('failed', 'dead'))
               LIMIT 10000)) x) i
    -- what is read from the log; in log order that is everything
    CROSS JOIN LATERAL (
        SELECT count(*) AS events, min(y.log_seq) AS oldest
        FROM (SELECT e.log_seq
              FROM projector.events e
              WHERE e.tenant_id = a.tenant_id AND e.log_seq > a.last_log_seq
                AND (a.event_types IS NULL OR e.event_type = ANY (a.event_types))
                AND (a.ordering = 'log' OR a.mode IN ('off', 'follow')
                     OR a.cursor_state IN ('replaying', 'switching') OR a.dormant)
                AND (a.ordering = 'log' OR NOT EXISTS (
                         SELECT FROM projector.apply_outbox o
                         WHERE o.projection_id = a.projection_id
                           AND o.log_seq = e.log_seq)
                     AND NOT EXISTS (
                         SELECT FROM projector.projection_offsets s
                         WHERE s.projection_id = a.projection_id
                           AND s.tenant_id = e.tenant_id
                           AND s.aggregate_id = e.aggregate_id
                           AND s.last_sequence_number >= e.sequence_number))
              ORDER BY e.log_seq LIMIT 10000) y) l
    -- the event to look at first
    LEFT JOIN LATERAL (
        SELECT o.aggregate_id, o.sequence_number, o.attempt_count, o.last_error
        FROM projector.apply_outbox o
        WHERE i.dead + i.failed > 0 AND o.projection_id = a.projection_id
          AND o.tenant_id = a.tenant_id
          AND (o.held OR o.status IN ('failed', 'dead'))
          AND o.status = CASE WHEN i.dead > 0 THEN 'dead' ELSE 'failed' END
        ORDER BY o.log_seq LIMIT 1) b ON true
    CROSS JOIN LATERAL (
        SELECT coalesce(sum(e.retry_count + 1), 0) AS error_count,
               (array_agg(e.error_message ORDER BY e.last_failed_at DESC))[1] AS last_error,
               max(e.last_failed_at) AS last_failed_at
        FROM projector.projection_failures e
        WHERE e.projection_id = a.projection_id AND e.resolved_at IS NULL
          AND e.tenant_id = a.tenant_id) f),
judged AS (
    SELECT s.*, o.recorded_at AS oldest_at,
           pg_catalog.make_interval(secs => pg_catalog.floor(
               extract(epoch FROM pg_catalog.clock_timestamp() - o.recorded_at))::float8) AS lag_time,
           idle.reason AS no_worker, w.pid AS worker_pid,
           ap.pid AS appender_pid, ap.gid AS appender_gid,
           ap.role AS appender_role, ap.since AS appender_since,
           k.pid AS locker_pid, k.role AS locker_role, k.since AS locker_since,
           v.pid AS driver_pid, v.role AS driver_role, v.since AS driver_since,
           r.id AS active_run, r.mode AS run_mode, r.state AS run_state,
           r.processed_events, r.total_events,
           CASE s.mode WHEN 'shadow' THEN s.untried ELSE s.lag_events END AS work
    FROM seen s
    LEFT JOIN projector.events o
        ON o.tenant_id = s.tenant_id AND o.log_seq = s.oldest_log_seq
    LEFT JOIN idle ON true
    LEFT JOIN projector.projection_runs r
        ON r.projection_id = s.projection_id AND r.tenant_id = s.tenant_id
           AND r.state IN ('queued', 'running')
    LEFT JOIN LATERAL (SELECT x.pid FROM worker x
                       WHERE x.projection_id = s.projection_id
                         AND x.tenant_id = s.tenant_id LIMIT 1) w ON true
    -- an open transaction matters only to pairs that read the log
    LEFT JOIN appender ap
        ON s.ordering = 'log' OR s.mode = 'follow'
           OR s.cursor_state IN ('replaying', 'switching') OR NOT s.handed_over
    LEFT JOIN LATERAL (SELECT x.* FROM locker x
                       WHERE x.class = 20554 AND x.key = s.projection_id
                          OR x.class = 20555 AND x.key = s.lock_key LIMIT 1) k ON true
    LEFT JOIN LATERAL (SELECT x.* FROM locker x
                       WHERE x.class = 20556 AND x.key = s.lock_key LIMIT 1) v ON true),
named AS (
    SELECT j.*,
           CASE WHEN j.dormant THEN 'dormant'
                WHEN j.mode = 'off' THEN 'off'
                WHEN j.paused THEN 'paused'
                WHEN j.problem IS NOT NULL OR j.dead > 0
                     OR j.cursor_state = 'stopped' THEN 'blocked'
                WHEN j.failed > 0 THEN 'failing'
                WHEN j.active_run IS NOT NULL OR j.locker_pid IS NOT NULL
                THEN 'rebuilding'
                WHEN j.mode <> 'shadow'
                     AND j.cursor_state IN ('replaying', 'switching')
                THEN 'starting'
                WHEN j.work > 0 AND j.no_worker IS NOT NULL THEN 'no_worker'
                WHEN j.work > 0 AND (j.driver_pid IS NOT NULL
                     OR j.appender_pid IS NOT NULL OR j.appender_gid IS NOT NULL)
                THEN 'waiting'
                WHEN j.work > 0 AND j.lag_time > projector.lag_warning()
                THEN 'lagging'
                WHEN j.mode = 'shadow' THEN 'shadow'
                ELSE 'ok' END AS state,
           CASE WHEN j.appender_pid IS NOT NULL
                THEN format('process %s (%s)', j.appender_pid, j.appender_role)
                WHEN j.appender_gid IS NOT NULL
                THEN format('prepared transaction %L', j.appender_gid)
           END AS appender
    FROM judged j)
SELECT n.projection_name, n.tenant_id, n.state,
       CASE n.state
            WHEN 'dormant' THEN 'this database is a copy: see projector_adopt()'
            WHEN 'off' THEN 'switched off'
            WHEN 'paused' THEN format('by %s since %s%s', n.paused_by,
                to_char(n.paused_at, 'YYYY-MM-DD HH24:MI:SS TZ'), ': ' || n.pause_reason)
            WHEN 'blocked' THEN CASE
                WHEN n.problem IS NOT NULL THEN format('cannot run: %s', n.problem)
                ELSE format('event %s of %s is dead: %s', n.broken_sequence,
                            n.broken_aggregate, n.broken_error) END
            WHEN 'failing' THEN format('event %s of %s failed: %s (attempt %s; the next at %s)',
                n.broken_sequence, n.broken_aggregate, n.broken_error, n.attempt_count,
                to_char(n.next_attempt_at, 'YYYY-MM-DD HH24:MI:SS TZ'))
            WHEN 'rebuilding' THEN CASE
                WHEN n.run_state = 'queued'
                THEN format('run %s, %s, is queued', n.active_run, n.run_mode)
                WHEN n.active_run IS NOT NULL
                THEN format('run %s, %s: %s of about %s events', n.active_run, n.run_mode,
                            n.processed_events, greatest(n.total_events, n.processed_events))
                ELSE format('process %s (%s) has locked it since %s', n.locker_pid,
                            n.locker_role, to_char(n.locker_since, 'YYYY-MM-DD HH24:MI:SS TZ')) END
            WHEN 'starting' THEN CASE
                WHEN n.no_worker IS NOT NULL THEN n.no_worker
                WHEN n.appender IS NOT NULL AND NOT n.handed_over
                THEN format('%s has been appending events since before the projection was changed', n.appender)
                WHEN NOT n.handed_over THEN 'a worker will begin soon'
                ELSE format('%s events to read', n.lag_events) END
            WHEN 'no_worker' THEN n.no_worker
            WHEN 'waiting' THEN CASE
                WHEN n.driver_pid IS NOT NULL
                THEN format('process %s (%s) has locked it since %s', n.driver_pid,
                            n.driver_role, to_char(n.driver_since, 'YYYY-MM-DD HH24:MI:SS TZ'))
                ELSE format('%s has an open transaction that appends events, since %s', n.appender,
                            to_char(n.appender_since, 'YYYY-MM-DD HH24:MI:SS TZ')) END
            WHEN 'lagging' THEN format('%s events, the oldest for %s', n.lag_events, n.lag_time)
            WHEN 'shadow' THEN format('%s would fail', n.would_fail)
       END AS why,
       n.kind, n.mode, n.cursor_state, n.last_log_seq, n.lag_events, n.lag_time,
       n.oldest_log_seq, n.pending, n.held, n.failed, n.dead,
       n.error_count, n.last_error, n.last_failed_at,
       n.paused_by, n.paused_at, n.active_run AS run_id, n.worker_pid,
       n.applied_count > 0 AND coalesce(n.definition_now <> n.definition_hash, false) AS stale,
       n.applied_count, n.failed_count, n.dead_count, n.batch_count,
       n.apply_time, n.last_applied_at, n.digest, n.row_count
FROM named n
ORDER BY n.projection_name, n.tenant_id;

-- One row per projection.  Its state is that of the tenant in the worst state.
CREATE VIEW projector.status AS
SELECT p.name AS projection_name, p.mode,
       coalesce(s.state,
                CASE WHEN NOT projector.is_home(p.home) THEN 'dormant'
                     WHEN p.mode = 'off' THEN 'off'
                     WHEN p.paused THEN 'paused'
                     WHEN projector.problem(p.projection_id) IS NOT NULL THEN 'blocked'
                     ELSE 'ok' END) AS state,
       coalesce(s.tenants_not_ok, 0) AS tenants_not_ok,
       coalesce(s.lag_events, 0) AS lag_events, s.lag_time,
       coalesce(s.dead, 0) AS dead,
       CASE WHEN length(y.why) > 23 THEN left(y.why, 20) || '...'
            ELSE y.why END AS why
FROM projector.projections p
LEFT JOIN (
    SELECT b.projection_name,
           (array_agg(b.state ORDER BY o.rank, b.tenant_id))[1] AS state,
           (array_agg(b.why ORDER BY o.rank, b.tenant_id))[1] AS why,
           count(*) FILTER (WHERE b.state <> 'ok') AS tenants_not_ok,
           least(10000, sum(b.lag_events))::bigint AS lag_events,
           max(b.lag_time) AS lag_time, least(10000, sum(b.dead))::bigint AS dead
    FROM projector.status_by_tenant b
    CROSS JOIN LATERAL (SELECT array_position(ARRAY['dormant', 'off', 'paused',
        'blocked', 'failing', 'rebuilding', 'starting', 'no_worker', 'waiting',
        'lagging', 'shadow', 'ok'], b.state) AS rank) o
    GROUP BY 1) s ON s.projection_name = p.name
CROSS JOIN LATERAL (
    SELECT CASE WHEN s.state IS NOT NULL THEN s.why
                WHEN NOT projector.is_home(p.home) THEN 'see projector_adopt()'
                WHEN p.mode = 'off' THEN 'switched off'
                WHEN p.paused THEN format('by %s', p.paused_by)
                ELSE 'cannot run: ' || projector.problem(p.projection_id) END AS why) y
ORDER BY p.name;

-- All problems that an operator should act on, worst first, with the command
-- that helps.
CREATE VIEW projector.problems AS
WITH s AS MATERIALIZED (SELECT * FROM projector.status_by_tenant),
found AS (
    SELECT 1 AS rank, 'critical' AS level, 'cannot_run' AS problem, p.name AS projection_name,
           NULL AS tenant_id, NULL::timestamptz AS since, NULL::bigint AS events,
           projector.problem(p.projection_id) AS detail,
           format('SELECT projector_alter(%L, ''{}'')  -- once what is missing is back', p.name) AS remedy
    FROM projector.projections p
    WHERE p.mode <> 'off' AND projector.problem(p.projection_id) IS NOT NULL
    UNION ALL
    SELECT 2, 'critical', 'dead', s.projection_name, s.tenant_id, o.since, s.dead, s.why,
           format('SELECT * FROM projector_requeue(%L, %L)  -- once the cause is repaired', s.projection_name, s.tenant_id)
    FROM s
    CROSS JOIN LATERAL (
        SELECT min(o.updated_at) AS since FROM projector.apply_outbox o
        JOIN projector.projections p USING (projection_id)
        WHERE p.name = s.projection_name AND o.tenant_id = s.tenant_id
          AND (o.held OR o.status IN ('failed', 'dead')) AND o.status = 'dead') o
    WHERE s.dead > 0
    UNION ALL
    SELECT 3, 'critical', 'run_failed', p.name, r.tenant_id, r.finished_at, NULL,
           format('run %s, %s: %s', r.id, r.mode, r.error_message),
           format('SELECT projector_start_run(%L, %L, %L)', p.name, r.tenant_id, r.mode)
    FROM projector.projection_runs r
    JOIN projector.projections p USING (projection_id)
    WHERE r.state = 'failed' AND NOT EXISTS (
        SELECT FROM projector.projection_runs n
        WHERE n.projection_id = r.projection_id AND n.tenant_id = r.tenant_id AND n.id > r.id)
    UNION ALL
    SELECT 4, 'critical', 'no_worker', NULL, NULL, pg_catalog.now() - w.lag_time, w.work, i.reason, i.remedy
    FROM projector.no_worker() i
    CROSS JOIN (SELECT least(10000, coalesce(sum(s.lag_events), 0)) AS work, max(s.lag_time) AS lag_time
                FROM s WHERE s.lag_events > 0
                  AND (s.state IN ('no_worker', 'failing', 'starting')
                       OR s.state = 'blocked' AND s.pending > 0)) w
    WHERE i.reason IS NOT NULL AND w.work > 0
    UNION ALL
    SELECT 5, 'warning', 'failing', s.projection_name, s.tenant_id, o.since, s.failed, o.why,
           format('SELECT projector_retry(%L, %L, %L, %s)', s.projection_name, s.tenant_id,
                  o.aggregate_id, o.sequence_number)
    FROM s
    CROSS JOIN LATERAL (
        SELECT o.aggregate_id, o.sequence_number, f.first_failed_at AS since,
               format('event %s of %s failed: %s (attempt %s; the next at %s)', o.sequence_number,
                      o.aggregate_id, o.last_error, o.attempt_count,
                      to_char(o.next_attempt_at, 'YYYY-MM-DD HH24:MI:SS TZ')) AS why
        FROM projector.apply_outbox o
        JOIN projector.projections p USING (projection_id)
        LEFT JOIN projector.projection_failures f
            ON f.projection_id = o.projection_id AND f.log_seq = o.log_seq AND f.resolved_at IS NULL
        WHERE p.name = s.projection_name AND o.tenant_id = s.tenant_id AND o.status = 'failed'
        ORDER BY o.log_seq LIMIT 1) o
    WHERE s.failed > 0
    UNION ALL
    SELECT 6, 'warning', 'open_transaction', NULL, NULL, a.since, w.work,
           format('%s has an open transaction that appends events; %s projections wait for its end',
                  CASE WHEN a.pid IS NULL THEN format('prepared transaction %L', a.gid)
                       ELSE format('process %s (%s, %s)', a.pid, a.role, a.state) END, w.waiting),
           CASE WHEN a.pid IS NULL THEN format('ROLLBACK PREPARED %L  -- or COMMIT PREPARED', a.gid)
                ELSE format('SELECT pg_terminate_backend(%s)', a.pid) END
    FROM projector.appenders() a
    CROSS JOIN (SELECT least(10000, coalesce(sum(s.lag_events), 0)) AS work, count(DISTINCT s.projection_name) AS waiting
                FROM s JOIN projector.projections p ON p.name = s.projection_name
                WHERE s.lag_events > 0 AND s.state IN ('starting', 'waiting')
                  AND (p.ordering = 'log' OR s.mode = 'follow' OR s.cursor_state <> 'live')) w
    WHERE w.work > 0
    UNION ALL
    SELECT 7, 'warning', 'locked', s.projection_name, s.tenant_id, NULL, s.lag_events, s.why,
           format('SELECT pg_terminate_backend(%s)', substring(s.why FROM 'process ([0-9]+)'))
    FROM s WHERE s.state IN ('rebuilding', 'waiting') AND s.lag_events > 0
      AND s.run_id IS NULL AND s.why LIKE 'process % has locked it%'
      AND s.lag_time > projector.lag_warning()
    UNION ALL
    SELECT 8, 'warning', 'dormant', p.name, NULL, NULL, NULL,
           'this database is a copy: its projections do nothing', 'SELECT projector_adopt()'
    FROM projector.projections p WHERE NOT projector.is_home(p.home)
    UNION ALL
    SELECT 9, 'warning', 'paused', p.name, NULL, p.paused_at, NULL,
           format('by %s%s', p.paused_by, ': ' || p.pause_reason),
           format('SELECT projector_resume(%L)', p.name)
    FROM projector.projections p WHERE p.paused
    UNION ALL
    SELECT 9, 'warning', 'paused', p.name, c.tenant_id, c.paused_at, NULL,
           format('by %s%s', c.paused_by, ': ' || c.pause_reason),
           format('SELECT projector_resume(%L, %L)', p.name, c.tenant_id)
    FROM projector.projection_cursors c JOIN projector.projections p USING (projection_id)
    WHERE c.paused_by IS NOT NULL
    UNION ALL
    SELECT 10, 'warning', 'lagging', s.projection_name, s.tenant_id,
           pg_catalog.now() - s.lag_time, s.lag_events, s.why,
           format('SELECT projector_drain(%L, %L)', s.projection_name, s.tenant_id)
    FROM s WHERE s.state = 'lagging'
    UNION ALL
    SELECT 11, 'warning', 'stale', s.projection_name, NULL, NULL, NULL,
           format('%s tenants were built with an earlier definition', count(*)),
           format('SELECT projector_start_run(%L)', s.projection_name)
    FROM s WHERE s.stale AND s.state NOT IN ('dormant', 'rebuilding')
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
        SELECT p.level, concat_ws(' ', p.problem || ':', p.projection_name,
                                  'tenant ' || p.tenant_id || ':', p.detail) AS reason
        FROM projector.problems p LIMIT 1) f ON true
$$;
COMMENT ON FUNCTION projector_health IS
    'the worst problem: its level (ok, warning, critical) and what it is';
