-- A projection that cannot run stops: nothing is tried, no attempt is counted,
-- and it continues when the cause is gone.
\pset format unaligned
\pset tuples_only on
\set SHOW_CONTEXT never
CREATE EXTENSION projector;
CREATE TABLE notes (tenant_id text, note text);
CREATE TABLE sums (tenant_id text, id text, n int NOT NULL DEFAULT 0, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
CREATE FUNCTION note(e projector.event) RETURNS void LANGUAGE sql AS 'INSERT INTO notes VALUES (e.tenant_id, e.aggregate_id)';
CREATE FUNCTION add(s sums, e projector.event) RETURNS sums IMMUTABLE LANGUAGE sql AS
    'SELECT e.tenant_id, e.aggregate_id, coalesce(s.n, 0) + 1, NULL::uuid, NULL::bigint';
SELECT projector_create('notes', handler => 'note', targets => '{notes}', options => '{"max_attempts": 1}');
SELECT projector_create('sums', fold => 'add', targets => '{sums}', mode => 'inline', options => '{"max_attempts": 1}');
CREATE VIEW now AS SELECT (SELECT count(*) FROM notes) AS notes, (SELECT sum(n) FROM sums) AS sums,
    (SELECT count(*) FROM projector.outbox) AS queued, (SELECT count(*) FROM projector.failures) AS failures,
    (SELECT sum(failed_count) FROM projector.status_by_tenant) AS failed;
SELECT projector_append('acme', 'a', 'E', '{}');
SELECT projector_drain();
TABLE now;

-- a migration drops the functions and creates them again
DROP FUNCTION note, add;
SELECT projector_append('acme', 'a', 'E', '{}'), projector_append('acme', 'b', 'E', '{}');
SELECT projector_drain();
SELECT projector_drain('sums');
TABLE now;
SELECT projection_name, why, stale FROM projector.status_by_tenant ORDER BY 1;
SELECT projector_wait('notes', 'acme', 'b', 1, '0 s');
SELECT projector_retry('notes', 'acme', 'b', 1);
SELECT projector_catch_up('notes', 'acme');
SELECT projector_rebuild('notes', 'acme');
SELECT projector_start_run('sums');
-- a strict append fails and says why
SELECT projector_set_mode('sums', 'strict');
SELECT projector_append('acme', 'c', 'E', '{}');
SELECT projector_set_mode('sums', 'inline');
CREATE FUNCTION note(e projector.event) RETURNS void LANGUAGE sql AS 'INSERT INTO notes VALUES (e.tenant_id, e.aggregate_id)';
CREATE FUNCTION add(s sums, e projector.event) RETURNS sums IMMUTABLE LANGUAGE sql AS
    'SELECT e.tenant_id, e.aggregate_id, coalesce(s.n, 0) + 1, NULL::uuid, NULL::bigint';
SELECT projector_drain();
TABLE now;
SELECT projection_name, why, stale FROM projector.status_by_tenant ORDER BY 1;
SELECT projector_append('acme', 'b', 'E', '{}');
TABLE now;
-- a revoked privilege
CREATE ROLE regress_stopped;
GRANT USAGE ON SCHEMA projector TO regress_stopped;
GRANT EXECUTE ON FUNCTION projector_create TO regress_stopped;
CREATE TABLE theirs (tenant_id text);
ALTER TABLE theirs OWNER TO regress_stopped;
CREATE FUNCTION their_note(e projector.event) RETURNS void LANGUAGE sql AS 'INSERT INTO theirs VALUES (e.tenant_id)';
SET ROLE regress_stopped;
SELECT projector_create('theirs', handler => 'their_note', targets => '{theirs}', event_types => '{T}', mode => 'inline');
RESET ROLE;
REVOKE EXECUTE ON FUNCTION their_note FROM PUBLIC;
SELECT projector_append('acme', 't', 'T', '{}');
SELECT count(*) FROM theirs;
SELECT why FROM projector.status_by_tenant WHERE projection_name = 'theirs';
GRANT EXECUTE ON FUNCTION their_note TO regress_stopped;
SELECT projector_drain();
SELECT count(*) FROM theirs;
-- an owner that does not own the targets
ALTER TABLE theirs OWNER TO CURRENT_USER;
SELECT projector_append('acme', 't', 'T', '{}');
SELECT why FROM projector.status_by_tenant WHERE projection_name = 'theirs';
ALTER TABLE theirs OWNER TO regress_stopped;
SELECT projector_append('acme', 't', 'T', '{}');
SELECT count(*) FROM theirs;
SELECT count(*) FROM projector.failures;

\pset format aligned
\pset tuples_only off
SET client_min_messages = warning;
DROP EXTENSION projector CASCADE;
DROP TABLE notes, sums, theirs CASCADE;
DROP ROLE regress_stopped;
RESET client_min_messages;
