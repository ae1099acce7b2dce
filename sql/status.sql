-- How things are: projector.status, projector.lag, projector_blockers,
-- projector.alerts, counters and retention.
\set VERBOSITY terse
CREATE EXTENSION projector;
CREATE TABLE model (tenant_id text, id text, path text NOT NULL DEFAULT '',
    last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
CREATE TABLE ordered (tenant_id text, v text);
CREATE TABLE poison (v text);
-- (it only claims to be immutable, so that the test can change its mind)
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
CREATE VIEW status AS
    SELECT projection_name AS name, tenant_id AS t, mode, state, why, lag_events AS lag, lag_time IS NOT NULL AS since, pending, held, failed, dead,
        error_count AS errors, last_error, stale
    FROM projector.status;
CREATE VIEW counters AS
    SELECT projection_name AS name, tenant_id AS t, applied_count AS applied, failed_count AS failed, dead_count AS dead, batch_count AS batches,
        apply_time > '0' AS time, last_applied_at IS NOT NULL AS at
    FROM projector.status;
CREATE VIEW blockers AS
    SELECT projection_name AS name, tenant_id AS t, lag_events AS lag, blocker, regexp_replace(detail, '\d+ of about \d+', 'some of some') AS detail, since IS NOT NULL AS since,
        regexp_replace(remedy, 'at [^;]*;', 'at some time;') AS remedy
    FROM projector_blockers() WHERE blocker <> 'no worker';

-- nothing there, nothing to say
SELECT * FROM status;
SELECT count(*) FROM projector_blockers();
-- events that nobody has seen yet
SELECT projector_append('t', 'a', 'A', '"1"'), projector_append('t', 'a', 'B', '"2"'), projector_append('t', 'b', 'A', '"3"'), projector_append('u', 'a', 'A', '"4"');
SELECT * FROM status;
SELECT projection_name, tenant_id, lag_events, lag_time < '1 day' AS recent, oldest_log_seq, last_log_seq FROM projector.lag ORDER BY 1, 2;
SELECT DISTINCT blocker, remedy FROM projector_blockers();
SELECT projector_drain();
SELECT * FROM status;
SELECT * FROM counters;
SELECT count(*) FROM projector_blockers();

-- the oldest event decides, whatever has been applied since
INSERT INTO poison VALUES ('5');
SELECT projector_append('t', 'a', 'A', '"5"'), projector_append('t', 'a', 'A', '"6"'), projector_append('t', 'b', 'A', '"7"');
SELECT projector_drain();
SELECT * FROM status WHERE t = 't';
SELECT projection_name, tenant_id, lag_events, oldest_log_seq FROM projector.lag WHERE lag_events > 0 ORDER BY 1, 2;
SELECT * FROM blockers;
SELECT projection_name, tenant_id, alert, events, example_log_seq, error_message FROM projector.alerts ORDER BY 1, 2, 3;
-- once more, and it is dead
SELECT projector_retry('model', 't', 'a', 3);
SELECT * FROM status WHERE t = 't' AND name = 'model';
SELECT * FROM blockers WHERE name = 'model';
SELECT projection_name, tenant_id, alert, events, example_log_seq, error_message FROM projector.alerts ORDER BY 1, 2, 3;
SELECT * FROM counters WHERE t = 't';
-- mended
DELETE FROM poison;
SELECT count(*) FROM projector_requeue_dead();
SELECT projector_drain();
SELECT * FROM status WHERE t = 't';
SELECT count(*) FROM projector.alerts;

-- paused, off, in a run, in shadow, dormant
SELECT projector_append('t', 'a', 'A', '"8"');
SELECT projector_pause('model', 't', 'to look at it');
SELECT name, t, regexp_replace(replace(why, current_user, 'me'), 'since .*:', 'since then:') AS why, lag FROM status WHERE name = 'model';
SELECT paused_at > now() - interval '1 day' AS at, paused_by = current_user AS by FROM projector.status WHERE projection_name = 'model' AND tenant_id = 't';
SELECT name, t, blocker, replace(detail, current_user, 'me') AS detail, since, remedy FROM blockers WHERE name = 'model';
SELECT projector_resume('model', 't');
SELECT projector_set_mode('model', 'off', 't');
SELECT * FROM status WHERE name = 'model' AND t = 't';
SELECT projector_append('t', 'a', 'A', '"9"');
SELECT lag FROM status WHERE name = 'model' AND t = 't';
SELECT * FROM blockers WHERE name = 'model';
SELECT projector_set_mode('model', NULL, 't');
SELECT projector_drain() > 0 AS drained;
SELECT lag, state FROM status WHERE name = 'model' AND t = 't';
UPDATE projector.projection_cursors SET run_id = (SELECT projector_start_run('model', tenant_id => 't')) WHERE tenant_id = 't' AND projection_id = 1;
SELECT projector_append('t', 'a', 'A', '"10"');
SELECT why, lag FROM status WHERE name = 'model' AND t = 't';
SELECT projector_cancel_run(max(id)) FROM projector.runs;
UPDATE projector.projection_cursors SET run_id = NULL;
SELECT projector_drain() > 0 AS drained;
UPDATE projector.projections SET home = 'elsewhere' WHERE name = 'model';
SELECT projector_append('t', 'a', 'A', '"11"');
SELECT why, lag FROM status WHERE name = 'model' AND t = 't';
SELECT * FROM blockers WHERE name = 'model';
SELECT projector_adopt();
SELECT projector_drain() > 0 AS drained;
SELECT why, lag, state FROM status WHERE name = 'model' AND t = 't';

-- a definition that is not the one the read model was made with
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

-- what is applied inline is counted, too
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

-- history is removed, and decisions are not
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

-- a reader with the README's grants
CREATE ROLE regress_reader;
GRANT USAGE ON SCHEMA projector TO regress_reader;
GRANT SELECT ON projector.status, projector.lag, projector.alerts, projector.digests, projector.runs, projector.progress TO regress_reader;
GRANT EXECUTE ON FUNCTION projector_blockers, projector.is_home, projector.definition_now, projector.problem, projector.digest_add, projector.digest_sum TO regress_reader;
SET ROLE regress_reader;
SELECT count(*) FROM projector.status;
SELECT count(*) FROM projector.alerts;
SELECT count(*) FROM projector.digests;
SELECT count(*) FROM projector_blockers();
SELECT projector_prune();
RESET ROLE;

SET client_min_messages = warning;
DROP EXTENSION projector CASCADE;
DROP OWNED BY regress_reader;
DROP TABLE model, ordered, poison;
DROP FUNCTION eat;
DROP ROLE regress_reader;
