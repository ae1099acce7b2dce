--
-- Applying the queue: order of hold and retry, back-off, dead items, partial
-- drains, and a damaged log.
--
CREATE EXTENSION projector;

-- An event with "fail" in its payload fails until test.fixed is "yes".
CREATE TABLE stock (tenant_id text, item_id text, steps text NOT NULL, PRIMARY KEY (tenant_id, item_id));
CREATE FUNCTION stock_apply(e projector.event) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO stock VALUES (e.tenant_id, e.aggregate_id, e.sequence_number)
    ON CONFLICT (tenant_id, item_id) DO UPDATE SET steps = stock.steps || ' ' || excluded.steps;
    IF e.payload ? 'fail' AND current_setting('test.fixed', true) IS DISTINCT FROM 'yes' THEN
        RAISE EXCEPTION 'cannot apply event %', e.sequence_number USING ERRCODE = e.payload ->> 'fail';
    END IF;
END $$;
CREATE VIEW work AS
    SELECT projection_name AS name, tenant_id, aggregate_id, sequence_number AS seq, status,
           attempt_count AS attempts, last_error
    FROM projector.outbox;
CREATE VIEW failure AS
    SELECT aggregate_id, sequence_number AS seq, error_code, error_message, retry_count AS retries,
           recoverable, resolution FROM projector.failures;
SELECT projector_create('stock', handler => 'stock_apply', targets => '{stock}', mode => 'inline',
                        options => '{"retry_base": "1 h", "retry_max": "5 h", "max_attempts": 4, "shared_targets": true}');

--
-- Retry
--
SELECT projector_append_batch('acme', 'a', '[{"event_type": "E", "payload": {}},
    {"event_type": "E", "payload": {"fail": "22012"}}, {"event_type": "E", "payload": {}},
    {"event_type": "E", "payload": {"fail": "22023"}}, {"event_type": "E", "payload": {}}]');
SELECT * FROM work ORDER BY seq;
-- a later one is held; one that is applied or unknown is not waiting
SELECT projector_retry('stock', 'acme', 'a', 3);
SELECT projector_retry('stock', 'acme', 'a', 5);
SELECT projector_retry('stock', 'acme', 'a', 1);
SELECT projector_retry('stock', 'acme', 'a', 6);
SELECT projector_retry('stock', 'acme', 'nobody', 1);
SELECT projector_retry('stock', 'nobody', 'a', 2);
SELECT * FROM stock;
-- the failed one fails again
SELECT projector_retry('stock', 'acme', 'a', 2);
SELECT * FROM work ORDER BY seq;
SELECT * FROM failure ORDER BY 1, 2;
SELECT last_sequence_number, error_count, last_error FROM projector.offsets;
-- fixed, it is applied; the next stays queued until its turn
SET test.fixed = 'yes';
SELECT projector_retry('stock', 'acme', 'a', 2);
RESET test.fixed;
SELECT * FROM stock;
SELECT * FROM work ORDER BY seq;
SELECT last_sequence_number, error_count, last_error FROM projector.offsets;
-- a retry first applies earlier events, up to the next that fails
SELECT projector_retry('stock', 'acme', 'a', 5);
SELECT * FROM stock;
SELECT * FROM work ORDER BY seq;
SET test.fixed = 'yes';
SELECT projector_retry('stock', 'acme', 'a', 4);
SELECT projector_retry('stock', 'acme', 'a', 5);
RESET test.fixed;
SELECT * FROM stock;
SELECT * FROM work ORDER BY seq;
SELECT * FROM failure ORDER BY 1, 2;
SELECT o.last_sequence_number, o.last_event_id = e.event_id AS id_ok, o.error_count, o.last_error
FROM projector.offsets o JOIN projector.events e ON e.aggregate_id = 'a' AND e.sequence_number = 5;

-- arguments
SELECT projector_retry(NULL, 'acme', 'a', 1);
SELECT projector_retry('stock', NULL, 'a', 1);
SELECT projector_retry('stock', 'acme', NULL, 1);
SELECT projector_retry('stock', 'acme', 'a', NULL);
SELECT projector_retry('nothing', 'acme', 'a', 1);

--
-- A drain respects back-off, which doubles: 1 h, 2 h, 4 h; after the
-- fourth attempt the item is dead
--
SELECT projector_append('acme', 'b', 'E', '{"fail": "22012"}');
SELECT projector_append('acme', 'b', 'E', '{}');
CREATE VIEW due AS
    SELECT sequence_number AS seq, status, attempt_count AS attempts,
           round(extract(epoch FROM next_attempt_at - clock_timestamp()) / 3600, 1) AS in_hours
    FROM projector.apply_outbox WHERE status <> 'pending';
SELECT * FROM due;
SELECT projector_drain();
SELECT * FROM due;
SET projector.clock_offset = '1.1 h';
SELECT projector_drain();
SELECT * FROM due;
SELECT projector_drain();
SELECT * FROM due;
SET projector.clock_offset = '3.2 h';
SELECT projector_drain();
SELECT * FROM due;
SELECT * FROM failure WHERE aggregate_id = 'b';
SELECT last_sequence_number, error_count FROM projector.offsets WHERE aggregate_id = 'b';
SET projector.clock_offset = '7.3 h';
SELECT projector_drain();
SELECT * FROM work ORDER BY seq;
SELECT * FROM failure WHERE aggregate_id = 'b';
-- dead: never tried again automatically, even if it would work
SET projector.clock_offset = '1000 h';
SET test.fixed = 'yes';
SELECT projector_drain();
SELECT * FROM work ORDER BY seq;
-- and later events wait for it, new ones too
SELECT projector_append('acme', 'b', 'E', '{}');
SELECT projector_retry('stock', 'acme', 'b', 2);
SELECT * FROM work ORDER BY seq;
SELECT * FROM stock WHERE item_id = 'b';
-- a retry by hand works
SELECT projector_retry('stock', 'acme', 'b', 1);
SELECT projector_drain();
SELECT * FROM stock WHERE item_id = 'b';
SELECT * FROM failure WHERE aggregate_id = 'b';
RESET test.fixed;
RESET projector.clock_offset;
-- a bound on the back-off, and a retry by hand of a dead item that fails again
SELECT projector_append('acme', 'c', 'E', '{"fail": "22012"}');
SELECT projector_alter('stock', '{"options": {"retry_max": "3 h", "max_attempts": 5}}');
SELECT projector_retry('stock', 'acme', 'c', 1), projector_retry('stock', 'acme', 'c', 1);
SELECT * FROM due;
SELECT projector_retry('stock', 'acme', 'c', 1);
SELECT * FROM due;
SELECT projector_retry('stock', 'acme', 'c', 1);
SELECT projector_retry('stock', 'acme', 'c', 1);
SELECT * FROM work;
-- errors that may be temporary get four times the attempts
SELECT projector_append('acme', 'd', 'E', '{"fail": "40P01"}');
DO $$ BEGIN FOR i IN 2 .. 19 LOOP PERFORM projector_retry('stock', 'acme', 'd', 1); END LOOP; END $$;
SELECT * FROM work ORDER BY aggregate_id;
SELECT projector_retry('stock', 'acme', 'd', 1);
SELECT * FROM work ORDER BY aggregate_id;
SET test.fixed = 'yes';
SELECT projector_retry('stock', 'acme', 'c', 1), projector_retry('stock', 'acme', 'd', 1);
RESET test.fixed;
SELECT count(*) FROM projector.apply_outbox;
-- the defaults: 1 s
SELECT projector_alter('stock', '{"options": {"retry_base": null, "retry_max": null, "max_attempts": null}}');
SELECT projector_append('acme', 'e', 'E', '{"fail": "22012"}');
SELECT next_attempt_at - updated_at BETWEEN '0.9 s' AND '30 s' AS about_a_second FROM projector.apply_outbox;
SET test.fixed = 'yes';
SET projector.clock_offset = '10 min';
SELECT projector_drain();
RESET projector.clock_offset;
RESET test.fixed;

--
-- Partial drains
--
SELECT projector_create('other', handler => 'stock_apply', targets => '{stock}', mode => 'async', event_types => '{X}',
                        options => '{"shared_targets": true}');
SELECT projector_alter('stock', '{"event_types": ["E", "F"]}');
SELECT projector_set_mode('stock', 'async');
-- read the whole log
SELECT projector_drain();
SELECT projector_append_batch(t, 'p', '[{"event_type": "F", "payload": {}}, {"event_type": "F", "payload": {}},
    {"event_type": "X", "payload": {}}]') FROM (VALUES ('acme'), ('beta'), ('corp')) v (t);
CREATE VIEW waiting AS SELECT name, tenant_id, count(*) FROM work GROUP BY 1, 2;
SELECT * FROM waiting ORDER BY 1, 2;
-- by tenant, by name, by both, by number
SELECT projector_drain(tenant_id => 'beta');
SELECT * FROM waiting ORDER BY 1, 2;
SELECT projector_drain('other');
SELECT * FROM waiting ORDER BY 1, 2;
SELECT projector_drain('stock', 'corp');
SELECT * FROM waiting ORDER BY 1, 2;
SELECT projector_drain(max_events => 1);
SELECT * FROM work ORDER BY 1, 2, 3, 4;
SELECT projector_drain('stock', 'nobody');
SELECT projector_drain();
SELECT projector_drain();
SELECT projector_drain('nothing');
SELECT projector_drain(max_events => 0);
SELECT projector_drain(max_events => -1);
-- max_events counts over tenants and batches
SELECT projector_alter('stock', '{"options": {"batch_size": 2}}');
INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
    SELECT t, 'q', n, 'F', '{}' FROM (VALUES ('acme'), ('beta')) v (t), generate_series(1, 10) n ORDER BY n;
SELECT projector_drain('stock', max_events => 7);
SELECT sum(count) FROM waiting;
SELECT projector_drain('stock');
SELECT * FROM stock WHERE item_id = 'q' ORDER BY 1;
SELECT projector_alter('stock', '{"options": {"batch_size": null}}');

-- a drain that is rolled back did nothing
SELECT projector_append('acme', 'r', 'F', '{}');
BEGIN;
SELECT projector_drain();
SELECT * FROM stock WHERE item_id = 'r';
ROLLBACK;
SELECT * FROM stock WHERE item_id = 'r';
SELECT * FROM work;
SELECT projector_drain();
SELECT * FROM stock WHERE item_id = 'r';

-- failures of one aggregate do not stop a drain of the others
INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
    SELECT 'acme', 's-' || a, n, 'F', CASE WHEN a % 3 = 0 AND n = 2 THEN '{"fail": "22012"}' ELSE '{}' END::jsonb
    FROM generate_series(1, 7) a, generate_series(1, 3) n ORDER BY n;
SELECT projector_drain();
SELECT * FROM stock WHERE item_id LIKE 's-%' ORDER BY item_id;
SELECT * FROM work ORDER BY 3, 4;
SELECT projector_append('acme', 's-3', 'F', '{}');
SELECT * FROM work ORDER BY 3, 4;
SET test.fixed = 'yes';
SET projector.clock_offset = '10 min';
SELECT projector_drain();
RESET projector.clock_offset;
RESET test.fixed;
SELECT * FROM stock WHERE item_id IN ('s-3', 's-6') ORDER BY item_id;
SELECT count(*) FROM projector.apply_outbox;

-- not above READ COMMITTED
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT projector_drain();
ROLLBACK;
\set VERBOSITY sqlstate
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT projector_retry('stock', 'acme', 'a', 1);
ROLLBACK;
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT projector_reset('stock', force => true);
ROLLBACK;
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT projector_set_mode('stock', 'inline');
ROLLBACK;
\set VERBOSITY default
-- off: not applied; what is queued stays
SELECT projector_append('acme', 't', 'F', '{}');
SELECT projector_set_mode('stock', 'off');
SELECT projector_drain();
SELECT projector_retry('stock', 'acme', 't', 1);
SELECT * FROM work;
SELECT projector_set_mode('stock', 'async');
SELECT projector_drain();
SELECT * FROM stock WHERE item_id = 't';

--
-- Damage of the log is found when it is read
--
-- a payload changed by hand
SELECT projector_append_batch('acme', 'tampered', '[{"event_type": "F", "payload": {"a": 1}},
    {"event_type": "F", "payload": {"a": 2}}, {"event_type": "F", "payload": {"a": 3}}]');
ALTER TABLE projector.events DISABLE TRIGGER ALL;
UPDATE projector.events SET payload = '{"a": 22}' WHERE aggregate_id = 'tampered' AND sequence_number = 2;
SELECT projector_drain();
SELECT * FROM stock WHERE item_id = 'tampered';
SELECT * FROM work ORDER BY seq;
SELECT * FROM failure WHERE aggregate_id = 'tampered';
SELECT projector_retry('stock', 'acme', 'tampered', 2);
UPDATE projector.events SET payload = '{"a": 2}' WHERE aggregate_id = 'tampered' AND sequence_number = 2;
SELECT projector_retry('stock', 'acme', 'tampered', 2);
SELECT projector_drain();
SELECT * FROM stock WHERE item_id = 'tampered';

-- a missing event that has an item
ALTER TABLE projector.events ENABLE TRIGGER ALL;
SELECT projector_append_batch('acme', 'missing', '[{"event_type": "F", "payload": {}},
    {"event_type": "F", "payload": {}}, {"event_type": "F", "payload": {}}]');
ALTER TABLE projector.events DISABLE TRIGGER ALL;
CREATE TABLE kept AS SELECT * FROM projector.events WHERE aggregate_id = 'missing' AND sequence_number = 2;
DELETE FROM projector.events WHERE aggregate_id = 'missing' AND sequence_number = 2;
SELECT projector_drain();
SELECT * FROM stock WHERE item_id = 'missing';
SELECT * FROM work ORDER BY seq;
SELECT * FROM failure WHERE aggregate_id = 'missing' ORDER BY seq;
INSERT INTO projector.events OVERRIDING SYSTEM VALUE SELECT * FROM kept;
SET projector.clock_offset = '10 min';
SELECT projector_drain();
RESET projector.clock_offset;
SELECT * FROM stock WHERE item_id = 'missing';
SELECT * FROM work ORDER BY seq;

-- a missing first event without an item
ALTER TABLE projector.events ENABLE TRIGGER ALL;
SELECT projector_set_mode('stock', 'off');
SELECT projector_append_batch('acme', 'beheaded', '[{"event_type": "F", "payload": {}},
    {"event_type": "F", "payload": {}}]');
SELECT projector_set_mode('stock', 'inline');
ALTER TABLE projector.events DISABLE TRIGGER ALL;
DELETE FROM projector.events WHERE aggregate_id = 'beheaded' AND sequence_number = 1;
ALTER TABLE projector.events ENABLE TRIGGER ALL;
SELECT projector_drain();
SELECT * FROM stock WHERE item_id = 'beheaded';
SELECT * FROM work ORDER BY seq;
SELECT * FROM failure WHERE aggregate_id = 'beheaded';
SELECT projector_append('acme', 'beheaded', 'F', '{}');
SELECT * FROM work ORDER BY seq;

SET client_min_messages = warning;
DROP EXTENSION projector CASCADE;
DROP TABLE stock, kept;
RESET client_min_messages;
