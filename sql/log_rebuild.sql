--
-- A rebuild in the order of the log writes each row once, however many batches
-- its events come in: row versions of one transaction cannot be pruned.
--
CREATE EXTENSION projector;
\set SHOW_CONTEXT never

-- Five keys, ten aggregates, 300 events: "put" adds to a key's row, "del" removes it.
CREATE TABLE shelf (tenant_id text, id text, n bigint, note text, last_event_id uuid, last_event_version bigint, last_log_seq bigint,
    PRIMARY KEY (tenant_id, id));
ALTER TABLE shelf ALTER note SET STORAGE EXTERNAL;
CREATE FUNCTION fold_shelf(s shelf, e projector.event) RETURNS shelf IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    IF e.event_type = 'del' THEN
        RETURN NULL;
    END IF;
    s.tenant_id := e.tenant_id;
    s.id := e.payload ->> 'id';
    s.n := coalesce(s.n, 0) + 1;
    s.note := repeat(e.payload ->> 'note', (e.payload ->> 'times')::int);
    RETURN s;
END $$;
CREATE TABLE counts (tenant_id text, id text, n bigint NOT NULL DEFAULT 0, last_event_id uuid, last_event_version bigint, last_log_seq bigint,
    PRIMARY KEY (tenant_id, id));
SELECT projector_create('shelf', fold => 'fold_shelf', targets => '{shelf}', key => 'payload ->> ''id''', options => '{"batch_size": 7}');
SELECT projector_create('counts', fold_columns => '{"n": "s.n + 1"}', targets => '{counts}', key => 'payload ->> ''id''', options => '{"batch_size": 7}');
CREATE FUNCTION fill(tenant text, events int, times int) RETURNS void LANGUAGE sql AS $$
    INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
    SELECT tenant, 'a' || i % 10, 1 + i / 10, CASE WHEN i % 37 = 0 OR i % 5 = 4 AND i > events - 20 THEN 'del' ELSE 'put' END,
        jsonb_build_object('id', 'k' || i % 5, 'note', 'n' || i, 'times', times)
    FROM generate_series(0, events - 1) i ORDER BY i;
$$;
SELECT fill('small', 300, 1);

-- Live, batch by batch, is the oracle: nothing is kept there.
CREATE FUNCTION drain() RETURNS bigint LANGUAGE sql AS 'SELECT sum(projector_drain()) FROM generate_series(1, 3)';
SELECT drain() > 0 AS applied;
CREATE TABLE live AS SELECT 'shelf' AS name, tenant_id, to_jsonb(s) AS row FROM shelf s UNION ALL SELECT 'counts', tenant_id, to_jsonb(c) FROM counts c;
SELECT name, count(*), sum((row ->> 'n')::bigint) FROM live GROUP BY 1 ORDER BY 1;
CREATE VIEW rebuilt AS SELECT 'shelf' AS name, tenant_id, to_jsonb(s) AS row FROM shelf s UNION ALL SELECT 'counts', tenant_id, to_jsonb(c) FROM counts c;
CREATE VIEW differences AS (TABLE live EXCEPT ALL TABLE rebuilt) UNION ALL (TABLE rebuilt EXCEPT ALL TABLE live);
CREATE VIEW digests AS
    SELECT p.name, d.tenant_id, d.row_count, d.digest = projector_digest(p.name, d.tenant_id) AS kept_is_true
    FROM projector.projection_digests d JOIN projector.projections p USING (projection_id);

-- Rows that are not there any more are removed, new ones inserted, none updated;
-- and so it is with the offsets.
CREATE VIEW so_far AS
    SELECT relname, n_tup_ins, n_tup_upd FROM pg_stat_xact_user_tables
    WHERE relname IN ('shelf', 'counts', 'projection_offsets');
CREATE TABLE before AS TABLE so_far;
CREATE PROCEDURE note() LANGUAGE sql AS 'DELETE FROM before; INSERT INTO before TABLE so_far';
CREATE VIEW written AS
    SELECT relname, s.n_tup_ins - coalesce(b.n_tup_ins, 0) AS inserted, s.n_tup_upd - coalesce(b.n_tup_upd, 0) AS updated
    FROM so_far s LEFT JOIN before b USING (relname);
BEGIN;
CALL note();
SELECT projector_rebuild('shelf', 'small');
SELECT * FROM written WHERE relname <> 'counts' ORDER BY relname;
COMMIT;
BEGIN;
CALL note();
SELECT projector_rebuild('counts', 'small');
SELECT * FROM written WHERE relname <> 'shelf' ORDER BY relname;
COMMIT;
TABLE differences;
SELECT * FROM digests ORDER BY name;
SELECT min(last_sequence_number), max(last_sequence_number), count(*) FROM projector.projection_offsets;
SELECT tenant_id, matches FROM projector_verify('shelf');
SELECT tenant_id, matches FROM projector_verify('counts');

-- Verify goes the same way, and sees what has been changed by hand.
UPDATE counts SET n = n + 1 WHERE id = 'k1';
SELECT tenant_id, matches, differing_rows FROM projector_verify('counts');
UPDATE counts SET n = n - 1 WHERE id = 'k1';

-- Large rows are written in between: memory is bounded.
SELECT fill('large', 30, 1500000);
SELECT drain() > 0 AS applied;
TRUNCATE live;
INSERT INTO live SELECT * FROM rebuilt;
BEGIN;
CALL note();
SELECT projector_rebuild('shelf', 'large');
SELECT updated > 0 AS some_twice FROM written WHERE relname = 'shelf';
COMMIT;
SELECT count(*) FROM differences;
SELECT * FROM digests ORDER BY name, tenant_id;
SELECT tenant_id, matches FROM projector_verify('shelf') ORDER BY 1;

-- An error ends all of it, and nothing has changed.
CREATE OR REPLACE FUNCTION fold_shelf(s shelf, e projector.event) RETURNS shelf IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    IF e.sequence_number = 25 THEN
        RAISE EXCEPTION 'not this one';
    END IF;
    RETURN s;
END $$;
SELECT projector_rebuild('shelf', 'small');
TABLE differences;

-- A constraint that is met only when rows are written says whose rows they are.
CREATE TABLE allowed (n bigint PRIMARY KEY);
ALTER TABLE counts ADD FOREIGN KEY (n) REFERENCES allowed NOT VALID;
\set SHOW_CONTEXT always
SELECT projector_rebuild('counts', 'small');
\set SHOW_CONTEXT never
DROP TABLE allowed CASCADE;

-- Where events that fail are skipped, batches are written one by one.
SELECT projector_alter('counts', '{"options": {"on_rebuild_error": "skip"}}');
BEGIN;
CALL note();
SELECT projector_rebuild('counts', 'small');
SELECT updated > 0 AS many_times FROM written WHERE relname = 'counts';
COMMIT;
TABLE differences;
SELECT * FROM digests WHERE name = 'counts' ORDER BY tenant_id;

-- So they are if triggers change rows as they are written.
CREATE FUNCTION twice() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.n := NEW.n + 1; RETURN NEW; END';
CREATE TRIGGER twice BEFORE INSERT OR UPDATE ON counts FOR EACH ROW EXECUTE FUNCTION twice();
SELECT projector_alter('counts', '{"options": {"on_rebuild_error": "raise"}}');
SELECT projector_rebuild('counts', 'small');
SELECT sum(n) FROM counts WHERE tenant_id = 'small';
SELECT * FROM digests WHERE name = 'counts' ORDER BY tenant_id;

-- To explain a row then, all events are replayed, but offsets are written once.
BEGIN;
CALL note();
SELECT count(*), sum((state ->> 'n')::int), max((state ->> 'n')::int) = (SELECT n FROM counts WHERE tenant_id = 'small' AND id = 'k1') AS is_row
FROM projector_explain('counts', 'small', 'k1');
SELECT * FROM written WHERE relname = 'projection_offsets';
COMMIT;

SELECT projector_drop('shelf');
SELECT projector_drop('counts');
DROP VIEW digests, written, so_far, differences, rebuilt;
DROP PROCEDURE note;
DROP TABLE live, before;
DROP FUNCTION fill, drain, fold_shelf;
DROP TABLE shelf, counts;
DROP FUNCTION twice;
DROP EXTENSION projector;
