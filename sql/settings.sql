-- A projection's code runs with fixed settings in every session; only the
-- projection's own "settings" override them.
\pset format unaligned
\pset tuples_only on
CREATE EXTENSION projector;
\set try_shows 'hint'
\i sql/include/try.sql

--
-- one line for every setting that could make a difference
--
CREATE FUNCTION render(e projector.event) RETURNS text STABLE LANGUAGE plpgsql AS $$
#variable_conflict error
DECLARE
    at timestamptz := (e.payload->>'at')::timestamptz;
    dynamic text;
    message text;
BEGIN
    BEGIN
        message := 1 / 0;
    EXCEPTION WHEN division_by_zero THEN
        message := sqlerrm;
    END;
    -- parsed each time, so that settings of the parser count
    EXECUTE $q$SELECT '\' || (NULL::int = NULL) || quote_ident('a') || ARRAY['x', NULL]::text$q$ INTO dynamic;
    RETURN concat_ws(' | ', at, to_char(at, 'TZ TMDay'), at::date, '01-02-03'::text::date, age(at, at - '3 days 4 h'::interval),
        0.1::float8 + 0.2, '\xdeadbeef'::bytea, to_tsvector('the cats'), coalesce(dynamic, 'null'),
        xml '<a/>' IS DOCUMENT, '{NULL}'::text::text[], 'EST'::text, ('2024-06-01 12:00 EST'::text)::timestamptz,
        current_setting('session_replication_role'), current_setting('row_security'), current_setting('gin_fuzzy_search_limit'),
        message, current_setting('lc_numeric'));
END $$;
CREATE TABLE by_handler (tenant_id text, id text, line text, fired boolean, PRIMARY KEY (tenant_id, id));
CREATE TABLE by_statement (LIKE by_handler INCLUDING ALL);
CREATE TABLE by_fold (tenant_id text, id text, line text, fired boolean, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
CREATE TABLE by_columns (LIKE by_fold INCLUDING ALL);
CREATE FUNCTION fire() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN new.fired := true; RETURN new; END';
CREATE TRIGGER fire BEFORE INSERT ON by_handler FOR EACH ROW EXECUTE FUNCTION fire();
CREATE TRIGGER fire BEFORE INSERT ON by_statement FOR EACH ROW EXECUTE FUNCTION fire();
CREATE TRIGGER fire BEFORE INSERT ON by_fold FOR EACH ROW EXECUTE FUNCTION fire();
CREATE TRIGGER fire BEFORE INSERT ON by_columns FOR EACH ROW EXECUTE FUNCTION fire();
CREATE FUNCTION handle(e projector.event) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO by_handler VALUES (e.tenant_id, e.aggregate_id, render(e));
END $$;
CREATE FUNCTION fold(s by_fold, e projector.event) RETURNS by_fold STABLE LANGUAGE plpgsql AS $$
BEGIN
    s.tenant_id := e.tenant_id;
    s.id := e.aggregate_id;
    s.line := render(e);
    RETURN s;
END $$;
SELECT projector_create('handler', handler => 'handle', targets => '{by_handler}');
SELECT projector_create('fold', fold => 'fold', targets => '{by_fold}');
SELECT projector_create('columns', targets => '{by_columns}', fold_columns => $${"line":
    "concat_ws(' | ', (e.payload->>'at')::timestamptz, to_char((e.payload->>'at')::timestamptz, 'TZ TMDay'), 0.1::float8 + 0.2, to_tsvector(e.payload->>'text'))"}$$);
-- a table without any code of its own
CREATE TABLE bare (tenant_id text, id text, line text, n int DEFAULT 0, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
SELECT projector_create('bare', targets => '{bare}', fold_columns => '{"line": "(e.payload->>''at'')::timestamptz", "n": "s.n + 1"}');
SELECT projector_create('statement', targets => '{by_statement}',
    statement => 'INSERT INTO by_statement SELECT tenant_id, aggregate_id, render(batch::projector.event) FROM batch');
CREATE PROCEDURE be_hostile() LANGUAGE plpgsql AS $$
BEGIN
    SET TimeZone = 'Asia/Tokyo'; SET DateStyle = 'SQL, DMY'; SET IntervalStyle = 'iso_8601'; SET extra_float_digits = -8;
    SET bytea_output = 'escape'; SET lc_monetary = 'C.UTF-8'; SET lc_numeric = 'C.UTF-8'; SET lc_time = 'C.UTF-8'; SET lc_messages = 'C.UTF-8';
    SET default_text_search_config = 'pg_catalog.english'; SET xmloption = 'document'; SET xmlbinary = 'hex'; SET array_nulls = off;
    SET transform_null_equals = on; SET standard_conforming_strings = off; SET quote_all_identifiers = on; SET gin_fuzzy_search_limit = 5;
    SET row_security = off; SET plpgsql.variable_conflict = 'use_column';
    SET timezone_abbreviations = 'Australia'; SET escape_string_warning = off;
END $$;
-- In every mode, by an ordinary session and by a hostile one.
SELECT projector_append('acme', 'plain', 'E', '{"at": "2024-03-01 12:00:00+00", "text": "the cats"}');
SELECT projector_drain();
CALL be_hostile();
SELECT projector_append('acme', 'hostile async', 'E', '{"at": "2024-03-01 12:00:00+00", "text": "the cats"}');
-- (set after the append: with session_replication_role = replica an append fires no triggers)
SET session_replication_role = replica;
SELECT projector_drain();
RESET session_replication_role;
SELECT count(projector_set_mode(name, 'inline')) FROM projector.projections;
SELECT projector_append('acme', 'hostile inline', 'E', '{"at": "2024-03-01 12:00:00+00", "text": "the cats"}');
SET session_replication_role = replica;
-- the session has not changed
SELECT name, setting FROM pg_settings WHERE name IN ('TimeZone', 'DateStyle', 'IntervalStyle', 'extra_float_digits', 'bytea_output', 'lc_monetary', 'lc_time',
    'default_text_search_config', 'xmloption', 'array_nulls', 'standard_conforming_strings', 'session_replication_role', 'plpgsql.variable_conflict',
    'timezone_abbreviations') ORDER BY name COLLATE "C";
CREATE VIEW lines AS
    SELECT 'handler' AS name, id, line, fired FROM by_handler UNION ALL SELECT 'fold', id, line, fired FROM by_fold
    UNION ALL SELECT 'columns', id, line, fired FROM by_columns UNION ALL SELECT 'bare', id, line, n = 1 FROM bare UNION ALL SELECT 'statement', id, line, fired FROM by_statement;
SELECT name, fired, count(*), line FROM lines GROUP BY 1, 2, 4 ORDER BY 1;
-- rebuilt by the hostile session, in the foreground
CREATE TABLE before AS TABLE lines;
SELECT projector_rebuild(name) FROM projector.projections ORDER BY name;
(TABLE before EXCEPT ALL TABLE lines) UNION ALL (TABLE lines EXCEPT ALL TABLE before);
SELECT name, tenant_id, matches FROM projector.projections, LATERAL projector_verify(name) ORDER BY 1, 2;
RESET ALL;
SELECT name, tenant_id, matches FROM projector.projections, LATERAL projector_verify(name) ORDER BY 1, 2;

--
-- a projection's own settings
--
SELECT try($$SELECT projector_alter('fold', '{"settings": {"TimeZone": "Nowhere/Land"}}')$$);
SELECT try($$SELECT projector_alter('fold', '{"settings": {"no_such_thing": 1}}')$$);
SELECT try($$SELECT projector_alter('fold', '{"settings": {"max_connections": 1}}')$$);
SELECT try(format($$SELECT projector_alter('fold', '{"settings": {"%s": "x"}}')$$, name))
FROM unnest('{search_path,ROLE,session_authorization,projector.tenant_id,session_replication_role,transaction_isolation}'::text[]) name;
SELECT try($$SELECT projector_alter('fold', '{"settings": {"TimeZone": ["UTC"]}}')$$);
SELECT try($$SELECT projector_alter('fold', '{"settings": "UTC"}')$$);
SELECT try($$SELECT projector_create('x', fold => 'fold', targets => '{by_fold}', settings => '[]')$$);
SELECT settings FROM projector.projections WHERE name = 'fold';
SELECT projector_alter('fold', '{"settings": {"TimeZone": "Europe/Berlin", "extra_float_digits": 0, "array_nulls": true, "app.colour": "red"}}');
SELECT projector_alter('fold', '{"settings": {"array_nulls": null}}');
SELECT settings FROM projector.projections WHERE name = 'fold';
-- the read model was made without them
SELECT DISTINCT projection_name, stale FROM projector.status_by_tenant WHERE projection_name = 'fold';
SELECT projector_append('acme', 'own', 'E', '{"at": "2024-03-01 12:00:00+00", "text": "the cats"}');
SELECT left(line, 43), line ~ '\| 0.3 \|' FROM by_fold WHERE id = 'own';
SELECT projector_rebuild('fold');
SELECT DISTINCT left(line, 43) FROM by_fold;
SELECT tenant_id, matches FROM projector_verify('fold');
SELECT DISTINCT projection_name, stale FROM projector.status_by_tenant WHERE projection_name = 'fold';
-- an unknown value, as after a restore: the projection stops, appends do not; it continues when the value is valid
SET client_min_messages = warning;
UPDATE projector.projections SET settings = '{"TimeZone": "Nowhere/Land"}' WHERE name = 'fold';
SELECT projector_append('acme', 'waits', 'E', '{"at": "2024-03-01 12:00:00+00", "text": "the cats"}');
SELECT projector_drain();
SELECT projection_name, status, attempt_count FROM projector.outbox;
SELECT projection_name, cursor_state, why FROM projector.status_by_tenant WHERE projection_name = 'fold';
UPDATE projector.projections SET settings = '[1]' WHERE name = 'fold';
SELECT projector_append('acme', 'waits', 'E', '{"at": "2024-03-01 12:00:00+00", "text": "the cats"}');
SELECT projection_name, cursor_state, why FROM projector.status_by_tenant WHERE projection_name = 'fold';
UPDATE projector.projections SET settings = '{"TimeZone": "Europe/Berlin", "extra_float_digits": 0, "app.colour": "red"}' WHERE name = 'fold';
RESET client_min_messages;
SELECT projector_drain();
SELECT last_event_version, left(line, 43) FROM by_fold WHERE id = 'waits';
-- output and hashes of rows do not depend on them
SELECT projector_alter('fold', '{"settings": {"TimeZone": null, "extra_float_digits": null, "app.colour": null}}');
CREATE TABLE times (tenant_id text, id text, at timestamptz, f float8, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
CREATE TABLE times_here (LIKE times INCLUDING ALL);
SELECT projector_create(t, targets => ARRAY[t], fold_columns => '{"at": "(e.payload->>''at'')::timestamptz", "f": "0.1::float8 + 0.2"}',
    settings => CASE t WHEN 'times' THEN '{}' ELSE '{"TimeZone": "Asia/Tokyo", "extra_float_digits": -5}' END::jsonb) FROM unnest('{times,times_here}'::text[]) t;
SELECT projector_drain();
SELECT projector_digest('times', 'acme') = projector_digest('times_here', 'acme');
SELECT matches, live_digest = projector_digest('times', 'acme') FROM projector_verify('times_here');
-- an ordinary owner sets what an ordinary user may set
CREATE ROLE regress_settings;
GRANT EXECUTE ON FUNCTION projector_create TO regress_settings;
GRANT USAGE ON SCHEMA projector TO regress_settings;
CREATE SCHEMA own AUTHORIZATION regress_settings;
SET ROLE regress_settings;
CREATE TABLE own.times (tenant_id text, id text, n int, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
SELECT try($$SELECT projector_create('own', targets => '{own.times}', fold_columns => '{"n": "1"}', settings => '{"log_statement": "none"}')$$);
SELECT try($$SELECT projector_create('own', targets => '{own.times}', fold_columns => '{"n": "1"}', settings => '{"work_mem": "1MB"}')$$);
RESET ROLE;

SET client_min_messages = warning;
DROP EXTENSION projector CASCADE;
DROP TABLE by_handler, bare, by_fold, by_columns, by_statement, before, times, times_here CASCADE;
DROP SCHEMA own CASCADE;
DROP ROLE regress_settings;
DROP FUNCTION try, fire;
DROP PROCEDURE be_hostile;
