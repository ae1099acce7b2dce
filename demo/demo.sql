-- A stock list kept by events.  Everything below happens in one database.

CREATE EXTENSION projector;

-- 1. The read model is a table like any other.  Two columns say which event
--    each row is the result of.

CREATE TABLE inventory_stock (
    tenant_id          text,
    item_id            text,
    on_hand            bigint NOT NULL,
    last_event_id      uuid NOT NULL,
    last_event_version bigint NOT NULL,
    PRIMARY KEY (tenant_id, item_id));

-- 2. A handler says how one event changes it.  An event that the row has seen
--    already changes nothing.

CREATE FUNCTION stock_handler(e projector.event) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    qty bigint := e.payload->>'qty';
BEGIN
    INSERT INTO inventory_stock AS s
    VALUES (e.tenant_id, e.aggregate_id,
            CASE e.event_type WHEN 'ItemReceived' THEN qty
                              WHEN 'ItemShipped' THEN -qty END,
            e.event_id, e.sequence_number)
    ON CONFLICT (tenant_id, item_id) DO UPDATE
    SET on_hand = s.on_hand + excluded.on_hand,
        last_event_id = excluded.last_event_id,
        last_event_version = excluded.last_event_version
    WHERE s.last_event_version < excluded.last_event_version;
END $$;

-- 3. Register it.  "inline": applied in the transaction that appends.

SELECT projector_create('inventory.stock', handler => 'stock_handler',
    targets => '{inventory_stock}', mode => 'inline',
    options => '{"checkpoint": "check", "idempotent": true}');

-- 4. Append events: the read model has changed when the call returns, and
--    both are undone if the transaction is.

SELECT projector_append('acme', 'item-1', 'ItemReceived', '{"qty": 5}');
BEGIN;
SELECT projector_append('acme', 'item-1', 'ItemReceived', '{"qty": 1000}');
SELECT on_hand FROM inventory_stock;
ROLLBACK;
SELECT tenant_id, item_id, on_hand, last_event_version FROM inventory_stock;

-- 5. Something the handler cannot digest: the type is not in its CASE.  The
--    append succeeds, for the event did happen; the event is kept back, and
--    so is what follows it, but no other item.

SELECT projector_append('acme', 'item-1', 'ItemCounted', '{"qty": 4}');
SELECT projector_append('acme', 'item-1', 'ItemShipped', '{"qty": 1}');
SELECT projector_append('acme', 'item-2', 'ItemReceived', '{"qty": 7}');
SELECT item_id, on_hand, last_event_version FROM inventory_stock ORDER BY 1;
SELECT aggregate_id, sequence_number, event_type, status, attempt_count, last_error
FROM projector.outbox ORDER BY log_seq;

-- 6. Mend the handler, try the failed event again, and drain what waited.

CREATE OR REPLACE FUNCTION stock_handler(e projector.event) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    qty bigint := e.payload->>'qty';
BEGIN
    INSERT INTO inventory_stock AS s
    VALUES (e.tenant_id, e.aggregate_id,
            CASE e.event_type WHEN 'ItemShipped' THEN -qty ELSE qty END,
            e.event_id, e.sequence_number)
    ON CONFLICT (tenant_id, item_id) DO UPDATE
    SET on_hand = excluded.on_hand +
            CASE e.event_type WHEN 'ItemCounted' THEN 0 ELSE s.on_hand END,
        last_event_id = excluded.last_event_id,
        last_event_version = excluded.last_event_version
    WHERE s.last_event_version < excluded.last_event_version;
END $$;
SELECT projector_requeue('inventory.stock', 'acme', 'item-1', 2);

-- (A worker process applies what waits.  It is woken when a transaction
-- commits, and needs a millisecond or so; here we wait until it is done.)

CREATE PROCEDURE let_it_work() LANGUAGE plpgsql AS $$
BEGIN
    WHILE EXISTS (SELECT FROM projector.outbox) OR EXISTS (
        SELECT FROM projector.projection_cursors WHERE state <> 'live') LOOP
        PERFORM pg_sleep(0.005);
    END LOOP;
END $$;
CALL let_it_work();
SELECT item_id, on_hand, last_event_version FROM inventory_stock ORDER BY 1;

-- 7. The checkpoints, and the error that was recorded and is now resolved.

SELECT aggregate_id, last_sequence_number, error_count FROM projector.offsets ORDER BY 1;
SELECT sequence_number, error_code, error_message, resolution
FROM projector.failures;

-- 8. Two writers, one version: the second is told.

SELECT projector_append('acme', 'item-1', 'ItemShipped', '{"qty": 1}', expected_version => 3);
\set ON_ERROR_STOP off
SELECT projector_append('acme', 'item-1', 'ItemShipped', '{"qty": 1}', expected_version => 3);

-- 9. The log is append-only.

DELETE FROM projector.events;
\set ON_ERROR_STOP on

-- 10. Leave the work to the worker altogether: appending costs less, and the
--     read model follows a moment later.

SELECT projector_set_mode('inventory.stock', 'async');
SELECT count(projector_append('acme', 'item-' || i % 1000, 'ItemReceived', '{"qty": 1}'))
FROM generate_series(1, 10000) i;
CALL let_it_work();
SELECT count(*) AS items, sum(on_hand) AS on_hand FROM inventory_stock;
SELECT projection_name, tenant_id, pending, failed, dead, applied_count
FROM projector_outbox_stats();

-- 11. Reading the whole log again changes nothing: every row knows its event.

SELECT projector_reset('inventory.stock');
CALL let_it_work();
SELECT count(*) AS items, sum(on_hand) AS on_hand FROM inventory_stock;

-- 12. Read your own write: append, and wait until the worker has applied it.

SELECT projector_append('acme', 'item-1', 'ItemReceived', '{"qty": 5}') AS version \gset
SELECT projector_wait('inventory.stock', 'acme', 'item-1', :version);

-- 13. Prove that the read model is what the log implies.  Then spoil it, and see.

SELECT tenant_id, matches, differing_rows FROM projector_verify('inventory.stock');
UPDATE inventory_stock SET on_hand = 1000000 WHERE item_id = 'item-1';
SELECT s->>'key' AS row, s->'live'->>'on_hand' AS live, s->'rebuilt'->>'on_hand' AS should_be
FROM projector_verify('inventory.stock') v, jsonb_array_elements(v.sample) s;

-- 14. Rebuild it in the background, batch by batch.

SELECT projector_start_run('inventory.stock');
DO $$ BEGIN
    WHILE EXISTS (SELECT FROM projector.progress) LOOP
        COMMIT;
        PERFORM pg_sleep(0.005);
    END LOOP;
END $$;
SELECT mode, state, processed_events FROM projector.runs;
SELECT tenant_id, matches, differing_rows FROM projector_verify('inventory.stock');

-- 15. How things are.

SELECT projection_name, tenant_id, mode, state, lag_events, applied_count, stale FROM projector.status;
