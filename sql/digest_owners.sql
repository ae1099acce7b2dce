-- Who may read a read model's digest, and what happens if its owner is gone.
\pset format unaligned
\pset tuples_only on
\set SHOW_CONTEXT never
\i sql/include/try.sql
CREATE EXTENSION projector;
CREATE ROLE regress_modeller;
CREATE ROLE regress_other;
SELECT projector_grant('regress_modeller', 'modeller');
SELECT projector_grant('regress_other', 'modeller');
CREATE SCHEMA m AUTHORIZATION regress_modeller;
GRANT USAGE ON SCHEMA m TO regress_other;
SET ROLE regress_modeller;
CREATE TABLE m.cnt (tenant_id text, id text, n bigint NOT NULL DEFAULT 0, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
CREATE TABLE m.seen (tenant_id text, id bigint);
SELECT projector_create('cnt', fold_columns => '{"n": "s.n + 1"}', targets => '{m.cnt}');
SELECT projector_create('seen', statement => 'INSERT INTO m.seen SELECT e.tenant_id, e.log_seq FROM batch e', targets => '{m.seen}');
RESET ROLE;
CREATE TABLE own (LIKE m.cnt INCLUDING ALL);
ALTER TABLE own OWNER TO regress_other;
GRANT CREATE ON SCHEMA public TO regress_other;
SET ROLE regress_other;
SELECT projector_create('own', fold_columns => '{"n": "s.n + 1"}', targets => '{own}');
RESET ROLE;
SELECT projector_append('acme', 'a', 'E', '{}');
SELECT projector_drain();

-- the owner
SET ROLE regress_modeller;
SELECT length(projector_digest('cnt', 'acme')), length(projector_digest('seen', 'acme'));
SELECT projection_name, tenant_id, matches FROM projector_check_digests();
SELECT projection_name, tenant_id, matches FROM projector_check_digests('cnt');
SELECT try($$SELECT projector_digest_all('acme')$$);
-- somebody else
SET ROLE regress_other;
SELECT try($$SELECT projector_digest('cnt', 'acme')$$);
SELECT try($$SELECT projector_digest('seen', 'acme')$$);
SELECT try($$SELECT * FROM projector_check_digests('cnt')$$);
SELECT projection_name, tenant_id, matches FROM projector_check_digests();
SELECT try($$SELECT projector_digest_all('acme')$$);
RESET ROLE;
SELECT length(projector_digest_all('acme'));

-- it is stored under the pair's lock
BEGIN;
SELECT length(projector_digest('seen', 'acme'));
SELECT mode FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid() ORDER BY 1;
COMMIT;

-- an owner who is gone: the others are still checked
REASSIGN OWNED BY regress_other TO CURRENT_USER;
DROP OWNED BY regress_other;
DROP ROLE regress_other;
SELECT projection_name, tenant_id, matches, found_digest IS NULL FROM projector_check_digests();
SELECT length(projector_digest_all('acme'));
SELECT try($$SELECT projector_digest('own', 'acme')$$);

\pset format aligned
\pset tuples_only off
SET client_min_messages = warning;
DROP EXTENSION projector CASCADE;
DROP SCHEMA m CASCADE;
DROP TABLE own;
DROP FUNCTION try(text);
DROP OWNED BY regress_modeller;
DROP ROLE regress_modeller;
RESET client_min_messages;
