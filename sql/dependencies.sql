-- Option depends_on never leads back to a projection.
\pset format unaligned
\pset tuples_only on
\set SHOW_CONTEXT never
\i sql/include/try.sql
CREATE EXTENSION projector;
CREATE TABLE cnt (tenant_id text, id text, n bigint NOT NULL DEFAULT 0, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
CREATE TABLE seen (tenant_id text, id bigint);
CREATE TABLE more (LIKE seen);
SELECT projector_create('b', statement => 'INSERT INTO seen SELECT tenant_id, log_seq FROM batch', targets => '{seen}');
SELECT projector_create('c', statement => 'INSERT INTO more SELECT tenant_id, log_seq FROM batch', targets => '{more}');
SELECT projector_create('a', fold_columns => '{"n": "s.n + 1"}', targets => '{cnt}', options => '{"depends_on": ["b", "c"]}');

-- a projection that is dropped is no longer a dependency
SELECT projector_drop('b');
SELECT name, options FROM projector.projections ORDER BY 1;
SELECT projector_drop('c');
SELECT name, options FROM projector.projections ORDER BY 1;

-- so another one can have its name
SELECT projector_create('x', statement => 'INSERT INTO seen SELECT tenant_id, log_seq FROM batch', targets => '{seen}', options => '{"depends_on": ["a"]}');
SELECT projector_alter('x', '{"name": "b"}');
SELECT try($$SELECT projector_alter('a', '{"options": {"depends_on": ["b"]}}')$$);
SELECT name, options FROM projector.projections ORDER BY 1;
-- a name that was left in a restored registry
UPDATE projector.projections SET options = '{"depends_on": ["gone"]}' WHERE name = 'a';
SELECT try($$SELECT projector_alter('b', '{"name": "gone"}')$$);
SELECT projector_alter('a', '{"options": {"batch_size": 10}}');
SELECT name, options FROM projector.projections ORDER BY 1;

-- a circle made by hand: nothing runs for ever
UPDATE projector.projections SET options = '{"depends_on": ["b"]}' WHERE name = 'a';
SELECT count(*) FROM projector_definitions();
SELECT projector_append('acme', 'a', 'E', '{}');
SELECT projector_drain();
SELECT projector_rebuild(NULL);
SELECT count(*) FROM projector_start_run(NULL);

\pset format aligned
\pset tuples_only off
SET client_min_messages = warning;
DROP EXTENSION projector CASCADE;
DROP TABLE cnt, seen, more;
DROP FUNCTION try(text);
RESET client_min_messages;
