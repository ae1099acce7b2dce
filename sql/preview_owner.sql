-- A preview runs the projection's code as its present owner, even if the changes name another.
\pset format unaligned
\pset tuples_only on
CREATE EXTENSION projector;
CREATE ROLE regress_previewer;
GRANT USAGE ON SCHEMA projector TO regress_previewer;
GRANT EXECUTE ON FUNCTION projector_create, projector_alter, projector_preview, projector_drain TO regress_previewer;
CREATE SCHEMA own AUTHORIZATION regress_previewer;
CREATE ROLE regress_previewed SUPERUSER;
SET SESSION AUTHORIZATION regress_previewer;
CREATE TABLE own.seen (tenant_id text, who text);
CREATE FUNCTION own.note(e projector.event) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    RAISE NOTICE 'run as %', current_user;
    INSERT INTO own.seen VALUES (e.tenant_id, current_user);
END $$;
SELECT projector_create('seen', handler => 'own.note', targets => '{own.seen}');
RESET SESSION AUTHORIZATION;
SELECT projector_append('acme', 'a', 'E', '{}');
SELECT projector_drain();
SET SESSION AUTHORIZATION regress_previewer;
\set VERBOSITY terse
SELECT count(*) FROM projector_preview('seen', '{"options": {"batch_size": 5}}', 'acme');
SELECT count(*) FROM projector_preview('seen', '{"owner": "regress_previewed"}', 'acme');
SELECT count(*) FROM projector_preview('seen', '{"owner": "regress_previewer"}', 'acme');
SELECT projector_alter('seen', '{"owner": "regress_previewed"}');
RESET SESSION AUTHORIZATION;
SELECT who FROM own.seen;
SET client_min_messages = warning;
DROP EXTENSION projector CASCADE;
DROP SCHEMA own CASCADE;
DROP ROLE regress_previewer, regress_previewed;
