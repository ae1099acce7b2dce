--
-- Who may do what: the documented grants for an appender, a reader and an
-- owner of projections, and what a handler can and cannot do.
--
CREATE EXTENSION projector;

\set try_shows 'message'
\i sql/include/try.sql
\set SHOW_CONTEXT never
\pset format unaligned
\pset tuples_only on

CREATE ROLE regress_appender;
CREATE ROLE regress_reader;
CREATE ROLE regress_modeller;
CREATE ROLE regress_member IN ROLE regress_modeller;
CREATE ROLE regress_other;
CREATE ROLE regress_stranger;

GRANT USAGE ON SCHEMA projector TO regress_appender;
GRANT EXECUTE ON FUNCTION projector_append, projector_append_batch TO regress_appender;
GRANT INSERT (tenant_id, aggregate_id, sequence_number, event_id, event_type, payload, metadata)
    ON projector.events TO regress_appender;

SELECT projector_grant('regress_reader', 'reader');

SELECT projector_grant('regress_modeller', 'modeller');
SELECT projector_grant('regress_other', 'modeller');

--
-- Nothing is granted to everybody
--
SELECT p.oid::regprocedure FROM pg_depend d JOIN pg_proc p ON p.oid = d.objid,
       aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
WHERE d.classid = 'pg_proc'::regclass AND d.deptype = 'e' AND a.grantee = 0
  AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'projector') ORDER BY 1;
SELECT c.oid::regclass FROM pg_class c,
       aclexplode(coalesce(c.relacl, acldefault((CASE c.relkind WHEN 'S' THEN 's' ELSE 'r' END)::"char", c.relowner))) a
WHERE c.relnamespace = 'projector'::regnamespace AND c.relkind IN ('r', 'v', 'S') AND a.grantee = 0 ORDER BY 1;
SELECT count(*) FROM pg_namespace n, aclexplode(n.nspacl) a WHERE n.nspname = 'projector' AND a.grantee = 0;

-- the management functions, called by someone
CREATE FUNCTION try_management() RETURNS SETOF text LANGUAGE sql AS $$
    SELECT try('SELECT ' || call) FROM unnest(array[
        $c$ projector_create('mine', handler => 'shop.note') $c$,
        $c$ projector_alter('shop', '{}') $c$, $c$ projector_set_mode('shop', 'off') $c$,
        $c$ projector_set_mode('shop', 'off', 'acme') $c$, $c$ projector_pause('shop') $c$,
        $c$ projector_pause('shop', 'acme') $c$, $c$ projector_resume('shop') $c$,
        $c$ projector_reset('shop') $c$, $c$ projector_reset('shop', 'acme', force => true) $c$,
        $c$ projector_retry('shop', 'acme', 'a', 1) $c$, $c$ projector_drop('shop') $c$,
        $c$ projector_drain() $c$]) call
$$;
-- writes to our tables, tried by someone
CREATE FUNCTION try_writes() RETURNS SETOF text LANGUAGE sql AS $$
    SELECT try(command) FROM unnest(array[
        'UPDATE projector.events SET payload = ''{}''', 'DELETE FROM projector.events', 'TRUNCATE projector.events',
        'INSERT INTO projector.apply_outbox VALUES (1, 1, ''acme'', ''a'', 1, ''E'')', 'DELETE FROM projector.apply_outbox',
        'UPDATE projector.projection_offsets SET last_sequence_number = 0', 'DELETE FROM projector.projection_offsets',
        'UPDATE projector.projection_cursors SET last_log_seq = 0', 'DELETE FROM projector.projection_failures',
        'UPDATE projector.projections SET owner = current_user', 'DELETE FROM projector.projections',
        'DELETE FROM projector.outbox', 'SELECT nextval(''projector.events_log_seq_seq'')']) command
$$;
CREATE FUNCTION try_reads() RETURNS SETOF text LANGUAGE sql AS $$
    SELECT relation || ' ' || try('SELECT FROM projector.' || relation || ' LIMIT 1')
    FROM unnest('{events,projections,projection_offsets,projection_cursors,apply_outbox,projection_failures,
                  outbox,offsets,failures}'::text[]) relation
$$;

--
-- A projection that the modeller owns, on its own table
--
CREATE SCHEMA shop AUTHORIZATION regress_modeller;
GRANT USAGE ON SCHEMA shop TO regress_other, regress_appender;
CREATE TABLE secret AS SELECT 'superusers only' AS secret;
SET ROLE regress_modeller;
CREATE TABLE shop.log (n bigint GENERATED ALWAYS AS IDENTITY, tenant_id text, aggregate_id text,
                       as_user text, search_path text, tenant text);
-- records how it is run, and runs the command in the event
SET check_function_bodies = off;
CREATE FUNCTION shop.note(e projector.event) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO log (tenant_id, aggregate_id, as_user, search_path, tenant)
    VALUES (e.tenant_id, e.aggregate_id, current_user, current_setting('search_path'), current_setting('projector.tenant_id'));
    IF e.payload ? 'do' THEN
        EXECUTE e.payload ->> 'do';
    END IF;
END $$;
SET search_path = shop, public;
SELECT projector_create('shop', handler => 'note', targets => '{log}', mode => 'inline', event_types => '{E}');
RESET search_path;
RESET ROLE;
SELECT name, owner, handler, targets, search_path FROM projector.projections;

--
-- A stranger
--
SET ROLE regress_stranger;
SELECT try_management();
SELECT try_writes();
SELECT try_reads();
SELECT try($$SELECT projector_append('acme', 'a', 'E', '{}')$$);
SELECT try($$SELECT projector_append_batch('acme', 'a', '[]')$$);
SELECT try($$INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload) VALUES ('acme', 'a', 1, 'E', '{}')$$);
SELECT try($$SET projector.tenant_id = 'acme'$$);
SELECT try($$SET projector.clock_offset = 100$$);
SELECT try($$SET projector.verify_payload = off$$);
RESET ROLE;

--
-- An appender
--
SET ROLE regress_appender;
SELECT projector_append('acme', 'a', 'E', '{}', expected_version => 0);
SELECT projector_append_batch('acme', 'a', '[{"event_type": "E", "payload": {}}, {"event_type": "F", "payload": {}}]');
INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
    VALUES ('acme', 'a', 4, 'E', '{}'), ('acme', 'b', 1, 'E', '{}');
COPY projector.events (tenant_id, aggregate_id, sequence_number, event_id, event_type, payload, metadata) FROM stdin;
acme	b	2	55555555-5555-5555-5555-555555555555	E	{}	{}
other	a	1	55555555-5555-5555-5555-555555555555	E	{}	{}
\.
-- it can neither read events nor choose positions and hashes
SELECT try_reads();
SELECT try($$INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
    VALUES ('acme', 'x', 1, 'E', '{}') RETURNING log_seq$$);
SELECT try($$INSERT INTO projector.events (log_seq, tenant_id, aggregate_id, sequence_number, event_type, payload)
    OVERRIDING SYSTEM VALUE VALUES (1, 'acme', 'x', 1, 'E', '{}')$$);
SELECT try($$INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload, payload_hash)
    VALUES ('acme', 'x', 1, 'E', '{}', sha256('{}'))$$);
SELECT try($$INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload, recorded_at)
    VALUES ('acme', 'x', 1, 'E', '{}', now())$$);
-- (from a file: old versions of psql would run the rows that follow a refused COPY as commands)
\copy projector.events (log_seq, tenant_id, aggregate_id, sequence_number, event_type, payload) FROM '/dev/null'
\copy projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload, payload_hash) FROM '/dev/null'
\copy projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload, recorded_at) FROM '/dev/null'
\copy projector.events FROM '/dev/null'
COPY projector.events (tenant_id) TO stdout;
SELECT try($$INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
    VALUES ('acme', 'a', 1, 'E', '{}') ON CONFLICT (tenant_id, aggregate_id, sequence_number) DO UPDATE SET payload = '{}'$$);
SELECT try_writes();
SELECT try_management();
SELECT try($$SELECT FROM shop.log$$);
RESET ROLE;
SELECT tenant_id, aggregate_id, sequence_number FROM projector.events ORDER BY 1, 2, 3;
-- its events were applied as the owner of the projection
SELECT tenant_id, aggregate_id, as_user, search_path, tenant FROM shop.log ORDER BY n;

--
-- A reader
--
SET ROLE regress_reader;
SELECT try_reads();
SELECT try_writes();
SELECT try_management();
SELECT try($$SELECT projector_append('acme', 'a', 'E', '{}')$$);
SELECT projection_name, tenant_id, aggregate_id, last_sequence_number FROM projector.offsets ORDER BY 1, 2, 3;
RESET ROLE;

--
-- Owners: others may not touch a projection, members of the role may
--
SET ROLE regress_other;
SELECT try_management();
SELECT projector_drop('mine');
SELECT try_writes();
SELECT try($$SELECT projector_append('acme', 'a', 'E', '{}')$$);
-- the owner must own the targets and be allowed to call the handler
SELECT try($$SELECT projector_create('other', handler => 'shop.note', targets => '{shop.log}')$$);
SELECT try($$SELECT projector_create('other', handler => 'shop.note', targets => '{public.secret}')$$);
RESET ROLE;
REVOKE EXECUTE ON FUNCTION shop.note FROM PUBLIC;
SET ROLE regress_other;
SELECT try($$SELECT projector_create('other', handler => 'shop.note')$$);
RESET ROLE;
SET ROLE regress_member;
SELECT projector_pause('shop'), projector_resume('shop'), projector_alter('shop', '{"options": {"retry_base": "1 h"}}'),
       projector_set_mode('shop', 'inline'), projector_retry('shop', 'acme', 'a', 1);
SELECT try($$SELECT projector_reset('shop', 'nobody', force => true)$$);
SELECT try_writes() LIMIT 1;
RESET ROLE;
-- a superuser may, and the owner stays the owner
SELECT projector_alter('shop', '{"options": {"max_attempts": 3}}');
SELECT name, owner, options FROM projector.projections ORDER BY 1;
SELECT projector_drain();
TRUNCATE shop.log;

--
-- Everything is restored afterwards, even after an error
--
CREATE VIEW me AS SELECT current_user, session_user = current_user AS myself, current_setting('search_path') AS path,
    current_setting('projector.tenant_id') AS tenant, current_setting('work_mem') AS work_mem;
GRANT SELECT ON me TO regress_appender;
SET ROLE regress_appender;
SET search_path = pg_catalog, public;
SET work_mem = '3MB';
SELECT * FROM me;
SELECT projector_append('acme', 'c', 'E', '{"do": "SET search_path = pg_catalog; SET work_mem = ''9MB''"}');
SELECT * FROM me;
-- a handler that fails, inline
SELECT projector_append('acme', 'd', 'E', '{"do": "SET search_path = pg_catalog; SELECT 1 / 0"}');
SELECT * FROM me;
-- strict, caught in a transaction that continues
RESET ROLE;
SELECT projector_set_mode('shop', 'strict');
SET ROLE regress_appender;
BEGIN;
SELECT try($$SELECT projector_append('acme', 'e', 'E', '{"do": "SET search_path = pg_catalog; SELECT 1 / 0"}')$$);
SELECT * FROM me;
SAVEPOINT s;
SELECT projector_append('acme', 'e', 'E', '{"do": "SET work_mem = ''9MB''; SELECT 1 / 0"}');
ROLLBACK TO s;
SELECT * FROM me;
SELECT projector_append('acme', 'e', 'E', '{}');
SELECT try($$SELECT projector_append('acme', '', 'E', '{}')$$);
SELECT * FROM me;
COMMIT;
SELECT * FROM me;
RESET work_mem;
RESET search_path;
RESET ROLE;
-- a superuser's own setting of the tenant is restored too
SET projector.tenant_id = 'mine';
SELECT projector_append('acme', 'e', 'E', '{}');
SHOW projector.tenant_id;
RESET projector.tenant_id;
SELECT aggregate_id, as_user, search_path, tenant FROM shop.log ORDER BY n;

-- each event of a statement starts from the same settings
TRUNCATE shop.log;
INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
    VALUES ('acme', 'f', 1, 'E', '{"do": "SET search_path = pg_catalog, shop"}'), ('acme', 'f', 2, 'E', '{}'),
           ('other', 'f', 1, 'E', '{"do": "SELECT set_config(''search_path'', ''shop, public'', false)"}'), ('acme', 'g', 1, 'E', '{}'),
           ('other', 'f', 2, 'E', '{}');
SELECT tenant_id, aggregate_id, as_user, search_path, tenant FROM shop.log ORDER BY n;

--
-- The appender's temporary objects do not hide the handler's
--
TRUNCATE shop.log;
SET ROLE regress_appender;
CREATE TEMP TABLE log (LIKE projector.event);
SELECT projector_append('acme', 'h', 'E', '{}');
SELECT count(*) FROM pg_temp.log;
DROP TABLE pg_temp.log;
RESET ROLE;
SELECT count(*) FROM shop.log;

--
-- What a handler cannot do, even when a superuser appends
--
GRANT EXECUTE ON FUNCTION projector_append TO regress_modeller;
GRANT INSERT (tenant_id, aggregate_id, sequence_number, event_id, event_type, payload, metadata)
    ON projector.events TO regress_modeller;
CREATE FUNCTION attempt(command text, tenant text DEFAULT 'acme') RETURNS text LANGUAGE sql AS $$
    SELECT command || E'\n  ' || try(format($f$SELECT projector_append(%L, 'attempt', 'E', %L)$f$, tenant, jsonb_build_object('do', command)))
$$;
SELECT attempt(command) FROM unnest(array[
    -- change roles
    'SET ROLE regress_stranger', 'SET ROLE regress_modeller', 'RESET ROLE', 'SELECT set_config(''role'', ''none'', false)',
    'SET SESSION AUTHORIZATION DEFAULT', 'SET LOCAL SESSION AUTHORIZATION regress_stranger', 'RESET SESSION AUTHORIZATION',
    -- act for another tenant
    'SET projector.tenant_id = ''other''', 'SET LOCAL projector.tenant_id = ''other''', 'RESET projector.tenant_id', 'RESET ALL',
    'SELECT set_config(''projector.tenant_id'', ''other'', true)', 'UPDATE pg_settings SET setting = ''other'' WHERE name = ''projector.tenant_id''',
    -- read or write what its owner may not
    'SELECT FROM public.secret', 'DELETE FROM projector.apply_outbox', 'UPDATE pg_class SET relforcerowsecurity = false',
    -- run DDL
    'CREATE TEMP TABLE t ()', 'CREATE TABLE shop.t ()', 'CREATE TEMP TABLE t AS SELECT 1', 'SELECT 1 INTO TEMP t',
    'EXPLAIN ANALYZE CREATE TEMP TABLE t AS SELECT 1', 'CREATE FUNCTION shop.f() RETURNS int LANGUAGE sql AS ''SELECT 1''',
    'DO ''BEGIN CREATE TABLE shop.t (); END''', 'ALTER TABLE shop.log ADD COLUMN x int', 'DROP TABLE shop.log', 'CREATE INDEX ON shop.log (n)',
    'TRUNCATE shop.log', 'GRANT ALL ON shop.log TO PUBLIC', 'ALTER FUNCTION shop.note SECURITY DEFINER', 'ALTER SCHEMA shop RENAME TO bazaar',
    'COMMENT ON TABLE shop.log IS ''''',
    -- leave something behind after its call
    'COMMIT', 'SAVEPOINT s', 'LISTEN x', 'DECLARE c CURSOR WITH HOLD FOR SELECT 1', 'DISCARD ALL',
    -- append, or run projections
    'SELECT public.projector_append(''acme'', ''more'', ''E'', ''{}'')',
    'INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload) VALUES (''acme'', ''more'', 1, ''E'', ''{}'')',
    'SELECT public.projector_create(''more'', handler => ''note'')', 'SELECT public.projector_alter(''shop'', ''{"options": {"may_append": true}}'')',
    'SELECT public.projector_set_mode(''shop'', ''off'')', 'SELECT public.projector_pause(''shop'')', 'SELECT public.projector_resume(''shop'')',
    'SELECT public.projector_drop(''shop'')', 'SELECT public.projector_drain()', 'SELECT public.projector_retry(''shop'', ''acme'', ''a'', 1)',
    'SELECT public.projector_reset(''shop'', force => true)', 'SELECT public.projector_note(1, ''{}'')']) WITH ORDINALITY u (command, n) ORDER BY n;
SELECT count(*) FROM projector.events WHERE aggregate_id IN ('attempt', 'more');
-- none of it had an effect
SELECT myself, path, tenant FROM me;
SELECT mode, paused, options FROM projector.projections;

--
-- Row-level security limits a handler to its tenant
--
SET ROLE regress_modeller;
CREATE TABLE shop.stock (tenant_id text, item_id text, n int, PRIMARY KEY (tenant_id, item_id));
INSERT INTO shop.stock VALUES ('acme', 'i', 1), ('other', 'i', 1);
ALTER TABLE shop.stock ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY one_tenant ON shop.stock USING (tenant_id = public.projector_tenant_id());
RESET ROLE;
SELECT projector_alter('shop', '{"targets": ["shop.log", "shop.stock"]}');
SELECT attempt(command) FROM unnest(array[
    'INSERT INTO shop.stock VALUES (''acme'', ''own'', 2)', 'UPDATE shop.stock SET n = 2 WHERE tenant_id = ''acme''',
    -- another tenant's row
    'INSERT INTO shop.stock VALUES (''other'', ''foreign'', 2)', 'UPDATE shop.stock SET tenant_id = ''other'' WHERE item_id = ''own''',
    'INSERT INTO shop.stock VALUES (''other'', ''i'', 9) ON CONFLICT (tenant_id, item_id) DO UPDATE SET n = 9',
    -- rows of other tenants are invisible
    'UPDATE shop.stock SET n = 9', 'DELETE FROM shop.stock WHERE tenant_id = ''other''',
    -- ways around
    'SET LOCAL row_security = off; UPDATE shop.stock SET n = 10', 'ALTER TABLE shop.stock DISABLE ROW LEVEL SECURITY',
    'ALTER TABLE shop.stock NO FORCE ROW LEVEL SECURITY', 'DROP POLICY one_tenant ON shop.stock', 'CREATE POLICY all_tenants ON shop.stock',
    'ALTER POLICY one_tenant ON shop.stock USING (true)', 'ALTER TABLE shop.stock OWNER TO regress_modeller', 'TRUNCATE shop.stock',
    'SELECT set_config(''projector.tenant_id'', ''other'', true); DELETE FROM shop.stock']) WITH ORDINALITY u (command, n) ORDER BY n;
SELECT * FROM shop.stock ORDER BY 1, 2;
-- and inline the failure is recorded, no row written
SELECT projector_set_mode('shop', 'inline');
SELECT projector_append('acme', 'rls', 'E', '{"do": "INSERT INTO shop.stock VALUES (''other'', ''foreign'', 2)"}');
SELECT error_code, error_message FROM projector.failures WHERE aggregate_id = 'rls';
SELECT * FROM shop.stock WHERE tenant_id = 'other' ORDER BY 1, 2;
SELECT attempt('DELETE FROM shop.stock', 'other');
SELECT * FROM shop.stock ORDER BY 1, 2;
SELECT relrowsecurity, relforcerowsecurity FROM pg_class WHERE oid = 'shop.stock'::regclass;

--
-- Handlers that append
--
SET ROLE regress_modeller;
CREATE FUNCTION shop.reorder(e projector.event) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM public.projector_append(e.tenant_id, e.aggregate_id || '-order', 'E', '{}');
END $$;
SELECT projector_create('reorder', handler => 'shop.reorder', mode => 'inline', event_types => '{Low}');
RESET ROLE;
SELECT projector_append('acme', 'low', 'Low', '{}');
SELECT error_code, error_message FROM projector.failures WHERE aggregate_id = 'low';
SELECT projector_alter('reorder', '{"options": {"may_append": true}}');
SELECT projector_retry('reorder', 'acme', 'low', 1);
SELECT projector_append('acme', 'low', 'Low', '{}');
SELECT aggregate_id, sequence_number FROM projector.events WHERE aggregate_id = 'low-order' ORDER BY 2;
-- what it appends is queued for other projections, in any mode
SELECT projection_name, aggregate_id, sequence_number, status FROM projector.outbox
WHERE aggregate_id = 'low-order' ORDER BY 1, 2, 3;
SELECT projector_drain();
SELECT count(*) FROM projector.apply_outbox WHERE aggregate_id = 'low-order';
-- a strict projection cannot queue it
SELECT projector_set_mode('shop', 'strict');
SELECT projector_append('acme', 'low', 'Low', '{}');
SELECT error_code FROM projector.failures WHERE aggregate_id = 'low' AND sequence_number = 3;
SELECT projector_set_mode('shop', 'inline');
SELECT projector_retry('reorder', 'acme', 'low', 3);
-- it may not append in a replay: those events are already in the log
SELECT projector_reset('reorder', force => true);
SELECT projector_drain('reorder');
SELECT sequence_number, error_code, error_message, error_detail FROM projector.failures
WHERE aggregate_id = 'low' AND resolution IS NULL ORDER BY 1;
SELECT count(*) FROM projector.events WHERE aggregate_id = 'low-order';
-- nor when a replayed event is tried again, when one aggregate is reset, or
-- when an append applies a backlog
SET projector.clock_offset = '1 h';
SELECT projector_drain('reorder');
SELECT projector_retry('reorder', 'acme', 'low', 1);
SELECT projector_reset('reorder', 'acme', 'low', force => true);
SELECT projector_drain('reorder');
SELECT projector_reset('reorder', force => true);
SELECT projector_append('acme', 'low', 'Other', '{}');
SELECT projector_append('acme', 'low', 'Low', '{}');
RESET projector.clock_offset;
SELECT count(*) FROM projector.events WHERE aggregate_id = 'low-order';
SELECT projector_drop('reorder');

--
-- A caller's search_path with objects of its own before pg_catalog
--
SELECT projector_set_mode('shop', 'async');
CREATE SCHEMA evil;
GRANT USAGE ON SCHEMA evil TO PUBLIC;
DO $$
DECLARE
    t text;
    f text;
BEGIN
    FOREACH t IN ARRAY '{text,bigint,integer,jsonb,uuid,timestamptz,boolean}'::text[] LOOP
        EXECUTE format('CREATE FUNCTION evil.trap(%s, %s) RETURNS boolean LANGUAGE plpgsql AS
            ''BEGIN RAISE EXCEPTION $m$trapped in %s$m$; END''', t, t, t);
        FOREACH f IN ARRAY '{=,<>,<,>,<=,>=}'::text[] LOOP
            EXECUTE format('CREATE OPERATOR evil.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = evil.trap)', f, t, t);
        END LOOP;
    END LOOP;
    FOREACH f IN ARRAY '{now(),clock_timestamp(),gen_random_uuid(),sha256(bytea),convert_to(text\,name),
                         nextval(regclass),unnest(anyarray),jsonb_strip_nulls(jsonb)}'::text[] LOOP
        EXECUTE format('CREATE FUNCTION evil.%s RETURNS void LANGUAGE plpgsql AS
            ''BEGIN RAISE EXCEPTION $m$trapped$m$; END''', f);
    END LOOP;
END $$;
CREATE TABLE evil.events ();
CREATE TABLE evil.projections ();
CREATE TYPE evil.event AS (x int);
SET search_path = evil, pg_catalog, public, shop;
SELECT projector_append('acme', 'evil', 'E', '{}', 0, event_id => '66666666-6666-6666-6666-666666666666');
SELECT projector_append('acme', 'evil', 'E', '{}', 0, event_id => '66666666-6666-6666-6666-666666666666');
SELECT projector_append_batch('acme', 'evil', '[{"event_type": "E", "payload": {}}, {"event_type": "E", "payload": {}}]', 1);
INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload) VALUES ('acme', 'evil', 4, 'E', '{}');
SELECT projector_alter('shop', '{"options": {"idempotent": true}}');
SELECT projector_pause('shop'), projector_resume('shop'), projector_pause('shop', 'acme'), projector_resume('shop', 'acme');
SELECT projector_retry('shop', 'acme', 'evil', 1);
SELECT projector_drain('shop', 'acme');
SELECT projector_reset('shop', 'nobody');
SELECT projector_reset('shop', 'acme', 'evil');
SELECT projector_set_mode('shop', 'inline');
SELECT projector_append('acme', 'evil', 'E', '{"do": "SELECT 1 / 0"}');
SELECT projector_drop('shop');
RESET search_path;
SELECT count(*) FROM projector.events WHERE aggregate_id = 'evil';
SELECT count(*) FROM shop.log WHERE aggregate_id = 'evil';

--
-- The owner is dropped
--
CREATE ROLE regress_owner;
GRANT USAGE ON SCHEMA projector TO regress_owner;
GRANT EXECUTE ON FUNCTION projector_create TO regress_owner;
CREATE FUNCTION public_note(projector.event) RETURNS void LANGUAGE sql AS '';
SET ROLE regress_owner;
SELECT projector_create('orphan', handler => 'public_note', mode => 'inline');
RESET ROLE;
ALTER ROLE regress_owner RENAME TO regress_renamed;
SELECT projector_append('acme', 'orphan', 'E', '{}');
SELECT last_sequence_number FROM projector.offsets WHERE projection_name = 'orphan';
SET ROLE regress_modeller;
SELECT try($$SELECT projector_pause('orphan')$$);
RESET ROLE;
ALTER ROLE regress_renamed RENAME TO regress_owner;
-- or may no longer call its handler
REVOKE EXECUTE ON FUNCTION public_note FROM PUBLIC;
SELECT projector_append('acme', 'orphan', 'E', '{}');
SELECT projector.problem(projection_id) FROM projector.projections WHERE name = 'orphan';
SELECT count(*) FROM projector.failures WHERE projection_name = 'orphan';
GRANT EXECUTE ON FUNCTION public_note TO regress_owner;
SELECT projector_retry('orphan', 'acme', 'orphan', 2);
DROP OWNED BY regress_owner;
DROP ROLE regress_owner;
SELECT projector_append('acme', 'orphan', 'E', '{}');
SELECT projector_retry('orphan', 'acme', 'orphan', 3);
SELECT projector_set_mode('orphan', 'strict');
SELECT projector_append('acme', 'orphan 2', 'E', '{}');
SELECT projector_pause('orphan'), projector_resume('orphan');
SELECT projector_drop('orphan');

\pset format aligned
\pset tuples_only off
SET client_min_messages = warning;
DROP EXTENSION projector CASCADE;
DROP SCHEMA shop, evil CASCADE;
DROP VIEW me;
DROP TABLE secret;
DROP FUNCTION attempt(text, text), try_management(), try_writes(), try_reads(), try(text);
DROP OWNED BY regress_appender, regress_reader, regress_modeller, regress_other, regress_stranger, regress_member;
DROP ROLE regress_appender, regress_reader, regress_member, regress_modeller, regress_other, regress_stranger;
RESET client_min_messages;
