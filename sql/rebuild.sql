-- Rebuilding read models from the log, in the calling transaction.
\pset format unaligned
\pset tuples_only on
CREATE EXTENSION projector;
\i sql/include/try.sql
-- one read model per kind; the handler's rows refer to a table of its own
CREATE TABLE by_fold (tenant_id text, id text, total bigint NOT NULL DEFAULT 0, path text NOT NULL DEFAULT '',
    last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
CREATE TABLE by_statement (tenant_id text, events bigint, total bigint, PRIMARY KEY (tenant_id));
CREATE TABLE parents (tenant_id text, id text, PRIMARY KEY (tenant_id, id));
CREATE TABLE children (tenant_id text, id text, n bigint, again boolean, FOREIGN KEY (tenant_id, id) REFERENCES parents);
CREATE TABLE by_log (tenant_id text, colour text, path text NOT NULL DEFAULT '',
    last_event_id uuid, last_event_version bigint, last_log_seq bigint, PRIMARY KEY (tenant_id, colour));
CREATE FUNCTION handle(e projector.event) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF e.payload ? 'fail' THEN
        RAISE EXCEPTION 'cannot digest this';
    END IF;
    INSERT INTO parents VALUES (e.tenant_id, e.aggregate_id) ON CONFLICT DO NOTHING;
    INSERT INTO children VALUES (e.tenant_id, e.aggregate_id, e.sequence_number, projector_is_replay());
END $$;
SELECT projector_create('fold', targets => '{by_fold}',
    fold_columns => '{"total": "s.total + (e.payload->>''n'')::bigint", "path": "s.path || e.sequence_number || '' ''"}');
SELECT projector_create('statement', targets => '{by_statement}', statement => $$
    INSERT INTO by_statement AS t SELECT tenant_id, count(*), sum((payload->>'n')::bigint) FROM batch GROUP BY 1
    ON CONFLICT (tenant_id) DO UPDATE SET events = t.events + excluded.events, total = t.total + excluded.total$$);
SELECT projector_create('handler', handler => 'handle', targets => '{parents,children}', options => '{"batch_size": 2}');
SELECT projector_create('log', targets => '{by_log}', key => 'payload->>''colour''', options => '{"batch_size": 2}',
    fold_columns => '{"path": "s.path || e.aggregate_id || e.sequence_number || '' ''"}');
CREATE VIEW models AS
    SELECT 'fold' AS model, tenant_id, id, total || ': ' || path AS what FROM by_fold
    UNION ALL SELECT 'statement', tenant_id, '', events || ', ' || total FROM by_statement
    UNION ALL SELECT 'handler', tenant_id, id, string_agg(n::text, ' ' ORDER BY n) FROM children GROUP BY 2, 3
    UNION ALL SELECT 'log', tenant_id, colour, path FROM by_log;
SELECT count(projector_append(t, a, 'Added', jsonb_build_object('n', n, 'colour', (ARRAY['red', 'blue'])[n % 2 + 1])))
FROM generate_series(1, 3) n, unnest('{acme,beta}'::text[]) t, unnest('{a,b}'::text[]) a;
SELECT projector_drain();
SELECT * FROM models ORDER BY 1, 2, 3;
CREATE TABLE live AS TABLE models;
-- changes by hand are undone, for one tenant, for all, for one aggregate
UPDATE by_fold SET total = 0, last_event_version = 100;
DELETE FROM by_statement;
DELETE FROM children WHERE n = 2;
UPDATE by_log SET path = 'wrong';
INSERT INTO by_fold VALUES ('ghost', 'town', 1);
SELECT projector_rebuild('fold', 'acme', 'a');
SELECT model, tenant_id, id, what FROM models WHERE model = 'fold' ORDER BY 1, 2, 3;
SELECT projector_rebuild('fold', 'acme'), projector_rebuild('statement', 'acme'), projector_rebuild('handler', 'acme'), projector_rebuild('log', 'acme');
SELECT * FROM (TABLE models EXCEPT ALL TABLE live) d WHERE tenant_id = 'acme';
SELECT projector_rebuild('fold'), projector_rebuild('statement'), projector_rebuild('handler'), projector_rebuild('log');
SELECT * FROM (TABLE models EXCEPT ALL TABLE live) d;
SELECT * FROM (TABLE live EXCEPT ALL TABLE models) d;
SELECT bool_and(again) FROM children;
SELECT count(*) FROM projector.outbox;
SELECT state, count(*) FROM projector.projection_cursors GROUP BY 1;
SELECT projector_drain();
-- rolled back, nothing has changed
BEGIN;
SELECT projector_rebuild('handler');
ROLLBACK;
SELECT * FROM (TABLE live EXCEPT ALL TABLE models) d;
DELETE FROM children WHERE tenant_id = 'beta';
SELECT projector_rebuild('handler', 'beta');
SELECT * FROM (TABLE live EXCEPT ALL TABLE models) d;
-- a rebuild also applies waiting events; later appends are applied as usual
SELECT projector_append('acme', 'a', 'Added', '{"n": 4, "colour": "red"}');
SELECT projector_rebuild('fold', 'acme'), projector_rebuild('statement', 'acme'), projector_rebuild('handler', 'acme'), projector_rebuild('log', 'acme');
SELECT count(*) FROM projector.outbox;
SELECT projector_append('acme', 'a', 'Added', '{"n": 5, "colour": "red"}');
SELECT projector_drain();
SELECT * FROM models WHERE tenant_id = 'acme' ORDER BY 1, 2, 3;

-- a failing event: raised, and nothing is changed
SELECT projector_append('acme', 'b', 'Added', '{"n": 6, "colour": "red", "fail": 1}');
SELECT projector_append('acme', 'b', 'Added', '{"n": 7, "colour": "red"}');
SELECT projector_drain();
DROP TABLE live;
CREATE TABLE live AS TABLE models;
SELECT try($$SELECT projector_rebuild('handler', 'acme')$$);
SELECT * FROM (TABLE live EXCEPT ALL TABLE models) d;
SELECT aggregate_id, sequence_number, status FROM projector.outbox;
-- held, and the others continue
SELECT projector_alter('handler', '{"options": {"on_rebuild_error": "hold"}}');
SELECT projector_rebuild('handler', 'acme');
SELECT aggregate_id, sequence_number, status, attempt_count FROM projector.outbox ORDER BY log_seq;
SELECT * FROM (TABLE live EXCEPT ALL TABLE models) d;
-- skipped
SELECT projector_alter('handler', '{"options": {"on_rebuild_error": "skip"}}');
SELECT projector_rebuild('handler', 'acme');
SELECT count(*) FROM projector.outbox;
SELECT id, n FROM children WHERE tenant_id = 'acme' AND id = 'b' ORDER BY 2;
SELECT resolution, metadata->>'skip_reason' FROM projector.failures ORDER BY id;
-- skipped events stay skipped
SELECT projector_alter('handler', '{"options": {"on_rebuild_error": "raise"}}');
SELECT projector_rebuild('handler', 'acme');
SELECT id, n FROM children WHERE tenant_id = 'acme' AND id = 'b' ORDER BY 2;

-- it also works in mode off and while paused
SELECT projector_set_mode('fold', 'off');
SELECT projector_append('acme', 'c', 'Added', '{"n": 1, "colour": "blue"}');
SELECT projector_pause('statement');
SELECT projector_rebuild('fold', 'acme'), projector_rebuild('statement', 'acme');
SELECT what FROM models WHERE (model, tenant_id, id) IN (('fold', 'acme', 'c'), ('statement', 'acme', ''));
SELECT mode FROM projector.projections WHERE name = 'fold';
-- refused
SELECT projector_set_mode('fold', 'shadow');
SELECT try($$SELECT projector_rebuild('fold', 'acme')$$);
SELECT projector_set_mode('fold', 'async');
SELECT try($$SELECT projector_rebuild('nothing')$$);
SELECT try($$SELECT projector_rebuild('fold', NULL, 'a')$$);
SELECT try($$SELECT projector_rebuild('handler', 'acme', 'a')$$);
SELECT try($$SELECT projector_rebuild('statement', 'acme', 'a')$$);
SELECT try($$SELECT projector_rebuild('log', 'acme', 'a')$$);
SELECT try($$SELECT projector_rebuild(NULL, 'acme', 'a')$$);
SELECT projector_create('targetless', handler => 'handle', mode => 'off');
SELECT try($$SELECT projector_rebuild('targetless', 'acme')$$);
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT try($$SELECT projector_rebuild('fold', 'acme')$$);
COMMIT;
-- a function of the projection's own
CREATE FUNCTION clear_children(tenant_id text) RETURNS void LANGUAGE sql AS 'DELETE FROM children c WHERE c.tenant_id = $1';
CREATE FUNCTION clear_children(tenant_id text, aggregate_id text) RETURNS void LANGUAGE sql AS 'DELETE FROM children c WHERE (c.tenant_id, c.id) = ($1, $2)';
SELECT projector_alter('handler', '{"options": {"clear": "clear_children"}}');
SELECT projector_rebuild('handler', 'acme', 'a');
SELECT projector_rebuild('handler', 'acme');
SELECT count(*), count(DISTINCT (tenant_id, id, n)) FROM children;
-- which also clears rows that have no events
INSERT INTO parents VALUES ('rows', 'a');
INSERT INTO children VALUES ('rows', 'a', 1, false);
SELECT try($$SELECT projector_rebuild('handler', 'rows', 'a')$$);
SELECT try($$SELECT projector_rebuild('handler', 'none', 'a')$$);
SELECT try($$SELECT projector_rebuild('handler', 'none')$$);
SELECT projector_rebuild('handler', 'rows');
SELECT count(*) FROM children WHERE tenant_id = 'rows';
DELETE FROM parents WHERE tenant_id = 'rows';
SELECT try($$SELECT projector_alter('handler', '{"options": {"clear": "nothing"}}')$$);
ALTER FUNCTION clear_children(text) RENAME TO unclear_children;
SELECT try($$SELECT projector_rebuild('handler', 'acme')$$);
ALTER FUNCTION unclear_children(text) RENAME TO clear_children;
SELECT projector_alter('handler', '{"options": {"clear": null}}');

-- all of them, in the order of their dependencies
SELECT projector_drop('targetless');
SELECT projector_resume('statement');
SELECT try($$SELECT projector_alter('fold', '{"options": {"depends_on": ["nothing"]}}')$$);
SELECT try($$SELECT projector_alter('fold', '{"options": {"depends_on": ["fold"]}}')$$);
SELECT projector_alter('fold', '{"options": {"depends_on": ["statement"]}}');
SELECT projector_alter('statement', '{"options": {"depends_on": ["handler"]}}');
SELECT try($$SELECT projector_alter('handler', '{"options": {"depends_on": ["fold"]}}')$$);
SELECT projector_drain() >= 0;
DROP TABLE live;
CREATE TABLE live AS TABLE models;
CREATE TABLE trail (id serial, what text);
CREATE FUNCTION leave_trail() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO trail (what) VALUES (TG_TABLE_NAME);
    RETURN NULL;
END $$;
SELECT projector_alter(name, '{"options": {"writes": ["trail"]}}') FROM projector.projections WHERE name IN ('fold', 'statement', 'handler');
CREATE TRIGGER t AFTER DELETE ON by_fold FOR EACH STATEMENT EXECUTE FUNCTION leave_trail();
CREATE TRIGGER t AFTER DELETE ON by_statement FOR EACH STATEMENT EXECUTE FUNCTION leave_trail();
CREATE TRIGGER t AFTER DELETE ON children FOR EACH STATEMENT EXECUTE FUNCTION leave_trail();
CREATE TRIGGER t AFTER DELETE ON parents FOR EACH STATEMENT EXECUTE FUNCTION leave_trail();
SELECT projector_rebuild(NULL, 'acme');
SELECT what FROM trail ORDER BY id;
SELECT projector_rebuild(NULL) > 0;
SELECT * FROM (TABLE live EXCEPT ALL TABLE models) d;
SELECT * FROM (TABLE models EXCEPT ALL TABLE live) d;

-- a log that was tampered with is found
SET session_replication_role = replica;
UPDATE projector.events SET payload = '{"n": 1000}' WHERE tenant_id = 'beta' AND aggregate_id = 'a' AND sequence_number = 2;
SELECT try($$SELECT projector_rebuild('fold', 'beta')$$);
DELETE FROM projector.events WHERE tenant_id = 'beta' AND aggregate_id = 'a' AND sequence_number = 2;
SELECT try($$SELECT projector_rebuild('fold', 'beta')$$);
RESET session_replication_role;

-- catch up: from the cursor to the end, or to a position
SELECT projector_drop('statement');
SELECT projector_create('late', targets => '{by_statement}', mode => 'off', statement => $$
    INSERT INTO by_statement AS t SELECT tenant_id, count(*), sum((payload->>'n')::bigint) FROM batch GROUP BY 1
    ON CONFLICT (tenant_id) DO UPDATE SET events = t.events + excluded.events, total = t.total + excluded.total$$);
TRUNCATE by_statement;
SELECT projector_set_mode('late', 'async');
SELECT projector_catch_up('late', 'acme', (SELECT log_seq FROM projector.events WHERE tenant_id = 'acme' ORDER BY log_seq OFFSET 3 LIMIT 1));
SELECT events FROM by_statement WHERE tenant_id = 'acme';
SELECT projector_catch_up('late', 'acme');
SELECT (SELECT events FROM by_statement WHERE tenant_id = 'acme') = count(*) FROM projector.events WHERE tenant_id = 'acme';
SELECT projector_catch_up('late', 'acme');
SELECT projector_append('acme', 'z', 'Added', '{"n": 1}');
SELECT projector_append('gamma', 'z', 'Added', '{"n": 1}');
SELECT projector_catch_up('late', 'acme'), projector_catch_up('late', 'gamma');
SELECT count(*) FROM projector.outbox WHERE projection_name = 'late' AND tenant_id IN ('acme', 'gamma');
SELECT projector_set_mode('late', 'off');
SELECT projector_append('acme', 'z', 'Added', '{"n": 1}');
SELECT projector_catch_up('late', 'acme');
SELECT (SELECT events FROM by_statement WHERE tenant_id = 'acme') = count(*) FROM projector.events WHERE tenant_id = 'acme';
SELECT projector_set_mode('late', 'async');
SELECT projector_drain('late', 'acme');
SELECT (SELECT events FROM by_statement WHERE tenant_id = 'acme') = count(*) FROM projector.events WHERE tenant_id = 'acme';
DROP EXTENSION projector CASCADE;
DROP TABLE by_fold, by_statement, children, parents, by_log, live, trail CASCADE;
DROP FUNCTION try, leave_trail, clear_children(text), clear_children(text, text);
