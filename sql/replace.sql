-- Changing a projection's definition: or_replace, a new name, and the calls
-- that would recreate all projections.
\pset format unaligned
\pset tuples_only on
\set SHOW_CONTEXT never
CREATE EXTENSION projector;
CREATE TABLE stock (tenant_id text, id text, n int NOT NULL DEFAULT 0, m int, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
CREATE TABLE notes (tenant_id text, note text);
CREATE FUNCTION note(e projector.event) RETURNS void LANGUAGE sql AS 'INSERT INTO notes VALUES (e.tenant_id, e.event_type)';
CREATE FUNCTION define(columns jsonb DEFAULT '{"n": "s.n + 1"}', options jsonb DEFAULT '{}', types text[] DEFAULT NULL) RETURNS text
LANGUAGE sql AS $$
    SELECT projector_create('stock', fold_columns => columns, targets => '{stock}', event_types => types, options => options, or_replace => true)
$$;
SELECT define(), define();
SELECT projector_append('acme', 'a', 'Received', '{}');
SELECT projector_drain();
SELECT n FROM stock;
-- each part of a definition counts, and omitted options are removed
SELECT define('{"n": "s.n + 2"}'), define('{"n": "s.n + 2"}');
SELECT stale FROM projector.status_by_tenant;
SELECT define('{"n": "s.n + 2"}', '{"batch_size": 7}'), define('{"n": "s.n + 2"}', '{"batch_size": 7}');
SELECT options FROM projector.projections;
SELECT define('{"n": "s.n + 2", "m": "1"}', types => '{Received,Shipped}'), define('{"n": "s.n + 2", "m": "1"}', types => '{Received,Shipped}');
SELECT fold_columns, options, event_types FROM projector.projections;
-- mode and pause are not part of it
SELECT projector_set_mode('stock', 'follow'), projector_pause('stock');
SELECT define();
SELECT mode, paused FROM projector.projections;
SELECT projector_resume('stock'), projector_set_mode('stock', 'async');
SELECT projector_rebuild('stock');
SELECT n FROM stock;
-- what cannot be changed
SELECT projector_create('stock', handler => 'note', targets => '{notes}', or_replace => true);
SELECT projector_create('stock', fold_columns => '{"n": "s.n + 1"}', targets => '{stock}', key => 'event_type', or_replace => true);
SELECT projector_create('stock', fold_columns => '{"n": "s.n + 1"}', targets => '{stock}', ordering => 'log', or_replace => true);
SELECT projector_create('stock', fold_columns => '{"nothing": "1"}', targets => '{stock}', or_replace => true);
SELECT projector_create('stock', fold_columns => '{"n": "s.n + 1"}', targets => '{stock}', or_replace => NULL);
SELECT projector_create('stock', fold_columns => '{"n": "s.n + 1"}', targets => '{stock}');
-- only its owner may
CREATE ROLE regress_modeller;
SELECT projector_grant('regress_modeller', 'modeller');
SET ROLE regress_modeller;
SELECT projector_create('stock', fold_columns => '{"n": "s.n + 1"}', targets => '{stock}', or_replace => true);
RESET ROLE;

-- a new name
SELECT projector_create('notes', handler => 'note', targets => '{notes}', options => '{"depends_on": ["stock"]}', settings => '{"TimeZone": "Asia/Tokyo"}', mode => 'inline');
SELECT projector_alter('stock', '{"name": "notes"}');
SELECT projector_alter('stock', '{"name": "inventory.stock", "options": {"batch_size": 9}}');
SELECT name, options FROM projector.projections ORDER BY projection_id;
SELECT projector_append('acme', 'a', 'Received', '{}');
SELECT projector_drain();
SELECT projection_name, aggregate_id, last_sequence_number FROM projector.offsets ORDER BY 1;
SELECT projector_wait('inventory.stock', 'acme', 'a', 2, '0');
SELECT tenant_id, matches FROM projector_verify('inventory.stock');
SELECT projector_alter('stock', '{}');
SELECT stale FROM projector.status_by_tenant WHERE projection_name = 'inventory.stock';

-- the calls that recreate them, in an order that works
SELECT projector_definitions();
CREATE TABLE before AS SELECT name, kind, handler, fold_columns, targets, key, event_types, mode, ordering, options, settings FROM projector.projections;
CREATE TABLE calls AS SELECT definition, ordinality FROM projector_definitions() WITH ORDINALITY AS d (definition, ordinality);
SELECT projector_drop('notes'), projector_drop('inventory.stock');
TRUNCATE stock, notes;
SELECT definition FROM calls ORDER BY ordinality \gexec
SELECT count(*) FROM (TABLE before EXCEPT ALL SELECT name, kind, handler, fold_columns, targets, key, event_types, mode, ordering, options, settings FROM projector.projections) d;

-- what each role is granted
SELECT projector_grant('regress_modeller', 'owner');
SELECT projector_grant('nobody_at_all', 'reader');
SELECT projector_grant(NULL, 'reader');
CREATE ROLE "regress Odd";
SELECT projector_grant('regress Odd', a) FROM unnest('{appender,reader,modeller,operator}'::text[]) a;
SELECT p.proname FROM pg_proc p JOIN pg_depend d ON d.objid = p.oid AND d.deptype = 'e' AND d.classid = 'pg_proc'::regclass
WHERE p.proname LIKE 'projector\_%' AND NOT has_function_privilege('regress Odd', p.oid, 'EXECUTE') ORDER BY 1;

SET client_min_messages = warning;
DROP OWNED BY regress_modeller, "regress Odd";
DROP ROLE regress_modeller, "regress Odd";
DROP EXTENSION projector CASCADE;
DROP TABLE stock, notes, before, calls;
DROP FUNCTION define;
