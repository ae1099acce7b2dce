-- Figures for monitoring if tenants have modes of their own, or very old events.
\pset format unaligned
\set SHOW_CONTEXT never
CREATE EXTENSION projector;
CREATE TABLE counts (tenant_id text, id text, n int NOT NULL DEFAULT 0, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
CREATE VIEW figures AS SELECT projection_name AS name, lag_seconds > 0 AS late, lag_events AS lag, outbox_pending AS pending,
    work_waits_without_worker AS waits FROM projector.metrics WHERE projection_name IS NOT NULL;
SELECT projector_create('counts', fold_columns => '{"n": "s.n + (e.payload ->> ''by'')::int"}', targets => '{counts}', options => '{"max_attempts": 1}');
SELECT projector_drain();
-- the sum is right however old events are
INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload, recorded_at)
SELECT 't4', 'old' || i, 1, 'Added', '{"by": 1}', '1800-01-01' FROM generate_series(1, 3000) i;
SELECT projector_drain('counts');
SELECT apply_latency_seconds_sum / 3000 > 200 * 365 * 86400::float8 AS right FROM projector.metrics WHERE projection_name IS NULL;
-- tenants for which it is off do not count, nor do those in mode shadow
SELECT projector_append(tenant, 'b', 'Added', '{"by": 1}') FROM unnest('{t1,t2}'::text[]) tenant;
TABLE figures;
SELECT projector_set_mode('counts', 'off', 't1'), projector_set_mode('counts', 'shadow', 't2');
TABLE figures;
SELECT projector_drain('counts');
TABLE figures;
SELECT tenant_id, state FROM projector.status_by_tenant WHERE projection_name = 'counts' ORDER BY 1;
SELECT tenant_id FROM projector.metrics_by_tenant WHERE projection_name = 'counts';
-- nor does a projection in mode shadow, unless a tenant has another mode
SELECT projector_set_mode('counts', 'shadow');
TABLE figures;
SELECT projector_set_mode('counts', 'async', 't1');
TABLE figures;
-- the same if it is off for all others; nobody works for a tenant that is paused
SELECT projector_set_mode('counts', 'off');
SELECT projector_set_mode('counts', 'async', 't1');
TABLE figures;
SELECT projector_pause('counts', 't1');
TABLE figures;
SELECT projector_resume('counts', 't1'), projector_set_mode('counts', 'async');
SELECT projector_drain('counts');
TABLE figures;
-- in log order nobody works for a tenant that is stopped at a dead event
SELECT projector_drop('counts');
SELECT projector_create('counts', fold_columns => '{"n": "s.n + (e.payload ->> ''by'')::int"}', targets => '{counts}', ordering => 'log', options => '{"max_attempts": 1}');
SELECT projector_rebuild('counts') > 0 AS rebuilt;
SELECT projector_append('t1', 'b', 'Added', '{"by": "x"}'), projector_append('t1', 'b', 'Added', '{"by": 1}');
TABLE figures;
SELECT projector_drain('counts');
TABLE figures;
SELECT projector_append('t2', 'b', 'Added', '{"by": 1}');
TABLE figures;
DROP EXTENSION projector CASCADE;
DROP TABLE counts;
