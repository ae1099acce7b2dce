--
-- Mode "follow": an append writes nothing but the event; a drain reads the log.
-- Only failed events, and those that wait for them, have items.
--
CREATE EXTENSION projector;
\set SHOW_CONTEXT never

-- Records the order of an aggregate's events, and for which of them
-- projector_is_replay() was true; fails on payload "bad" until test.fixed is "yes".
CREATE TABLE steps (tenant_id text, item_id text, path text NOT NULL, again text NOT NULL DEFAULT '', PRIMARY KEY (tenant_id, item_id));
CREATE FUNCTION note_step(e projector.event) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO steps AS s VALUES (e.tenant_id, e.aggregate_id, e.sequence_number, CASE WHEN projector_is_replay() THEN e.sequence_number::text ELSE '' END)
    ON CONFLICT (tenant_id, item_id) DO UPDATE
    SET path = s.path || ' ' || excluded.path, again = trim(s.again || ' ' || excluded.again);
    IF e.payload = '"bad"' AND current_setting('test.fixed', true) IS DISTINCT FROM 'yes' THEN
        RAISE EXCEPTION 'bad event';
    END IF;
END $$;
-- The oracle: each aggregate's events, in sequence, of the types subscribed to.
CREATE VIEW oracle AS
    SELECT tenant_id::text, aggregate_id::text, string_agg(sequence_number::text, ' ' ORDER BY sequence_number) AS path
    FROM projector.events e JOIN projector.projections p ON p.event_types IS NULL OR e.event_type = ANY (p.event_types) GROUP BY 1, 2;
CREATE VIEW model AS SELECT tenant_id, item_id, path FROM steps;
CREATE VIEW differences AS
    SELECT 'missing' AS what, * FROM (TABLE oracle EXCEPT ALL TABLE model) x
    UNION ALL SELECT 'unexpected', * FROM (TABLE model EXCEPT ALL TABLE oracle) x;
CREATE VIEW work AS
    SELECT tenant_id, aggregate_id, sequence_number AS seq, status, attempt_count AS attempts FROM projector.outbox ORDER BY 1, 2, 3;
-- How many of a tenant's events its cursor has passed.
CREATE VIEW cursor AS
    SELECT c.tenant_id, c.state, c.mode,
           (SELECT count(*) FROM projector.events e WHERE e.tenant_id = c.tenant_id AND e.log_seq <= c.last_log_seq) AS passed,
           (SELECT count(*) FROM projector.events e WHERE e.tenant_id = c.tenant_id) AS events
    FROM projector.projection_cursors c ORDER BY 1;
CREATE FUNCTION append(tenant text, item text, payload jsonb DEFAULT '{}', type text DEFAULT 'E') RETURNS bigint LANGUAGE sql AS $$
    SELECT projector_append(tenant, item, type, payload) $$;

--
-- Appends queue nothing; a drain reads the log
--
SELECT append('acme', 'old'), append('acme', 'old');
SELECT projector_create('steps', handler => 'note_step', targets => '{steps}', mode => 'follow',
                        options => '{"max_attempts": 2, "retry_base": "1 h", "retry_max": "1 h"}');
SELECT projector_drain();
SELECT append('acme', 'a'), append('acme', 'b'), append('acme', 'a'), append('beta', 'a');
SELECT * FROM work;
SELECT * FROM model ORDER BY 1, 2;
SELECT * FROM cursor;
SELECT projector_drain();
SELECT * FROM differences;
SELECT * FROM work;
SELECT * FROM cursor;
SELECT projector_drain();
-- what was in the log before is replayed, what came later is not
SELECT tenant_id, item_id, path, again FROM steps ORDER BY 1, 2;
-- a part: by number, by tenant; a new tenant
SELECT append('acme', 'a'), append('acme', 'b'), append('acme', 'a'), append('beta', 'a'), append('corp', 'new');
SELECT projector_drain(max_events => 1), projector_drain(max_events => 1);
SELECT * FROM cursor;
SELECT projector_drain('steps', 'corp');
SELECT projector_drain('steps', 'beta');
SELECT projector_drain('steps', 'nobody');
SELECT * FROM cursor;
SELECT projector_drain();
SELECT * FROM differences;
-- a plain INSERT of many, in small batches
SELECT projector_alter('steps', '{"options": {"batch_size": 7}}');
INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
    SELECT t, 'many-' || a, n, 'E', '{}' FROM (VALUES ('acme'), ('beta')) v (t), generate_series(1, 5) a, generate_series(1, 20) n ORDER BY n, a, t;
SELECT count(*) FROM projector.apply_outbox;
SELECT projector_drain();
SELECT * FROM differences;
SELECT * FROM cursor;
-- a transaction's own events are not read before they are committed
BEGIN;
SELECT append('acme', 'mine'), append('acme', 'a');
SELECT projector_drain();
SELECT item_id FROM steps WHERE item_id = 'mine';
SELECT * FROM work;
COMMIT;
SELECT projector_drain();
SELECT * FROM differences;
BEGIN;
SELECT append('acme', 'a');
ROLLBACK;
SELECT projector_drain();
SELECT append('acme', 'a');
SELECT projector_drain();
SELECT * FROM differences;
-- nothing of this was replayed
SELECT item_id, again FROM steps WHERE again <> '' ORDER BY 1;

--
-- A failing event holds its aggregate only
--
SELECT append('acme', 'x'), append('acme', 'x', '"bad"'), append('acme', 'x'), append('acme', 'y'), append('beta', 'x');
SELECT projector_drain();
SELECT * FROM model WHERE item_id IN ('x', 'y') ORDER BY 1, 2;
SELECT * FROM work;
SELECT * FROM cursor;
SELECT last_sequence_number, error_count, last_error FROM projector.offsets WHERE aggregate_id = 'x' AND tenant_id = 'acme';
-- later ones are held too, once a drain has read them
SELECT append('acme', 'x'), append('acme', 'y'), append('acme', 'x');
SELECT * FROM work;
SELECT projector_drain();
SELECT * FROM work;
SELECT projector_retry('steps', 'acme', 'x', 3), projector_retry('steps', 'acme', 'x', 2), projector_retry('steps', 'acme', 'y', 1);
SELECT * FROM work;
-- requeue: the aggregate continues, in order, including new events
SELECT append('acme', 'x');
SELECT projector_requeue('steps', 'acme', 'x', 2), projector_requeue('steps', 'acme', 'x', 3);
SET test.fixed = 'yes';
SELECT projector_drain();
RESET test.fixed;
SELECT * FROM model WHERE item_id IN ('x', 'y') ORDER BY 1, 2;
SELECT * FROM differences;
SELECT * FROM work;
SELECT resolution, count(*) FROM projector.failures GROUP BY 1;
-- none of these was replayed: they are applied late, but for the first time
SELECT tenant_id, item_id, path, again FROM steps WHERE item_id = 'x' ORDER BY 1;
-- retried when it is due; skipped; dead and requeued with others
SELECT append('acme', 'x', '"bad"'), append('acme', 'x'), append('acme', 'y', '"bad"'), append('acme', 'y'), append('acme', 'z', '"bad"'), append('acme', 'z');
SELECT projector_drain();
SELECT projector_skip('steps', 'acme', 'z', 1, 'test data');
SET projector.clock_offset = '2 h';
SELECT projector_drain();
SELECT * FROM work;
SELECT * FROM projector_requeue() ORDER BY 3;
SET test.fixed = 'yes';
SELECT projector_drain();
RESET test.fixed;
RESET projector.clock_offset;
SELECT * FROM differences;
SELECT * FROM work;
SELECT item_id, again FROM steps WHERE again <> '' ORDER BY 1;
SELECT projector_unskip('steps', 'acme', 'z', 1);
DELETE FROM steps WHERE item_id = 'z';
SELECT projector_reset('steps', 'acme', 'z', force => true);
SET test.fixed = 'yes';
SELECT projector_drain();
RESET test.fixed;
SELECT * FROM differences;
SELECT item_id, path, again FROM steps WHERE again <> '' ORDER BY 1;

--
-- From mode to mode, with events in between, and failed ones in every mode
--
CREATE FUNCTION append_some(mode text) RETURNS void LANGUAGE sql AS $$
    SELECT append(t, 'chain') FROM unnest('{acme,beta}'::text[]) t;
    SELECT append(t, mode) FROM unnest('{acme,beta}'::text[]) t;
    SELECT append(t, 'held', CASE WHEN mode LIKE 'async%' THEN '"bad"' ELSE '{}' END::jsonb) FROM unnest('{acme,beta}'::text[]) t;
    SELECT append('new-' || mode, 'chain');
$$;
CREATE FUNCTION next_mode(mode text, step int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM append_some('before-' || step);
    PERFORM projector_set_mode('steps', mode);
    PERFORM append_some(mode || '-' || step);
END $$;
-- each change of mode finds events that no drain has read yet …
SELECT next_mode('async', 1);
SELECT projector_drain();
SELECT next_mode('follow', 2);
SELECT projector_drain();
SELECT * FROM work;
SELECT next_mode('async', 3);
SELECT next_mode('inline', 4);
SELECT projector_drain();
SELECT next_mode('off', 5);
SELECT projector_drain();
SELECT next_mode('follow', 6);
SELECT projector_drain();
SELECT next_mode('inline', 7);
SELECT next_mode('follow', 8);
SELECT next_mode('off', 9);
SELECT next_mode('async', 10);
SELECT next_mode('follow', 11);
SELECT projector_drain();
-- … and all are applied, except those that are held
SELECT what, tenant_id, aggregate_id FROM differences ORDER BY 2, 3, 1;
SELECT tenant_id, aggregate_id, status, count(*) FROM work GROUP BY 1, 2, 3 ORDER BY 1, 2, 3;
SELECT * FROM model WHERE item_id = 'held' ORDER BY 1;
-- the failed ones are applied, one after the other, in every mode
SET test.fixed = 'yes';
SELECT projector_requeue('steps', t, 'held', 2) FROM unnest('{acme,beta}'::text[]) t;
SELECT projector_drain();
RESET test.fixed;
SELECT * FROM differences;
SELECT * FROM work;
SELECT state, mode, passed = events AS at_the_end, count(*) FROM cursor GROUP BY 1, 2, 3;
-- in none of these modes was anything replayed
SELECT tenant_id, item_id, again FROM steps WHERE again <> '' ORDER BY 1, 2;

--
-- A canary: one tenant follows, the others are queued; and the other way round
--
SELECT projector_set_mode('steps', 'async');
SELECT projector_drain();
SELECT projector_set_mode('steps', 'follow', 'acme');
SELECT append('acme', 'c', '"bad"'), append('acme', 'c'), append('beta', 'c', '"bad"'), append('beta', 'c'), append('delta', 'c');
SELECT * FROM work;
SELECT projector_drain();
SELECT * FROM work;
SELECT append('acme', 'c'), append('beta', 'c'), append('acme', 'd'), append('beta', 'd');
SELECT * FROM work;
SELECT projector_drain('steps', 'acme');
SELECT projector_drain('steps', 'beta');
SELECT * FROM work;
SELECT append('acme', 'd'), append('beta', 'd');
SELECT projector_set_mode('steps', 'follow'), projector_set_mode('steps', 'async', 'acme');
SELECT append('acme', 'd'), append('beta', 'd');
SELECT * FROM work WHERE aggregate_id = 'd';
SELECT projector_drain();
SELECT projector_set_mode('steps', NULL, 'acme');
SELECT append('acme', 'd'), append('beta', 'd'), append('gamma', 'd');
SELECT * FROM work WHERE aggregate_id = 'd';
SET test.fixed = 'yes';
SET projector.clock_offset = '2 h';
SELECT projector_drain();
RESET projector.clock_offset;
RESET test.fixed;
SELECT * FROM differences;
SELECT * FROM work;
SELECT * FROM cursor WHERE tenant_id IN ('acme', 'beta', 'delta', 'gamma');
SELECT tenant_id, item_id, again FROM steps WHERE again <> '' ORDER BY 1, 2;

--
-- What is replayed: the whole log, when a projection is new or was reset
--
SELECT projector_drop('steps');
TRUNCATE steps;
SELECT projector_create('steps', handler => 'note_step', targets => '{steps}', mode => 'follow', options => '{"retry_base": "1 h", "retry_max": "1 h"}');
SELECT projector_drain() > 0 AS read, (SELECT count(*) FROM steps WHERE path <> again) AS not_replayed;
SELECT append('acme', 'a'), append('zeta', 'first');
SELECT projector_drain();
SELECT tenant_id, item_id FROM steps WHERE path <> again ORDER BY 1, 2;
-- an event that fails in a replay is replayed after its repair, with the held ones
SELECT tenant_id, aggregate_id, status, count(*) FROM work GROUP BY 1, 2, 3 ORDER BY 1, 2, 3;
SELECT append('acme', 'c');
SET test.fixed = 'yes';
SET projector.clock_offset = '2 h';
SELECT projector_drain() > 0 AS mended;
RESET projector.clock_offset;
RESET test.fixed;
SELECT tenant_id, item_id, path, again FROM steps WHERE path <> again ORDER BY 1, 2;
-- one tenant is reset: the others do not change
DELETE FROM steps WHERE tenant_id = 'acme';
SELECT projector_reset('steps', 'acme', force => true) > 0 AS reset;
SELECT append('beta', 'first');
SET test.fixed = 'yes';
SELECT projector_drain() > 0 AS replayed;
RESET test.fixed;
SELECT tenant_id, item_id, path, again FROM steps WHERE path <> again ORDER BY 1, 2;
-- off and on again: events appended in between are new, not replayed
SELECT projector_set_mode('steps', 'off');
SELECT append('acme', 'off'), append('eta', 'off');
SELECT projector_drain();
SELECT projector_set_mode('steps', 'follow');
SELECT projector_drain();
SELECT tenant_id, item_id, path, again FROM steps WHERE item_id = 'off' ORDER BY 1, 2;
SELECT * FROM differences;

--
-- Only the types subscribed to
--
SELECT projector_drop('steps');
TRUNCATE steps;
SELECT projector_create('steps', handler => 'note_step', targets => '{steps}', mode => 'follow', event_types => '{F,G}');
SELECT projector_drain();
SELECT append('acme', 'typed', '{}', t) FROM unnest('{E,F,F,E,G,E,E,G,F,E}'::text[]) t;
SELECT append('acme', 'other') FROM generate_series(1, 3);
SELECT append('beta', 'typed', CASE n WHEN 4 THEN '"bad"' ELSE '{}' END::jsonb, CASE WHEN n % 2 = 0 THEN 'G' ELSE 'E' END) FROM generate_series(1, 8) n;
SELECT projector_drain();
SELECT * FROM model ORDER BY 1;
SELECT * FROM work;
SELECT passed = events AS at_the_end, count(*) FROM cursor GROUP BY 1;
SET test.fixed = 'yes';
SELECT projector_retry('steps', 'beta', 'typed', 4);
SELECT projector_drain();
RESET test.fixed;
SELECT * FROM model ORDER BY 1;
SELECT * FROM differences;
-- a tenant with other events only: the cursor passes them, and they are not read again
SELECT append('other', 'x') FROM generate_series(1, 3);
SELECT projector_drain();
SELECT * FROM cursor WHERE tenant_id = 'other';

SET client_min_messages = warning;
DROP EXTENSION projector CASCADE;
DROP TABLE steps CASCADE;
DROP FUNCTION append, append_some, next_mode;
