--
-- Events that fail: skipped with on_error "skip", tried more often if the error
-- may be temporary; and what they cost the other events.
--
CREATE EXTENSION projector;
\set SHOW_CONTEXT never

-- Records the events of an aggregate in the order of its calls.  An event with a
-- SQLSTATE in its payload fails with it, until test.fixed is "yes".  A sequence
-- counts the calls, because a rollback does not reset it.
CREATE TABLE steps (tenant_id text, item_id text, path text NOT NULL, PRIMARY KEY (tenant_id, item_id));
CREATE SEQUENCE calls;
CREATE SEQUENCE failed_calls;
CREATE FUNCTION note_step(e projector.event) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM nextval('calls');
    INSERT INTO steps AS s VALUES (e.tenant_id, e.aggregate_id, e.sequence_number)
    ON CONFLICT (tenant_id, item_id) DO UPDATE SET path = s.path || ' ' || excluded.path;
    IF e.payload ? 'fail' AND current_setting('test.fixed', true) IS DISTINCT FROM 'yes' THEN
        PERFORM nextval('failed_calls');
        RAISE EXCEPTION 'cannot apply event %', e.sequence_number USING ERRCODE = e.payload ->> 'fail';
    END IF;
END $$;
-- The oracle: every event except the skipped ones.
CREATE TABLE passed_over (item_id text, sequence_number bigint);
CREATE VIEW oracle AS
    SELECT tenant_id::text, aggregate_id::text, string_agg(sequence_number::text, ' ' ORDER BY sequence_number) AS path
    FROM projector.events WHERE (aggregate_id, sequence_number) NOT IN (TABLE passed_over) GROUP BY 1, 2;
CREATE VIEW differences AS
    SELECT 'missing' AS what, * FROM (TABLE oracle EXCEPT ALL TABLE steps) x
    UNION ALL SELECT 'unexpected', * FROM (TABLE steps EXCEPT ALL TABLE oracle) x;
CREATE VIEW work AS
    SELECT aggregate_id, sequence_number AS seq, status, attempt_count AS attempts, last_error FROM projector.outbox ORDER BY 1, 2;
CREATE VIEW failure AS
    SELECT aggregate_id, sequence_number AS seq, error_code, retry_count AS retries, recoverable, resolution, metadata
    FROM projector.failures ORDER BY 1, 2, id;
CREATE VIEW offsets AS
    SELECT aggregate_id, last_sequence_number AS last, error_count, last_error FROM projector.offsets ORDER BY 1;
-- "x" fails with that code, "." does not
CREATE FUNCTION append(item text, pattern text, code text DEFAULT '22012') RETURNS bigint LANGUAGE sql AS $$
    SELECT projector_append_batch('acme', item, jsonb_agg(jsonb_build_object('event_type', 'E', 'payload',
        CASE c WHEN 'x' THEN jsonb_build_object('fail', code) ELSE '{}' END) ORDER BY n))
    FROM unnest(string_to_array(pattern, NULL)) WITH ORDINALITY u (c, n) $$;
CREATE FUNCTION drain_after(hours int) RETURNS bigint LANGUAGE sql AS $$
    SELECT set_config('projector.clock_offset', hours || ' h', false);
    SELECT projector_drain() $$;

--
-- on_error "skip": tried as often as any other, then skipped
--
SELECT projector_create('steps', handler => 'note_step', targets => '{steps}',
                        options => '{"on_error": "skip", "max_attempts": 3, "retry_base": "1 h", "retry_max": "1 h"}');
SELECT projector_drain();
SELECT append('a', '.x.x.'), append('b', '..');
SELECT projector_drain();
SELECT * FROM work;
SELECT * FROM offsets;
-- not before its next attempt is due
SELECT projector_drain();
SELECT drain_after(2);
SELECT * FROM work;
SELECT * FROM failure;
-- the last attempt: what follows is applied, up to the next
SELECT drain_after(4);
SELECT * FROM work;
SELECT * FROM offsets;
SELECT aggregate_id, seq, retries, recoverable, resolution, metadata ->> 'skip_reason' AS skip_reason, metadata ->> 'skipped_by' AS skipped_by FROM failure;
SELECT drain_after(6), drain_after(8);
INSERT INTO passed_over VALUES ('a', 2), ('a', 4);
SELECT * FROM differences;
SELECT * FROM work;
SELECT * FROM offsets;
SELECT applied_count, failed_count FROM projector.projection_cursors;
-- one that is repaired in time is not skipped
SELECT append('c', 'x.');
SELECT projector_drain();
SET test.fixed = 'yes';
SELECT drain_after(10);
RESET test.fixed;
SELECT * FROM differences;
SELECT * FROM failure WHERE aggregate_id = 'c';
-- tried only once; in the appender's transaction too
SELECT projector_alter('steps', '{"options": {"max_attempts": 1}}');
SELECT append('d', 'xx.x');
SELECT projector_drain();
INSERT INTO passed_over VALUES ('d', 1), ('d', 2), ('d', 4);
SELECT * FROM differences;
SELECT projector_set_mode('steps', 'inline');
SELECT append('e', '.x..x');
SELECT append('f', 'x');
INSERT INTO passed_over VALUES ('e', 2), ('e', 5), ('f', 1);
SELECT * FROM differences;
SELECT * FROM offsets;
SELECT * FROM work;
SELECT aggregate_id, seq, retries, resolution FROM failure WHERE aggregate_id IN ('d', 'e', 'f');
-- a strict append still fails
SELECT projector_set_mode('steps', 'strict');
SELECT append('g', 'x');
SELECT projector_set_mode('steps', 'follow');
SELECT append('h', '.x.');
SELECT projector_drain();
INSERT INTO passed_over VALUES ('h', 2);
SELECT * FROM differences;

-- a replay skips it too, even if the option has changed since
TRUNCATE steps;
SELECT projector_reset('steps', 'acme', force => true);
SET test.fixed = 'yes';
SELECT projector_drain();
SELECT * FROM differences;
SELECT projector_alter('steps', '{"options": {"on_error": null, "max_attempts": 1}}');
SELECT skips FROM projector.projections;
TRUNCATE steps;
SELECT projector_reset('steps', 'acme', force => true);
SELECT projector_drain();
SELECT * FROM differences;
-- unskip undoes it
SELECT projector_unskip('steps', 'acme', 'a', 2);
SELECT projector_unskip('steps', 'acme', 'a', 2);
SELECT resolution FROM failure WHERE aggregate_id = 'a' AND seq = 2;
DELETE FROM steps WHERE item_id = 'a';
SELECT projector_reset('steps', 'acme', 'a', force => true);
SELECT projector_drain();
DELETE FROM passed_over WHERE (item_id, sequence_number) = ('a', 2);
SELECT * FROM differences;
SELECT resolution FROM failure WHERE aggregate_id = 'a' AND seq = 2;
RESET test.fixed;
-- a new failure holds its aggregate, because of the changed option
SELECT append('a', 'x.');
SELECT projector_drain();
SELECT * FROM work;
SELECT projector_skip('steps', 'acme', 'a', 6, 'enough');
SELECT projector_drain();
INSERT INTO passed_over VALUES ('a', 6);
SELECT * FROM differences;
SELECT * FROM work;

--
-- A batch of only skipped events does not end a drain
--
SELECT projector_alter('steps', '{"options": {"on_error": "skip", "batch_size": 2}}'), projector_set_mode('steps', 'async');
SELECT projector_drain();
SELECT append('n', 'xxxxx..');
SELECT projector_drain();
INSERT INTO passed_over SELECT 'n', g FROM generate_series(1, 5) g;
SELECT * FROM differences;
SELECT append('o', '.....');
SELECT projector_skip('steps', 'acme', 'o', g, 'all of them') FROM generate_series(1, 4) g;
SELECT projector_drain();
INSERT INTO passed_over SELECT 'o', g FROM generate_series(1, 4) g;
SELECT * FROM differences;
SELECT * FROM work;

--
-- Errors that may be temporary: four times the attempts
--
SELECT projector_alter('steps', '{"options": {"on_error": null, "batch_size": null, "max_attempts": 2, "retry_base": "1 h", "retry_max": "1 h"}}');
SELECT set_config('projector.clock_offset', '0', false);
SELECT append('t-' || code, 'x.', code) FROM unnest('{40001,40P01,53100,53200,55P03,55006,58030,58P01,22012,P0001,42P01,54001,57000,XX000}'::text[]) code;
SELECT projector_drain();
SELECT drain_after(2);
SELECT right(aggregate_id, 5) AS code, status, attempts FROM work WHERE status <> 'held';
SELECT drain_after(2 * i) FROM generate_series(2, 6) i;
SELECT status, attempts, string_agg(right(aggregate_id, 5), ' ' ORDER BY aggregate_id) AS codes FROM work WHERE status <> 'held' GROUP BY 1, 2 ORDER BY 1, 2;
SELECT drain_after(14);
SELECT status, attempts, count(*) FROM work GROUP BY 1, 2 ORDER BY 1, 2;
SELECT retries, recoverable, count(*) FROM failure WHERE aggregate_id LIKE 't-%' GROUP BY 1, 2 ORDER BY 1;
-- if the error changes, the last one decides
SELECT append('u', 'x', '40001');
SELECT projector_drain();
SELECT projector_retry('steps', 'acme', 'u', 1), projector_retry('steps', 'acme', 'u', 1), projector_retry('steps', 'acme', 'u', 1);
SELECT * FROM work WHERE aggregate_id = 'u';
CREATE OR REPLACE FUNCTION note_step(e projector.event) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM nextval('calls');
    INSERT INTO steps AS s VALUES (e.tenant_id, e.aggregate_id, e.sequence_number)
    ON CONFLICT (tenant_id, item_id) DO UPDATE SET path = s.path || ' ' || excluded.path;
    IF e.payload ? 'fail' AND current_setting('test.fixed', true) IS DISTINCT FROM 'yes' THEN
        PERFORM nextval('failed_calls');
        RAISE EXCEPTION 'cannot apply event %', e.sequence_number USING ERRCODE = '22012';
    END IF;
END $$;
SELECT drain_after(16);
SELECT * FROM work WHERE aggregate_id = 'u';
SET test.fixed = 'yes';
SELECT count(*) FROM projector_requeue();
SELECT projector_drain();
RESET test.fixed;
SELECT * FROM differences;
SELECT * FROM work;
SELECT count(*) FROM offsets WHERE error_count > 0 OR last_error IS NOT NULL;

--
-- error_count counts failures of the aggregate since its last success
--
SELECT append('k', '.x.x'), append('l', '.');
SELECT projector_drain();
SELECT projector_retry('steps', 'acme', 'k', 2), projector_retry('steps', 'acme', 'k', 2);
SELECT * FROM offsets WHERE aggregate_id IN ('k', 'l');
SET test.fixed = 'yes';
SELECT projector_retry('steps', 'acme', 'k', 2);
RESET test.fixed;
SELECT * FROM offsets WHERE aggregate_id = 'k';
SELECT projector_drain();
SELECT * FROM offsets WHERE aggregate_id = 'k';
-- a skipped event counts as applied
SELECT projector_skip('steps', 'acme', 'k', 4, 'enough');
SELECT append('k', '.');
SELECT projector_drain();
INSERT INTO passed_over VALUES ('k', 4);
SELECT * FROM offsets WHERE aggregate_id = 'k';
SELECT * FROM differences;

--
-- A claim never exceeds its limit, whatever plan is chosen
--
SELECT append('claim-' || i, '.') FROM generate_series(1, 5) i;
ANALYZE projector.apply_outbox;
SELECT count(append('claim-' || i, '.')) FROM generate_series(6, 40) i;
SELECT projector_drain(max_events => 3);
SELECT count(*) AS waiting FROM projector.apply_outbox;
SELECT count(*) AS applied FROM steps WHERE item_id LIKE 'claim-%';
SELECT projector_drain(max_events => 3), projector_drain(max_events => 1);
SELECT count(*) AS waiting FROM projector.apply_outbox;
-- the same in batches, and with retries among them
SELECT append('late-' || i, 'x') FROM generate_series(1, 5) i;
SELECT projector_drain();
SELECT append('claim-' || i, '.') FROM generate_series(1, 10) i;
ANALYZE projector.apply_outbox;
SELECT set_config('projector.clock_offset', '18 h', false);
SET test.fixed = 'yes';
SELECT projector_drain(max_events => 7);
SELECT count(*) AS waiting FROM projector.apply_outbox;
SELECT projector_drain();
RESET test.fixed;
SELECT * FROM differences;
SELECT * FROM work;

--
-- A failing event among a thousand costs one attempt, and delays only its own
-- aggregate
--
SELECT setval('calls', 1, false), setval('failed_calls', 1, false);
INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
    SELECT 'acme', 'p-' || a, n, 'E', CASE WHEN a = 50 AND n = 5 THEN '{"fail": "22012"}' ELSE '{}' END::jsonb
    FROM generate_series(1, 100) a, generate_series(1, 10) n ORDER BY n, a;
SELECT projector_drain();
SELECT status, attempts, count(*) FROM work GROUP BY 1, 2 ORDER BY 1;
SELECT what, aggregate_id, path FROM differences;
SELECT aggregate_id, seq, retries FROM failure WHERE resolution IS NULL;
-- events before it were applied twice, and no event more often
SELECT last_value <= 2000 AS calls FROM calls;
SELECT last_value AS failed_calls FROM failed_calls;
-- many failing events do not cost a thousand calls each
SELECT setval('calls', 1, false), setval('failed_calls', 1, false);
INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
    SELECT 'acme', 'q-' || a, n, 'E', CASE WHEN a % 10 = 0 AND n = 5 THEN '{"fail": "22012"}' ELSE '{}' END::jsonb
    FROM generate_series(1, 100) a, generate_series(1, 10) n ORDER BY n, a;
SELECT projector_drain();
SELECT status, attempts, count(*) FROM work WHERE aggregate_id LIKE 'q-%' GROUP BY 1, 2 ORDER BY 1;
SELECT count(*) FROM differences WHERE aggregate_id LIKE 'q-%';
SELECT last_value <= 4000 AS calls FROM calls;
SELECT last_value AS failed_calls FROM failed_calls;
SET test.fixed = 'yes';
SELECT drain_after(30);
RESET test.fixed;
SELECT * FROM differences;
SELECT * FROM work;
SELECT resolution, count(*) FROM projector.failures GROUP BY 1 ORDER BY 1;

SET client_min_messages = warning;
DROP EXTENSION projector CASCADE;
DROP TABLE steps, passed_over CASCADE;
DROP SEQUENCE calls, failed_calls;
DROP FUNCTION append, drain_after;
