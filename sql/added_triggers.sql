-- Triggers that somebody adds to our tables fire for every change, although we
-- write many rows without SQL. pg_repack depends on them while it copies a table.
SET client_min_messages = warning;
CREATE EXTENSION projector;
CREATE TABLE changes (tab text, op text, old jsonb, new jsonb);
CREATE FUNCTION note_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO public.changes VALUES (TG_TABLE_NAME, TG_OP, to_jsonb(OLD), to_jsonb(NEW));
    RETURN NULL;
END $$;
SELECT format('CREATE TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON projector.%I FOR EACH ROW EXECUTE FUNCTION note_change()', t)
FROM unnest('{apply_outbox,projection_offsets,projection_cursors,projection_deltas,projection_digests}'::name[]) t \gexec
CREATE TABLE stock (tenant_id text, id text, n bigint NOT NULL DEFAULT 0, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
CREATE TABLE stock_inline (LIKE stock INCLUDING ALL);
CREATE FUNCTION handle(e projector.event) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF e.event_type = 'Bad' THEN
        RAISE EXCEPTION 'bad';
    END IF;
END $$;
SELECT projector_create('queued', fold_columns => '{"n": "s.n + 1"}', targets => '{stock}', options => '{"digest": true}');
SELECT projector_create('inline', fold_columns => '{"n": "s.n + 1"}', targets => '{stock_inline}', mode => 'inline', options => '{"digest": true}');
SELECT projector_create('handled', handler => 'handle');
SELECT projector_create('followed', handler => 'handle', mode => 'follow');
SELECT projector_create('in order', handler => 'handle', ordering => 'log');
SELECT projector_drain() >= 0 AS drained;

-- new and known aggregates, one and several at once, and one that fails
CREATE PROCEDURE append_some() LANGUAGE plpgsql AS $$
BEGIN
    PERFORM projector_append('t', 'a' || i, 'E', '{}') FROM generate_series(1, 10) i;
    COMMIT;
    PERFORM projector_drain();
    PERFORM projector_append('t', 'a1', 'E', '{}');
    COMMIT;
    PERFORM projector_drain();
    PERFORM projector_append('t', 'bad', 'Bad', '{}');
    PERFORM projector_append('t', 'bad', 'E', '{}');
    INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
    SELECT 't', 'b' || i || gen_random_uuid(), 1, 'E', '1' FROM generate_series(1, 300) i;
    COMMIT;
    PERFORM projector_drain();
END $$;
CALL append_some();
CALL append_some();
SELECT projector_drain() >= 0 AS drained;

SELECT tab, string_agg(DISTINCT op, ' ' ORDER BY op) AS ops FROM changes GROUP BY 1 ORDER BY 1;
-- what the triggers have seen is what the tables have
CREATE VIEW seen AS
SELECT tab, new AS row FROM changes WHERE new IS NOT NULL EXCEPT ALL SELECT tab, old FROM changes WHERE old IS NOT NULL;
CREATE VIEW present AS
SELECT 'apply_outbox' AS tab, to_jsonb(t) AS row FROM projector.apply_outbox t
UNION ALL SELECT 'projection_offsets', to_jsonb(t) FROM projector.projection_offsets t
UNION ALL SELECT 'projection_cursors', to_jsonb(t) FROM projector.projection_cursors t
UNION ALL SELECT 'projection_deltas', to_jsonb(t) FROM projector.projection_deltas t
UNION ALL SELECT 'projection_digests', to_jsonb(t) FROM projector.projection_digests t;
SELECT tab, count(*) > 0 AS has_rows FROM present GROUP BY 1 ORDER BY 1;
SELECT 'not seen' AS what, tab, count(*) FROM (TABLE present EXCEPT ALL TABLE seen) d GROUP BY 2
UNION ALL SELECT 'not there', tab, count(*) FROM (TABLE seen EXCEPT ALL TABLE present) d GROUP BY 2 ORDER BY 1, 2;
SELECT name, v.matches FROM projector.projections p, projector_verify(name) v WHERE kind LIKE 'fold%' ORDER BY 1;

DROP EXTENSION projector CASCADE;
DROP VIEW IF EXISTS present;
DROP VIEW seen;
DROP TABLE changes, stock, stock_inline;
DROP FUNCTION note_change;
DROP FUNCTION IF EXISTS handle;
DROP PROCEDURE append_some;
