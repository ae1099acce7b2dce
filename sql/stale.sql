-- When a read model is stale, who can see it, and that reading it changes nothing.
\pset format unaligned
\pset tuples_only on
\set SHOW_CONTEXT never
CREATE EXTENSION projector;
CREATE SCHEMA hidden;
CREATE TABLE hidden.stock (tenant_id text, id text, n int NOT NULL DEFAULT 0, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
CREATE TABLE hidden.other (LIKE hidden.stock INCLUDING ALL);
CREATE TABLE hidden.third (LIKE hidden.stock INCLUDING ALL);
CREATE FUNCTION hidden.fold(s hidden.stock, e projector.event) RETURNS hidden.stock IMMUTABLE LANGUAGE sql AS
    'SELECT e.tenant_id, e.aggregate_id, coalesce(s.n, 0) + 1, NULL::uuid, NULL::bigint';
CREATE FUNCTION hidden.note(e projector.event) RETURNS void LANGUAGE sql AS '';
SELECT projector_create('stock', fold => 'hidden.fold', targets => '{hidden.stock}');
SELECT projector_create('notes', handler => 'hidden.note', targets => '{hidden.other}');
SELECT projector_append('acme', 'a', 'E', '{}');
SELECT projector_drain();
CREATE VIEW stale AS SELECT projection_name, stale FROM projector.status_by_tenant ORDER BY 1;
TABLE stale;

-- a reader without privileges on the schema sees the same
CREATE ROLE regress_reader;
GRANT USAGE ON SCHEMA projector TO regress_reader;
GRANT SELECT ON projector.status_by_tenant TO regress_reader;
GRANT EXECUTE ON FUNCTION projector.is_home, projector.definition_now, projector.problem TO regress_reader;
SET ROLE regress_reader;
SELECT projection_name, stale, why FROM projector.status_by_tenant ORDER BY 1;
RESET ROLE;

-- other targets: their rows were not made by this definition
SELECT projector_alter('notes', '{"targets": ["hidden.third"]}');
TABLE stale;
-- back again: events in between went to the other targets
SELECT projector_alter('notes', '{"targets": ["hidden.other"]}');
TABLE stale;
SELECT projector_rebuild('notes');
TABLE stale;
-- the same ones, or their names, are no change
SELECT projector_alter('notes', '{"targets": ["hidden.other"]}');
ALTER TABLE hidden.other RENAME TO another;
SELECT projector_pause('notes'), projector_resume('notes');
TABLE stale;
-- a new function body is a change
CREATE OR REPLACE FUNCTION hidden.fold(s hidden.stock, e projector.event) RETURNS hidden.stock IMMUTABLE LANGUAGE sql AS
    'SELECT e.tenant_id, e.aggregate_id, coalesce(s.n, 0) + 2, NULL::uuid, NULL::bigint';
TABLE stale;
-- a rebuild stores the definition it used
SELECT projector_rebuild('stock', 'acme');
TABLE stale;
SELECT count(*) FROM projector.projection_cursors WHERE definition_hash IS NULL;

-- the registry is changed with triggers disabled: sessions still notice
SELECT projector_set_mode('stock', 'inline');
SELECT projector_append('acme', 'a', 'E', '{}');
SELECT n FROM hidden.stock;
SET session_replication_role = replica;
UPDATE projector.projections SET mode = 'off' WHERE name = 'stock';
RESET session_replication_role;
SELECT projector_append('acme', 'a', 'E', '{}');
SELECT n FROM hidden.stock;
SELECT tgname, tgenabled FROM pg_trigger WHERE tgrelid = 'projector.projections'::regclass AND NOT tgisinternal;

-- A function that is changed back: stale while rows were made by the other
-- one, for the tenants that applied events with it
CREATE FUNCTION hidden.fold_by(i int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format($f$CREATE OR REPLACE FUNCTION hidden.fold(s hidden.stock, e projector.event) RETURNS hidden.stock IMMUTABLE LANGUAGE sql AS
        'SELECT e.tenant_id, e.aggregate_id, coalesce(s.n, 0) + %s, NULL::uuid, NULL::bigint'$f$, i);
END $$;
CREATE VIEW stale_tenants AS SELECT tenant_id, stale FROM projector.status_by_tenant WHERE projection_name = 'stock' ORDER BY 1;
SELECT projector_set_mode('stock', 'async');
SELECT projector_append('bolt', 'b', 'E', '{}');
SELECT projector_drain();
SELECT projector_rebuild('stock');
TABLE stale_tenants;
SELECT hidden.fold_by(100);
TABLE stale_tenants;
SELECT projector_append('acme', 'a', 'E', '{}');
SELECT projector_drain();
SELECT hidden.fold_by(2);
TABLE stale_tenants;
-- a tenant whose events were all applied with the other one
SELECT hidden.fold_by(100);
SELECT projector_append('cord', 'c', 'E', '{}');
SELECT projector_drain();
TABLE stale_tenants;
SELECT hidden.fold_by(2);
TABLE stale_tenants;
SELECT projector_rebuild('stock', 'acme');
SELECT projector_rebuild('stock', 'cord');
TABLE stale_tenants;
-- a transaction that is rolled back has made no rows
SELECT hidden.fold_by(100);
BEGIN;
SELECT projector_append('acme', 'a', 'E', '{}');
SELECT projector_drain();
ROLLBACK;
SELECT hidden.fold_by(2);
TABLE stale_tenants;
-- the same inline, also after one that was rolled back in the same session
SELECT projector_set_mode('stock', 'inline');
SELECT projector_drain();
SELECT projector_append('acme', 'a', 'E', '{}');
SELECT hidden.fold_by(100);
BEGIN;
SELECT projector_append('acme', 'a', 'E', '{}');
ROLLBACK;
TABLE stale_tenants;
SELECT projector_append('acme', 'a', 'E', '{}');
SELECT projector_append('new', 'a', 'E', '{}');
SELECT hidden.fold_by(2);
TABLE stale_tenants;
SELECT projector_rebuild('stock');
TABLE stale_tenants;
-- an aggregate that is rebuilt with another one
SELECT hidden.fold_by(100);
SELECT projector_rebuild('stock', 'acme', 'a');
SELECT hidden.fold_by(2);
TABLE stale_tenants;
SELECT projector_rebuild('stock');
-- back again by projector_alter: events have been left out
SELECT projector_alter('stock', '{"event_types": ["Other"]}');
SELECT projector_append('acme', 'left-out', 'E', '{}');
SELECT projector_alter('stock', '{"event_types": null}');
SELECT projector_drain();
TABLE stale_tenants;
SELECT projector_rebuild('stock');
TABLE stale_tenants;
-- the same definition is no change
SELECT projector_alter('stock', '{"event_types": null, "fold": "hidden.fold"}');
TABLE stale_tenants;
-- inline appends leave no cursor: a change is seen all the same
SELECT projector_append('inline', 'a', 'E', '{}');
SELECT projector_alter('stock', '{"event_types": ["E", "Other"]}');
TABLE stale_tenants;

\pset format aligned
\pset tuples_only off
SET client_min_messages = warning;
DROP EXTENSION projector CASCADE;
DROP SCHEMA hidden CASCADE;
DROP ROLE regress_reader;
RESET client_min_messages;
