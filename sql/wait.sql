-- Reading your own writes: projector_wait and projector_wait_log.  Events are
-- applied only by explicit drains; test/t/019_wait.pl shows that waiters are woken.
\set VERBOSITY terse
CREATE EXTENSION projector;
CREATE TABLE model (tenant_id text, id text, path text NOT NULL DEFAULT '',
    last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
CREATE TABLE poison (v text);
-- (it is wrongly declared IMMUTABLE, so that the test can change its result)
CREATE FUNCTION eat(v text) RETURNS text IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM poison p WHERE p.v = eat.v) THEN
        RAISE EXCEPTION 'poisoned';
    END IF;
    RETURN v;
END $$;
SELECT projector_create('model', fold_columns => '{"path": "s.path || eat(e.payload#>>''{}'')"}', targets => '{model}',
    event_types => '{A,B}', options => '{"max_attempts": 1}');

-- an event is applied, or it is not yet
SELECT projector_append('t', 'a', 'A', '"1"'), projector_append('t', 'a', 'B', '"2"');
SELECT projector_wait('model', 't', 'a', 1, '0'), projector_wait('model', 't', 'a', 2, '10 ms');
SELECT projector_drain();
SELECT projector_wait('model', 't', 'a', 1), projector_wait('model', 't', 'a', 2);

-- one that is not in the log yet is waited for
SELECT projector_wait('model', 't', 'a', 3, '10 ms'), projector_wait('model', 't', 'nobody', 1, '10 ms'),
    projector_wait('model', 'nobody', 'a', 1, '10 ms');

-- one that is not subscribed to is applied as soon as all before it are
SELECT projector_append('t', 'a', 'C', '"3"'), projector_append('t', 'b', 'C', '"1"');
SELECT projector_wait('model', 't', 'a', 3), projector_wait('model', 't', 'b', 1);
SELECT projector_append('t', 'a', 'A', '"4"'), projector_append('t', 'a', 'C', '"5"');
SELECT projector_wait('model', 't', 'a', 5, '10 ms');
SELECT projector_drain();
SELECT projector_wait('model', 't', 'a', 5);

-- a dead event blocks later events of its aggregate only
INSERT INTO poison VALUES ('6');
SELECT projector_append('t', 'a', 'A', '"6"'), projector_append('t', 'a', 'A', '"7"'), projector_append('t', 'c', 'A', '"1"');
SELECT projector_drain();
SELECT projector_wait('model', 't', 'a', 5), projector_wait('model', 't', 'c', 1);
SELECT projector_wait('model', 't', 'a', 7);
SELECT projector_wait_log('model', 't', (SELECT max(log_seq) FROM projector.events));
DELETE FROM poison;
SELECT projector_requeue('model', 't', 'a', 6);
SELECT projector_wait('model', 't', 'a', 7, '0');
SELECT projector_drain();
SELECT projector_wait('model', 't', 'a', 7);

-- an event that failed and will be tried again is waited for
SELECT projector_alter('model', '{"options": {"max_attempts": 8, "retry_base": "1 h", "retry_max": "1 h"}}');
INSERT INTO poison VALUES ('8');
SELECT projector_append('t', 'a', 'A', '"8"');
SELECT projector_drain();
SELECT projector_wait('model', 't', 'a', 8, '10 ms');
DELETE FROM poison;
SELECT projector_retry('model', 't', 'a', 8), projector_wait('model', 't', 'a', 8);

-- a skipped event counts as applied
INSERT INTO poison VALUES ('9');
SELECT projector_append('t', 'a', 'A', '"9"');
SELECT projector_skip('model', 't', 'a', 9, 'not wanted');
SELECT projector_wait('model', 't', 'a', 9, '0');
SELECT projector_drain();
SELECT projector_wait('model', 't', 'a', 9);

-- paused
SELECT projector_append('t', 'a', 'A', '"10"');
SELECT projector_pause('model', 't');
SELECT projector_wait('model', 't', 'a', 9), projector_wait('model', 't', 'a', 10), projector_wait_log('model', 't', 10000, '0');
SELECT projector_resume('model', 't');
SELECT projector_pause('model');
SELECT projector_wait('model', 't', 'a', 10);
SELECT projector_resume('model');

-- the log up to a position
SELECT max(log_seq) AS last FROM projector.events \gset
SELECT projector_wait_log('model', 't', :last, '10 ms');
SELECT projector_drain();
SELECT projector_wait_log('model', 't', :last), projector_wait_log('model', 't', :last + 1, '10 ms'),
    projector_wait_log('model', 'nobody', :last);
-- in mode follow, and in log order, the cursor decides
SELECT projector_set_mode('model', 'follow');
SELECT projector_append('t', 'a', 'A', '"11"');
SELECT max(log_seq) AS last FROM projector.events \gset
SELECT projector_wait_log('model', 't', :last, '10 ms'), projector_wait('model', 't', 'a', 11, '10 ms');
SELECT projector_drain();
SELECT projector_wait_log('model', 't', :last), projector_wait('model', 't', 'a', 11);
CREATE TABLE ordered (tenant_id text, path text);
CREATE FUNCTION note(e projector.event) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO ordered VALUES (e.tenant_id, eat(e.payload#>>'{}'));
END $$;
SELECT projector_create('ordered', handler => 'note', targets => '{ordered}', ordering => 'log', options => '{"max_attempts": 1}');
SELECT projector_wait_log('ordered', 't', :last, '10 ms');
DELETE FROM poison;
SELECT projector_drain() > 0 AS drained;
SELECT projector_wait_log('ordered', 't', :last), projector_wait('ordered', 't', 'a', 11);
-- in log order a dead event blocks everything after it
INSERT INTO poison VALUES ('12');
SELECT projector_append('t', 'a', 'A', '"12"'), projector_append('t', 'z', 'A', '"1"');
SELECT projector_drain('ordered');
SELECT projector_wait('ordered', 't', 'z', 1);
SELECT projector_wait_log('ordered', 't', :last + 1);
DELETE FROM poison;
SELECT projector_drop('ordered');

-- where waiting cannot help: an error, unless the event is already applied
SELECT projector_set_mode('model', 'off');
SELECT projector_wait('model', 't', 'a', 11);
SELECT projector_wait('model', 't', 'a', 13);
SELECT projector_wait_log('model', 't', 100000);
SELECT projector_set_mode('model', 'shadow');
SELECT projector_wait('model', 't', 'a', 13);
SELECT projector_set_mode('model', 'async');
SELECT projector_drain() > 0 AS drained;
BEGIN;
SELECT projector_append('t', 'a', 'A', '"13"');
SELECT projector_wait('model', 't', 'a', 11);
SELECT projector_wait('model', 't', 'a', 13);
ROLLBACK;
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT projector_wait('model', 't', 'a', 11);
ROLLBACK;
UPDATE projector.projections SET home = 'elsewhere';
SELECT projector_wait('model', 't', 'a', 11);
SELECT projector_wait('model', 't', 'a', 99);
UPDATE projector.projections SET home = (SELECT system_identifier FROM pg_control_system()) || '/' || (SELECT oid FROM pg_database WHERE datname = current_database());

-- invalid arguments
SELECT projector_wait('nobody', 't', 'a', 1);
SELECT projector_wait('model', 't', 'a', 0);
SELECT projector_wait('model', 't', 'a', 1, '-1 s');
SELECT projector_wait('model', '', 'a', 1);
SELECT projector_wait('model', NULL, 'a', 1);
SELECT projector_wait('model', 't', 'a', 1, NULL);
SELECT projector_wait_log('model', 't', 0);

-- EXECUTE is the only privilege needed
CREATE ROLE regress_waiter;
SET ROLE regress_waiter;
SELECT projector_wait('model', 't', 'a', 11);
RESET ROLE;
GRANT EXECUTE ON FUNCTION projector_wait, projector_wait_log TO regress_waiter;
SET ROLE regress_waiter;
SELECT projector_wait('model', 't', 'a', 11), projector_wait_log('model', 't', 1);
RESET ROLE;

DROP EXTENSION projector CASCADE;
DROP TABLE model, poison, ordered;
DROP FUNCTION eat;
DROP ROLE regress_waiter;
