-- Errors, hints and notices of the functions that change the registry.
\pset format unaligned
\pset tuples_only on
\set SHOW_CONTEXT never
\i sql/include/try.sql
CREATE EXTENSION projector;
CREATE TABLE cnt (tenant_id text, id text, n bigint NOT NULL DEFAULT 0, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
CREATE TABLE seen (tenant_id text, id bigint);
CREATE TABLE logged (LIKE seen);

-- a name in a hint is quoted
INSERT INTO cnt VALUES ('acme', 'old');
SELECT projector_create('O''Brien', fold_columns => '{"n": "s.n + 1"}', targets => '{cnt}');
SELECT projector_append('acme', 'a', 'E', '{}');
SELECT projector_pause('O''Brien', 'acme');
SELECT projector_resume('O''Brien');
SELECT projector_pause('O''Brien');
SELECT projector_resume('O''Brien', 'acme');
SELECT try('DROP TABLE cnt');
SELECT projector_resume('O''Brien');

-- an expression that is wrong is named
SELECT try($$SELECT projector_alter('O''Brien', '{"fold_columns": {"n": ""}}')$$);
SELECT try($$SELECT projector_alter('O''Brien', '{"fold_columns": {"n": "s.n +"}}')$$);

-- or_replace leaves the mode alone
SELECT projector_create('O''Brien', fold_columns => '{"n": "s.n + 1"}', targets => '{cnt}', mode => 'inline', or_replace => true);
SELECT projector_create('O''Brien', fold_columns => '{"n": "s.n + 1"}', targets => '{cnt}', mode => 'async', or_replace => true);

-- or_replace if the owner is gone
CREATE ROLE regress_gone;
SELECT projector_grant('regress_gone', 'modeller');
ALTER TABLE seen OWNER TO regress_gone;
SET ROLE regress_gone;
SELECT projector_create('seen', statement => 'INSERT INTO seen SELECT tenant_id, log_seq FROM batch', targets => '{seen}');
RESET ROLE;
REASSIGN OWNED BY regress_gone TO CURRENT_USER;
DROP OWNED BY regress_gone;
DROP ROLE regress_gone;
SELECT try($$SELECT projector_create('seen', statement => 'INSERT INTO seen SELECT tenant_id, log_seq FROM batch', targets => '{seen}', or_replace => true)$$);
SELECT projector_drop('seen');

-- a timeout beyond the last possible time
SELECT try($$SELECT projector_wait('O''Brien', 'acme', 'a', 1, '178000000 years')$$);
SELECT try($$SELECT projector_wait_log('O''Brien', 'acme', 1, '2000000000 days')$$);

\pset format aligned
\pset tuples_only off
SET client_min_messages = warning;
DROP EXTENSION projector CASCADE;
DROP TABLE cnt, seen, logged;
DROP FUNCTION try(text);
RESET client_min_messages;
