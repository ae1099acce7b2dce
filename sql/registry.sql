--
-- The registry: projector_create, alter, set_mode, pause, resume and drop say
-- what is wrong with each argument, and what to do.
--
CREATE EXTENSION projector;
\pset format unaligned
\pset tuples_only on

\i sql/include/try.sql

CREATE TABLE stock (tenant_id text, item_id text, PRIMARY KEY (tenant_id, item_id));
CREATE FUNCTION h(e projector.event) RETURNS void LANGUAGE sql AS '';

--
-- What is stored: qualified names, the owner, the path, the defaults
--
SELECT projector_create('stock', handler => 'h', targets => '{stock}');
SELECT name, owner = current_user, source, kind, handler, fold, fold_columns, statement, targets, key, event_types,
       mode, ordering, options, paused, handover_log_seq, search_path, length(definition_hash), home <> ''
FROM projector.projections;
SELECT projector_drop('stock');
SELECT count(*) FROM projector.projections;

--
-- name
--
SELECT try($$SELECT projector_create(NULL, handler => 'h')$$);
SELECT try($$SELECT projector_create('', handler => 'h')$$);
SELECT try($$SELECT projector_create(repeat('x', 201), handler => 'h')$$);
SELECT try($$SELECT projector_create('Größe "1", it''s', handler => 'h')$$);
SELECT try($$SELECT projector_create('Größe "1", it''s', handler => 'h')$$);
-- names differ by case
SELECT try($$SELECT projector_create('GRÖSSE', handler => 'h')$$), try($$SELECT projector_create('grösse', handler => 'h')$$);
SELECT projector_drop(name) FROM projector.projections ORDER BY name;
SELECT count(*) FROM projector.projections;

--
-- The code: exactly one of its kinds
--
SELECT try($$SELECT projector_create('p')$$);
SELECT try($$SELECT projector_create('p', handler => 'h', fold => 'f')$$);
SELECT try($$SELECT projector_create('p', handler => 'h', statement => 'SELECT 1', fold_columns => '{}')$$);

--
-- handler
--
CREATE FUNCTION takes_text(text) RETURNS void LANGUAGE sql AS '';
CREATE FUNCTION takes_two(projector.event, int) RETURNS void LANGUAGE sql AS '';
CREATE FUNCTION takes_none() RETURNS void LANGUAGE sql AS '';
CREATE FUNCTION returns_int(projector.event) RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION returns_event(projector.event) RETURNS projector.event LANGUAGE sql AS 'SELECT $1';
CREATE FUNCTION returns_set(projector.event) RETURNS SETOF void LANGUAGE sql AS '';
CREATE FUNCTION returns_table(projector.event) RETURNS TABLE (n int) LANGUAGE sql AS 'SELECT 1';
CREATE PROCEDURE procedure(projector.event) LANGUAGE sql AS '';
CREATE FUNCTION state(int, projector.event) RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE AGGREGATE aggregate(projector.event) (SFUNC = state, STYPE = int);
SELECT try($$SELECT projector_create('p', handler => 'nothing')$$);
SELECT try($$SELECT projector_create('p', handler => 'nowhere.h')$$);
SELECT try($$SELECT projector_create('p', handler => '')$$);
SELECT try($$SELECT projector_create('p', handler => 'h(projector.event)')$$);
SELECT try($$SELECT projector_create('p', handler => 'takes_text')$$);
SELECT try($$SELECT projector_create('p', handler => 'takes_two')$$);
SELECT try($$SELECT projector_create('p', handler => 'takes_none')$$);
SELECT try($$SELECT projector_create('p', handler => 'returns_int')$$);
SELECT try($$SELECT projector_create('p', handler => 'returns_event')$$);
SELECT try($$SELECT projector_create('p', handler => 'returns_set')$$);
SELECT try($$SELECT projector_create('p', handler => 'returns_table')$$);
SELECT try($$SELECT projector_create('p', handler => 'procedure')$$);
SELECT try($$SELECT projector_create('p', handler => 'aggregate')$$);

--
-- targets
--
CREATE TABLE no_tenant (item_id text PRIMARY KEY);
CREATE VIEW a_view AS TABLE stock;
CREATE MATERIALIZED VIEW a_matview AS TABLE stock;
CREATE SEQUENCE a_sequence;
CREATE TEMP TABLE a_temp (tenant_id text);
CREATE TABLE parent (tenant_id text, id int, UNIQUE (tenant_id, id));
CREATE TABLE deferred (tenant_id text, id int,
    FOREIGN KEY (tenant_id, id) REFERENCES parent (tenant_id, id) DEFERRABLE INITIALLY DEFERRED);
CREATE TABLE deferred_key (tenant_id text, id int, UNIQUE (tenant_id, id) DEFERRABLE INITIALLY DEFERRED);
CREATE TABLE lazy (tenant_id text, id int,
    FOREIGN KEY (tenant_id, id) REFERENCES parent (tenant_id, id) DEFERRABLE);
CREATE TABLE partitioned (tenant_id text) PARTITION BY LIST (tenant_id);
SELECT try($$SELECT projector_create('p', handler => 'h', targets => '{nothing}')$$);
SELECT try($$SELECT projector_create('p', handler => 'h', targets => '{nowhere.stock}')$$);
SELECT try($$SELECT projector_create('p', handler => 'h', targets => '{stock,no_tenant}')$$);
SELECT try($$SELECT projector_create('p', handler => 'h', targets => '{a_view}')$$);
SELECT try($$SELECT projector_create('p', handler => 'h', targets => '{a_matview}')$$);
SELECT try($$SELECT projector_create('p', handler => 'h', targets => '{a_sequence}')$$);
SELECT try($$SELECT projector_create('p', handler => 'h', targets => '{a_temp}')$$);
SELECT try($$SELECT projector_create('p', handler => 'h', targets => '{projector.events}')$$);
SELECT try($$SELECT projector_create('p', handler => 'h', targets => '{pg_catalog.pg_class}')$$);
SELECT try($$SELECT projector_create('p', handler => 'h', targets => '{deferred}')$$);
SELECT try($$SELECT projector_create('p', handler => 'h', targets => '{deferred_key}')$$);
SELECT try($$SELECT projector_create('p', handler => 'h', targets => '{stock,NULL}')$$);
SELECT try($$SELECT projector_create('p', handler => 'h', targets => '{""}')$$);
SELECT try($$SELECT projector_create('p', handler => 'h', targets => '{stock,stock}')$$);
-- the same table under another name is the same table
SELECT try($$SELECT projector_create('p', handler => 'h', targets => '{stock,public.stock}')$$);
-- fine: none, a partitioned table, a constraint that is checked at once
SELECT try($$SELECT projector_create('p1', handler => 'h', targets => '{}')$$);
SELECT try($$SELECT projector_create('p2', handler => 'h', targets => '{partitioned,lazy}')$$);
SELECT try($$SELECT projector_create('p2', handler => 'h', targets => '{partitioned}')$$);
SELECT name, targets FROM projector.projections ORDER BY 1;
SELECT projector_drop('p1'), projector_drop('p2');

--
-- key, event_types, mode, ordering, source
--
SELECT try($$SELECT projector_create('p', handler => 'h', key => 'payload ->> ''sku''')$$);
SELECT try($$SELECT projector_create('p', handler => 'h', key => NULL)$$);
SELECT try($$SELECT projector_create('p', handler => 'h', event_types => '{}')$$);
SELECT try($$SELECT projector_create('p', handler => 'h', event_types => '{A,""}')$$);
SELECT try($$SELECT projector_create('p', handler => 'h', event_types => '{A,NULL}')$$);
SELECT try($$SELECT projector_create('p', handler => 'h', event_types => '{A,B,A}')$$);
SELECT try($$SELECT projector_create('p', handler => 'h', mode => 'sometimes')$$);
SELECT try($$SELECT projector_create('p', handler => 'h', mode => 'Inline')$$);
SELECT try($$SELECT projector_create('p', handler => 'h', mode => NULL)$$);
SELECT try($$SELECT projector_create('p', handler => 'h', ordering => 'alphabetical')$$);
SELECT try($$SELECT projector_create('p', handler => 'h', ordering => 'log', mode => 'shadow')$$);
SELECT try($$SELECT projector_create('p', handler => 'h', ordering => 'log', options => '{"on_error": "hold"}')$$);
SELECT try($$SELECT projector_create('p', handler => 'h', options => '{"on_error": "stop"}')$$);
SELECT try($$SELECT projector_create('p', handler => 'h', ordering => 'log', mode => 'inline')$$);
SELECT try($$SELECT projector_create('p', handler => 'h', ordering => 'log', mode => 'strict')$$);
SELECT try($$SELECT projector_create('p', handler => 'h', source => 'elsewhere')$$);
SELECT try($$SELECT projector_create('p', handler => 'h', source => NULL)$$);

--
-- options
--
SELECT try($$SELECT projector_create('p', handler => 'h', options => NULL)$$);
SELECT try($$SELECT projector_create('p', handler => 'h', options => '[]')$$);
SELECT try($$SELECT projector_create('p', handler => 'h', options => '"batch_size"')$$);
SELECT try($$SELECT projector_create('p', handler => 'h', options => '{"colour": "red"}')$$);
SELECT try($$SELECT projector_create('p', handler => 'h', options => '{"batch_size": "10"}')$$);
SELECT try($$SELECT projector_create('p', handler => 'h', options => '{"batch_size": 0}')$$);
SELECT try($$SELECT projector_create('p', handler => 'h', options => '{"batch_size": -1}')$$);
SELECT try($$SELECT projector_create('p', handler => 'h', options => '{"batch_size": 1.5}')$$);
SELECT try($$SELECT projector_create('p', handler => 'h', options => '{"batch_size": 99999999999}')$$);
SELECT try($$SELECT projector_create('p', handler => 'h', options => '{"batch_size": [1]}')$$);
SELECT try($$SELECT projector_create('p', handler => 'h', options => '{"max_attempts": true}')$$);
SELECT try($$SELECT projector_create('p', handler => 'h', options => '{"retry_base": 5}')$$);
SELECT try($$SELECT projector_create('p', handler => 'h', options => '{"retry_base": "soon"}')$$);
SELECT try($$SELECT projector_create('p', handler => 'h', options => '{"retry_max": "366 days"}')$$);
SELECT try($$SELECT projector_create('p', handler => 'h', options => '{"retry_max": "170000000 years"}')$$);
SELECT try($$SELECT projector_create('p', handler => 'h', options => '{"retry_base": "-1 s"}')$$);
SELECT try($$SELECT projector_create('p', handler => 'h', options => '{"retry_max": "0 s"}')$$);
SELECT try($$SELECT projector_create('p', handler => 'h', options => '{"timeout": {"s": 1}}')$$);
SELECT try($$SELECT projector_create('p', handler => 'h', options => '{"idempotent": "yes"}')$$);
SELECT try($$SELECT projector_create('p', handler => 'h', options => '{"may_append": 1}')$$);
SELECT try($$SELECT projector_create('p', handler => 'h', options => '{"checkpoint": true}')$$);
SELECT try($$SELECT projector_create('p', handler => 'h', options => '{"checkpoint": "maybe"}')$$);
SELECT try($$SELECT projector_create('p', handler => 'h', options => '{"on_error": "panic"}')$$);
SELECT count(*) FROM projector.projections;
SELECT try($$SELECT projector_create('p', handler => 'h', event_types => '{A,B}', mode => 'off', ordering => 'aggregate',
    options => '{"batch_size": 10, "max_attempts": 3, "retry_base": "1 min", "retry_max": "1 day", "timeout": "90 s",
                 "idempotent": true, "may_append": false, "checkpoint": "none", "on_error": "hold"}')$$);
SELECT event_types, mode, options FROM projector.projections;

--
-- alter
--
SELECT try($$SELECT projector_alter('nothing', '{}')$$);
SELECT try($$SELECT projector_alter(NULL, '{}')$$);
SELECT try($$SELECT projector_alter('p', NULL)$$);
SELECT try($$SELECT projector_alter('p', '[]')$$);
SELECT try($$SELECT projector_alter('p', '1')$$);
SELECT try($$SELECT projector_alter('p', '{"colour": "red"}')$$);
SELECT try($$SELECT projector_alter('p', '{"name": 5}')$$);
SELECT try($$SELECT projector_alter('p', '{"name": ""}')$$);
SELECT try($$SELECT projector_alter('p', '{"owner": "postgres"}')$$);
SELECT try($$SELECT projector_alter('p', '{"mode": "inline"}')$$);
SELECT try($$SELECT projector_alter('p', '{"batch_size": 5}')$$);
SELECT try($$SELECT projector_alter('p', '{"handler": "nothing"}')$$);
SELECT try($$SELECT projector_alter('p', '{"handler": "returns_int"}')$$);
SELECT try($$SELECT projector_alter('p', '{"handler": null}')$$);
SELECT try($$SELECT projector_alter('p', '{"targets": "stock"}')$$);
SELECT try($$SELECT projector_alter('p', '{"targets": ["stock", 1]}')$$);
SELECT try($$SELECT projector_alter('p', '{"targets": ["no_tenant"]}')$$);
SELECT try($$SELECT projector_alter('p', '{"event_types": "A"}')$$);
SELECT try($$SELECT projector_alter('p', '{"event_types": []}')$$);
SELECT try($$SELECT projector_alter('p', '{"event_types": ["A", ""]}')$$);
SELECT try($$SELECT projector_alter('p', '{"options": []}')$$);
SELECT try($$SELECT projector_alter('p', '{"options": null}')$$);
SELECT try($$SELECT projector_alter('p', '{"options": {"colour": "red"}}')$$);
SELECT try($$SELECT projector_alter('p', '{"options": {"batch_size": 0}}')$$);
SELECT try($$SELECT projector_alter('p', '{"options": {"checkpoint": "check"}}')$$);
-- all or nothing
SELECT try($$SELECT projector_alter('p', '{"event_types": ["Z"], "options": {"batch_size": "many"}}')$$);
SELECT handler, targets, event_types, options FROM projector.projections;
-- options are merged; null removes
SELECT projector_alter('p', '{"options": {"batch_size": 20, "max_attempts": null, "retry_max": null, "timeout": null}}');
SELECT options FROM projector.projections;
SELECT projector_alter('p', '{"handler": "public.h", "targets": ["stock"], "event_types": null, "options": {}}');
SELECT handler, targets, event_types, options FROM projector.projections;
SELECT projector_alter('p', '{"targets": null, "event_types": ["C"]}');
SELECT projector_alter('p', '{}');
SELECT handler, targets, event_types FROM projector.projections;

--
-- set_mode
--
SELECT try($$SELECT projector_set_mode('nothing', 'off')$$);
SELECT try($$SELECT projector_set_mode(NULL, 'off')$$);
SELECT try($$SELECT projector_set_mode('p', NULL)$$);
SELECT try($$SELECT projector_set_mode('p', '')$$);
SELECT try($$SELECT projector_set_mode('p', 'sometimes')$$);
SELECT try($$SELECT projector_set_mode('p', 'inline', '')$$);
SELECT try($$SELECT projector_set_mode('p', 'sometimes', 'acme')$$);
SELECT mode FROM projector.projections;
SELECT projector_set_mode('p', 'async');
SELECT projector_set_mode('p', 'inline', 'acme');
SELECT projector_set_mode('p', 'strict', 'other');
SELECT projector_set_mode('p', NULL, 'other');
SELECT mode FROM projector.projections;
SELECT tenant_id, mode FROM projector.projection_cursors ORDER BY 1;

--
-- pause and resume
--
SELECT try($$SELECT projector_pause('nothing')$$);
SELECT try($$SELECT projector_pause(NULL)$$);
SELECT try($$SELECT projector_pause('p', '')$$);
SELECT try($$SELECT projector_resume('nothing')$$);
SELECT try($$SELECT projector_resume(NULL)$$);
SELECT try($$SELECT projector_resume('p', '')$$);
CREATE VIEW pauses AS
    SELECT NULL AS tenant_id, paused_by = current_user AS by_me, pause_reason FROM projector.projections WHERE paused
    UNION ALL SELECT tenant_id, paused_by = current_user, pause_reason FROM projector.projection_cursors WHERE paused_by IS NOT NULL;
SELECT projector_pause('p', reason => 'for all'), projector_pause('p', 'acme', 'for one'), projector_pause('p', 'other');
SELECT * FROM pauses ORDER BY 1 NULLS FIRST;
-- pausing and resuming twice is allowed
SELECT projector_pause('p', 'acme', 'for another reason');
SELECT projector_resume('p');
SELECT * FROM pauses ORDER BY 1 NULLS FIRST;
SELECT projector_resume('p'), projector_resume('p', 'acme'), projector_resume('p', 'acme'), projector_resume('p', 'nobody');
SELECT * FROM pauses ORDER BY 1 NULLS FIRST;
SELECT projector_resume('p', 'other');
SELECT tenant_id, mode FROM projector.projection_cursors ORDER BY 1;

--
-- drop: everything but the read model
--
SELECT try($$SELECT projector_drop('nothing')$$);
SELECT try($$SELECT projector_drop(NULL)$$);
CREATE OR REPLACE FUNCTION h(e projector.event) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO stock VALUES (e.tenant_id, e.aggregate_id);
END $$;
SELECT projector_alter('p', '{"event_types": null, "targets": ["stock"]}');
SELECT projector_append_batch('acme', 'a', '[{"event_type": "A", "payload": 1}, {"event_type": "A", "payload": 2}, {"event_type": "A", "payload": 3}]');
SELECT (SELECT count(*) FROM projector.apply_outbox), (SELECT count(*) FROM projector.projection_offsets),
       (SELECT count(*) FROM projector.projection_failures), (SELECT count(*) > 0 FROM projector.projection_cursors);
SELECT projector_drop('p');
SELECT (SELECT count(*) FROM projector.projections), (SELECT count(*) FROM projector.apply_outbox),
       (SELECT count(*) FROM projector.projection_offsets), (SELECT count(*) FROM projector.projection_failures),
       (SELECT count(*) FROM projector.projection_cursors);
TABLE stock;
SELECT try($$SELECT projector_drop('p')$$);
-- a new one with the same name starts from the beginning
TRUNCATE stock;
CREATE OR REPLACE FUNCTION h(e projector.event) RETURNS void LANGUAGE sql AS
    $$ INSERT INTO stock VALUES ((e).tenant_id, (e).aggregate_id || ' ' || (e).sequence_number) $$;
SELECT projector_create('p', handler => 'h', targets => '{stock}');
SELECT projector_drain();
SELECT * FROM stock ORDER BY 1, 2;
SELECT projector_drop('p');

--
-- Names are resolved once, when the projection is created
--
CREATE SCHEMA one;
CREATE SCHEMA "Two ""2""";
CREATE TABLE one.log (tenant_id text, wrote text);
CREATE TABLE "Two ""2""".log (LIKE one.log);
CREATE TABLE "Two ""2"""."The Log" (LIKE one.log);
SET check_function_bodies = off;
CREATE FUNCTION one.note(e projector.event) RETURNS void LANGUAGE sql AS
    $$ INSERT INTO log VALUES ((e).tenant_id, 'one, with search_path ' || current_setting('search_path')) $$;
CREATE FUNCTION "Two ""2""".note(e projector.event) RETURNS void LANGUAGE sql AS
    $$ INSERT INTO log VALUES ((e).tenant_id, 'two, with search_path ' || current_setting('search_path')) $$;
CREATE FUNCTION "Two ""2"""."Note it's 5%"(e projector.event) RETURNS void LANGUAGE sql AS
    $$ INSERT INTO "The Log" VALUES ((e).tenant_id, 'quoted') $$;
RESET check_function_bodies;
SET search_path = one, public;
SELECT projector_create('one', handler => 'note', targets => '{log}', mode => 'strict', options => '{"shared_targets": true}');
SET search_path = "$user", "Two ""2""", missing, public, one;
SELECT projector_create('two', handler => 'note', targets => '{log}', mode => 'strict', options => '{"shared_targets": true}');
SELECT projector_create('quoted', handler => '"Note it''s 5%"', targets => array['"The Log"'], mode => 'strict');
SELECT projector_create('other path', handler => 'one.note', targets => '{one.log,log}', mode => 'strict', options => '{"shared_targets": true}');
RESET search_path;
SELECT name, handler, targets, search_path FROM projector.projections ORDER BY projection_id;
-- and do not depend on the appender's path
SET search_path = "Two ""2""", public;
SELECT projector_append('acme', 'n', 'E', '{}');
RESET search_path;
SELECT * FROM one.log ORDER BY 1, 2;
SELECT * FROM "Two ""2""".log ORDER BY 1, 2;
SELECT * FROM "Two ""2"""."The Log" ORDER BY 1, 2;
SHOW search_path;
-- without a qualified name, the current path decides
SELECT try($$SELECT projector_create('p', handler => 'note')$$);
SELECT try($$SELECT projector_create('p', handler => '"NOTE"')$$);
SELECT try($$SELECT projector_create('p', handler => 'one."note')$$);
SELECT try($$SELECT projector_create('p', handler => 'one.note; DROP TABLE one.log')$$);
SELECT try($$SELECT projector_create('p', handler => 'one.note', targets => '{one.log; DROP TABLE one.log}')$$);
-- names are folded like any others
SELECT projector_create('folded', handler => 'ONE.Note', targets => '{One.LOG}', mode => 'off', options => '{"shared_targets": true}');
SELECT handler, targets FROM projector.projections WHERE name = 'folded';

--
-- The registry is guarded against plain DML by its own constraints
--
\set VERBOSITY sqlstate
INSERT INTO projector.projections (name, owner, kind, mode, ordering, home, definition_hash, search_path)
    VALUES ('x', 'postgres', 'magic', 'off', 'aggregate', '', '', '');
INSERT INTO projector.projections (name, owner, kind, mode, ordering, home, definition_hash, search_path)
    VALUES ('x', 'postgres', 'handler', 'sometimes', 'aggregate', '', '', '');
\set VERBOSITY default

\pset format aligned
\pset tuples_only off
SET client_min_messages = warning;
DROP EXTENSION projector CASCADE;
DROP SCHEMA one, "Two ""2""" CASCADE;
DROP VIEW a_view;
DROP MATERIALIZED VIEW a_matview;
DROP TABLE stock, no_tenant, a_temp, parent, deferred, deferred_key, lazy, partitioned;
DROP SEQUENCE a_sequence;
DROP FUNCTION try(text), takes_text(text), takes_none();
RESET client_min_messages;
