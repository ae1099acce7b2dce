-- The invariants, each as a check that its opposite would fail.  A test's
-- description begins with the invariant's name.
CREATE EXTENSION projector;
SELECT plan(64);

CREATE TABLE balance (tenant_id text, aggregate_id text, events bigint, total bigint,
    last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, aggregate_id));
-- The handler's calls, in order, even if they are rolled back.
CREATE TABLE calls (n bigint GENERATED ALWAYS AS IDENTITY, tenant_id text, aggregate_id text, sequence_number bigint);
-- The next call for this event fails.
CREATE TABLE poison (tenant_id text, aggregate_id text, sequence_number bigint, code text);

CREATE FUNCTION apply_balance(e projector.event) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO calls (tenant_id, aggregate_id, sequence_number)
    VALUES (e.tenant_id, e.aggregate_id, e.sequence_number);
    INSERT INTO balance AS b
    VALUES (e.tenant_id, e.aggregate_id, 1, e.payload::bigint, e.event_id, e.sequence_number)
    ON CONFLICT (tenant_id, aggregate_id) DO UPDATE
    SET events = b.events + 1, total = b.total + excluded.total,
        last_event_id = excluded.last_event_id, last_event_version = excluded.last_event_version
    WHERE b.last_event_version < excluded.last_event_version;
    IF EXISTS (SELECT FROM poison p WHERE (p.tenant_id, p.aggregate_id, p.sequence_number)
               = (e.tenant_id, e.aggregate_id, e.sequence_number)) THEN
        RAISE EXCEPTION 'poisoned';
    END IF;
END $$;
CREATE VIEW oracle AS
    SELECT tenant_id COLLATE "default" AS tenant_id, aggregate_id COLLATE "default" AS aggregate_id, count(*) AS events, sum(payload::bigint)::bigint AS total,
           (array_agg(event_id ORDER BY sequence_number DESC))[1] AS last_event_id,
           max(sequence_number) AS last_event_version
    FROM projector.events GROUP BY 1, 2;
-- The same, for events at or below the offsets.
CREATE VIEW applied AS
    SELECT e.tenant_id COLLATE "default" AS tenant_id, e.aggregate_id COLLATE "default" AS aggregate_id, count(*) AS events, sum(payload::bigint)::bigint AS total,
           (array_agg(e.event_id ORDER BY sequence_number DESC))[1] AS last_event_id,
           max(sequence_number) AS last_event_version
    FROM projector.events e JOIN projector.offsets o
      ON (o.tenant_id, o.aggregate_id) = (e.tenant_id, e.aggregate_id) AND e.sequence_number <= o.last_sequence_number
    GROUP BY 1, 2;
-- Events that are neither applied nor queued, or both.
CREATE VIEW uncoupled AS
    SELECT e.tenant_id, e.aggregate_id, e.sequence_number
    FROM projector.events e
    LEFT JOIN projector.offsets o USING (tenant_id, aggregate_id)
    LEFT JOIN projector.apply_outbox q USING (log_seq)
    WHERE (e.sequence_number <= coalesce(o.last_sequence_number, 0)) = (q.log_seq IS NOT NULL);
-- Calls of the handler that were not in sequence.
CREATE VIEW misordered AS
    SELECT * FROM (
        SELECT tenant_id, aggregate_id, sequence_number,
               row_number() OVER (PARTITION BY tenant_id, aggregate_id ORDER BY n) AS expected
        FROM calls) c
    WHERE sequence_number <> expected;

SELECT projector_create('balance', handler => 'apply_balance', targets => '{balance}', mode => 'inline',
    options => '{"idempotent": true, "checkpoint": "check", "writes": ["calls"]}');

-- ---- 1 Coupled ----
SELECT projector_append('acme', 'a', 'Added', '1');
SELECT is_empty('TABLE uncoupled', 'Coupled: an event applied inline is not queued');
SELECT results_eq('TABLE balance', 'TABLE oracle', 'Coupled: and its effect is there');

SELECT throws_ok($$ DO $x$ BEGIN
    PERFORM projector_append('acme', 'a', 'Added', '2');
    PERFORM projector_append('acme', 'new', 'Added', '2');
    RAISE EXCEPTION 'no'; END $x$ $$, 'P0001', 'no', 'Coupled: a transaction that appends is rolled back');
SELECT is((SELECT count(*) FROM projector.events), 1::bigint, 'Coupled: the event is gone');
SELECT results_eq('TABLE balance', 'TABLE oracle', 'Coupled: and so is its effect');
SELECT results_eq('SELECT aggregate_id COLLATE "default", last_sequence_number FROM projector.offsets',
    $$ VALUES ('a', 1::bigint) $$, 'Coupled: and its offset');
SELECT is_empty('TABLE uncoupled', 'Coupled: and there is nothing for an event that is not');

SELECT projector_pause('balance');
SELECT projector_append('acme', 'a', 'Added', '2');
SELECT results_eq('SELECT tenant_id COLLATE "default", aggregate_id COLLATE "default", sequence_number, status FROM projector.outbox',
    $$ VALUES ('acme', 'a', 2::bigint, 'pending') $$, 'Coupled: an event that cannot be applied now is queued');
SELECT throws_ok($$ DO $x$ BEGIN PERFORM projector_append('acme', 'a', 'Added', '3'); RAISE EXCEPTION 'no'; END $x$ $$,
    'P0001', 'no', 'Coupled: a transaction that queues is rolled back');
SELECT is((SELECT count(*) FROM projector.apply_outbox), 1::bigint, 'Coupled: no row is left of it');
SELECT is_empty('TABLE uncoupled', 'Coupled: events are applied or queued, never both or neither');
-- for every way to insert
INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
SELECT 'acme', 'plain', n, 'Added', to_jsonb(n) FROM generate_series(1, 5) n;
SELECT is((SELECT count(*) FROM projector.apply_outbox WHERE aggregate_id = 'plain'), 5::bigint, 'Coupled: a plain INSERT queues too');
SELECT projector_resume('balance');
SELECT is(projector_drain(), 6::bigint, 'Coupled: what was queued is applied');
SELECT is_empty('TABLE uncoupled', 'Coupled: and nothing is left');
SELECT results_eq('SELECT * FROM balance ORDER BY 1, 2', 'SELECT * FROM oracle ORDER BY 1, 2', 'Coupled: the read model equals the log');

-- ---- 2 Atomic ----
INSERT INTO poison VALUES ('acme', 'atomic', 1);
SELECT is(projector_append('acme', 'atomic', 'Added', '5'), 1::bigint, 'Atomic: a failing handler does not fail the append');
SELECT is_empty($$ SELECT * FROM balance WHERE aggregate_id = 'atomic' $$, 'Atomic: what it had written is gone');
SELECT is((SELECT last_sequence_number FROM projector.offsets WHERE aggregate_id = 'atomic'), 0::bigint, 'Atomic: the offset has not moved');
SELECT results_eq($$ SELECT status, attempt_count, last_error, next_attempt_at > now() FROM projector.apply_outbox WHERE aggregate_id = 'atomic' $$,
    $$ VALUES ('failed', 1, 'poisoned', true) $$, 'Atomic: its item is there, as failed');
SELECT results_eq($$ SELECT error_code, error_message, retry_count, resolved_at FROM projector.failures WHERE aggregate_id = 'atomic' $$,
    $$ VALUES ('P0001', 'poisoned', 0, NULL::timestamptz) $$, 'Atomic: and its failure');
SELECT projector_append('acme', 'atomic', 'Added', '6');
DELETE FROM poison;
-- a retry that is rolled back has not happened
SELECT throws_ok($$ DO $x$ BEGIN
    IF projector_retry('balance', 'acme', 'atomic', 1) <> 'applied' THEN RAISE 'not applied'; END IF;
    RAISE EXCEPTION 'no'; END $x$ $$, 'P0001', 'no', 'Atomic: a retry is rolled back');
SELECT results_eq($$ SELECT (SELECT count(*) FROM balance WHERE aggregate_id = 'atomic'),
    (SELECT last_sequence_number FROM projector.offsets WHERE aggregate_id = 'atomic'),
    (SELECT count(*) FROM projector.apply_outbox WHERE aggregate_id = 'atomic'),
    (SELECT count(*) FROM projector.failures WHERE aggregate_id = 'atomic' AND resolved_at IS NULL) $$,
    $$ VALUES (0::bigint, 0::bigint, 2::bigint, 1::bigint) $$, 'Atomic: read model, offset, outbox and failure are as before');
SELECT is(projector_retry('balance', 'acme', 'atomic', 1), 'applied', 'Atomic: a retry');
SELECT results_eq($$ SELECT (SELECT total FROM balance WHERE aggregate_id = 'atomic'),
    (SELECT last_sequence_number FROM projector.offsets WHERE aggregate_id = 'atomic'),
    (SELECT count(*) FROM projector.apply_outbox WHERE aggregate_id = 'atomic'),
    (SELECT count(*) FROM projector.failures WHERE aggregate_id = 'atomic' AND resolution = 'applied') $$,
    $$ VALUES (5::bigint, 1::bigint, 1::bigint, 1::bigint) $$, 'Atomic: changes them together');
SELECT projector_drain();
SELECT results_eq('SELECT * FROM balance ORDER BY 1, 2', 'SELECT * FROM applied ORDER BY 1, 2', 'Atomic: the read model is what the offsets say');

-- ---- 3 Ordered ----
TRUNCATE calls;
INSERT INTO poison VALUES ('acme', 'o1', 2);
SELECT projector_append('acme', 'o' || a, 'Added', to_jsonb(n)) FROM generate_series(1, 4) n, generate_series(1, 3) a;
SELECT results_eq($$ SELECT sequence_number, status FROM projector.outbox WHERE aggregate_id = 'o1' ORDER BY 1 $$,
    $$ VALUES (2::bigint, 'failed'), (3, 'held'), (4, 'held') $$, 'Ordered: later events wait behind a failed one');
SELECT is((SELECT last_sequence_number FROM projector.offsets WHERE aggregate_id = 'o1'), 1::bigint, 'Ordered: the offset stays before it');
SELECT results_eq($$ SELECT aggregate_id COLLATE "default" AS aggregate_id, last_sequence_number FROM projector.offsets WHERE aggregate_id IN ('o2', 'o3') ORDER BY 1 $$,
    $$ VALUES ('o2', 4::bigint), ('o3', 4) $$, 'Ordered: other aggregates go on');
SELECT is(projector_drain(), 0::bigint, 'Ordered: a drain passes it over until its retry is due');
SELECT is(projector_retry('balance', 'acme', 'o1', 3), 'held', 'Ordered: an event behind it cannot be retried');
SELECT is(projector_retry('balance', 'acme', 'o1', 2), 'failed', 'Ordered: it fails again');
SELECT results_eq($$ SELECT status, attempt_count FROM projector.apply_outbox WHERE aggregate_id = 'o1' AND sequence_number = 2 $$,
    $$ VALUES ('failed', 2) $$, 'Ordered: which is counted');
DELETE FROM poison;
SET projector.clock_offset = 3600;
SELECT is(projector_drain(), 3::bigint, 'Ordered: once due it is applied, and all behind it');
RESET projector.clock_offset;
SELECT is_empty('TABLE misordered', 'Ordered: every event was applied once, in sequence');
SELECT results_eq('SELECT * FROM balance ORDER BY 1, 2', 'SELECT * FROM oracle ORDER BY 1, 2', 'Ordered: the read model equals the log');

-- ---- 4 Idempotent ----
-- an outbox row at or below the offset is dropped, not applied
INSERT INTO projector.apply_outbox (projection_id, log_seq, tenant_id, aggregate_id, sequence_number, event_type)
SELECT projection_id, log_seq, tenant_id, aggregate_id, sequence_number, event_type
FROM projector.events, projector.projections WHERE aggregate_id = 'o2';
SELECT projector_drain();
SELECT is_empty('TABLE misordered', 'Idempotent: an event at or below the offset is not applied again');
SELECT is_empty('TABLE projector.apply_outbox', 'Idempotent: and its item goes');
-- offsets are lost
DELETE FROM projector.projection_offsets;
SELECT projector_reset('balance', force => true);
SELECT is(projector_drain(), (SELECT count(*) FROM projector.events), 'Idempotent: without offsets all events are applied again');
SELECT results_eq('SELECT * FROM balance ORDER BY 1, 2', 'SELECT * FROM oracle ORDER BY 1, 2', 'Idempotent: the row checkpoints keep the read model as it is');
SELECT is(projector_append('acme', 'a', 'Added', '7', event_id => '00000000-0000-0000-0000-000000000007'),
    projector_append('acme', 'a', 'Added', '7', event_id => '00000000-0000-0000-0000-000000000007'),
    'Idempotent: an event sent twice has one answer');
SELECT is((SELECT count(*) FROM projector.events WHERE payload = '7'), 1::bigint, 'Idempotent: and is in the log once');

-- ---- 5 Equivalent ----
CREATE TABLE live AS TABLE balance;
-- event_types: a gap is allowed where the missing events have other types
CREATE TABLE balance_twin (LIKE balance INCLUDING ALL);
CREATE FUNCTION apply_twin(e projector.event) RETURNS void LANGUAGE sql AS $$
    INSERT INTO balance_twin AS b
    VALUES (e.tenant_id, e.aggregate_id, 1, e.payload::bigint, e.event_id, e.sequence_number)
    ON CONFLICT (tenant_id, aggregate_id) DO UPDATE
    SET events = b.events + 1, total = b.total + excluded.total,
        last_event_id = excluded.last_event_id, last_event_version = excluded.last_event_version
    WHERE b.last_event_version < excluded.last_event_version
$$;
SELECT projector_create('twin', handler => 'apply_twin', targets => '{balance_twin}');
SELECT projector_drain('twin');
SELECT results_eq('SELECT * FROM balance_twin ORDER BY 1, 2', 'SELECT * FROM balance ORDER BY 1, 2',
    'Equivalent: a projection created later reads the log to the same read model');
DELETE FROM balance;
SELECT projector_reset('balance');
SELECT projector_drain('balance');
SELECT results_eq('SELECT * FROM balance ORDER BY 1, 2', 'SELECT * FROM live ORDER BY 1, 2',
    'Equivalent: emptied, reset and drained it is what it was live');
DELETE FROM balance WHERE aggregate_id = 'o2';
SELECT projector_reset('balance', 'acme', 'o2');
SELECT is(projector_drain('balance'), 4::bigint, 'Equivalent: one aggregate alone is read again');
SELECT results_eq('SELECT * FROM balance ORDER BY 1, 2', 'SELECT * FROM live ORDER BY 1, 2',
    'Equivalent: to the same rows');

-- ---- 7 Contained ----
DROP ROLE IF EXISTS pgtap_owner;
CREATE ROLE pgtap_owner;
CREATE SCHEMA AUTHORIZATION pgtap_owner;
GRANT USAGE ON SCHEMA projector TO pgtap_owner;
GRANT EXECUTE ON FUNCTION projector_create TO pgtap_owner;
GRANT EXECUTE ON FUNCTION projector_append TO pgtap_owner;
SET ROLE pgtap_owner;
SET search_path = pgtap_owner, public;
CREATE TABLE seen (tenant_id text, aggregate_id text, who text, path text, tenant text, restricted boolean);
ALTER TABLE seen ENABLE ROW LEVEL SECURITY;
ALTER TABLE seen FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON seen USING (tenant_id = public.projector_tenant_id());
CREATE FUNCTION look(e projector.event) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    restricted boolean := false;
BEGIN
    BEGIN
        CREATE TEMP TABLE t (i int);
    EXCEPTION WHEN OTHERS THEN restricted := true;
    END;
    IF e.event_type = 'Stray' THEN
        BEGIN
            PERFORM set_config('projector.tenant_id', 'other', true);
        EXCEPTION WHEN insufficient_privilege THEN NULL;
        END;
    END IF;
    INSERT INTO seen VALUES (CASE e.event_type WHEN 'Stray' THEN 'other' ELSE e.tenant_id END, e.aggregate_id,
        current_user, current_setting('search_path'), current_setting('projector.tenant_id'), restricted);
END $$;
SELECT projector_create('seen', handler => 'look', targets => '{seen}', mode => 'inline', event_types => '{Look,Stray}');
RESET ROLE;
SET search_path = "$user", public;
SELECT projector_append('globex', 'x', 'Look', '1');
SELECT is((SELECT who FROM pgtap_owner.seen), 'pgtap_owner', 'Contained: the handler runs as the owner of its projection');
SELECT is((SELECT path FROM pgtap_owner.seen), 'pgtap_owner, public, pg_temp', 'Contained: with the search_path of its creation, pg_temp last');
SELECT is((SELECT tenant FROM pgtap_owner.seen), 'globex', 'Contained: and the tenant of the event');
SELECT is((SELECT restricted FROM pgtap_owner.seen), true, 'Contained: in a restricted context');
SELECT is(current_user || ', ' || current_setting('search_path') || ', ' || current_setting('projector.tenant_id'),
    session_user || ', "$user", public, ', 'Contained: afterwards everything is as before');
SELECT projector_append('globex', 'stray', 'Stray', '1');
SELECT results_eq($$ SELECT error_code FROM projector.failures WHERE aggregate_id = 'stray' $$, $$ VALUES ('42501') $$,
    'Contained: a handler cannot write a row of another tenant');
SELECT is_empty($$ SELECT * FROM pgtap_owner.seen WHERE tenant_id = 'other' $$, 'Contained: nor get round the policy');
SELECT is(current_user || ', ' || current_setting('search_path') || ', ' || current_setting('projector.tenant_id'),
    session_user || ', "$user", public, ', 'Contained: everything is as before, also after an error');
SET ROLE pgtap_owner;
SELECT throws_ok($$ SELECT set_config('projector.tenant_id', 'other', true) $$, '42501', NULL, 'Contained: only superusers set the tenant');
RESET ROLE;

-- ---- 8 Guarded ----
-- The isolation tests show which session waits for which; here, what is locked.
CREATE VIEW locks AS
    SELECT mode, count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid() AND granted GROUP BY 1;
SELECT projector_drop('twin');
SELECT projector_drop('seen');
BEGIN;
SELECT projector_append('acme', 'a', 'Added', '8');
SELECT set_eq('TABLE locks', $$ VALUES ('ShareLock', 2::bigint) $$,
    'Guarded: an inline append shares its projection and its pair with others');
COMMIT;
SELECT projector_pause('balance');
SELECT projector_append('acme', 'a', 'Added', '8');
SELECT projector_resume('balance');
BEGIN;
SELECT projector_drain('balance', 'acme');
SELECT set_eq('TABLE locks', $$ VALUES ('ShareLock', 2::bigint), ('ExclusiveLock', 1) $$,
    'Guarded: a drain too, but excludes other drains of the pair');
COMMIT;
BEGIN;
SELECT projector_reset('balance', 'acme', 'a');
SELECT set_eq('TABLE locks', $$ VALUES ('ShareLock', 1::bigint), ('ExclusiveLock', 2) $$,
    'Guarded: a reset has the pair to itself');
COMMIT;
BEGIN;
SELECT projector_append('t' || n, 'a', 'Added', '0') FROM generate_series(1, 100) n;
SELECT ok((SELECT count <= 65 FROM locks), 'Guarded: a transaction locks at most 64 pairs');
SELECT is((SELECT count(DISTINCT tenant_id) FROM projector.apply_outbox WHERE tenant_id ~ '^t[0-9]'), 36::bigint,
    'Guarded: the events of further tenants are queued');
COMMIT;
SELECT is_empty('TABLE locks', 'Guarded: no lock outlives its transaction');
SELECT projector_drain();
SELECT is_empty('TABLE uncoupled', 'Guarded: and all are applied in the end');

-- ---- 9 Checked ----
SELECT throws_ok($$ INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload) VALUES ('acme', 'a', 9, 'Added', '1') $$,
    'PJ002', NULL, 'Checked: a sequence has no gap');
SELECT throws_ok($$ INSERT INTO projector.events (log_seq, tenant_id, aggregate_id, sequence_number, event_type, payload)
    OVERRIDING SYSTEM VALUE SELECT 0, 'acme', 'a', max(sequence_number) + 1, 'Added', '1' FROM projector.events WHERE aggregate_id = 'a' $$,
    'PJ002', NULL, 'Checked: log_seq rises with the sequence');
-- Tampering needs a superuser who disables the triggers.
SET session_replication_role = replica;
UPDATE projector.events SET payload = '1000' WHERE aggregate_id = 'o1' AND sequence_number = 2;
DELETE FROM projector.events WHERE aggregate_id = 'o2' AND sequence_number = 2;
WITH gone AS (DELETE FROM projector.events WHERE aggregate_id = 'o3' AND sequence_number = 2 RETURNING *)
INSERT INTO projector.events OVERRIDING SYSTEM VALUE
SELECT log_seq + 1000000, tenant_id, aggregate_id, sequence_number, event_id, event_type, payload, metadata, payload_hash, recorded_at FROM gone;
RESET session_replication_role;
SELECT projector_reset('balance');
SELECT projector_drain('balance');
SELECT results_eq($$ SELECT aggregate_id COLLATE "default" AS aggregate_id, sequence_number, error_code FROM projector.failures
    WHERE projection_name = 'balance' AND resolved_at IS NULL ORDER BY 1, 2 $$,
    $$ VALUES ('o1', 2::bigint, 'PJ003'), ('o2', 3, 'PJ007'), ('o3', 3, 'PJ002') $$,
    'Checked: on replay a payload, a gap and an order that are not what they were are found');

SELECT * FROM finish();
DROP EXTENSION projector CASCADE;
DROP SCHEMA pgtap_owner CASCADE;
DROP ROLE pgtap_owner;
