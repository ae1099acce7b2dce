-- The status views read what they are asked for, and not more: no condition on
-- projection or tenant is lost, counts stop, and nothing depends on how many
-- tenants there are.
SET client_min_messages = warning;
CREATE EXTENSION projector;
CREATE FUNCTION handle(e projector.event) RETURNS void LANGUAGE sql AS '';
SELECT count(*) FROM generate_series(1, 3) i, projector_create('p' || i, handler => 'handle',
    mode => CASE i WHEN 2 THEN 'follow' ELSE 'async' END, ordering => CASE i WHEN 3 THEN 'log' END);
-- how many blocks of the extension's relations a command reads
CREATE FUNCTION blocks_read() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT sum(pg_stat_get_xact_blocks_fetched(oid))::bigint FROM pg_class WHERE relnamespace = 'projector'::regnamespace
$$;
CREATE FUNCTION blocks_of(command text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    before bigint;
BEGIN
    EXECUTE command;    -- what is looked up once per session has been
    before := blocks_read();
    EXECUTE command;
    RETURN blocks_read() - before;
END $$;

--
-- Which pairs there are
--
-- no tenant: a projection has a row in status, and none in status_by_tenant
SELECT projection_name, state, tenants_not_ok, lag_events FROM projector.status;
SELECT count(*) FROM projector.status_by_tenant;
-- tenants that one projection knows, and others before, between and behind
SELECT projector_append(t, 'a', 'E', '1') FROM unnest('{d,b,f}'::text[]) t;
SELECT projector_drain() > 0 AS drained;
SELECT projector_append(t, 'a', 'E', '1') FROM unnest('{a,c,cc,e,g,gg,é}'::text[]) t;
INSERT INTO projector.projection_cursors (projection_id, tenant_id) VALUES (1, 'not in the log'), (2, '');
SELECT projection_name, string_agg(tenant_id, ' ' ORDER BY n) AS tenants
FROM (SELECT projection_name, tenant_id, row_number() OVER () AS n FROM projector.status_by_tenant) s GROUP BY 1 ORDER BY 1;
SELECT projection_name, tenants_not_ok, lag_events FROM projector.status;
-- the same rows whichever way they are asked for
CREATE VIEW everything AS SELECT projection_name, tenant_id, state, why, lag_events, pending, applied_count, stale, cursor_state, last_log_seq, error_count, digest
    FROM projector.status_by_tenant;
CREATE TABLE all_rows AS TABLE everything;
CREATE FUNCTION differences(condition text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    n bigint;
BEGIN
    EXECUTE format('SELECT count(*) FROM ((SELECT * FROM everything WHERE %1$s EXCEPT ALL SELECT * FROM all_rows WHERE %1$s) UNION ALL
        (SELECT * FROM all_rows WHERE %1$s EXCEPT ALL SELECT * FROM everything WHERE %1$s)) d', condition) INTO n;
    RETURN n;
END $$;
SELECT condition, differences(condition) FROM unnest(ARRAY[
    $$tenant_id = 'd'$$, $$tenant_id = 'not in the log'$$, $$tenant_id = ''$$, $$tenant_id = 'nowhere'$$, $$tenant_id IS NULL$$, $$tenant_id = NULL$$,
    $$projection_name = 'p2'$$, $$'p2' = projection_name AND tenant_id = 'cc'$$, $$projection_name = 'p9'$$, $$projection_name = 'p1' AND projection_name = 'p2'$$,
    $$tenant_id = 'c' || 'c'$$, $$tenant_id = (SELECT 'cc')$$, $$tenant_id = (SELECT max(t) FROM unnest('{a,b}'::text[]) t)$$, $$tenant_id IN ('a', 'b')$$, $$tenant_id > 'c'$$,
    $$tenant_id = 'a' OR projection_name = 'p1'$$, $$tenant_id <> 'a'$$, $$tenant_id COLLATE "default" = 'a'$$, $$tenant_id = 'a'::varchar(10)$$, $$tenant_id = lower(tenant_id)$$,
    $$tenant_id = projection_name$$, $$state = 'ok'$$]) condition;
CREATE COLLATION regress_ignore_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
SELECT count(*) FROM projector.status_by_tenant WHERE tenant_id = 'CC' COLLATE regress_ignore_case;
PREPARE one(text, text) AS SELECT projection_name, tenant_id FROM everything WHERE projection_name = $1 AND tenant_id = $2;
SET plan_cache_mode = force_generic_plan;
EXECUTE one('p1', 'cc');
EXECUTE one('p3', 'a');
EXECUTE one('p3', NULL);
RESET plan_cache_mode;
SELECT w.tenant, s.projection_name, s.tenant_id FROM (VALUES ('b'), ('nowhere'), ('a')) w (tenant)
    CROSS JOIN LATERAL (SELECT * FROM projector.status_by_tenant s WHERE s.tenant_id = w.tenant OFFSET 0) s ORDER BY 1, 2;
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT projection_name, tenant_id FROM projector.status_by_tenant;
FETCH 2 FROM c;
SELECT count(*) FROM projector.status_by_tenant;
FETCH 2 FROM c;
FETCH PRIOR FROM c;
COMMIT;

--
-- Plans: conditions get there, and nothing is sorted
--
EXPLAIN (COSTS OFF) SELECT * FROM projector.status_by_tenant;
EXPLAIN (COSTS OFF) SELECT * FROM projector.status_by_tenant WHERE projection_name = 'p1' AND tenant_id = 'a';
EXPLAIN (COSTS OFF) SELECT * FROM projector.status_by_tenant WHERE projection_name = 'p1';
EXPLAIN (COSTS OFF) SELECT * FROM projector.status;
-- another order is another matter
EXPLAIN (COSTS OFF) SELECT tenant_id FROM projector.status_by_tenant ORDER BY tenant_id DESC;
EXPLAIN (COSTS OFF) SELECT tenant_id FROM projector.status_by_tenant ORDER BY tenant_id COLLATE "default";

--
-- Ten times as many tenants: one pair costs the same, all of them ten times as much
--
CREATE PROCEDURE fill(first int, last int) LANGUAGE sql AS $$
    INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
    SELECT 't' || to_char(i, 'FM00000'), 'a', 1, 'E', '1' FROM generate_series(first, last) i;
    DELETE FROM projector.apply_outbox;
    DELETE FROM projector.projection_cursors;
    INSERT INTO projector.projection_cursors (projection_id, tenant_id, last_log_seq, applied_count)
    SELECT p.projection_id, e.tenant_id, 1000000, 1 FROM projector.projections p, projector.events e;
$$;
DROP TABLE all_rows;
CREATE TABLE cost (tenants int, what text, blocks bigint);
CREATE PROCEDURE measure(tenants int) LANGUAGE sql AS $$
    INSERT INTO cost SELECT tenants, q, blocks_of(q) FROM unnest(ARRAY[
        'SELECT * FROM projector.status', 'SELECT * FROM projector.status_by_tenant', 'SELECT * FROM projector.problems', 'SELECT * FROM projector_health()',
        $q$SELECT * FROM projector.status_by_tenant WHERE projection_name = 'p2' AND tenant_id = 't00050'$q$,
        $q$SELECT * FROM projector.status_by_tenant WHERE tenant_id = 't00050'$q$]) q
$$;
CALL fill(1, 500);
VACUUM ANALYZE projector.events, projector.projection_cursors, projector.apply_outbox;
CALL measure(500);
CALL fill(501, 5000);
VACUUM ANALYZE projector.events, projector.projection_cursors, projector.apply_outbox;
CALL measure(5000);
SELECT a.what, CASE WHEN b.blocks < 100 AND b.blocks < a.blocks + 30 THEN 'a few' WHEN b.blocks BETWEEN a.blocks * 6 AND a.blocks * 16 THEN 'ten times as many'
    ELSE format('%s, then %s', a.blocks, b.blocks) END AS blocks
FROM cost a JOIN cost b USING (what) WHERE a.tenants = 500 AND b.tenants = 5000 ORDER BY 1;

--
-- Counts stop, and so does what is read for them
--
INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
SELECT 'piled', 'a', i, 'E', '1' FROM generate_series(1, 12000) i;
DELETE FROM projector.apply_outbox;
INSERT INTO projector.apply_outbox (projection_id, log_seq, tenant_id, aggregate_id, sequence_number, event_type, status, held, last_error)
SELECT 1, i, 'piled', CASE WHEN i > 30000 THEN 'z' ELSE 'a' || i END, i, 'E', CASE i WHEN 30001 THEN 'dead' ELSE 'pending' END, i > 15000 AND i <> 30001, 'broken'
FROM generate_series(1, 30001) i;
-- a dead event is seen however many wait
SELECT projection_name, state, CASE state WHEN 'blocked' THEN why END AS why, lag_events, pending, held, failed, dead FROM projector.status_by_tenant WHERE tenant_id = 'piled';
CREATE FUNCTION rows_fetched() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT sum(pg_stat_get_xact_tuples_fetched(oid))::bigint FROM pg_class WHERE relnamespace = 'projector'::regnamespace AND relkind = 'r'
$$;
BEGIN;
SELECT rows_fetched() AS before \gset
SELECT count(*) FROM projector.status_by_tenant WHERE tenant_id = 'piled';
SELECT rows_fetched() - :before < 45000 AS bounded;
COMMIT;

-- all tenants: status counts 10,000 for a projection, and one for each further tenant
DELETE FROM projector.apply_outbox;
INSERT INTO projector.apply_outbox (projection_id, log_seq, tenant_id, aggregate_id, sequence_number, event_type)
SELECT 1, t * 100 + i, 't' || to_char(t, 'FM00000'), 'b', i, 'E' FROM generate_series(1, 3000) t, generate_series(1, 10) i;
VACUUM ANALYZE projector.apply_outbox;
BEGIN;
SELECT pg_stat_get_xact_tuples_fetched('projector.apply_outbox'::regclass) AS before \gset
SELECT projection_name, state, tenants_not_ok, lag_events FROM projector.status WHERE projection_name = 'p1';
SELECT pg_stat_get_xact_tuples_fetched('projector.apply_outbox'::regclass) - :before < 25000 AS bounded;
COMMIT;
SELECT sum(lag_events), count(*) FILTER (WHERE lag_events = 10) FROM projector.status_by_tenant WHERE projection_name = 'p1' AND lag_events > 0;
-- the worst tenant may come last
UPDATE projector.projection_cursors SET state = 'replaying', last_log_seq = 0 WHERE projection_id = 1 AND tenant_id = 't03000';
SELECT projection_name, state, tenants_not_ok, lag_events FROM projector.status WHERE projection_name = 'p1';
SELECT lag_events FROM projector.status_by_tenant WHERE projection_name = 'p1' AND tenant_id = 't03000';

--
-- Who may look
--
CREATE ROLE regress_stranger;
GRANT USAGE ON SCHEMA projector TO regress_stranger;
SELECT projector_alter('p1', '{"options": {"batch_size": 10}}');
UPDATE projector.projections SET options = '{"colour": "red"}' WHERE name = 'p1';
SELECT projector.problem(1) IS NOT NULL AS problem, projector.definition_now(1) IS NOT NULL AS definition;
SET ROLE regress_stranger;
SELECT projector.problem(1) IS NOT NULL AS problem, projector.definition_now(1) IS NOT NULL AS definition;
SELECT count(*) FROM projector.appenders();
SELECT count(*) FROM projector.no_worker();
SELECT count(*) FROM projector.pairs;
SELECT count(*) FROM projector.status;
RESET ROLE;
GRANT SELECT ON projector.status TO regress_stranger;
SET ROLE regress_stranger;
SELECT projector.problem(1) IS NOT NULL AS problem, projector.definition_now(1) IS NOT NULL AS definition;
SELECT projection_name, state, CASE state WHEN 'blocked' THEN why END AS why FROM projector.status;
SELECT count(*) FROM projector.pairs;
CREATE FOREIGN TABLE pg_temp.pairs (projection_name text) SERVER projector_pairs;
RESET ROLE;
-- the wrapper is for that table only
CREATE FOREIGN TABLE pairs (projection_name text) SERVER projector_pairs;
SELECT * FROM pairs;
INSERT INTO projector.pairs (projection_name) VALUES ('x');

DROP FOREIGN TABLE pairs;
DROP EXTENSION projector CASCADE;
DROP OWNED BY regress_stranger;
DROP ROLE regress_stranger;
DROP FUNCTION blocks_read, blocks_of, differences, rows_fetched;
DROP PROCEDURE fill, measure;
DROP TABLE cost;
DROP COLLATION regress_ignore_case;
