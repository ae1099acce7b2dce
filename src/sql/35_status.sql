-- The views for operators.  A user who may read these views needs no other
-- privilege: everyone may execute the functions below, which the views call.

-- Does a projection live in this database?  If not, the database is a copy.
CREATE FUNCTION projector.is_home(home text) RETURNS boolean
LANGUAGE C STABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'projector_is_home';

-- The following functions return something only to users who may read one of the
-- views.

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

-- The status of every projection for every tenant of the log, and for every
-- tenant that it has a cursor for.  A projection without tenants has one row,
-- whose tenant_id is null.  The views below read this table.  It is a foreign
-- table whose rows are computed when it is read, because the planner passes
-- conditions on projection_name and tenant_id to a foreign table: the status of
-- one tenant costs the same however many there are.  Counts stop at 10,000.
CREATE FUNCTION projector.pairs_handler() RETURNS fdw_handler
LANGUAGE C AS 'MODULE_PATHNAME', 'projector_pairs_handler';
CREATE FOREIGN DATA WRAPPER projector_pairs HANDLER projector.pairs_handler;
CREATE SERVER projector_pairs FOREIGN DATA WRAPPER projector_pairs;
CREATE FOREIGN TABLE projector.pairs (
    projection_name   text COLLATE "C" NOT NULL,
    tenant_id         text COLLATE "C",
    kind              text,
    projection_mode   text,
    mode              text,
    state             text,
    rank              integer,     -- of the state: 0 is the worst
    why               text,
    worst             boolean,     -- no tenant before it is in such a bad state
    worst_why         text,        -- if so, why
    cursor_state      text,
    last_log_seq      bigint,
    lag_events        bigint,
    lag_share         bigint,      -- lag_events, until the projection has 10,000
    lag_time          interval,
    oldest_log_seq    bigint,
    pending           bigint,
    held              bigint,
    failed            bigint,
    dead              bigint,
    error_count       bigint,
    last_error        text,
    last_failed_at    timestamptz,
    paused_by         text,
    paused_at         timestamptz,
    run_id            bigint,
    worker_pid        integer,
    stale             boolean,
    applied_count     bigint,
    failed_count      bigint,
    dead_count        bigint,
    batch_count       bigint,
    apply_time        interval,
    last_applied_at   timestamptz,
    digest            text,
    row_count         bigint,
    late              boolean,     -- lag_time is over projector.lag_warning
    awaits_log        boolean,     -- it cannot read past an open transaction
    dead_since        timestamptz,
    dead_why          text,        -- the first dead event
    failing_aggregate text,        -- the first failed event
    failing_sequence  bigint,
    failing_since     timestamptz,
    failing_why       text,
    locker_pid        integer,     -- the session that the state is due to
    locker_since      timestamptz
) SERVER projector_pairs;
COMMENT ON FOREIGN TABLE projector.pairs IS
    'the status of each projection and tenant, read by the views';

-- One row per projection and tenant.
CREATE VIEW projector.status_by_tenant AS
SELECT s.projection_name, s.tenant_id, s.state, s.why, s.kind, s.mode,
       s.cursor_state, s.last_log_seq, s.lag_events, s.lag_time,
       s.oldest_log_seq, s.pending, s.held, s.failed, s.dead,
       s.error_count, s.last_error, s.last_failed_at,
       s.paused_by, s.paused_at, s.run_id, s.worker_pid, s.stale,
       s.applied_count, s.failed_count, s.dead_count, s.batch_count,
       s.apply_time, s.last_applied_at, s.digest, s.row_count
FROM projector.pairs s
WHERE s.tenant_id IS NOT NULL
ORDER BY s.projection_name, s.tenant_id;

-- One row per projection, with the state of its worst tenant.  (The least array is
-- that of the least rank.  An aggregate with ORDER BY would have all rows sorted.)
CREATE VIEW projector.status AS
SELECT s.projection_name, s.mode, s.state, s.tenants_not_ok, s.lag_events,
       s.lag_time, s.dead,
       CASE WHEN length(s.why) > 23 THEN left(s.why, 20) || '...'
            ELSE s.why END AS why
FROM (SELECT p.projection_name, min(p.projection_mode) AS mode,
             (min(ARRAY[lpad(p.rank::text, 2, '0'), p.state]) FILTER (WHERE p.worst))[2] AS state,
             count(*) FILTER (WHERE p.state <> 'ok' AND p.tenant_id IS NOT NULL) AS tenants_not_ok,
             least(10000, sum(p.lag_share))::bigint AS lag_events,
             max(p.lag_time) AS lag_time,
             least(10000, sum(p.dead))::bigint AS dead,
             (min(ARRAY[lpad(p.rank::text, 2, '0'), p.worst_why]) FILTER (WHERE p.worst))[2] AS why
      FROM projector.pairs p
      GROUP BY p.projection_name) s
ORDER BY s.projection_name;

-- All problems that an operator should act on, worst first, with the command
-- that helps.
CREATE VIEW projector.problems AS
WITH p AS MATERIALIZED (
    SELECT q.projection_id, q.name, q.owner_oid, q.mode, q.paused, q.paused_by, q.paused_at,
           q.pause_reason, NOT projector.is_home(q.home) AS dormant,
           projector.problem(q.projection_id) AS problem
    FROM projector.projections q),
s AS MATERIALIZED (
    SELECT x.projection_name, x.tenant_id, x.state, x.why, x.mode, x.lag_events,
           x.lag_time, x.pending, x.held, x.failed, x.dead, x.run_id, x.stale, x.late,
           x.awaits_log, x.dead_since, x.dead_why, x.failing_aggregate, x.failing_sequence,
           x.failing_since, x.failing_why, x.locker_pid, x.locker_since
    FROM projector.pairs x
    WHERE x.tenant_id IS NOT NULL AND (x.state <> 'ok' OR x.stale)),
-- of each tenant the last run
run AS (
    SELECT r.projection_id, r.tenant_id, max(r.id) AS id
    FROM projector.projection_runs r
    GROUP BY r.projection_id, r.tenant_id
    HAVING max(r.id) = max(r.id) FILTER (WHERE r.state = 'failed')),
found AS (
    SELECT 1 AS rank, 'critical' AS level, 'cannot_run' AS problem, p.name AS projection_name,
           NULL AS tenant_id, NULL::timestamptz AS since, NULL::bigint AS events,
           p.problem AS detail,
           CASE WHEN EXISTS (SELECT FROM pg_catalog.pg_roles o WHERE o.oid = p.owner_oid)
                THEN format('SELECT projector_alter(%L, ''{}'')  -- once what is missing is back', p.name)
                ELSE format('SELECT projector_alter(%L, jsonb_build_object(''owner'', current_user))', p.name) END AS remedy
    FROM p WHERE p.mode <> 'off' AND p.problem IS NOT NULL
    UNION ALL
    SELECT 2, 'critical', 'dead', s.projection_name, s.tenant_id, s.dead_since, s.dead + s.held,
           coalesce(s.dead_why, s.why),
           format('SELECT * FROM projector_requeue(%L, %L)  -- once the cause is repaired', s.projection_name, s.tenant_id)
    FROM s WHERE s.dead > 0
    UNION ALL
    SELECT 3, 'critical', 'run_failed', p.name, r.tenant_id, r.finished_at, NULL,
           format('run %s, %s: %s', r.id, r.mode, r.error_message),
           format('SELECT projector_start_run(%L, %L, %L)', p.name, r.tenant_id, r.mode)
    FROM run
    JOIN projector.projection_runs r ON r.id = run.id
    JOIN p ON p.projection_id = r.projection_id
    UNION ALL
    SELECT 4, 'critical', 'no_worker', NULL, NULL,
           least(pg_catalog.now() - w.lag_time, r.since), w.work,
           i.reason || CASE WHEN r.since IS NOT NULL THEN ', and a run waits' ELSE '' END, i.remedy
    FROM projector.no_worker() i
    CROSS JOIN (SELECT min(q.queued_at) AS since FROM projector.projection_runs q
                WHERE q.state IN ('queued', 'running')) r
    CROSS JOIN (SELECT least(10000, coalesce(sum(s.lag_events), 0)) AS work, max(s.lag_time) AS lag_time
                FROM s WHERE s.lag_events > 0
                  AND (s.state IN ('no_worker', 'failing', 'starting')
                       OR s.state = 'blocked' AND s.pending > 0)) w
    WHERE i.reason IS NOT NULL AND (w.work > 0 OR r.since IS NOT NULL)
    UNION ALL
    SELECT 5, 'warning', 'failing', s.projection_name, s.tenant_id, s.failing_since,
           s.failed + CASE WHEN s.dead = 0 THEN s.held ELSE 0 END, s.failing_why,
           format('SELECT projector_retry(%L, %L, %L, %s)', s.projection_name, s.tenant_id,
                  s.failing_aggregate, s.failing_sequence)
    FROM s WHERE s.failed > 0 AND s.mode NOT IN ('off', 'shadow')
    UNION ALL
    SELECT 6, 'warning', 'open_transaction', NULL, NULL, a.since, w.work,
           format('%s has an open transaction that appends events; projections that wait for its end: %s',
                  CASE WHEN a.pid IS NULL THEN format('prepared transaction %L', a.gid)
                       ELSE format('process %s (%s, %s)', a.pid, a.role, a.state) END, w.waiting),
           CASE WHEN a.pid IS NULL THEN format('ROLLBACK PREPARED %L  -- or COMMIT PREPARED', a.gid)
                ELSE format('SELECT pg_terminate_backend(%s)', a.pid) END
    FROM projector.appenders() a
    CROSS JOIN (SELECT least(10000, coalesce(sum(s.lag_events), 0)) AS work, count(DISTINCT s.projection_name) AS waiting
                FROM s WHERE s.lag_events > 0 AND s.state IN ('starting', 'waiting') AND s.awaits_log) w
    WHERE w.work > 0
    UNION ALL
    SELECT 7, 'warning', 'locked', s.projection_name, s.tenant_id, s.locker_since, s.lag_events, s.why,
           format('SELECT pg_terminate_backend(%s)', s.locker_pid)
    FROM s WHERE s.locker_pid IS NOT NULL AND s.lag_events > 0 AND s.late
    UNION ALL
    SELECT 8, 'warning', 'dormant', p.name, NULL, NULL, NULL,
           'this database is a copy: its projections do nothing', 'SELECT projector_adopt()'
    FROM p WHERE p.dormant
    UNION ALL
    SELECT 9, 'warning', 'paused', p.name, NULL, p.paused_at, NULL,
           format('by %s%s', p.paused_by, ': ' || p.pause_reason),
           format('SELECT projector_resume(%L)', p.name)
    FROM p WHERE p.paused
    UNION ALL
    SELECT 9, 'warning', 'paused', p.name, c.tenant_id, c.paused_at, NULL,
           format('by %s%s', c.paused_by, ': ' || c.pause_reason),
           format('SELECT projector_resume(%L, %L)', p.name, c.tenant_id)
    FROM projector.projection_cursors c JOIN p USING (projection_id)
    WHERE c.paused_by IS NOT NULL
    UNION ALL
    SELECT 10, 'warning', 'lagging', s.projection_name, s.tenant_id,
           pg_catalog.now() - s.lag_time, s.lag_events, s.why,
           format('SELECT projector_drain(%L, %L)', s.projection_name, s.tenant_id)
    FROM s WHERE s.state = 'lagging'
    UNION ALL
    SELECT 11, 'warning', 'stale', s.projection_name, NULL, NULL, NULL,
           format('built with an earlier definition: %s', CASE count(*)
                  WHEN 1 THEN 'one tenant' ELSE count(*) || ' tenants' END),
           format('SELECT projector_start_run(%L)', s.projection_name)
    FROM s WHERE s.stale AND s.state NOT IN ('dormant', 'rebuilding')
      AND s.mode <> 'shadow' AND s.run_id IS NULL
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
        SELECT p.level, regexp_replace(
                   concat_ws(' ', p.problem || ':', p.projection_name,
                             'tenant ' || p.tenant_id || ':', p.detail),
                   '\s+', ' ', 'g') AS reason
        FROM projector.problems p LIMIT 1) f ON true
$$;
COMMENT ON FUNCTION projector_health IS
    'the worst problem: its level (ok, warning, critical) and what it is';
