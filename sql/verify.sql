-- Proof: digests, verify, preview and explain.
\set VERBOSITY terse
CREATE EXTENSION projector;
CREATE TABLE stock (tenant_id text, item_id text, junk int, on_hand bigint NOT NULL DEFAULT 0, at timestamptz, doc json,
    last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, item_id));
ALTER TABLE stock DROP COLUMN junk;
CREATE TABLE moves (tenant_id text, item_id text, qty int);
CREATE TABLE items (tenant_id text, item_id text PRIMARY KEY, n int);
CREATE TABLE lanes (tenant_id text, lane int, path text NOT NULL DEFAULT '', last_event_id uuid, last_event_version bigint,
    last_log_seq bigint, PRIMARY KEY (tenant_id, lane));
CREATE FUNCTION handle(e projector.event) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO moves VALUES (e.tenant_id, e.aggregate_id, (e.payload->>'qty')::int);
    INSERT INTO items AS i VALUES (e.tenant_id, e.tenant_id || '/' || e.aggregate_id, 1) ON CONFLICT (item_id) DO UPDATE SET n = i.n + 1;
END $$;
SELECT projector_create('stock', targets => '{stock}', fold_columns => '{"on_hand": "s.on_hand + (e.payload->>''qty'')::int",
    "at": "(''2020-01-01 00:00+00''::timestamptz) + (e.payload->>''qty'')::int * interval ''1 day''", "doc": "e.payload::json"}');
SELECT projector_create('moves', handler => 'handle', targets => '{moves,items}');
SELECT projector_create('totals', targets => '{lanes}', key => '(payload->>''lane'')::int', fold_columns => '{"path": "s.path || e.aggregate_id || e.sequence_number"}');
SELECT projector_append('t', a, 'Moved', jsonb_build_object('qty', q, 'lane', q % 2))
FROM (VALUES ('a', 1), ('a', 2), ('b', 3), ('b', 4), ('b', 5), ('c', 6)) v (a, q) ORDER BY q;
SELECT projector_append('u', 'a', 'Moved', '{"qty": 1, "lane": 0}');
SELECT projector_drain();

-- the stored digest equals the one computed from the rows
CREATE VIEW agreement AS
    SELECT projection_name, tenant_id, row_count, digest = projector_digest(projection_name, tenant_id) AS agrees,
        (SELECT max(d.last_log_seq) FROM projector.projection_digests d JOIN projector.projections p USING (projection_id)
         WHERE p.name = s.projection_name AND d.tenant_id = s.tenant_id) AS last_log_seq
    FROM projector.status_by_tenant s WHERE digest IS NOT NULL ORDER BY 1, 2;
SELECT * FROM agreement;
-- with any settings of the caller
SELECT projector_digest('stock', 't') AS digest \gset
SET DateStyle = 'German'; SET TimeZone = 'Asia/Tokyo'; SET extra_float_digits = -10; SET IntervalStyle = 'iso_8601';
SELECT projector_digest('stock', 't') = :'digest' AS same;
SHOW TimeZone;
RESET DateStyle; RESET TimeZone; RESET extra_float_digits; RESET IntervalStyle;
-- the same rows in another order, the same digest
CREATE TABLE other (LIKE stock INCLUDING ALL);
INSERT INTO other SELECT * FROM stock ORDER BY item_id DESC;
TRUNCATE stock;
INSERT INTO stock SELECT * FROM other;
SELECT projector_digest('stock', 't') = :'digest' AS same;
DROP TABLE other;
-- a handler's digest is stored when it is computed
SELECT projector_digest('moves', 't') <> projector_digest('moves', 'u') AS differ;
SELECT projection_name, tenant_id, row_count FROM projector.status_by_tenant WHERE projection_name = 'moves' AND digest IS NOT NULL ORDER BY 2;
SELECT projector_digest_all('t') = projector_digest_all('t') AS same, projector_digest_all('t') <> projector_digest_all('u') AS differ,
    length(projector_digest_all('t'));
SELECT projector_digest('stock', 'nobody');

-- live rows equal rebuilt rows, for every kind
CREATE VIEW verdict AS
    SELECT p.name, v.tenant_id, v.matches, v.live_digest = v.rebuilt_digest AS same_digest, v.differing_rows, v.sample
    FROM projector.projections p CROSS JOIN LATERAL projector_verify(p.name) v ORDER BY 1, 2;
SELECT * FROM verdict;
-- and verify has changed nothing
SELECT * FROM agreement;
SELECT count(*) FROM moves;
SELECT count(*) FROM projector.projection_offsets WHERE projection_id < 0;
SELECT count(*) FROM pg_class WHERE relname LIKE 'build%';

-- changes by hand are found, in each of the tables
UPDATE stock SET on_hand = 100 WHERE tenant_id = 't' AND item_id = 'a';
DELETE FROM stock WHERE tenant_id = 't' AND item_id = 'b';
INSERT INTO stock VALUES ('t', 'z', 1);
UPDATE moves SET qty = 100 WHERE tenant_id = 't' AND qty = 3;
DELETE FROM items WHERE item_id = 't/c';
UPDATE lanes SET path = 'x' WHERE tenant_id = 't' AND lane = 1;
SELECT * FROM agreement WHERE projection_name <> 'moves';
SELECT name, tenant_id, matches, same_digest, differing_rows FROM verdict;
SELECT s->>'key' AS key, s->'live'->>'on_hand' AS live, s->'rebuilt'->>'on_hand' AS rebuilt
FROM projector_verify('stock', 't') v, jsonb_array_elements(v.sample) s;
SELECT s->>'key' AS key, s->'live' AS live, s->'rebuilt' AS rebuilt
FROM projector_verify('moves', 't') v, jsonb_array_elements(v.sample) s ORDER BY 1;
-- and repaired: folds by aggregate, the others by tenant
SELECT projector_rebuild('stock', 't', 'a'), projector_rebuild('stock', 't', 'b'), projector_rebuild('stock', 't', 'z');
SELECT projector_rebuild('moves', 't'), projector_rebuild('totals', 't');
SELECT name, tenant_id, matches, same_digest FROM verdict;
SELECT * FROM agreement WHERE projection_name <> 'moves';

-- events that are not applied yet, or skipped, cause no difference
SELECT projector_append('t', 'a', 'Moved', '{"qty": 7, "lane": 0}'), projector_append('t', 'd', 'Moved', '{"qty": 7, "lane": 0}');
SELECT bool_and(matches) FROM verdict;
SELECT projector_skip(name, 't', 'a', 3, 'a test') FROM projector.projections;
SELECT projector_drain();
SELECT bool_and(matches) FROM verdict;
SELECT on_hand FROM stock WHERE tenant_id = 't' AND item_id = 'a';

-- with what is applied inline
SELECT projector_set_mode('stock', 'inline');
SELECT projector_drain();
SELECT projector_append('t', 'a', 'Moved', '{"qty": 8}'), projector_append('t', 'e', 'Moved', '{"qty": 8}');
SELECT * FROM agreement WHERE projection_name = 'stock' AND tenant_id = 't';
SELECT count(*) FROM projector.projection_deltas;
SELECT projector_drain();
SELECT count(*) FROM projector.projection_deltas;
SELECT * FROM agreement WHERE projection_name = 'stock' AND tenant_id = 't';
BEGIN;
SELECT projector_append('t', 'a', 'Moved', '{"qty": 9}');
ROLLBACK;
SELECT * FROM agreement WHERE projection_name = 'stock' AND tenant_id = 't';
-- after ALTER TABLE it is computed again
ALTER TABLE stock ADD COLUMN note text DEFAULT 'x';
SELECT projector_append('t', 'a', 'Moved', '{"qty": 9}');
SELECT projector_drain();
SELECT * FROM agreement WHERE projection_name = 'stock';
SELECT projector_set_mode('stock', 'async');
ALTER TABLE stock DROP COLUMN note;
SELECT projector_append('t', 'a', 'Moved', '{"qty": 9}'), projector_append('u', 'a', 'Moved', '{"qty": 9}');
SELECT projector_drain('stock');
SELECT * FROM agreement WHERE projection_name = 'stock';

-- ignored columns
UPDATE stock SET doc = '{}' WHERE tenant_id = 't';
SELECT matches, differing_rows FROM projector_verify('stock', 't');
SELECT projector_alter('stock', '{"options": {"digest_ignore": ["doc"]}}');
SELECT matches, differing_rows, live_digest = rebuilt_digest AS same_digest FROM projector_verify('stock', 't');
SELECT * FROM agreement WHERE projection_name = 'stock';
SELECT projector_alter('stock', '{"options": {"digest": false}}');
SELECT * FROM agreement WHERE projection_name = 'stock';
SELECT projector_append('t', 'f', 'Moved', '{"qty": 9}');
SELECT projector_drain('stock');
SELECT * FROM agreement WHERE projection_name = 'stock';
SELECT projector_alter('stock', '{"options": {"digest": null, "digest_ignore": null}}');
SELECT * FROM agreement WHERE projection_name = 'stock';

SELECT projector_rebuild('stock', 't');
SELECT projector_drain() > 0 AS drained;

-- preview
SELECT key, live->>'on_hand' AS live, rebuilt->>'on_hand' AS rebuilt
FROM projector_preview('stock', '{"fold_columns": {"on_hand": "s.on_hand + 1"}}', 't') ORDER BY 1;
SELECT count(*) FROM projector_preview('stock', '{"fold_columns": {"on_hand": "s.on_hand + 1"}}', 't', max_rows => 2);
SELECT key, live->>'on_hand' AS live, rebuilt->>'on_hand' AS rebuilt
FROM projector_preview('stock', '{"fold_columns": {"on_hand": "s.on_hand + 1"}}', 't', 'b');
CREATE FUNCTION handle_twice(e projector.event) RETURNS void LANGUAGE sql AS $$ SELECT handle(e); SELECT handle(e) $$;
SELECT key, live->>'n' AS live, rebuilt->>'n' AS rebuilt FROM projector_preview('moves', '{"handler": "handle_twice"}', 't') WHERE live ? 'n' ORDER BY 1;
SELECT count(*) FROM projector_preview('moves', '{}', 't');
SELECT matches FROM projector_verify('moves', 't');
SELECT * FROM projector_preview('moves', '{"handler": "handle_twice"}', 't', 'a');
SELECT * FROM projector_preview('stock', '{"fold_columns": {"nothing": "1"}}', 't');
SELECT * FROM projector_preview('stock', '{"mode": "off"}', 't');
SELECT * FROM projector_preview('stock', '{}', 't', max_rows => 0);

-- explain
SELECT log_seq, aggregate_id, sequence_number, event_type, payload->>'qty' AS qty, state->>'on_hand' AS on_hand FROM projector_explain('stock', 't', 'a');
SELECT log_seq, aggregate_id, sequence_number, state->>'path' AS path FROM projector_explain('totals', 't', '1');
SELECT log_seq, aggregate_id, sequence_number, state FROM projector_explain('moves', 't', 'b');
SELECT * FROM projector_explain('stock', 't', 'nobody');

-- where verify is refused
SELECT projector_reset('stock', 't');
SELECT * FROM projector_verify('stock', 't');
SELECT projector_drain('stock');
SELECT projector_start_run('stock', tenant_id => 't') > 0 AS queued;
SELECT matches FROM projector_verify('stock', 't');
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT * FROM projector_verify('stock', 't');
ROLLBACK;
SELECT * FROM projector_verify('nobody');
SELECT projector_digest('nobody', 't');
CREATE ROLE regress_stranger;
GRANT EXECUTE ON FUNCTION projector_verify, projector_preview, projector_explain, projector_digest TO regress_stranger;
SET ROLE regress_stranger;
SELECT * FROM projector_verify('stock', 't');
SELECT * FROM projector_preview('stock', '{}', 't');
SELECT * FROM projector_explain('stock', 't', 'a');
SELECT length(projector_digest('stock', 't'));
RESET ROLE;

DROP EXTENSION projector CASCADE;
DROP TABLE stock, moves, items, lanes;
DROP ROLE regress_stranger;
