--
-- The event log: projector_append, projector_append_batch, and plain INSERT
-- and COPY, which obey the same rules.
--
CREATE EXTENSION projector;

\i sql/include/try.sql

--
-- One event
--
-- sequence numbers are 1, 2, 3, … by tenant and aggregate
SELECT projector_append('acme', 'item-1', 'ItemReceived', '{"qty": 5}');
SELECT projector_append('acme', 'item-1', 'ItemShipped', '{"qty": 2}', metadata => '{"by": "ann"}');
SELECT projector_append('acme', 'item-2', 'ItemReceived', '{"qty": 7}');
SELECT projector_append('other', 'item-1', 'ItemReceived', '{"qty": 9}');
SELECT tenant_id, aggregate_id, sequence_number, event_type, payload, metadata,
       payload_hash = sha256(convert_to(payload::text, 'UTF8')) AS hash_ok,
       event_id IS NOT NULL AS has_id, recorded_at <= clock_timestamp() AS recorded
FROM projector.events ORDER BY tenant_id, aggregate_id, sequence_number;

-- with no projection registered an append leaves no work
SELECT count(*) FROM projector.apply_outbox;

-- expected_version: 0 means new
SELECT projector_append('acme', 'item-3', 'ItemReceived', '{}', expected_version => 0);
SELECT projector_append('acme', 'item-3', 'ItemReceived', '{}', expected_version => 1);
SELECT projector_append('acme', 'item-3', 'ItemReceived', '{}', expected_version => 0);
SELECT projector_append('acme', 'item-3', 'ItemReceived', '{}', expected_version => 7);
SELECT projector_append('acme', 'item-4', 'ItemReceived', '{}', expected_version => 1);
\set VERBOSITY sqlstate
SELECT projector_append('acme', 'item-3', 'ItemReceived', '{}', expected_version => 7);
\set VERBOSITY default
SELECT max(sequence_number) FROM projector.events WHERE aggregate_id = 'item-3';
SELECT count(*) FROM projector.events WHERE aggregate_id = 'item-4';

-- event_id: a repeated call with the same content returns the first answer
-- and writes nothing; expected_version is ignored then
SELECT projector_append('acme', 'item-5', 'ItemReceived', '{"qty": 1, "loc": "a"}',
                        event_id => '11111111-1111-1111-1111-111111111111');
SELECT projector_append('acme', 'item-5', 'ItemReceived', '{"qty": 2}');
SELECT projector_append('acme', 'item-5', 'ItemReceived', '{"loc": "a", "qty": 1}',
                        event_id => '11111111-1111-1111-1111-111111111111');
SELECT projector_append('acme', 'item-5', 'ItemReceived', '{"qty": 1, "loc": "a"}', 0,
                        event_id => '11111111-1111-1111-1111-111111111111');
SELECT projector_append('acme', 'item-5', 'ItemReceived', '{"qty": 1, "loc": "a"}', 99,
                        event_id => '11111111-1111-1111-1111-111111111111');
SELECT sequence_number, payload FROM projector.events
WHERE aggregate_id = 'item-5' ORDER BY sequence_number;

-- with another payload, type, metadata or aggregate it is refused, before
-- expected_version is checked
SELECT projector_append('acme', 'item-5', 'ItemReceived', '{"qty": 3}',
                        event_id => '11111111-1111-1111-1111-111111111111');
\set VERBOSITY sqlstate
SELECT projector_append('acme', 'item-5', 'ItemReceived', '{"qty": 3}', 99,
                        event_id => '11111111-1111-1111-1111-111111111111');
SELECT projector_append('acme', 'item-5', 'ItemShipped', '{"qty": 1, "loc": "a"}',
                        event_id => '11111111-1111-1111-1111-111111111111');
SELECT projector_append('acme', 'item-5', 'ItemReceived', '{"qty": 1, "loc": "a"}',
                        metadata => '{"x": 1}', event_id => '11111111-1111-1111-1111-111111111111');
SELECT projector_append('acme', 'item-6', 'ItemReceived', '{"qty": 1, "loc": "a"}',
                        event_id => '11111111-1111-1111-1111-111111111111');
\set VERBOSITY default
-- another tenant may use the same id
SELECT projector_append('other', 'item-5', 'ItemReceived', '{"qty": 1, "loc": "a"}',
                        event_id => '11111111-1111-1111-1111-111111111111');
SELECT count(*) FROM projector.events WHERE aggregate_id IN ('item-5', 'item-6');

--
-- Bad input
--
\pset format unaligned
\pset tuples_only on
SELECT try($$SELECT projector_append(NULL, 'a', 'T', '{}')$$);
SELECT try($$SELECT projector_append('acme', NULL, 'T', '{}')$$);
SELECT try($$SELECT projector_append('acme', 'a', NULL, '{}')$$);
SELECT try($$SELECT projector_append('acme', 'a', 'T', NULL)$$);
SELECT try($$SELECT projector_append('acme', 'a', 'T', '{}', metadata => NULL)$$);
SELECT try($$SELECT projector_append('', 'a', 'T', '{}')$$);
SELECT try($$SELECT projector_append('acme', '', 'T', '{}')$$);
SELECT try($$SELECT projector_append('acme', 'a', '', '{}')$$);
SELECT try($$SELECT projector_append('acme', 'a', 'T', '{}', -1)$$);
SELECT try($$SELECT projector_append('acme', 'a', 'T', '{')$$);
SELECT try($$SELECT projector_append('acme', 'a', 'T', '{}', event_id => 'no uuid')$$);
SELECT count(*) FROM projector.events WHERE aggregate_id IN ('', 'a');

-- NULL means "any" and "none" for the other two
SELECT projector_append('acme', 'nulls', 'T', '{}', expected_version => NULL, event_id => NULL);
-- any JSON is a payload
SELECT projector_append('acme', 'nulls', 'T', 'null');
SELECT projector_append('acme', 'nulls', 'T', '[1, "two"]');

--
-- A batch
--
SELECT projector_append_batch('acme', 'b-1', '[
    {"event_type": "A", "payload": {"n": 1}},
    {"event_type": "B", "payload": [2], "metadata": {"m": 1}},
    {"event_type": "C", "payload": null, "metadata": null, "event_id": null},
    {"event_type": "D", "payload": "four", "event_id": "22222222-2222-2222-2222-222222222222"}]');
SELECT projector_append_batch('acme', 'b-1', '[{"event_type": "E", "payload": 5}]', expected_version => 4);
\pset format aligned
\pset tuples_only off
SELECT sequence_number, event_type, payload, metadata,
       payload_hash = sha256(convert_to(payload::text, 'UTF8')) AS hash_ok,
       event_id = '22222222-2222-2222-2222-222222222222' AS given_id,
       log_seq > lag(log_seq) OVER (ORDER BY sequence_number) AS rising
FROM projector.events WHERE aggregate_id = 'b-1' ORDER BY sequence_number;
\pset format unaligned
\pset tuples_only on

-- an empty batch writes nothing and returns the version, which it can check
SELECT projector_append_batch('acme', 'b-1', '[]');
SELECT projector_append_batch('acme', 'b-none', '[]', expected_version => 0);
SELECT try($$SELECT projector_append_batch('acme', 'b-1', '[]', 4)$$);

-- expected_version
SELECT try($$SELECT projector_append_batch('acme', 'b-1',
    '[{"event_type": "A", "payload": {}}, {"event_type": "A", "payload": {}}]', 4)$$);
SELECT try($$SELECT projector_append_batch('acme', 'b-2',
    '[{"event_type": "A", "payload": {}}, {"event_type": "A", "payload": {}}]', 0)$$);

-- all known: the first answer, nothing written
SELECT projector_append_batch('acme', 'b-3', '[
    {"event_type": "A", "payload": 1, "event_id": "33333333-3333-3333-3333-000000000001"},
    {"event_type": "A", "payload": 2, "event_id": "33333333-3333-3333-3333-000000000002"}]', 0);
SELECT projector_append('acme', 'b-3', 'A', '3');
SELECT projector_append_batch('acme', 'b-3', '[
    {"event_type": "A", "payload": 1, "event_id": "33333333-3333-3333-3333-000000000001"},
    {"event_type": "A", "payload": 2, "event_id": "33333333-3333-3333-3333-000000000002"}]', 0);

-- partly known: refused, nothing written
SELECT try($$SELECT projector_append_batch('acme', 'b-3', '[
    {"event_type": "A", "payload": 2, "event_id": "33333333-3333-3333-3333-000000000002"},
    {"event_type": "A", "payload": 4, "event_id": "33333333-3333-3333-3333-000000000004"}]')$$);
SELECT try($$SELECT projector_append_batch('acme', 'b-3', '[
    {"event_type": "A", "payload": 4},
    {"event_type": "A", "payload": 2, "event_id": "33333333-3333-3333-3333-000000000002"}]')$$);

-- known with other content: refused
SELECT try($$SELECT projector_append_batch('acme', 'b-3', '[
    {"event_type": "A", "payload": 1, "event_id": "33333333-3333-3333-3333-000000000001"},
    {"event_type": "A", "payload": 9, "event_id": "33333333-3333-3333-3333-000000000002"}]')$$);

-- the same id twice inside
SELECT try($$SELECT projector_append_batch('acme', 'b-3', '[
    {"event_type": "A", "payload": 5, "event_id": "33333333-3333-3333-3333-000000000005"},
    {"event_type": "A", "payload": 6},
    {"event_type": "A", "payload": 5, "event_id": "33333333-3333-3333-3333-000000000005"}]')$$);
SELECT array_agg(payload ORDER BY sequence_number) FROM projector.events WHERE aggregate_id = 'b-3';

-- bad input
SELECT try($$SELECT projector_append_batch(NULL, 'b', '[]')$$);
SELECT try($$SELECT projector_append_batch('acme', NULL, '[]')$$);
SELECT try($$SELECT projector_append_batch('acme', 'b', NULL)$$);
SELECT try($$SELECT projector_append_batch('', 'b', '[]')$$);
SELECT try($$SELECT projector_append_batch('acme', '', '[]')$$);
SELECT try($$SELECT projector_append_batch('acme', 'b', '[]', -1)$$);
SELECT try($$SELECT projector_append_batch('acme', 'b', '{"event_type": "A", "payload": {}}')$$);
SELECT try($$SELECT projector_append_batch('acme', 'b', '1')$$);
SELECT try($$SELECT projector_append_batch('acme', 'b', 'null')$$);
SELECT try($$SELECT projector_append_batch('acme', 'b', '"[]"')$$);
SELECT try($$SELECT projector_append_batch('acme', 'b', '[{"event_type": "A", "payload": {}}, 2]')$$);
SELECT try($$SELECT projector_append_batch('acme', 'b', '[null]')$$);
SELECT try($$SELECT projector_append_batch('acme', 'b', '[[]]')$$);
SELECT try($$SELECT projector_append_batch('acme', 'b', '[{"payload": {}}]')$$);
SELECT try($$SELECT projector_append_batch('acme', 'b', '[{"event_type": 1, "payload": {}}]')$$);
SELECT try($$SELECT projector_append_batch('acme', 'b', '[{"event_type": null, "payload": {}}]')$$);
SELECT try($$SELECT projector_append_batch('acme', 'b', '[{"event_type": "", "payload": {}}]')$$);
SELECT try($$SELECT projector_append_batch('acme', 'b', '[{"event_type": "A"}]')$$);
SELECT try($$SELECT projector_append_batch('acme', 'b', '[{"event_type": "A", "payload": {}, "event_id": 7}]')$$);
SELECT try($$SELECT projector_append_batch('acme', 'b', '[{"event_type": "A", "payload": {}, "event_id": "seven"}]')$$);
SELECT try($$SELECT projector_append_batch('acme', 'b', '[{"event_type": "A", "payload": {}},
    {"event_type": "A", "payload": {}, "expected_version": 0}]')$$);
SELECT count(*) FROM projector.events WHERE aggregate_id IN ('b', '');

-- 10,000 events, all or none
SELECT projector_append_batch('acme', 'b-big', (SELECT jsonb_agg(jsonb_build_object(
    'event_type', 'Counted', 'payload', jsonb_build_object('n', n)) ORDER BY n)
    FROM generate_series(1, 10000) n));
SELECT count(*), min(sequence_number), max(sequence_number),
       bool_and((payload ->> 'n')::bigint = sequence_number), count(DISTINCT event_id)
FROM projector.events WHERE aggregate_id = 'b-big';
SELECT count(*) FROM (SELECT log_seq > lag(log_seq, 1, 0::bigint) OVER (ORDER BY sequence_number) AS rising
    FROM projector.events WHERE aggregate_id = 'b-big') r WHERE NOT rising;

--
-- Large payloads and other scripts
--
-- a payload of 1 MB
SELECT projector_append('acme', 'large', 'Large', jsonb_build_object('text', repeat('0123456789abcdef', 65536)));
SELECT length(payload ->> 'text'), payload_hash = sha256(convert_to(payload::text, 'UTF8'))
FROM projector.events WHERE aggregate_id = 'large';

-- identifiers and payloads in any script; JSON escapes equal their characters
SELECT projector_append(U&'m\00fcller', U&'\65e5\672c\8a9e', U&'\0421\043e\0431\044b\0442\0438\0435',
    '{"plain": "żółć", "escaped": "\u017c\u00f3\u0142\u0107", "emoji": "\ud83d\ude00", "quote": "\"\\\/\n"}');
SELECT tenant_id, aggregate_id, event_type, payload ->> 'plain' = payload ->> 'escaped',
       payload ->> 'emoji' = U&'\+01F600', payload ->> 'quote' = E'"\\/\n',
       payload_hash = sha256(convert_to(payload::text, 'UTF8'))
FROM projector.events WHERE tenant_id = U&'m\00fcller';
SELECT try($$SELECT projector_append('acme', 'nul', 'T', '{"nul": "\u0000"}')$$);
-- identifiers are compared byte by byte: case and blanks matter
SELECT projector_append('acme', 'Item-1', 'ItemReceived', '{}'),
       projector_append('acme', 'item-1 ', 'ItemReceived', '{}'),
       projector_append('acme', ' ', 'ItemReceived', '{}');

--
-- INSERT
--
INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
    VALUES ('acme', 'i-1', 1, 'A', '{"a": 1}'), ('acme', 'i-1', 2, 'A', '{"a": 2}'),
           ('acme', 'i-2', 1, 'A', '{}'), ('other', 'i-1', 1, 'A', '{}');
SELECT projector_append('acme', 'i-1', 'A', '{"a": 3}');
INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
    VALUES ('acme', 'i-1', 4, 'A', '{"a": 4}');

-- a gap, before the first, zero, negative
SELECT try($$INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
    VALUES ('acme', 'i-1', 6, 'A', '{}')$$);
SELECT try($$INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
    VALUES ('acme', 'i-9', 2, 'A', '{}')$$);
SELECT try($$INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
    VALUES ('acme', 'i-9', 0, 'A', '{}')$$);
SELECT try($$INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
    VALUES ('acme', 'i-9', -1, 'A', '{}')$$);
-- the predecessor must be of the same tenant and aggregate
SELECT try($$INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
    VALUES ('other', 'i-2', 2, 'A', '{}')$$);

-- inside one statement: a gap, a number twice, the wrong order
SELECT try($$INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
    VALUES ('acme', 'i-1', 5, 'A', '{}'), ('acme', 'i-1', 7, 'A', '{}')$$);
SELECT try($$INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
    VALUES ('acme', 'i-1', 5, 'A', '{}'), ('acme', 'i-1', 5, 'A', '{}')$$);
\set VERBOSITY sqlstate
INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
    VALUES ('acme', 'i-1', 6, 'A', '{}'), ('acme', 'i-1', 5, 'A', '{}');
INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
    VALUES ('acme', 'i-9', 1, 'A', '{}'), ('acme', 'i-9', 3, 'A', '{}'), ('acme', 'i-9', 2, 'A', '{}');
-- the same number as an event in the log
INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
    VALUES ('acme', 'i-1', 4, 'A', '{}');
\set VERBOSITY default
-- interleaved aggregates are fine as long as each is in order
INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
    VALUES ('acme', 'i-3', 1, 'A', '{}'), ('acme', 'i-4', 1, 'A', '{}'),
           ('acme', 'i-3', 2, 'A', '{}'), ('other', 'i-3', 1, 'A', '{}'), ('acme', 'i-4', 2, 'A', '{}');
SELECT tenant_id, aggregate_id, count(*) FROM projector.events
WHERE aggregate_id LIKE 'i-%' GROUP BY 1, 2 ORDER BY 1, 2;

-- the rules for the columns are those of projector_append
SELECT try($$INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
    VALUES ('', 'i', 1, 'A', '{}')$$);
SELECT try($$INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
    VALUES ('acme', '', 1, 'A', '{}')$$);
SELECT try($$INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
    VALUES ('acme', 'i', 1, '', '{}')$$);
\set VERBOSITY sqlstate
INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
    VALUES (NULL, 'i', 1, 'A', '{}');
INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
    VALUES ('acme', NULL, 1, 'A', '{}');
INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
    VALUES ('acme', 'i', NULL, 'A', '{}');
INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
    VALUES ('acme', 'i', 1, NULL, '{}');
INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
    VALUES ('acme', 'i', 1, 'A', NULL);
INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload, metadata)
    VALUES ('acme', 'i', 1, 'A', '{}', NULL);
-- an id that is taken
INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_id, event_type, payload)
    VALUES ('acme', 'i', 1, '22222222-2222-2222-2222-222222222222', 'A', '{}');
\set VERBOSITY default

-- payload_hash is checked if given
SELECT try($$INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload, payload_hash)
    VALUES ('acme', 'h-1', 1, 'A', '{"a": 1}', sha256('{"a": 2}'))$$);
SELECT try($$INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload, payload_hash)
    VALUES ('acme', 'h-1', 1, 'A', '{"a": 1}', '')$$);
SELECT try($$INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload, payload_hash)
    VALUES ('acme', 'h-1', 1, 'A', '{"a":1}', sha256('{"a": 1}'))$$);
SELECT count(*) FROM projector.events WHERE aggregate_id = 'h-1';

-- the writer cannot choose log_seq
SELECT try($$INSERT INTO projector.events (log_seq, tenant_id, aggregate_id, sequence_number, event_type, payload)
    VALUES (1000000, 'acme', 'l-1', 1, 'A', '{}')$$);
-- if it is forced, as when a log is copied, it must rise with the sequence
BEGIN;
INSERT INTO projector.events (log_seq, tenant_id, aggregate_id, sequence_number, event_type, payload)
    OVERRIDING SYSTEM VALUE
    VALUES (1000001, 'acme', 'l-1', 1, 'A', '{}'), (1000002, 'acme', 'l-1', 2, 'A', '{}');
SELECT try($$INSERT INTO projector.events (log_seq, tenant_id, aggregate_id, sequence_number, event_type, payload)
    OVERRIDING SYSTEM VALUE VALUES (1000000, 'acme', 'l-1', 3, 'A', '{}')$$);
SELECT try($$INSERT INTO projector.events (log_seq, tenant_id, aggregate_id, sequence_number, event_type, payload)
    OVERRIDING SYSTEM VALUE VALUES (1000004, 'acme', 'l-1', 3, 'A', '{}'), (1000003, 'acme', 'l-1', 4, 'A', '{}')$$);
\set VERBOSITY sqlstate
INSERT INTO projector.events (log_seq, tenant_id, aggregate_id, sequence_number, event_type, payload)
    OVERRIDING SYSTEM VALUE VALUES (1000002, 'acme', 'l-1', 3, 'A', '{}');
\set VERBOSITY default
ROLLBACK;
BEGIN;
INSERT INTO projector.events (log_seq, tenant_id, aggregate_id, sequence_number, event_type, payload)
    OVERRIDING SYSTEM VALUE VALUES (1000001, 'acme', 'l-1', 1, 'A', '{}');
\set VERBOSITY sqlstate
SELECT projector_append('acme', 'l-1', 'A', '{}');
\set VERBOSITY default
ROLLBACK;

--
-- COPY
--
COPY projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload) FROM stdin;
acme	c-1	1	A	{"n": 1}
acme	c-1	2	A	{"n": 2}
acme	c-2	1	A	{"n": 1}
\.
COPY projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload) FROM stdin;
acme	c-1	3	A	{"n": 3}
acme	c-1	5	A	{"n": 5}
\.
\set VERBOSITY terse
COPY projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload) FROM stdin;
acme	c-3	2	A	{"n": 2}
acme	c-3	1	A	{"n": 1}
\.
\set VERBOSITY default
COPY projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload) FROM stdin;
acme	c-3	1		{"n": 1}
\.
\set VERBOSITY sqlstate
COPY projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload, payload_hash) FROM stdin;
acme	c-3	1	A	{"n": 1}	\\x00
\.
COPY projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload) FROM stdin;
acme	c-1	3	A	{"n": 3}
acme	c-1	3	A	{"n": 3}
\.
\set VERBOSITY default
SELECT aggregate_id, sequence_number, payload, payload_hash = sha256(convert_to(payload::text, 'UTF8'))
FROM projector.events WHERE aggregate_id LIKE 'c-%' ORDER BY 1, 2;

--
-- Append-only
--
UPDATE projector.events SET payload = '{}';
DELETE FROM projector.events;
TRUNCATE projector.events;
SELECT try($$UPDATE projector.events SET payload = '{}' WHERE false$$);
SELECT try($$INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
    VALUES ('acme', 'i-1', 4, 'A', '{"a": 44}')
    ON CONFLICT (tenant_id, aggregate_id, sequence_number) DO UPDATE SET payload = excluded.payload$$);
-- ON CONFLICT DO NOTHING changes nothing and is allowed
INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
    VALUES ('acme', 'i-1', 4, 'A', '{"a": 44}') ON CONFLICT DO NOTHING;
SELECT payload FROM projector.events WHERE tenant_id = 'acme' AND aggregate_id = 'i-1' ORDER BY sequence_number;

--
-- What an aborted append leaves: nothing
--
CREATE TABLE seen (tenant_id text, aggregate_id text, n bigint, PRIMARY KEY (tenant_id, aggregate_id));
CREATE FUNCTION count_seen(e projector.event) RETURNS void LANGUAGE sql AS $$
    INSERT INTO seen VALUES ((e).tenant_id, (e).aggregate_id, 1)
    ON CONFLICT (tenant_id, aggregate_id) DO UPDATE SET n = seen.n + 1
$$;
SELECT projector_create('seen', handler => 'count_seen', targets => '{seen}',
                        mode => 'inline', event_types => '{Seen}', options => '{"shared_targets": true}');
SELECT projector_create('queued', handler => 'count_seen', targets => '{seen}', event_types => '{Seen}',
                        options => '{"shared_targets": true}');

BEGIN;
SELECT projector_append('acme', 's-1', 'Seen', '{}');
SELECT aggregate_id, n FROM seen ORDER BY 1;
SELECT projection_name, status FROM projector.outbox ORDER BY 1;
ROLLBACK;
SELECT (SELECT count(*) FROM projector.events WHERE aggregate_id = 's-1') AS events,
       (SELECT count(*) FROM projector.apply_outbox) AS outbox,
       (SELECT count(*) FROM projector.projection_offsets) AS offsets,
       (SELECT count(*) FROM seen) AS seen;

-- rolling back to a savepoint undoes only what followed it
BEGIN;
SELECT projector_append('acme', 's-1', 'Seen', '{}');
SAVEPOINT s;
SELECT projector_append('acme', 's-1', 'Seen', '{}');
SELECT projector_append('acme', 's-2', 'Seen', '{}');
SELECT aggregate_id, n FROM seen ORDER BY 1;
ROLLBACK TO s;
SELECT projector_append('acme', 's-1', 'Seen', '{"kept": true}');
COMMIT;
SELECT sequence_number, payload FROM projector.events WHERE aggregate_id LIKE 's-%' ORDER BY 1;
SELECT aggregate_id, n FROM seen ORDER BY 1;
SELECT aggregate_id, last_sequence_number FROM projector.offsets WHERE projection_name = 'seen' ORDER BY 1;
SELECT aggregate_id, sequence_number, status FROM projector.outbox WHERE projection_name = 'queued' ORDER BY 1, 2;

--
-- 100,000 aggregates in one statement, with a projection applied at once
--
SELECT projector_drop('queued');
-- hashes of texts of every length around the size of a block
INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
    SELECT 'lengths', 'a', n, 'Seen', jsonb_build_object('t', repeat('x', n)) FROM generate_series(1, 300) n;
SELECT count(*), bool_and(payload_hash = sha256(convert_to(payload::text, 'UTF8')))
    FROM projector.events WHERE tenant_id = 'lengths';

INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
    SELECT 'many', 'a-' || n, 1, 'Seen', '{}' FROM generate_series(1, 100000) n;
SELECT count(*), count(DISTINCT aggregate_id) FROM projector.events WHERE tenant_id = 'many';
SELECT count(*), sum(n) FROM seen WHERE tenant_id = 'many';
SELECT count(*), max(last_sequence_number) FROM projector.projection_offsets WHERE tenant_id = 'many';
SELECT count(*) FROM projector.apply_outbox;

\pset format aligned
\pset tuples_only off
SET client_min_messages = warning;
DROP EXTENSION projector CASCADE;
DROP TABLE seen;
DROP FUNCTION try(text);
RESET client_min_messages;
