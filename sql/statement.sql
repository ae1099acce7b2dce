-- Projections of kind statement: SQL over the relation "batch".
\pset format unaligned
\pset tuples_only on
CREATE EXTENSION projector;
\i sql/include/try.sql
CREATE TABLE totals (tenant_id text, day text, events bigint, qty numeric, PRIMARY KEY (tenant_id, day));
CREATE TABLE journal (id bigserial, tenant_id text, aggregate_id text, log_seq bigint);
CREATE VIEW oracle AS
    SELECT tenant_id::text, payload->>'day' AS day, count(*) AS events, sum((payload->>'qty')::numeric) AS qty
    FROM projector.events GROUP BY 1, 2;
-- refused: not a statement, several statements, a query, a utility command, a planning error
SELECT try($$SELECT projector_create('p', statement => 'INSERT INTO')$$);
SELECT try($$SELECT projector_create('p', statement => 'DELETE FROM totals; DELETE FROM totals')$$);
SELECT try($$SELECT projector_create('p', statement => '')$$);
SELECT try($$SELECT projector_create('p', statement => 'SELECT * FROM batch')$$);
SELECT try($$SELECT projector_create('p', statement => 'TRUNCATE totals')$$);
SELECT try($$SELECT projector_create('p', statement => 'INSERT INTO nowhere SELECT * FROM batch')$$);
SELECT try($$SELECT projector_create('p', statement => 'INSERT INTO totals SELECT nothing FROM batch')$$);
SELECT try($$SELECT projector_create('p', statement => 'INSERT INTO totals SELECT * FROM batsch')$$);
SELECT try($$SELECT projector_create('p', statement => 'DELETE FROM totals', key => 'event_type')$$);
SELECT count(*) FROM projector.projections;

SELECT projector_create('totals', targets => '{totals}', options => '{"batch_size": 4}', statement => $$
    INSERT INTO totals AS t
    SELECT tenant_id, payload->>'day', count(*), sum((payload->>'qty')::numeric) FROM batch GROUP BY 1, 2
    ON CONFLICT (tenant_id, day) DO UPDATE SET events = t.events + excluded.events, qty = t.qty + excluded.qty$$);
-- several targets, rows in the order of the log
SELECT projector_create('journal', targets => '{journal}', statement => $$
    WITH j AS (INSERT INTO journal (tenant_id, aggregate_id, log_seq) SELECT tenant_id, aggregate_id, log_seq FROM batch RETURNING log_seq)
    SELECT count(*) FROM j$$);
SELECT name, kind, left(statement, 20) FROM projector.projections ORDER BY 1;
INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
    SELECT 'acme', 'item-' || i, n, 'Sold', jsonb_build_object('day', 'd' || n, 'qty', i)
    FROM generate_series(1, 3) n, generate_series(1, 5) i ORDER BY n, i;
SELECT projector_append('beta', 'x', 'Sold', '{"day": "d1", "qty": 2.5}');
SELECT projector_drain();
SELECT * FROM totals ORDER BY 1, 2;
SELECT count(*) FROM (TABLE totals EXCEPT ALL TABLE oracle) d;
SELECT count(*) FROM (TABLE oracle EXCEPT ALL TABLE totals) d;
SELECT bool_and(log_seq > before) FROM (SELECT log_seq, lag(log_seq) OVER (PARTITION BY tenant_id ORDER BY id) AS before FROM journal) j WHERE before IS NOT NULL;

-- a failing event is found, in the middle of others, and costs one attempt
INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
    SELECT 'acme', 'more-' || i, 1, 'Sold', jsonb_build_object('day', 'd4', 'qty', CASE WHEN i IN (3, 17) THEN 'many' ELSE i::text END)
    FROM generate_series(1, 20) i ORDER BY i;
SELECT projector_append('acme', 'more-3', 'Sold', '{"day": "d4", "qty": 1000}');
SELECT projector_drain();
SELECT aggregate_id, sequence_number, status, attempt_count FROM projector.outbox WHERE projection_name = 'totals' ORDER BY log_seq;
SELECT aggregate_id, error_code, error_message, retry_count FROM projector.failures ORDER BY log_seq;
SELECT events, qty FROM totals WHERE tenant_id = 'acme' AND day = 'd4';
SELECT error_context FROM projector.failures ORDER BY log_seq LIMIT 1;
-- skipped events are not in the batch
SELECT projector_skip('totals', 'acme', a, 1, 'not a number') FROM unnest('{more-3,more-17}'::text[]) a;
SELECT projector_drain();
SELECT events, qty FROM totals WHERE tenant_id = 'acme' AND day = 'd4';
SELECT count(*) FROM projector.outbox;

-- inline: a multi-row append is one batch; strict: an error ends the append
SELECT projector_set_mode('totals', 'inline');
INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
    SELECT 'inl', 'a', n, 'Sold', '{"day": "d1", "qty": 1}' FROM generate_series(1, 5) n ORDER BY n;
SELECT * FROM totals WHERE tenant_id = 'inl';
SELECT projector_append('inl', 'b', 'Sold', '{"day": "d1", "qty": "x"}');
SELECT aggregate_id, status, last_error FROM projector.outbox WHERE projection_name = 'totals';
SELECT projector_set_mode('totals', 'strict');
SELECT try($$SELECT projector_append('inl', 'c', 'Sold', '{"day": "d1", "qty": "x"}')$$);
SELECT projector_append('inl', 'c', 'Sold', '{"day": "d1", "qty": 10}');
SELECT * FROM totals WHERE tenant_id = 'inl';

-- the plan is kept, and made again when necessary
ALTER TABLE totals ALTER qty TYPE numeric(20, 2);
SELECT projector_append('inl', 'c', 'Sold', '{"day": "d1", "qty": 0.125}');
SELECT * FROM totals WHERE tenant_id = 'inl';
SELECT projector_alter('totals', jsonb_build_object('statement', $$
    INSERT INTO totals AS t SELECT tenant_id, payload->>'day', 0, 1000000 FROM batch
    ON CONFLICT (tenant_id, day) DO UPDATE SET qty = t.qty + excluded.qty$$));
SELECT projector_append('inl', 'c', 'Sold', '{"day": "d1", "qty": 1}');
SELECT * FROM totals WHERE tenant_id = 'inl';
SELECT try($$SELECT projector_alter('totals', '{"statement": "SELECT 1"}')$$);
DROP EXTENSION projector CASCADE;
DROP TABLE totals, journal CASCADE;
DROP FUNCTION try;
