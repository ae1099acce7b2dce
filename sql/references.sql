-- Which rows a rebuild affects: rows that refer to a target, and rows whose tenant or key compares as equal.
\pset format unaligned
\pset tuples_only on
SET client_min_messages = warning;
CREATE EXTENSION citext;
CREATE EXTENSION projector;
\i sql/include/try.sql
CREATE TABLE orders (tenant_id text, id text, n int DEFAULT 0, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
CREATE TABLE lines (tenant_id text, order_id text, line int);
CREATE TABLE log (tenant_id text, n int);

--
-- a foreign key with an action, from a table that is not a target
--
ALTER TABLE lines ADD CONSTRAINT lines_order FOREIGN KEY (tenant_id, order_id) REFERENCES orders ON DELETE CASCADE;
SELECT try($$SELECT projector_create('orders', targets => '{orders}', fold_columns => '{"n": "s.n + 1"}')$$);
ALTER TABLE lines DROP CONSTRAINT lines_order, ADD CONSTRAINT lines_order FOREIGN KEY (tenant_id, order_id) REFERENCES orders ON DELETE SET NULL;
SELECT try($$SELECT projector_create('orders', targets => '{orders}', fold_columns => '{"n": "s.n + 1"}')$$);
ALTER TABLE lines DROP CONSTRAINT lines_order, ADD CONSTRAINT lines_order FOREIGN KEY (tenant_id, order_id) REFERENCES orders ON DELETE SET DEFAULT;
SELECT try($$SELECT projector_create('orders', targets => '{orders}', fold_columns => '{"n": "s.n + 1"}')$$);
-- without one, or if it is a target itself, or named
CREATE FUNCTION handle(e projector.event) RETURNS void LANGUAGE sql AS $$
    INSERT INTO orders VALUES (e.tenant_id, e.aggregate_id, 1) ON CONFLICT DO NOTHING;
    INSERT INTO lines VALUES (e.tenant_id, e.aggregate_id, e.sequence_number);
$$;
SELECT try($$SELECT projector_create('both', handler => 'handle', targets => '{orders}', mode => 'off')$$);
SELECT try($$SELECT projector_create('both', handler => 'handle', targets => '{orders,lines}', mode => 'off')$$);
SELECT projector_drop('both');
SELECT try($$SELECT projector_create('orders', targets => '{orders}', fold_columns => '{"n": "s.n + 1"}', options => '{"writes": ["public.lines"]}')$$);
SELECT try($$SELECT projector_alter('orders', '{"options": {"writes": null}}')$$);
ALTER TABLE lines DROP CONSTRAINT lines_order, ADD CONSTRAINT lines_order FOREIGN KEY (tenant_id, order_id) REFERENCES orders;
SELECT try($$SELECT projector_alter('orders', '{"options": {"writes": null}}')$$);
SELECT count(projector_append('acme', a, 'Ordered', '{}')) FROM unnest('{a,a,b}'::text[]) a;
SELECT projector_drain();
INSERT INTO lines VALUES ('acme', 'a', 1);
-- added later: refused when rows would be deleted
SELECT left(try($$SELECT projector_rebuild('orders')$$), 48);
ALTER TABLE lines DROP CONSTRAINT lines_order, ADD CONSTRAINT lines_order FOREIGN KEY (tenant_id, order_id) REFERENCES orders ON DELETE CASCADE;
SELECT try($$SELECT projector_rebuild('orders')$$);
SELECT try($$SELECT projector_rebuild('orders', 'acme', 'a')$$);
SELECT try($$SELECT projector_rebuild('orders', 'acme')$$);
SELECT count(*) FROM lines;
-- building aside does not delete rows that stay
SELECT matches FROM projector_verify('orders');
SELECT count(*) FROM lines;
-- partitions count as their table
CREATE TABLE parts (tenant_id text, order_id text, CONSTRAINT parts_order FOREIGN KEY (tenant_id, order_id) REFERENCES orders ON DELETE CASCADE) PARTITION BY LIST (tenant_id);
CREATE TABLE parts_acme PARTITION OF parts FOR VALUES IN ('acme');
SELECT try($$SELECT projector_alter('orders', '{"options": {"writes": ["lines"]}}')$$);
SELECT try($$SELECT projector_alter('orders', '{"options": {"writes": ["lines", "parts"]}}')$$);
-- if it is declared, they are deleted
SELECT try($$SELECT projector_rebuild('orders')$$);
SELECT count(*) FROM lines;
SELECT projector_drop('orders');

--
-- keys that are equal in their type but are different ids
--
CREATE TABLE names (tenant_id citext, id citext, n int DEFAULT 0, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
SELECT projector_create('names', targets => '{names}', event_types => '{Named}', fold_columns => '{"n": "s.n + 1"}');
SELECT projector_append('acme', 'A', 'Named', '{}'), projector_append('acme', 'A', 'Named', '{}');
SELECT projector_drain();
SELECT projector_append('acme', 'a', 'Named', '{}');
SELECT projector_drain();
SELECT error_code FROM projector.failures;
SELECT try($$SELECT projector_rebuild('names', 'acme', 'a')$$);
SELECT tenant_id, id, n FROM names;
SELECT sequence_number, state->>'id' AS id, state->>'n' AS n FROM projector_explain('names', 'acme', 'A');
SELECT count(*) FROM projector_explain('names', 'acme', 'a');
SELECT key FROM projector_preview('names', '{"fold_columns": {"n": "7"}}', 'acme', 'A');
SELECT matches, differing_rows FROM projector_verify('names', 'acme');
SELECT projector_rebuild('names', 'ACME');
SELECT tenant_id, id, n FROM names;
SELECT projector_rebuild('names', 'acme', 'A');
SELECT tenant_id, id, n FROM names;
-- a user's cast does not make ids equal either
CREATE TYPE word AS ENUM ('a', 'b');
CREATE FUNCTION word_text(word) RETURNS text IMMUTABLE LANGUAGE sql AS $$SELECT 'x'$$;
CREATE CAST (word AS text) WITH FUNCTION word_text(word) AS ASSIGNMENT;
CREATE TABLE words (tenant_id text, id word, n int DEFAULT 0, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
SELECT projector_create('words', targets => '{words}', event_types => '{Word}', fold_columns => '{"n": "s.n + 1"}');
SELECT projector_append('acme', 'w' || a, 'Other', '{}'), projector_append('acme', a, 'Word', '{}') FROM unnest('{a,b}'::text[]) a;
SELECT projector_append('acme', 'b', 'Word', '{}');
SELECT projector_drain();
SELECT id, n FROM words ORDER BY 1;
SELECT projector_rebuild('words', 'acme', 'b');
SELECT matches, differing_rows FROM projector_verify('words', 'acme');
SELECT count(*) FROM words;

DROP EXTENSION projector CASCADE;
DROP TABLE orders, lines, parts, log, names, words;
DROP TYPE word CASCADE;
DROP EXTENSION citext;
DROP FUNCTION try;
