-- As which role, and with which settings, the code of folds and statements runs.
\pset format unaligned
\pset tuples_only on
CREATE EXTENSION projector SCHEMA public;
CREATE ROLE regress_owner;
CREATE ROLE regress_other;
CREATE SCHEMA own AUTHORIZATION regress_owner;
CREATE SCHEMA other AUTHORIZATION regress_other;
GRANT USAGE ON SCHEMA other TO regress_owner;
GRANT USAGE ON SCHEMA own TO regress_other;
GRANT USAGE ON SCHEMA projector TO regress_owner, regress_other;
GRANT EXECUTE ON FUNCTION projector_create, projector_alter, projector_drop, projector_drain, projector_append, projector_retry TO regress_owner, regress_other;
GRANT SELECT ON projector.projections TO regress_owner;
\set try_shows 'hint'
\i sql/include/try.sql
CREATE FUNCTION drain() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('projector.clock_offset', extract(epoch FROM current_setting('projector.clock_offset')::interval)::int + 3600 || ' s', false);
    RETURN projector_drain();
END $$;
CREATE VIEW failed AS
    SELECT projection_name AS projection, aggregate_id AS id, error_code AS code, error_message AS message FROM projector.failures
    WHERE resolved_at IS NULL ORDER BY projection_name, log_seq;

--
-- role, path and tenant: the same for a function, expressions, their defaults, keys, triggers and statements
--
SET SESSION AUTHORIZATION regress_owner;
SET search_path = own, other, public;
CREATE FUNCTION own.who() RETURNS text STABLE LANGUAGE sql AS
    $$SELECT concat_ws(' ', current_user, '[' || current_setting('search_path') || ']', current_setting('projector.tenant_id'))$$;
-- an expression calls a function that is wrongly declared IMMUTABLE
CREATE FUNCTION own.who(text) RETURNS text IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN own.who(); END';
CREATE TABLE own.t (tenant_id text, id text, who text, by_default text DEFAULT who(), by_trigger text, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
CREATE TABLE own.t2 (LIKE own.t INCLUDING ALL);
CREATE TABLE own.t3 (tenant_id text, who text);
CREATE TABLE own.t4 (tenant_id text, id text, n int DEFAULT 0, last_event_id uuid, last_event_version bigint, last_log_seq bigint, PRIMARY KEY (tenant_id, id));
CREATE FUNCTION own.note() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN new.by_trigger := own.who(); RETURN new; END';
CREATE TRIGGER note BEFORE INSERT OR UPDATE ON own.t FOR EACH ROW EXECUTE FUNCTION own.note();
CREATE TRIGGER note BEFORE INSERT OR UPDATE ON own.t2 FOR EACH ROW EXECUTE FUNCTION own.note();
CREATE FUNCTION own.t_fold(s own.t, e projector.event) RETURNS own.t STABLE LANGUAGE plpgsql AS $$
BEGIN
    s.tenant_id := e.tenant_id;
    s.id := e.aggregate_id;
    s.who := who();
    RETURN s;
END $$;
SELECT projector_create('t', fold => 't_fold', targets => '{t}', event_types => '{A}');
SELECT projector_create('t2', fold_columns => '{"who": "who(e.aggregate_id)"}', targets => '{t2}', event_types => '{A}',
    options => '{"digest_ignore": ["by_default"]}');
SELECT projector_create('t3', statement => 'INSERT INTO t3 SELECT tenant_id, who() FROM batch', targets => '{t3}', event_types => '{A}');
SELECT projector_create('t4', key => 'who(aggregate_id)', fold_columns => '{"n": "s.n + 1"}', targets => '{t4}', event_types => '{A}');
RESET SESSION AUTHORIZATION;
SET search_path = public;
SELECT projector_append('acme', 'a', 'A', '{}');
SELECT drain();
SELECT who, by_default, by_trigger FROM own.t;
SELECT who, by_default, by_trigger FROM own.t2;
SELECT who FROM own.t3;
SELECT id FROM own.t4;
TABLE failed;
-- the session has not changed
SELECT current_user = session_user, current_setting('search_path'), coalesce(current_setting('projector.tenant_id', true), '');

--
-- objects that others put into the search_path are not used
--
SET SESSION AUTHORIZATION regress_other;
CREATE FUNCTION other.who() RETURNS text STABLE LANGUAGE sql AS $$SELECT 'planted'$$;
CREATE FUNCTION pg_temp.who() RETURNS text STABLE LANGUAGE sql AS $$SELECT 'planted'$$;
CREATE FUNCTION other.who(text) RETURNS text IMMUTABLE LANGUAGE sql AS $$SELECT 'planted'$$;
CREATE FUNCTION pg_temp.who(text) RETURNS text IMMUTABLE LANGUAGE sql AS $$SELECT 'planted'$$;
CREATE FUNCTION other.plant(text, text) RETURNS boolean LANGUAGE sql AS 'SELECT true';
CREATE OPERATOR other.= (LEFTARG = text, RIGHTARG = text, FUNCTION = other.plant);
CREATE TEMP TABLE t3 (tenant_id text, who text);
SET search_path = pg_temp, other, public;
SELECT projector_append('acme', 'a', 'A', '{}');
SELECT projector_drain();
SELECT count(*) FROM pg_temp.t3;
DROP TABLE pg_temp.t3;
RESET SESSION AUTHORIZATION;
SET search_path = public;
SELECT count(*), count(DISTINCT who) FROM own.t3;
SELECT count(*) FROM own.t2 WHERE who LIKE '%planted%';
TABLE failed;
DROP FUNCTION other.who() CASCADE;
DROP FUNCTION other.who(text) CASCADE;

--
-- what the owner may not do, its code may not do
--
SET SESSION AUTHORIZATION regress_other;
CREATE TABLE other.secret (tenant_id text, n int);
CREATE TABLE other.target (tenant_id text, id text, n int DEFAULT 0, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
CREATE FUNCTION other.private() RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT 1';
REVOKE EXECUTE ON FUNCTION other.private FROM PUBLIC;
CREATE FUNCTION other.public() RETURNS int STABLE LANGUAGE plpgsql AS 'BEGIN RETURN 1; END';
CREATE FUNCTION other.public_one(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN 1; END';
SET SESSION AUTHORIZATION regress_owner;
SET search_path = own, public;
CREATE TABLE own.free (LIKE own.t INCLUDING ALL EXCLUDING DEFAULTS);
CREATE TABLE own.free4 (LIKE own.t4 INCLUDING ALL);
SELECT try($$SELECT projector_create('x', targets => '{other.target}', fold_columns => '{"n": "1"}')$$);
SELECT try($$SELECT projector_create('x', targets => '{free}', fold_columns => '{"who": "other.private()"}')$$);
SELECT try($$SELECT projector_create('x', targets => '{free4}', key => 'other.private()', fold_columns => '{"n": "1"}')$$);
-- (statements are checked when they run)
SELECT projector_create('x', statement => 'INSERT INTO other.secret SELECT tenant_id, 1 FROM batch', event_types => '{X}');
-- side effects: of a function, of a function that an expression calls (it may be wrongly declared IMMUTABLE), and of a statement
CREATE FUNCTION own.spy(what text) RETURNS text IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    IF what = 'write' THEN
        RETURN own.do_write();
    ELSIF what = 'temp' THEN
        RETURN own.do_temp();
    ELSIF what = 'role' THEN
        RETURN own.do_role();
    ELSIF what = 'tenant' THEN
        PERFORM set_config('projector.tenant_id', 'beta', true);
    ELSIF what = 'ddl' THEN
        RETURN own.do_ddl();
    ELSIF what = 'truncate' THEN
        RETURN own.do_truncate();
    ELSIF what = 'append' THEN
        RETURN public.projector_append('acme', 'mine', 'B', '{}');
    ELSIF what = 'drain' THEN
        RETURN public.projector_drain();
    ELSIF what = 'batch' THEN
        RETURN own.do_batch();
    END IF;
    RETURN what;
END $$;
CREATE FUNCTION own.do_write() RETURNS text LANGUAGE plpgsql AS $$BEGIN INSERT INTO other.secret VALUES ('acme', 1); RETURN ''; END$$;
CREATE FUNCTION own.do_temp() RETURNS text LANGUAGE plpgsql AS $$BEGIN CREATE TEMP TABLE x (a int); RETURN ''; END$$;
CREATE FUNCTION own.do_role() RETURNS text LANGUAGE plpgsql AS $$BEGIN SET ROLE regress_owner; RETURN ''; END$$;
CREATE FUNCTION own.do_ddl() RETURNS text LANGUAGE plpgsql AS $$BEGIN ALTER TABLE own.t DISABLE ROW LEVEL SECURITY; RETURN ''; END$$;
CREATE FUNCTION own.do_truncate() RETURNS text LANGUAGE plpgsql AS $$BEGIN TRUNCATE own.t3; RETURN ''; END$$;
CREATE FUNCTION own.do_batch() RETURNS text LANGUAGE plpgsql AS $$BEGIN RETURN count(*) FROM batch; END$$;
CREATE TABLE own.s1 (LIKE own.t INCLUDING ALL EXCLUDING DEFAULTS);
CREATE TABLE own.s2 (LIKE own.t INCLUDING ALL EXCLUDING DEFAULTS);
CREATE TABLE own.s3 (LIKE own.t3);
CREATE FUNCTION own.spy_fold(s own.s1, e projector.event) RETURNS own.s1 STABLE LANGUAGE plpgsql AS $$
BEGIN
    s.tenant_id := e.tenant_id;
    s.id := e.aggregate_id;
    s.who := own.spy(e.aggregate_id);
    RETURN s;
END $$;
SELECT projector_create('spy', fold => 'spy_fold', targets => '{s1}', event_types => '{B}');
SELECT projector_create('spy2', fold_columns => '{"who": "own.spy(e.aggregate_id)"}', targets => '{s2}', event_types => '{B}');
SELECT projector_create('spy3', statement => 'INSERT INTO s3 SELECT tenant_id, own.spy(aggregate_id) FROM batch', targets => '{s3}', event_types => '{B}');
RESET SESSION AUTHORIZATION;
SET search_path = public;
SELECT projector_append('acme', 'x', 'X', '{}');
SELECT count(projector_append('acme', x, 'B', '{}')) FROM unnest('{fine,write,temp,role,tenant,ddl,truncate,append,drain,batch}'::text[]) x;
SELECT drain();
SELECT projection, id, code, message FROM failed ORDER BY id COLLATE "C", projection;
SELECT count(*) FROM other.secret;
SELECT (SELECT count(*) FROM own.s1 WHERE id = 'fine'), (SELECT count(*) FROM own.s2 WHERE id = 'fine'), (SELECT count(*) FROM own.s3 WHERE who = 'fine');
SELECT count(*) FROM projector.events WHERE aggregate_id = 'mine';
SELECT projector_drop(p) FROM unnest('{x,spy,spy2,spy3,t,t2,t3,t4}'::text[]) p;

--
-- a revoked privilege: the event fails and waits
--
SET SESSION AUTHORIZATION regress_owner;
SET search_path = own, public;
CREATE TABLE own.u (tenant_id text, id text, n int DEFAULT 0, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
CREATE TABLE own.u2 (LIKE own.u INCLUDING ALL);
CREATE TABLE own.u3 (LIKE own.u INCLUDING ALL);
CREATE TABLE own.u4 (LIKE own.u INCLUDING ALL);
SET SESSION AUTHORIZATION regress_other;
CREATE FUNCTION other.u_fold(s own.u, e projector.event) RETURNS own.u IMMUTABLE LANGUAGE sql AS 'SELECT e.tenant_id, e.aggregate_id, coalesce(s.n, 0) + 1, NULL::uuid, NULL::bigint';
SET SESSION AUTHORIZATION regress_owner;
SELECT projector_create('u', fold => 'other.u_fold', targets => '{u}', event_types => '{U}');
SELECT projector_create('u2', fold_columns => '{"n": "s.n + other.public_one(s.n)"}', targets => '{u2}', event_types => '{U}');
SELECT projector_create('u3', statement => 'INSERT INTO u3 AS t SELECT tenant_id, aggregate_id, other.public() FROM batch ON CONFLICT (tenant_id, id) DO UPDATE SET n = t.n + 1', targets => '{u3}', event_types => '{U}');
SELECT projector_create('u4', fold_columns => '{"n": "s.n + 1"}', targets => '{u4}', event_types => '{U}');
RESET SESSION AUTHORIZATION;
SET search_path = public;
SELECT projector_append('acme', 'a', 'U', '{}');
SELECT drain();
CREATE FUNCTION counts() RETURNS text LANGUAGE sql AS
    $$SELECT concat_ws(' ', (SELECT n FROM own.u), (SELECT n FROM own.u2), (SELECT n FROM own.u3), (SELECT n FROM own.u4))$$;
SELECT counts();
REVOKE EXECUTE ON FUNCTION other.u_fold, other.public, other.public_one FROM PUBLIC;
ALTER TABLE own.u4 OWNER TO regress_other;
SELECT projector_append('acme', 'a', 'U', '{}');
SELECT drain();
SELECT counts();
TABLE failed;
-- another role's table of the same name cannot be a target either
ALTER TABLE own.u4 RENAME TO u5;
CREATE TABLE own.u4 (LIKE own.u INCLUDING ALL);
SELECT drain();
SELECT message FROM failed WHERE projection = 'u4';
SELECT count(*) FROM own.u4;
DROP TABLE own.u4;
ALTER TABLE own.u5 RENAME TO u4;
GRANT EXECUTE ON FUNCTION other.u_fold, other.public, other.public_one TO regress_owner;
ALTER TABLE own.u4 OWNER TO regress_owner;
SELECT drain();
SELECT counts();
TABLE failed;
-- privileges on a statement's tables are checked each time
SET SESSION AUTHORIZATION regress_other;
GRANT INSERT ON other.secret TO regress_owner;
SET SESSION AUTHORIZATION regress_owner;
SELECT projector_create('leak', statement => 'INSERT INTO other.secret SELECT tenant_id, 1 FROM batch', event_types => '{V}',
    options => '{"writes": ["other.secret"]}');
RESET SESSION AUTHORIZATION;
SELECT projector_append('acme', 'v', 'V', '{}');
SELECT drain();
SELECT count(*) FROM other.secret;
REVOKE INSERT ON other.secret FROM regress_owner;
SELECT projector_append('acme', 'v', 'V', '{}');
SELECT drain();
SELECT count(*) FROM other.secret;
SELECT code, message FROM failed;

--
-- altering a projection does not run its owner's code as the caller
--
SET SESSION AUTHORIZATION regress_owner;
SET search_path = own, public;
CREATE FUNCTION own.reveal() RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$BEGIN RAISE NOTICE 'run as %', current_user; RETURN 1; END$$;
SELECT projector_alter('u2', '{"fold_columns": {"n": "s.n + reveal()"}}');
SELECT projector_alter('u3', jsonb_build_object('statement', 'INSERT INTO u3 AS t SELECT tenant_id, aggregate_id, reveal() FROM batch ON CONFLICT (tenant_id, id) DO UPDATE SET n = t.n + 1'));
RESET SESSION AUTHORIZATION;
SET search_path = public;
SELECT projector_alter('u2', '{"options": {"batch_size": 5}}');
SELECT projector_alter('u3', '{"options": {"batch_size": 5}}');

--
-- policies do not apply to a fold's own row; they apply to what statements write
--
ALTER TABLE own.u2 ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY mine ON own.u2 USING (tenant_id = current_setting('projector.tenant_id', true));
ALTER TABLE own.u3 ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY mine ON own.u3 USING (tenant_id = current_setting('projector.tenant_id', true));
SET client_min_messages = warning;
SELECT projector_append('acme', 'a', 'U', '{}');
SELECT drain();
SELECT counts();
SELECT projector_alter('u3', jsonb_build_object('statement', 'INSERT INTO own.u3 SELECT ''beta'', aggregate_id, 1 FROM batch'));
SELECT projector_append('acme', 'a', 'U', '{}');
SELECT drain();
SELECT projection, code, message FROM failed WHERE projection = 'u3';

DROP EXTENSION projector CASCADE;
DROP VIEW IF EXISTS failed;
DROP FUNCTION try, drain, counts;
DROP OWNED BY regress_owner, regress_other CASCADE;
DROP ROLE regress_owner, regress_other;
RESET projector.clock_offset;
