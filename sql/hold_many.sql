--
-- Many items that wait behind a failed event are marked as held in batches.  New
-- events of other aggregates do not wait until all of them are marked.
--
CREATE EXTENSION projector;

CREATE TABLE seen (tenant_id text, id text, n bigint NOT NULL DEFAULT 0, last_event_id uuid, last_event_version bigint,
    PRIMARY KEY (tenant_id, id));
SELECT projector_create('seen', fold_columns => '{"n": "s.n + 1 / (e.payload ->> ''divisor'')::int"}', targets => '{seen}',
    options => '{"max_attempts": 1}');
SELECT projector_drain();

-- The first event of "bad" fails, and 200 wait behind it; then comes "good".
INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
SELECT 't', 'bad', i, 'E', jsonb_build_object('divisor', (i > 1)::int) FROM generate_series(1, 201) i;
SELECT projector_append('t', 'good', 'E', '{"divisor": 1}');

-- Until one event is applied: batches of one.  Few have been marked by then.
SELECT projector_drain(max_events => 1);
SELECT id, n FROM seen;
SELECT count(*) FILTER (WHERE held) < 20 AS few_held, count(*) FROM projector.apply_outbox;

-- All of them are, in the end, and released once the failed one is skipped.
SELECT projector_drain();
SELECT status, held, count(*) FROM projector.apply_outbox GROUP BY 1, 2 ORDER BY 1, 2;
SELECT projector_skip('seen', 't', 'bad', 1, 'cannot be divided');
SELECT projector_drain();
SELECT id, n FROM seen ORDER BY id;
SELECT count(*) FROM projector.apply_outbox;
SELECT matches FROM projector_verify('seen');

SELECT projector_drop('seen');
DROP TABLE seen;
DROP EXTENSION projector;
