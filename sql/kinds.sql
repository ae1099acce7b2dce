-- All kinds of projections, with batches of all sizes: the same read model and the same failures from the same log.
\pset format unaligned
\pset tuples_only on
CREATE EXTENSION projector SCHEMA public;
CREATE SCHEMA kinds;
SET search_path = kinds, public;
-- a long back-off, so that nothing is retried automatically
CREATE FUNCTION options(size int) RETURNS jsonb LANGUAGE sql AS
    $$SELECT jsonb_build_object('batch_size', size, 'retry_base', '10 h', 'retry_max', '10 h')$$;
CREATE TABLE made (name text PRIMARY KEY, kind text, size int, mode text);

-- One table and one projection of each kind, for stock. It fails by an error in its code (a quantity that is not a number),
-- by NOT NULL (a name that is null) and by CHECK (negative stock).
CREATE PROCEDURE make(kind text, size int, mode text) LANGUAGE plpgsql AS $make$
DECLARE
    name text := concat_ws('_', kind, size, nullif(mode, 'async'));
    qty text := $$CASE e.event_type WHEN 'Received' THEN (e.payload->>'qty')::bigint WHEN 'Shipped' THEN -(e.payload->>'qty')::bigint ELSE 0 END$$;
BEGIN
    EXECUTE format($$CREATE TABLE %I (tenant_id text, item_id text, on_hand bigint NOT NULL DEFAULT 0 CHECK (on_hand >= 0),
        name text NOT NULL DEFAULT 'new', events int NOT NULL DEFAULT 0, chain text NOT NULL DEFAULT '',
        last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, item_id))$$, name);
    CASE kind
    WHEN 'handler' THEN
        EXECUTE format($q$CREATE FUNCTION %1$I(e projector.event) RETURNS void LANGUAGE plpgsql AS $f$
            BEGIN
                INSERT INTO %1$I SELECT e.tenant_id, e.aggregate_id ON CONFLICT DO NOTHING;
                UPDATE %1$I s SET on_hand = s.on_hand + %2$s,
                    name = CASE e.event_type WHEN 'Renamed' THEN e.payload->>'name' ELSE s.name END, events = s.events + 1,
                    chain = md5(s.chain || e.sequence_number), last_event_id = e.event_id, last_event_version = e.sequence_number
                WHERE (s.tenant_id, s.item_id) = (e.tenant_id, e.aggregate_id);
            END $f$$q$, name, qty);
        PERFORM projector_create(name, handler => name, targets => ARRAY[name], mode => mode, options => options(size));
    WHEN 'plpgsql' THEN
        EXECUTE format($q$CREATE FUNCTION %1$I(s %1$I, e projector.event) RETURNS %1$I IMMUTABLE LANGUAGE plpgsql AS $f$
            BEGIN
                IF s IS NULL THEN
                    s := (e.tenant_id, e.aggregate_id, 0, 'new', 0, '', NULL, NULL);
                END IF;
                s.on_hand := s.on_hand + %2$s;
                IF e.event_type = 'Renamed' THEN
                    s.name := e.payload->>'name';
                END IF;
                s.events := s.events + 1;
                s.chain := md5(s.chain || e.sequence_number);
                RETURN s;
            END $f$$q$, name, qty);
        PERFORM projector_create(name, fold => name, targets => ARRAY[name], mode => mode, options => options(size));
    WHEN 'sql' THEN
        EXECUTE format($q$CREATE FUNCTION %1$I(s %1$I, e projector.event) RETURNS %1$I IMMUTABLE LANGUAGE sql AS $f$
                SELECT e.tenant_id, e.aggregate_id, coalesce(s.on_hand, 0) + %2$s,
                    CASE e.event_type WHEN 'Renamed' THEN e.payload->>'name' ELSE coalesce(s.name, 'new') END,
                    coalesce(s.events, 0) + 1, md5(coalesce(s.chain, '') || e.sequence_number), NULL::uuid, NULL::bigint
            $f$$q$, name, qty);
        PERFORM projector_create(name, fold => name, targets => ARRAY[name], mode => mode, options => options(size));
    WHEN 'columns' THEN
        PERFORM projector_create(name, targets => ARRAY[name], mode => mode, options => options(size), fold_columns => jsonb_build_object(
            'on_hand', 's.on_hand + ' || qty, 'name', $$CASE e.event_type WHEN 'Renamed' THEN e.payload->>'name' ELSE s.name END$$,
            'events', 's.events + 1', 'chain', 'md5(s.chain || e.sequence_number)'));
    END CASE;
    INSERT INTO made VALUES (name, kind, size, mode);
END $make$;
-- A statement is additive: totals, and the names given.
CREATE PROCEDURE make_statement(size int, mode text) LANGUAGE plpgsql AS $make$
DECLARE
    name text := concat_ws('_', 'statement', size, nullif(mode, 'async'));
BEGIN
    EXECUTE format('CREATE TABLE %I (tenant_id text, event_type text, events bigint, qty numeric, PRIMARY KEY (tenant_id, event_type))', name);
    EXECUTE format('CREATE TABLE %I (tenant_id text, item_id text, name text NOT NULL)', name || '_names');
    PERFORM projector_create(name, targets => ARRAY[name, name || '_names'], mode => mode, options => options(size), statement => format($$
        WITH n AS (INSERT INTO %I SELECT tenant_id, aggregate_id, payload->>'name' FROM batch WHERE event_type = 'Renamed')
        INSERT INTO %I AS t SELECT tenant_id, event_type, count(*), sum(coalesce((payload->>'qty')::numeric, 0)) FROM batch GROUP BY 1, 2
        ON CONFLICT (tenant_id, event_type) DO UPDATE SET events = t.events + excluded.events, qty = t.qty + excluded.qty$$, name || '_names', name));
    INSERT INTO made VALUES (name, 'statement', size, mode);
END $make$;
DO $$
DECLARE
    k text;
    n int;
BEGIN
    FOREACH n IN ARRAY '{1,7,5000}'::int[] LOOP
        FOREACH k IN ARRAY '{handler,plpgsql,sql,columns}'::text[] LOOP
            CALL make(k, n, 'async');
        END LOOP;
        CALL make_statement(n, 'async');
    END LOOP;
    FOREACH k IN ARRAY '{handler,plpgsql,sql,columns}'::text[] LOOP
        CALL make(k, 7, 'inline');
    END LOOP;
    CALL make_statement(7, 'inline');
    CALL make('plpgsql', 7, 'follow');
    CALL make('columns', 5000, 'follow');
    CALL make_statement(5000, 'follow');
END $$;
SELECT count(*), count(DISTINCT kind) FROM made;

--
-- The history: 600 events of 30 aggregates in each of two tenants, some of them wrong.
--
CREATE FUNCTION append_history(n int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    r float8;
    payload jsonb;
    type text;
BEGIN
    FOR i IN 1 .. n LOOP
        r := random();
        type := CASE WHEN r < 0.4 THEN 'Received' WHEN r < 0.8 THEN 'Shipped' WHEN r < 0.9 THEN 'Renamed' ELSE 'Looked' END;
        r := random();
        payload := CASE WHEN type IN ('Received', 'Shipped') THEN jsonb_build_object('qty', CASE
                WHEN r < 0.02 THEN 'many' WHEN type = 'Received' THEN (r * 100)::int::text ELSE (r * 12)::int::text END)
            WHEN type = 'Renamed' THEN jsonb_build_object('name', CASE WHEN r > 0.1 THEN 'n' || i END)
            ELSE '{}' END;
        PERFORM projector_append(CASE WHEN random() < 0.6 THEN 'acme' ELSE 'beta' END, 'item-' || (random() * 29)::int, type, payload);
    END LOOP;
END $$;
SELECT setseed(0.25);
SELECT append_history(600);

--
-- The expected result, computed from the log: an aggregate's events up to the first that fails.
--
CREATE VIEW history AS
    SELECT tenant_id::text, aggregate_id::text AS item_id, sequence_number, log_seq, event_id, event_type::text, payload,
        payload->>'qty' ~ '^[0-9]+$' AS is_number, event_type = 'Renamed' AND payload->>'name' IS NULL AS nameless,
        CASE WHEN payload->>'qty' ~ '^[0-9]+$' THEN (payload->>'qty')::bigint * CASE event_type WHEN 'Shipped' THEN -1 ELSE 1 END ELSE 0 END AS delta
    FROM projector.events;
CREATE VIEW wrong AS
    SELECT *, CASE WHEN NOT is_number THEN '22P02' WHEN nameless THEN '23502' WHEN balance < 0 THEN '23514' END AS error_code
    FROM (SELECT *, sum(delta) OVER (PARTITION BY tenant_id, item_id ORDER BY sequence_number) AS balance FROM history) h;
-- an aggregate stops at the first error that a kind can have
CREATE FUNCTION applied(codes text[]) RETURNS SETOF history LANGUAGE sql AS $$
    SELECT h.* FROM history h WHERE NOT EXISTS (SELECT FROM wrong w WHERE (w.tenant_id, w.item_id) = (h.tenant_id, h.item_id)
        AND w.sequence_number <= h.sequence_number AND w.error_code = ANY (codes))
$$;
CREATE FUNCTION codes_of(kind text) RETURNS text[] LANGUAGE sql AS
    $$SELECT CASE kind WHEN 'statement' THEN '{22P02,23502}' ELSE '{22P02,23502,23514}' END::text[]$$;
CREATE FUNCTION next_chain(chain text, n bigint) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT md5(chain || n)';
CREATE AGGREGATE chain(bigint) (SFUNC = next_chain, STYPE = text, INITCOND = '');
CREATE FUNCTION stock_of(codes text[]) RETURNS TABLE (tenant_id text, item_id text, on_hand bigint, name text, events int, chain text,
    last_event_id uuid, last_event_version bigint) LANGUAGE sql AS $$
    SELECT tenant_id, item_id, sum(delta)::bigint,
        coalesce((array_agg(payload->>'name' ORDER BY sequence_number DESC) FILTER (WHERE event_type = 'Renamed'))[1], 'new'), count(*)::int,
        chain(sequence_number ORDER BY sequence_number), (array_agg(event_id ORDER BY sequence_number DESC))[1], max(sequence_number)
    FROM applied(codes) GROUP BY 1, 2
$$;
CREATE FUNCTION totals_of(codes text[]) RETURNS TABLE (tenant_id text, event_type text, events bigint, qty numeric) LANGUAGE sql AS
    $$SELECT tenant_id, event_type, count(*), sum(coalesce((payload->>'qty')::numeric, 0)) FROM applied(codes) GROUP BY 1, 2$$;
CREATE TABLE expected_stock AS SELECT * FROM stock_of(codes_of('fold'));
CREATE TABLE expected_totals AS SELECT * FROM totals_of(codes_of('statement'));
CREATE TABLE expected_names AS SELECT tenant_id, item_id, payload->>'name' FROM applied(codes_of('statement')) WHERE event_type = 'Renamed';
CREATE TABLE expected_failures AS
    SELECT DISTINCT ON (kind, tenant_id, item_id) kind, tenant_id, item_id, sequence_number, error_code
    FROM wrong, (SELECT DISTINCT kind FROM made) k WHERE error_code = ANY (codes_of(kind)) ORDER BY kind, tenant_id, item_id, sequence_number;
CREATE TABLE expected_outbox AS
    SELECT kind, h.tenant_id, h.item_id, h.sequence_number, CASE WHEN h.sequence_number = f.sequence_number THEN 'failed' ELSE 'held' END AS status,
        CASE WHEN h.sequence_number = f.sequence_number THEN 1 ELSE 0 END AS attempts
    FROM history h JOIN expected_failures f USING (tenant_id, item_id) WHERE h.sequence_number >= f.sequence_number;
-- the history is useful: every error occurs, and most events are applied
SELECT bool_and(n > 0) FROM (SELECT count(*) FILTER (WHERE error_code = c) AS n
    FROM expected_failures, unnest(codes_of('fold')) c WHERE kind = 'plpgsql' GROUP BY c) x;
SELECT sum(events) BETWEEN 150 AND 580 FROM expected_stock;

-- Compare two queries.
CREATE FUNCTION differences(a text, b text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    n bigint;
BEGIN
    EXECUTE format('SELECT (SELECT count(*) FROM (%1$s EXCEPT ALL %2$s) d) + (SELECT count(*) FROM (%2$s EXCEPT ALL %1$s) d)', a, b) INTO n;
    RETURN n;
END $$;
CREATE VIEW report AS
    SELECT kind, size, mode,
        CASE kind WHEN 'statement' THEN differences('TABLE ' || name, 'TABLE expected_totals')
                + differences('TABLE ' || name || '_names', 'TABLE expected_names')
            ELSE differences('TABLE ' || name, 'TABLE expected_stock') END AS model,
        differences(format('SELECT tenant_id::text, aggregate_id::text, sequence_number, error_code::text FROM projector.failures
                WHERE projection_name = %L AND resolved_at IS NULL AND retry_count = 0', name),
            format('SELECT tenant_id, item_id, sequence_number, error_code FROM expected_failures WHERE kind = %L', kind)) AS failures,
        differences(format('SELECT tenant_id::text, aggregate_id::text, sequence_number, status::text, attempt_count::int FROM projector.outbox
                WHERE projection_name = %L', name),
            format('SELECT tenant_id, item_id, sequence_number, status, attempts FROM expected_outbox WHERE kind = %L', kind)) AS outbox
    FROM made;
SELECT projector_drain() > 0;
SELECT kind, size, mode, 'model', model, 'failures', failures, 'outbox', outbox FROM report ORDER BY 1, 2, 3;

--
-- Repair: events that failed by CHECK are retried or requeued without the constraint, all others are skipped.
--
DO $$
DECLARE
    t text;
BEGIN
    FOR t IN SELECT name FROM made WHERE kind <> 'statement' LOOP
        EXECUTE format('ALTER TABLE %I DROP CONSTRAINT %I', t, t || '_on_hand_check');
    END LOOP;
END $$;
CREATE FUNCTION mend() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    f record;
    done bigint := 0;
    result text;
BEGIN
    FOR f IN SELECT projection_name AS p, tenant_id AS t, aggregate_id AS a, sequence_number AS n, error_code AS code, log_seq
        FROM projector.failures WHERE resolved_at IS NULL ORDER BY projection_name, log_seq
    LOOP
        IF f.code <> '23514' THEN
            PERFORM projector_retry(f.p, f.t, f.a, f.n);        -- in vain
            PERFORM projector_skip(f.p, f.t, f.a, f.n, 'a test');
        ELSIF f.log_seq % 2 = 0 THEN
            result := projector_retry(f.p, f.t, f.a, f.n);
            ASSERT result = 'applied', format('%s %s: %s', f.p, f.a, result);
        ELSE
            PERFORM projector_requeue(f.p, f.t, f.a, f.n);
        END IF;
        done := done + 1;
    END LOOP;
    PERFORM projector_drain();
    RETURN done;
END $$;
DO $$
BEGIN
    FOR i IN 1 .. 50 LOOP
        EXIT WHEN mend() = 0;
    END LOOP;
END $$;
SELECT count(*) FROM projector.outbox;
CREATE VIEW mended AS SELECT * FROM history WHERE is_number IS NOT false AND NOT nameless;
TRUNCATE expected_stock, expected_totals, expected_names, expected_failures, expected_outbox;
INSERT INTO expected_stock
    SELECT tenant_id, item_id, sum(delta)::bigint,
        coalesce((array_agg(payload->>'name' ORDER BY sequence_number DESC) FILTER (WHERE event_type = 'Renamed'))[1], 'new'), count(*)::int,
        chain(sequence_number ORDER BY sequence_number), (array_agg(event_id ORDER BY sequence_number DESC))[1], max(sequence_number)
    FROM mended GROUP BY 1, 2;
INSERT INTO expected_totals SELECT tenant_id, event_type, count(*), sum(coalesce((payload->>'qty')::numeric, 0)) FROM mended GROUP BY 1, 2;
INSERT INTO expected_names SELECT tenant_id, item_id, payload->>'name' FROM mended WHERE event_type = 'Renamed';
SELECT kind, size, mode, 'model', model, 'failures', failures, 'outbox', outbox FROM report ORDER BY 1, 2, 3;
-- replayed over the existing rows: folds skip events they already have, and skipped events stay skipped
SELECT count(projector_reset(name)) FROM made WHERE kind IN ('plpgsql', 'sql', 'columns');
SELECT projector_drain() > 0;
SELECT kind, sum(model) AS model, sum(failures) AS failures, sum(outbox) AS outbox FROM report GROUP BY 1 ORDER BY 1;
-- rebuilt from the beginning
DO $$
DECLARE
    t text;
BEGIN
    FOR t IN SELECT name FROM made LOOP
        EXECUTE format('DELETE FROM %I', t);
        IF to_regclass(t || '_names') IS NOT NULL THEN
            EXECUTE format('DELETE FROM %I', t || '_names');
        END IF;
        PERFORM projector_reset(t, force => true);
    END LOOP;
END $$;
SELECT projector_drain() > 0;
SELECT kind, sum(model) AS model, sum(failures) AS failures, sum(outbox) AS outbox FROM report GROUP BY 1 ORDER BY 1;
SELECT count(projector_drop(name)) FROM made;

--
-- Several aggregates in one row, in the order of the log.  Some events are not for it (no shade), some have no valid key
-- (a shade that is not a number), some fail.
--
SELECT setseed(0.5);
DO $$
DECLARE
    r float8;
BEGIN
    FOR i IN 1 .. 400 LOOP
        r := random();
        PERFORM projector_append(CASE WHEN random() < 0.6 THEN 'acme' ELSE 'beta' END, 'wall-' || (random() * 29)::int, 'Painted',
            jsonb_strip_nulls(jsonb_build_object('shade', CASE WHEN r < 0.03 THEN 'pale' WHEN r < 0.1 THEN NULL ELSE ((r * 1000)::int % 6)::text END,
                'area', CASE WHEN r > 0.96 THEN 'large' ELSE (r * 50)::int::text END)));
    END LOOP;
END $$;
CREATE PROCEDURE make_shades(kind text, size int, on_error text) LANGUAGE plpgsql AS $make$
DECLARE
    name text := concat_ws('_', 'shades', kind, size, on_error);
    options jsonb := options(size) || jsonb_build_object('on_error', on_error, 'max_attempts', 1);
BEGIN
    EXECUTE format($$CREATE TABLE %I (tenant_id text, shade int, area bigint NOT NULL DEFAULT 0, trace text DEFAULT '',
        last_event_id uuid, last_event_version bigint, last_log_seq bigint, PRIMARY KEY (tenant_id, shade))$$, name);
    IF kind = 'columns' THEN
        PERFORM projector_create(name, targets => ARRAY[name], event_types => '{Painted}', key => $$(payload->>'shade')::int$$, options => options,
            fold_columns => $${"area": "s.area + (e.payload->>'area')::bigint", "trace": "concat_ws(' ', nullif(s.trace, ''), e.aggregate_id || ':' || e.sequence_number)"}$$);
    ELSE
        EXECUTE format($q$CREATE FUNCTION %1$I(s %1$I, e projector.event) RETURNS %1$I IMMUTABLE LANGUAGE plpgsql AS $f$
            BEGIN
                IF s IS NULL THEN
                    s := (e.tenant_id, e.payload->>'shade', 0, NULL, NULL, NULL, NULL);
                END IF;
                s.area := s.area + (e.payload->>'area')::bigint;
                s.trace := concat_ws(' ', s.trace, e.aggregate_id || ':' || e.sequence_number);
                RETURN s;
            END $f$$q$, name);
        PERFORM projector_create(name, fold => name, targets => ARRAY[name], event_types => '{Painted}', key => $$(payload->>'shade')::int$$, options => options);
    END IF;
    INSERT INTO made VALUES (name, kind, size, on_error);
END $make$;
TRUNCATE made;
DO $$
DECLARE
    n int;
BEGIN
    FOREACH n IN ARRAY '{1,7,5000}'::int[] LOOP
        CALL make_shades('plpgsql', n, 'skip');
        CALL make_shades('columns', n, 'skip');
        CALL make_shades('plpgsql', n, 'stop');
        CALL make_shades('columns', n, 'stop');
    END LOOP;
END $$;
CREATE VIEW painted AS
    SELECT tenant_id::text, payload->>'shade' AS shade, payload->>'area' AS area, aggregate_id || ':' || sequence_number AS trace, log_seq, event_id, sequence_number,
        payload->>'shade' = 'pale' OR (payload->>'area' = 'large' AND payload ? 'shade') AS is_wrong
    FROM projector.events WHERE event_type = 'Painted';
CREATE FUNCTION shades(only_before boolean) RETURNS TABLE (tenant_id text, shade int, area bigint, trace text, last_event_id uuid, last_event_version bigint, last_log_seq bigint) LANGUAGE sql AS $$
    SELECT tenant_id, shade::int, sum(area::bigint)::bigint, string_agg(trace, ' ' ORDER BY log_seq), (array_agg(event_id ORDER BY log_seq DESC))[1],
        (array_agg(sequence_number ORDER BY log_seq DESC))[1], max(log_seq)
    FROM painted p
    WHERE NOT coalesce(is_wrong, false) AND shade IS NOT NULL
        AND NOT (only_before AND EXISTS (SELECT FROM painted w WHERE w.is_wrong AND w.tenant_id = p.tenant_id AND w.log_seq < p.log_seq))
    GROUP BY 1, 2
$$;
CREATE TABLE expected_shades AS SELECT * FROM shades(false);
CREATE TABLE expected_before AS SELECT * FROM shades(true);
SELECT count(*) > 8, (SELECT count(*) FROM painted WHERE is_wrong) > 10 FROM expected_shades;
SELECT projector_drain() > 0;
CREATE VIEW shades_report AS
    SELECT kind, size, mode, differences('TABLE ' || name, CASE mode WHEN 'skip' THEN 'TABLE expected_shades' ELSE 'TABLE expected_before' END) AS model,
        differences(format('SELECT log_seq, resolution::text FROM projector.failures WHERE projection_name = %L', name),
            CASE mode WHEN 'skip' THEN $$SELECT log_seq, 'skipped' FROM painted WHERE is_wrong$$
            ELSE 'SELECT min(log_seq), NULL::text FROM painted WHERE is_wrong GROUP BY tenant_id' END) AS failures,
        (SELECT count(*) FROM projector.projection_cursors JOIN projector.projections p USING (projection_id) WHERE p.name = made.name AND state = 'stopped') AS stopped
    FROM made;
SELECT * FROM shades_report ORDER BY 1, 2, 3;
-- skip the failing event of each stopped one, until none is stopped
DO $$
DECLARE
    f record;
BEGIN
    LOOP
        FOR f IN SELECT projection_name AS p, tenant_id AS t, aggregate_id AS a, sequence_number AS n FROM projector.failures WHERE resolved_at IS NULL LOOP
            ASSERT projector_retry(f.p, f.t, f.a, f.n) = 'failed';
            PERFORM projector_skip(f.p, f.t, f.a, f.n, 'a test');
        END LOOP;
        EXIT WHEN NOT FOUND;
        PERFORM projector_drain();
    END LOOP;
END $$;
SELECT kind, size, differences('TABLE ' || name, 'TABLE expected_shades') FROM made WHERE mode = 'stop' ORDER BY 1, 2;
SELECT count(*) FROM projector.outbox;
-- replayed: skipped events stay skipped
SELECT count(projector_reset(name)) FROM made;
SELECT projector_drain() > 0;
SELECT sum(differences('TABLE ' || name, 'TABLE expected_shades')) FROM made;
DO $$
DECLARE
    t text;
BEGIN
    FOR t IN SELECT name FROM made LOOP
        EXECUTE format('DELETE FROM %I', t);
    END LOOP;
END $$;
SELECT count(projector_reset(name)) FROM made;
SELECT projector_drain() > 0;
SELECT sum(differences('TABLE ' || name, 'TABLE expected_shades')) FROM made;

SET client_min_messages = warning;
DROP EXTENSION projector CASCADE;
DROP SCHEMA kinds CASCADE;
