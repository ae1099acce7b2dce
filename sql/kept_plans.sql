-- A session frees what it cached for a projection when the projection is dropped.
\pset format unaligned
\pset tuples_only on
CREATE EXTENSION projector;
CREATE TABLE kept (tenant_id text, id text, n int NOT NULL DEFAULT 0, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
CREATE TABLE stamped (LIKE kept INCLUDING ALL);
CREATE TABLE lines (tenant_id text, note text);
CREATE FUNCTION stamp(e projector.event) RETURNS void LANGUAGE sql AS
    $$INSERT INTO stamped VALUES (e.tenant_id, e.aggregate_id, 1, e.event_id, e.sequence_number)
      ON CONFLICT (tenant_id, id) DO UPDATE SET n = stamped.n + 1, last_event_id = e.event_id, last_event_version = e.sequence_number$$;
CREATE VIEW kept_in_session AS
    SELECT count(*) FROM pg_backend_memory_contexts WHERE name IN ('SPI Plan', 'projector fold', 'projector problem')
    AND (ident IS NULL OR ident NOT LIKE '%kept_in_session%');
-- Three kinds, created, used and dropped.
CREATE PROCEDURE come_and_go(times int) LANGUAGE plpgsql AS $$
BEGIN
    FOR i IN 1 .. times LOOP
        PERFORM projector_create('f', fold_columns => '{"n": "s.n + 1"}', targets => '{kept}', mode => 'strict', event_types => '{F}');
        PERFORM projector_create('s', statement => 'INSERT INTO lines SELECT tenant_id, event_type FROM batch', targets => '{lines}', mode => 'strict', event_types => '{S}');
        PERFORM projector_create('h', handler => 'stamp', mode => 'strict', event_types => '{H}', options => '{"checkpoint": "check"}', targets => '{stamped}');
        COMMIT;
        PERFORM projector_append('acme', 'f', 'F', '{}'), projector_append('acme', 's', 'S', '{}'), projector_append('acme', 'h', 'H', '{}');
        COMMIT;
        PERFORM projector_drop('f'), projector_drop('s'), projector_drop('h');
        COMMIT;
    END LOOP;
    PERFORM projector_append('acme', 'x', 'X', '{}');
END $$;
CALL come_and_go(2);
SELECT count AS before FROM kept_in_session \gset
CALL come_and_go(20);
SELECT count - :before <= 2 AS kept FROM kept_in_session;

\pset format aligned
\pset tuples_only off
SET client_min_messages = warning;
DROP EXTENSION projector CASCADE;
DROP TABLE kept, stamped, lines CASCADE;
DROP PROCEDURE come_and_go(int);
RESET client_min_messages;
