-- A projection's code may write only the tables it declares, and only rows of
-- its event's tenant: otherwise the event fails.
\pset format unaligned
\pset tuples_only on
CREATE EXTENSION projector;
\set try_shows 'hint'
\i sql/include/try.sql
CREATE TABLE model (tenant_id text, id text, n int DEFAULT 0, PRIMARY KEY (tenant_id, id));
CREATE TABLE other (tenant_id text, id text, n int DEFAULT 0, PRIMARY KEY (tenant_id, id));
CREATE TABLE parts (tenant_id text, id text, n int DEFAULT 0, PRIMARY KEY (tenant_id, id)) PARTITION BY LIST (id);
CREATE TABLE parts_a PARTITION OF parts FOR VALUES IN ('a');
CREATE TABLE parts_rest PARTITION OF parts DEFAULT;
-- runs the command in the event
CREATE FUNCTION obey(e projector.event) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE e.payload->>'do';
END $$;
SELECT projector_create('obey', handler => 'obey', targets => '{model,parts}', event_types => '{E}', mode => 'strict');
CREATE FUNCTION attempt(command text, tenant text DEFAULT 'acme') RETURNS text LANGUAGE sql AS $$
    SELECT command || E'\n  ' || try(format('SELECT projector_append(%L, gen_random_uuid()::text, ''E'', jsonb_build_object(''do'', %L::text))', tenant, command))
$$;

--
-- rows of another tenant, new and old
--
INSERT INTO model VALUES ('acme', 'a'), ('other', 'a');
SELECT attempt(c) FROM unnest(ARRAY[
    $$INSERT INTO model VALUES ('acme', 'b')$$,
    $$INSERT INTO model VALUES ('*', 'b')$$,
    $$INSERT INTO model VALUES ('ACME', 'b')$$,
    $$INSERT INTO model VALUES ('acme ', 'b')$$,
    $$UPDATE model SET n = n + 1 WHERE tenant_id = 'acme'$$,
    $$UPDATE model SET n = n + 1$$,
    $$UPDATE model SET tenant_id = 'other' WHERE id = 'b'$$,
    $$UPDATE model SET tenant_id = 'acme' WHERE tenant_id = 'other' AND id = 'x'$$,
    $$DELETE FROM model WHERE tenant_id = 'other'$$,
    $$DELETE FROM model$$,
    $$INSERT INTO model VALUES ('other', 'a') ON CONFLICT (tenant_id, id) DO UPDATE SET n = 9$$,
    $$WITH d AS (DELETE FROM model WHERE tenant_id = 'other' RETURNING *) SELECT count(*) FROM d$$,
    $$INSERT INTO parts VALUES ('other', 'a')$$,
    $$INSERT INTO parts_a VALUES ('other', 'a')$$,
    $$INSERT INTO parts VALUES ('acme', 'a')$$,
    $$UPDATE parts SET id = 'z' WHERE tenant_id = 'acme'$$,
    -- ways around
    $$SET LOCAL session_replication_role = replica; DELETE FROM model$$,
    $$SELECT set_config('session_replication_role', 'replica', false); DELETE FROM model$$,
    $$ALTER TABLE model DISABLE TRIGGER ALL$$,
    $$TRUNCATE model$$]) WITH ORDINALITY u (c, n) ORDER BY n;
SELECT * FROM model ORDER BY 1, 2;
SELECT * FROM parts ORDER BY 1, 2;
-- writing by hand is allowed
UPDATE model SET n = 0;
DELETE FROM parts;
-- a statement too: only that tenant's batch fails
CREATE TABLE totals (tenant_id text, n bigint, PRIMARY KEY (tenant_id));
SELECT projector_create('totals', targets => '{totals}', event_types => '{T}',
    statement => $$INSERT INTO totals AS t SELECT coalesce(payload->>'for', tenant_id), count(*) FROM batch GROUP BY 1
        ON CONFLICT (tenant_id) DO UPDATE SET n = t.n + excluded.n$$, options => '{"max_attempts": 1}');
SELECT count(projector_append(t, 'i', 'T', p::jsonb)) FROM (VALUES ('acme', '{}'), ('acme', '{"for": "*"}'), ('beta', '{}')) v (t, p);
SELECT projector_drain('totals');
SELECT * FROM totals ORDER BY 1;
SELECT tenant_id, sequence_number, error_code, error_message FROM projector.failures WHERE projection_name = 'totals' AND resolved_at IS NULL ORDER BY 1, 2;
-- the tenant's column may have any type
CREATE TYPE league AS ENUM ('one', 'two');
CREATE TABLE enums (tenant_id league, id text);
CREATE TABLE numbers (tenant_id int, id text);
CREATE TABLE chars (tenant_id char(6), id text);
SELECT projector_alter('obey', '{"targets": ["model", "parts", "enums", "numbers", "chars"]}');
SELECT attempt($$INSERT INTO enums VALUES ('one', 'a')$$, 'one'), attempt($$INSERT INTO enums VALUES ('one', 'a')$$, 'two'),
    attempt($$INSERT INTO numbers VALUES (12, 'a')$$, '12'), attempt($$INSERT INTO numbers VALUES (12, 'a')$$, '012'),
    attempt($$INSERT INTO chars VALUES ('ab', 'a')$$, 'ab'), attempt($$INSERT INTO chars VALUES ('ab', 'a')$$, 'abc');

--
-- tables that are not declared
--
CREATE VIEW other_view AS TABLE other;
CREATE TABLE child (tenant_id text, id text, FOREIGN KEY (tenant_id, id) REFERENCES model);
CREATE VIEW through AS SELECT 1 AS n;
CREATE FUNCTION through() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO other VALUES (''acme'', ''through''); RETURN new; END';
CREATE TRIGGER through INSTEAD OF INSERT ON through FOR EACH ROW EXECUTE FUNCTION through();
CREATE FUNCTION definer() RETURNS void SECURITY DEFINER LANGUAGE sql AS $$INSERT INTO other VALUES ('acme', 'definer')$$;
CREATE TEMP TABLE session_table (tenant_id text);
SELECT attempt(c) FROM unnest(ARRAY[
    $$INSERT INTO other VALUES ('acme', 'a')$$,
    $$INSERT INTO other_view VALUES ('acme', 'a')$$,
    $$WITH i AS (INSERT INTO other VALUES ('acme', 'a') RETURNING *) INSERT INTO model SELECT tenant_id, 'w' FROM i$$,
    $$INSERT INTO through VALUES (1)$$,
    $$SELECT definer()$$,
    $$DO 'BEGIN INSERT INTO other VALUES (''acme'', ''do''); END'$$,
    $$INSERT INTO pg_temp.session_table VALUES ('acme')$$,
    $$COPY other FROM '/dev/null'$$, $$COPY model FROM '/dev/null'$$,
    $$UPDATE projector.projection_offsets SET last_sequence_number = 0$$,
    -- reading and locking is not writing
    $$SELECT FROM other$$, $$SELECT FROM other FOR UPDATE$$, $$SELECT FROM other FOR KEY SHARE$$,
    $$INSERT INTO model SELECT 'acme', 'seen' FROM other RIGHT JOIN (VALUES (1)) v ON true$$]) WITH ORDINALITY u (c, n) ORDER BY n;
SELECT * FROM other;
-- a foreign key's check is not a write
SELECT projector_alter('obey', '{"targets": ["model", "parts", "child"]}');
SELECT attempt($$INSERT INTO child VALUES ('acme', 'a')$$);
-- a handler that catches an error of ours is still guarded
CREATE OR REPLACE FUNCTION obey(e projector.event) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    BEGIN
        PERFORM projector_append(e.tenant_id, 'x', 'X', '{}', expected_version => 5);
    EXCEPTION WHEN SQLSTATE 'PJ001' THEN NULL;
    END;
    EXECUTE e.payload->>'do';
END $$;
SELECT projector_alter('obey', '{"options": {"may_append": true}}');
SELECT attempt($$INSERT INTO other VALUES ('acme', 'a')$$);
SELECT attempt($$INSERT INTO model VALUES ('acme', 'appends')$$);
-- tables deliberately outside of the read model
SELECT try($$SELECT projector_alter('obey', '{"options": {"writes": ["nowhere"]}}')$$);
SELECT projector_alter('obey', '{"options": {"writes": ["other"]}}');
SELECT try($$SELECT projector_alter('obey', '{"options": {"writes": ["other", "model"]}}')$$);
SELECT try($$SELECT projector_alter('obey', '{"options": {"writes": ["totals"]}}')$$);
SELECT attempt($$INSERT INTO other VALUES ('acme', 'declared')$$);
SELECT attempt($$INSERT INTO other VALUES ('beta', 'declared')$$);
SELECT * FROM other ORDER BY 1, 2;
-- a fold whose trigger keeps an audit trail
CREATE TABLE folded (tenant_id text, id text, n int NOT NULL DEFAULT 0, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
CREATE TABLE trail (what text);
CREATE FUNCTION audit() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO trail VALUES (tg_op); RETURN NULL; END';
CREATE TRIGGER audit AFTER INSERT OR UPDATE ON folded FOR EACH ROW EXECUTE FUNCTION audit();
SELECT projector_create('folded', targets => '{folded}', fold_columns => '{"n": "s.n + 1"}', event_types => '{F}', mode => 'inline', options => '{"max_attempts": 1}');
SELECT projector_append('acme', 'f', 'F', '{}');
SELECT error_code, error_message FROM projector.failures WHERE projection_name = 'folded';
SELECT projector_alter('folded', '{"options": {"writes": ["trail"]}}');
SELECT projector_retry('folded', 'acme', 'f', 1);
SELECT * FROM trail;
SELECT projector_drain();
SELECT tenant_id, matches FROM projector_verify('folded');
SELECT projector_rebuild('folded');
SELECT * FROM trail;

--
-- the guard itself
--
SELECT t.tgrelid::regclass, tgenabled, count(d.*) FROM pg_trigger t LEFT JOIN pg_depend d ON d.classid = 'pg_trigger'::regclass AND d.objid = t.oid AND d.deptype = 'x'
WHERE tgname = 'projector_guard' GROUP BY 1, 2, t.tgrelid::regclass::text ORDER BY t.tgrelid::regclass::text COLLATE "C";
ALTER TABLE model DISABLE TRIGGER projector_guard;
SELECT attempt($$INSERT INTO model VALUES ('acme', 'unguarded')$$);
SELECT projector_alter('obey', '{}');
SELECT attempt($$INSERT INTO model VALUES ('acme', 'guarded')$$);
DROP TRIGGER projector_guard ON model;
SELECT attempt($$INSERT INTO model VALUES ('acme', 'unguarded')$$);
SELECT projector_alter('obey', '{}');
-- on any other table, or as another kind of trigger, it does nothing
CREATE TRIGGER g BEFORE INSERT ON other FOR EACH ROW EXECUTE FUNCTION projector.guard_tenant();
INSERT INTO other VALUES ('acme', 'x');
DROP TRIGGER g ON other;
CREATE TABLE no_tenant (id int);
CREATE TRIGGER g AFTER INSERT ON no_tenant FOR EACH ROW EXECUTE FUNCTION projector.guard_tenant();
INSERT INTO no_tenant VALUES (1);
DROP TABLE no_tenant;
-- a trigger of that name is not the guard
CREATE FUNCTION no_guard() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE OR REPLACE TRIGGER projector_guard AFTER INSERT OR UPDATE OR DELETE ON model FOR EACH ROW EXECUTE FUNCTION no_guard();
ALTER TABLE model ENABLE ALWAYS TRIGGER projector_guard;
SELECT attempt($$INSERT INTO model VALUES ('*', 'unguarded')$$);
SELECT projector_alter('obey', '{}');
SELECT attempt($$INSERT INTO model VALUES ('*', 'unguarded')$$);
-- nor is one that fires for some rows only
CREATE OR REPLACE TRIGGER projector_guard AFTER INSERT OR UPDATE OR DELETE ON model FOR EACH ROW WHEN (false) EXECUTE FUNCTION projector.guard_tenant();
ALTER TABLE model ENABLE ALWAYS TRIGGER projector_guard;
SELECT attempt($$INSERT INTO model VALUES ('*', 'unguarded')$$);
SELECT projector_alter('obey', '{}');
SELECT attempt($$INSERT INTO model VALUES ('*', 'unguarded')$$);
-- it is dropped with the projection, unless another projection needs it
SELECT try($$SELECT projector_create('sharing', handler => 'obey', targets => '{model}', event_types => '{X}', options => '{"shared_targets": true}')$$);
SELECT projector_alter('obey', '{"options": {"shared_targets": true}}');
SELECT projector_create('sharing', handler => 'obey', targets => '{model}', event_types => '{X}', options => '{"shared_targets": true}');
SELECT projector_drop('obey');
SELECT tgrelid::regclass FROM pg_trigger WHERE tgname = 'projector_guard' ORDER BY tgrelid::regclass::text COLLATE "C";
-- and with the extension
DROP FUNCTION obey;
DROP EXTENSION projector;
SELECT count(*) FROM pg_trigger WHERE tgname = 'projector_guard';

SET client_min_messages = warning;
DROP TABLE model, other, parts, totals, enums, numbers, chars, child, folded, trail CASCADE;
DROP VIEW through;
DROP TYPE league;
DROP FUNCTION try, attempt, no_guard, through, definer, audit;
