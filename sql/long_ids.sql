-- Ids are limited to a length that fits into every index, on every path.
SET client_min_messages = warning;
CREATE EXTENSION projector;
\set try_shows 'message'
\i sql/include/try.sql
-- incompressible
CREATE FUNCTION long(n int) RETURNS text LANGUAGE sql AS $$
    SELECT left(string_agg(md5(i::text), '' ORDER BY i), n) FROM generate_series(1, n / 32 + 1) i
$$;
CREATE TABLE model (tenant_id text, id text, n int DEFAULT 0, last_event_id uuid, last_event_version bigint,
    PRIMARY KEY (tenant_id, id));
CREATE FUNCTION fail(e projector.event) RETURNS void LANGUAGE plpgsql AS $$ BEGIN RAISE 'no'; END $$;
SELECT projector_create('inline', fold_columns => '{"n": "s.n+1"}', targets => '{model}', mode => 'inline');
SELECT projector_create('failing', handler => 'fail');
SELECT projector_create('failing inline', handler => 'fail', mode => 'inline');

-- three ids of the maximum length, and their events fail
SELECT projector_append(long(1000), long(1000), long(1000), '{}');
SELECT projector_append(long(1000), long(1000), long(1000), '{}');
SELECT projector_drain();
SELECT projection_name, length(tenant_id), length(aggregate_id), sequence_number, status, held
FROM projector.apply_outbox JOIN (SELECT projection_id, name AS projection_name FROM projector.projections) p USING (projection_id)
ORDER BY 1, 4;
SELECT length(id), n FROM model;

-- one byte more; a character may have several
SELECT try($$SELECT projector_append(long(1001), 'a', 'E', '{}')$$);
SELECT try($$SELECT projector_append('t', long(1001), 'E', '{}')$$);
SELECT try($$SELECT projector_append('t', 'a', long(1001), '{}')$$);
SELECT try($$SELECT projector_append('t', repeat('ä', 501), 'E', '{}')$$);
SELECT try($$SELECT projector_append('t', long(2675), 'E', '{}')$$);
SELECT try($$SELECT projector_append_batch('t', long(1001), '[{"event_type": "E", "payload": {}}]')$$);
SELECT try($$SELECT projector_append_batch('t', 'a', jsonb_build_array(jsonb_build_object('event_type', long(1001), 'payload', '{}')))$$);
SELECT try($$INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
    VALUES ('t', long(1001), 1, 'E', '{}')$$);
-- a compressible id too
SELECT try($$SELECT projector_append('t', repeat('a', 100000), 'E', '{}')$$);
\set SHOW_CONTEXT never
SELECT projector_append('t', repeat('a', 1001), 'E', '{}');
SELECT try($$COPY projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
    FROM PROGRAM 'printf "t\\t%01001d\\t1\\tE\\t{}\\n" 1'$$);

-- what is restored keeps its length
INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload, payload_hash)
VALUES ('t', long(1001), 1, 'E', '{}', sha256('{}'));

DROP EXTENSION projector CASCADE;
DROP TABLE model;
DROP FUNCTION try, long;
