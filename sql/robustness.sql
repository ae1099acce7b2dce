--
-- What must make no difference: an error that is caught, columns that an operator
-- has added to our tables, rows that spill to disk, how full a table was when a
-- statement was planned, other pairs that wait for a drain, and the name and type
-- of a target's key.
--
CREATE EXTENSION projector;
\set SHOW_CONTEXT never
\pset format unaligned
\pset tuples_only on

\set try_shows 'message'
\i sql/include/try.sql

-- Counts events; payload "bad" cannot be applied.
CREATE TABLE counts (tenant_id text, item_id text, n bigint NOT NULL, bytes bigint NOT NULL,
                     PRIMARY KEY (tenant_id, item_id));
CREATE FUNCTION count_event(e projector.event) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO counts AS c VALUES (e.tenant_id, e.aggregate_id, 1, length(e.payload::text))
    ON CONFLICT (tenant_id, item_id) DO UPDATE SET n = c.n + 1, bytes = c.bytes + excluded.bytes;
    IF e.payload = '"bad"' THEN
        RAISE EXCEPTION 'bad event';
    END IF;
END $$;
-- a second read model of the same kind
CREATE TABLE more_counts (LIKE counts INCLUDING ALL);
CREATE FUNCTION count_more(e projector.event) RETURNS void LANGUAGE sql AS $$
    INSERT INTO more_counts AS c VALUES (e.tenant_id, e.aggregate_id, 1, length(e.payload::text))
    ON CONFLICT (tenant_id, item_id) DO UPDATE SET n = c.n + 1, bytes = c.bytes + excluded.bytes
$$;
CREATE VIEW oracle AS
    SELECT tenant_id::text, aggregate_id::text AS item_id, count(*) AS n, sum(length(payload::text))::bigint AS bytes
    FROM projector.events GROUP BY 1, 2;

--
-- An error in an append restores the appender's role and settings
--
CREATE ROLE regress_batch_appender;
GRANT USAGE ON SCHEMA projector TO regress_batch_appender;
GRANT EXECUTE ON FUNCTION projector_append, projector_append_batch TO regress_batch_appender;
SELECT projector_create('counts', handler => 'count_event', targets => '{counts}', mode => 'strict');
CREATE FUNCTION whoami() RETURNS SETOF text LANGUAGE sql AS $$
    SELECT current_user::text UNION ALL
    SELECT try(command) FROM unnest(array['SELECT FROM pg_authid', 'SELECT FROM projector.events',
        'SELECT FROM counts', 'SELECT projector_drain()', 'SET LOCAL projector.tenant_id = ''acme''']) command
$$;
SET SESSION AUTHORIZATION regress_batch_appender;
SELECT whoami();
-- caught in the middle of a transaction that continues
BEGIN;
SELECT projector_append('acme', 'a', 'E', '1');
DO $$
BEGIN
    PERFORM projector_append_batch('acme', 'a', '[{"event_type": "E", "payload": 2},
        {"event_type": "E", "payload": "bad"}, {"event_type": "E", "payload": 3}]');
EXCEPTION WHEN raise_exception THEN
    RAISE NOTICE 'caught by %: %', current_user, SQLERRM;
END $$;
SELECT whoami();
SHOW search_path;
SELECT current_setting('projector.tenant_id');
SELECT projector_append_batch('acme', 'a', '[{"event_type": "E", "payload": 4}, {"event_type": "E", "payload": 5}]');
SAVEPOINT s;
SELECT projector_append_batch('acme', 'b', '[{"event_type": "E", "payload": "bad"}, {"event_type": "E", "payload": 6}]');
ROLLBACK TO s;
SELECT whoami();
COMMIT;
SELECT whoami();
-- in a function that is called repeatedly, and appends after each error
DO $$
DECLARE
    caught int := 0;
BEGIN
    FOR i IN 1 .. 5 LOOP
        BEGIN
            PERFORM projector_append_batch('acme', 'c', '[{"event_type": "E", "payload": 1}, {"event_type": "E", "payload": "bad"}]');
        EXCEPTION WHEN raise_exception THEN
            caught := caught + 1;
            PERFORM projector_append_batch('acme', 'c', '[{"event_type": "E", "payload": 1}, {"event_type": "E", "payload": 2}]');
        END;
    END LOOP;
    RAISE NOTICE 'caught % as %', caught, current_user;
END $$;
-- not caught at all: the next statement works
SELECT projector_append_batch('acme', 'd', '[{"event_type": "E", "payload": 1}, {"event_type": "E", "payload": "bad"}]');
SELECT whoami();
SELECT projector_append_batch('acme', 'd', '[{"event_type": "E", "payload": 1}, {"event_type": "E", "payload": 2}]');
-- a wrong argument that is found after the role was switched
SELECT projector_append_batch('acme', 'd', '[{"event_type": "E", "payload": 1}, {"event_type": "E", "payload": 2}]', expected_version => 1);
SELECT whoami();
RESET SESSION AUTHORIZATION;
SELECT item_id, n FROM counts ORDER BY 1;
TABLE counts EXCEPT TABLE oracle;

--
-- Columns that an operator has added to our tables
--
ALTER TABLE projector.events ADD COLUMN note text, ADD COLUMN shard int DEFAULT 7;
ALTER TABLE projector.projections ADD COLUMN team text DEFAULT 'billing', ADD COLUMN weights float[] DEFAULT '{1,2}';
ALTER TABLE projector.projection_cursors ADD COLUMN note text DEFAULT 'here', ADD COLUMN seen timestamptz DEFAULT now();
ALTER TABLE projector.projection_offsets ADD COLUMN note text DEFAULT 'there';
ALTER TABLE projector.apply_outbox ADD COLUMN note text;
ALTER TABLE projector.projection_deltas ADD COLUMN note text;
SELECT projector_set_mode('counts', 'inline');
SELECT projector_create('more', handler => 'count_more', targets => '{more_counts}');
SELECT projector_drain() = (SELECT count(*) FROM projector.events);
SELECT projector_append('acme', 'wide', 'E', '1');
SELECT projector_append_batch('acme', 'wide', '[{"event_type": "E", "payload": 2}, {"event_type": "E", "payload": 3}]');
INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload, note)
    VALUES ('acme', 'wide', 4, 'E', '4', 'by hand'), ('beta', 'wide', 1, 'E', '5', NULL);
SELECT tenant_id, item_id, n FROM counts WHERE item_id = 'wide' ORDER BY 1;
SELECT projector_drain();
SELECT projector_pause('counts', 'acme', 'a while');
SELECT projector_append('acme', 'wide', 'E', '"bad"');
SELECT projector_resume('counts', 'acme');
SELECT projector_retry('counts', 'acme', 'wide', 5);
SELECT projector_alter('counts', '{"event_types": ["E", "New"]}');
SELECT projector_append('acme', 'wide', 'E', '6');
SELECT projector_reset('more', force => true);
TRUNCATE more_counts;
SELECT projector_drain('more') = (SELECT count(*) FROM projector.events);
SELECT count(*) FROM ((TABLE more_counts EXCEPT TABLE oracle) UNION ALL (TABLE oracle EXCEPT TABLE more_counts)) d;
SELECT aggregate_id, sequence_number, status FROM projector.outbox ORDER BY 1, 2;
SELECT tenant_id, aggregate_id, last_sequence_number, note FROM projector.projection_offsets
WHERE aggregate_id = 'wide' ORDER BY projection_id, 1;
SELECT name, team, weights FROM projector.projections ORDER BY 1;

--
-- A statement whose new rows spill to disk is captured completely
--
SELECT projector_alter('counts', '{"event_types": null}');
SET work_mem = '64kB';
INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
    SELECT 'large', 'item-' || n % 3, (n + 2) / 3, 'Large', to_jsonb(repeat(md5(n::text), 32768))
    FROM generate_series(1, 60) n ORDER BY n;
SELECT item_id, n, bytes / n AS bytes_each FROM counts WHERE tenant_id = 'large' ORDER BY 1;
SELECT projection_name, count(*) FROM projector.outbox WHERE tenant_id = 'large' GROUP BY 1;
SELECT projector_drain();
SELECT item_id, n, bytes / n AS bytes_each FROM more_counts WHERE tenant_id = 'large' ORDER BY 1;
-- one out of sequence is found after rows on disk, and nothing is kept
INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
    SELECT 'large', 'spoilt', CASE n WHEN 11 THEN 12 ELSE n END, 'Large', to_jsonb(repeat(md5(n::text), 32768))
    FROM generate_series(1, 11) n ORDER BY n;
SELECT count(*) FROM projector.events WHERE aggregate_id = 'spoilt';
-- many small rows, in more chunks than one
INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
    SELECT 'small', 'item-' || n % 7, (n + 6) / 7, 'Small', to_jsonb(n) FROM generate_series(1, 2500) n ORDER BY n;
SELECT projector_drain();
SELECT count(*) FROM ((TABLE more_counts EXCEPT TABLE oracle) UNION ALL (TABLE oracle EXCEPT TABLE more_counts)) d;
RESET work_mem;

--
-- A drain's work does not depend on how full the tables were when it began
--
SET client_min_messages = warning;
DROP EXTENSION projector CASCADE;
TRUNCATE counts, more_counts;
CREATE EXTENSION projector;
CREATE FUNCTION count_event(e projector.event) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO counts AS c VALUES (e.tenant_id, e.aggregate_id, 1, 0)
    ON CONFLICT (tenant_id, item_id) DO UPDATE SET n = c.n + 1;
    IF e.payload = '"bad"' THEN
        RAISE EXCEPTION 'bad event';
    END IF;
END $$;
RESET client_min_messages;
-- Rows and index entries of our tables that this transaction has read.
CREATE FUNCTION rows_read() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT sum(pg_stat_get_xact_tuples_returned(oid) + pg_stat_get_xact_tuples_fetched(oid))::bigint
    FROM pg_class WHERE relnamespace = 'projector'::regnamespace AND relkind IN ('r', 'i')
$$;
SELECT projector_create('counts', handler => 'count_event', targets => '{counts}', options => '{"retry_base": "1 h"}');
SELECT projector_append('acme', 'first', 'E', '1'), projector_append('acme', 'first', 'E', '2'),
       projector_append('acme', 'second', 'E', '"bad"');
-- every statement is planned while its tables are almost empty
SELECT projector_drain(), projector_drain();
SELECT projector_append('acme', 'second', 'E', '1');
SELECT projector_retry('counts', 'acme', 'second', 1);
SELECT projector_drain();
-- 5,000 events wait for a failed one, others are pending, in several tenants
INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
    SELECT 'acme', 'second', n, 'E', '0' FROM generate_series(3, 5002) n;
SELECT projector_drain();
SELECT count(*) FILTER (WHERE held) > 5000 AS held FROM projector.apply_outbox;
INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
    SELECT (array['acme', 'beta'])[1 + n % 2], 'item-' || n % 5000, 1 + n / 5000, 'E', '0'
    FROM generate_series(0, 14999) n;
BEGIN;
SELECT rows_read() AS before \gset
SELECT projector_drain(max_events => 2000) AS drained \gset
SELECT :drained AS drained, (rows_read() - :before) / :drained < 20 AS cheap;
COMMIT;
-- the same for an inline append, a retry, and reading the log
SELECT projector_set_mode('counts', 'inline');
BEGIN;
SELECT rows_read() AS before \gset
SELECT projector_append('acme', 'third', 'E', '0');
SELECT projector_append('acme', 'third', 'E', '0');
SELECT rows_read() - :before < 50 AS cheap;
COMMIT;
BEGIN;
SELECT rows_read() AS before \gset
SELECT projector_retry('counts', 'acme', 'second', 1);
SELECT rows_read() - :before < 200 AS cheap;
COMMIT;
SELECT projector_reset('counts', 'beta', force => true);
SELECT projector_drain('counts', 'beta', 10);
BEGIN;
SELECT rows_read() AS before \gset
SELECT projector_drain('counts', 'beta', 2000) AS drained \gset
SELECT :drained AS drained, (rows_read() - :before) / :drained < 20 AS cheap;
COMMIT;

--
-- Pairs that cannot be drained do not use up the limit of a drain
--
SET client_min_messages = warning;
DROP EXTENSION projector CASCADE;
TRUNCATE counts;
CREATE EXTENSION projector;
CREATE FUNCTION count_event(e projector.event) RETURNS void LANGUAGE sql AS $$
    INSERT INTO counts AS c VALUES ((e).tenant_id, (e).aggregate_id, 1, 0)
    ON CONFLICT (tenant_id, item_id) DO UPDATE SET n = c.n + 1
$$;
CREATE FUNCTION ignore_event(e projector.event) RETURNS void LANGUAGE sql AS '';
RESET client_min_messages;
SELECT projector_create(name, handler => 'ignore_event', options => '{"idempotent": true}')
FROM unnest('{a.paused,b.paused tenants,c.off,d.reset}'::text[]) name;
SELECT projector_create('z.counts', handler => 'count_event', targets => '{counts}');
SELECT projector_drain();
-- more tenants than the limit of a drain
INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
    SELECT 'tenant-' || n, 'a', 1, 'E', '0' FROM generate_series(1, 70) n;
-- before the projection in question: one that is paused, one paused for each
-- tenant, one that is off for each tenant, and one that has been reset
SELECT projector_pause('a.paused');
SELECT count(*) FROM (SELECT projector_pause('b.paused tenants', 'tenant-' || n),
                             projector_set_mode('c.off', 'off', 'tenant-' || n) FROM generate_series(1, 70) n) s;
SELECT projector_drain('d.reset'), projector_drain('d.reset');
SELECT projector_reset('d.reset');
SELECT projection_name, count(*) FROM projector.outbox GROUP BY 1 ORDER BY 1;
-- this transaction appends events, so the reset projection has no handover yet
BEGIN;
SELECT projector_append('tenant-1', 'b', 'E', '0');
SELECT projector_drain();
SELECT projector_drain();
COMMIT;
SELECT projection_name, count(*) FROM projector.outbox GROUP BY 1 ORDER BY 1;
SELECT count(*), sum(n) FROM counts;
-- the same in other tenants of one projection
SELECT count(*) FROM (SELECT projector_pause('z.counts', 'tenant-' || n) FROM generate_series(1, 70) n) s;
INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
    SELECT tenant, 'c', 1, 'E', '0' FROM (SELECT 'tenant-' || n FROM generate_series(1, 70) n UNION ALL VALUES ('zz')) t (tenant);
SELECT projector_drain('z.counts');
SELECT tenant_id, n FROM counts WHERE item_id = 'c';
-- when they can be drained, 64 pairs at a time are
SELECT projector_resume('a.paused');
SELECT projector_drain('a.paused'), projector_drain('a.paused');
SELECT projector_drain('d.reset'), projector_drain('d.reset');

--
-- Option "checkpoint" finds the row with any type and name of its key
--
SET client_min_messages = warning;
SELECT projector_drop(name) FROM projector.projections;
RESET client_min_messages;
CREATE SCHEMA "Shop";
CREATE DOMAIN "Shop"."Item Key" AS varchar(40);
CREATE TABLE padded (tenant_id char(10), item_id char(10), last_event_id uuid, last_event_version bigint,
                     PRIMARY KEY (tenant_id, item_id));
CREATE TABLE "Shop"."Stock" (tenant_id text, "Item Id" text, last_event_id uuid, last_event_version bigint,
                             PRIMARY KEY (tenant_id, "Item Id"));
CREATE TABLE "Shop"."STOCK" (tenant_id text, "select" "Shop"."Item Key", last_event_id uuid, last_event_version bigint,
                             PRIMARY KEY ("select", tenant_id));
CREATE TABLE by_name (tenant_id name, item_id name, last_event_id uuid, last_event_version bigint,
                      PRIMARY KEY (tenant_id, item_id));
-- "stamps" stamps the row; an event named like the table writes it without a stamp
DO $do$
DECLARE
    target text;
BEGIN
    FOREACH target IN ARRAY array['padded', '"Shop"."Stock"', '"Shop"."STOCK"', 'by_name'] LOOP
        EXECUTE format($f$
            CREATE FUNCTION %I(e projector.event) RETURNS void LANGUAGE plpgsql AS $$
            BEGIN
                IF e.event_type = 'stamps' THEN
                    INSERT INTO %s AS t VALUES (e.tenant_id, e.aggregate_id, e.event_id, e.sequence_number)
                    ON CONFLICT ON CONSTRAINT %I DO UPDATE
                    SET last_event_id = excluded.last_event_id, last_event_version = excluded.last_event_version;
                ELSE
                    INSERT INTO %s VALUES (e.tenant_id, e.aggregate_id) ON CONFLICT DO NOTHING;
                END IF;
            END $$ $f$, 'apply ' || target, target,
            (SELECT conname FROM pg_constraint WHERE conrelid = target::regclass AND contype = 'p'), target);
        PERFORM projector_create(target, handler => quote_ident('apply ' || target), targets => array[target],
                                 mode => 'strict', event_types => array['stamps', target],
                                 options => '{"checkpoint": "check"}');
    END LOOP;
END $do$;
SELECT name, targets FROM projector.projections ORDER BY projection_id;
SELECT projector_append('acme', 'item-1', 'stamps', '{}');
SELECT projector_append('acme', 'item-1', 'stamps', '{}');
SELECT name, item, try(format('SELECT projector_append(%L, %L, %L, %L)', 'acme', item, name, '{}'))
FROM projector.projections, unnest('{item-1,item-2}'::text[]) item ORDER BY projection_id, 2;
SELECT sequence_number, event_type FROM projector.events WHERE event_type <> 'E' ORDER BY log_seq;

SET client_min_messages = warning;
--
-- a registry row that was frozen before its handover
--
CREATE TABLE frozen (tenant_id text, n bigint);
CREATE FUNCTION note_frozen(e projector.event) RETURNS void LANGUAGE sql AS 'INSERT INTO frozen VALUES (e.tenant_id, e.sequence_number)';
SELECT projector_append('frozen', 'a', 'E', '1');
SELECT projector_create('frozen', handler => 'note_frozen', targets => '{frozen}');
VACUUM (FREEZE) projector.projections;
SELECT projector_drain('frozen', 'frozen');
SELECT count(*) FROM frozen WHERE tenant_id = 'frozen';
--
-- an operator's own index on the outbox also gets the rows of new events
--
BEGIN;
DROP INDEX projector.apply_outbox_dead_idx;
CREATE INDEX own_idx ON projector.apply_outbox (event_type);
SELECT projector_append('frozen', 'a', 'Indexed', '2');
SET LOCAL enable_seqscan = off;
SET LOCAL enable_bitmapscan = off;
SELECT count(*) FROM projector.apply_outbox WHERE event_type = 'Indexed';
ROLLBACK;
SELECT projector_drop('frozen');
DROP TABLE frozen;
DROP FUNCTION note_frozen;
DROP EXTENSION projector CASCADE;
DROP TABLE counts, more_counts, padded, by_name;
DROP SCHEMA "Shop" CASCADE;
DROP FUNCTION try(text), rows_read(), whoami();
DROP ROLE regress_batch_appender;
RESET client_min_messages;
