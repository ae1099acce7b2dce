\echo Use "ALTER EXTENSION projector UPDATE TO '1.0'" to load this file. \quit
-- Every change of the parts in src/sql since 0.9, in an order in which it can
-- be made while there is data.  A test compares the result with a fresh 1.0.

-- ---- 85_update.sql ----
CREATE FUNCTION projector.begin_update() RETURNS void
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_begin_update';
COMMENT ON FUNCTION projector.begin_update IS
    'the first call of every upgrade script';
REVOKE ALL ON FUNCTION projector.begin_update FROM PUBLIC;

-- Wait for appends.  The changes of tables come after this.
SELECT projector.begin_update();

-- ---- 20_projections.sql ----
ALTER TABLE projector.projection_failures
    ADD COLUMN traceparent text,
    ADD COLUMN correlation_id text;

-- What users have done with projections: a row for each call of a function
-- that changes them or what has become of their events.
CREATE TABLE projector.audit_log (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    happened_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    role            text NOT NULL,
    session_role    text NOT NULL,
    action          text NOT NULL,
    projection_name text COLLATE "C",
    tenant_id       text COLLATE "C",
    arguments       jsonb NOT NULL,
    result          text
);
COMMENT ON TABLE projector.audit_log IS
    'who has called which function of ours; see the view projector.audit';

-- Refuses to change rows, and to delete them before their time.
CREATE FUNCTION projector.audit_guard() RETURNS trigger
LANGUAGE C AS 'MODULE_PATHNAME', 'projector_audit_guard';
CREATE TRIGGER audit_guard BEFORE UPDATE OR TRUNCATE ON projector.audit_log
    FOR EACH STATEMENT EXECUTE FUNCTION projector.audit_guard();
CREATE TRIGGER audit_guard_rows BEFORE DELETE ON projector.audit_log
    FOR EACH ROW EXECUTE FUNCTION projector.audit_guard();

-- ---- 30_views.sql ----
CREATE OR REPLACE VIEW projector.failures AS
SELECT p.name AS projection_name, f.*
FROM projector.projection_failures f
JOIN projector.projections p USING (projection_id);

CREATE VIEW projector.audit AS
SELECT id, happened_at, role, session_role, action, projection_name,
       tenant_id, arguments, result
FROM projector.audit_log;

-- ---- 35_status.sql ----
CREATE OR REPLACE VIEW projector.status AS
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

-- ---- 36_comments.sql ----
COMMENT ON COLUMN projector.failures.traceparent IS
    'the trace of the event: metadata traceparent (W3C trace context)';
COMMENT ON COLUMN projector.failures.correlation_id IS
    'metadata correlation_id of the event';
COMMENT ON VIEW projector.audit IS
    'what users have done with projections: one row per call';
COMMENT ON COLUMN projector.audit.id IS
    'the number of the row';
COMMENT ON COLUMN projector.audit.happened_at IS
    'when the call ended';
COMMENT ON COLUMN projector.audit.role IS
    'the role that called the function';
COMMENT ON COLUMN projector.audit.session_role IS
    'the role that the session was opened with';
COMMENT ON COLUMN projector.audit.action IS
    'the function, without projector_ in front';
COMMENT ON COLUMN projector.audit.projection_name IS
    'the projection as it was called then; null if the call was for all';
COMMENT ON COLUMN projector.audit.tenant_id IS
    'the tenant; null if the call was for all, or for none';
COMMENT ON COLUMN projector.audit.arguments IS
    'the arguments that were not null, never the content of events';
COMMENT ON COLUMN projector.audit.result IS
    'what the function returned, or how many rows';

-- ---- 65_metrics.sql ----
-- What monitoring systems want to know.  The functions return rows only to users
-- who may read the views.
CREATE FUNCTION projector.metrics_of_projections(
    OUT projection_name text, OUT events_applied_total bigint,
    OUT events_failed_total bigint, OUT events_dead_total bigint,
    OUT batches_total bigint, OUT apply_seconds_total double precision,
    OUT lag_seconds double precision, OUT lag_events bigint,
    OUT outbox_pending bigint, OUT outbox_held bigint,
    OUT outbox_failed bigint, OUT dead_events bigint,
    OUT runs_active bigint, OUT runs_failed bigint,
    OUT run_progress_ratio double precision, OUT paused bigint,
    OUT cannot_run bigint, OUT work_waits_without_worker bigint,
    OUT log_events bigint, OUT workers bigint, OUT workers_busy bigint,
    OUT tail_blocked_seconds double precision,
    OUT apply_latency_seconds double precision[],
    OUT apply_latency_seconds_bucket bigint[],
    OUT apply_latency_seconds_sum double precision,
    OUT apply_latency_seconds_count bigint)
RETURNS SETOF record
LANGUAGE C VOLATILE PARALLEL UNSAFE ROWS 10
AS 'MODULE_PATHNAME', 'projector_metrics_of_projections';
CREATE FUNCTION projector.metrics_of_tenants(
    OUT projection_name text, OUT tenant_id text, OUT state text,
    OUT lag_seconds double precision, OUT lag_events bigint,
    OUT dead_events bigint)
RETURNS SETOF record
LANGUAGE C VOLATILE PARALLEL UNSAFE ROWS 20
AS 'MODULE_PATHNAME', 'projector_metrics_of_tenants';

-- One row per projection, and one without a name for the database.
CREATE VIEW projector.metrics AS
SELECT m.* FROM projector.metrics_of_projections() m;

CREATE VIEW projector.metrics_by_tenant AS
SELECT m.* FROM projector.metrics_of_tenants() m;

-- Returns all metrics in the text format of Prometheus.
-- Tables: all of ours (read).
CREATE FUNCTION projector_openmetrics() RETURNS text
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_openmetrics';
COMMENT ON FUNCTION projector_openmetrics IS
    'all metrics, in the text format of Prometheus';

COMMENT ON VIEW projector.metrics IS
    'figures for monitoring: one row per projection, and one for the database';
COMMENT ON COLUMN projector.metrics.projection_name IS
    'the projection; null in the row of the database';
COMMENT ON COLUMN projector.metrics.events_applied_total IS
    'how many events have been applied, replays included';
COMMENT ON COLUMN projector.metrics.events_failed_total IS
    'how many attempts failed';
COMMENT ON COLUMN projector.metrics.events_dead_total IS
    'how many events have become dead';
COMMENT ON COLUMN projector.metrics.batches_total IS
    'how many batches applied something';
COMMENT ON COLUMN projector.metrics.apply_seconds_total IS
    'how long these batches took';
COMMENT ON COLUMN projector.metrics.lag_seconds IS
    'the age of the oldest event that is not applied; null if it is off, in mode shadow or dormant';
COMMENT ON COLUMN projector.metrics.lag_events IS
    'how many events are not applied; 10000 means that many or more';
COMMENT ON COLUMN projector.metrics.outbox_pending IS
    'queued events that wait for a worker; at most 10000';
COMMENT ON COLUMN projector.metrics.outbox_held IS
    'queued events that wait for a failed or dead one; at most 10000';
COMMENT ON COLUMN projector.metrics.outbox_failed IS
    'queued events that failed and will be tried again; at most 10000';
COMMENT ON COLUMN projector.metrics.dead_events IS
    'queued events that were given up; at most 10000';
COMMENT ON COLUMN projector.metrics.runs_active IS
    'runs that are queued or at work';
COMMENT ON COLUMN projector.metrics.runs_failed IS
    'tenants whose last run has failed';
COMMENT ON COLUMN projector.metrics.run_progress_ratio IS
    'how much of the active runs is done, from 0 to 1; null if there is none';
COMMENT ON COLUMN projector.metrics.paused IS
    '1 if it is paused for all tenants, otherwise 0';
COMMENT ON COLUMN projector.metrics.cannot_run IS
    '1 if something that it needs is missing, otherwise 0';
COMMENT ON COLUMN projector.metrics.work_waits_without_worker IS
    '1 if it has work and the database has no worker, otherwise 0';
COMMENT ON COLUMN projector.metrics.log_events IS
    'the position of the last event: how many were appended, including those rolled back';
COMMENT ON COLUMN projector.metrics.workers IS
    'how many workers this database has; idle ones may leave';
COMMENT ON COLUMN projector.metrics.workers_busy IS
    'how many of them are not idle';
COMMENT ON COLUMN projector.metrics.tail_blocked_seconds IS
    'the age of the oldest open transaction that has appended events; 0 if there is none';
COMMENT ON COLUMN projector.metrics.apply_latency_seconds IS
    'the upper bounds of the histograms buckets';
COMMENT ON COLUMN projector.metrics.apply_latency_seconds_bucket IS
    'how many events took at most that long from their append until a worker applied them, since the server started';
COMMENT ON COLUMN projector.metrics.apply_latency_seconds_sum IS
    'how long all of them took together';
COMMENT ON COLUMN projector.metrics.apply_latency_seconds_count IS
    'how many they are';

COMMENT ON VIEW projector.metrics_by_tenant IS
    'the tenants that are worst off, for monitoring: at most projector.metrics_tenants';
COMMENT ON COLUMN projector.metrics_by_tenant.projection_name IS
    'the projection';
COMMENT ON COLUMN projector.metrics_by_tenant.tenant_id IS
    'the tenant';
COMMENT ON COLUMN projector.metrics_by_tenant.state IS
    'as in status_by_tenant';
COMMENT ON COLUMN projector.metrics_by_tenant.lag_seconds IS
    'the age of the oldest event that is not applied';
COMMENT ON COLUMN projector.metrics_by_tenant.lag_events IS
    'how many events are not applied; 10000 means that many or more';
COMMENT ON COLUMN projector.metrics_by_tenant.dead_events IS
    'queued events that were given up; at most 10000';

-- ---- 90_privileges.sql ----
REVOKE ALL ON projector.audit_log, projector.audit, projector.metrics,
    projector.metrics_by_tenant FROM PUBLIC;
REVOKE ALL ON FUNCTION
    projector.audit_guard, projector_openmetrics,
    projector.metrics_of_projections, projector.metrics_of_tenants
    FROM PUBLIC;
GRANT EXECUTE ON FUNCTION
    projector.metrics_of_projections, projector.metrics_of_tenants
    TO PUBLIC;
SELECT pg_catalog.pg_extension_config_dump('projector.audit_log', '');
SELECT pg_catalog.pg_extension_config_dump('projector.audit_log_id_seq', '');

-- ---- progress, of 30_views.sql, 36_comments.sql and 90_privileges.sql ----
-- What sessions of this database are doing: rebuild, catch_up, reset, verify,
-- preview or drain.  Returns rows only to users who may read view progress.
-- Tables: none; it reads shared memory.
CREATE FUNCTION projector.session_progress(
    OUT pid integer, OUT operation text, OUT phase text,
    OUT projection_id integer, OUT tenant_id text,
    OUT events_done bigint, OUT events_total bigint,
    OUT tenants_done bigint, OUT tenants_total bigint,
    OUT since timestamptz)
RETURNS SETOF record
LANGUAGE C VOLATILE PARALLEL RESTRICTED ROWS 1
AS 'MODULE_PATHNAME', 'projector_session_progress';

-- Projections that read the log first, because they are new, were reset or
-- switched on.  Returns rows only to users who may read view progress.
-- Tables: projection_cursors, of which it reads no more than a part.
CREATE FUNCTION projector.backfills(
    OUT projection_id integer, OUT state text, OUT done float8,
    OUT tenants_done bigint, OUT tenants_total bigint)
RETURNS SETOF record
LANGUAGE C VOLATILE PARALLEL UNSAFE ROWS 1
AS 'MODULE_PATHNAME', 'projector_backfills';

-- The active runs, what sessions do, and backfills.  Totals are estimates: what
-- has exceeded its total is shown as almost done.
CREATE OR REPLACE VIEW projector.progress AS
SELECT a.run_id, a.projection_name, a.tenant_id, a.mode, a.state,
       coalesce(a.percent,
                round(100.0 * a.events_done / nullif(a.events_total, 0), 1)) AS percent,
       round(a.rate)::bigint AS per_second,
       CASE WHEN a.rate > 0
            THEN pg_catalog.make_interval(secs => pg_catalog.round(
                (a.events_total - a.events_done) / a.rate)::float8) END AS time_left,
       a.pid, a.phase, a.events_done, a.events_total, a.tenants_done, a.tenants_total,
       a.since
FROM (SELECT o.run_id, o.projection_name, o.tenant_id, o.mode, o.state, o.percent,
             o.pid, o.phase, o.events_done,
             CASE WHEN o.events_total IS NOT NULL
                  THEN greatest(o.events_total, o.events_done) END AS events_total,
             o.tenants_done,
             CASE WHEN o.tenants_total IS NOT NULL
                  THEN greatest(o.tenants_total, o.tenants_done) END AS tenants_total,
             o.since,
             o.events_done / nullif(extract(epoch FROM
                 clock_timestamp() - o.since), 0)::float8 AS rate
      FROM (SELECT r.id AS run_id, r.projection_name, r.tenant_id, r.mode, r.state,
                   NULL::numeric AS percent, NULL::integer AS pid, NULL::text AS phase,
                   r.processed_events AS events_done, r.total_events AS events_total,
                   NULL::bigint AS tenants_done, NULL::bigint AS tenants_total,
                   r.started_at AS since
            FROM projector.runs r
            WHERE r.state IN ('queued', 'running')
            UNION ALL
            SELECT NULL, p.name, s.tenant_id COLLATE "C", s.operation, 'running',
                   NULL, s.pid, s.phase, s.events_done, s.events_total,
                   s.tenants_done, s.tenants_total, s.since
            FROM projector.session_progress() s
            LEFT JOIN projector.projections p USING (projection_id)
            UNION ALL
            SELECT NULL, p.name, NULL, 'backfill', b.state,
                   CASE WHEN b.done IS NOT NULL
                        THEN least(round(100 * b.done::numeric, 1), 99.9) END,
                   NULL, NULL, NULL, NULL,
                   b.tenants_done, b.tenants_total, NULL
            FROM projector.backfills() b
            JOIN projector.projections p USING (projection_id)) o) a
ORDER BY a.state DESC, a.run_id;

COMMENT ON VIEW projector.progress IS
    'how far the active runs, the operations of sessions and new read models are';
COMMENT ON COLUMN projector.progress.run_id IS
    'the run: its row is in projector.runs; null for anything else';
COMMENT ON COLUMN projector.progress.projection_name IS
    'the projection';
COMMENT ON COLUMN projector.progress.tenant_id IS
    'the tenant, or the one that is processed now; null if it is of several at once';
COMMENT ON COLUMN projector.progress.mode IS
    'rebuild, catch_up, reset, verify, preview, drain or backfill';
COMMENT ON COLUMN projector.progress.state IS
    'queued, running or paused';
COMMENT ON COLUMN projector.progress.percent IS
    'how much is done, of an estimate';
COMMENT ON COLUMN projector.progress.per_second IS
    'events per second since it began';
COMMENT ON COLUMN projector.progress.time_left IS
    'how long the rest takes at that rate';
COMMENT ON COLUMN projector.progress.pid IS
    'the session that does it; null for runs and backfills, which workers do';
COMMENT ON COLUMN projector.progress.phase IS
    'what the session does now';
COMMENT ON COLUMN projector.progress.events_done IS
    'how many events it has processed';
COMMENT ON COLUMN projector.progress.events_total IS
    'how many there are: an estimate';
COMMENT ON COLUMN projector.progress.tenants_done IS
    'how many tenants are done, if there may be several';
COMMENT ON COLUMN projector.progress.tenants_total IS
    'how many there are: from 10000 on an estimate';
COMMENT ON COLUMN projector.progress.since IS
    'when it began, if that is known';

REVOKE ALL ON FUNCTION projector.session_progress, projector.backfills FROM PUBLIC;
GRANT EXECUTE ON FUNCTION projector.session_progress, projector.backfills TO PUBLIC;
