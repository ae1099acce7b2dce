-- Projections of kind fold: a row and an event make the next row.
\pset format unaligned
\pset tuples_only on
CREATE EXTENSION projector;
\set try_shows 'detail hint context'
\i sql/include/try.sql

CREATE TABLE stock (
    tenant_id text, item_id text, on_hand bigint NOT NULL DEFAULT 0 CHECK (on_hand >= 0), name text,
    last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, item_id));
CREATE FUNCTION stock_fold(s stock, e projector.event) RETURNS stock LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF s IS NULL THEN
        s.tenant_id := e.tenant_id;
        s.item_id := e.aggregate_id;
        s.on_hand := 0;
    END IF;
    CASE e.event_type
        WHEN 'Received' THEN s.on_hand := s.on_hand + (e.payload->>'qty')::bigint;
        WHEN 'Shipped' THEN s.on_hand := s.on_hand - (e.payload->>'qty')::bigint;
        WHEN 'Renamed' THEN s.name := e.payload->>'name';
        WHEN 'Removed' THEN RETURN NULL;
        WHEN 'Moved' THEN s.tenant_id := e.payload->>'to';
        WHEN 'Relabelled' THEN s.item_id := e.payload->>'to';
        ELSE RAISE EXCEPTION 'unknown event type %', e.event_type;
    END CASE;
    RETURN s;
END $$;
-- what the log says
CREATE VIEW oracle AS
    SELECT tenant_id::text, aggregate_id::text AS item_id,
        sum(CASE event_type WHEN 'Received' THEN (payload->>'qty')::bigint WHEN 'Shipped' THEN -(payload->>'qty')::bigint ELSE 0 END)::bigint AS on_hand,
        (array_agg(payload->>'name' ORDER BY sequence_number DESC) FILTER (WHERE event_type = 'Renamed'))[1] AS name,
        (array_agg(event_id ORDER BY sequence_number DESC))[1] AS last_event_id, max(sequence_number) AS last_event_version
    FROM projector.events GROUP BY 1, 2;

--
-- what is refused, and why
--
SELECT try($$SELECT projector_create('p', fold => 'stock_fold')$$);
SELECT try($$SELECT projector_create('p', fold => 'stock_fold', targets => '{stock,try}')$$);
SELECT try($$SELECT projector_create('p', fold => 'nothing', targets => '{stock}')$$);
SELECT try($$SELECT projector_create('p', fold => 'try', targets => '{stock}')$$);
CREATE FUNCTION strict_fold(s stock, e projector.event) RETURNS stock STRICT LANGUAGE sql AS 'SELECT s';
SELECT try($$SELECT projector_create('p', fold => 'strict_fold', targets => '{stock}')$$);
CREATE FUNCTION set_fold(s stock, e projector.event) RETURNS SETOF stock LANGUAGE sql AS 'SELECT s.*';
SELECT try($$SELECT projector_create('p', fold => 'set_fold', targets => '{stock}')$$);
CREATE FUNCTION text_fold(s stock, e projector.event) RETURNS text LANGUAGE sql AS $$SELECT ''$$;
SELECT try($$SELECT projector_create('p', fold => 'text_fold', targets => '{stock}')$$);
CREATE TABLE keyless (tenant_id text, item_id text, last_event_id uuid, last_event_version bigint);
SELECT try($$SELECT projector_create('p', fold_columns => '{"item_id": "e.payload->>''x''"}', targets => '{keyless}')$$);
CREATE TABLE unstamped (tenant_id text, item_id text, last_event_id uuid, PRIMARY KEY (tenant_id, item_id));
SELECT try($$SELECT projector_create('p', fold_columns => '{"x": "1"}', targets => '{unstamped}')$$);
ALTER TABLE unstamped ADD last_event_version integer;
SELECT try($$SELECT projector_create('p', fold_columns => '{"x": "1"}', targets => '{unstamped}')$$);
-- expressions: errors name the column
SELECT try($$SELECT projector_create('p', fold_columns => '{}', targets => '{stock}')$$);
SELECT try($$SELECT projector_create('p', fold_columns => '[]', targets => '{stock}')$$);
SELECT try($$SELECT projector_create('p', fold_columns => '{"colour": "1"}', targets => '{stock}')$$);
SELECT try($$SELECT projector_create('p', fold_columns => '{"on_hand": 1}', targets => '{stock}')$$);
SELECT try($$SELECT projector_create('p', fold_columns => '{"tenant_id": "e.tenant_id"}', targets => '{stock}')$$);
SELECT try($$SELECT projector_create('p', fold_columns => '{"item_id": "e.aggregate_id"}', targets => '{stock}')$$);
SELECT try($$SELECT projector_create('p', fold_columns => '{"last_event_version": "1"}', targets => '{stock}')$$);
SELECT try($$SELECT projector_create('p', fold_columns => '{"on_hand": "s.on_hand +"}', targets => '{stock}')$$);
SELECT try($$SELECT projector_create('p', fold_columns => '{"on_hand": "s.in_hand"}', targets => '{stock}')$$);
-- (where PostgreSQL says so depends on its version)
SELECT split_part(t, E'\n', 1), t ~ 'There is a column named "on_hand" in table "s"'
    FROM try($$SELECT projector_create('p', fold_columns => '{"on_hand": "on_hand"}', targets => '{stock}')$$) t;
SELECT try($$SELECT projector_create('p', fold_columns => '{"on_hand": "e.payload"}', targets => '{stock}')$$);
SELECT try($$SELECT projector_create('p', fold_columns => '{"on_hand": "1, 2"}', targets => '{stock}')$$);
SELECT try($$SELECT projector_create('p', fold_columns => '{"on_hand": "1 FROM stock"}', targets => '{stock}')$$);
SELECT try($$SELECT projector_create('p', fold_columns => '{"on_hand": "1; SELECT 2"}', targets => '{stock}')$$);
SELECT try($$SELECT projector_create('p', fold_columns => '{"on_hand": "(SELECT 1)"}', targets => '{stock}')$$);
SELECT try($$SELECT projector_create('p', fold_columns => '{"on_hand": "sum(s.on_hand)"}', targets => '{stock}')$$);
SELECT try($$SELECT projector_create('p', fold_columns => '{"on_hand": "generate_series(1, 2)"}', targets => '{stock}')$$);
SELECT try($$SELECT projector_create('p', fold_columns => '{"on_hand": "random() * 10"}', targets => '{stock}')$$);
SELECT try($$SELECT projector_create('p', fold_columns => '{"name": "now()::text"}', targets => '{stock}')$$);
SELECT try($$SELECT projector_create('p', fold_columns => '{"name": "current_date::text"}', targets => '{stock}')$$);
SELECT try($$SELECT projector_create('p', fold_columns => '{"name": "*"}', targets => '{stock}')$$);
SELECT try($$SELECT projector_create('p', fold_columns => '{"name": "s.*"}', targets => '{stock}')$$);
-- keys
SELECT try($$SELECT projector_create('p', fold => 'stock_fold', targets => '{stock}', key => '*')$$);
SELECT try($$SELECT projector_create('p', fold => 'stock_fold', targets => '{stock}', key => 'event_type')$$);
SELECT try($$SELECT projector_create('p', handler => 'try', key => 'event_type')$$);
SELECT count(*) FROM projector.projections;
-- a volatile function is accepted, with a notice
CREATE FUNCTION volatile_fold(s stock, e projector.event) RETURNS stock LANGUAGE sql AS 'SELECT s';
SELECT projector_create('volatile', fold => 'volatile_fold', targets => '{stock}');
SELECT projector_drop('volatile');

--
-- a function, async
--
SELECT projector_create('stock', fold => 'stock_fold', targets => '{stock}', options => '{"batch_size": 3}');
SELECT kind, fold, fold_columns, key, ordering, targets FROM projector.projections;
SELECT projector_append('acme', 'a', 'Received', '{"qty": 5}');
SELECT projector_append('acme', 'a', 'Shipped', '{"qty": 2}');
SELECT projector_append('acme', 'b', 'Received', '{"qty": 7}');
SELECT projector_append('acme', 'a', 'Renamed', '{"name": "nuts"}');
SELECT projector_append('beta', 'a', 'Received', '{"qty": 1}');
SELECT projector_drain();
SELECT tenant_id, item_id, on_hand, name, last_event_version FROM stock ORDER BY 1, 2;
SELECT count(*) FROM (TABLE stock EXCEPT ALL TABLE oracle) d;
SELECT count(*) FROM (TABLE oracle EXCEPT ALL TABLE stock) d;
-- null removes the row; another event makes a new one
SELECT projector_append('acme', 'b', 'Removed', '{}');
SELECT projector_drain();
SELECT item_id FROM stock WHERE tenant_id = 'acme';
SELECT projector_append_batch('acme', 'b', '[{"event_type": "Received", "payload": {"qty": 1}}, {"event_type": "Removed", "payload": {}},
    {"event_type": "Received", "payload": {"qty": 2}}]');
SELECT projector_drain();
SELECT item_id, on_hand, last_event_version FROM stock WHERE tenant_id = 'acme' ORDER BY 1;
-- a row that is created and removed in the same batch is never written
SELECT projector_append_batch('acme', 'ghost', '[{"event_type": "Received", "payload": {"qty": 1}}, {"event_type": "Removed", "payload": {}}]');
SELECT projector_drain();
SELECT count(*) FROM stock WHERE item_id = 'ghost';
SELECT last_sequence_number FROM projector.offsets WHERE aggregate_id = 'ghost';

--
-- lost offsets: a row skips events it already has
--
SELECT projector_reset('stock', 'acme', 'a');
SELECT projector_drain();
SELECT on_hand, last_event_version FROM stock WHERE tenant_id = 'acme' AND item_id = 'a';
-- rows that need no change are not written
CREATE TEMP TABLE before AS SELECT item_id, xmin AS x, ctid AS c FROM stock WHERE tenant_id = 'acme' AND item_id = 'a';
SELECT projector_reset('stock', 'acme', 'a');
SELECT projector_drain();
SELECT count(*) FROM before JOIN stock USING (item_id) WHERE stock.tenant_id = 'acme' AND x = stock.xmin AND c = stock.ctid;
-- a row stamped with a different event of the same number
UPDATE stock SET last_event_id = gen_random_uuid() WHERE tenant_id = 'acme' AND item_id = 'a';
SELECT projector_reset('stock', 'acme', 'a');
SELECT projector_drain();
SELECT sequence_number, error_code, error_message, error_hint FROM projector.failures WHERE resolved_at IS NULL;
UPDATE stock SET last_event_id = (SELECT event_id FROM projector.events WHERE tenant_id = 'acme' AND aggregate_id = 'a' AND sequence_number = 3)
WHERE tenant_id = 'acme' AND item_id = 'a';
SELECT projector_retry('stock', 'acme', 'a', 3);

--
-- failing events are found, and the others are applied
--
SELECT projector_append('acme', 'a', 'Nonsense', '{}');
SELECT projector_append('acme', 'a', 'Received', '{"qty": 1}');
SELECT projector_append('acme', 'b', 'Received', '{"qty": 1}');
-- a row of another tenant, of another key
SELECT projector_append('acme', 'c', 'Moved', '{"to": "beta"}');
SELECT projector_append('acme', 'd', 'Relabelled', '{"to": "b"}');
-- a constraint: on_hand may not be negative, not even between two events
SELECT projector_append('acme', 'e', 'Shipped', '{"qty": 1}');
SELECT projector_append('acme', 'e', 'Received', '{"qty": 5}');
SELECT projector_drain();
SELECT aggregate_id, sequence_number, status FROM projector.outbox ORDER BY log_seq;
SELECT aggregate_id, sequence_number, error_code, error_message FROM projector.failures WHERE resolved_at IS NULL ORDER BY log_seq;
SELECT error_context FROM projector.failures WHERE resolved_at IS NULL ORDER BY log_seq LIMIT 1;
SELECT item_id, on_hand FROM stock WHERE tenant_id = 'acme' ORDER BY 1;
SELECT projector_skip('stock', 'acme', x, n, 'a test') FROM (VALUES ('a', 4), ('c', 1), ('d', 1), ('e', 1)) v(x, n);
SELECT projector_drain();
SELECT item_id, on_hand FROM stock WHERE tenant_id = 'acme' ORDER BY 1;
SELECT count(*) FROM projector.outbox;
SELECT projector_drop('stock');
TRUNCATE stock;

--
-- the same with expressions
--
CREATE TABLE stock2 (LIKE stock INCLUDING ALL);
ALTER TABLE stock2 ALTER name SET DEFAULT 'unnamed', ADD doubled bigint GENERATED ALWAYS AS (on_hand * 2) STORED, ADD extra int;
ALTER TABLE stock2 DROP extra;
SELECT projector_create('stock2', targets => '{stock2}', event_types => '{Received,Shipped,Renamed}', fold_columns => '{
    "on_hand": "s.on_hand + CASE e.event_type WHEN ''Received'' THEN (e.payload->>''qty'')::bigint WHEN ''Shipped'' THEN -(e.payload->>''qty'')::bigint ELSE 0 END",
    "name": "CASE e.event_type WHEN ''Renamed'' THEN e.payload->>''name'' ELSE s.name END"}');
SELECT projector_drain('stock2');
SELECT tenant_id, item_id, on_hand, name, doubled, last_event_version FROM stock2 ORDER BY 1, 2;
SELECT aggregate_id, sequence_number, error_code, error_message FROM projector.failures WHERE resolved_at IS NULL ORDER BY log_seq;
SELECT count(*) FROM stock2 JOIN projector.offsets o ON (o.tenant_id, o.aggregate_id) = (stock2.tenant_id, item_id)
WHERE (last_event_version, stock2.last_event_id) IS DISTINCT FROM (last_sequence_number, o.last_event_id);
SELECT try($$SELECT projector_alter('stock2', '{"fold_columns": {"on_hand": "s.nothing"}}')$$);
SELECT projector_alter('stock2', '{"fold_columns": {"on_hand": "s.on_hand + 100"}}');
SELECT try($$SELECT projector_alter('stock2', '{"fold": "stock_fold"}')$$);
SELECT projector_append('beta', 'a', 'Received', '{"qty": 1}');
SELECT projector_drain('stock2');
SELECT on_hand, name FROM stock2 WHERE tenant_id = 'beta';
SELECT projector_drop('stock2');

--
-- several aggregates in one row: in the order of the log
--
CREATE TABLE by_colour (
    tenant_id text, colour text, events bigint NOT NULL DEFAULT 0, last_item text,
    last_event_id uuid, last_event_version bigint, last_log_seq bigint, PRIMARY KEY (colour, tenant_id));
SELECT try($$SELECT projector_create('colours', targets => '{stock}', key => 'payload->>''colour''', fold_columns => '{"on_hand": "1"}')$$);
SELECT try($$SELECT projector_create('colours', targets => '{by_colour}', key => 'payload->>''colour''', ordering => 'aggregate', fold_columns => '{"events": "1"}')$$);
SELECT try($$SELECT projector_create('colours', targets => '{by_colour}', key => 'payload->', fold_columns => '{"events": "1"}')$$);
SELECT projector_create('colours', targets => '{by_colour}', key => 'payload->>''colour''', event_types => '{Painted}',
    fold_columns => '{"events": "s.events + 1", "last_item": "e.aggregate_id || coalesce('' after '' || s.last_item, '''')"}',
    options => '{"batch_size": 2}');
SELECT ordering, key FROM projector.projections;
SELECT projector_append('acme', 'a', 'Painted', '{"colour": "red"}');
SELECT projector_append('acme', 'b', 'Painted', '{"colour": "blue"}');
SELECT projector_append('acme', 'b', 'Painted', '{"colour": "red"}');
SELECT projector_append('acme', 'c', 'Painted', '{}');
SELECT projector_append('acme', 'a', 'Painted', '{"colour": "red"}');
SELECT projector_append('beta', 'a', 'Painted', '{"colour": "red"}');
SELECT projector_drain();
SELECT tenant_id, colour, events, last_item FROM by_colour ORDER BY 1, 2;
-- replayed: every row skips events it already has
SELECT projector_reset('colours');
SELECT projector_drain();
SELECT tenant_id, colour, events, last_item FROM by_colour ORDER BY 1, 2;
SELECT projector_drop('colours');

--
-- inline and strict
--
TRUNCATE stock;
SELECT projector_create('stock', fold => 'stock_fold', targets => '{stock}', event_types => '{Received,Shipped,Renamed,Nonsense}', mode => 'inline');
SELECT projector_append('inl', 'a', 'Received', '{"qty": 5}');
SELECT on_hand, last_event_version FROM stock WHERE tenant_id = 'inl';
INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
    SELECT 'inl', x, n, 'Received', '{"qty": 1}' FROM unnest('{b,c}'::text[]) x, generate_series(1, 4) n ORDER BY n, x;
SELECT item_id, on_hand, last_event_version FROM stock WHERE tenant_id = 'inl' ORDER BY 1;
SELECT projector_append('inl', 'a', 'Nonsense', '{}');
SELECT aggregate_id, status, last_error FROM projector.outbox WHERE tenant_id = 'inl';
SELECT projector_set_mode('stock', 'strict');
SELECT try($$SELECT projector_append('inl', 'b', 'Nonsense', '{}')$$);
SELECT projector_append('inl', 'b', 'Shipped', '{"qty": 1}');
SELECT item_id, on_hand, last_event_version FROM stock WHERE tenant_id = 'inl' ORDER BY 1;
-- shadow
SELECT projector_set_mode('stock', 'shadow');
SELECT projector_append('inl', 'c', 'Received', '{"qty": 1}');
SELECT projector_append('inl', 'c', 'Shipped', '{"qty": 100}');
SELECT projector_drain('stock', 'inl');
SELECT aggregate_id, sequence_number, shadow FROM projector.outbox WHERE tenant_id = 'inl' AND shadow IS NOT NULL ORDER BY log_seq;
DROP EXTENSION projector CASCADE;
DROP TABLE stock, stock2, by_colour, keyless, unstamped CASCADE;
DROP FUNCTION try;
