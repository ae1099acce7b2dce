--
-- Projections applied in the appending transaction: modes inline, strict and
-- off; failures, and the events that wait for them.
--
CREATE EXTENSION projector;
-- allow DDL that the guard would refuse
SET projector.guard_ddl = off;
\set SHOW_CONTEXT never

-- The read model: the quantity of each item, and each change in order.  An
-- event with "fail" in its payload fails with that SQLSTATE.
CREATE TABLE stock (tenant_id text, item_id text, on_hand bigint NOT NULL,
                    steps text NOT NULL, PRIMARY KEY (tenant_id, item_id));
CREATE FUNCTION stock_apply(e projector.event) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    delta bigint := CASE e.event_type WHEN 'Shipped' THEN -1 ELSE 1 END * (e.payload ->> 'qty')::bigint;
BEGIN
    INSERT INTO stock VALUES (e.tenant_id, e.aggregate_id, delta, e.sequence_number)
    ON CONFLICT (tenant_id, item_id) DO UPDATE
    SET on_hand = stock.on_hand + delta, steps = stock.steps || ' ' || excluded.steps;
    IF e.payload ? 'fail' AND current_setting('test.fixed', true) IS DISTINCT FROM 'yes' THEN
        RAISE EXCEPTION 'no room for %', e.aggregate_id
            USING ERRCODE = e.payload ->> 'fail', DETAIL = 'The shelf is full.';
    END IF;
END $$;
CREATE VIEW work AS
    SELECT projection_name AS name, tenant_id, aggregate_id, sequence_number AS seq, status,
           attempt_count AS attempts, next_attempt_at > clock_timestamp() AS later, last_error
    FROM projector.outbox;

--
-- inline: read model and offset change with the append
--
SELECT projector_create('stock', handler => 'stock_apply', targets => '{stock}', mode => 'inline',
                        options => '{"retry_base": "1 h", "retry_max": "8 h"}');
BEGIN;
SELECT projector_append('acme', 'item-1', 'Received', '{"qty": 5}');
SELECT * FROM stock ORDER BY 1, 2;
SELECT projector_append('acme', 'item-1', 'Shipped', '{"qty": 2}');
SELECT * FROM stock ORDER BY 1, 2;
COMMIT;
SELECT o.projection_name, o.tenant_id, o.aggregate_id, o.last_sequence_number,
       o.last_event_id = e.event_id AS id_ok, o.error_count, o.last_error
FROM projector.offsets o JOIN projector.events e
    ON (e.tenant_id, e.aggregate_id, e.sequence_number) = (o.tenant_id, o.aggregate_id, o.last_sequence_number);
SELECT * FROM work;

-- one statement over several tenants and aggregates, in any order
INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
    VALUES ('other', 'item-1', 1, 'Received', '{"qty": 1}'), ('acme', 'item-2', 1, 'Received', '{"qty": 10}'),
           ('acme', 'item-1', 3, 'Received', '{"qty": 4}'), ('other', 'item-1', 2, 'Received', '{"qty": 2}'),
           ('acme', 'item-2', 2, 'Shipped', '{"qty": 3}'), ('acme', 'item-1', 4, 'Shipped', '{"qty": 1}'),
           ('third', 'item-1', 1, 'Received', '{"qty": 7}');
COPY projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload) FROM stdin;
third	item-1	2	Received	{"qty": 1}
acme	item-2	3	Received	{"qty": 1}
third	item-1	3	Received	{"qty": 1}
\.
SELECT projector_append_batch('acme', 'item-3', '[{"event_type": "Received", "payload": {"qty": 1}},
    {"event_type": "Received", "payload": {"qty": 2}}, {"event_type": "Received", "payload": {"qty": 3}}]');
SELECT * FROM stock ORDER BY 1, 2;
SELECT tenant_id, aggregate_id, last_sequence_number FROM projector.offsets ORDER BY 1, 2;
SELECT count(*) FROM projector.apply_outbox;
-- inline writes no row that two aggregates share
SELECT count(*) FROM projector.projection_cursors;

-- an event that is refused does not change the read model
\set VERBOSITY terse
INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
    VALUES ('acme', 'item-1', 5, 'Received', '{"qty": 1}'), ('acme', 'item-1', 7, 'Received', '{"qty": 1}');
\set VERBOSITY default
SELECT on_hand, steps FROM stock WHERE (tenant_id, item_id) = ('acme', 'item-1');

-- an event sent again is not applied again
SELECT projector_append('acme', 'item-4', 'Received', '{"qty": 1}', event_id => '44444444-4444-4444-4444-444444444444');
SELECT projector_append('acme', 'item-4', 'Received', '{"qty": 1}', event_id => '44444444-4444-4444-4444-444444444444');
SELECT on_hand, steps FROM stock WHERE item_id = 'item-4';

--
-- A handler that fails: the append succeeds, the event waits
--
SELECT projector_append('acme', 'bad-1', 'Received', '{"qty": 1}');
SELECT projector_append('acme', 'bad-1', 'Received', '{"qty": 2, "fail": "22012"}');
SELECT projector_append('acme', 'bad-1', 'Received', '{"qty": 4}');
SELECT projector_append('acme', 'bad-1', 'Received', '{"qty": 8, "fail": "22012"}');
-- its own changes are undone, those before it are not; the rest queues
SELECT * FROM stock WHERE item_id = 'bad-1';
SELECT * FROM work ORDER BY seq;
SELECT sequence_number, status, attempt_count, last_error FROM projector.apply_outbox ORDER BY 1;
SELECT f.projection_name, f.tenant_id, f.aggregate_id, f.sequence_number, f.event_type,
       f.event_id = e.event_id AND f.log_seq = e.log_seq AS event_ok,
       f.error_code, f.error_message, f.error_detail, f.retry_count, f.recoverable, f.metadata,
       f.resolved_at, f.resolution
FROM projector.failures f JOIN projector.events e USING (tenant_id, aggregate_id, sequence_number)
ORDER BY f.sequence_number;
-- the context names the line and the event, and nothing of ours
SELECT line FROM projector.projection_failures, string_to_table(error_context, E'\n') WITH ORDINALITY c (line, n)
ORDER BY n;
SELECT last_sequence_number, error_count, last_error FROM projector.offsets WHERE aggregate_id = 'bad-1';
-- next_attempt_at is retry_base ahead
SELECT next_attempt_at - updated_at BETWEEN '59 min' AND '61 min' AS backs_off
FROM projector.apply_outbox WHERE status = 'failed';
-- other aggregates and tenants continue
SELECT projector_append('acme', 'good', 'Received', '{"qty": 1}');
SELECT projector_append('other', 'bad-1', 'Received', '{"qty": 1}');
SELECT * FROM stock WHERE item_id IN ('good', 'bad-1') ORDER BY 1, 2;

-- a failure in the middle of a statement: what came before it is applied, the
-- rest of its aggregate queues, other aggregates are applied in full
INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
    VALUES ('acme', 'mid-1', 1, 'Received', '{"qty": 1}'), ('acme', 'mid-2', 1, 'Received', '{"qty": 1}'),
           ('acme', 'mid-2', 2, 'Received', '{"qty": 2}'), ('acme', 'mid-2', 3, 'Received', '{"qty": 3, "fail": "P0001"}'),
           ('acme', 'mid-2', 4, 'Received', '{"qty": 4}'), ('acme', 'mid-3', 1, 'Received', '{"qty": 1}'),
           ('acme', 'mid-2', 5, 'Received', '{"qty": 5}'), ('acme', 'mid-3', 2, 'Received', '{"qty": 2}'),
           ('acme', 'mid-4', 1, 'Received', '{"qty": 1, "fail": "P0001"}'), ('other', 'mid-2', 1, 'Received', '{"qty": 9}');
SELECT * FROM stock WHERE item_id LIKE 'mid-%' ORDER BY 1, 2;
SELECT * FROM work WHERE aggregate_id LIKE 'mid-%' ORDER BY aggregate_id, seq;
SELECT tenant_id, aggregate_id, last_sequence_number FROM projector.offsets WHERE aggregate_id LIKE 'mid-%' ORDER BY 1, 2;
-- a drain before the retry is due does nothing for them
SELECT projector_drain('stock');
SELECT * FROM work WHERE aggregate_id LIKE 'mid-%' ORDER BY aggregate_id, seq;

-- when it is fixed and due, a drain applies everything in order
SET test.fixed = 'yes';
SET projector.clock_offset = '2 h';
SELECT projector_drain('stock');
SELECT * FROM stock WHERE item_id LIKE 'mid-%' OR item_id LIKE 'bad-%' ORDER BY 1, 2;
SELECT count(*) FROM projector.apply_outbox;
SELECT aggregate_id, sequence_number, resolution, resolved_at IS NOT NULL AS resolved FROM projector.failures ORDER BY 1, 2;
SELECT aggregate_id, last_sequence_number, error_count, last_error FROM projector.offsets
WHERE tenant_id = 'acme' AND (aggregate_id LIKE 'mid-%' OR aggregate_id LIKE 'bad-%') ORDER BY 1;
RESET projector.clock_offset;
RESET test.fixed;
-- after that, events are applied inline again
SELECT projector_append('acme', 'mid-2', 'Received', '{"qty": 6}');
SELECT steps FROM stock WHERE (tenant_id, item_id) = ('acme', 'mid-2');

-- a failure inside a transaction block does not abort it; a rollback removes
-- event, item and failure
BEGIN;
SELECT projector_append('acme', 'bad-2', 'Received', '{"qty": 1, "fail": "P0001"}');
SELECT status FROM work WHERE aggregate_id = 'bad-2';
ROLLBACK;
SELECT (SELECT count(*) FROM projector.apply_outbox), (SELECT count(*) FROM projector.projection_failures WHERE aggregate_id = 'bad-2');

-- a handler's own error counts for the event with any SQLSTATE; isolation/handler_cancel has real cancels
BEGIN;
SELECT projector_append('acme', 'cancelled', 'Received', jsonb_build_object('qty', 1, 'fail', code))
FROM unnest('{57014,57P01,57P02,57P03}'::text[]) code;
SELECT sequence_number, error_code, error_message FROM projector.failures WHERE aggregate_id = 'cancelled' ORDER BY 1;
SELECT sequence_number, status FROM projector.outbox WHERE aggregate_id = 'cancelled' ORDER BY 1;
ROLLBACK;
SELECT count(*) FROM projector.apply_outbox;

--
-- event_types: others are neither queued nor counted; gaps are allowed
--
CREATE TABLE shipped (tenant_id text, item_id text, n bigint NOT NULL, PRIMARY KEY (tenant_id, item_id));
CREATE FUNCTION count_shipped(e projector.event) RETURNS void LANGUAGE sql AS $$
    INSERT INTO shipped VALUES ((e).tenant_id, (e).aggregate_id, 1)
    ON CONFLICT (tenant_id, item_id) DO UPDATE SET n = shipped.n + 1
$$;
SELECT projector_create('shipped', handler => 'count_shipped', targets => '{shipped}', mode => 'inline',
                        event_types => '{Shipped,Lost}');
INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
    SELECT 'acme', 'holes', n, CASE n % 4 WHEN 0 THEN 'Shipped' WHEN 2 THEN 'Lost' ELSE 'Received' END, '{"qty": 1}'
    FROM generate_series(1, 9) n;
SELECT projector_append('acme', 'holes', 'Shipped', '{"qty": 1}');
SELECT projector_append('acme', 'none', 'Received', '{"qty": 1}');
-- types are compared byte by byte
SELECT projector_append('acme', 'none', 'shipped', '{"qty": 1}');
SELECT * FROM shipped ORDER BY 1, 2;
SELECT aggregate_id, last_sequence_number FROM projector.offsets WHERE projection_name = 'shipped' ORDER BY 1;
SELECT count(*) FROM projector.apply_outbox;
SELECT projector_drop('shipped');

--
-- strict: applied now or not appended at all
--
SELECT projector_set_mode('stock', 'strict');
SELECT projector_append('acme', 'strict-1', 'Received', '{"qty": 1}');
SELECT projector_append('acme', 'strict-1', 'Received', '{"qty": 2, "fail": "22012"}');
\set VERBOSITY sqlstate
SELECT projector_append('acme', 'strict-1', 'Received', '{"qty": 2, "fail": "P0001"}');
INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
    VALUES ('acme', 'strict-2', 1, 'Received', '{"qty": 1}'), ('acme', 'strict-1', 2, 'Received', '{"qty": 1, "fail": "AB123"}');
\set VERBOSITY default
SELECT aggregate_id, sequence_number FROM projector.events WHERE aggregate_id LIKE 'strict-%' ORDER BY 1, 2;
SELECT * FROM stock WHERE item_id LIKE 'strict-%' ORDER BY 1, 2;
SELECT aggregate_id, last_sequence_number, error_count FROM projector.offsets WHERE aggregate_id LIKE 'strict-%' ORDER BY 1;
SELECT count(*) FROM projector.apply_outbox;
SELECT count(*) FROM projector.projection_failures WHERE aggregate_id LIKE 'strict-%';

-- an earlier event waits: refused
SELECT projector_set_mode('stock', 'inline');
SELECT projector_append('acme', 'strict-3', 'Received', '{"qty": 1, "fail": "P0001"}');
SELECT projector_set_mode('stock', 'strict');
SELECT projector_append('acme', 'strict-3', 'Received', '{"qty": 2}');
\set VERBOSITY sqlstate
SELECT projector_append('acme', 'strict-3', 'Received', '{"qty": 2}');
\set VERBOSITY default
-- other aggregates are not affected
SELECT projector_append('acme', 'strict-4', 'Received', '{"qty": 2}');

-- paused: refused
SELECT projector_pause('stock', reason => 'stocktaking');
SELECT projector_append('acme', 'strict-4', 'Received', '{"qty": 2}');
\set VERBOSITY sqlstate
SELECT projector_append('acme', 'strict-4', 'Received', '{"qty": 2}');
\set VERBOSITY default
SELECT projector_resume('stock');
SELECT projector_append('acme', 'strict-4', 'Received', '{"qty": 3}');
SELECT * FROM stock WHERE item_id = 'strict-4';

-- above READ COMMITTED: a serialization failure
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT projector_append('acme', 'strict-4', 'Received', '{"qty": 4}');
ROLLBACK;
\set VERBOSITY sqlstate
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT projector_append('acme', 'strict-4', 'Received', '{"qty": 4}');
ROLLBACK;
\set VERBOSITY default
SELECT count(*) FROM projector.events WHERE aggregate_id = 'strict-4';

-- strict-3 retried by hand, and a strict append follows it
SET test.fixed = 'yes';
SELECT projector_retry('stock', 'acme', 'strict-3', 1);
RESET test.fixed;
SELECT projector_append('acme', 'strict-3', 'Received', '{"qty": 2}');
SELECT * FROM stock WHERE item_id = 'strict-3';
SELECT count(*) FROM projector.apply_outbox;

--
-- inline above READ COMMITTED, or paused: it queues
--
SELECT projector_set_mode('stock', 'inline');
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT projector_append('acme', 'rr', 'Received', '{"qty": 1}');
COMMIT;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT projector_append('acme', 'ser', 'Received', '{"qty": 1}');
COMMIT;
SELECT projector_pause('stock', 'acme', 'stocktaking');
SELECT projector_append('acme', 'paused', 'Received', '{"qty": 1}');
SELECT projector_append('other', 'paused', 'Received', '{"qty": 1}');
SELECT projector_pause('stock');
SELECT projector_append('other', 'paused', 'Received', '{"qty": 2}');
SELECT name, tenant_id, aggregate_id, seq, status, attempts, later FROM work ORDER BY 2, 3, 4;
SELECT * FROM stock WHERE item_id IN ('rr', 'ser', 'paused') ORDER BY 1, 2;
-- a drain skips what is paused
SELECT projector_drain('stock');
-- the tenant's own pause remains
SELECT projector_resume('stock');
SELECT projector_drain('stock');
SELECT name, tenant_id, aggregate_id, seq, status FROM work ORDER BY 2, 3, 4;
SELECT projector_resume('stock', 'acme');
-- the next append applies the backlog first, if it is short
SELECT projector_append('acme', 'paused', 'Received', '{"qty": 2}');
SELECT name, tenant_id, aggregate_id, seq, status FROM work ORDER BY 2, 3, 4;
SELECT projector_drain('stock');
SELECT * FROM stock WHERE item_id IN ('rr', 'ser', 'paused') ORDER BY 1, 2;
SELECT count(*) FROM projector.apply_outbox;

--
-- off: nothing; switched on again, a drain catches up from the log
--
SELECT projector_set_mode('stock', 'off');
SELECT projector_append('acme', 'off-1', 'Received', '{"qty": 1}');
SELECT projector_append('acme', 'off-1', 'Received', '{"qty": 2}');
SELECT projector_append('other', 'off-2', 'Received', '{"qty": 3}');
SELECT (SELECT count(*) FROM projector.apply_outbox),
       (SELECT count(*) FROM projector.projection_offsets WHERE aggregate_id LIKE 'off-%'),
       (SELECT count(*) FROM stock WHERE item_id LIKE 'off-%');
SELECT projector_drain('stock');
SELECT projector_set_mode('stock', 'inline');
SELECT projector_append('acme', 'off-3', 'Received', '{"qty": 4}');
SELECT * FROM stock WHERE item_id LIKE 'off-%' ORDER BY 1, 2;
SELECT projector_drain('stock');
SELECT * FROM stock WHERE item_id LIKE 'off-%' ORDER BY 1, 2;
SELECT projector_drain('stock');
-- off for one tenant only, and on for one only
SELECT projector_set_mode('stock', 'off', 'acme');
SELECT projector_append('acme', 'off-4', 'Received', '{"qty": 1}');
SELECT projector_append('other', 'off-4', 'Received', '{"qty": 1}');
SELECT * FROM stock WHERE item_id = 'off-4' ORDER BY 1, 2;
SELECT projector_set_mode('stock', NULL, 'acme');
SELECT projector_drain('stock');
SELECT * FROM stock WHERE item_id = 'off-4' ORDER BY 1, 2;

-- after all this the read model has every event once and in order
CREATE VIEW oracle AS
    SELECT tenant_id, aggregate_id AS item_id,
           sum(CASE event_type WHEN 'Shipped' THEN -1 ELSE 1 END * (payload ->> 'qty')::bigint)::bigint AS on_hand,
           string_agg(sequence_number::text, ' ' ORDER BY sequence_number) AS steps
    FROM projector.events GROUP BY 1, 2;
(TABLE stock EXCEPT ALL TABLE oracle) UNION ALL (TABLE oracle EXCEPT ALL TABLE stock);

--
-- A projection created over an existing log
--
SELECT projector_drop('stock');
TRUNCATE stock;
SELECT projector_append_batch('acme', 'long', (SELECT jsonb_agg('{"event_type": "Received", "payload": {"qty": 1}}'::jsonb)
    FROM generate_series(1, 40)));
SELECT projector_append_batch('acme', 'short', (SELECT jsonb_agg('{"event_type": "Received", "payload": {"qty": 1}}'::jsonb)
    FROM generate_series(1, 30)));
SELECT projector_create('stock', handler => 'stock_apply', targets => '{stock}', mode => 'inline');
-- an append applies a short backlog, and leaves a long one to a drain
SELECT projector_append('acme', 'short', 'Received', '{"qty": 1}');
SELECT projector_append('acme', 'long', 'Received', '{"qty": 1}');
SELECT item_id, on_hand FROM stock ORDER BY 1;
SELECT aggregate_id, last_sequence_number FROM projector.offsets ORDER BY 1;
SELECT name, aggregate_id, seq, status FROM work ORDER BY seq;
-- a strict append cannot leave it
SELECT projector_set_mode('stock', 'strict');
\set VERBOSITY sqlstate
SELECT projector_append('acme', 'long', 'Received', '{"qty": 1}');
\set VERBOSITY default
SELECT projector_set_mode('stock', 'inline');
-- a drain applies the rest of the log
SET test.fixed = 'yes';
SELECT projector_drain('stock') = (SELECT count(*) FROM projector.events) - 31 AS the_rest;
RESET test.fixed;
SELECT count(*) FROM projector.apply_outbox;
(TABLE stock EXCEPT ALL TABLE oracle) UNION ALL (TABLE oracle EXCEPT ALL TABLE stock);

--
-- All in one transaction
--
BEGIN;
CREATE TABLE brief (tenant_id text, item_id text);
CREATE FUNCTION brief_apply(projector.event) RETURNS void LANGUAGE sql AS
    $$ INSERT INTO brief VALUES (($1).tenant_id, ($1).aggregate_id) $$;
SELECT projector_create('brief', handler => 'brief_apply', targets => '{brief}', mode => 'inline');
SELECT projector_append('acme', 'brief', 'Received', '{"qty": 1}');
SELECT * FROM brief;
SELECT projector_drop('brief');
SELECT projector_append('acme', 'brief', 'Received', '{"qty": 1}');
SELECT * FROM brief;
SELECT count(*) FROM projector.offsets WHERE projection_name = 'brief';
COMMIT;
-- a projection whose creation is rolled back was never there
BEGIN;
SELECT projector_create('brief', handler => 'brief_apply', targets => '{brief}', mode => 'strict');
SELECT projector_append('acme', 'brief', 'Received', '{"qty": 1}');
ROLLBACK;
SELECT projector_append('acme', 'brief', 'Received', '{"qty": 1}');
SELECT * FROM brief;
BEGIN;
SAVEPOINT s;
SELECT projector_create('brief', handler => 'brief_apply', targets => '{brief}', mode => 'inline');
ROLLBACK TO s;
SELECT projector_append('acme', 'brief', 'Received', '{"qty": 1}');
COMMIT;
SELECT * FROM brief;
SELECT name FROM projector.projections ORDER BY 1;
-- one whose drop is rolled back is still there
BEGIN;
SELECT projector_drop('stock');
ROLLBACK;
SELECT projector_append('acme', 'brief', 'Received', '{"qty": 1}');
SELECT steps FROM stock WHERE item_id = 'brief';

--
-- Handler or target is changed: the projection stops and says why, no attempt
-- is counted, and it continues after the repair
--
SELECT projector_create('brief', handler => 'brief_apply', targets => '{brief}', mode => 'inline',
                        event_types => '{Brief}');
CREATE VIEW last_failure AS
    SELECT error_code, error_message, resolution FROM projector.failures
    WHERE projection_name = 'brief' ORDER BY id DESC LIMIT 1;
-- the handler dropped
CREATE VIEW problem AS SELECT projector.problem(projection_id) FROM projector.projections WHERE name = 'brief';
DROP FUNCTION brief_apply(projector.event);
SELECT projector_append('acme', 'u-1', 'Brief', '{"qty": 1}');
TABLE problem;
SELECT * FROM last_failure;
SELECT projector_retry('brief', 'acme', 'u-1', 1);
CREATE FUNCTION brief_apply(projector.event) RETURNS void LANGUAGE sql AS
    $$ INSERT INTO brief VALUES (($1).tenant_id, ($1).aggregate_id) $$;
SELECT projector_retry('brief', 'acme', 'u-1', 1);
SELECT * FROM last_failure;
-- replaced: the new one is used from now on
CREATE OR REPLACE FUNCTION brief_apply(projector.event) RETURNS void LANGUAGE plpgsql AS
    $$ BEGIN INSERT INTO brief VALUES (($1).tenant_id, ($1).aggregate_id || ' again'); END $$;
SELECT projector_append('acme', 'u-1', 'Brief', '{"qty": 1}');
SELECT * FROM brief ORDER BY 1, 2;
-- with another argument, as a set, with another result, as a procedure, as an
-- aggregate: the reason names the handler
DROP FUNCTION brief_apply(projector.event);
CREATE FUNCTION brief_apply(projector.event, int) RETURNS void LANGUAGE sql AS '';
SELECT projector_append('acme', 'u-2', 'Brief', '{"qty": 1}');
TABLE problem;
DROP FUNCTION brief_apply(projector.event, int);
CREATE FUNCTION brief_apply(projector.event) RETURNS SETOF int LANGUAGE plpgsql AS 'BEGIN RETURN NEXT 1; END';
SELECT projector_append('acme', 'u-3', 'Brief', '{"qty": 1}');
TABLE problem;
DROP FUNCTION brief_apply(projector.event);
CREATE FUNCTION brief_apply(projector.event) RETURNS int LANGUAGE sql AS 'SELECT 1';
SELECT projector_append('acme', 'u-4', 'Brief', '{"qty": 1}');
TABLE problem;
DROP FUNCTION brief_apply(projector.event);
CREATE PROCEDURE brief_apply(projector.event) LANGUAGE plpgsql AS 'BEGIN COMMIT; END';
SELECT projector_append('acme', 'u-5', 'Brief', '{"qty": 1}');
TABLE problem;
DROP PROCEDURE brief_apply(projector.event);
CREATE FUNCTION brief_state(int, projector.event) RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE AGGREGATE brief_apply(projector.event) (SFUNC = brief_state, STYPE = int);
SELECT projector_append('acme', 'u-6', 'Brief', '{"qty": 1}');
TABLE problem;
DROP AGGREGATE brief_apply(projector.event);
DROP FUNCTION brief_state(int, projector.event);
CREATE FUNCTION brief_apply(projector.event) RETURNS void LANGUAGE sql AS
    $$ INSERT INTO brief VALUES (($1).tenant_id, ($1).aggregate_id) $$;
-- the target without one of its columns, renamed, and dropped
ALTER TABLE brief DROP COLUMN item_id;
SELECT projector_append('acme', 'u-7', 'Brief', '{"qty": 1}');
SELECT * FROM last_failure;
ALTER TABLE brief ADD COLUMN item_id text;
ALTER TABLE brief RENAME TO away;
SELECT projector_append('acme', 'u-8', 'Brief', '{"qty": 1}');
SELECT * FROM last_failure;
TABLE problem;
ALTER TABLE away RENAME TO brief;
DROP TABLE brief;
SELECT projector_append('acme', 'u-9', 'Brief', '{"qty": 1}');
TABLE problem;
-- another table of that name is not the target, until the projection is altered
CREATE TABLE brief (tenant_id text, item_id text);
TABLE problem;
SELECT projector_alter('brief', '{"targets": ["brief"]}');
TABLE problem;
-- all waiting events are applied
SET projector.clock_offset = '1 min';
SELECT projector_drain('brief');
RESET projector.clock_offset;
SELECT * FROM brief ORDER BY 1, 2;
SELECT status, count(*) FROM work GROUP BY 1;
SELECT resolution, count(*) FROM projector.failures WHERE projection_name = 'brief' GROUP BY 1;

SET client_min_messages = warning;
DROP EXTENSION projector CASCADE;
DROP TABLE stock, shipped, brief;
RESET client_min_messages;
