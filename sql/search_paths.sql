-- Which search_path a projection's code runs with, and what projector_definitions
-- prints after tables, roles and schemas have been renamed.
\pset format unaligned
\pset tuples_only on
\set SHOW_CONTEXT never
CREATE EXTENSION projector;
CREATE SCHEMA s1;
CREATE SCHEMA s2;
CREATE TABLE s1.u (tenant_id text, id bigint);
CREATE TABLE s2.u (tenant_id text, id bigint);
CREATE FUNCTION define() RETURNS text LANGUAGE sql AS $$
    SELECT projector_create('st', statement => 'INSERT INTO u SELECT tenant_id, log_seq FROM batch', targets => '{u}', or_replace => true)
$$;
SET search_path = s1, public;
SELECT define(), define();
SELECT projector_append('acme', 'a', 'E', '{}');
SELECT projector_drain();
SET search_path = s2, public;
SELECT define(), define();
SELECT targets, search_path FROM projector.projections;
SELECT stale FROM projector.status_by_tenant;
SELECT projector_append('acme', 'a', 'E', '{}');
SELECT projector_drain();
SELECT (SELECT count(*) FROM s1.u), (SELECT count(*) FROM s2.u), (SELECT count(*) FROM projector.failures);
-- the same path by another name is no change
CREATE ROLE regress_path;
SET search_path = missing, s2, public;
SELECT define();
RESET search_path;

-- definitions have the present names, path and owner, whether or not a worker has noted them
CREATE TABLE cnt (tenant_id text, id text, n bigint NOT NULL DEFAULT 0, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
CREATE TABLE more (LIKE cnt INCLUDING ALL);
SELECT projector_create('cnt', fold_columns => '{"n": "s.n + 1"}', targets => '{cnt}');
SELECT projector_create('more', fold_columns => '{"n": "s.n + 1"}', targets => '{more}');
ALTER TABLE more OWNER TO regress_path;
SELECT projector_alter('more', '{"owner": "regress_path"}');
SELECT projector_definitions();
ALTER TABLE cnt RENAME TO "Counts";
ALTER TABLE s2.u SET SCHEMA public;
ALTER ROLE regress_path RENAME TO regress_paths;
SELECT projector_definitions();
-- a drain notes them, so that a dump has them
SELECT name, owner = current_user, targets FROM projector.projections ORDER BY 1;
SELECT projector_drain() >= 0;
SELECT name, owner = current_user, targets FROM projector.projections ORDER BY 1;
-- they can be run
CREATE TABLE commands AS SELECT row_number() OVER () AS n, d FROM projector_definitions() d;
SELECT projector_drop(name) FROM projector.projections ORDER BY name;
SET client_min_messages = error;
SELECT d FROM commands ORDER BY n \gexec
RESET client_min_messages;
RESET search_path;
SELECT name, targets, search_path, owner = current_user FROM projector.projections ORDER BY 1;
SELECT array(SELECT projector_definitions()) = array(SELECT d FROM commands ORDER BY n);

\pset format aligned
\pset tuples_only off
SET client_min_messages = warning;
DROP EXTENSION projector CASCADE;
DROP SCHEMA s1, s2 CASCADE;
DROP TABLE "Counts", more, u, commands;
DROP FUNCTION define;
DROP ROLE regress_paths;
RESET client_min_messages;
