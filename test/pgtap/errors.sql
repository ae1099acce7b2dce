-- Every SQLSTATE a client can get.
CREATE EXTENSION projector;
SELECT plan(154);

CREATE TABLE balance (tenant_id text, aggregate_id text, total bigint,
    last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, aggregate_id));
CREATE TABLE no_tenant (aggregate_id text PRIMARY KEY);
CREATE VIEW a_view AS SELECT 't'::text AS tenant_id;
CREATE TABLE no_stamp (tenant_id text, aggregate_id text, PRIMARY KEY (tenant_id, aggregate_id));
CREATE FUNCTION keep(e projector.event) RETURNS void LANGUAGE sql AS $$
    INSERT INTO balance AS b VALUES (e.tenant_id, e.aggregate_id, e.payload::bigint, e.event_id, e.sequence_number)
    ON CONFLICT (tenant_id, aggregate_id) DO UPDATE SET total = b.total + excluded.total,
        last_event_id = excluded.last_event_id, last_event_version = excluded.last_event_version
$$;
CREATE FUNCTION unstamped(e projector.event) RETURNS void LANGUAGE sql AS $$
    INSERT INTO balance VALUES (e.tenant_id, e.aggregate_id, 0, NULL, 0) ON CONFLICT DO NOTHING
$$;
CREATE FUNCTION divide(e projector.event) RETURNS void LANGUAGE plpgsql AS $$ BEGIN PERFORM 1 / 0; END $$;
CREATE FUNCTION appending(e projector.event) RETURNS void LANGUAGE sql AS $$
    SELECT projector_append(e.tenant_id, 'copy', 'Copied', e.payload)
$$;
CREATE FUNCTION draining(e projector.event) RETURNS void LANGUAGE sql AS $$ SELECT projector_drain() $$;
CREATE FUNCTION wrong_result(e projector.event) RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION wrong_argument(e int) RETURNS void LANGUAGE sql AS '';

-- ---- PJ001: not at the expected version ----
SELECT projector_append('t', 'a', 'Added', '1');
SELECT throws_ok($$ SELECT projector_append('t', 'a', 'Added', '1', expected_version => 0) $$, 'PJ001',
    'aggregate "a" of tenant "t" is not at the expected version', 'PJ001: the aggregate is not new');
SELECT throws_ok($$ SELECT projector_append('t', 'a', 'Added', '1', expected_version => 2) $$, 'PJ001', NULL, 'PJ001: it is not that far');
SELECT throws_ok($$ SELECT projector_append('t', 'b', 'Added', '1', expected_version => 1) $$, 'PJ001', NULL, 'PJ001: there is none');
SELECT throws_ok($$ SELECT projector_append_batch('t', 'a', '[{"event_type": "Added", "payload": 1}]', 0) $$, 'PJ001', NULL, 'PJ001: a batch');
CREATE FUNCTION detail_of(command text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    detail text;
BEGIN
    EXECUTE command;
    RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
    RETURN detail;
END $$;
SELECT is(detail_of($$ SELECT projector_append('t', 'a', 'Added', '1', expected_version => 7) $$),
    'Expected version 7, actual version 1.', 'PJ001: the detail names both versions');
CREATE FUNCTION hint_of(command text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    hint text;
BEGIN
    EXECUTE command;
    RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT;
    RETURN hint;
END $$;

-- ---- PJ002: out of sequence ----
CREATE FUNCTION plain(seq bigint) RETURNS void LANGUAGE sql AS $$
    INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload) VALUES ('t', 'a', seq, 'Added', '1')
$$;
SELECT throws_ok('SELECT plain(3)', 'PJ002', NULL, 'PJ002: a gap');
SELECT throws_ok('SELECT plain(0)', 'PJ002', NULL, 'PJ002: 0 is no sequence number');
SELECT throws_ok('SELECT plain(-1)', 'PJ002', NULL, 'PJ002: nor is -1');
SELECT throws_ok($$ INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
    VALUES ('t', 'a', 3, 'Added', '1'), ('t', 'a', 2, 'Added', '1') $$, 'PJ002', NULL, 'PJ002: the right numbers in the wrong order');
SELECT throws_ok($$ INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
    VALUES ('t', 'a', 2, 'Added', '1'), ('t', 'a', 4, 'Added', '1') $$, 'PJ002', NULL, 'PJ002: a gap inside a statement');
SELECT throws_ok($$ INSERT INTO projector.events (log_seq, tenant_id, aggregate_id, sequence_number, event_type, payload)
    OVERRIDING SYSTEM VALUE VALUES (0, 't', 'a', 2, 'Added', '1') $$, 'PJ002', NULL, 'PJ002: a log_seq before the predecessor''s');
SELECT isnt(hint_of('SELECT plain(3)'), '', 'PJ002: has a hint');

-- ---- PJ003: not the event it claims to be ----
SELECT throws_ok($$ INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload, payload_hash)
    VALUES ('t', 'a', 2, 'Added', '1', sha256('2')) $$, 'PJ003', NULL, 'PJ003: the hash given is not that of the payload');
SELECT lives_ok($$ INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload, payload_hash)
    VALUES ('t', 'a', 2, 'Added', '{"b": 1, "a": 2}', sha256(convert_to('{"a": 2, "b": 1}', 'UTF8'))) $$,
    'the hash is that of the payload as text');

-- ---- PJ006: part of a batch is known ----
SELECT projector_append('t', 'p', 'Added', '1', event_id => '00000000-0000-0000-0000-000000000001');
SELECT throws_ok($$ SELECT projector_append_batch('t', 'p', '[
    {"event_type": "Added", "payload": 1, "event_id": "00000000-0000-0000-0000-000000000001"},
    {"event_type": "Added", "payload": 2, "event_id": "00000000-0000-0000-0000-000000000002"}]') $$,
    'PJ006', NULL, 'PJ006: one of two events is in the log');
SELECT is((SELECT count(*) FROM projector.events WHERE aggregate_id = 'p'), 1::bigint, 'PJ006: nothing is written');

-- ---- PJ007, PJ008: recorded as failures ----
SELECT projector_create('unstamped', handler => 'unstamped', targets => '{balance}', mode => 'strict',
    event_types => '{Stamp}', options => '{"checkpoint": "check"}');
SELECT throws_ok($$ SELECT projector_append('t', 'stamp', 'Stamp', '1') $$, 'PJ008', NULL, 'PJ008: the handler did not stamp its row');
SELECT projector_set_mode('unstamped', 'inline');
SELECT projector_append('t', 'stamp', 'Stamp', '1');
SELECT is((SELECT error_code FROM projector.failures WHERE aggregate_id = 'stamp'), 'PJ008', 'PJ008: recorded as such');
SELECT projector_drop('unstamped');
DELETE FROM balance;

SELECT projector_append('t', 'gap', 'Gap', n::text::jsonb) FROM generate_series(1, 3) n;
SET session_replication_role = replica;
DELETE FROM projector.events WHERE aggregate_id = 'gap' AND sequence_number = 2;
RESET session_replication_role;
SELECT projector_create('gap', handler => 'keep', targets => '{balance}', event_types => '{Gap}');
SELECT projector_drain('gap');
SELECT is((SELECT error_code FROM projector.failures WHERE projection_name = 'gap'), 'PJ007', 'PJ007: an event is missing from the log');
SELECT projector_drop('gap');
DELETE FROM balance;

-- ---- 22023, 22004: arguments ----
SELECT throws_ok($$ SELECT projector_append('', 'a', 'Added', '1') $$, '22023', 'tenant_id must not be empty', '22023: empty tenant_id');
SELECT throws_ok($$ SELECT projector_append('t', '', 'Added', '1') $$, '22023', 'aggregate_id must not be empty', '22023: empty aggregate_id');
SELECT throws_ok($$ SELECT projector_append('t', 'a', '', '1') $$, '22023', 'event_type must not be empty', '22023: empty event_type');
SELECT throws_ok($$ SELECT projector_append('t', 'a', 'Added', '1', expected_version => -1) $$, '22023', NULL, '22023: negative expected_version');
SELECT throws_ok($$ INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload) VALUES ('', 'a', 1, 'Added', '1') $$,
    '22023', NULL, '22023: plain INSERT, empty tenant_id');
SELECT throws_ok($$ INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload) VALUES ('t', '', 1, 'Added', '1') $$,
    '22023', NULL, '22023: plain INSERT, empty aggregate_id');
SELECT throws_ok($$ INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload) VALUES ('t', 'e', 1, '', '1') $$,
    '22023', NULL, '22023: plain INSERT, empty event_type');
SELECT throws_ok(format('SELECT projector_append_batch(%L, %L, %L)', 't', 'a', events), '22023', NULL, '22023: batch ' || events)
FROM unnest(ARRAY['{}', '1', '[1]', '[[]]', '[{}]', '[{"event_type": "Added"}]', '[{"payload": 1}]', '[{"event_type": 1, "payload": 1}]',
    '[{"event_type": "", "payload": 1}]', '[{"event_type": "Added", "payload": 1, "event_id": 5}]',
    '[{"event_type": "Added", "payload": 1, "evnt_id": null}]']) events;
SELECT throws_ok($$ SELECT projector_append_batch('t', 'a', '[{"event_type": "Added", "payload": 1, "event_id": "x"}]') $$, '22023', NULL, '22023: not a uuid');
SELECT throws_ok($$ SELECT projector_append(NULL, 'a', 'Added', '1') $$, '22004', NULL, '22004: tenant_id is null');
SELECT throws_ok($$ SELECT projector_append('t', NULL, 'Added', '1') $$, '22004', NULL, '22004: aggregate_id is null');
SELECT throws_ok($$ SELECT projector_append('t', 'a', NULL, '1') $$, '22004', NULL, '22004: event_type is null');
SELECT throws_ok($$ SELECT projector_append('t', 'a', 'Added', NULL) $$, '22004', NULL, '22004: payload is null');
SELECT throws_ok($$ SELECT projector_append('t', 'a', 'Added', '1', metadata => NULL) $$, '22004', NULL, '22004: metadata is null');
SELECT throws_ok($$ SELECT projector_append_batch('t', 'a', NULL) $$, '22004', NULL, '22004: events is null');
SELECT throws_ok($$ SELECT projector_create(NULL, handler => 'keep') $$, '22004', NULL, '22004: the name is null');

-- ---- create: everything that can be wrong ----
CREATE FUNCTION creates(arguments text) RETURNS text LANGUAGE sql AS $$ SELECT format('SELECT projector_create(%s)', arguments) $$;
SELECT throws_ok(creates(arguments), code, NULL, code || ': projector_create(' || arguments || ')')
FROM (VALUES
    ('22023', $$'', handler => 'keep'$$),
    ('22023', $$'p'$$),
    ('22023', $$'p', handler => 'keep', statement => 'SELECT'$$),
    ('22023', $$'p', handler => 'keep', mode => 'later'$$),
    ('22023', $$'p', handler => 'keep', ordering => 'none'$$),
    ('22023', $$'p', handler => 'keep', key => 'event_type'$$),
    ('22023', $$'p', handler => 'keep', event_types => '{}'$$),
    ('22023', $$'p', handler => 'keep', event_types => '{""}'$$),
    ('22023', $$'p', handler => 'keep', event_types => '{NULL}'$$),
    ('22023', $$'p', handler => 'keep', event_types => '{A,A}'$$),
    ('22023', $$'p', handler => 'keep', options => '[]'$$),
    ('22023', $$'p', handler => 'keep', options => '{"retries": 3}'$$),
    ('22023', $$'p', handler => 'keep', options => '{"batch_size": 0}'$$),
    ('22023', $$'p', handler => 'keep', options => '{"batch_size": "many"}'$$),
    ('22023', $$'p', handler => 'keep', options => '{"retry_base": "-1 s"}'$$),
    ('22023', $$'p', handler => 'keep', options => '{"checkpoint": "check"}'$$),
    ('22023', $$'p', handler => 'keep', options => '{"on_error": "stop"}'$$),
    ('22023', $$'p', handler => 'keep', options => '{"idempotent": 1}'$$),
    ('42883', $$'p', handler => 'missing'$$),
    ('42P13', $$'p', handler => 'wrong_argument'$$),
    ('42P13', $$'p', handler => 'wrong_result'$$),
    ('42883', $$'p', handler => 'nowhere.keep'$$),
    ('42P01', $$'p', handler => 'keep', targets => '{missing}'$$),
    ('42703', $$'p', handler => 'keep', targets => '{no_tenant}'$$),
    ('42703', $$'p', handler => 'keep', targets => '{no_stamp}', options => '{"checkpoint": "check"}'$$),
    ('42809', $$'p', handler => 'keep', targets => '{a_view}'$$),
    ('42704', $$'p', handler => 'keep', source => 'elsewhere'$$),
    ('0A000', $$'p', handler => 'keep', mode => 'inline', ordering => 'log'$$),
    ('0A000', $$'p', handler => 'keep', mode => 'strict', ordering => 'log'$$)
) c (code, arguments);
SELECT isnt(hint_of(creates($$'p', handler => 'missing'$$)), '', '42883: the hint says what a handler looks like');
SELECT is((SELECT count(*) FROM projector.projections), 0::bigint, 'nothing was registered');

-- ---- 42710, 42704 ----
SELECT projector_create('kept', handler => 'keep', targets => '{balance}', event_types => '{Kept}', mode => 'inline');
SELECT throws_ok(creates($$'kept', handler => 'keep'$$), '42710', 'projection "kept" already exists', '42710: the name is taken');
SELECT throws_ok(command, '42704', NULL, '42704: ' || command)
FROM unnest(ARRAY[
    $$SELECT projector_alter('none', '{}')$$, $$SELECT projector_set_mode('none', 'off')$$, $$SELECT projector_pause('none')$$,
    $$SELECT projector_resume('none')$$, $$SELECT projector_drop('none')$$, $$SELECT projector_drain('none')$$,
    $$SELECT projector_retry('none', 't', 'a', 1)$$, $$SELECT projector_reset('none')$$]) command;

-- ---- alter, set_mode, drain, retry, reset: arguments ----
SELECT throws_ok(command, code, NULL, code || ': ' || command)
FROM (VALUES
    ('22023', $$SELECT projector_alter('kept', '[]')$$),
    ('22023', $$SELECT projector_alter('kept', '{"mode": "off"}')$$),
    ('22023', $$SELECT projector_alter('kept', '{"colour": "red"}')$$),
    ('22023', $$SELECT projector_alter('kept', '{"handler": 1}')$$),
    ('22023', $$SELECT projector_alter('kept', '{"options": {"retries": 3}}')$$),
    ('22023', $$SELECT projector_alter('kept', '{"event_types": []}')$$),
    ('42883', $$SELECT projector_alter('kept', '{"handler": "missing"}')$$),
    ('42P01', $$SELECT projector_alter('kept', '{"targets": ["missing"]}')$$),
    ('22004', $$SELECT projector_alter('kept', NULL)$$),
    ('22023', $$SELECT projector_set_mode('kept', 'later')$$),
    ('22004', $$SELECT projector_set_mode('kept', NULL)$$),
    ('22023', $$SELECT projector_set_mode('kept', 'off', '')$$),
    ('22023', $$SELECT projector_pause('kept', '')$$),
    ('22023', $$SELECT projector_drain(max_events => 0)$$),
    ('22004', $$SELECT projector_retry('kept', 't', 'a', NULL)$$),
    ('22023', $$SELECT projector_reset('kept', NULL, 'a', true)$$)
) c (code, command);

-- ---- 23505: an event_id of another event ----
SELECT throws_ok($$ SELECT projector_append('t', 'p', 'Added', '2', event_id => '00000000-0000-0000-0000-000000000001') $$, '23505', NULL, '23505: other payload');
SELECT throws_ok($$ SELECT projector_append('t', 'p', 'Taken', '1', event_id => '00000000-0000-0000-0000-000000000001') $$, '23505', NULL, '23505: other type');
SELECT throws_ok($$ SELECT projector_append('t', 'q', 'Added', '1', event_id => '00000000-0000-0000-0000-000000000001') $$, '23505', NULL, '23505: other aggregate');
SELECT throws_ok($$ SELECT projector_append('t', 'p', 'Added', '1', metadata => '{"by": "me"}', event_id => '00000000-0000-0000-0000-000000000001') $$, '23505', NULL, '23505: other metadata');
SELECT throws_ok($$ SELECT projector_append_batch('t', 'q', '[
    {"event_type": "Added", "payload": 1, "event_id": "00000000-0000-0000-0000-000000000009"},
    {"event_type": "Added", "payload": 1, "event_id": "00000000-0000-0000-0000-000000000009"}]') $$, '23505', NULL, '23505: twice in a batch');
SELECT throws_ok('SELECT plain(1)', '23505', NULL, '23505: a plain INSERT of a number that is taken');
SELECT lives_ok($$ SELECT projector_append('u', 'p', 'Added', '2', event_id => '00000000-0000-0000-0000-000000000001') $$, 'another tenant may have the same event_id');
SELECT is(projector_append('t', 'p', 'Added', '1', expected_version => 0, event_id => '00000000-0000-0000-0000-000000000001'), 1::bigint,
    'event_id is looked at before expected_version');

-- ---- append-only ----
SELECT throws_ok($$ UPDATE projector.events SET metadata = '{}' $$, '0A000', NULL, 'UPDATE is refused');
SELECT throws_ok($$ UPDATE projector.events SET metadata = '{}' WHERE false $$, '0A000', NULL, 'UPDATE of no row too');
SELECT throws_ok($$ DELETE FROM projector.events $$, '0A000', NULL, 'DELETE is refused');
SELECT throws_ok($$ TRUNCATE projector.events $$, '0A000', NULL, 'TRUNCATE is refused');
SELECT isnt(hint_of(command), '', 'with a hint: ' || command)
FROM unnest(ARRAY[$$UPDATE projector.events SET metadata = '{}'$$, 'DELETE FROM projector.events', 'TRUNCATE projector.events']) command;
SELECT throws_ok($$ INSERT INTO projector.events (log_seq, tenant_id, aggregate_id, sequence_number, event_type, payload) VALUES (99, 't', 'z', 1, 'Added', '1') $$,
    '428C9', NULL, '428C9: log_seq is not for the caller');

-- ---- 55000: not now ----
SELECT projector_append('t', 'k', 'Kept', '1');
SELECT throws_ok($$ SELECT projector_reset('kept') $$, '55000', NULL, '55000: not idempotent, so not reset');
SELECT matches(hint_of($$ SELECT projector_reset('kept') $$), 'projector_rebuild', '55000: the hint names projector_rebuild');
SELECT lives_ok($$ SELECT projector_reset('kept', force => true) $$, 'unless forced');
SELECT projector_set_mode('kept', 'strict');
SELECT projector_pause('kept');
SELECT throws_ok($$ SELECT projector_append('t', 'k', 'Kept', '1') $$, '55000', NULL, '55000: a strict projection is paused');
SELECT projector_set_mode('kept', 'inline');
SELECT projector_append('t', 'k', 'Kept', '2');
SELECT projector_set_mode('kept', 'off');
SELECT throws_ok($$ SELECT projector_retry('kept', 't', 'k', 2) $$, '55000', NULL, '55000: no retry of a projection that is off');
SELECT projector_set_mode('kept', 'inline');
SELECT projector_resume('kept');
SELECT projector_drain();
SELECT is(projector_retry('kept', 't', 'k', 2), 'none', 'an event that is not queued cannot be retried');
SELECT projector_create('divide', handler => 'divide', event_types => '{Divide}', mode => 'inline');
SELECT projector_append('t', 'd', 'Divide', '1');
SELECT projector_set_mode('divide', 'strict');
SELECT throws_ok($$ SELECT projector_append('t', 'd', 'Divide', '1') $$, '55000', NULL, '55000: a strict append behind a failed event');
SELECT throws_ok($$ SELECT projector_append('t', 'd2', 'Divide', '1') $$, '22012', 'division by zero', 'a strict append fails with the handler''s own error');
SELECT is((SELECT count(*) FROM projector.events WHERE aggregate_id = 'd2'), 0::bigint, 'and appends nothing');

-- ---- 0A000 ----
SELECT projector_create('appending', handler => 'appending', event_types => '{Copy}', mode => 'strict');
SELECT throws_ok($$ SELECT projector_append('t', 'c', 'Copy', '1') $$, '0A000', NULL, '0A000: a handler that appends');
SELECT projector_alter('appending', '{"options": {"may_append": true}}');
SELECT lives_ok($$ SELECT projector_append('t', 'c', 'Copy', '1') $$, 'unless it may');
SELECT is((SELECT count(*) FROM projector.events WHERE aggregate_id = 'copy'), 1::bigint, 'and then it does');
SELECT projector_drop('appending');
SELECT projector_create('draining', handler => 'draining', event_types => '{Drain}', mode => 'strict');
SELECT throws_ok($$ SELECT projector_append('t', 'c', 'Drain', '1') $$, '0A000', NULL, '0A000: a handler that drains');
SELECT projector_drop('draining');

-- ---- 40001, 25001: above READ COMMITTED ----
SELECT projector_set_mode('divide', 'off');
SELECT projector_set_mode('kept', 'strict');
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT throws_ok($$ SELECT projector_append('t', 'k', 'Kept', '1') $$, '40001', NULL, '40001: strict in REPEATABLE READ');
SELECT throws_ok(command, '25001', NULL, '25001: ' || command)
FROM unnest(ARRAY[$$SELECT projector_drain()$$, $$SELECT projector_retry('kept', 't', 'k', 1)$$,
    $$SELECT projector_reset('kept', force => true)$$, $$SELECT projector_set_mode('kept', 'off')$$]) command;
COMMIT;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT throws_ok($$ SELECT projector_append('t', 'k', 'Kept', '1') $$, '40001', NULL, '40001: strict in SERIALIZABLE');
SELECT throws_ok($$ SELECT projector_drain() $$, '25001', NULL, '25001: in SERIALIZABLE');
COMMIT;

-- ---- 42501: whose projection it is ----
DROP ROLE IF EXISTS pgtap_stranger;
CREATE ROLE pgtap_stranger;
SET ROLE pgtap_stranger;
SELECT throws_ok($$ SELECT projector_append('t', 'a', 'Added', '1') $$, '42501', NULL, '42501: no EXECUTE for PUBLIC');
SELECT throws_ok($$ SELECT * FROM projector.events $$, '42501', NULL, '42501: nothing to see for PUBLIC');
RESET ROLE;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO pgtap_stranger;
GRANT USAGE ON SCHEMA projector TO pgtap_stranger;
SET ROLE pgtap_stranger;
SELECT throws_ok(command, '42501', NULL, '42501: ' || command)
FROM unnest(ARRAY[
    $$SELECT projector_alter('kept', '{}')$$, $$SELECT projector_set_mode('kept', 'off')$$, $$SELECT projector_pause('kept')$$,
    $$SELECT projector_resume('kept')$$, $$SELECT projector_drop('kept')$$, $$SELECT projector_reset('kept', force => true)$$,
    $$SELECT projector_retry('kept', 't', 'k', 1)$$,
    $$SELECT projector_create('mine', handler => 'keep', targets => '{balance}')$$,
    $$SELECT set_config('projector.tenant_id', 't', false)$$, $$SET projector.clock_offset = 10$$,
    $$INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload) VALUES ('t', 'z', 1, 'Added', '1')$$,
    $$SELECT * FROM projector.events$$, $$DELETE FROM projector.apply_outbox$$, $$UPDATE projector.projections SET mode = 'off'$$]) command;
RESET ROLE;
REVOKE EXECUTE ON FUNCTION keep FROM PUBLIC, pgtap_stranger;
SET ROLE pgtap_stranger;
SELECT throws_ok($$SELECT projector_create('mine', handler => 'keep')$$, '42501', NULL, '42501: no EXECUTE on the handler');
RESET ROLE;

SELECT * FROM finish();
DROP OWNED BY pgtap_stranger;
DROP ROLE pgtap_stranger;
