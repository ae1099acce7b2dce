-- A projection's code that runs in a client's session cannot affect the session:
-- its cursors, its large object descriptors, the settings of the next event.
\pset format unaligned
\pset tuples_only on
CREATE EXTENSION projector;
CREATE ROLE regress_guest;
GRANT USAGE ON SCHEMA projector TO regress_guest;
GRANT EXECUTE ON FUNCTION projector_create TO regress_guest;
CREATE SCHEMA guest AUTHORIZATION regress_guest;
CREATE TABLE secret (x text);
INSERT INTO secret VALUES ('one'), ('two'), ('three');
SET ROLE regress_guest;
CREATE TABLE guest.seen (tenant_id text, what text);
-- runs the command in the event, and records the result
CREATE FUNCTION guest.obey(e projector.event) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    c refcursor := coalesce(e.payload->>'cursor', 'c');
    r record;
BEGIN
    CASE e.payload->>'do'
        WHEN 'fetch' THEN FETCH c INTO r; INSERT INTO guest.seen VALUES (e.tenant_id, r::text);
        WHEN 'close' THEN CLOSE c;
        WHEN 'replace' THEN CLOSE c; OPEN c FOR SELECT current_user;
        WHEN 'leave open' THEN OPEN c FOR SELECT * FROM guest.seen; FETCH c INTO r;
        WHEN 'xml' THEN INSERT INTO guest.seen VALUES (e.tenant_id, cursor_to_xml(c, 1, true, false, '')::text);
        ELSE EXECUTE e.payload->>'do';
    END CASE;
END $$;
SELECT projector_create('obey', handler => 'guest.obey', targets => '{guest.seen}', event_types => '{E}', mode => 'inline', options => '{"max_attempts": 1}');
RESET ROLE;
CREATE FUNCTION give(payload jsonb) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    id text := gen_random_uuid();
BEGIN
    PERFORM projector_append('acme', id, 'E', payload);
    RETURN (SELECT coalesce(error_code || ': ' || error_message, 'ok') FROM (VALUES (id)) v (a) LEFT JOIN projector.failures f ON f.aggregate_id = v.a);
END $$;

--
-- cursors of the client
--
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM secret;
DECLARE held CURSOR WITH HOLD FOR SELECT * FROM secret;
FETCH c;
SELECT give('{"do": "fetch"}'), give('{"do": "close"}'), give('{"do": "replace"}'), give('{"do": "xml"}');
FETCH c;
COMMIT;
SELECT give('{"do": "fetch", "cursor": "held"}'), give('{"do": "close", "cursor": "held"}');
FETCH held;
CLOSE held;
-- cursors of the client's loops: all rows are returned
CREATE FUNCTION loop() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    r record;
    found text := '';
BEGIN
    FOR r IN SELECT * FROM secret LOOP
        found := concat_ws(' ', found, r.x, give(jsonb_build_object('do', 'fetch', 'cursor', (SELECT name FROM pg_cursors WHERE name LIKE '<%' LIMIT 1))) LIKE 'ok%');
    END LOOP;
    RETURN found;
END $$;
SELECT loop();
TABLE guest.seen;
-- cursors that it leaves open are closed
BEGIN;
SELECT give('{"do": "leave open", "cursor": "mine"}');
SELECT name FROM pg_cursors WHERE name = 'mine';
ALTER TABLE guest.seen ADD more int;
COMMIT;

--
-- large objects, setseed(), and exit_on_error
--
BEGIN;
SELECT lo_create(4711) = 4711, lo_open(4711, 393216);
SELECT give('{"do": "SELECT loread(0, 100)"}'), give('{"do": "SELECT lowrite(0, ''x'')"}'), give('{"do": "SELECT lo_close(0)"}');
SELECT lo_close(0), lo_unlink(4711);
COMMIT;
SELECT give('{"do": "SELECT setseed(0.5)"}');
SELECT give('{"do": "SET exit_on_error = on"}');
SELECT give('{"do": "SELECT set_config(''exit_on_error'', ''on'', false)"}');
SELECT give('{"do": "SELECT 1/0"}');
SET exit_on_error = off;

--
-- settings that a fold or a statement leaves behind
--
CREATE TABLE model (tenant_id text, id text, at text, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
CREATE TABLE model2 (LIKE model INCLUDING ALL);
CREATE TABLE model3 (tenant_id text, at text);
CREATE FUNCTION wander(at text) RETURNS text IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    RETURN at::timestamptz || set_config('TimeZone', 'Asia/Tokyo', false);
END $$;
CREATE FUNCTION stay(at text) RETURNS text IMMUTABLE SET TimeZone = 'Asia/Tokyo' LANGUAGE sql AS 'SELECT at::timestamptz::text';
CREATE FUNCTION fold(s model, e projector.event) RETURNS model IMMUTABLE LANGUAGE sql AS
    $$SELECT e.tenant_id, e.aggregate_id, wander(e.payload->>'at'), NULL::uuid, NULL::bigint$$;
SELECT projector_create('fold', fold => 'fold', targets => '{model}', event_types => '{S}', options => '{"max_attempts": 1}');
SELECT projector_create('columns', fold_columns => '{"at": "wander(e.payload->>''at'')"}', targets => '{model2}', event_types => '{S}', options => '{"max_attempts": 1}');
SELECT projector_create('statement', statement => 'INSERT INTO model3 SELECT tenant_id, wander(payload->>''at'') FROM batch', targets => '{model3}', event_types => '{S}', options => '{"max_attempts": 1}');
SELECT projector_append('acme', id, 'S', '{"at": "2024-01-01 00:00+00"}') FROM unnest('{a,b}'::text[]) id;
SELECT projector_drain();
SELECT projection_name, aggregate_id, error_code, error_message FROM projector.failures WHERE projection_name <> 'obey' ORDER BY 1, 2;
SELECT projector_alter('columns', '{"fold_columns": {"at": "stay(e.payload->>''at'')"}}');
SELECT projector_rebuild('columns');
SELECT id, at FROM model2 ORDER BY 1;
SELECT current_setting('TimeZone') <> 'Asia/Tokyo';

SET client_min_messages = warning;
DROP EXTENSION projector CASCADE;
DROP TABLE secret, model, model2, model3 CASCADE;
DROP SCHEMA guest CASCADE;
DROP FUNCTION give, loop, wander, stay;
DROP ROLE regress_guest;
