-- What users have done is in projector.audit: who, what, with which arguments,
-- and what came of it.  The traces of events are in their failures.
\pset format unaligned
\set SHOW_CONTEXT never
CREATE EXTENSION projector;
\i sql/include/try.sql
CREATE TABLE counts (tenant_id text, id text, n int NOT NULL DEFAULT 0, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
CREATE VIEW acts AS SELECT role, session_role = session_user AS by_session, action, projection_name AS projection, tenant_id AS tenant,
    arguments - 'name' - 'tenant_id' AS arguments, result FROM projector.audit ORDER BY id;
-- arguments are kept with their types
SELECT projector_create('counts', fold_columns => '{"n": "s.n + (e.payload ->> ''by'')::int"}', targets => '{counts}', event_types => '{Added,Lost}',
    options => '{"max_attempts": 1}') AS created;
SELECT projector_create('counts', fold_columns => '{"n": "s.n + (e.payload ->> ''by'')::int"}', targets => '{counts}', event_types => '{Added,Lost}',
    options => '{"max_attempts": 1}', or_replace => true) AS created;
TABLE acts;
-- every function that changes something; events and their contents are not there
SELECT projector_append('acme', 'a', 'Added', '{"by": "secret"}', metadata => '{"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "correlation_id": "order 7"}');
SELECT projector_append('acme', 'a', 'Added', '{"by": 2}');
SELECT projector_drain();
SELECT projector_alter('counts', '{"options": {"batch_size": 10}}');
SELECT projector_set_mode('counts', 'follow', 'globex');
SELECT projector_set_mode('counts', NULL, 'globex');
SELECT projector_pause('counts', reason => 'stocktaking');
SELECT projector_resume('counts');
SELECT projector_retry('counts', 'acme', 'a', 1);
SELECT * FROM projector_requeue('counts', 'acme');
SELECT projector_drain();
SELECT projector_note((SELECT max(id) FROM projector.failures), '{"ticket": 12}');
SELECT projector_skip('counts', 'acme', 'a', 1, 'cannot be read');
SELECT projector_unskip('counts', 'acme', 'a', 1);
SELECT projector_skip('counts', 'acme', 'a', 1, 'cannot be read');
SELECT projector_rebuild('counts', 'acme', 'a');
SELECT projector_rebuild(NULL);
SELECT projector_catch_up('counts', until_log_seq => 1000);
SELECT projector_reset('counts', 'acme', force => true);
SELECT count(*) FROM projector_start_run('counts', 'acme');
SELECT projector_cancel_run((SELECT max(id) FROM projector.runs));
SELECT projector_cancel_run((SELECT max(id) FROM projector.runs));
SELECT projector_adopt();
SELECT projector_prune('1 day');
CREATE ROLE regress_auditor;
SELECT projector_grant('regress_auditor', 'reader');
SELECT role = current_user AS by_me, by_session, action, projection, tenant, arguments - 'run_id' - 'failure_id' AS arguments, result FROM acts;
SELECT count(*) FROM projector.audit WHERE arguments::text LIKE '%secret%';
-- a call that fails or is rolled back leaves no row
SELECT count(*) AS before FROM projector.audit \gset
BEGIN;
SELECT projector_pause('counts');
ROLLBACK;
SELECT try($$SELECT projector_pause('count')$$);
SELECT count(*) - :before AS more FROM projector.audit;
-- the role of the call, and that of the session
GRANT ALL ON SCHEMA public TO regress_auditor;
SELECT projector_grant('regress_auditor', 'modeller');
SET ROLE regress_auditor;
CREATE TABLE own (tenant_id text, id text, n int NOT NULL DEFAULT 0, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
SELECT projector_create('own', fold_columns => '{"n": "s.n + 1"}', targets => '{own}');
SELECT role, session_role = role AS same, action FROM projector.audit WHERE projection_name = 'own';
-- a reader cannot write it
SELECT try($$INSERT INTO projector.audit_log (role, session_role, action, arguments) VALUES ('a', 'b', 'c', '{}')$$);
SELECT try($$DELETE FROM projector.audit$$);
SELECT projector_drop('own');
DROP TABLE own;
RESET ROLE;
-- nobody changes it, and nothing is deleted before its time
SELECT try($$UPDATE projector.audit_log SET role = 'nobody'$$);
SELECT try($$TRUNCATE projector.audit_log$$);
SELECT try($$DELETE FROM projector.audit_log$$);
SELECT try($$DELETE FROM projector.audit$$);
INSERT INTO projector.audit_log (happened_at, role, session_role, action, arguments) VALUES (now() - interval '2 years', 'a', 'b', 'old', '{}');
DELETE FROM projector.audit_log WHERE action = 'old';
-- the trigger's function is of no use elsewhere
CREATE TABLE elsewhere (happened_at timestamptz);
CREATE TRIGGER guard BEFORE UPDATE ON elsewhere FOR EACH STATEMENT EXECUTE FUNCTION projector.audit_guard();
SELECT try($$UPDATE elsewhere SET happened_at = now()$$);
-- traces
SELECT sequence_number, traceparent, correlation_id, resolution FROM projector.failures ORDER BY id;
SELECT projector_append('acme', 'b', 'Added', '{}', metadata => jsonb_build_object('traceparent', repeat(U&'\00e9', 150), 'correlation_id', 7));
SELECT projector_append('acme', 'c', 'Added', '{"by": "x"}', metadata => '["traceparent"]');
SELECT projector_drain();
SELECT aggregate_id, length(traceparent), correlation_id FROM projector.failures WHERE aggregate_id IN ('b', 'c') ORDER BY 1;
SELECT projector_drop('counts');
SELECT action, projection FROM acts WHERE action = 'drop';
DROP FUNCTION try;
DROP EXTENSION projector CASCADE;
DROP TABLE counts, elsewhere;
REVOKE ALL ON SCHEMA public FROM regress_auditor;
DROP ROLE regress_auditor;
