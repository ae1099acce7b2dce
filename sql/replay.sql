--
-- Replays of a part or all of the log: tenants switched on one after the other,
-- handlers that append, failed events that are no longer wanted or whose
-- aggregate is reset.
--
CREATE EXTENSION projector;
\set SHOW_CONTEXT never
\pset format unaligned
\pset tuples_only on

-- Records the order of events; fails on payload "bad" until test.fixed is "yes".
CREATE TABLE steps (tenant_id text, item_id text, steps text NOT NULL, PRIMARY KEY (tenant_id, item_id));
CREATE FUNCTION note_step(e projector.event) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO steps AS s VALUES (e.tenant_id, e.aggregate_id, e.sequence_number)
    ON CONFLICT (tenant_id, item_id) DO UPDATE SET steps = s.steps || ' ' || excluded.steps;
    IF e.payload = '"bad"' AND current_setting('test.fixed', true) IS DISTINCT FROM 'yes' THEN
        RAISE EXCEPTION 'bad event';
    END IF;
END $$;
CREATE FUNCTION append_to_all(item text) RETURNS void LANGUAGE sql AS $$
    SELECT projector_append(tenant, item, 'E', '{}') FROM unnest('{acme,beta,corp}'::text[]) tenant
$$;
CREATE VIEW work AS
    SELECT tenant_id, aggregate_id, sequence_number, status FROM projector.outbox;

--
-- A canary: a projection that is off, switched on for one tenant
--
SELECT append_to_all('a'), append_to_all('a');
SELECT projector_create('steps', handler => 'note_step', targets => '{steps}', mode => 'off');
SELECT projector_drain();
SELECT projector_drain('steps', 'acme');
-- async: the tenant's old events are applied, its new ones are queued; other
-- tenants get nothing
SELECT projector_set_mode('steps', 'async', 'acme');
SELECT append_to_all('b');
SELECT * FROM work ORDER BY 1, 2, 3;
SELECT projector_drain();
SELECT * FROM steps ORDER BY 1, 2;
SELECT append_to_all('a');
SELECT projector_drain();
SELECT projector_drain('steps', 'beta');
SELECT * FROM steps ORDER BY 1, 2;
-- inline for another tenant, which appends before a drain has read its log
SELECT projector_set_mode('steps', 'inline', 'beta');
SELECT append_to_all('a');
SELECT * FROM steps ORDER BY 1, 2;
SELECT projector_drain();
SELECT append_to_all('b');
SELECT * FROM steps ORDER BY 1, 2;
SELECT * FROM work ORDER BY 1, 2, 3;
-- switching all on applies the rest; the first tenants are not affected
SELECT projector_set_mode('steps', 'inline');
SELECT projector_drain();
SELECT append_to_all('b');
SELECT * FROM steps ORDER BY 1, 2;
SELECT * FROM work ORDER BY 1, 2, 3;
SELECT projector_set_mode('steps', NULL, 'acme'), projector_set_mode('steps', NULL, 'beta');
SELECT append_to_all('c');
SELECT projector_drain();
SELECT * FROM steps ORDER BY 1, 2;
SELECT * FROM work ORDER BY 1, 2, 3;

-- off: a drain does not move past new events, even if it is called for that
-- tenant only
SELECT projector_set_mode('steps', 'off');
SELECT append_to_all('d');
SELECT projector_drain('steps', 'acme');
SELECT projector_drain('steps');
SELECT projector_drain(tenant_id => 'beta');
SELECT projector_set_mode('steps', 'async');
SELECT projector_drain();
SELECT * FROM steps WHERE item_id = 'd' ORDER BY 1;
-- the same for one tenant that is off while the others are on
SELECT projector_set_mode('steps', 'off', 'acme');
SELECT append_to_all('e');
SELECT projector_drain('steps', 'acme');
SELECT projector_drain();
SELECT * FROM steps WHERE item_id = 'e' ORDER BY 1;
SELECT append_to_all('e');
SELECT projector_drain();
SELECT projector_set_mode('steps', NULL, 'acme');
SELECT append_to_all('e');
SELECT projector_drain();
SELECT * FROM steps WHERE item_id = 'e' ORDER BY 1;
-- switched on and off again before a drain ran
SELECT projector_set_mode('steps', 'off', 'beta');
SELECT append_to_all('f');
SELECT projector_set_mode('steps', 'inline', 'beta'), projector_set_mode('steps', 'off', 'beta');
SELECT projector_drain('steps', 'beta');
SELECT append_to_all('f');
SELECT projector_set_mode('steps', NULL, 'beta');
SELECT projector_drain();
SELECT * FROM steps WHERE item_id = 'f' ORDER BY 1;
-- nothing was missed and nothing was applied twice
SELECT count(*), sum(last_sequence_number) = (SELECT count(*) FROM projector.events) AS complete FROM projector.offsets;
SELECT count(*) FROM projector.apply_outbox;
SELECT projector_drop('steps');

--
-- Handlers that append do so once per event
--
CREATE TABLE calls (n bigint GENERATED ALWAYS AS IDENTITY, tenant_id text, aggregate_id text, sequence_number bigint, replay boolean);
CREATE FUNCTION place_order(e projector.event) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO calls (tenant_id, aggregate_id, sequence_number, replay)
    VALUES (e.tenant_id, e.aggregate_id, e.sequence_number, projector_is_replay());
    PERFORM projector_append(e.tenant_id, e.aggregate_id || '-orders', 'Ordered', e.payload);
END $$;
CREATE VIEW orders AS
    SELECT aggregate_id, array_agg(payload ORDER BY sequence_number) AS orders
    FROM projector.events WHERE event_type = 'Ordered' GROUP BY 1;
CREATE VIEW stuck AS
    SELECT f.aggregate_id, f.sequence_number, f.error_code, o.status, o.attempt_count
    FROM projector.failures f JOIN projector.outbox o USING (projection_name, tenant_id, aggregate_id, sequence_number)
    WHERE f.resolved_at IS NULL;
SELECT projector_is_replay();
SELECT projector_create('orders', handler => 'place_order', targets => '{calls}', mode => 'inline', event_types => '{Low}',
                        options => '{"may_append": true, "retry_base": "1 h", "retry_max": "1 h"}');
SELECT projector_drain();
-- inline, and from the queue
SELECT projector_append('acme', 'x', 'Low', '1');
SELECT projector_set_mode('orders', 'async');
SELECT projector_append('acme', 'x', 'Low', '2');
SELECT projector_append('acme', 'y', 'Low', '3');
SELECT projector_drain();
SELECT projector_set_mode('orders', 'inline');
SELECT * FROM orders ORDER BY 1;
SELECT aggregate_id, sequence_number, replay FROM calls ORDER BY n;
TRUNCATE calls;
-- an event that failed when it was appended is not replayed when it is tried
-- again, by hand or by a drain
SELECT projector_alter('orders', '{"options": {"may_append": false}}');
SELECT projector_append('acme', 'z', 'Low', '4');
SELECT projector_append('acme', 'zz', 'Low', '5');
SELECT * FROM stuck ORDER BY 1, 2;
SELECT projector_alter('orders', '{"options": {"may_append": true}}');
SELECT projector_retry('orders', 'acme', 'z', 1);
SET projector.clock_offset = '2 h';
SELECT projector_drain();
SELECT * FROM orders ORDER BY 1;
SELECT aggregate_id, sequence_number, replay FROM calls ORDER BY n;
SELECT * FROM stuck ORDER BY 1, 2;
-- replayed from the log
SELECT projector_reset('orders', force => true);
SELECT projector_drain();
SELECT * FROM stuck ORDER BY 1, 2;
SELECT * FROM work ORDER BY 1, 2, 3;
-- tried again when it is due, and by hand
SET projector.clock_offset = '4 h';
SELECT projector_drain();
SELECT * FROM stuck ORDER BY 1, 2;
SELECT projector_retry('orders', 'acme', 'x', 1);
-- one aggregate replayed
SELECT projector_reset('orders', 'acme', 'y', force => true);
SELECT projector_drain();
SELECT * FROM stuck ORDER BY 1, 2;
-- applied as a backlog by an append
SELECT projector_reset('orders', 'acme', force => true);
SELECT projector_append('acme', 'x', 'Low', '6');
SELECT * FROM stuck ORDER BY 1, 2;
SELECT projector_drain();
SELECT * FROM stuck ORDER BY 1, 2;
-- each was ordered once
SELECT * FROM orders ORDER BY 1;
SELECT DISTINCT error_message, error_detail FROM projector.failures WHERE resolved_at IS NULL;

-- a handler that checks projector_is_replay() can be replayed, and appends nothing
CREATE OR REPLACE FUNCTION place_order(e projector.event) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO calls (tenant_id, aggregate_id, sequence_number, replay)
    VALUES (e.tenant_id, e.aggregate_id, e.sequence_number, projector_is_replay());
    IF NOT projector_is_replay() THEN
        PERFORM projector_append(e.tenant_id, e.aggregate_id || '-orders', 'Ordered', e.payload);
    END IF;
END $$;
TRUNCATE calls;
SET projector.clock_offset = '8 h';
SELECT projector_drain();
RESET projector.clock_offset;
SELECT aggregate_id, sequence_number, replay FROM calls ORDER BY aggregate_id, n;
SELECT * FROM orders ORDER BY 1;
SELECT * FROM work ORDER BY 1, 2, 3;
SELECT resolution, count(*) FROM projector.failures GROUP BY 1;
-- a reset of everything, of an aggregate, and an append that applies a backlog:
-- the backlog is replayed, the event itself is not
TRUNCATE calls;
SELECT projector_reset('orders', force => true);
SELECT projector_drain();
SELECT aggregate_id, sequence_number, replay FROM calls ORDER BY aggregate_id, n;
TRUNCATE calls;
SELECT projector_reset('orders', 'acme', 'x', force => true);
SELECT projector_drain();
SELECT aggregate_id, sequence_number, replay FROM calls ORDER BY n;
TRUNCATE calls;
SELECT projector_reset('orders', force => true);
SELECT projector_append('acme', 'y', 'Low', '7');
SELECT aggregate_id, sequence_number, replay FROM calls ORDER BY n;
SELECT * FROM orders ORDER BY 1;
SELECT projector_drain();
SELECT count(*) FILTER (WHERE NOT replay) AS live, count(*) AS calls FROM calls;
-- a new projection replays what was there before it
TRUNCATE calls;
SELECT projector_drop('orders');
SELECT projector_create('orders', handler => 'place_order', targets => '{calls}', event_types => '{Low}',
                        options => '{"may_append": true}');
SELECT projector_drain();
SELECT bool_and(replay) AS replay, count(*) AS calls FROM calls;
SELECT count(*) FROM projector.events WHERE event_type = 'Ordered';
SELECT projector_is_replay();
SELECT projector_drop('orders');

--
-- A failed event of a type that is no longer wanted holds nothing
--
TRUNCATE steps;
SELECT projector_create('steps', handler => 'note_step', targets => '{steps}', mode => 'inline', event_types => '{F,G}',
                        options => '{"retry_base": "1 h", "retry_max": "1 h", "max_attempts": 2}');
SELECT projector_append_batch('acme', item, '[{"event_type": "F", "payload": 1}, {"event_type": "G", "payload": "bad"},
    {"event_type": "F", "payload": 3}, {"event_type": "F", "payload": 4}]') FROM unnest('{g,h,i}'::text[]) item;
SELECT projector_drain();
-- one of them is dead
SELECT projector_retry('steps', 'acme', 'i', 2);
SELECT * FROM work ORDER BY 1, 2, 3;
SELECT projector_alter('steps', '{"event_types": ["F"]}');
-- they are no longer queued, failed or dead, and the held events continue
SELECT * FROM work ORDER BY 1, 2, 3;
SELECT projector_retry('steps', 'acme', 'h', 2);
SELECT projector_drain();
SELECT * FROM steps ORDER BY 1, 2;
SELECT * FROM work ORDER BY 1, 2, 3;
SELECT aggregate_id, last_sequence_number FROM projector.offsets ORDER BY 1;
SELECT aggregate_id, resolution FROM projector.failures ORDER BY 1;
SELECT projector_drop('steps');

--
-- A handler that receives what it appends: a drain applies the events that exist
-- when it begins, and leaves the rest to the next
--
CREATE FUNCTION echo(e projector.event) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM public.projector_append(e.tenant_id, e.aggregate_id, e.event_type, e.payload);
END $$;
SELECT projector_create('echo', handler => 'echo', event_types => '{Echo}', options => '{"may_append": true}');
SELECT projector_drain('echo');
SELECT projector_append('acme', 'valley', 'Echo', '1');
SELECT projector_drain('echo');
SELECT projector_drain('echo');
SELECT count(*) FROM projector.events WHERE event_type = 'Echo';
SELECT projector_drop('echo');
DROP FUNCTION echo;

--
-- An aggregate with an open failure is reset
--
TRUNCATE steps;
SELECT projector_create('steps', handler => 'note_step', targets => '{steps}', mode => 'inline', event_types => '{H}',
                        options => '{"retry_base": "1 h"}');
SELECT projector_append_batch('acme', item, '[{"event_type": "H", "payload": 1}, {"event_type": "H", "payload": "bad"},
    {"event_type": "H", "payload": 3}]') FROM unnest('{j,k}'::text[]) item;
SELECT projector_drain();
SELECT aggregate_id, sequence_number, retry_count, resolution FROM projector.failures ORDER BY 1;
-- not repaired: it is still the same failure
SELECT projector_reset('steps', 'acme', 'j', force => true);
SELECT projector_drain();
SELECT aggregate_id, sequence_number, retry_count, resolution FROM projector.failures ORDER BY 1;
SELECT * FROM work ORDER BY 1, 2, 3;
-- repaired: it is resolved, for that aggregate only
SET test.fixed = 'yes';
SELECT projector_reset('steps', 'acme', 'j', force => true);
SELECT projector_drain();
SELECT aggregate_id, sequence_number, resolution FROM projector.failures ORDER BY 1;
SELECT * FROM work ORDER BY 1, 2, 3;
SELECT * FROM steps ORDER BY 1, 2;
SELECT aggregate_id, last_sequence_number FROM projector.offsets ORDER BY 1;
-- repaired and reset as a whole
SELECT projector_reset('steps', force => true);
SELECT projector_drain();
RESET test.fixed;
SELECT aggregate_id, sequence_number, resolution FROM projector.failures ORDER BY 1;
SELECT * FROM steps ORDER BY 1, 2;

SET client_min_messages = warning;
DROP EXTENSION projector CASCADE;
DROP TABLE steps, calls;
DROP FUNCTION append_to_all(text);
RESET client_min_messages;
