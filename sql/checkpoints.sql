--
-- Per-row checkpoints: a handler that stamps its rows can receive the same
-- events again without changing the read model.
--
CREATE EXTENSION projector;
-- allow DDL that the guard would refuse
SET projector.guard_ddl = off;
\set SHOW_CONTEXT never

-- The pattern: every write stamps the row with its event, and skips a row that
-- already has this event or a later one.
CREATE TABLE stock (tenant_id text, item_id text, on_hand bigint NOT NULL,
                    last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, item_id));
CREATE FUNCTION stock_apply(e projector.event) RETURNS void LANGUAGE sql AS $$
    INSERT INTO stock AS s VALUES ((e).tenant_id, (e).aggregate_id, ((e).payload ->> 'qty')::bigint,
                                   (e).event_id, (e).sequence_number)
    ON CONFLICT (tenant_id, item_id) DO UPDATE
    SET on_hand = s.on_hand + excluded.on_hand, last_event_id = excluded.last_event_id,
        last_event_version = excluded.last_event_version
    WHERE s.last_event_version < excluded.last_event_version
$$;
CREATE FUNCTION append_some(tenant text, item text, n int) RETURNS void LANGUAGE sql AS $$
    SELECT projector_append_batch(tenant, item, (SELECT jsonb_agg(jsonb_build_object(
        'event_type', 'Received', 'payload', jsonb_build_object('qty', i)) ORDER BY i) FROM generate_series(1, n) i));
$$;
-- what the read model should be
CREATE VIEW oracle AS
    SELECT DISTINCT ON (tenant_id, aggregate_id) tenant_id, aggregate_id AS item_id,
           sum((payload ->> 'qty')::bigint) OVER (PARTITION BY tenant_id, aggregate_id)::bigint AS on_hand,
           event_id AS last_event_id, sequence_number AS last_event_version
    FROM projector.events ORDER BY tenant_id, aggregate_id, sequence_number DESC;
CREATE VIEW differences AS
    (TABLE stock EXCEPT ALL TABLE oracle) UNION ALL (TABLE oracle EXCEPT ALL TABLE stock);
CREATE VIEW progress AS
    SELECT tenant_id, aggregate_id, last_sequence_number FROM projector.offsets;

SELECT projector_create('stock', handler => 'stock_apply', targets => '{stock}', mode => 'inline',
                        options => '{"checkpoint": "check"}');
SELECT append_some('acme', 'item-1', 3), append_some('acme', 'item-2', 5), append_some('other', 'item-1', 2);
-- an aggregate with a longer backlog than an append applies
SELECT append_some('acme', 'item-3', 50);
SELECT projector_append('acme', 'item-1', 'Received', '{"qty": 10}');
SELECT tenant_id, item_id, on_hand, last_event_version FROM stock ORDER BY 1, 2;
TABLE differences;
CREATE TABLE before AS TABLE stock;

--
-- Reset: refused unless the handler is declared idempotent
--
SELECT projector_reset('stock');
\set VERBOSITY sqlstate
SELECT projector_reset('stock');
SELECT projector_reset('stock', 'acme');
SELECT projector_reset('stock', 'acme', 'item-1');
SELECT projector_reset('stock', force => NULL);
\set VERBOSITY default
SELECT * FROM progress ORDER BY 1, 2;
SELECT projector_reset(NULL);
SELECT projector_reset('nothing');
SELECT projector_reset('stock', NULL, 'item-1');
SELECT projector_alter('stock', '{"options": {"idempotent": true}}');

-- reset and drain: every event is applied again, the read model is unchanged
SELECT projector_reset('stock');
SELECT * FROM progress ORDER BY 1, 2;
SELECT count(*) FROM ((TABLE stock EXCEPT ALL TABLE before) UNION ALL (TABLE before EXCEPT ALL TABLE stock)) d;
SELECT projector_drain('stock');
SELECT * FROM progress ORDER BY 1, 2;
SELECT count(*) FROM ((TABLE stock EXCEPT ALL TABLE before) UNION ALL (TABLE before EXCEPT ALL TABLE stock)) d;
SELECT projector_drain('stock');

-- one tenant
SELECT projector_reset('stock', 'acme');
SELECT * FROM progress ORDER BY 1, 2;
SELECT projector_drain('stock');
SELECT * FROM progress ORDER BY 1, 2;
SELECT count(*) FROM ((TABLE stock EXCEPT ALL TABLE before) UNION ALL (TABLE before EXCEPT ALL TABLE stock)) d;

-- one aggregate: its last event is queued, and the earlier ones are applied
-- before it
SELECT projector_reset('stock', 'acme', 'item-2');
SELECT * FROM progress ORDER BY 1, 2;
SELECT tenant_id, aggregate_id, sequence_number, status FROM projector.outbox ORDER BY 1, 2, 3;
SELECT projector_drain('stock');
SELECT * FROM progress ORDER BY 1, 2;
SELECT count(*) FROM projector.apply_outbox;
SELECT count(*) FROM ((TABLE stock EXCEPT ALL TABLE before) UNION ALL (TABLE before EXCEPT ALL TABLE stock)) d;
SELECT projector_reset('stock', 'acme', 'nothing');
SELECT projector_drain('stock');

-- a reset without a drain: the next appends apply the log first
SELECT projector_reset('stock');
SELECT projector_append('acme', 'item-1', 'Received', '{"qty": 1}');
SELECT projector_append('acme', 'item-3', 'Received', '{"qty": 1}');
SELECT * FROM progress ORDER BY 1, 2;
SELECT projector_drain('stock');
SELECT * FROM progress ORDER BY 1, 2;
TABLE differences;

-- a reset also empties the queue, failed items included: all is in the log
SELECT projector_pause('stock');
SELECT projector_append('acme', 'item-1', 'Received', '{"qty": 2}');
SELECT projector_append('acme', 'item-4', 'Received', '{"qty": "many"}');
SELECT projector_resume('stock');
SELECT projector_retry('stock', 'acme', 'item-4', 1);
SELECT aggregate_id, sequence_number, status FROM projector.outbox ORDER BY 1, 2;
SELECT projector_reset('stock');
SELECT count(*) FROM projector.apply_outbox;
SELECT projector_drain('stock');
SELECT aggregate_id, sequence_number, status, attempt_count FROM projector.outbox ORDER BY 1, 2;
SELECT * FROM progress ORDER BY 1, 2;
SELECT tenant_id, item_id, on_hand, last_event_version FROM stock ORDER BY 1, 2;
-- a corrected handler applies them
CREATE OR REPLACE FUNCTION stock_apply(e projector.event) RETURNS void LANGUAGE sql AS $$
    INSERT INTO stock AS s VALUES ((e).tenant_id, (e).aggregate_id,
                                   CASE (e).payload ->> 'qty' WHEN 'many' THEN 99 ELSE ((e).payload ->> 'qty')::bigint END,
                                   (e).event_id, (e).sequence_number)
    ON CONFLICT (tenant_id, item_id) DO UPDATE
    SET on_hand = s.on_hand + excluded.on_hand, last_event_id = excluded.last_event_id,
        last_event_version = excluded.last_event_version
    WHERE s.last_event_version < excluded.last_event_version
$$;
SELECT projector_retry('stock', 'acme', 'item-4', 1);
SELECT count(*) FROM projector.apply_outbox;
SELECT resolution, count(*) FROM projector.failures GROUP BY 1 ORDER BY 1;

--
-- All offsets are lost
--
DROP TABLE before;
CREATE TABLE before AS TABLE stock;
DELETE FROM projector.projection_offsets;
SELECT projector_drain('stock');
SELECT count(*) FROM ((TABLE stock EXCEPT ALL TABLE before) UNION ALL (TABLE before EXCEPT ALL TABLE stock)) d;
-- appends after that: the short backlog is applied by the append, the long one
-- goes through the queue
SELECT projector_append('acme', 'item-1', 'Received', '{"qty": 3}');
SELECT projector_append('acme', 'item-3', 'Received', '{"qty": 3}');
SELECT tenant_id, aggregate_id, sequence_number, status FROM projector.outbox ORDER BY 1, 2, 3;
SELECT projector_drain('stock');
SELECT s.tenant_id, s.item_id, s.on_hand - b.on_hand AS more, s.last_event_version - b.last_event_version AS events
FROM stock s JOIN before b USING (tenant_id, item_id) ORDER BY 1, 2;
SELECT count(*) FROM projector.apply_outbox;
-- the same with a reset, after which a drain reads everything
DROP TABLE before;
CREATE TABLE before AS TABLE stock;
DELETE FROM projector.projection_offsets;
SELECT projector_reset('stock');
SELECT projector_drain('stock') = (SELECT count(*) FROM projector.events) AS everything;
SELECT count(*) FROM ((TABLE stock EXCEPT ALL TABLE before) UNION ALL (TABLE before EXCEPT ALL TABLE stock)) d;
SELECT * FROM progress ORDER BY 1, 2;

--
-- Option "checkpoint": a handler that does not stamp fails
--
SELECT projector_drop('stock');
TRUNCATE stock;
CREATE FUNCTION forgets(e projector.event) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    CASE e.event_type
    WHEN 'stamps' THEN
        INSERT INTO stock VALUES (e.tenant_id, e.aggregate_id, 1, e.event_id, e.sequence_number)
        ON CONFLICT (tenant_id, item_id) DO UPDATE SET on_hand = stock.on_hand + 1,
            last_event_id = excluded.last_event_id, last_event_version = excluded.last_event_version;
    WHEN 'forgets' THEN
        INSERT INTO stock VALUES (e.tenant_id, e.aggregate_id, 1)
        ON CONFLICT (tenant_id, item_id) DO UPDATE SET on_hand = stock.on_hand + 1;
    WHEN 'forgets id' THEN
        INSERT INTO stock VALUES (e.tenant_id, e.aggregate_id, 1, NULL, e.sequence_number)
        ON CONFLICT (tenant_id, item_id) DO UPDATE SET on_hand = stock.on_hand + 1,
            last_event_id = NULL, last_event_version = excluded.last_event_version;
    WHEN 'wrong id' THEN
        INSERT INTO stock VALUES (e.tenant_id, e.aggregate_id, 1, gen_random_uuid(), e.sequence_number)
        ON CONFLICT (tenant_id, item_id) DO UPDATE SET on_hand = stock.on_hand + 1,
            last_event_id = excluded.last_event_id, last_event_version = excluded.last_event_version;
    WHEN 'deletes' THEN
        DELETE FROM stock WHERE (tenant_id, item_id) = (e.tenant_id, e.aggregate_id);
    WHEN 'other row' THEN
        INSERT INTO stock VALUES (e.tenant_id, e.aggregate_id || ' too', 1);
    ELSE NULL;
    END CASE;
END $$;
SELECT projector_create('forgets', handler => 'forgets', targets => '{stock}', mode => 'strict',
                        options => '{"checkpoint": "check"}');
SELECT projector_append('acme', 'a', 'stamps', '{}');
SELECT projector_append('acme', 'a', 'forgets', '{}');
SELECT projector_append('acme', 'b', 'forgets', '{}');
\set VERBOSITY sqlstate
SELECT projector_append('acme', 'a', 'forgets', '{}');
SELECT projector_append('acme', 'b', 'forgets', '{}');
SELECT projector_append('acme', 'a', 'forgets id', '{}');
SELECT projector_append('acme', 'a', 'wrong id', '{}');
SELECT projector_append('acme', 'b', 'wrong id', '{}');
-- an event that does not change the row does not stamp it either
SELECT projector_append('acme', 'a', 'does nothing', '{}');
\set VERBOSITY default
-- no row, nothing to check
SELECT projector_append('acme', 'c', 'does nothing', '{}');
SELECT projector_append('acme', 'c', 'other row', '{}');
SELECT projector_append('acme', 'a', 'deletes', '{}');
SELECT projector_append('acme', 'a', 'stamps', '{}');
SELECT item_id, on_hand, last_event_version FROM stock ORDER BY 1;
-- in the middle of a statement, in mode inline
SELECT projector_set_mode('forgets', 'inline');
SELECT projector_append_batch('acme', 'd', '[{"event_type": "stamps", "payload": 1}, {"event_type": "wrong id", "payload": 2},
    {"event_type": "stamps", "payload": 3}]');
SELECT item_id, on_hand, last_event_version FROM stock WHERE item_id = 'd';
SELECT sequence_number, status FROM projector.outbox ORDER BY 1;
SELECT sequence_number, error_code FROM projector.failures;
-- without the option nothing is checked
SELECT projector_alter('forgets', '{"options": {"checkpoint": "none"}}');
SELECT projector_retry('forgets', 'acme', 'd', 2);
SELECT projector_drain('forgets');
SELECT item_id, on_hand, last_event_version FROM stock WHERE item_id = 'd';

-- what the option requires of the first target
CREATE TABLE bare (tenant_id text, item_id text, PRIMARY KEY (tenant_id, item_id));
CREATE TABLE keyless (tenant_id text, item_id text, last_event_id uuid, last_event_version bigint);
CREATE TABLE wide (tenant_id text, a text, b text, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, a, b));
SELECT projector_create('x', handler => 'forgets', options => '{"checkpoint": "check"}');
SELECT projector_create('x', handler => 'forgets', targets => '{bare,stock}', options => '{"checkpoint": "check"}');
SELECT projector_create('x', handler => 'forgets', targets => '{keyless}', options => '{"checkpoint": "check"}');
SELECT projector_create('x', handler => 'forgets', targets => '{wide}', options => '{"checkpoint": "check"}');
-- the other targets are free; names that need quotes are quoted
CREATE TABLE "Odd ""table""" (tenant_id varchar(20), "the key" text, "last_event_id" uuid, last_event_version integer,
    PRIMARY KEY ("the key", tenant_id));
CREATE FUNCTION odd(e projector.event) RETURNS void LANGUAGE sql AS $$
    INSERT INTO "Odd ""table""" VALUES ((e).tenant_id, (e).aggregate_id, (e).event_id,
        CASE (e).event_type WHEN 'odd' THEN (e).sequence_number END)
    ON CONFLICT (tenant_id, "the key") DO UPDATE SET last_event_id = excluded.last_event_id,
        last_event_version = excluded.last_event_version
$$;
SELECT projector_create('odd', handler => 'odd', targets => array['"Odd ""table"""', 'bare'], mode => 'strict',
                        event_types => '{odd,bad}', options => '{"checkpoint": "check"}');
SELECT projector_append('acme', 'o', 'odd', '{}');
SELECT projector_append('acme', 'o', 'bad', '{}');
SELECT "the key", last_event_version FROM "Odd ""table""";
-- the target is altered later
SELECT projector_set_mode('odd', 'inline');
ALTER TABLE "Odd ""table""" DROP COLUMN last_event_version CASCADE;
SELECT projector_append('acme', 'o', 'odd', '{}');
ALTER TABLE "Odd ""table""" ADD COLUMN last_event_version bigint;
ALTER TABLE "Odd ""table""" DROP CONSTRAINT "Odd ""table""_pkey";
ALTER TABLE "Odd ""table""" ADD UNIQUE (tenant_id, "the key");
SELECT projector_append('acme', 'p', 'odd', '{}');
SELECT aggregate_id, error_code, error_message FROM projector.failures WHERE projection_name = 'odd' ORDER BY 1;
ALTER TABLE "Odd ""table""" ADD PRIMARY KEY (tenant_id, "the key");
SELECT projector_retry('odd', 'acme', 'o', 2), projector_retry('odd', 'acme', 'p', 1);

-- with force, a handler that ignores checkpoints applies events twice
SELECT projector_drop('odd');
SELECT on_hand FROM stock WHERE item_id = 'd';
SELECT projector_reset('forgets', 'acme', 'd', true);
SELECT projector_drain('forgets');
SELECT on_hand FROM stock WHERE item_id = 'd';

SET client_min_messages = warning;
DROP EXTENSION projector CASCADE;
DROP TABLE stock, before, bare, keyless, wide, "Odd ""table""";
DROP FUNCTION append_some(text, text, int);
RESET client_min_messages;
