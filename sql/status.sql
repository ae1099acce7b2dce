-- Reports: projector.status, projector.status_by_tenant,
-- projector.problems, projector_health(), counters and retention.
\set VERBOSITY terse
CREATE EXTENSION projector;
CREATE TABLE model (tenant_id text, id text, path text NOT NULL DEFAULT '',
    last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
CREATE TABLE ordered (tenant_id text, v text);
CREATE TABLE poison (v text);
-- (it is wrongly declared IMMUTABLE, so that the test can change its result)
CREATE FUNCTION eat(v text) RETURNS text IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM poison p WHERE p.v = eat.v) THEN
        RAISE EXCEPTION 'poisoned by %', v;
    END IF;
    RETURN v;
END $$;
CREATE FUNCTION note(e projector.event) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO ordered VALUES (e.tenant_id, eat(e.payload#>>'{}'));
END $$;
SELECT projector_create('model', fold_columns => '{"path": "s.path || eat(e.payload#>>''{}'')"}', targets => '{model}',
    event_types => '{A}', options => '{"max_attempts": 2, "retry_base": "1 h", "retry_max": "1 h", "error_threshold": 2}');
SELECT projector_create('ordered', handler => 'note', targets => '{ordered}', ordering => 'log', options => '{"max_attempts": 1}');
CREATE FUNCTION plain(t text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT regexp_replace(regexp_replace(regexp_replace(regexp_replace(t, '\d{4}-\d\d-\d\d [0-9:]+ \w+', 'TIME', 'g'), '^by \w+', 'by ME'),
        'projector.enabled = off|no worker runs here', 'no worker'), 'of about \d+', 'of about N')
$$;
CREATE VIEW status AS
    SELECT projection_name AS name, tenant_id AS t, mode, state, plain(why) AS why, cursor_state, lag_events AS lag, lag_time IS NOT NULL AS since, pending, held, failed, dead,
        error_count AS errors, last_error, stale
    FROM projector.status_by_tenant;
CREATE VIEW counters AS
    SELECT projection_name AS name, tenant_id AS t, applied_count AS applied, failed_count AS failed, dead_count AS dead, batch_count AS batches,
        apply_time > '0' AS time, last_applied_at IS NOT NULL AS at
    FROM projector.status_by_tenant;
-- (no worker runs in these tests)
CREATE VIEW problems AS
    SELECT level, problem, projection_name AS name, tenant_id AS t, since IS NOT NULL AS since, events, plain(detail) AS detail, remedy
    FROM projector.problems WHERE problem <> 'no_worker';

-- no projections, no rows
SELECT * FROM status;
SELECT projection_name, mode, state, tenants_not_ok, lag_events, lag_time, dead, why FROM projector.status;
SELECT * FROM problems;
SELECT * FROM projector_health();
-- events that no drain has read yet
SELECT projector_append('t', 'a', 'A', '"1"'), projector_append('t', 'a', 'B', '"2"'), projector_append('t', 'b', 'A', '"3"'), projector_append('u', 'a', 'A', '"4"');
SELECT * FROM status;
SELECT projection_name, tenant_id, lag_events, lag_time < '1 day' AS recent, oldest_log_seq, last_log_seq FROM projector.status_by_tenant ORDER BY 1, 2;
SELECT projection_name, mode, state, tenants_not_ok, lag_events, lag_time < '1 day' AS recent, dead, plain(why) AS why FROM projector.status;
SELECT level, problem, projection_name, since IS NOT NULL AS since, events, plain(detail) AS detail FROM projector.problems;
SELECT level, plain(reason) AS reason FROM projector_health();
SELECT projector_drain();
SELECT * FROM status;
SELECT * FROM counters;
SELECT count(*) FROM projector.problems;

-- the oldest unapplied event decides, even if later ones are applied
INSERT INTO poison VALUES ('5');
SELECT projector_append('t', 'a', 'A', '"5"'), projector_append('t', 'a', 'A', '"6"'), projector_append('t', 'b', 'A', '"7"');
SELECT projector_drain();
SELECT * FROM status WHERE t = 't';
SELECT projection_name, tenant_id, lag_events, oldest_log_seq FROM projector.status_by_tenant WHERE lag_events > 0 ORDER BY 1, 2;
SELECT * FROM problems;
-- one more failure, and it is dead
SELECT projector_retry('model', 't', 'a', 3);
SELECT * FROM status WHERE t = 't' AND name = 'model';
SELECT * FROM problems WHERE name = 'model';
SELECT projection_name, mode, state, tenants_not_ok, lag_events, dead, plain(why) AS why FROM projector.status;
SELECT level, plain(reason) AS reason FROM projector_health();
SELECT * FROM counters WHERE t = 't';
-- repaired
DELETE FROM poison;
SELECT * FROM projector_requeue();
SELECT projector_drain();
SELECT * FROM status WHERE t = 't';
SELECT count(*) FROM projector.problems;

-- paused, off, in a run, in shadow, dormant
SELECT projector_append('t', 'a', 'A', '"8"');
SELECT projector_pause('model', 't', 'to look at it');
SELECT name, t, state, why, lag FROM status WHERE name = 'model';
SELECT state, plain(why) AS why FROM projector.status WHERE projection_name = 'ordered';
SELECT paused_at > now() - interval '1 day' AS at, paused_by = current_user AS by FROM projector.status_by_tenant WHERE projection_name = 'model' AND tenant_id = 't';
SELECT * FROM problems;
SELECT remedy FROM problems \gexec
SELECT count(*) FROM problems;
SELECT projector_set_mode('model', 'off', 't');
SELECT * FROM status WHERE name = 'model' AND t = 't';
SELECT projector_append('t', 'a', 'A', '"9"');
SELECT lag FROM status WHERE name = 'model' AND t = 't';
SELECT * FROM problems WHERE name = 'model';
SELECT projector_set_mode('model', NULL, 't');
SELECT projector_drain() > 0 AS drained;
SELECT lag, state, cursor_state FROM status WHERE name = 'model' AND t = 't';
UPDATE projector.projection_cursors SET run_id = (SELECT projector_start_run('model', tenant_id => 't')) WHERE tenant_id = 't' AND projection_id = 1;
SELECT projector_append('t', 'a', 'A', '"10"');
SELECT state, why, lag FROM status WHERE name = 'model' AND t = 't';
SELECT projector_cancel_run(max(id)) FROM projector.runs;
UPDATE projector.projection_cursors SET run_id = NULL;
SELECT projector_drain() > 0 AS drained;
UPDATE projector.projections SET home = 'elsewhere' WHERE name = 'model';
SELECT projector_append('t', 'a', 'A', '"11"');
SELECT state, why, lag FROM status WHERE name = 'model' AND t = 't';
SELECT projection_name, state, plain(why) AS why FROM projector.status;
SELECT * FROM problems;
SELECT remedy FROM problems \gexec
SELECT projector_drain() > 0 AS drained;
SELECT state, why, lag, cursor_state FROM status WHERE name = 'model' AND t = 't';

-- a definition other than the one that made the read model
SELECT projector_alter('model', '{"event_types": ["A", "B"]}');
SELECT name, t, stale FROM status WHERE name = 'model';
SELECT projector_rebuild('model', 't') > 0 AS rebuilt;
SELECT name, t, stale FROM status WHERE name = 'model';
CREATE OR REPLACE FUNCTION note(e projector.event) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO ordered VALUES (e.tenant_id, eat(e.payload#>>'{}') || '!');
END $$;
SELECT name, t, stale FROM status WHERE name = 'ordered';
SELECT projector_rebuild('ordered') > 0 AS rebuilt;
SELECT name, t, stale FROM status WHERE name = 'ordered';
DROP FUNCTION note CASCADE;
SELECT name, t, stale FROM status WHERE name = 'ordered';
SELECT projector_drop('ordered');

-- a changed definition, mode shadow, a projection that cannot run, a failed run
SELECT projector_alter('model', '{"event_types": ["A", "B", "C"]}');
SELECT * FROM problems;
SELECT remedy FROM problems \gexec
SELECT name, t, state, why FROM status;
UPDATE projector.projection_runs SET state = 'running', started_at = now() WHERE state = 'queued';
UPDATE projector.projection_runs SET state = 'failed', finished_at = now(), error_code = 'P0001', error_message = 'a test' WHERE state = 'running' AND tenant_id = 't';
UPDATE projector.projection_runs SET state = 'completed', finished_at = now() WHERE state = 'running';
UPDATE projector.projection_cursors SET definition_hash = (SELECT definition_hash FROM projector.projections);
SELECT * FROM problems;
SELECT level, plain(reason) AS reason FROM projector_health();
SELECT remedy FROM problems \gexec
SELECT projector_cancel_run(id) FROM projector.runs WHERE state = 'queued';
SELECT projector_set_mode('model', 'shadow');
SELECT name, t, state, why FROM status;
SELECT projector_append('t', 'd', 'A', '"1"');
SELECT name, t, state, why FROM status;
INSERT INTO poison VALUES ('1');
SELECT projector_drain();
SELECT name, t, state, why FROM status;
SELECT projection_name, mode, state, why FROM projector.status;
DELETE FROM poison;
SELECT projector_set_mode('model', 'async');
SELECT projector_drain();
SELECT name, t, state, why FROM status;
CREATE FUNCTION h(e projector.event) RETURNS void LANGUAGE sql AS '';
SELECT projector_create('h', handler => 'h', event_types => '{H}');
DROP FUNCTION h;
SELECT name, t, state, why FROM status WHERE name = 'h';
SELECT projection_name, mode, state, why FROM projector.status;
SELECT * FROM problems;
CREATE FUNCTION h(e projector.event) RETURNS void LANGUAGE sql AS '';
SELECT projector_alter('h', '{}');
SELECT state FROM projector.status WHERE projection_name = 'h';
SELECT projector_drop('h');
DROP FUNCTION h;
SELECT projector_pause('model', reason => 'all of it');
SELECT * FROM problems;
SELECT remedy FROM problems \gexec
SELECT * FROM problems;

-- events applied inline are counted too
SELECT projector_set_mode('model', 'inline');
SELECT projector_drain();
SELECT applied AS before FROM counters WHERE t = 't' \gset
SELECT projector_append('t', 'c', 'A', '"1"'), projector_append('t', 'c', 'A', '"2"');
SELECT applied - :before AS more, failed FROM counters WHERE t = 't';
INSERT INTO poison VALUES ('12');
SELECT projector_append('t', 'c', 'A', '"12"');
SELECT applied - :before AS more FROM counters WHERE t = 't';
SELECT projector_drain();
SELECT applied - :before AS more FROM counters WHERE t = 't';
SELECT count(*) FROM projector.projection_deltas;

-- history is removed, decisions to skip are not
SELECT projector_skip('model', 't', 'c', 3, 'bad');
SELECT projector_drain();
SELECT resolution, count(*) FROM projector.failures GROUP BY 1 ORDER BY 1;
SELECT state, count(*) FROM projector.runs GROUP BY 1;
SELECT projector_prune();
SELECT projector_prune('0') > 0 AS pruned;
SELECT resolution, count(*) FROM projector.failures GROUP BY 1 ORDER BY 1;
SELECT state, count(*) FROM projector.runs GROUP BY 1;
SELECT projector_prune('-1 day');
SELECT projector_prune(NULL);
SELECT setting, unit, context FROM pg_settings WHERE name = 'projector.retention';

-- a reader
CREATE ROLE regress_reader;
SELECT projector_grant('regress_reader', 'reader');
SET ROLE regress_reader;
SELECT count(*) FROM projector.status;
SELECT count(*) FROM projector.status_by_tenant;
SELECT count(*) FROM projector.problems;
SELECT count(*) FROM projector.progress;
SELECT count(*) FROM projector_health();
SELECT projector_prune();
RESET ROLE;

SET client_min_messages = warning;
DROP EXTENSION projector CASCADE;
DROP OWNED BY regress_reader;
DROP TABLE model, ordered, poison;
DROP FUNCTION eat, plain CASCADE;
DROP ROLE regress_reader;
