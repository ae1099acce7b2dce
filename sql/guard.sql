-- DDL that would break a live projection is refused, and the error names it.
-- Other DDL is allowed.  projector.guard_ddl = off switches the guard off.
\pset format unaligned
\pset tuples_only on
\set SHOW_CONTEXT never
CREATE EXTENSION projector;
CREATE SCHEMA shop;
\set try_shows 'bare detail hint'
\i sql/include/try.sql
CREATE TYPE shop.mood AS ENUM ('fine', 'bad');
CREATE TABLE shop.stock (tenant_id text, id text, n int NOT NULL DEFAULT 0, m int, other int, mood shop.mood, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
CREATE TABLE shop.sums (tenant_id text, total int, spare int);
CREATE TABLE shop.notes (tenant_id text, note text, spare int);
CREATE FUNCTION shop.note(e projector.event) RETURNS void LANGUAGE sql AS 'INSERT INTO shop.notes VALUES (e.tenant_id, e.event_type)';
SELECT projector_create('stock', fold_columns => '{"n": "s.n + 1", "m": "s.other", "mood": "''fine''"}', targets => '{shop.stock}');
SELECT projector_create('sums', statement => 'INSERT INTO shop.sums (tenant_id, total) SELECT tenant_id, 1 FROM batch', targets => '{shop.sums}');
SELECT projector_create('notes', handler => 'shop.note', targets => '{shop.notes}');

-- dropped
SELECT try('DROP TABLE shop.stock');
SELECT try('DROP TABLE shop.notes, shop.sums');
SELECT try('DROP SCHEMA shop CASCADE');
-- columns: named in the definition, read by an expression, used by a statement
SELECT c, try(format('ALTER TABLE shop.stock DROP %I', c)) FROM unnest('{tenant_id,id,n,m,other,mood,last_event_id,last_event_version}'::text[]) c;
SELECT try('DROP TYPE shop.mood CASCADE');
SELECT try('ALTER TABLE shop.sums DROP total');
SELECT try('ALTER TABLE shop.sums RENAME total TO sum');
SELECT try('ALTER TABLE shop.notes DROP tenant_id');
SELECT try('ALTER TABLE shop.notes RENAME tenant_id TO t');
SELECT try('ALTER TABLE shop.sums DROP spare');
SELECT try('ALTER TABLE shop.notes DROP spare');
-- altered so that it could not be a target
SELECT try('ALTER TABLE shop.stock SET UNLOGGED');
SELECT try('ALTER TABLE shop.notes SET UNLOGGED');
SELECT try('ALTER TABLE shop.stock DROP CONSTRAINT stock_pkey');
SELECT try('ALTER TABLE shop.stock ALTER last_event_version TYPE int');
SELECT try('ALTER TABLE shop.stock ALTER n DROP DEFAULT, ALTER n TYPE date USING current_date');
SELECT try('ALTER TABLE shop.stock ADD UNIQUE (m) DEFERRABLE INITIALLY DEFERRED');
-- so is a partition
CREATE TABLE shop.parts (tenant_id text, note text) PARTITION BY LIST (tenant_id);
CREATE TABLE shop.parts_of_acme PARTITION OF shop.parts FOR VALUES IN ('acme') PARTITION BY LIST (note);
CREATE TABLE shop.leaf PARTITION OF shop.parts_of_acme DEFAULT;
SELECT projector_create('parts', statement => 'INSERT INTO shop.parts SELECT tenant_id, event_type FROM batch', targets => '{shop.parts}');
SELECT try('ALTER TABLE shop.leaf SET UNLOGGED');
SET projector.guard_ddl = off;
ALTER TABLE shop.leaf SET UNLOGGED;
RESET projector.guard_ddl;
SELECT try('ALTER TABLE shop.leaf SET (fillfactor = 70)');
SELECT try('ALTER TABLE shop.leaf SET LOGGED');
SELECT try('ALTER TABLE shop.leaf SET UNLOGGED');
SELECT try('CREATE UNLOGGED TABLE shop.leaf2 PARTITION OF shop.parts_of_acme FOR VALUES IN (''E'')');
SELECT projector_drop('parts');
DROP TABLE shop.parts;
-- harmless
SELECT try('ALTER TABLE shop.stock ADD extra int, ALTER n TYPE bigint');
SELECT try('ALTER TABLE shop.stock RENAME id TO name');
SELECT try('ALTER TABLE shop.stock RENAME TO pile');
SELECT try('CREATE TABLE elsewhere (a int); ALTER TABLE elsewhere DROP a; DROP TABLE elsewhere');
SELECT projector_append('acme', 'a', 'E', '{}');
SELECT projector_drain();
SELECT name, n FROM shop.pile;
-- a function can be dropped at any time
SELECT try('DROP FUNCTION shop.note');
SELECT projector_append('acme', 'a', 'E', '{}');
SELECT projector_drain();
CREATE FUNCTION shop.note(e projector.event) RETURNS void LANGUAGE sql AS 'INSERT INTO shop.notes VALUES (e.tenant_id, e.event_type)';
SELECT projector_drain();
SELECT count(*) FROM shop.notes;
SELECT count(*) FROM projector.failures;
-- while it is missing, the table can be altered: a migration drops it, alters the table, creates it again
CREATE FUNCTION shop.g(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 + 1';
CREATE TABLE shop.gauge (tenant_id text, id text, n int NOT NULL DEFAULT 0, m int, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
CREATE TABLE shop.gsums (tenant_id text, total int, spare int);
SELECT projector_create('gauge', fold_columns => '{"n": "shop.g(s.n)", "m": "s.n"}', targets => '{shop.gauge}');
SELECT projector_create('gsums', statement => 'INSERT INTO shop.gsums (tenant_id, total) SELECT tenant_id, shop.g(1) FROM batch', targets => '{shop.gsums}');
SELECT try('ALTER TABLE shop.gauge ALTER n DROP DEFAULT, ALTER n TYPE text');
SELECT try('DROP FUNCTION shop.g; ALTER TABLE shop.gauge ADD note text; ALTER TABLE shop.gsums ADD note text, DROP spare');
-- while it is missing, the table itself is still guarded
SELECT try('ALTER TABLE shop.gauge DROP n');
SELECT try('ALTER TABLE shop.gauge SET UNLOGGED');
SELECT try('ALTER TABLE shop.gauge DROP CONSTRAINT gauge_pkey');
SELECT try('ALTER TABLE shop.gsums DROP tenant_id');
CREATE FUNCTION shop.g(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 + 1';
SELECT try('ALTER TABLE shop.gsums DROP total');
-- what was broken with the guard off is repaired step by step
SET projector.guard_ddl = off;
ALTER TABLE shop.gauge DROP n, DROP m, DROP CONSTRAINT gauge_pkey, DROP last_event_id;
ALTER TABLE shop.gsums DROP tenant_id, DROP total;
RESET projector.guard_ddl;
SELECT try('ALTER TABLE shop.gauge ADD n int NOT NULL DEFAULT 0');
SELECT try('ALTER TABLE shop.gauge ADD m int');
SELECT try('ALTER TABLE shop.gauge ADD last_event_id uuid');
SELECT try('ALTER TABLE shop.gauge ADD PRIMARY KEY (tenant_id, id)');
SELECT try('ALTER TABLE shop.gsums ADD tenant_id text');
SELECT try('ALTER TABLE shop.gsums ADD total int');
SELECT try('ALTER TABLE shop.gauge DROP last_event_id');
SELECT try('ALTER TABLE shop.gsums RENAME total TO sum');
-- dropping a type drops a column, with the function missing
SELECT try('DROP FUNCTION shop.g; ALTER TABLE shop.pile RENAME TO pile2; ALTER TABLE shop.pile2 RENAME TO pile; CREATE TYPE shop.other AS ENUM (); ALTER TABLE shop.gauge ADD other shop.other; DROP TYPE shop.other CASCADE');
SELECT projector_drop('gauge'), projector_drop('gsums');
DROP TABLE shop.gauge, shop.gsums;
-- a table is free when it is no longer a target, or its projection is dropped
SELECT projector_drop('notes');
SELECT try('DROP TABLE shop.notes');
-- a restored copy is dormant, and not guarded
UPDATE projector.projections SET home = 'elsewhere' WHERE name = 'sums';
SELECT try('DROP TABLE shop.sums');
SELECT projector_drop('sums');
-- the settings of a script made by pg_dump
BEGIN;
SET LOCAL check_function_bodies = off;
SET LOCAL row_security = off;
SELECT try('DROP TABLE shop.pile');
ROLLBACK;
-- anybody may switch it off
CREATE ROLE regress_guarded;
GRANT ALL ON SCHEMA shop TO regress_guarded;
ALTER TABLE shop.pile OWNER TO regress_guarded;
SET ROLE regress_guarded;
SELECT try('DROP TABLE shop.pile');
SET projector.guard_ddl = off;
SELECT try('DROP TABLE shop.pile');
RESET projector.guard_ddl;
RESET ROLE;
SELECT DISTINCT projection_name, why FROM projector.status_by_tenant;
SELECT projector_drop('stock');
-- its functions cannot be called directly
SELECT projector.guard_drop();
SELECT projector.guard_start();

-- the extension and the schema can be dropped while projections exist
DROP FUNCTION shop.note;
CREATE TABLE shop.stock (tenant_id text, id text, n int NOT NULL DEFAULT 0, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
SELECT projector_create('stock', fold_columns => '{"n": "s.n + 1"}', targets => '{shop.stock}');
SELECT evtname, evtenabled FROM pg_event_trigger ORDER BY 1;
SET client_min_messages = warning;
BEGIN;
DROP EXTENSION projector;
SELECT count(*) FROM pg_event_trigger;
DROP TABLE shop.stock;
ROLLBACK;
DROP EXTENSION projector CASCADE;
DROP SCHEMA shop CASCADE;
CREATE SCHEMA ext;
CREATE EXTENSION projector SCHEMA ext;
CREATE TABLE ext.stock (tenant_id text, id text, n int NOT NULL DEFAULT 0, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
SELECT ext.projector_create('stock', fold_columns => '{"n": "s.n + 1"}', targets => '{ext.stock}');
DROP SCHEMA ext CASCADE;
DROP ROLE regress_guarded;
DROP FUNCTION try(text);
RESET client_min_messages;
