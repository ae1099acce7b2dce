-- A registry row that cannot be read, because of an unknown option or a bad
-- value, does not stop appends, and can be altered and dropped.
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
-- events are queued even in mode strict
SELECT projector_append('acme', 'a', 'E', '{}');
TABLE rows;
SELECT DISTINCT projection_name, regexp_replace(why, 'projector.enabled = off|no worker runs here', 'no worker') AS why FROM projector.status_by_tenant ORDER BY 1;
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
    RETURN (SELECT why FROM projector.status_by_tenant WHERE projection_name = 'bad' AND tenant_id = 'acme');
END $$;
SELECT append_with(o) FROM unnest('{"{\"batch_size\": 0}", "{\"batch_size\": \"many\"}", "{\"timeout\": \"soon\"}", "{\"on_error\": \"pray\"}", "{\"on_error\": 1}", "{\"digest_ignore\": \"n\"}", "{\"depends_on\": [1]}", "{\"clear\": \"\"}", "{\"digest\": 0}", "[]"}'::jsonb[]) o;
TABLE rows;
UPDATE projector.projections SET event_types = '{E,NULL}' WHERE name = 'bad';
SELECT spoil('{}');
SELECT projector_append('acme', 'b', 'E', '{}');
SELECT DISTINCT why FROM projector.status_by_tenant WHERE projection_name = 'bad';
-- its definition can be changed after the bad value is removed
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
-- Names that cannot be read
--
CREATE FUNCTION handle(e projector.event) RETURNS void LANGUAGE sql AS
    $$INSERT INTO bad (tenant_id, id, n) VALUES (e.tenant_id, e.aggregate_id, 1) ON CONFLICT (tenant_id, id) DO UPDATE SET n = bad.n + 1$$;
CREATE FUNCTION fold(s bad, e projector.event) RETURNS bad LANGUAGE plpgsql IMMUTABLE AS
    $$BEGIN s.tenant_id := e.tenant_id; s.id := e.aggregate_id; s.n := coalesce(s.n, 0) + 1; RETURN s; END$$;
-- created correctly, then damaged: are others stopped, and can it be altered and dropped?
CREATE FUNCTION spoil_row(change text, kind text DEFAULT 'fold_columns') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    why text;
    before bigint := (SELECT sum(n) FROM good);
BEGIN
    PERFORM CASE kind
        WHEN 'handler' THEN projector_create('bad', handler => 'handle', targets => '{bad}', mode => 'inline')
        WHEN 'fold' THEN projector_create('bad', fold => 'fold', targets => '{bad}', mode => 'strict')
        WHEN 'statement' THEN projector_create('bad', targets => '{bad}', mode => 'inline',
             statement => 'INSERT INTO bad (tenant_id, id) SELECT tenant_id, aggregate_id FROM batch ON CONFLICT DO NOTHING')
        ELSE projector_create('bad', fold_columns => '{"n": "s.n + 1"}', targets => '{bad}', mode => 'strict') END;
    EXECUTE format('UPDATE projector.projections SET %s WHERE name = %L', change, 'bad');
    PERFORM projector_append('acme', 'c', 'E', '{}');
    PERFORM projector_drain();
    PERFORM FROM projector.status_by_tenant;
    why := (SELECT s.why FROM projector.status_by_tenant s WHERE projection_name = 'bad' AND tenant_id = 'acme');
    PERFORM projector_pause('bad'), projector_resume('bad'), projector_adopt();
    ASSERT (SELECT sum(n) FROM good) = before + 1, 'others go on';
    PERFORM projector_alter('bad', jsonb_build_object('targets', '["bad"]'::jsonb, kind, CASE kind
        WHEN 'handler' THEN '"handle"' WHEN 'fold' THEN '"fold"' WHEN 'fold_columns' THEN '{"n": "s.n + 1"}'
        ELSE '"INSERT INTO bad (tenant_id, id) SELECT tenant_id, aggregate_id FROM batch ON CONFLICT DO NOTHING"' END::jsonb));
    PERFORM projector_rebuild('bad', 'acme');
    EXECUTE format('UPDATE projector.projections SET %s WHERE name = %L', change, 'bad');
    PERFORM projector_drop('bad');
    DELETE FROM bad;
    RETURN why;
END $$;
SELECT spoil_row('targets = ''{NULL}''');
SELECT spoil_row('targets = ''{NULL}'', resolved_in = 0');
SELECT spoil_row('targets = ''{"pub..t2"}'', resolved_in = 0');
SELECT spoil_row('targets = ''{""}'', resolved_in = 0');
SELECT spoil_row('targets = ''{a.b.c.d}'', resolved_in = 0');
SELECT spoil_row('targets = ''{}'', resolved_in = 0');
SELECT spoil_row('targets = ''{}''');
SELECT spoil_row('targets = ''{{public.bad},{public.good}}''');
SELECT spoil_row('targets = ''{{public.bad},{public.good}}'', resolved_in = 0', 'handler');
SELECT spoil_row('targets = ''{public.bad,NULL}''', 'handler');
SELECT spoil_row('target_oids = ''{NULL}''', 'handler');
SELECT spoil_row('handler = ''pub..f''', 'handler');
SELECT spoil_row('handler = NULL', 'handler');
SELECT spoil_row('fold = ''a.b.c.d''', 'fold');
SELECT spoil_row('fold = NULL', 'fold');
SELECT spoil_row('fold_columns = NULL');
SELECT spoil_row('fold_columns = ''[]''');
SELECT spoil_row('statement = NULL', 'statement');
-- if the tables' oids are known, any change restores their names
SELECT projector_create('bad', fold_columns => '{"n": "s.n + 1"}', targets => '{bad}');
UPDATE projector.projections SET targets = '{NULL}' WHERE name = 'bad';
SELECT projector_alter('bad', '{}');
SELECT targets FROM projector.projections WHERE name = 'bad';
SELECT projector_drop('bad');

--
-- One that others depend on is dropped
--
SELECT projector_create('bad', fold_columns => '{"n": "s.n + 1"}', targets => '{bad}', options => '{"depends_on": ["good"]}');
SELECT projector_drop('good');
SELECT projector_alter('bad', '{"options": {"batch_size": 5}}');
SELECT projector_rebuild(NULL, 'acme');
-- but not an unknown one
SELECT projector_alter('bad', '{"options": {"depends_on": ["good", "nothing"]}}');
SELECT projector_alter('bad', '{"options": {"depends_on": null}}');
SELECT options FROM projector.projections;

\pset format aligned
\pset tuples_only off
SET client_min_messages = warning;
DROP EXTENSION projector CASCADE;
DROP TABLE good, bad;
DROP FUNCTION spoil(jsonb), append_with(jsonb), spoil_row(text, text);
RESET client_min_messages;
