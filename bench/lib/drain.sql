-- The database of bench/drain: projector, an async projection, and functions to
-- feed and to watch it.
CREATE EXTENSION projector;

-- CPU time used so far, from /proc, in hundredths of a second
CREATE FUNCTION cpu_us(pid int) RETURNS bigint LANGUAGE sql AS $$
    SELECT (s[12]::bigint + s[13]::bigint) * 10000
    FROM string_to_array(substring(pg_read_file('/proc/' || pid || '/stat') from '\) (.*)'), ' ') s
$$;
CREATE VIEW progress AS
    SELECT (SELECT coalesce(sum(applied_count), 0) FROM projector.projection_cursors
            JOIN projector.projections p USING (projection_id) WHERE NOT p.paused) AS applied,
        extract(epoch FROM clock_timestamp() - backend_start) AS seconds, cpu_us(pid)
    FROM pg_stat_activity WHERE backend_type = 'projector worker' AND datname = current_database();

CREATE TABLE stock (tenant_id text, item_id text, on_hand bigint NOT NULL, last_event_id uuid NOT NULL,
    last_event_version bigint NOT NULL, PRIMARY KEY (tenant_id, item_id)) WITH (fillfactor = 70);
CREATE FUNCTION stock_handler(e projector.event) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    qty bigint := e.payload->>'qty';
BEGIN
    INSERT INTO stock AS s
    VALUES (e.tenant_id, e.aggregate_id, CASE e.event_type WHEN 'ItemReceived' THEN qty ELSE -qty END,
        e.event_id, e.sequence_number)
    ON CONFLICT (tenant_id, item_id) DO UPDATE
    SET on_hand = s.on_hand + excluded.on_hand, last_event_id = excluded.last_event_id,
        last_event_version = excluded.last_event_version
    WHERE s.last_event_version < excluded.last_event_version;
END $$;
SELECT projector_create('stock', handler => 'stock_handler', targets => '{stock}', mode => 'async',
    options => '{"batch_size": 1000}');
SELECT projector_drain();    -- the handover: from now on the trigger queues events

-- append the contents of feed, in chunks
CREATE PROCEDURE append() LANGUAGE plpgsql AS $$
BEGIN
    FOR i IN 0 .. (SELECT max(n) FROM feed) / 10000 LOOP
        INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_id, event_type, payload)
        SELECT tenant_id, aggregate_id, sequence_number, event_id, event_type, payload
        FROM feed WHERE n >= i * 10000 AND n < (i + 1) * 10000 ORDER BY n;
        COMMIT;
    END LOOP;
END $$;
CREATE TABLE feed (n int PRIMARY KEY, tenant_id text, aggregate_id text, sequence_number bigint,
    event_id uuid DEFAULT gen_random_uuid(), event_type text, payload jsonb);
