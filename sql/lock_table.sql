-- The lock table is small: calls for many tenants take few locks.
SET client_min_messages = warning;
CREATE EXTENSION projector;
CREATE FUNCTION nothing(e projector.event) RETURNS void LANGUAGE sql AS '';
SELECT projector_create('async', handler => 'nothing');
INSERT INTO projector.apply_outbox (projection_id, log_seq, tenant_id, aggregate_id, sequence_number, event_type, status)
SELECT projection_id, n, 't' || n, 'a', 1, 'E', 'dead' FROM projector.projections, generate_series(1, 12000) n;
BEGIN;
SELECT count(*) FROM projector_requeue(max_rows => 12000);
SELECT count(*) < 100 AS few_locks FROM pg_locks WHERE locktype = 'advisory';
COMMIT;
SELECT status, count(*) FROM projector.apply_outbox GROUP BY 1;
DELETE FROM projector.apply_outbox;

-- Inline, at most 64 pairs in one transaction.  Only pairs whose locks are held count.
CREATE TABLE applied (tenant_id text, id text, n int DEFAULT 0, last_event_id uuid, last_event_version bigint,
    PRIMARY KEY (tenant_id, id));
SELECT projector_create('strict', fold_columns => '{"n": "s.n+1"}', targets => '{applied}', mode => 'strict');
-- pairs of rolled back subtransactions do not count
DO $$
BEGIN
    FOR i IN 1 .. 100 LOOP
        BEGIN
            PERFORM projector_append('rolled back ' || i, 'a', 'E', '{}');
            RAISE division_by_zero;
        EXCEPTION WHEN division_by_zero THEN
            NULL;
        END;
    END LOOP;
    PERFORM projector_append('acme', 'a', 'E', '{}');
END $$;
-- the same one again and again
DO $$
BEGIN
    FOR i IN 1 .. 100 LOOP
        BEGIN
            PERFORM projector_append('globex', 'a', 'E', '{}');
            IF i % 2 = 0 THEN
                RAISE division_by_zero;
            END IF;
        EXCEPTION WHEN division_by_zero THEN
            NULL;
        END;
    END LOOP;
END $$;
SELECT tenant_id, n FROM applied ORDER BY 1;
-- 64 pairs are applied inline and no more; events of the first ones still are
DO $$
BEGIN
    FOR i IN 1 .. 64 LOOP
        PERFORM projector_append('many ' || i, 'a', 'E', '{}');
    END LOOP;
    PERFORM projector_append('many 1', 'a', 'E', '{}');
    PERFORM projector_append('many 65', 'a', 'E', '{}');
END $$;
SELECT count(*) FROM applied WHERE tenant_id LIKE 'many%';

DROP EXTENSION projector CASCADE;
DROP TABLE applied;
DROP FUNCTION IF EXISTS nothing;
