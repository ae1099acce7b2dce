-- Figures for monitoring: projector.metrics, metrics_by_tenant, and the same as
-- text.
\pset format unaligned
\set SHOW_CONTEXT never
CREATE EXTENSION projector;
\i sql/include/try.sql
CREATE TABLE counts (tenant_id text, id text, n int NOT NULL DEFAULT 0, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
CREATE TABLE names (LIKE counts INCLUDING ALL);
CREATE TABLE firsts (LIKE counts INCLUDING ALL);
-- rows without what depends on the time
CREATE VIEW figures AS SELECT projection_name AS name, events_applied_total AS applied, events_failed_total AS failed, events_dead_total AS dead,
    batches_total AS batches, apply_seconds_total > 0 AS took, lag_seconds > 0 AS late, lag_events AS lag, outbox_pending AS pending,
    outbox_held AS held, outbox_failed AS retry, dead_events, runs_active AS active, runs_failed AS runs_failed, run_progress_ratio AS progress,
    paused, cannot_run, work_waits_without_worker AS waits FROM projector.metrics WHERE projection_name IS NOT NULL;
CREATE VIEW base AS SELECT log_events, workers, workers_busy, tail_blocked_seconds, array_length(apply_latency_seconds, 1) AS bounds,
    array_length(apply_latency_seconds_bucket, 1) AS buckets, apply_latency_seconds_count AS count, apply_latency_seconds_sum > 0 AS sum,
    apply_latency_seconds_bucket[17] AS within_30_minutes FROM projector.metrics WHERE projection_name IS NULL;
-- nothing yet
TABLE figures;
SELECT log_events, workers, tail_blocked_seconds, bounds, buckets FROM base;
SELECT count AS count_before, within_30_minutes AS soon_before FROM base \gset
-- queued, and no worker
SELECT projector_create('counts', fold_columns => '{"n": "s.n + (e.payload ->> ''by'')::int"}', targets => '{counts}', options => '{"max_attempts": 1}');
SELECT projector_create('names', fold_columns => '{"n": "s.n + 1"}', targets => '{names}', event_types => '{Named}', mode => 'follow');
SELECT projector_create('firsts', fold_columns => '{"n": "s.n + 1"}', targets => '{firsts}', mode => 'inline');
TABLE figures;
SELECT projector_drain();
SELECT projector_append('t' || i % 3, 'a' || i, 'Added', '{"by": 1}') FROM generate_series(1, 6) i;
SELECT projector_append('t1', 'a1', 'Named', '{"by": 1}');
TABLE figures;
SELECT log_events, workers, workers_busy, tail_blocked_seconds FROM base;
-- applied: events that an append applies itself have not waited
SELECT projector_drain();
TABLE figures;
SELECT count - :count_before AS counted, sum, within_30_minutes - :soon_before AS soon FROM base;
-- a dead event, and those behind it
SELECT projector_append('t1', 'a1', 'Added', '{"by": "x"}'), projector_append('t1', 'a1', 'Added', '{"by": 1}');
SELECT projector_append('t2', 'a2', 'Added', '{"by": 1}');
SELECT projector_drain();
SELECT projector_append('t2', 'a2', 'Added', '{"by": 1}');
TABLE figures;
SELECT projection_name, tenant_id, state, lag_events, dead_events FROM projector.metrics_by_tenant;
SET projector.metrics_tenants = 1;
SELECT projection_name, tenant_id, state, lag_events, dead_events FROM projector.metrics_by_tenant;
SET projector.metrics_tenants = 0;
SELECT projection_name, tenant_id, state, lag_events, dead_events FROM projector.metrics_by_tenant;
RESET projector.metrics_tenants;
-- replays are not counted as waiting, and runs are shown
SELECT count AS count_before FROM base \gset
SELECT projector_rebuild('names'), projector_skip('counts', 't1', 'a1', 3, 'no number');
SELECT projector_drain();
SELECT count - :count_before AS counted FROM base;
SELECT count(*) FROM projector_start_run('counts');
SELECT name, active, progress, waits FROM figures WHERE active > 0;
SELECT projector_drain();
SELECT name, active, progress, waits FROM figures WHERE name = 'counts';
-- paused, off, and for one tenant
SELECT projector_pause('counts'), projector_pause('names', 't1'), projector_set_mode('firsts', 'off');
SELECT projector_append('t1', 'a1', 'Named', '{"by": 1}');
TABLE figures;
SELECT projection_name, tenant_id, state, lag_events, dead_events FROM projector.metrics_by_tenant;
-- what the views agree on
SELECT m.name FROM figures m JOIN projector.status s ON s.projection_name = m.name
WHERE (m.lag, m.dead_events) IS DISTINCT FROM (CASE WHEN s.mode <> 'off' THEN s.lag_events END, s.dead);
-- a rolled back transaction has applied nothing
SELECT projector_resume('counts');
SELECT count AS count_before FROM base \gset
BEGIN;
SELECT projector_drain('counts');
ROLLBACK;
SELECT count - :count_before AS counted FROM base;
BEGIN;
SAVEPOINT applied;
SELECT projector_drain('counts');
ROLLBACK TO applied;
SAVEPOINT again;
SAVEPOINT inner_one;
SELECT projector_drain('counts');
RELEASE again;
COMMIT;
SELECT count - :count_before AS counted FROM base;
-- as text, with names that must be quoted
SELECT projector_alter('firsts', '{}'), projector_set_mode('firsts', 'async');
CREATE TABLE odd (LIKE counts INCLUDING ALL);
SELECT projector_create(E'a "quoted" \\ na\nme', fold_columns => '{"n": "s.n + (e.payload ->> ''no'')::int / 0"}', targets => '{odd}', options => '{"max_attempts": 1}');
SELECT projector_append(E'te\\na\n"nt"', 'a', 'Added', '{"no": 1}');
SELECT projector_drain();
SELECT regexp_replace(line, '^(projector_\w*seconds\w*{.*}) .*', '\1 N') FROM regexp_split_to_table(replace(projector_openmetrics(), format('datname="%s"', current_database()), 'datname="here"'), '\n') line
WHERE line !~ 'apply_latency_seconds_(bucket|count)|^projector_tenant';
SELECT line FROM regexp_split_to_table(replace(projector_openmetrics(), format('datname="%s"', current_database()), 'datname="here"'), '\n') line WHERE line ~ '^projector_tenant_(lag|dead)_events' ORDER BY line COLLATE "C";
-- who may see it
CREATE ROLE regress_metrics;
SET ROLE regress_metrics;
SELECT try('SELECT projector_openmetrics()');
SELECT try('TABLE projector.metrics');
RESET ROLE;
GRANT USAGE ON SCHEMA projector TO regress_metrics;
SET ROLE regress_metrics;
SELECT count(*) FROM projector.metrics_of_projections();
SELECT count(*) FROM projector.metrics_of_tenants();
RESET ROLE;
SELECT projector_grant('regress_metrics', 'reader');
SET ROLE regress_metrics;
SELECT projector_openmetrics() LIKE '%projector_dead_events%' AS shown;
SELECT count(*) FROM projector.metrics;
SELECT count(*) > 0 AS shown FROM projector.metrics_by_tenant;
RESET ROLE;
DROP OWNED BY regress_metrics;
DROP ROLE regress_metrics;
DROP FUNCTION try;
DROP EXTENSION projector CASCADE;
DROP TABLE counts, names, firsts, odd;
