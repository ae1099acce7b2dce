-- Runs: rebuilds and catch-ups for the workers.  There are none here, so what is queued stays
-- queued; test/t has the rest.
\pset format unaligned
\pset tuples_only on
CREATE EXTENSION projector;
-- allow DDL that the guard would refuse
SET projector.guard_ddl = off;
\i sql/include/try.sql
-- The same for "in use" errors: does the detail name the projection's active run?
CREATE FUNCTION in_use(command text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    state text;
    message text;
    detail text;
    hint text;
    number bigint;
    parts text[];
BEGIN
    EXECUTE 'SELECT ' || command;
    RETURN command || ': ok';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL,
        hint = PG_EXCEPTION_HINT;
    number := substring(detail FROM '^Run (\d+), a .*, is queued\.$');
    parts := regexp_match(message, '^projection "(.*)" has an active run for tenant "(.*)"$');
    RETURN concat_ws(' ', command || ':', state, CASE WHEN EXISTS (SELECT FROM projector.runs r
            WHERE r.id = number AND r.projection_name = parts[1] AND r.tenant_id = parts[2] AND r.state IN ('queued', 'running'))
            AND hint = format('Wait for it, or cancel it with projector_cancel_run(%s).', number)
        THEN parts[1] || ', ' || parts[2] ELSE concat_ws(' / ', message, detail, hint) END);
END $$;
-- one of each kind
CREATE TABLE by_fold (tenant_id text, id text, total bigint NOT NULL DEFAULT 0,
    last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
CREATE TABLE by_statement (tenant_id text, events bigint, PRIMARY KEY (tenant_id));
CREATE TABLE parents (tenant_id text, id text, PRIMARY KEY (tenant_id, id));
CREATE TABLE children (tenant_id text, id text, n bigint, FOREIGN KEY (tenant_id, id) REFERENCES parents);
CREATE TABLE by_log (tenant_id text, colour text, path text NOT NULL DEFAULT '',
    last_event_id uuid, last_event_version bigint, last_log_seq bigint, PRIMARY KEY (tenant_id, colour));
CREATE FUNCTION handle(e projector.event) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF e.payload ? 'fail' THEN
        RAISE EXCEPTION 'cannot digest this';
    END IF;
    IF e.payload ? 'run' THEN
        EXECUTE format('SELECT %s', e.payload->>'run');
    END IF;
    INSERT INTO parents VALUES (e.tenant_id, e.aggregate_id) ON CONFLICT DO NOTHING;
    INSERT INTO children VALUES (e.tenant_id, e.aggregate_id, e.sequence_number);
END $$;
SELECT projector_create('fold', targets => '{by_fold}', fold_columns => '{"total": "s.total + (e.payload->>''n'')::bigint"}');
SELECT projector_create('statement', targets => '{by_statement}', statement => $$
    INSERT INTO by_statement AS t SELECT tenant_id, count(*) FROM batch GROUP BY 1
    ON CONFLICT (tenant_id) DO UPDATE SET events = t.events + excluded.events$$);
SELECT projector_create('handler', handler => 'handle', targets => '{parents,children}',
    options => '{"max_attempts": 1}');
SELECT projector_create('log', targets => '{by_log}', key => 'payload->>''colour''',
    fold_columns => '{"path": "s.path || e.aggregate_id || e.sequence_number || '' ''"}');
SELECT count(projector_append(t, a, 'Added', jsonb_build_object('n', n, 'colour', (ARRAY['red', 'blue'])[n % 2 + 1])))
FROM generate_series(1, 3) n, unnest('{acme,beta,gamma}'::text[]) t, unnest('{a,b}'::text[]) a;
SELECT projector_drain();
-- the active runs, in the order in which they were queued; the others show nothing
CREATE VIEW active AS
    SELECT projection_name, tenant_id, mode, state, until_log_seq FROM projector.runs WHERE state IN ('queued', 'running') ORDER BY id;
CREATE FUNCTION cancel_all() RETURNS bigint LANGUAGE sql AS
    $$SELECT count(*) FILTER (WHERE projector_cancel_run(id)) FROM projector.runs WHERE state IN ('queued', 'running')$$;
-- the number of the only active run of a projection
CREATE FUNCTION run_of(name text, tenant text DEFAULT 'acme') RETURNS bigint LANGUAGE sql AS
    $$SELECT id FROM projector.runs WHERE projection_name = name AND tenant_id = tenant AND state IN ('queued', 'running')$$;

--
-- one run for each tenant; returns its number
--
CREATE TABLE numbers AS SELECT projector_start_run('fold') AS id;
SELECT count(*) FROM numbers;
SELECT count(*) FROM numbers JOIN projector.runs USING (id);
TABLE active;
SELECT projection_name, tenant_id, mode, state, since_log_seq, until_log_seq, total_events, processed_events, last_log_seq,
    error_code, error_message, error_context, requested_by = current_user, queued_at <= clock_timestamp(), started_at, finished_at
FROM projector.runs ORDER BY id;
-- total, percent, rate and time left are not known before it has begun
-- the total of a queued run is not known
\pset null (null)
SELECT projection_name, tenant_id, mode, state, percent, per_second, time_left FROM projector.progress;
\pset null ''
SELECT run_id = run_of('fold', tenant_id) FROM projector.progress;
SELECT cancel_all();
SELECT count(*) FROM projector.progress;
SELECT projection_name, tenant_id, mode, state, error_code, error_message = 'cancelled by ' || current_user, processed_events, started_at,
    finished_at >= queued_at
FROM projector.runs ORDER BY id;
-- in a target list, in a SELECT that reads only the first row, and for one tenant
SELECT projector_start_run('fold', tenant_id => 'beta') = run_of('fold', 'beta');
SELECT count(*) FROM (SELECT projector_start_run('statement') LIMIT 1) r;
TABLE active;
SELECT cancel_all();
-- tenants that are only in the read model: they can be rebuilt, but there is nothing to catch up on
INSERT INTO by_fold VALUES ('ghost', 'town', 1), ('ghost', 'house', 1);
SELECT count(*) FROM projector_start_run('fold');
TABLE active;
SELECT cancel_all();
SELECT count(*) FROM projector_start_run('fold', mode => 'catch_up');
TABLE active;
SELECT cancel_all();
-- a tenant that is in two of the targets is queued once
INSERT INTO parents VALUES ('ghost', 'town');
INSERT INTO children VALUES ('ghost', 'town', 1);
SELECT try($$SELECT projector_start_run('handler')$$);
TABLE active;
SELECT cancel_all();
DELETE FROM children WHERE tenant_id = 'ghost';
DELETE FROM parents WHERE tenant_id = 'ghost';
-- an unknown tenant; names that need quotes
SELECT count(*) FROM projector_start_run('fold', tenant_id => 'nobody');
SELECT projector_pause('fold', 'O''Neill "& sons"'), projector_resume('fold', 'O''Neill "& sons"');
SELECT count(*) FROM projector_start_run('fold', tenant_id => 'O''Neill "& sons"');
TABLE active;
SELECT cancel_all();
-- all projections, in the order of their creation, but dependencies first
SELECT projector_alter('fold', '{"options": {"depends_on": ["handler"]}}');
SELECT projector_alter('handler', '{"options": {"depends_on": ["log"]}}');
SELECT count(*) FROM projector_start_run(NULL, tenant_id => 'acme');
TABLE active;
SELECT cancel_all();
SELECT count(*) FROM projector_start_run(NULL, mode => 'catch_up');
SELECT projection_name, count(*), string_agg(tenant_id, ' ' ORDER BY id) FROM projector.runs WHERE state = 'queued' GROUP BY 1 ORDER BY min(id);
SELECT cancel_all();
SELECT projector_alter('handler', '{"options": {"depends_on": null}}');
SELECT projector_alter('fold', '{"options": {"depends_on": null}}');
-- up to a position
SELECT count(*) FROM projector_start_run('fold', 'acme', 'catch_up', (SELECT min(log_seq) FROM projector.events WHERE tenant_id = 'acme'));
SELECT until_log_seq = (SELECT min(log_seq) FROM projector.events WHERE tenant_id = 'acme') FROM active;
SELECT cancel_all();
SELECT count(*) FROM projector_start_run('log', mode => 'catch_up', until_log_seq => 9223372036854775807);
TABLE active;
SELECT cancel_all();

--
-- refused
--
SELECT try($$SELECT projector_start_run('fold', mode => NULL)$$);
SELECT try($$SELECT projector_start_run('fold', mode => '')$$);
SELECT try($$SELECT projector_start_run('fold', mode => 'reset')$$);
SELECT try($$SELECT projector_start_run('fold', mode => 'Rebuild')$$);
SELECT try($$SELECT projector_start_run('fold', tenant_id => '')$$);
SELECT try($$SELECT projector_start_run('')$$);
SELECT try($$SELECT projector_start_run('nothing')$$);
SELECT try($$SELECT projector_start_run('fold', until_log_seq => 5)$$);
SELECT try($$SELECT projector_start_run('fold', mode => 'catch_up', until_log_seq => 0)$$);
SELECT try($$SELECT projector_start_run('fold', mode => 'catch_up', until_log_seq => -1)$$);
SELECT try($$SELECT projector_cancel_run(NULL)$$);
SELECT try($$SELECT projector_cancel_run(-1)$$);
SELECT try($$SELECT projector_cancel_run(1000000)$$);
-- refused in shadow, for all tenants and for one; allowed in off and while paused
SELECT projector_set_mode('fold', 'shadow');
SELECT try($$SELECT projector_start_run('fold')$$);
SELECT try($$SELECT projector_start_run('fold', 'acme', 'catch_up')$$);
SELECT projector_set_mode('fold', 'off');
SELECT projector_set_mode('fold', 'shadow', 'beta');
SELECT try($$SELECT projector_start_run('fold')$$);
SELECT try($$SELECT projector_start_run('fold', tenant_id => 'beta')$$);
SELECT try($$SELECT projector_start_run(NULL)$$);
TABLE active;
SELECT projector_pause('fold');
SELECT projector_pause('fold', 'acme', 'a break');
SELECT count(*) FROM projector_start_run('fold', tenant_id => 'acme');
SELECT count(*) FROM projector_start_run('fold', mode => 'catch_up', tenant_id => 'gamma');
TABLE active;
SELECT cancel_all();
SELECT projector_resume('fold', 'acme');
SELECT projector_resume('fold');
SELECT projector_set_mode('fold', NULL, 'beta');
SELECT projector_set_mode('fold', 'async');
SELECT projector_drain();
-- without targets there is nothing to clear, unless a function does it
CREATE FUNCTION note(e projector.event) RETURNS void LANGUAGE sql AS '';
CREATE FUNCTION clear_notes(tenant_id text) RETURNS void LANGUAGE sql AS '';
SELECT projector_create('targetless', handler => 'note');
SELECT try($$SELECT projector_start_run('targetless')$$);
SELECT try($$SELECT projector_start_run(NULL)$$);
SELECT count(*) FROM projector_start_run('targetless', mode => 'catch_up');
SELECT cancel_all();
SELECT projector_alter('targetless', '{"options": {"clear": "clear_notes"}}');
SELECT count(*) FROM projector_start_run('targetless');
TABLE active;
SELECT projector_drop('targetless');
TABLE active;
-- a target that is gone
CREATE TABLE passing (LIKE by_statement INCLUDING ALL);
SELECT projector_create('passing', handler => 'note', targets => '{passing}', mode => 'off');
DROP TABLE passing;
SELECT try($$SELECT projector_start_run('passing')$$);
SELECT projector_drop('passing');
-- above READ COMMITTED
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT try($$SELECT projector_start_run('fold')$$);
SELECT try($$SELECT projector_cancel_run(1)$$);
COMMIT;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT try($$SELECT projector_start_run('fold')$$);
SELECT try($$SELECT projector_cancel_run(1)$$);
COMMIT;
BEGIN READ ONLY;
SELECT try($$SELECT projector_start_run('fold')$$);
COMMIT;
TABLE active;
-- by a projection's code
SELECT projector_append('acme', 'x', 'Added', '{"n": 1, "run": "projector_start_run(''statement'')"}');
SELECT projector_append('acme', 'y', 'Added', '{"n": 1, "run": "projector_cancel_run(1)"}');
SELECT projector_drain();
SELECT aggregate_id, error_code, error_message FROM projector.failures ORDER BY log_seq;
TABLE active;
SELECT projector_skip('handler', 'acme', 'x', 1, 'no such thing');
SELECT projector_skip('handler', 'acme', 'y', 1, 'no such thing');
SELECT projector_drain();
SELECT count(*) FROM projector.outbox;

--
-- one active run for a projection and tenant
--
SELECT count(*) FROM projector_start_run('handler', tenant_id => 'acme');
SELECT try($$SELECT projector_start_run('handler', tenant_id => 'acme')$$);
SELECT in_use($$projector_start_run('handler', 'acme', 'catch_up')$$);
-- the unique index enforces this too
SELECT try($$INSERT INTO projector.projection_runs (projection_id, tenant_id, mode, requested_by)
    SELECT projection_id, tenant_id, mode, requested_by FROM projector.projection_runs WHERE state = 'queued'$$);
-- other tenants and other projections are not affected
SELECT count(*) FROM projector_start_run('handler', tenant_id => 'beta');
SELECT count(*) FROM projector_start_run('fold', tenant_id => 'gamma');
-- all or nothing
SELECT in_use($$projector_start_run('handler')$$);
SELECT in_use($$projector_start_run('handler', mode => 'catch_up')$$);
SELECT in_use($$projector_start_run('fold')$$);
SELECT in_use($$projector_start_run(NULL)$$);
SELECT in_use($$projector_start_run(NULL, tenant_id => 'beta')$$);
TABLE active;
-- calls that would disturb an active run
SELECT projector_append('acme', 'bad', 'Added', '{"n": 1, "fail": 1, "colour": "red"}');
SELECT projector_append('acme', 'bad', 'Added', '{"n": 1, "colour": "red"}');
SELECT projector_append('gamma', 'bad', 'Added', '{"n": 1, "fail": 1, "colour": "red"}');
SELECT projector_drain();
SELECT projection_name, tenant_id, aggregate_id, sequence_number, status FROM projector.outbox ORDER BY log_seq;
CREATE TABLE before AS SELECT * FROM projector.outbox;
SELECT in_use(c) FROM unnest(ARRAY[
    $$projector_rebuild('handler', 'acme')$$,
    $$projector_rebuild('handler')$$,
    $$projector_rebuild('fold', 'gamma', 'a')$$,
    $$projector_rebuild(NULL)$$,
    $$projector_rebuild(NULL, 'acme')$$,
    $$projector_catch_up('handler', 'acme')$$,
    $$projector_catch_up('handler', 'acme', 1)$$,
    $$projector_catch_up('handler')$$,
    $$projector_reset('handler', 'acme', force => true)$$,
    $$projector_reset('handler', 'acme', 'a', true)$$,
    $$projector_reset('handler', force => true)$$,
    $$projector_reset('fold', 'gamma', 'a')$$,
    $$projector_retry('handler', 'acme', 'bad', 1)$$,
    $$projector_requeue('handler', 'acme', 'bad', 1)$$,
    $$projector_skip('handler', 'acme', 'bad', 1, 'no')$$,
    $$projector_unskip('handler', 'acme', 'x', 1)$$,
    $$projector_set_mode('handler', 'shadow')$$,
    $$projector_set_mode('handler', 'shadow', 'acme')$$,
    $$projector_alter('handler', '{"handler": "note"}')$$,
    $$projector_alter('handler', '{"targets": ["children"]}')$$,
    $$projector_alter('handler', '{"event_types": ["Added", "Taken"]}')$$,
    $$projector_alter('handler', '{"options": {"batch_size": 7}, "event_types": ["Added"]}')$$,
    $$projector_alter('fold', '{"fold_columns": {"total": "0"}}')$$,
    $$projector_alter('fold', '{"options": {"digest": false}}')$$]) WITH ORDINALITY u (c, n) ORDER BY n;
-- none of them has changed anything
SELECT count(*) FROM (TABLE before EXCEPT SELECT * FROM projector.outbox) d;
SELECT handler, targets, event_types, mode, options FROM projector.projections WHERE name = 'handler';
SELECT count(*) FROM children WHERE tenant_id = 'acme';
-- a tenant without a run is not affected, and its mode can be changed
SELECT in_use(c) FROM unnest(ARRAY[
    $$projector_rebuild('fold', 'beta')$$,
    $$projector_reset('handler', 'gamma', force => true)$$,
    $$projector_catch_up('handler', 'gamma')$$,
    $$projector_skip('handler', 'gamma', 'bad', 1, 'no')$$,
    $$projector_set_mode('handler', 'shadow', 'gamma')$$,
    $$projector_set_mode('handler', NULL, 'gamma')$$,
    $$projector_alter('handler', '{"options": {"batch_size": 7, "on_rebuild_error": "hold"}}')$$,
    $$projector_alter('handler', '{}')$$,
    $$projector_pause('handler')$$,
    $$projector_pause('handler', 'acme')$$,
    $$projector_resume('handler', 'acme')$$,
    $$projector_resume('handler')$$,
    $$projector_set_mode('handler', 'off')$$,
    $$projector_set_mode('handler', 'follow', 'acme')$$,
    $$projector_set_mode('handler', NULL, 'acme')$$,
    $$projector_set_mode('handler', 'async')$$,
    $$projector_note((SELECT id FROM projector.failures WHERE tenant_id = 'acme' AND aggregate_id = 'bad'), '{"seen": true}')$$])
    WITH ORDINALITY u (c, n) ORDER BY n;
SELECT options FROM projector.projections WHERE name = 'handler';
TABLE active;
SELECT cancel_all();
-- refused for a tenant that is only in the read model too
SELECT count(*) FROM projector_start_run('fold', tenant_id => 'ghost');
SELECT in_use($$projector_rebuild('fold')$$);
SELECT count(*) FROM by_fold WHERE tenant_id = 'ghost';
SELECT cancel_all();
-- removing a tenant's own mode is refused too
SELECT projector_set_mode('fold', 'async', 'acme');
SELECT projector_set_mode('fold', 'shadow');
SELECT count(*) FROM projector_start_run('fold', tenant_id => 'acme');
SELECT in_use($$projector_set_mode('fold', NULL, 'acme')$$);
SELECT cancel_all();
SELECT projector_set_mode('fold', 'async');
SELECT projector_set_mode('fold', NULL, 'acme');
SELECT projector_drain() >= 0;

--
-- events are applied live until a run has begun
--
SELECT count(*) FROM projector_start_run('handler', tenant_id => 'acme');
SELECT count(*) FROM projector_start_run('handler', 'beta', 'catch_up');
SELECT count(*) FROM projector_start_run('fold', tenant_id => 'acme');
SELECT projector_drain();
SELECT projector_append('acme', 'a', 'Added', '{"n": 4, "colour": "red"}');
SELECT projector_drain();
SELECT (SELECT max(n) FROM children WHERE tenant_id = 'acme' AND id = 'a'), (SELECT total FROM by_fold WHERE tenant_id = 'acme' AND id = 'a');
SELECT count(*) FROM projector.outbox WHERE aggregate_id = 'a';
SELECT projector_set_mode('fold', 'inline');
SELECT projector_append('acme', 'a', 'Added', '{"n": 5, "colour": "red"}');
SELECT total FROM by_fold WHERE tenant_id = 'acme' AND id = 'a';
SELECT projector_set_mode('fold', 'strict');
SELECT projector_append('acme', 'a', 'Added', '{"n": 6, "colour": "red"}');
SELECT total FROM by_fold WHERE tenant_id = 'acme' AND id = 'a';
SELECT projector_set_mode('fold', 'async');
SELECT projector_drain();
SELECT count(*) FROM projector.projection_cursors WHERE run_id IS NOT NULL;
TABLE active;

--
-- cancelled, rolled back
--
SELECT projector_cancel_run(run_of('handler')), projector_cancel_run(run_of('handler', 'beta'));
SELECT count(*) FILTER (WHERE projector_cancel_run(id)) FROM projector.runs WHERE state = 'cancelled';
SELECT in_use($$projector_rebuild('handler', 'acme')$$);
BEGIN;
SELECT count(*) FROM projector_start_run('handler');
SELECT count(*) FROM active;
SELECT in_use($$projector_rebuild('handler', 'acme')$$);
SELECT cancel_all();
SELECT count(*) FROM projector_start_run('handler');
ROLLBACK;
TABLE active;
BEGIN;
SAVEPOINT s;
SELECT count(*) FROM projector_start_run('handler', tenant_id => 'beta');
ROLLBACK TO s;
SELECT count(*) FROM projector_start_run('handler', tenant_id => 'gamma');
COMMIT;
TABLE active;
BEGIN;
SELECT cancel_all();
TABLE active;
ROLLBACK;
TABLE active;
SELECT cancel_all();
TABLE active;

--
-- states, even if they are changed by hand
--
CREATE FUNCTION step(before text, after text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO projector.projection_runs (projection_id, tenant_id, mode, state, requested_by, finished_at, error_code, error_message)
    VALUES (-1, 'step', 'rebuild', before, 'me', CASE WHEN before IN ('completed', 'failed', 'cancelled') THEN now() END, 'XX000', 'by hand');
    UPDATE projector.projection_runs SET state = after,
        finished_at = CASE WHEN after IN ('completed', 'failed', 'cancelled') THEN now() END WHERE projection_id = -1;
    RAISE SQLSTATE 'ZZZZZ';
EXCEPTION
    WHEN SQLSTATE 'ZZZZZ' THEN
        RETURN 'ok';
    WHEN OTHERS THEN
        RETURN SQLSTATE || ': ' || SQLERRM;
END $$;
SELECT a || ' -> ' || b || ' ' || step(a, b)
FROM unnest('{queued,running,completed,failed,cancelled}'::text[]) WITH ORDINALITY x (a, i),
    unnest('{queued,running,completed,failed,cancelled}'::text[]) WITH ORDINALITY y (b, j) ORDER BY i, j;
SELECT try($$UPDATE projector.projection_runs SET state = 'running', finished_at = NULL WHERE state = 'cancelled'$$);
SELECT try($$INSERT INTO projector.projection_runs (projection_id, tenant_id, mode, state, requested_by) VALUES (-1, 't', 'rebuild', 'done', 'me')$$);
SELECT try($$INSERT INTO projector.projection_runs (projection_id, tenant_id, mode, requested_by) VALUES (-1, 't', 'reset', 'me')$$);
-- one that has failed says why, one that has ended says when
SELECT try($$INSERT INTO projector.projection_runs (projection_id, tenant_id, mode, state, requested_by, finished_at) VALUES (-1, 't', 'rebuild', 'failed', 'me', now())$$);
SELECT try($$INSERT INTO projector.projection_runs (projection_id, tenant_id, mode, state, requested_by) VALUES (-1, 't', 'rebuild', 'completed', 'me')$$);

--
-- who may
--
CREATE ROLE regress_runs_owner;
CREATE ROLE regress_runs_member IN ROLE regress_runs_owner;
CREATE ROLE regress_runs_other;
CREATE ROLE regress_runs_stranger;
GRANT USAGE ON SCHEMA projector TO regress_runs_owner, regress_runs_other, regress_runs_stranger;
GRANT EXECUTE ON FUNCTION projector_create, projector_drop, projector_start_run, projector_cancel_run TO regress_runs_owner, regress_runs_other;
CREATE TABLE owned (LIKE by_fold INCLUDING ALL);
INSERT INTO owned VALUES ('ghost', 'town', 1);
ALTER TABLE owned OWNER TO regress_runs_owner;
SET ROLE regress_runs_owner;
SELECT projector_create('owned', targets => '{owned}', fold_columns => '{"total": "s.total + 1"}', mode => 'off');
SELECT count(*) FROM projector_start_run('owned', tenant_id => 'acme');
-- without a name: only the caller's own projections
SELECT count(*) FROM projector_start_run(NULL, tenant_id => 'beta');
RESET ROLE;
SELECT projection_name, tenant_id, requested_by FROM projector.runs WHERE state = 'queued' ORDER BY id;
SELECT run_of('owned') AS run \gset
SET ROLE regress_runs_stranger;
\set VERBOSITY terse
SELECT projector_start_run('owned');
SELECT projector_cancel_run(:run);
SELECT count(*) FROM projector.runs;
SELECT count(*) FROM projector.progress;
RESET ROLE;
SET ROLE regress_runs_other;
\set VERBOSITY sqlstate
SELECT projector_start_run('owned');
\set VERBOSITY default
SELECT projector_start_run('owned');
SELECT projector_start_run('owned', 'gamma', 'catch_up');
SELECT projector_cancel_run(:run);
SELECT projector_cancel_run(1000000);
SELECT count(*) FROM projector_start_run(NULL);
RESET ROLE;
SET ROLE regress_runs_member;
SELECT projector_cancel_run(:run);
SELECT count(*) FROM projector_start_run('owned', tenant_id => 'ghost');
RESET ROLE;
SELECT projection_name, tenant_id, state, requested_by, error_message FROM projector.runs WHERE projection_name = 'owned' ORDER BY id;
-- an ended run cannot be cancelled; other roles only get a permission error
SET ROLE regress_runs_other;
SELECT projector_cancel_run(:run);
SET ROLE regress_runs_owner;
SELECT projector_cancel_run(:run);
-- dropping a projection removes its runs
SELECT projector_drop('owned');
RESET ROLE;
SELECT count(*) FROM projector.runs WHERE projection_name = 'owned';
SELECT try(format('SELECT projector_cancel_run(%s)', :run));
DROP TABLE owned;
DROP OWNED BY regress_runs_owner, regress_runs_other, regress_runs_stranger;
DROP ROLE regress_runs_owner, regress_runs_member, regress_runs_other, regress_runs_stranger;

--
-- dropped
--
SELECT count(*) FROM projector_start_run(NULL);
SELECT count(*) FROM active WHERE projection_name = 'handler';
BEGIN;
SELECT projector_drop('handler');
SELECT count(*) FROM active WHERE projection_name = 'handler';
ROLLBACK;
SELECT count(*) FROM active WHERE projection_name = 'handler';
SELECT projector_drop('handler'), projector_drop('fold'), projector_drop('log');
SELECT projection_name, count(*) FROM projector.runs WHERE state = 'queued' GROUP BY 1;
SELECT projector_drop('statement');
SELECT count(*) FROM projector.projection_runs;
SELECT count(*) FROM projector.projection_cursors;

-- a run has a state
INSERT INTO projector.projection_runs (projection_id, tenant_id, mode, requested_by) VALUES (-1, 't', 'rebuild', 'me');
SELECT try($$UPDATE projector.projection_runs SET state = NULL$$) ~ '^235';

SET client_min_messages = warning;
DROP EXTENSION projector CASCADE;
DROP TABLE by_fold, by_statement, children, parents, by_log, before, numbers;
DROP FUNCTION try, in_use, step, clear_notes, cancel_all, run_of;
