-- Typical mistakes of a new user get an error that names the mistake and the remedy.
\pset format unaligned
\pset tuples_only on
\set SHOW_CONTEXT always
\set VERBOSITY default
CREATE EXTENSION projector;
CREATE TABLE stock (tenant_id text, id text, n int NOT NULL DEFAULT 0, ratio int, label text, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
SELECT projector_create('stock', fold_columns => '{"n": "s.n + 1", "ratio": "10 / (e.payload->>''by'')::int"}', targets => '{stock}');
SELECT projector_append('acme', 'a', 'E', '{"by": 5}');
SELECT projector_drain();

--
-- An unknown tenant or aggregate
--
SELECT projector_rebuild('stock', 'acne');
SELECT projector_rebuild('stock', 'acme', 'b');
SELECT projector_rebuild('stock', 'acne', 'a');
SELECT projector_start_run('stock', tenant_id => 'acne');
SELECT projector_catch_up('stock', 'acne');
SELECT projector_reset('stock', 'acne');
SELECT projector_reset('stock', 'acme', 'b');
SELECT projector_wait('stock', 'acne', 'a', 1, '0 s');
SELECT projector_wait('stock', 'acme', 'b', 1, '0 s');
SELECT projector_wait_log('stock', 'acne', 1, '0 s');
SELECT count(*) FROM projector.projection_cursors;
SELECT count(*) FROM projector.projection_runs;
-- one that has only rows, or only a cursor, exists
INSERT INTO stock VALUES ('old', 'x', 1);
SELECT projector_rebuild('stock', 'old', 'x');
INSERT INTO stock VALUES ('old', 'x', 1);
SELECT projector_rebuild('stock', 'old');
SELECT count(*) FROM stock WHERE tenant_id = 'old';
SELECT projector_pause('stock', 'next'), projector_resume('stock', 'next');
SELECT projector_rebuild('stock', 'next');

--
-- Pauses of tenants remain when the pause of the projection ends
--
SELECT projector_pause('stock', 't' || i) FROM generate_series(1, 12) i;
SELECT projector_pause('stock');
SELECT projector_resume('stock', 't1');
SELECT projector_resume('stock');
SELECT projector_resume('stock', 't' || i) FROM generate_series(2, 12) i;
SELECT projector_resume('stock', 'acme');

--
-- fold_columns are merged by column
--
SELECT projector_alter('stock', '{"fold_columns": {"label": "e.event_type"}}');
SELECT fold_columns FROM projector.projections;
SELECT projector_alter('stock', '{"fold_columns": {"label": null, "n": "s.n + 10"}}');
SELECT fold_columns FROM projector.projections;
SELECT projector_alter('stock', '{"fold_columns": {"n": null, "ratio": null}}');
SELECT projector_alter('stock', '{"fold_columns": ["n"]}');

--
-- An expression that fails says which one it is
--
SELECT projector_append('acme', 'a', 'E', '{"by": 0}');
SELECT projector_drain();
SELECT error_message, split_part(error_context, E'\n', 1) FROM projector.failures;
SELECT projector_skip('stock', 'acme', 'a', 2, NULL);
SELECT projector_skip('stock', 'acme', 'a', 2, reason => 'by nothing');
CREATE TABLE keyed (tenant_id text, k int, n int NOT NULL DEFAULT 0, last_event_id uuid, last_event_version bigint, last_log_seq bigint, PRIMARY KEY (tenant_id, k));
SELECT projector_create('keyed', fold_columns => '{"n": "s.n + 1"}', key => '(payload->>''k'')::int', targets => '{keyed}', event_types => '{K}');
SELECT projector_append('acme', 'k', 'K', '{"k": "one"}');
SELECT projector_drain('keyed');
SELECT error_message, split_part(error_context, E'\n', 1) FROM projector.failures WHERE projection_name = 'keyed';
SELECT projector_drop('keyed');

--
-- An invalid expression: the error position is inside it
--
CREATE TABLE free_stock (LIKE stock INCLUDING ALL);
SELECT projector_create('x', fold_columns => '{"n": "s.n + colour"}', targets => '{free_stock}');
SELECT projector_create('x', fold_columns => '{"n": "s.n + + )"}', targets => '{free_stock}');
SELECT projector_create('x', fold_columns => '{"n": "row_number() OVER ()"}', targets => '{free_stock}');
SELECT projector_create('x', statement => 'INSERT INTO stock SELEKT 1', targets => '{free_stock}');

--
-- A column that nothing fills in
--
CREATE TABLE strict_stock (tenant_id text, id text, n int NOT NULL, "Total" int NOT NULL, d int NOT NULL DEFAULT 1, i int GENERATED ALWAYS AS (n + 1) STORED NOT NULL,
    last_event_id uuid NOT NULL, last_event_version bigint NOT NULL, PRIMARY KEY (tenant_id, id));
SELECT projector_create('strict', fold_columns => '{"n": "1"}', targets => '{strict_stock}');
SELECT projector_create('strict', fold_columns => '{"n": "1", "Total": "2"}', targets => '{strict_stock}', event_types => '{S}');
SELECT projector_append('acme', 's', 'S', '{}');
SELECT projector_drain('strict');
ALTER TABLE strict_stock ADD more int NOT NULL DEFAULT 0;
ALTER TABLE strict_stock ALTER more DROP DEFAULT;
SELECT projector_alter('strict', '{"fold_columns": {"Total": null}}');
SELECT projector_drop('strict');

--
-- What code may not do
--
CREATE ROLE regress_surprised;
GRANT USAGE ON SCHEMA projector TO regress_surprised;
GRANT EXECUTE ON FUNCTION projector_create TO regress_surprised;
CREATE FUNCTION appends(e projector.event) RETURNS void LANGUAGE plpgsql AS $$ BEGIN PERFORM projector_append('acme', 'z', 'Z', '{}'); END $$;
CREATE FUNCTION defines(e projector.event) RETURNS void LANGUAGE plpgsql AS $$ BEGIN CREATE TABLE other (a int); END $$;
SET ROLE regress_surprised;
SELECT projector_create('theirs', handler => 'appends', mode => 'strict', event_types => '{T}');
RESET ROLE;
\set SHOW_CONTEXT never
SELECT projector_append('acme', 't', 'T', '{}');
SELECT projector_drop('theirs');
SELECT projector_create('ours', handler => 'appends', mode => 'strict', event_types => '{T}');
SELECT projector_append('acme', 't', 'T', '{}');
SELECT projector_alter('ours', '{"handler": "defines"}');
SELECT projector_append('acme', 't', 'T', '{}');
SELECT projector_drop('ours');
-- arguments in the wrong place
SELECT projector_create('x', 'appends', '{stock}');
SELECT projector_start_run('stock', 'acme');

\pset format aligned
\pset tuples_only off
SET client_min_messages = warning;
DROP EXTENSION projector CASCADE;
DROP TABLE stock, free_stock, keyed, strict_stock CASCADE;
DROP ROLE regress_surprised;
RESET client_min_messages;
