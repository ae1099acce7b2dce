# One log gives one read model in every way: applied as the events are appended,
# caught up in steps, rebuilt in one transaction or by a worker, or computed by one
# query.  Random histories, the same in every run, with events that fail until a
# function is replaced.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use ProjectorTest;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', <<'EOC');
shared_preload_libraries = 'projector'
projector.workers = 2
projector.slice_events = 5
fsync = off
synchronous_commit = off
EOC
$node->start;
use_node($node);

sql(<<'EOS');
CREATE EXTENSION projector;
-- The histories say when a worker may run.
SELECT projector_worker_stop();
CREATE TABLE kinds (kind text PRIMARY KEY, modes text[]);
INSERT INTO kinds SELECT k, '{async,follow,inline}' FROM unnest('{handler,fold,columns,statement}'::text[]) k;
INSERT INTO kinds VALUES ('lanes', '{async,follow}');
CREATE TABLE made (name text PRIMARY KEY, kind text, mode text, types text[]);
CREATE TABLE wrong (history int, name text, kind text, mode text, stage text, what text);
CREATE TABLE seen (history int, events int, failed int, refused int, rebuilt int, caught_up int, drained int, run int);

-- Fails on some events, until it is replaced.
CREATE PROCEDURE set_broken(broken boolean) LANGUAGE plpgsql AS $body$
BEGIN
    EXECUTE format($q$CREATE OR REPLACE FUNCTION digest(e jsonb) RETURNS text IMMUTABLE LANGUAGE plpgsql AS $f$
        BEGIN
            IF %L AND e ? 'poison' THEN
                RAISE EXCEPTION 'cannot digest this';
            END IF;
            RETURN e->>'v';
        END $f$$q$, broken);
END $body$;
CALL set_broken(false);

-- A table for each kind, and the code that fills it.
CREATE PROCEDURE prepare(name text, kind text) LANGUAGE plpgsql AS $body$
BEGIN
    EXECUTE format($q$CREATE TABLE %I (tenant_id text, id text, path text NOT NULL DEFAULT '',
        last_event_id uuid, last_event_version bigint, last_log_seq bigint, PRIMARY KEY (tenant_id, id))$q$, name);
    IF kind = 'handler' THEN
        EXECUTE format($q$CREATE FUNCTION %1$I(e projector.event) RETURNS void LANGUAGE sql AS $f$
            INSERT INTO %1$I AS t VALUES (e.tenant_id, e.aggregate_id, e.sequence_number || ':' || digest(e.payload) || ' ')
            ON CONFLICT (tenant_id, id) DO UPDATE SET path = t.path || excluded.path $f$$q$, name);
    ELSIF kind = 'fold' THEN
        EXECUTE format($q$CREATE FUNCTION %1$I(s %1$I, e projector.event) RETURNS %1$I IMMUTABLE LANGUAGE plpgsql AS $f$
            BEGIN
                s.tenant_id := e.tenant_id;
                s.id := e.aggregate_id;
                s.path := coalesce(s.path, '') || e.sequence_number || ':' || digest(e.payload) || ' ';
                RETURN s;
            END $f$$q$, name);
    END IF;
END $body$;
CREATE PROCEDURE make(name text, kind text, mode text, types text[]) LANGUAGE plpgsql AS $body$
DECLARE
    options jsonb := jsonb_build_object('batch_size', 1 + (random() * 8)::int, 'retry_base', '1 h', 'retry_max', '1 h', 'max_attempts', 2);
    path text := 's.path || e.sequence_number || '':'' || digest(e.payload) || '' ''';
BEGIN
    CASE kind
    WHEN 'handler' THEN
        PERFORM projector_create(name, handler => name, targets => ARRAY[name], mode => mode, event_types => types, options => options);
    WHEN 'fold' THEN
        PERFORM projector_create(name, fold => name, targets => ARRAY[name], mode => mode, event_types => types, options => options);
    WHEN 'columns' THEN
        PERFORM projector_create(name, fold_columns => jsonb_build_object('path', path), targets => ARRAY[name], mode => mode,
            event_types => types, options => options);
    WHEN 'statement' THEN
        PERFORM projector_create(name, targets => ARRAY[name], mode => mode, event_types => types, options => options,
            statement => format($q$INSERT INTO %I AS t
                SELECT tenant_id, aggregate_id, string_agg(sequence_number || ':' || digest(payload) || ' ', '' ORDER BY sequence_number)
                FROM batch GROUP BY 1, 2 ON CONFLICT (tenant_id, id) DO UPDATE SET path = t.path || excluded.path$q$, name));
    WHEN 'lanes' THEN
        PERFORM projector_create(name, fold_columns => jsonb_build_object('path', replace(path, 's.path', 's.path || e.aggregate_id')),
            targets => ARRAY[name], mode => mode, event_types => types, options => options, key => 'payload->>''lane''');
    END CASE;
    INSERT INTO made VALUES (name, kind, mode, types);
END $body$;

-- The read model computed from the log.
CREATE FUNCTION oracle(kind text, types text[]) RETURNS TABLE (tenant_id text, id text, path text) LANGUAGE sql AS $$
    SELECT e.tenant_id::text, e.aggregate_id::text,
        string_agg(sequence_number || ':' || (payload->>'v') || ' ', '' ORDER BY sequence_number)
    FROM projector.events e WHERE kind <> 'lanes' AND (types IS NULL OR event_type = ANY (types)) GROUP BY 1, 2
    UNION ALL
    SELECT e.tenant_id::text, payload->>'lane',
        string_agg(aggregate_id || sequence_number || ':' || (payload->>'v') || ' ', '' ORDER BY log_seq)
    FROM projector.events e WHERE kind = 'lanes' AND payload ? 'lane' AND (types IS NULL OR event_type = ANY (types)) GROUP BY 1, 2
$$;
CREATE PROCEDURE compare(history int, m made, stage text) LANGUAGE plpgsql AS $body$
DECLARE
    what text;
BEGIN
    EXECUTE format($q$
        WITH o AS (SELECT * FROM oracle($1, $2))
        SELECT string_agg(coalesce(o.tenant_id, t.tenant_id) || '/' || coalesce(o.id, t.id) || ': ' || coalesce(t.path, '(none)')
            || ' should be ' || coalesce(o.path, '(none)'), '; ')
        FROM o FULL JOIN %I t USING (tenant_id, id) WHERE o.path IS DISTINCT FROM t.path$q$, m.name) INTO what USING m.kind, m.types;
    IF what IS NULL AND EXISTS (SELECT FROM projector.outbox WHERE projection_name = m.name) THEN
        what := 'something waits';
    ELSIF what IS NULL AND EXISTS (SELECT FROM projector.failures WHERE projection_name = m.name AND resolved_at IS NULL) THEN
        what := 'an open failure';
    ELSIF what IS NULL AND m.kind IN ('fold', 'columns', 'lanes') THEN
        SELECT string_agg(format('digest %s of %s should be %s', d.digest, t, projector_digest(m.name, t)), '; ') INTO what
        FROM unnest('{t0,t1}'::text[]) t LEFT JOIN projector.status_by_tenant d ON d.projection_name = m.name AND d.tenant_id = t
        WHERE coalesce(d.digest, repeat('0', 32)) <> projector_digest(m.name, t);
    END IF;
    IF what IS NOT NULL THEN
        INSERT INTO wrong VALUES (history, m.name, m.kind, m.mode, stage, what);
    END IF;
END $body$;

-- Let workers finish all runs.
CREATE PROCEDURE let_run(INOUT events int) LANGUAGE plpgsql AS $body$
DECLARE
    last bigint;
BEGIN
    COMMIT;
    SELECT coalesce(max(id), 0) INTO last FROM projector.projection_runs WHERE finished_at IS NOT NULL;
    PERFORM projector_worker_start();
    LOOP
        COMMIT;
        EXIT WHEN NOT EXISTS (SELECT FROM projector.progress WHERE run_id IS NOT NULL);
        PERFORM pg_sleep(0.002);
    END LOOP;
    PERFORM projector_worker_stop();
    LOOP
        COMMIT;
        EXIT WHEN NOT EXISTS (SELECT FROM pg_stat_activity WHERE backend_type = 'projector worker');
        PERFORM pg_sleep(0.002);
    END LOOP;
    SELECT events + sum(processed_events) INTO events FROM projector.runs WHERE state = 'completed' AND id > last;
END $body$;

CREATE PROCEDURE histories(first int, last int) LANGUAGE plpgsql AS $body$
DECLARE
    n int;
    m made;
    tenant text;
    fixed boolean;
    s seen;
    r record;
    k int;
    upto bigint;
BEGIN
    FOR history IN first .. last LOOP
        PERFORM setseed(history / 1000.0);
        s := (history, 0, 0, 0, 0, 0, 0, 0);
        PERFORM projector_drop(name) FROM made;
        DELETE FROM made;
        SET LOCAL session_replication_role = replica;
        TRUNCATE projector.events, live_handler, live_fold, live_columns, live_statement, live_lanes,
            late_handler, late_fold, late_columns, late_statement, late_lanes;
        SET LOCAL session_replication_role = origin;
        fixed := random() < 0.3;
        CALL set_broken(NOT fixed);
        COMMIT;
        -- some projections start with an empty log, others do not
        n := 20 + (random() * 40)::int;
        k := CASE WHEN random() < 0.5 THEN 1 ELSE (random() * n / 2)::int END;
        FOR i IN 1 .. n LOOP
            IF i = greatest(k, 1) THEN
                FOR r IN SELECT * FROM kinds ORDER BY kind LOOP
                    CALL make('live_' || r.kind, r.kind, r.modes[1 + (random() * array_length(r.modes, 1) - 0.5)::int],
                        CASE WHEN random() < 0.4 THEN '{A,B}'::text[] END);
                END LOOP;
                IF random() < 0.9 THEN
                    COMMIT;
                END IF;
            END IF;
            PERFORM projector_append('t' || (random() * 1)::int, chr(97 + (random() * 5)::int), chr(65 + (random() * 2)::int),
                jsonb_build_object('v', (random() * 9)::int) || CASE WHEN random() < 0.8 THEN jsonb_build_object('lane', (random() * 2)::int) ELSE '{}' END
                || CASE WHEN random() < 0.08 THEN '{"poison": 1}' ELSE '{}' END::jsonb);
            s.events := s.events + 1;
            IF random() < 0.6 THEN
                COMMIT;
            END IF;
            IF random() < 0.3 THEN
                SELECT * INTO m FROM made ORDER BY random() LIMIT 1;
                IF random() < 0.5 THEN
                    s.drained := s.drained + projector_drain();
                ELSIF m.name IS NOT NULL THEN
                    s.drained := s.drained + projector_drain(m.name, max_events => 1 + (random() * 5)::int);
                END IF;
                COMMIT;
            END IF;
            IF random() < 0.05 THEN
                SELECT * INTO m FROM made ORDER BY random() LIMIT 1;
                tenant := CASE WHEN random() < 0.7 THEN 't' || (random() * 1)::int END;
                BEGIN
                    IF m.name IS NULL THEN
                        NULL;
                    ELSIF random() < 0.3 THEN
                        s.caught_up := s.caught_up + projector_catch_up(m.name, tenant);
                    ELSE
                        s.rebuilt := s.rebuilt + projector_rebuild(m.name, tenant, CASE WHEN tenant IS NOT NULL AND m.kind IN ('fold', 'columns')
                            AND random() < 0.5 THEN 'a' END);
                    END IF;
                EXCEPTION WHEN raise_exception OR undefined_object THEN
                    s.refused := s.refused + 1;
                END;
                COMMIT;
            END IF;
            IF NOT fixed AND i > n / 2 AND random() < 0.1 THEN
                fixed := true;
                CALL set_broken(false);
                COMMIT;
            END IF;
        END LOOP;
        COMMIT;
        CALL set_broken(false);
        COMMIT;
        -- failed events are tried again; drain repeatedly, because a handover may follow
        SELECT count(*) INTO s.failed FROM projector.outbox WHERE status IN ('failed', 'dead');
        FOR i IN 1 .. 50 LOOP
            PERFORM projector_requeue(projection_name, tenant_id, aggregate_id, sequence_number)
                FROM projector.outbox WHERE status IN ('failed', 'dead');
            k := projector_drain();
            COMMIT;
            s.drained := s.drained + k;
            EXIT WHEN k = 0;
        END LOOP;
        FOR m IN SELECT * FROM made ORDER BY name LOOP
            CALL compare(history, m, 'live');
        END LOOP;
        COMMIT;

        -- verified
        FOR m IN SELECT * FROM made ORDER BY name LOOP
            INSERT INTO wrong SELECT history, m.name, m.kind, m.mode, 'verify', v.tenant_id || ': ' || coalesce(v.sample::text, 'digests')
                FROM projector_verify(m.name) v WHERE NOT v.matches OR v.live_digest <> v.rebuilt_digest;
        END LOOP;
        COMMIT;

        -- other projections, in steps
        FOR m IN SELECT * FROM made ORDER BY name LOOP
            CALL make(replace(m.name, 'live', 'late'), m.kind, m.mode, m.types);
        END LOOP;
        COMMIT;
        FOR m IN SELECT * FROM made WHERE name LIKE 'late%' ORDER BY name LOOP
            SELECT min(log_seq) - 1 INTO upto FROM projector.events;
            IF random() < 0.2 THEN
                upto := upto + 1 + (random() * 30)::int;
                PERFORM projector_start_run(m.name, mode => 'catch_up', until_log_seq => upto);
                CALL let_run(s.run);
            END IF;
            WHILE upto < (SELECT max(log_seq) FROM projector.events) LOOP
                upto := upto + 1 + (random() * 15)::int;
                tenant := CASE WHEN random() < 0.7 THEN 't' || (random() * 1)::int END;
                tenant := (SELECT e.tenant_id FROM projector.events e WHERE e.tenant_id = tenant LIMIT 1);
                s.caught_up := s.caught_up + projector_catch_up(m.name, tenant, upto);
                IF random() < 0.5 THEN
                    COMMIT;
                END IF;
            END LOOP;
            s.caught_up := s.caught_up + projector_catch_up(m.name);
            CALL compare(history, m, 'caught up');
            IF projector_drain(m.name) <> 0 THEN
                INSERT INTO wrong VALUES (history, m.name, m.kind, m.mode, 'caught up', 'a drain finds more');
            END IF;
            COMMIT;
        END LOOP;

        -- all of them rebuilt
        FOR m IN SELECT * FROM made ORDER BY name LOOP
            IF random() < 0.5 THEN
                EXECUTE format($q$UPDATE %I SET path = 'spoilt', last_event_version = 1000, last_log_seq = 1e15$q$, m.name);
            END IF;
            s.rebuilt := s.rebuilt + CASE WHEN random() < 0.5 THEN projector_rebuild(m.name)
                ELSE (SELECT coalesce(sum(projector_rebuild(m.name, e.tenant_id)), 0) FROM (SELECT DISTINCT tenant_id FROM projector.events) e) END;
            CALL compare(history, m, 'rebuilt');
        END LOOP;
        COMMIT;
        k := projector_drain();
        IF k <> 0 THEN
            INSERT INTO wrong VALUES (history, NULL, NULL, NULL, 'rebuilt', 'a drain finds ' || k || ' more');
        END IF;
        FOR m IN SELECT * FROM made ORDER BY name LOOP
            CALL compare(history, m, 'drained after that');
        END LOOP;

        -- rebuilt again, by workers, in parallel
        FOR m IN SELECT * FROM made ORDER BY name LOOP
            IF random() < 0.5 THEN
                EXECUTE format($q$UPDATE %I SET path = 'spoilt', last_event_version = 1000, last_log_seq = 1e15$q$, m.name);
                EXECUTE format($q$DELETE FROM %I WHERE id = 'b'$q$, m.name);
            END IF;
            PERFORM projector_start_run(m.name);
        END LOOP;
        CALL let_run(s.run);
        FOR m IN SELECT * FROM made ORDER BY name LOOP
            CALL compare(history, m, 'rebuilt by a worker');
        END LOOP;
        IF EXISTS (SELECT FROM projector.runs WHERE state <> 'completed') THEN
            INSERT INTO wrong SELECT history, projection_name, NULL, NULL, 'rebuilt by a worker', state || ': ' || coalesce(error_message, '')
                FROM projector.runs WHERE state <> 'completed';
        END IF;
        k := projector_drain();
        IF k <> 0 THEN
            INSERT INTO wrong VALUES (history, NULL, NULL, NULL, 'rebuilt by a worker', 'a drain finds ' || k || ' more');
        END IF;
        IF EXISTS (SELECT FROM projector.projection_offsets WHERE projection_id < 0)
            OR EXISTS (SELECT FROM pg_class WHERE relname LIKE 'build%') THEN
            INSERT INTO wrong VALUES (history, NULL, NULL, NULL, 'rebuilt by a worker', 'something is left');
        END IF;
        INSERT INTO seen SELECT s.*;
        COMMIT;
    END LOOP;
END $body$;
EOS
sql("CALL prepare('${_}_handler', 'handler'); CALL prepare('${_}_fold', 'fold'); CALL prepare('${_}_columns', 'columns');"
	  . "CALL prepare('${_}_statement', 'statement'); CALL prepare('${_}_lanes', 'lanes')")
  for 'live', 'late';

for my $batch (0 .. 4)
{
	my ($first, $last) = (40 * $batch + 1, 40 * $batch + 40);

	sql("SET client_min_messages = warning; SET projector.tail_wait = 0; CALL histories($first, $last)");
	is(sql("SELECT count(*) FROM wrong WHERE history BETWEEN $first AND $last"), '0', "histories $first to $last: the same all ways")
	  or diag(sql('SELECT * FROM wrong ORDER BY 1 LIMIT 10'));
}
note('histories, events, failed, refused, rebuilt, caught up, drained, by runs: '
	  . sql('SELECT count(*), sum(events), sum(failed), sum(refused), sum(rebuilt), sum(caught_up), sum(drained), sum(run) FROM seen'));
is(sql('SELECT count(*) FROM seen'), '200', 'all of them were played');
is(sql('SELECT sum(failed) > 100 AND sum(refused) > 5 AND sum(rebuilt) > 50000 AND sum(run) > 50000 FROM seen'), 't', 'and they were not all easy');
$node->stop;
done_testing();
