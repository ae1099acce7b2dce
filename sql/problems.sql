-- What projector.problems says when a pair has more than one problem, and what
-- it does not advise.
CREATE EXTENSION projector;
SET projector.tail_wait = 0;
CREATE TABLE counts (tenant_id text, id text, n int NOT NULL DEFAULT 0, last_event_id uuid, last_event_version bigint,
    PRIMARY KEY (tenant_id, id));
CREATE FUNCTION count_up(s counts, e projector.event) RETURNS counts LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF e.event_type = 'Poison' THEN
        RAISE EXCEPTION E'two\nlines';
    END IF;
    s.tenant_id := e.tenant_id;
    s.id := e.aggregate_id;
    s.n := coalesce(s.n, 0) + 1;
    RETURN s;
END $$;
CREATE VIEW found AS SELECT level, problem, projection_name, tenant_id, events,
    regexp_replace(detail, '(since|at) [0-9].*', '\1 TIME') AS detail, remedy FROM projector.problems;

-- a dead event is named whatever else keeps the pair from running
SELECT projector_create('counts', fold => 'count_up', targets => '{counts}', options => '{"max_attempts": 1}');
SELECT projector_append('t', 'a', 'Poison', '{}');
SELECT projector_append('t', 'a', 'Fine', '{}');
SELECT projector_drain();
SELECT * FROM found;
SELECT projector_pause('counts', reason => 'lunch');
SELECT * FROM found;
SELECT projector_resume('counts');
-- the worst problem fits a line
SELECT level, replace(reason, E'\n', '<newline>') FROM projector_health();

-- an event that has failed is no problem of a projection that is off
SELECT projector_alter('counts', '{"options": {"max_attempts": 5}}');
SELECT count(*) FROM projector_requeue('counts');
SELECT projector_drain();
SELECT problem, events FROM found;
SELECT projector_set_mode('counts', 'off');
SELECT problem, events FROM found;
SELECT projector_skip('counts', 't', 'a', 1, 'a test');
SELECT projector_set_mode('counts', 'async');
SELECT projector_drain();

-- a run that no worker can begin
SELECT projector_start_run('counts', 't', 'rebuild') IS NOT NULL AS started;
SELECT level, problem, projection_name, events, detail FROM found WHERE problem = 'no_worker';
SELECT count(projector_cancel_run(id)) FROM projector.runs WHERE state = 'queued';
SELECT * FROM found;

-- the remedy is one for this database alone, if the setting is, as in the
-- databases of these tests
SELECT projector_append('t', 'b', 'Fine', '{}');
SET projector.enabled = off;
SELECT problem, remedy FROM found;
RESET projector.enabled;
SELECT problem, replace(remedy, quote_ident(current_database()), 'this') AS remedy FROM projector.problems;
SET client_min_messages = warning;
DROP EXTENSION projector CASCADE;
DROP TABLE counts CASCADE;
