-- A row of the registry that cannot be read, with an unknown option or a bad
-- value, stops nobody's appends, and can be altered and dropped.
\pset format unaligned
\pset tuples_only on
\set SHOW_CONTEXT never
CREATE EXTENSION projector;
CREATE TABLE good (tenant_id text, id text, n int NOT NULL DEFAULT 0, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
CREATE TABLE bad (LIKE good INCLUDING ALL);
SELECT projector_create('good', fold_columns => '{"n": "s.n + 1"}', targets => '{good}', mode => 'inline');
SELECT projector_create('bad', fold_columns => '{"n": "s.n + 1"}', targets => '{bad}', mode => 'strict');
CREATE FUNCTION spoil(change jsonb) RETURNS void LANGUAGE sql AS
    $$UPDATE projector.projections SET options = change WHERE name = 'bad'$$;
CREATE VIEW rows AS SELECT (SELECT sum(n) FROM good) AS good, (SELECT sum(n) FROM bad) AS bad,
    (SELECT count(*) FROM projector.outbox) AS queued, (SELECT count(*) FROM projector.failures) AS failures;
SELECT projector_append('acme', 'a', 'E', '{}');
TABLE rows;
SELECT spoil('{"colour": "red"}');
-- even in mode strict it is queued
SELECT projector_append('acme', 'a', 'E', '{}');
TABLE rows;
SELECT DISTINCT projection_name, why FROM projector.status ORDER BY 1;
SELECT projector_drain();
TABLE rows;
SELECT projector_rebuild('bad');
SELECT projector_wait('bad', 'acme', 'a', 2, '0 s');
-- with a mode of its own for a tenant
SELECT projector_set_mode('bad', 'inline', 'globex');
SELECT projector_append('globex', 'a', 'E', '{}');
TABLE rows;
-- bad values of all sorts
CREATE FUNCTION append_with(change jsonb) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    PERFORM spoil(change);
    PERFORM projector_append('acme', 'b', 'E', '{}');
    RETURN (SELECT why FROM projector.status WHERE projection_name = 'bad' AND tenant_id = 'acme');
END $$;
SELECT append_with(o) FROM unnest('{"{\"batch_size\": 0}", "{\"batch_size\": \"many\"}", "{\"timeout\": \"soon\"}", "{\"on_error\": \"pray\"}", "{\"on_error\": 1}", "{\"digest_ignore\": \"n\"}", "{\"depends_on\": [1]}", "{\"clear\": \"\"}", "{\"digest\": 0}", "[]"}'::jsonb[]) o;
TABLE rows;
UPDATE projector.projections SET event_types = '{E,NULL}' WHERE name = 'bad';
SELECT spoil('{}');
SELECT projector_append('acme', 'b', 'E', '{}');
SELECT DISTINCT why FROM projector.status WHERE projection_name = 'bad';
-- what it is can be changed, once what is wrong is removed
SELECT spoil('{"colour": "red", "batch_size": 10}');
SELECT projector_alter('bad', '{"event_types": ["E"]}');
SELECT projector_alter('bad', '{"event_types": ["E"], "options": {"colour": null}}');
SELECT options FROM projector.projections WHERE name = 'bad';
SELECT projector_drain();
TABLE rows;
-- dropped while it cannot be read
SELECT spoil('{"colour": "red"}');
SELECT projector_pause('bad'), projector_resume('bad'), projector_drop('bad');
SELECT projector_append('acme', 'b', 'E', '{}');
TABLE rows;

--
-- One that others depend on is dropped
--
SELECT projector_create('bad', fold_columns => '{"n": "s.n + 1"}', targets => '{bad}', options => '{"depends_on": ["good"]}');
SELECT projector_drop('good');
SELECT projector_alter('bad', '{"options": {"batch_size": 5}}');
SELECT projector_rebuild_all('acme');
-- but none that never was
SELECT projector_alter('bad', '{"options": {"depends_on": ["good", "nothing"]}}');
SELECT projector_alter('bad', '{"options": {"depends_on": null}}');
SELECT options FROM projector.projections;

\pset format aligned
\pset tuples_only off
SET client_min_messages = warning;
DROP EXTENSION projector CASCADE;
DROP TABLE good, bad;
DROP FUNCTION spoil(jsonb), append_with(jsonb);
RESET client_min_messages;
