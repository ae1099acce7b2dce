--
-- Mode "shadow": events are tried and rolled back.  Failures are known before
-- anything is changed.  When the mode changes, all events are applied.
--
CREATE EXTENSION projector;
-- allow DDL that the guard would refuse
SET projector.guard_ddl = off;
\set SHOW_CONTEXT never

-- An account must be opened before a withdrawal, and cannot go below zero: an
-- event tried without the earlier ones would fail.  Sequences count the calls of
-- the handler, because a rollback does not reset them.
CREATE TABLE account (tenant_id text, account_id text, balance bigint NOT NULL CHECK (balance >= 0), path text NOT NULL, PRIMARY KEY (tenant_id, account_id));
CREATE SEQUENCE calls;
CREATE SEQUENCE calls_beta;
CREATE FUNCTION apply_account(e projector.event) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM nextval(CASE e.tenant_id WHEN 'beta' THEN 'calls_beta' ELSE 'calls' END);
    IF e.event_type = 'Opened' THEN
        INSERT INTO account VALUES (e.tenant_id, e.aggregate_id, 0, e.sequence_number);
    ELSE
        UPDATE account SET balance = balance + (e.payload ->> 0)::bigint, path = path || ' ' || e.sequence_number
        WHERE tenant_id = e.tenant_id AND account_id = e.aggregate_id;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'account % is not open', e.aggregate_id USING ERRCODE = 'no_data_found';
        END IF;
    END IF;
END $$;
CREATE FUNCTION called(OUT acme bigint, OUT beta bigint) LANGUAGE plpgsql AS $$
BEGIN
    acme := nextval('calls') - 1;
    beta := nextval('calls_beta') - 1;
    ALTER SEQUENCE calls RESTART;
    ALTER SEQUENCE calls_beta RESTART;
END $$;
-- opening, deposits and withdrawals: [0, 5, -3] opens, deposits 5, withdraws 3
CREATE FUNCTION append(tenant text, item text, VARIADIC amounts int[]) RETURNS bigint LANGUAGE sql AS $$
    SELECT projector_append_batch(tenant, item, jsonb_agg(CASE amount WHEN 0 THEN '{"event_type": "Opened", "payload": 0}'
        ELSE jsonb_build_object('event_type', 'Moved', 'payload', amount) END ORDER BY n)) FROM unnest(amounts) WITH ORDINALITY u (amount, n) $$;
-- The oracle: every event there is.
CREATE VIEW oracle AS
    SELECT tenant_id::text, aggregate_id::text, sum((payload ->> 0)::bigint)::bigint AS balance,
           string_agg(sequence_number::text, ' ' ORDER BY sequence_number) AS path FROM projector.events GROUP BY 1, 2;
CREATE VIEW differences AS
    SELECT 'missing' AS what, * FROM (TABLE oracle EXCEPT ALL TABLE account) x
    UNION ALL SELECT 'unexpected', * FROM (TABLE account EXCEPT ALL TABLE oracle) x;
CREATE VIEW work AS
    SELECT tenant_id, aggregate_id, sequence_number AS seq, status, attempt_count AS attempts, shadow FROM projector.outbox ORDER BY 1, 2, 3;
CREATE VIEW failure AS
    SELECT tenant_id, aggregate_id, sequence_number AS seq, error_code, error_message, retry_count AS retries, recoverable, metadata, resolution
    FROM projector.failures ORDER BY 1, 2, 3;
CREATE VIEW offsets AS
    SELECT tenant_id, aggregate_id, last_sequence_number AS last, error_count, last_error FROM projector.offsets ORDER BY 1, 2;
CREATE VIEW cursor AS
    SELECT c.tenant_id, c.state, c.mode,
           (SELECT count(*) FROM projector.events e WHERE e.tenant_id = c.tenant_id AND e.log_seq <= c.last_log_seq) AS passed,
           (SELECT count(*) FROM projector.events e WHERE e.tenant_id = c.tenant_id) AS events, applied_count AS applied, failed_count AS failed
    FROM projector.projection_cursors c ORDER BY 1;

--
-- Created over an existing log: old events are not tried
--
SELECT append('acme', 'old', 0, 10);
SELECT projector_create('accounts', handler => 'apply_account', targets => '{account}', mode => 'shadow',
                        options => '{"batch_size": 4, "max_attempts": 2, "retry_base": "1 h", "retry_max": "1 h"}');
SELECT projector_drain();
SELECT * FROM called();
SELECT * FROM cursor;

--
-- A trial
--
-- a: passes, if each is tried after the others; b: the third would fail;
-- c: not open; d: more than a batch; old: continues from its old events
SELECT append('acme', 'a', 0, 5, -3), append('acme', 'b', 0, 5, -8), append('acme', 'c', 5), append('acme', 'd', 0, 1, 1, 1, 1, 1), append('acme', 'old', -10);
SELECT * FROM work;
SELECT projector_drain();
SELECT * FROM work;
SELECT * FROM failure;
-- nothing else has changed
SELECT count(*) FROM account;
SELECT * FROM offsets;
SELECT * FROM cursor;
-- a batch tries its aggregates from their offsets on, at most four events of
-- each: a 3, b 1; b 3, c 1, d 1; d 4; d 4, old 3
SELECT acme FROM called();
-- and none is tried again
SELECT projector_drain();
SET projector.clock_offset = '1 d';
SELECT projector_drain();
RESET projector.clock_offset;
SELECT * FROM called();
CREATE VIEW stats AS
    SELECT projection_name, tenant_id, count(*) FILTER (WHERE status = 'pending') AS pending, count(*) FILTER (WHERE status = 'held') AS held,
        count(*) FILTER (WHERE status = 'processing') AS processing, count(*) FILTER (WHERE status = 'failed') AS failed, count(*) FILTER (WHERE status = 'dead') AS dead
    FROM projector.outbox GROUP BY 1, 2 ORDER BY 1, 2;
SELECT projection_name, tenant_id, pending, held, failed, dead FROM stats;
DROP VIEW stats;
-- new events are tried: after those that passed, and after those that failed
SELECT append('acme', 'a', -2), append('acme', 'a', -1), append('acme', 'b', 4);
SELECT projector_drain();
SELECT * FROM work WHERE aggregate_id IN ('a', 'b');
SELECT * FROM failure;
SELECT acme FROM called();

-- each item once: with one drain or many, the handler gets the same events
SELECT append('beta', 'p', 0, 1), append('beta', 'q', 0);
SELECT projector_drain();
SELECT beta FROM called();
SELECT projector_drain(), projector_drain();
SELECT beta FROM called();
SELECT append('beta', 'q', 7);
SELECT projector_drain();
SELECT beta FROM called();
SELECT * FROM work WHERE tenant_id = 'beta';

-- calls that are refused
SELECT projector_retry('accounts', 'acme', 'c', 1);
SELECT projector_reset('accounts', force => true);
SELECT projector_reset('accounts', 'acme', force => true);
\set VERBOSITY sqlstate
SELECT projector_retry('accounts', 'acme', 'a', 1);
SELECT projector_reset('accounts', 'acme', 'a', force => true);
\set VERBOSITY default
-- nothing to requeue, because nothing has failed; but an event can be skipped
SELECT projector_requeue('accounts', 'acme', 'c', 1);
SELECT projector_skip('accounts', 'acme', 'b', 3, 'would fail');
SELECT * FROM work WHERE aggregate_id = 'b';

--
-- Switched on: the old events, and all that were tried, in order
--
SELECT projector_set_mode('accounts', 'async');
SELECT * FROM work;
SELECT projector_drain();
SELECT * FROM account ORDER BY 1, 2;
SELECT * FROM work;
-- an event that fails is a failure now; one that no longer fails is closed
SELECT tenant_id, aggregate_id, seq, error_code, retries, recoverable, metadata - 'skipped_by' AS metadata, resolution FROM failure;
SELECT * FROM offsets;
SELECT * FROM cursor;
SELECT what, tenant_id, aggregate_id FROM differences ORDER BY 2, 3, 1;
-- an account opened by hand repairs it
INSERT INTO account VALUES ('acme', 'c', 0, '0');
SELECT projector_retry('accounts', 'acme', 'c', 1);
UPDATE account SET path = '1' WHERE account_id = 'c';
UPDATE account SET path = '1 2 3 4', balance = balance - 8 WHERE account_id = 'b';
SELECT * FROM differences;
SELECT * FROM failure WHERE aggregate_id = 'c';
SELECT * FROM work;

--
-- A projection that is on: failed items, then shadow, then on again
--
DROP TABLE account CASCADE;
SELECT projector_drop('accounts');
CREATE TABLE account (tenant_id text, account_id text, balance bigint NOT NULL CHECK (balance >= 0), path text NOT NULL, PRIMARY KEY (tenant_id, account_id));
CREATE VIEW differences AS
    SELECT 'missing' AS what, * FROM (TABLE oracle EXCEPT ALL TABLE account) x
    UNION ALL SELECT 'unexpected', * FROM (TABLE account EXCEPT ALL TABLE oracle) x;
SET session_replication_role = replica;
DELETE FROM projector.events;
RESET session_replication_role;
SELECT projector_create('accounts', handler => 'apply_account', targets => '{account}',
                        options => '{"batch_size": 1, "retry_base": "1 h", "retry_max": "1 h"}');
SELECT projector_drain();
SELECT append('acme', 'a', 0, 5, -8, 1), append('acme', 'b', 0, 5), append('beta', 'a', 0);
SELECT projector_drain();
SELECT * FROM work;
SELECT projector_set_mode('accounts', 'shadow');
SELECT append('acme', 'a', 2), append('acme', 'b', -3), append('acme', 'b', -3), append('beta', 'a', -1);
SELECT acme > 0 AS reset FROM called();
-- the failed event is not tried, and later ones of its aggregate cannot be; the
-- others are, even if the failed one is due
SET projector.clock_offset = '2 h';
SELECT projector_drain();
SELECT * FROM work;
SELECT * FROM called();
SELECT projector_drain();
SELECT * FROM called();
SELECT * FROM failure;
SELECT * FROM account ORDER BY 1, 2;
SELECT * FROM offsets;
-- and on again
SELECT projector_set_mode('accounts', 'async');
SELECT projector_drain();
RESET projector.clock_offset;
SELECT * FROM account ORDER BY 1, 2;
SELECT * FROM work;
SELECT * FROM failure;
-- repaired: the failed events, and those that waited
ALTER TABLE account DROP CONSTRAINT account_balance_check;
SET projector.clock_offset = '6 h';
SELECT projector_drain();
RESET projector.clock_offset;
SELECT * FROM differences;
SELECT * FROM work;
SELECT tenant_id, aggregate_id, seq, metadata, resolution FROM failure;

--
-- For one tenant only, and back
--
ALTER TABLE account ADD CHECK (balance >= -10);
SELECT projector_alter('accounts', '{"options": {"batch_size": null}}');
SELECT projector_set_mode('accounts', 'shadow', 'beta');
SELECT append('acme', 's', 0, 5), append('beta', 's', 0, -20, 20), append('beta', 't', 0, 1);
SELECT projector_drain();
SELECT * FROM work;
SELECT * FROM cursor;
SELECT * FROM failure WHERE aggregate_id = 's';
SELECT what, tenant_id, aggregate_id FROM differences ORDER BY 2, 3, 1;
SELECT projector_retry('accounts', 'beta', 't', 1);
SELECT projector_reset('accounts', 'beta', force => true);
-- the other tenants can be switched; this one's trials stay
SELECT projector_set_mode('accounts', 'follow');
SELECT append('acme', 's', 1), append('beta', 't', 2);
SELECT * FROM called() \gset
SELECT projector_drain();
SELECT * FROM called();
SELECT * FROM work;
SELECT projector_set_mode('accounts', NULL, 'beta');
SELECT projector_drain();
SELECT * FROM work;
SELECT * FROM account WHERE account_id IN ('s', 't') ORDER BY 1, 2;
-- a batch of only a skipped event does not end a drain
SELECT projector_alter('accounts', '{"options": {"batch_size": 1}}');
SELECT projector_skip('accounts', 'beta', 's', 2, 'too much');
SELECT projector_drain();
SELECT * FROM account WHERE account_id = 's' ORDER BY 1, 2;
UPDATE account SET balance = 0, path = '1 2 3' WHERE account_id = 's' AND tenant_id = 'beta';
SELECT * FROM differences;
SELECT * FROM work;

--
-- From shadow to other modes
--
SELECT projector_set_mode('accounts', 'shadow');
SELECT append('acme', 'u', 0, 1, 2), append('gamma', 'u', 0, 1);
SELECT projector_drain();
SELECT projector_set_mode('accounts', 'inline');
SELECT append('acme', 'u', 3);
SELECT * FROM work;
SELECT projector_set_mode('accounts', 'shadow');
SELECT append('acme', 'u', 4);
SELECT projector_set_mode('accounts', 'off');
SELECT append('acme', 'u', 5), append('gamma', 'u', 5);
SELECT projector_set_mode('accounts', 'shadow');
SELECT append('acme', 'u', 6), append('gamma', 'u', 6);
SELECT projector_drain();
SELECT tenant_id, aggregate_id, seq, shadow FROM work;
SELECT projector_set_mode('accounts', 'follow');
SELECT append('acme', 'u', 7), append('gamma', 'u', 7);
SELECT projector_drain();
SELECT * FROM work;
SELECT * FROM differences;
SELECT state, passed = events AS at_the_end, count(*) FROM cursor GROUP BY 1, 2;

-- a failure of a trial is closed if the event is applied
SELECT projector_set_mode('accounts', 'shadow');
SELECT append('gamma', 'w', 5);
SELECT projector_drain();
SELECT tenant_id, aggregate_id, seq, error_message, metadata, resolution FROM failure WHERE aggregate_id = 'w';
INSERT INTO account VALUES ('gamma', 'w', 0, '0');
SELECT projector_set_mode('accounts', 'async');
SELECT projector_drain();
SELECT * FROM account WHERE account_id = 'w';
UPDATE account SET path = '1' WHERE account_id = 'w';
SELECT * FROM differences;
SELECT tenant_id, aggregate_id, seq, error_message, metadata, resolution FROM failure WHERE aggregate_id = 'w';

-- a tenant with its own mode shadow is not tried again when the others leave it
SELECT * FROM called() \gset
SELECT projector_set_mode('accounts', 'shadow'), projector_set_mode('accounts', 'shadow', 'beta');
SELECT append('acme', 'x', 0, 1), append('beta', 'x', 0, 1);
SELECT projector_drain();
SELECT beta FROM called();
SELECT projector_set_mode('accounts', 'async');
SELECT projector_drain();
SELECT beta FROM called();
SELECT * FROM work;
SELECT projector_set_mode('accounts', NULL, 'beta');
SELECT projector_drain();
SELECT * FROM differences;
SELECT * FROM work;

-- a trial also finds a payload that was changed, and an event that is missing
SELECT projector_alter('accounts', '{"options": {"batch_size": 4}}');
SELECT projector_set_mode('accounts', 'shadow');
SELECT append('acme', 'y', 0, 1, 2), append('acme', 'z', 0, 1, 2);
ALTER TABLE projector.events DISABLE TRIGGER USER;
UPDATE projector.events SET payload = '9' WHERE aggregate_id = 'y' AND sequence_number = 2;
DELETE FROM projector.events WHERE aggregate_id = 'z' AND sequence_number = 2;
ALTER TABLE projector.events ENABLE TRIGGER USER;
SELECT projector_drain();
SELECT aggregate_id, seq, status, shadow FROM work;
SELECT aggregate_id, seq, error_code, error_message FROM failure WHERE aggregate_id IN ('y', 'z');
SELECT aggregate_id, last FROM offsets WHERE aggregate_id IN ('y', 'z');

SET client_min_messages = warning;
DROP EXTENSION projector CASCADE;
DROP TABLE account CASCADE;
DROP SEQUENCE calls, calls_beta;
DROP FUNCTION called, append;
