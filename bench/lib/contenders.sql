-- Hand-written workers, each with its own log, queue, read model and offsets.
-- There is one worker each, so an aggregate's claimed events follow its offset.
-- None of them survives an event that fails.
CREATE EXTENSION pgq;

CREATE SCHEMA by_set;
CREATE TABLE by_set.events (LIKE projector.events INCLUDING ALL);
ALTER TABLE by_set.events ALTER log_seq DROP IDENTITY;
CREATE TABLE by_set.outbox (log_seq bigint PRIMARY KEY, tenant_id text COLLATE "C" NOT NULL,
    status text NOT NULL DEFAULT 'pending', attempt_count int NOT NULL DEFAULT 0,
    next_attempt_at timestamptz NOT NULL DEFAULT now());
CREATE INDEX ON by_set.outbox (log_seq) WHERE status = 'pending';
CREATE TABLE by_set.stock (LIKE stock INCLUDING ALL) WITH (fillfactor = 70);
CREATE TABLE by_set.offsets (tenant_id text COLLATE "C", aggregate_id text COLLATE "C",
    last_sequence_number bigint NOT NULL, last_event_id uuid, updated_at timestamptz,
    PRIMARY KEY (tenant_id, aggregate_id)) WITH (fillfactor = 70);

CREATE SCHEMA by_event;
CREATE TABLE by_event.events (LIKE by_set.events INCLUDING ALL);
CREATE TABLE by_event.outbox (LIKE by_set.outbox INCLUDING ALL);
CREATE TABLE by_event.stock (LIKE by_set.stock INCLUDING ALL) WITH (fillfactor = 70);
CREATE TABLE by_event.offsets (LIKE by_set.offsets INCLUDING ALL) WITH (fillfactor = 70);

CREATE SCHEMA by_pgq;
CREATE TABLE by_pgq.stock (LIKE by_set.stock INCLUDING ALL) WITH (fillfactor = 70);
CREATE TABLE by_pgq.offsets (LIKE by_set.offsets INCLUDING ALL) WITH (fillfactor = 70);
SELECT pgq.create_queue('stock'), pgq.register_consumer('stock', 'bench');

-- Set-based: one statement per batch.
CREATE PROCEDURE by_set.work() LANGUAGE plpgsql AS $$
DECLARE
    claimed int;
BEGIN
    LOOP
        WITH claim AS MATERIALIZED (
            SELECT log_seq, tenant_id FROM by_set.outbox WHERE status = 'pending'
            ORDER BY log_seq LIMIT 500 FOR UPDATE SKIP LOCKED),
        change AS MATERIALIZED (
            SELECT tenant_id, aggregate_id, max(sequence_number) AS version,
                (array_agg(event_id ORDER BY sequence_number DESC))[1] AS event_id,
                sum(CASE event_type WHEN 'ItemReceived' THEN 1 ELSE -1 END * (payload->>'qty')::bigint) AS qty
            FROM claim JOIN by_set.events USING (tenant_id, log_seq) GROUP BY 1, 2),
        applied AS (
            INSERT INTO by_set.stock AS s SELECT tenant_id, aggregate_id, qty, event_id, version FROM change
            ON CONFLICT (tenant_id, item_id) DO UPDATE
            SET on_hand = s.on_hand + excluded.on_hand, last_event_id = excluded.last_event_id,
                last_event_version = excluded.last_event_version
            WHERE s.last_event_version < excluded.last_event_version),
        moved AS (
            INSERT INTO by_set.offsets AS o SELECT tenant_id, aggregate_id, version, event_id, now() FROM change
            ON CONFLICT (tenant_id, aggregate_id) DO UPDATE
            SET last_sequence_number = excluded.last_sequence_number, last_event_id = excluded.last_event_id,
                updated_at = excluded.updated_at
            WHERE o.last_sequence_number < excluded.last_sequence_number),
        done AS (DELETE FROM by_set.outbox WHERE log_seq = ANY (ARRAY (SELECT log_seq FROM claim)))
        SELECT count(*) INTO claimed FROM claim;
        COMMIT;
        EXIT WHEN claimed = 0;
    END LOOP;
END $$;

-- The same, event by event.
CREATE PROCEDURE by_event.work() LANGUAGE plpgsql AS $$
DECLARE
    items bigint[];
    e record;
BEGIN
    LOOP
        items := ARRAY (SELECT log_seq FROM by_event.outbox WHERE status = 'pending'
            ORDER BY log_seq LIMIT 500 FOR UPDATE SKIP LOCKED);
        EXIT WHEN items = '{}';
        FOR e IN SELECT v.* FROM unnest(items) l JOIN by_event.outbox i ON i.log_seq = l
            JOIN by_event.events v ON v.tenant_id = i.tenant_id AND v.log_seq = l ORDER BY l
        LOOP
            INSERT INTO by_event.stock AS s
            VALUES (e.tenant_id, e.aggregate_id,
                CASE e.event_type WHEN 'ItemReceived' THEN 1 ELSE -1 END * (e.payload->>'qty')::bigint,
                e.event_id, e.sequence_number)
            ON CONFLICT (tenant_id, item_id) DO UPDATE
            SET on_hand = s.on_hand + excluded.on_hand, last_event_id = excluded.last_event_id,
                last_event_version = excluded.last_event_version
            WHERE s.last_event_version < excluded.last_event_version;
            INSERT INTO by_event.offsets AS o
            VALUES (e.tenant_id, e.aggregate_id, e.sequence_number, e.event_id, now())
            ON CONFLICT (tenant_id, aggregate_id) DO UPDATE
            SET last_sequence_number = excluded.last_sequence_number, last_event_id = excluded.last_event_id,
                updated_at = excluded.updated_at
            WHERE o.last_sequence_number < excluded.last_sequence_number;
        END LOOP;
        DELETE FROM by_event.outbox WHERE log_seq = ANY (items);
        COMMIT;
    END LOOP;
END $$;

-- The same with PgQ, whose batches contain the events.
CREATE PROCEDURE by_pgq.work() LANGUAGE plpgsql AS $$
DECLARE
    batch bigint;
    e record;
BEGIN
    LOOP
        batch := pgq.next_batch('stock', 'bench');
        EXIT WHEN batch IS NULL;
        FOR e IN SELECT ev_extra1 AS tenant_id, ev_extra2 AS aggregate_id, ev_extra3::bigint AS sequence_number,
                ev_extra4::uuid AS event_id, ev_type AS event_type, ev_data::jsonb AS payload
            FROM pgq.get_batch_events(batch)
        LOOP
            INSERT INTO by_pgq.stock AS s
            VALUES (e.tenant_id, e.aggregate_id,
                CASE e.event_type WHEN 'ItemReceived' THEN 1 ELSE -1 END * (e.payload->>'qty')::bigint,
                e.event_id, e.sequence_number)
            ON CONFLICT (tenant_id, item_id) DO UPDATE
            SET on_hand = s.on_hand + excluded.on_hand, last_event_id = excluded.last_event_id,
                last_event_version = excluded.last_event_version
            WHERE s.last_event_version < excluded.last_event_version;
            INSERT INTO by_pgq.offsets AS o
            VALUES (e.tenant_id, e.aggregate_id, e.sequence_number, e.event_id, now())
            ON CONFLICT (tenant_id, aggregate_id) DO UPDATE
            SET last_sequence_number = excluded.last_sequence_number, last_event_id = excluded.last_event_id,
                updated_at = excluded.updated_at
            WHERE o.last_sequence_number < excluded.last_sequence_number;
        END LOOP;
        PERFORM pgq.finish_batch(batch);
        COMMIT;
    END LOOP;
END $$;

-- A batch is the events between two ticks: 500, as with PgQ's ticker.
CREATE PROCEDURE by_pgq.load() LANGUAGE plpgsql AS $$
BEGIN
    FOR i IN 0 .. (SELECT max(n) FROM feed) / 500 LOOP
        PERFORM pgq.insert_event('stock', event_type, payload::text, tenant_id, aggregate_id,
            sequence_number::text, event_id::text)
        FROM feed WHERE n >= i * 500 AND n < (i + 1) * 500 ORDER BY n;
        COMMIT;
        PERFORM pgq.ticker('stock');
        COMMIT;
    END LOOP;
    PERFORM pgq.force_tick('stock');
    PERFORM pgq.ticker('stock');
END $$;
