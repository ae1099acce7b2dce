-- Operations of this session and backfills in projector.progress.  There are no
-- workers here; test/t has what other sessions see, and runs.
\pset format unaligned
\pset null (null)
\set SHOW_CONTEXT never
CREATE EXTENSION projector;
SELECT column_name, data_type FROM information_schema.columns
WHERE table_schema = 'projector' AND table_name = 'progress' ORDER BY ordinal_position;
SELECT * FROM projector.progress;
\i sql/include/try.sql
-- what does not depend on time and statistics
CREATE VIEW seen AS
    SELECT run_id, projection_name AS projection, left(tenant_id, 6) AS tenant, mode, state, phase, pid = pg_backend_pid() AS mine,
        events_done AS done, percent BETWEEN 0 AND 100 AND events_total >= events_done AS has_total,
        tenants_done AS of_tenants, tenants_total AS tenants, since <= clock_timestamp() AS started
    FROM projector.progress WHERE mode <> 'backfill';
CREATE FUNCTION say(what text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    shown text;
BEGIN
    FOR shown IN SELECT seen::text FROM public.seen LOOP
        RAISE NOTICE '%: %', what, shown;
    END LOOP;
END $$;
CREATE TABLE list (tenant_id text, id text, n bigint);
CREATE FUNCTION handle(e projector.event) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF e.payload ? 'fail' THEN
        RAISE EXCEPTION 'no';
    END IF;
    IF e.sequence_number % 2 = 1 THEN
        PERFORM public.say(e.aggregate_id || e.sequence_number);
    END IF;
    INSERT INTO public.list VALUES (e.tenant_id, e.aggregate_id, e.sequence_number);
END $$;
SELECT projector_create('list', handler => 'handle', targets => '{list}', options => '{"batch_size": 2, "idempotent": true}');
SELECT count(projector_append('acme', 'a', 'Added', '{}')) FROM generate_series(1, 5);
SELECT count(projector_append('beta', 'b', 'Added', '{}')) FROM generate_series(1, 3);

--
-- a backfill: it waits for its first worker or drain, then it reads the log
--
CREATE VIEW backfills AS
    SELECT projection_name AS projection, tenant_id AS tenant, state, percent, tenants_done AS of_tenants, tenants_total AS tenants,
        num_nulls(run_id, per_second, time_left, pid, phase, events_done, events_total, since) AS unknown
    FROM projector.progress WHERE mode = 'backfill';
TABLE backfills;
SELECT projector_drain('list', max_events => 3);
TABLE backfills;
SELECT projector_pause('list');
TABLE backfills;
SELECT projector_resume('list');
SELECT projector_drain('list', 'beta');
TABLE backfills;
SELECT projector_drain('list');
TABLE backfills;
-- after a reset the log is read again; tenants that were not reset count as done
SELECT projector_reset('list', 'acme');
TABLE backfills;
SELECT projector_drain('list');
TABLE backfills;
-- it has none while it is off
SELECT projector_set_mode('list', 'off');
TABLE backfills;
SELECT projector_set_mode('list', 'async');
TABLE backfills;
SELECT projector_drain('list');

--
-- the operations
--
TABLE seen;
SELECT projector_rebuild('list', 'acme');
SELECT projector_rebuild('list');
SELECT projector_rebuild(NULL, 'acme');
SELECT * FROM projector_verify('list', 'acme');
SELECT count(*) FROM projector_verify('list');
SELECT count(*) FROM projector_preview('list', '{"event_types": ["Added"]}', 'beta');
SELECT projector_set_mode('list', 'off');
SELECT count(projector_append('beta', 'b', 'Added', '{}')) FROM generate_series(4, 7);
SELECT projector_catch_up('list', 'beta');
SELECT projector_catch_up('list');
SELECT projector_set_mode('list', 'async');
SELECT projector_drain();
SELECT projector_append('acme', 'c', 'Added', '{}');
SELECT projector_drain();
TABLE seen;
-- a reset runs no code of the projection, but triggers see it
CREATE FUNCTION shout() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN PERFORM public.say(TG_TABLE_NAME); RETURN NULL; END $$;
CREATE TRIGGER shout AFTER UPDATE ON projector.projection_offsets EXECUTE FUNCTION shout();
CREATE TRIGGER shout AFTER DELETE ON projector.apply_outbox EXECUTE FUNCTION shout();
CREATE TRIGGER shout AFTER INSERT OR UPDATE ON projector.projection_cursors EXECUTE FUNCTION shout();
SELECT projector_reset('list', 'acme');
SELECT projector_reset('list');
DROP FUNCTION shout CASCADE;
SELECT projector_drain();
-- a long name is cut, between two characters
SELECT projector_append(repeat('x', 255) || U&'\00e9', 'd', 'Added', '{}');
CREATE VIEW cut AS SELECT octet_length(tenant_id) FROM projector.progress WHERE mode = 'drain';
CREATE OR REPLACE FUNCTION say(what text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    RAISE NOTICE '% bytes', (SELECT octet_length FROM public.cut);
END $$;
SELECT projector_drain();

--
-- an error ends what is shown, in the subtransaction of the operation too
--
SELECT projector_append('acme', 'a', 'Added', '{"fail": true}');
CREATE OR REPLACE FUNCTION say(what text) RETURNS void LANGUAGE plpgsql AS $$BEGIN END $$;
SELECT projector_rebuild('list', 'acme');
TABLE seen;
BEGIN;
SAVEPOINT here;
SELECT projector_rebuild('list', 'acme');
ROLLBACK TO here;
TABLE seen;
SELECT try($$SELECT projector_rebuild('list', 'acme')$$);
TABLE seen;
SELECT try($$SELECT * FROM projector_verify('list')$$);
TABLE seen;
COMMIT;
-- events that fail do not end it: it goes on
SELECT projector_alter('list', '{"options": {"on_rebuild_error": "skip"}}');
CREATE OR REPLACE FUNCTION say(what text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    shown text;
BEGIN
    FOR shown IN SELECT seen::text FROM public.seen LOOP
        RAISE NOTICE '%: %', what, shown;
    END LOOP;
END $$;
SELECT projector_rebuild('list', 'acme');

--
-- who may not read the view sees nothing
--
CREATE ROLE stranger;
GRANT USAGE ON SCHEMA projector TO stranger;
SET ROLE stranger;
SELECT * FROM projector.progress;
SELECT count(*) FROM projector.backfills();
SELECT count(*) FROM projector.session_progress();
RESET ROLE;
SELECT projector_reset('list');
SELECT count(*) FROM projector.backfills();
SET ROLE stranger;
SELECT count(*) FROM projector.backfills();
RESET ROLE;
DROP OWNED BY stranger;
DROP ROLE stranger;
-- the rate of runs is set for the server
SHOW projector.run_max_rate;
SET projector.run_max_rate = 10;

DROP VIEW seen, backfills, cut;
DROP EXTENSION projector CASCADE;
DROP TABLE list;
DROP FUNCTION say, try;
