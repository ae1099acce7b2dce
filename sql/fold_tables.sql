-- Which tables can be a fold's target, and what happens when a target changes.
\pset format unaligned
\pset tuples_only on
CREATE EXTENSION projector SCHEMA public;
-- allow DDL that the guard would refuse
SET projector.guard_ddl = off;
CREATE SCHEMA tables;
SET search_path = tables, public;
-- Makes all failed events due, so that the next drain tries them again.
CREATE FUNCTION drain() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('projector.clock_offset', extract(epoch FROM current_setting('projector.clock_offset')::interval)::int + 3600 || ' s', false);
    RETURN projector_drain();
END $$;
CREATE VIEW failed AS
    SELECT projection_name AS projection, aggregate_id AS id, sequence_number AS n, error_code AS code, error_message AS message, error_hint AS hint
    FROM projector.failures WHERE resolved_at IS NULL ORDER BY projection_name, log_seq;
CREATE VIEW waiting AS SELECT aggregate_id AS id, sequence_number AS n, status FROM projector.outbox ORDER BY log_seq;
-- Many events of one type: one per payload, to the aggregates in turn.
CREATE FUNCTION give(type text, payloads text[], ids text[] DEFAULT '{a}') RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    FOR i IN 1 .. cardinality(payloads) LOOP
        PERFORM projector_append('acme', ids[1 + (i - 1) % cardinality(ids)], type, payloads[i]::jsonb);
    END LOOP;
END $$;

-- The same with empty payloads.
CREATE FUNCTION give_empty(type text, n int, ids text[] DEFAULT '{a}') RETURNS void LANGUAGE sql AS
    $$SELECT give(type, array_fill('{}'::text, ARRAY[n]), ids)$$;

--
-- row triggers, before and after, including UPDATE OF column
--
CREATE TABLE g (tenant_id text, id text, n int NOT NULL DEFAULT 0, note text, filled text, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
CREATE TABLE fired (no serial, what text);
CREATE FUNCTION note_trigger() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO fired (what) VALUES (concat_ws(' ', tg_name, tg_when, tg_op, tg_level, 'old', old.n, 'new', new.n));
    IF tg_when = 'BEFORE' AND tg_op <> 'DELETE' THEN
        new.filled := 'by trigger';
    END IF;
    RETURN CASE tg_op WHEN 'DELETE' THEN old ELSE new END;
END $$;
CREATE TRIGGER a_before BEFORE INSERT OR UPDATE OR DELETE ON g FOR EACH ROW EXECUTE FUNCTION note_trigger();
CREATE TRIGGER b_after AFTER INSERT OR UPDATE OR DELETE ON g FOR EACH ROW EXECUTE FUNCTION note_trigger();
CREATE TRIGGER c_of_n AFTER UPDATE OF n ON g FOR EACH ROW EXECUTE FUNCTION note_trigger();
CREATE TRIGGER d_of_key AFTER UPDATE OF id ON g FOR EACH ROW EXECUTE FUNCTION note_trigger();
CREATE TRIGGER e_when AFTER UPDATE ON g FOR EACH ROW WHEN (old.n < 5 AND new.n >= 5) EXECUTE FUNCTION note_trigger();
CREATE FUNCTION g_fold(s g, e projector.event) RETURNS g IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    IF e.event_type = 'Gone' THEN
        RETURN NULL;
    END IF;
    IF s IS NULL THEN
        s.tenant_id := e.tenant_id;
        s.id := e.aggregate_id;
        s.n := 0;
    END IF;
    s.n := s.n + (e.payload->>'n')::int;
    RETURN s;
END $$;
SELECT projector_create('g', fold => 'g_fold', targets => '{g}', event_types => '{Counted,Gone}', options => '{"writes": ["fired"]}');
SELECT give('Counted', '{"{\"n\": 1}","{\"n\": 1}","{\"n\": 2}"}');
SELECT drain();
SELECT give('Counted', '{"{\"n\": 3}"}');
SELECT drain();
SELECT give_empty('Gone', 1);
SELECT drain();
SELECT what FROM fired ORDER BY no;
-- a trigger that returns NULL: the row stays, the event counts as applied
TRUNCATE fired;
CREATE FUNCTION say_no() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER z_no BEFORE UPDATE ON g FOR EACH ROW EXECUTE FUNCTION say_no();
SELECT give('Counted', '{"{\"n\": 1}"}');
SELECT drain();
SELECT give('Counted', '{"{\"n\": 1}"}');
SELECT drain();
SELECT id, n, filled, last_event_version FROM g;
DROP TRIGGER z_no ON g;
-- one that fails: handled like any other error, even in the middle of a batch
CREATE FUNCTION limit_n() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF new.n > 100 THEN
        RAISE EXCEPTION 'too many of %', new.id;
    END IF;
    RETURN new;
END $$;
CREATE TRIGGER y_limit AFTER INSERT OR UPDATE ON g FOR EACH ROW EXECUTE FUNCTION limit_n();
SELECT give('Counted', '{"{\"n\": 1}","{\"n\": 2}","{\"n\": 300}","{\"n\": 4}","{\"n\": 5}","{\"n\": 6}"}', '{p,q,r,s,t}');
SELECT give('Counted', '{"{\"n\": 1}"}', '{r}');
SELECT drain();
SELECT id, n FROM g ORDER BY 1;
SELECT projection, id, n, code, message FROM failed;
TABLE waiting;
DROP TRIGGER y_limit ON g;
SELECT drain();
SELECT id, n, last_event_version FROM g WHERE id = 'r';
TABLE failed;
DROP TABLE fired CASCADE;
SELECT projector_drop('g');
DROP TABLE g CASCADE;
-- one that changes the row: the next event sees the changed row, with any batch size
CREATE TABLE filled (tenant_id text, id text, n int NOT NULL, note text NOT NULL, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
CREATE FUNCTION fill() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN new.n := coalesce(new.n, 0) * 10; new.note := concat(new.note, new.n, ' '); RETURN new; END$$;
CREATE TRIGGER fill BEFORE INSERT OR UPDATE ON filled FOR EACH ROW EXECUTE FUNCTION fill();
SELECT projector_create('filled', targets => '{filled}', event_types => '{F}', fold_columns => '{"n": "coalesce(s.n, 0) + 1"}');
SELECT give_empty('F', 3, '{f}');
SELECT drain();
SELECT n, note FROM filled;
DELETE FROM filled;
SELECT projector_alter('filled', '{"options": {"batch_size": 1}}');
SELECT projector_reset('filled');
SELECT drain();
SELECT n, note FROM filled;
SELECT projector_drop('filled');

--
-- foreign keys, unique and exclusion constraints: the failing event is found, the others are applied
--
CREATE TABLE colours (colour text PRIMARY KEY);
INSERT INTO colours VALUES ('red'), ('blue');
CREATE TABLE cars (tenant_id text, id text, colour text REFERENCES colours, plate text UNIQUE, parked int4range, spot int,
    last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id), EXCLUDE USING gist (parked WITH &&));
CREATE TABLE drivers (car_tenant text, car_id text, name text, FOREIGN KEY (car_tenant, car_id) REFERENCES cars ON DELETE CASCADE);
SELECT projector_create('cars', targets => '{cars}', event_types => '{Car}', options => '{"writes": ["drivers"]}', fold_columns => '{
    "colour": "coalesce(e.payload->>''colour'', s.colour)", "plate": "coalesce(e.payload->>''plate'', s.plate)",
    "parked": "coalesce((e.payload->>''parked'')::int4range, s.parked)"}');
SELECT give('Car', ARRAY['{"colour": "red", "plate": "A1"}', '{"colour": "green", "plate": "A2"}', '{"colour": "blue", "plate": "A1"}',
    '{"plate": "A4", "parked": "[1,5)"}', '{"plate": "A5", "parked": "[3,7)"}', '{"plate": "A6", "parked": "[5,6)"}'], '{a,b,c,d,e,f}');
SELECT give_empty('Car', 6, '{a,b,c,d,e,f}');
SELECT drain();
SELECT id, colour, plate, parked, last_event_version FROM cars ORDER BY 1;
SELECT projection, id, n, code, message FROM failed;
TABLE waiting;
-- repaired one by one
INSERT INTO colours VALUES ('green');
UPDATE cars SET plate = 'A0' WHERE id = 'a';
SELECT drain();
SELECT id, n, code FROM failed;
SELECT projector_skip('cars', 'acme', 'e', 1, 'parked elsewhere');
SELECT drain();
SELECT id, colour, plate, parked, last_event_version FROM cars ORDER BY 1;
-- a unique value moves from one row to another in one batch
SELECT give('Car', ARRAY['{"plate": "B1"}', '{"plate": "A6"}', '{"plate": "B4"}', '{"plate": "B2"}'], '{f,d,d,b}');
SELECT drain();
SELECT id, plate FROM cars ORDER BY 1;
SELECT id, n, code FROM failed;
SELECT projector_drop('cars');
-- a row with a cascading reference: both are deleted
SELECT count(*) FROM drivers;
CREATE FUNCTION cars_fold(s cars, e projector.event) RETURNS cars IMMUTABLE LANGUAGE sql AS 'SELECT NULL::cars';
SELECT projector_create('scrap', fold => 'cars_fold', targets => '{cars}', event_types => '{Scrapped}', options => '{"writes": ["drivers"]}');
INSERT INTO drivers VALUES ('acme', 'a', 'Ann'), ('acme', 'b', 'Bob');
SELECT give_empty('Scrapped', 1, '{a}');
SELECT drain();
SELECT string_agg(id, ' ' ORDER BY id) FROM cars;
SELECT name FROM drivers;
ALTER TABLE drivers DROP CONSTRAINT drivers_car_tenant_car_id_fkey, ADD FOREIGN KEY (car_tenant, car_id) REFERENCES cars;
SELECT give_empty('Scrapped', 3, '{b,c,d}');
SELECT drain();
SELECT string_agg(id, ' ' ORDER BY id) FROM cars;
SELECT id, n, code FROM failed;
DELETE FROM drivers;
SELECT drain();
SELECT string_agg(id, ' ' ORDER BY id) FROM cars;
SELECT projector_drop('scrap');

--
-- columns of all sorts: generated, identity, defaults, domains, composites, arrays, ranges, jsonb
--
CREATE DOMAIN small AS int CHECK (value < 10);
CREATE TYPE pair AS (x int, y text);
CREATE FUNCTION default_note() RETURNS text VOLATILE LANGUAGE sql AS $$SELECT 'by ' || current_user || ' for ' || current_setting('projector.tenant_id')$$;
CREATE TABLE sorts (gone1 int, tenant_id varchar(8), gone2 text, id varchar(8), n small DEFAULT 0, twice int GENERATED ALWAYS AS (n * 2) STORED NOT NULL CHECK (twice <> 8),
    label text GENERATED ALWAYS AS (id || ':' || n) STORED, no int GENERATED ALWAYS AS IDENTITY, note text DEFAULT default_note(),
    p pair, list text[] DEFAULT '{}', doc jsonb DEFAULT '{}', seen text, last_event_id uuid, last_event_version bigint, PRIMARY KEY (id, tenant_id));
ALTER TABLE sorts DROP gone1;
SELECT projector_create('sorts', targets => '{sorts}', event_types => '{S}', fold_columns => '{"n": "s.n + coalesce((e.payload->>''n'')::int, 1)",
    "p": "row(s.n, s.id)::pair", "list": "s.list || e.event_type || (s.n)::text", "doc": "s.doc || e.payload", "seen": "concat_ws('' '', s.seen, s.twice, s.label)"}',
    options => '{"digest_ignore": ["no", "note"]}');
SELECT give_empty('S', 2, '{k}');
SELECT drain();
SELECT tenant_id, id, n, twice, label, no, note = 'by ' || current_user || ' for acme', p, list, doc, seen FROM sorts;
ALTER TABLE sorts DROP gone2;
SELECT give('S', ARRAY['{"a": 1}'], '{k}');
SELECT drain();
SELECT tenant_id, id, n, twice, label, no, p, list, doc, seen FROM sorts;
-- a generated column's check, a domain's check, and an id that is too long: each fails at its own event
SELECT give('S', ARRAY['{}', '{"n": -4}'], '{k}');
SELECT give('S', ARRAY['{"n": 9}', '{"n": 9}', '{"n": -9}'], '{m}');
SELECT give_empty('S', 1, '{much-too-long}');
SELECT give_empty('S', 1, '{fine}');
SELECT drain();
SELECT id, n, code, message FROM failed;
SELECT id, n, twice, label FROM sorts ORDER BY 1;
SELECT projector_skip('sorts', 'acme', id, n, 'a test') FROM failed;
SELECT drain();
SELECT id, n, twice, label, seen FROM sorts ORDER BY 1;
TABLE failed;
-- the same events one at a time: the same rows
CREATE TEMP TABLE before AS SELECT id, n, twice, label, p, list, doc, seen, last_event_version FROM sorts;
DELETE FROM sorts;
SELECT projector_alter('sorts', '{"options": {"batch_size": 1}}');
SELECT projector_reset('sorts');
SELECT drain() > 0;
SELECT count(*) FROM (TABLE before EXCEPT ALL SELECT id, n, twice, label, p, list, doc, seen, last_event_version FROM sorts) d;
SELECT projector_drop('sorts');

--
-- large values: kept, changed, and passed on
--
CREATE TABLE large (tenant_id text, id text, kept text, grown text DEFAULT '', n int DEFAULT 0, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
CREATE FUNCTION big(seed int) RETURNS text LANGUAGE sql IMMUTABLE AS $$SELECT string_agg(md5(seed || ' ' || i), '') FROM generate_series(1, 3125) i$$;
CREATE FUNCTION large_fold(s large, e projector.event) RETURNS large IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    IF s IS NULL THEN
        s := (e.tenant_id, e.aggregate_id, NULL, '', 0, NULL, NULL);
    END IF;
    s.kept := coalesce(e.payload->>'big', s.kept);
    s.grown := s.grown || coalesce(e.payload->>'more', '');
    s.n := s.n + 1;
    RETURN s;
END $$;
CREATE TABLE large2 (LIKE large INCLUDING ALL);
SELECT projector_create('large', fold => 'large_fold', targets => '{large}', event_types => '{L}');
SELECT projector_create('large2', targets => '{large2}', event_types => '{L}', fold_columns => '{"kept": "coalesce(e.payload->>''big'', s.kept)",
    "grown": "s.grown || coalesce(e.payload->>''more'', '''')", "n": "s.n + 1"}');
CREATE VIEW large_report AS
    SELECT 'fold' AS kind, id, length(kept) AS kept, md5(kept) = md5(big(1)) AS first, md5(kept) = md5(big(2)) AS second, length(grown) AS grown, md5(grown) = md5(big(3) || big(4)) AS grew, n FROM large
    UNION ALL SELECT 'columns', id, length(kept), md5(kept) = md5(big(1)), md5(kept) = md5(big(2)), length(grown), md5(grown) = md5(big(3) || big(4)), n FROM large2 ORDER BY 1, 2;
SELECT projector_append('acme', 'a', 'L', jsonb_build_object('big', big(1)));
SELECT drain();
TABLE large_report;
SELECT give_empty('L', 2);
SELECT drain();
SELECT give('L', ARRAY[jsonb_build_object('more', big(3)), jsonb_build_object('more', big(4))]::text[]);
SELECT drain();
TABLE large_report;
SELECT projector_append('acme', 'a', 'L', jsonb_build_object('big', big(2)));
SELECT give_empty('L', 1);
SELECT drain();
TABLE large_report;
SELECT projector_drop('large');
SELECT projector_drop('large2');

--
-- keys of other types: an id that the type would write differently is refused
--
CREATE TABLE by_uuid (tenant_id text, id uuid, n int NOT NULL DEFAULT 0, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
CREATE TABLE by_int (tenant_id text, id int, n int NOT NULL DEFAULT 0, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
CREATE TABLE by_char (tenant_id text, id char(4), n int NOT NULL DEFAULT 0, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
CREATE TABLE by_numeric (tenant_id text, id numeric, n int NOT NULL DEFAULT 0, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
SELECT projector_create('by_uuid', targets => '{by_uuid}', event_types => '{U}', fold_columns => '{"n": "s.n + 1"}');
SELECT projector_create('by_int', targets => '{by_int}', event_types => '{I}', fold_columns => '{"n": "s.n + 1"}');
SELECT projector_create('by_char', targets => '{by_char}', event_types => '{C}', fold_columns => '{"n": "s.n + 1"}');
SELECT projector_create('by_numeric', targets => '{by_numeric}', event_types => '{N}', fold_columns => '{"n": "s.n + 1"}');
SELECT give_empty('U', 3, '{5e0c9a52-7c0e-4a3f-9f3e-2f0f0a3c9d11,5E0C9A52-7C0E-4A3F-9F3E-2F0F0A3C9D11}');
SELECT give_empty('I', 6, '{17,017,x,99999999999}');
SELECT give_empty('C', 4, '{ab,"ab ",abcd,abcde}');
SELECT give_empty('N', 4, '{1,1.0,2}');
SELECT drain();
SELECT id, n FROM by_uuid;
SELECT id, n FROM by_int;
SELECT id, n FROM by_char ORDER BY 1;
SELECT id, n FROM by_numeric ORDER BY 1;
SELECT projection, id, n, code, message, hint FROM failed;
-- such events can be skipped, by hand and by on_error
SELECT projector_skip(projection, 'acme', id, n, 'no such id') FROM failed;
SELECT drain();
SELECT projector_alter('by_int', '{"options": {"on_error": "skip", "max_attempts": 1}}');
SELECT give_empty('I', 4, '{y,18,19,y}');
SELECT drain();
SELECT id, n FROM by_int ORDER BY 1;
SELECT count(*) FROM projector.failures WHERE projection_name = 'by_int' AND resolution = 'skipped';
TABLE waiting;
SELECT projector_drop(p) FROM unnest('{by_uuid,by_int,by_char,by_numeric}'::text[]) p;
-- a collation in which different ids are equal (with ICU)
DO $$
BEGIN
    CREATE COLLATION no_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
EXCEPTION WHEN feature_not_supported THEN
    RAISE EXCEPTION 'this test needs a server with ICU';
END $$;
CREATE TABLE by_no_case (tenant_id text COLLATE no_case, id text COLLATE no_case, n int NOT NULL DEFAULT 0, last_event_id uuid, last_event_version bigint, last_log_seq bigint,
    PRIMARY KEY (tenant_id, id));
SELECT projector_create('by_no_case', targets => '{by_no_case}', event_types => '{Z}', fold_columns => '{"n": "s.n + 1"}');
SELECT give_empty('Z', 4, '{One,one,two}');
SELECT projector_append('ACME', 'two', 'Z', '{}');
SELECT drain();
SELECT tenant_id, id, n FROM by_no_case ORDER BY id, tenant_id;
SELECT id, n, code, message FROM failed;
SELECT projector_drop('by_no_case');
-- with option key that is intended: the row keeps the key of the first event
DELETE FROM by_no_case;
SELECT projector_create('no_case_key', targets => '{by_no_case}', event_types => '{K}', key => 'payload->>''k''', fold_columns => '{"n": "s.n + 1"}');
SELECT give('K', ARRAY(SELECT jsonb_build_object('k', k)::text FROM unnest('{Pear,apple,Apple,APPLE,pear,apple,PEAR,aPPle}'::text[]) WITH ORDINALITY u(k, i) ORDER BY i), '{z,y,x}');
SELECT drain();
SELECT id, n FROM by_no_case ORDER BY 1;
SELECT projector_drop('no_case_key');

--
-- the table changes while the session keeps compiled code
--
CREATE TABLE t (tenant_id text, a int, id text, n int NOT NULL DEFAULT 0, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
CREATE FUNCTION t_fold(s t, e projector.event) RETURNS t IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    IF s IS NULL THEN
        s.tenant_id := e.tenant_id;
        s.id := e.aggregate_id;
        s.n := 0;
    END IF;
    s.n := s.n + 1;
    RETURN s;
END $$;
CREATE TABLE t2 (LIKE t INCLUDING ALL);
SELECT projector_create('t', fold => 't_fold', targets => '{t}', event_types => '{T}', options => '{"max_attempts": 100}');
SELECT projector_create('t2', targets => '{t2}', event_types => '{T}', fold_columns => '{"n": "s.n + 1"}', options => '{"max_attempts": 100}');
CREATE FUNCTION state() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY '{t,t2}'::text[] LOOP
        IF to_regclass(name) IS NOT NULL THEN
            RETURN QUERY EXECUTE format('SELECT ''%1$s '' || (to_jsonb(x) - ''last_event_id'' - ''tenant_id'')::text FROM %1$I x ORDER BY 1', name);
        END IF;
    END LOOP;
    RETURN QUERY SELECT concat_ws(': ', projection, code, message, 'hint', hint) FROM failed WHERE projection IN ('t', 't2');
END $$;
\set step 'SELECT give_empty(\'T\', 1); SELECT drain(); SELECT state();'
CREATE FUNCTION on_both(command text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format(command, 't');
    EXECUTE format(command, 't2');
END $$;
:step
SELECT on_both('ALTER TABLE %I ADD b text DEFAULT ''new''');
:step
SELECT on_both('ALTER TABLE %I DROP a');
:step
SELECT on_both('ALTER TABLE %I ALTER n TYPE numeric');
:step
-- (a PL/pgSQL limitation: recreate the function, or use another session)
DO $$BEGIN EXECUTE pg_get_functiondef('t_fold'::regproc); END$$;
SELECT drain();
SELECT state();
SELECT on_both('ALTER TABLE %I ALTER id TYPE varchar(10)');
:step
SELECT on_both('ALTER TABLE %I DROP CONSTRAINT %1$s_pkey, ADD PRIMARY KEY (id, tenant_id)');
:step
SELECT on_both('ALTER TABLE %I RENAME id TO name');
:step
SELECT on_both('ALTER TABLE %I RENAME name TO id');
-- something a fold needs is missing: the error names it, and nothing is lost
SELECT on_both('ALTER TABLE %I DROP CONSTRAINT %1$s_pkey');
:step
SELECT on_both('ALTER TABLE %I ADD PRIMARY KEY (tenant_id, id)');
SELECT on_both('ALTER TABLE %I ALTER last_event_version TYPE text');
:step
SELECT on_both('ALTER TABLE %I ALTER last_event_version TYPE bigint USING last_event_version::bigint, ALTER last_event_id TYPE text');
:step
SELECT on_both('ALTER TABLE %I ALTER last_event_id TYPE uuid USING last_event_id::uuid, DROP last_event_version');
:step
SELECT on_both('ALTER TABLE %I ADD last_event_version bigint');
SELECT on_both('UPDATE %I SET last_event_version = (SELECT last_sequence_number FROM projector.offsets WHERE tenant_id = ''acme'' AND aggregate_id = ''a'' AND projection_name = ''%1$s'')');
SELECT on_both('ALTER TABLE %I ALTER tenant_id TYPE varchar(3) USING ''x''');
:step
SELECT on_both('ALTER TABLE %I ALTER tenant_id TYPE text USING ''acme''');
:step
-- a deferred constraint, a column that expressions name
ALTER TABLE t ADD UNIQUE (n) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE t2 RENAME n TO m;
:step
ALTER TABLE t DROP CONSTRAINT t_n_key;
ALTER TABLE t2 RENAME m TO n;
:step
-- the table is renamed, and another gets its name: the renamed one stays the target
ALTER TABLE t2 RENAME TO t3;
CREATE TABLE t2 (LIKE t3) PARTITION BY LIST (tenant_id);
ALTER TABLE t2 ADD PRIMARY KEY (tenant_id, id);
CREATE TABLE t2_all PARTITION OF t2 DEFAULT;
:step
SELECT n, last_event_version FROM t3;
-- a new target is checked
SELECT projector_alter('t2', '{"targets": ["t2"]}');
DROP TABLE t2;
CREATE VIEW t2 AS TABLE t3;
SELECT projector_alter('t2', '{"targets": ["t2"]}');
DROP VIEW t2;
CREATE TABLE t2 (extra int, LIKE t3 INCLUDING ALL);
SELECT projector_alter('t2', '{"targets": ["t2"]}');
:step
DROP TABLE t3;
-- a row deleted by hand starts again, one changed by hand is changed further
DELETE FROM t;
UPDATE t2 SET n = 100;
:step

--
-- the function changes
--
CREATE OR REPLACE FUNCTION t_fold(s t, e projector.event) RETURNS t IMMUTABLE LANGUAGE plpgsql AS 'BEGIN s.n := s.n + 1000; RETURN s; END';
:step
ALTER FUNCTION t_fold RENAME TO t_fold_renamed;
:step
ALTER FUNCTION t_fold_renamed RENAME TO t_fold;
:step
-- dropped, with on_error skip: the projection stops, and no event is skipped
SELECT projector_alter('t', '{"options": {"on_error": "skip", "max_attempts": 1}}');
DROP FUNCTION t_fold;
SELECT give_empty('T', 3, '{a,b}');
SELECT drain();
SELECT id, n FROM t ORDER BY 1;
SELECT aggregate_id, error_code, resolution, count(*) FROM projector.failures WHERE projection_name = 't' AND resolution = 'skipped' GROUP BY 1, 2, 3 ORDER BY 1;
SELECT count(*) FROM projector.outbox WHERE projection_name = 't';
-- two changes of a projection in one transaction, each used
BEGIN;
SELECT projector_alter('t2', '{"fold_columns": {"n": "s.n + 10000"}}');
:step
SELECT projector_alter('t2', '{"fold_columns": {"n": "s.n + 1000000"}}');
:step
ROLLBACK;
:step
SELECT projector_drop('t');
SELECT projector_drop('t2');

--
-- policies, rules and child tables are ignored
--
CREATE TABLE odd (tenant_id text, id text, n int NOT NULL DEFAULT 0, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
CREATE TABLE odd_child (PRIMARY KEY (tenant_id, id)) INHERITS (odd);
INSERT INTO odd_child VALUES ('acme', 'a', 50);
CREATE RULE no_insert AS ON INSERT TO odd DO INSTEAD NOTHING;
CREATE RULE no_update AS ON UPDATE TO odd DO INSTEAD NOTHING;
ALTER TABLE odd ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
SELECT projector_create('odd', targets => '{odd}', event_types => '{O}', fold_columns => '{"n": "s.n + 1"}');
SELECT give_empty('O', 1);
SELECT drain();
SELECT give_empty('O', 1);
SELECT drain();
SELECT tableoid::regclass, id, n FROM odd ORDER BY 1;
-- whole rows in expressions
CREATE FUNCTION weigh(s odd, e projector.event) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT s.n * 10 + length(e.aggregate_id)';
SELECT projector_alter('odd', '{"fold_columns": {"n": "weigh(s, e)"}}');
SELECT give_empty('O', 2);
SELECT drain();
SELECT n FROM ONLY odd;
SELECT projector_drop('odd');
CREATE TABLE parted (LIKE odd) PARTITION BY LIST (tenant_id);
ALTER TABLE parted ADD PRIMARY KEY (tenant_id, id);
SELECT projector_create('parted', targets => '{parted}', fold_columns => '{"n": "s.n + 1"}');

SET client_min_messages = warning;
DROP EXTENSION projector CASCADE;
DROP SCHEMA tables CASCADE;
RESET projector.clock_offset;
