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
