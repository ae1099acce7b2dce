-- Owners and targets are stored by oid: they can be renamed, and a new role or
-- table with the old name gets nothing.
\pset format unaligned
\pset tuples_only on
\set SHOW_CONTEXT never
CREATE EXTENSION projector;
CREATE ROLE regress_alice;
CREATE ROLE regress_bob;
CREATE ROLE regress_carol IN ROLE regress_alice, regress_bob;
\set try_shows 'message'
\i sql/include/try.sql
CREATE SCHEMA shop;
GRANT ALL ON SCHEMA shop TO regress_alice, regress_bob;
GRANT USAGE ON SCHEMA projector TO regress_alice, regress_bob;
GRANT EXECUTE ON FUNCTION projector_create, projector_alter, projector_drop, projector_pause, projector_append TO regress_alice, regress_bob;
SET ROLE regress_alice;
CREATE TABLE shop.stock (tenant_id text, id text, n int NOT NULL DEFAULT 0, who text, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
CREATE TABLE shop.log (tenant_id text, who text);
CREATE FUNCTION shop.note(e projector.event) RETURNS void LANGUAGE plpgsql AS
    $$ BEGIN INSERT INTO shop.log VALUES (e.tenant_id, current_user); END $$;
SELECT projector_create('stock', fold_columns => '{"n": "s.n + 1"}', targets => '{shop.stock}');
SELECT projector_create('log', handler => 'shop.note', targets => '{shop.log}', mode => 'inline');
RESET ROLE;
CREATE VIEW names AS SELECT name, owner, targets FROM projector.projections ORDER BY 1;
SELECT projector_append('acme', 'a', 'E', '{}');
SELECT projector_drain();

--
-- The role is renamed, and another takes its name
--
ALTER ROLE regress_alice RENAME TO regress_anna;
CREATE ROLE regress_alice;
GRANT USAGE ON SCHEMA projector TO regress_alice;
GRANT EXECUTE ON FUNCTION projector_alter, projector_drop, projector_pause TO regress_alice;
SELECT projector_append('acme', 'a', 'E', '{}');
SELECT projector_drain();
SELECT n FROM shop.stock;
SELECT * FROM shop.log ORDER BY 2;
-- the new one may do nothing
SET ROLE regress_alice;
SELECT try($$SELECT projector_pause('log')$$);
SELECT try($$SELECT projector_alter('log', '{"handler": "shop.note"}')$$);
SELECT try($$SELECT projector_drop('log')$$);
-- the old one may; a drain or the next change of the projection stores its new name
RESET ROLE;
TABLE names;
SET ROLE regress_anna;
SELECT try($$SELECT projector_pause('log')$$);
RESET ROLE;
SELECT projector_resume('log');
TABLE names;

--
-- Targets are renamed and moved
--
CREATE SCHEMA depot;
GRANT USAGE ON SCHEMA depot TO regress_anna;
ALTER TABLE shop.stock SET SCHEMA depot;
ALTER TABLE depot.stock RENAME TO pile;
CREATE TABLE shop.stock (LIKE depot.pile INCLUDING ALL);
SELECT projector_append('acme', 'a', 'E', '{}');
SELECT projector_drain();
SELECT n FROM depot.pile;
SELECT count(*) FROM shop.stock;
SELECT projector_pause('stock'), projector_resume('stock');
TABLE names;
SELECT projector_rebuild('stock', 'acme');
SELECT matches FROM projector_verify('stock', 'acme');
SELECT stale FROM projector.status_by_tenant WHERE projection_name = 'stock';
-- the checkpoint is read from the renamed table
CREATE TABLE shop.stamped (tenant_id text, id text, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
CREATE FUNCTION shop.stamp(e projector.event) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('INSERT INTO %s VALUES ($1, $2, $3, $4) ON CONFLICT (tenant_id, id) DO UPDATE SET last_event_id = $3, last_event_version = $4',
                   (SELECT c.oid::regclass FROM pg_class c WHERE relname LIKE 'stamp%' AND relkind = 'r'))
    USING e.tenant_id, e.aggregate_id, e.event_id, e.sequence_number;
END $$;
SELECT projector_create('stamped', handler => 'shop.stamp', targets => '{shop.stamped}', mode => 'strict', event_types => '{S}', options => '{"checkpoint": "check"}');
SELECT projector_append('acme', 's', 'S', '{}');
ALTER TABLE shop.stamped RENAME TO stamps;
SELECT projector_append('acme', 's', 'S', '{}');
SELECT last_event_version FROM shop.stamps;
SELECT projector_drop('stamped');

--
-- The owner changes: who may, and what is checked again
--
SELECT try($$SELECT projector_alter('log', '{"owner": "nobody"}')$$);
SELECT try($$SELECT projector_alter('log', '{"owner": 1}')$$);
SET ROLE regress_anna;
SELECT try($$SELECT projector_alter('log', '{"owner": "regress_bob"}')$$);
-- a member of both roles, but the table and the function belong to the old owner
SET ROLE regress_carol;
SELECT try($$SELECT projector_alter('log', '{"owner": "regress_bob"}')$$);
RESET ROLE;
ALTER TABLE shop.log OWNER TO regress_bob;
SELECT why FROM projector.status_by_tenant WHERE projection_name = 'log';
REVOKE EXECUTE ON FUNCTION shop.note FROM PUBLIC;
SET ROLE regress_carol;
SELECT try($$SELECT projector_alter('log', '{"owner": "regress_bob"}')$$);
RESET ROLE;
GRANT EXECUTE ON FUNCTION shop.note TO regress_bob;
SELECT projector_append('acme', 'b', 'E', '{}');
SELECT count(*) FROM shop.log;
SET ROLE regress_carol;
SELECT try($$SELECT projector_alter('log', '{"owner": "regress_bob"}')$$);
RESET ROLE;
TABLE names;
-- events queued in between are applied as the new owner
SELECT projector_drain();
SELECT who, count(*) FROM shop.log GROUP BY 1 ORDER BY 1;
-- the read model has not changed
SELECT DISTINCT stale FROM projector.status_by_tenant WHERE projection_name = 'log';

--
-- REASSIGN OWNED and DROP ROLE, as in docs/operations.md
--
REASSIGN OWNED BY regress_anna TO regress_bob;
SELECT why FROM projector.status_by_tenant WHERE projection_name = 'stock';
SELECT projector_alter(name, '{"owner": "regress_bob"}') FROM projector.projections WHERE owner = 'regress_anna';
DROP OWNED BY regress_anna;
DROP ROLE regress_anna;
SELECT projector_append('acme', 'b', 'E', '{}');
SELECT projector_drain();
SELECT id, n FROM depot.pile ORDER BY 1;
TABLE names;
-- DROP OWNED of the owner would drop live targets
SELECT try('DROP OWNED BY regress_bob');
-- the role is dropped anyway: the projection stops, and does not continue for a
-- new role with that name
ALTER TABLE depot.pile OWNER TO CURRENT_USER;
ALTER TABLE shop.log OWNER TO CURRENT_USER;
ALTER FUNCTION shop.note OWNER TO CURRENT_USER;
DROP OWNED BY regress_bob;
DROP ROLE regress_bob;
CREATE ROLE regress_bob SUPERUSER;
SELECT projector_append('acme', 'b', 'E', '{}');
SELECT projector_drain();
SELECT n FROM depot.pile WHERE id = 'b';
SELECT DISTINCT projection_name, why FROM projector.status_by_tenant ORDER BY 1;
SELECT try($$SELECT projector_rebuild('stock')$$);
SELECT try($$SELECT projector_alter('stock', '{"options": {"batch_size": 10}}')$$);
SELECT projector_alter(name, format('{"owner": "%s"}', current_user)::jsonb) FROM projector.projections;
SELECT projector_drain();
SELECT n FROM depot.pile WHERE id = 'b';
SELECT count(*) FROM projector.failures;

\pset format aligned
\pset tuples_only off
SET client_min_messages = warning;
DROP EXTENSION projector CASCADE;
DROP SCHEMA shop, depot CASCADE;
DROP FUNCTION try(text);
DROP OWNED BY regress_alice;
DROP ROLE regress_alice, regress_bob, regress_carol;
RESET client_min_messages;
