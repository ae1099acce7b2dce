--
-- Ordering "log": a tenant's events are applied in the order of the log, across
-- aggregates.  A failed event stops its tenant, and no other.
--
CREATE EXTENSION projector;
\set SHOW_CONTEXT never

-- Every handler records its events in the order of its calls.  An event
-- with "fail" in its payload fails until test.fixed is "yes".
CREATE TABLE seen (n bigint GENERATED ALWAYS AS IDENTITY, name text, tenant_id text, step text, replay boolean);
CREATE FUNCTION new_handler(name text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format($f$
        CREATE FUNCTION %I(e projector.event) RETURNS void LANGUAGE plpgsql AS $h$
        BEGIN
            INSERT INTO seen (name, tenant_id, step, replay)
            VALUES (%L, e.tenant_id, e.aggregate_id || e.sequence_number, projector_is_replay());
            IF e.payload ? 'fail' AND current_setting('test.fixed', true) IS DISTINCT FROM 'yes' THEN
                RAISE EXCEPTION 'cannot apply %%', e.aggregate_id || e.sequence_number USING ERRCODE = e.payload ->> 'fail';
            END IF;
        END $h$ $f$, 'note_' || name, name);
    RETURN 'note_' || name;
END $$;
-- The oracle: the log without skipped events.
CREATE TABLE passed_over (name text, tenant_id text, step text);
CREATE VIEW wanted AS
    SELECT p.name, e.tenant_id, e.log_seq, e.aggregate_id || e.sequence_number AS step
    FROM projector.projections p JOIN projector.events e ON p.event_types IS NULL OR e.event_type = ANY (p.event_types)
    WHERE (p.name, e.tenant_id, e.aggregate_id || e.sequence_number) NOT IN (TABLE passed_over);
CREATE VIEW oracle AS
    SELECT name::text, tenant_id::text, string_agg(step, ' ' ORDER BY log_seq) AS steps FROM wanted GROUP BY 1, 2;
CREATE VIEW model AS
    SELECT name, tenant_id, string_agg(step, ' ' ORDER BY n) AS steps FROM seen GROUP BY 1, 2;
CREATE VIEW differences AS
    SELECT 'missing' AS what, * FROM (TABLE oracle EXCEPT ALL TABLE model) x
    UNION ALL SELECT 'unexpected', * FROM (TABLE model EXCEPT ALL TABLE oracle) x;
-- How many of a tenant's events its cursor has passed.
CREATE VIEW cursor AS
    SELECT p.name, c.tenant_id, c.state,
           (SELECT count(*) FROM projector.events e WHERE e.tenant_id = c.tenant_id AND e.log_seq <= c.last_log_seq) AS passed,
           (SELECT count(*) FROM projector.events e WHERE e.tenant_id = c.tenant_id) AS events
    FROM projector.projection_cursors c JOIN projector.projections p USING (projection_id);
CREATE VIEW work AS
    SELECT projection_name AS name, tenant_id, aggregate_id || sequence_number AS step, status, attempt_count AS attempts, last_error
    FROM projector.outbox ORDER BY 1, 2, log_seq;

--
-- The same order in every mode and with every batch size
--
CREATE FUNCTION append_many(seed int) RETURNS bigint LANGUAGE sql AS $$
    WITH e AS (
        SELECT t, a, row_number() OVER (PARTITION BY t, a) + coalesce((SELECT max(sequence_number) FROM projector.events
               WHERE tenant_id = t AND aggregate_id = a), 0) AS seq, md5(t || a || i || seed) AS h
        FROM unnest('{acme,beta,corp}'::text[]) t, unnest('{a,b,c,d}'::text[]) a, generate_series(1, 12) i)
    , inserted AS (INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
        SELECT t, a, seq, CASE WHEN h < '5' THEN 'E' WHEN h < 'a' THEN 'F' ELSE 'G' END, '{}'
        FROM (SELECT *, rank() OVER (PARTITION BY t, a ORDER BY seq) + length(ltrim(h, '0123456789')) * 0.01 AS place FROM e) e
        ORDER BY place, h RETURNING 1)
    SELECT count(*) FROM inserted
$$;
SELECT append_many(1);
SELECT projector_create(mode || '_' || size, handler => new_handler(mode || '_' || size), targets => '{seen}', mode => mode,
                        ordering => 'log', options => jsonb_build_object('batch_size', size, 'shared_targets', true))
FROM unnest('{async,follow}'::text[]) mode, unnest('{1,3,1000}'::int[]) size;
SELECT projector_create(mode || '_typed', handler => new_handler(mode || '_typed'), targets => '{seen}', mode => mode,
                        ordering => 'log', event_types => '{E,G}', options => '{"batch_size": 4, "shared_targets": true}')
FROM unnest('{async,follow}'::text[]) mode;
-- created before the drain that reads the log, and after
SELECT append_many(2);
SELECT projector_drain() = (SELECT count(*) FROM wanted) AS all_applied;
SELECT * FROM differences;
SELECT append_many(3);
SELECT projection_name, count(*) = (SELECT count(*) FROM projector.events e WHERE e.log_seq > min(o.log_seq) - 1
    AND (o.projection_name <> 'async_typed' OR e.event_type <> 'F')) AS all_queued
FROM projector.outbox o GROUP BY 1 ORDER BY 1;
-- in small batches: the same order, and items are deleted as the cursor passes them
SELECT projector_drain(name, tenant_id => 'acme', max_events => 5) FROM projector.projections ORDER BY 1;
SELECT (SELECT min(log_seq) FROM projector.apply_outbox o WHERE (o.projection_id, o.tenant_id) = (c.projection_id, c.tenant_id))
       > c.last_log_seq AS rows_are_behind_it, count(*)
FROM projector.projection_cursors c WHERE tenant_id = 'acme' GROUP BY 1;
SELECT projector_drain() > 0 AS rest_applied;
SELECT * FROM differences;
SELECT count(*) AS waiting FROM projector.apply_outbox;
SELECT state, passed = events AS at_the_end, count(*) FROM cursor GROUP BY 1, 2;
SELECT name, count(DISTINCT tenant_id) AS tenants, count(*) AS events FROM seen GROUP BY 1 ORDER BY 1;
-- the log interleaves aggregates, otherwise this would show nothing
SELECT count(*) > 100 AS interleaved FROM (SELECT aggregate_id <> lag(aggregate_id) OVER (PARTITION BY tenant_id ORDER BY log_seq) AS other
    FROM projector.events) x WHERE other;
-- nothing is left, and the offsets are right
SELECT projector_drain();
SELECT count(*) AS wrong_offsets FROM (
    SELECT p.name, e.tenant_id, e.aggregate_id, max(e.sequence_number) FROM projector.projections p
    JOIN projector.events e ON p.event_types IS NULL OR e.event_type = ANY (p.event_types) GROUP BY 1, 2, 3
    EXCEPT SELECT projection_name, tenant_id, aggregate_id, last_sequence_number FROM projector.offsets) x;
SELECT projector_drop(name) FROM projector.projections ORDER BY name;
TRUNCATE seen;

--
-- A failing event stops its tenant
--
SET session_replication_role = replica;
DELETE FROM projector.events;
RESET session_replication_role;
SELECT projector_create('queue', handler => new_handler('queue'), targets => '{seen}', ordering => 'log',
                        options => '{"shared_targets": true, "retry_base": "1 h", "retry_max": "1 h"}');
SELECT projector_create('mirror', handler => new_handler('mirror'), targets => '{seen}', mode => 'follow', ordering => 'log',
                        options => '{"shared_targets": true, "retry_base": "1 h", "retry_max": "1 h"}');
SELECT projector_drain();
CREATE FUNCTION append(tenant text, aggregate text, payload jsonb DEFAULT '{}') RETURNS void LANGUAGE sql AS $$
    SELECT projector_append(tenant, aggregate, 'E', payload) $$;
CREATE FUNCTION append_six(bad text) RETURNS void LANGUAGE sql AS $$
    SELECT append('acme', 'a'), append('acme', 'b'), append('acme', 'a', jsonb_build_object('fail', bad)),
           append('acme', 'b'), append('acme', 'a'), append('beta', 'c') $$;
SELECT append_six('22012');
SELECT projector_drain();
SELECT * FROM model ORDER BY 1, 2;
SELECT * FROM work;
SELECT * FROM cursor ORDER BY 1, 2;
-- other tenants continue; a drain does not try it before it is due
SELECT append('acme', 'b'), append('beta', 'c');
SELECT projector_drain();
SELECT * FROM model ORDER BY 1, 2;
SELECT * FROM work;
-- each time it is due it costs one attempt; after the eighth it is dead
CREATE FUNCTION drain_later(hours int) RETURNS bigint LANGUAGE sql AS $$
    SELECT set_config('projector.clock_offset', hours || ' h', false);
    SELECT projector_drain() $$;
SELECT drain_later(2 * i) FROM generate_series(1, 6) i;
SELECT * FROM work;
SELECT * FROM cursor WHERE tenant_id = 'acme' ORDER BY 1;
SELECT drain_later(14);
SELECT * FROM work;
SELECT * FROM cursor WHERE tenant_id = 'acme' ORDER BY 1;
SELECT projection_name, aggregate_id, sequence_number, error_code, retry_count, recoverable, resolution FROM projector.failures ORDER BY 1;
-- stopped: nothing is tried automatically, even if it would work; other tenants continue
SELECT append('beta', 'c'), append('acme', 'd');
SET test.fixed = 'yes';
SELECT drain_later(1000);
RESET test.fixed;
SELECT * FROM model ORDER BY 1, 2;
CREATE VIEW stats AS
    SELECT projection_name, tenant_id, count(*) FILTER (WHERE status = 'pending') AS pending, count(*) FILTER (WHERE status = 'held') AS held,
        count(*) FILTER (WHERE status = 'processing') AS processing, count(*) FILTER (WHERE status = 'failed') AS failed, count(*) FILTER (WHERE status = 'dead') AS dead
    FROM projector.outbox GROUP BY 1, 2 ORDER BY 1, 2;
SELECT projection_name, tenant_id, pending, held, failed, dead FROM stats ORDER BY 1, 2;
DROP VIEW stats;

--
-- Retry
--
-- it fails again; later events are held (or have no item), earlier ones are applied
SELECT name, projector_retry(name, 'acme', 'a', 2), projector_retry(name, 'acme', 'b', 2), projector_retry(name, 'acme', 'a', 3),
       projector_retry(name, 'acme', 'd', 1), projector_retry(name, 'acme', 'a', 1), projector_retry(name, 'acme', 'a', 9)
FROM projector.projections ORDER BY 1;
SELECT * FROM cursor WHERE tenant_id = 'acme' ORDER BY 1;
SELECT * FROM work;
-- after the repair it is applied alone, and the rest follows
SET test.fixed = 'yes';
SELECT name, projector_retry(name, 'acme', 'a', 2) FROM projector.projections ORDER BY 1;
RESET test.fixed;
SELECT * FROM model WHERE tenant_id = 'acme' ORDER BY 1;
SELECT * FROM work;
SELECT * FROM cursor WHERE tenant_id = 'acme' ORDER BY 1;
SELECT projector_drain();
SELECT * FROM model WHERE tenant_id = 'acme' ORDER BY 1;
SELECT * FROM differences;
SELECT * FROM work;
SELECT projection_name, resolution, count(*) FROM projector.failures GROUP BY 1, 2 ORDER BY 1;
-- retrying one that was not tried yet applies those before it first …
SELECT append('acme', 'a'), append('acme', 'b'), append('acme', 'a');
SELECT projector_retry('queue', 'acme', 'b', 4);
SELECT * FROM work;
SELECT projector_drain();
SELECT * FROM differences;
-- … up to the first that fails: then it is held, and was not tried
SELECT append('acme', 'b', '{"fail": "22012"}'), append('acme', 'a');
SELECT projector_retry('queue', 'acme', 'a', 6);
SELECT * FROM work;
SET test.fixed = 'yes';
SELECT projector_retry('queue', 'acme', 'a', 6);
SELECT drain_later(2000);
RESET test.fixed;
SELECT * FROM differences;
SELECT * FROM work;

--
-- Requeue, requeue of dead events, skip: after each the tenant continues, in order
--
SELECT projector_alter(name, '{"options": {"max_attempts": 1}}') FROM projector.projections;
TRUNCATE seen;
SET session_replication_role = replica;
DELETE FROM projector.events;
RESET session_replication_role;
SELECT append_six('22012') FROM (SELECT projector_drop('queue'), projector_drop('mirror')) x;
SELECT projector_create('queue', handler => 'note_queue', targets => '{seen}', ordering => 'log',
                        options => '{"max_attempts": 1, "shared_targets": true}');
SELECT projector_create('mirror', handler => 'note_mirror', targets => '{seen}', mode => 'follow', ordering => 'log',
                        options => '{"max_attempts": 1, "shared_targets": true}');
SELECT projector_drain();
SELECT * FROM work;
SELECT * FROM cursor ORDER BY 1, 2;
-- nothing to requeue but the dead one
SELECT name, projector_requeue(name, 'acme', 'b', 2) AS b2, projector_requeue(name, 'acme', 'a', 1) AS a1, projector_requeue(name, 'acme', 'a', 2) AS a2
FROM projector.projections ORDER BY 1;
SELECT * FROM work;
SELECT * FROM cursor WHERE tenant_id = 'acme' ORDER BY 1;
SELECT projector_drain();
SELECT * FROM work;
SELECT * FROM cursor WHERE tenant_id = 'acme' ORDER BY 1;
SELECT * FROM projector_requeue() ORDER BY 1;
SELECT * FROM projector_requeue();
SET test.fixed = 'yes';
SELECT projector_drain();
RESET test.fixed;
SELECT * FROM model ORDER BY 1, 2;
SELECT * FROM differences;
SELECT * FROM work;
SELECT * FROM cursor ORDER BY 1, 2;
-- skip: the dead one now, and one that is still to come
SELECT append_six('22012'), append('acme', 'd', '{"fail": "22012"}'), append('acme', 'd');
SELECT projector_drain();
SELECT * FROM cursor WHERE tenant_id = 'acme' ORDER BY 1;
SELECT name, projector_skip(name, 'acme', 'd', 1, 'test data too') FROM projector.projections ORDER BY 1;
SELECT * FROM cursor WHERE tenant_id = 'acme' ORDER BY 1;
SELECT name, projector_skip(name, 'acme', 'a', 5, 'test data') FROM projector.projections ORDER BY 1;
SELECT * FROM cursor WHERE tenant_id = 'acme' ORDER BY 1;
INSERT INTO passed_over SELECT name, 'acme', step FROM projector.projections, unnest('{a5,d1}'::text[]) step;
SELECT projector_drain();
SELECT * FROM differences;
SELECT * FROM work;
SELECT * FROM cursor ORDER BY 1, 2;
SELECT projection_name, aggregate_id, sequence_number, error_code, resolution, metadata ->> 'skip_reason' AS reason
FROM projector.failures WHERE resolution = 'skipped' ORDER BY 1, 2;

--
-- on_error "skip": skipped after one attempt, or two
--
SELECT projector_alter('queue', '{"options": {"on_error": "skip"}}'),
       projector_alter('mirror', '{"options": {"on_error": "skip", "max_attempts": 2, "retry_base": "1 h", "retry_max": "1 h"}}');
RESET projector.clock_offset;
SELECT append_six('22012');
SELECT projector_drain();
SELECT * FROM work;
SELECT * FROM cursor WHERE tenant_id = 'acme' ORDER BY 1;
INSERT INTO passed_over VALUES ('queue', 'acme', 'a8');
SELECT what, name, tenant_id FROM differences;
SELECT drain_later(2);
INSERT INTO passed_over VALUES ('mirror', 'acme', 'a8');
SELECT * FROM differences;
SELECT * FROM work;
SELECT * FROM cursor ORDER BY 1, 2;
SELECT projection_name, retry_count, resolution, metadata FROM projector.failures WHERE aggregate_id = 'a' AND sequence_number = 8 ORDER BY 1;
-- back to "stop": skipped events stay skipped, new failures stop the tenant
SELECT projector_alter(name, '{"options": {"on_error": "stop", "max_attempts": 1}}') FROM projector.projections;

--
-- Reset: the whole tenant, in the same order, without skipped events
--
SELECT projector_reset('queue', 'acme', 'a', force => true);
SELECT projector_reset('mirror', 'acme', 'a', force => true);
SELECT projector_reset('queue', 'acme');
DELETE FROM seen WHERE tenant_id = 'acme';
SELECT name, projector_reset(name, 'acme', force => true) FROM projector.projections ORDER BY 1;
SELECT append('acme', 'late', '{"fail": "22012"}'), append('acme', 'late');
SELECT * FROM cursor WHERE tenant_id = 'acme' ORDER BY 1;
SET test.fixed = 'yes';
SELECT projector_drain() > 0 AS replayed;
SELECT * FROM differences;
-- events up to the handover are replayed.  Events appended during the replay are
-- not (if they are in the outbox; mode follow cannot tell), nor are later ones
SELECT append('acme', 'later');
SELECT projector_drain();
SELECT * FROM differences;
SELECT name, replay, count(*), min(step) FROM seen WHERE tenant_id = 'acme' GROUP BY 1, 2 ORDER BY 1, 2 DESC;
SELECT name, replay, count(*) FROM seen WHERE tenant_id = 'beta' GROUP BY 1, 2 ORDER BY 1, 2;
RESET test.fixed;
-- an event that stops a replay: later ones up to the handover are replayed too,
-- however the tenant is made to continue
DELETE FROM seen;
SELECT projector_drop(name) FROM projector.projections ORDER BY name;
TRUNCATE passed_over;
SET session_replication_role = replica;
DELETE FROM projector.events;
RESET session_replication_role;
SELECT append_six('22012');
SELECT projector_create('by_' || x, handler => new_handler('by_' || x), targets => '{seen}', mode => mode, ordering => 'log',
                        options => '{"max_attempts": 1, "shared_targets": true}')
FROM (VALUES ('retry', 'async'), ('retry_f', 'follow'), ('requeue', 'async'), ('requeue_f', 'follow'), ('skip', 'async')) v (x, mode);
SELECT projector_drain();
SELECT append('acme', 'b');
SET test.fixed = 'yes';
SELECT projector_retry(name, 'acme', 'a', 2) FROM projector.projections WHERE name LIKE 'by\_retry%';
SELECT projector_requeue(name, 'acme', 'a', 2) FROM projector.projections WHERE name LIKE 'by\_requeue%';
SELECT projector_skip('by_skip', 'acme', 'a', 2, 'why not');
INSERT INTO passed_over VALUES ('by_skip', 'acme', 'a2');
SELECT * FROM cursor WHERE tenant_id = 'acme' ORDER BY 1;
SELECT projector_drain();
RESET test.fixed;
SELECT * FROM differences;
SELECT name, string_agg(step || CASE WHEN replay THEN ' again' ELSE '' END, ', ' ORDER BY n) FROM seen WHERE tenant_id = 'acme' GROUP BY 1 ORDER BY 1;
SELECT * FROM cursor WHERE tenant_id = 'acme' ORDER BY 1;
SELECT projector_drop(name) FROM projector.projections ORDER BY name;

--
-- An item whose event is missing from the log
--
DELETE FROM seen;
TRUNCATE passed_over;
SET session_replication_role = replica;
DELETE FROM projector.events;
RESET session_replication_role;
RESET projector.clock_offset;
SELECT projector_create('queue', handler => 'note_queue', targets => '{seen}', ordering => 'log',
                        options => '{"max_attempts": 3, "retry_base": "1 h", "retry_max": "1 h"}');
SELECT append('beta', 'c');
SELECT projector_drain();
SELECT append('acme', 'a'), append('acme', 'b'), append('acme', 'c'), append('beta', 'c');
CREATE TABLE kept AS SELECT * FROM projector.events WHERE aggregate_id = 'b';
SET session_replication_role = replica;
DELETE FROM projector.events WHERE aggregate_id = 'b';
RESET session_replication_role;
SELECT projector_drain();
SELECT * FROM model ORDER BY 1, 2;
SELECT * FROM work;
SELECT aggregate_id, sequence_number, error_code, error_message, event_id IS NULL AS no_id, recoverable FROM projector.failures;
SELECT append('acme', 'a');
SELECT projector_drain();
SELECT * FROM work;
-- a retry finds it missing too, and it cannot be skipped
SELECT projector_retry('queue', 'acme', 'b', 1);
SELECT projector_skip('queue', 'acme', 'b', 1, 'gone');
SELECT * FROM work;
SELECT drain_later(2);
SELECT * FROM work;
SELECT * FROM cursor WHERE tenant_id = 'acme';
SELECT projector_retry('queue', 'acme', 'b', 1);
SELECT * FROM cursor WHERE tenant_id = 'acme';
-- after the event is restored, the tenant continues
SET session_replication_role = replica;
INSERT INTO projector.events OVERRIDING SYSTEM VALUE SELECT * FROM kept;
RESET session_replication_role;
SELECT projector_requeue('queue', 'acme', 'b', 1);
SELECT projector_drain();
SELECT * FROM model ORDER BY 1, 2;
SELECT * FROM differences;
SELECT * FROM work;
SELECT * FROM cursor ORDER BY 1, 2;
SELECT aggregate_id, resolution FROM projector.failures;

--
-- Combinations that are refused
--
SELECT projector_create('no', handler => 'note_queue', mode => 'inline', ordering => 'log');
SELECT projector_create('no', handler => 'note_queue', mode => 'strict', ordering => 'log');
SELECT projector_create('no', handler => 'note_queue', mode => 'shadow', ordering => 'log');
SELECT projector_create('no', handler => 'note_queue', ordering => 'log', options => '{"on_error": "hold"}');
SELECT projector_create('no', handler => 'note_queue', options => '{"on_error": "stop"}');
SELECT projector_create('no', handler => 'note_queue', ordering => 'time');
SELECT projector_set_mode('queue', 'inline');
SELECT projector_set_mode('queue', 'strict', 'acme');
SELECT projector_set_mode('queue', 'shadow', 'acme');
SELECT projector_alter('queue', '{"options": {"on_error": "hold"}}');
SELECT projector_alter('queue', '{"ordering": "aggregate"}');
\set VERBOSITY sqlstate
SELECT projector_set_mode('queue', 'shadow');
SELECT projector_reset('queue', 'acme', 'a', force => true);
\set VERBOSITY default
SELECT name, mode, ordering, options -> 'on_error' AS on_error FROM projector.projections;

SET client_min_messages = warning;
DROP EXTENSION projector CASCADE;
DROP TABLE seen, passed_over, kept CASCADE;
DROP FUNCTION new_handler, drain_later, append_many, append_six, append;
