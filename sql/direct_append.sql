-- projector_append inserts its row without SQL if the log's table is as it was
-- created.  Whatever has been added to the table must still work.
\set VERBOSITY terse
\pset tuples_only on
\pset format unaligned
SET client_min_messages = warning;
CREATE EXTENSION projector;

-- The row is complete, and so are the indexes' entries.
SELECT projector_append('acme', 'a', 'E', '{"n": 1}', metadata => '{"by": "me"}');
SELECT projector_append('acme', 'a', 'E', '{"n": 2}', event_id => '00000000-0000-4000-8000-000000000001');
SELECT projector_append('acme', 'a', 'E', '{"n": 2}', event_id => '00000000-0000-4000-8000-000000000001');
SELECT sequence_number, event_type, payload, metadata, event_id IS NOT NULL,
    payload_hash = sha256(convert_to(payload::text, 'UTF8')), recorded_at BETWEEN now() - interval '1 h' AND clock_timestamp(), log_seq
FROM projector.events ORDER BY log_seq;
SET enable_seqscan = off;
SELECT sequence_number FROM projector.events WHERE tenant_id = 'acme' AND log_seq = 1;
SELECT sequence_number FROM projector.events WHERE tenant_id = 'acme' AND event_id = '00000000-0000-4000-8000-000000000001';
SELECT sequence_number FROM projector.events WHERE tenant_id = 'acme' AND aggregate_id = 'a' AND sequence_number = 2;
RESET enable_seqscan;

-- It leaves no lock behind, however many there are in a transaction.
BEGIN;
SELECT projector_append('acme', 'locks', 'E', '{}');
SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'spectoken';
ROLLBACK;

-- It is refused like any INSERT.
BEGIN READ ONLY;
SELECT projector_append('acme', 'a', 'E', '{}');
ROLLBACK;
SELECT projector_append('acme', '', 'E', '{}');
SELECT projector_append('acme', repeat('x', 1001), 'E', '{}');

-- Values that are stored elsewhere, or compressed.
CREATE TABLE documents (id text, body jsonb);
ALTER TABLE documents ALTER body SET STORAGE EXTERNAL;
INSERT INTO documents SELECT 'd', jsonb_build_object('text', string_agg(md5(i::text), '')) FROM generate_series(1, 5000) i;
INSERT INTO documents SELECT 'e', jsonb_build_object('text', repeat('y', 500000));
CREATE TABLE seen (tenant_id text, aggregate_id text, size int, PRIMARY KEY (tenant_id, aggregate_id));
CREATE FUNCTION see(e projector.event) RETURNS void LANGUAGE sql AS
    'INSERT INTO seen VALUES (e.tenant_id, e.aggregate_id, length(e.payload->>''text''))';
SELECT projector_create('seen', handler => 'see', targets => '{seen}', mode => 'inline');
SELECT projector_append('big', id, 'E', body) FROM documents ORDER BY id;
SELECT e.aggregate_id, d.body = e.payload, seen.size
FROM projector.events e JOIN documents d ON d.id = e.aggregate_id JOIN seen USING (tenant_id, aggregate_id) ORDER BY 1;

-- A transaction sees its own events, and rolls them back.
BEGIN;
SELECT projector_append('acme', 'b', 'E', '{"text": "four"}');
SELECT projector_append('acme', 'c', 'E', '{"text": "seven"}');
SAVEPOINT s;
SELECT projector_append('acme', 'd', 'E', '{"text": ""}');
ROLLBACK TO s;
SELECT aggregate_id, size FROM seen WHERE tenant_id = 'acme' ORDER BY 1;
COMMIT;
SELECT aggregate_id, size FROM seen WHERE tenant_id = 'acme' ORDER BY 1;
SELECT projector_drop('seen');

-- A trigger of the operator's.
CREATE TABLE heard (sequence_number bigint);
CREATE FUNCTION hear() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN INSERT INTO public.heard VALUES (new.sequence_number); RETURN NULL; END';
CREATE TRIGGER hear AFTER INSERT ON projector.events FOR EACH ROW EXECUTE FUNCTION hear();
SELECT projector_append('t1', 'a', 'E', '{}');
TABLE heard;
DROP TRIGGER hear ON projector.events;
SELECT projector_append('t1', 'a', 'E', '{}');
TABLE heard;

-- A default of the operator's.
ALTER TABLE projector.events ALTER recorded_at SET DEFAULT '2001-01-01 00:00:00Z';
SELECT projector_append('t2', 'a', 'E', '{}');
ALTER TABLE projector.events ALTER recorded_at SET DEFAULT clock_timestamp();
SELECT projector_append('t2', 'a', 'E', '{}');
SELECT sequence_number, recorded_at = '2001-01-01 00:00:00Z' FROM projector.events WHERE tenant_id = 't2' ORDER BY 1;

-- An index and a check of the operator's.
CREATE INDEX by_number ON projector.events (((payload->>'n')::int));
SELECT projector_append('t3', 'a', 'E', '{"n": 77}');
SELECT projector_append('t3', 'a', 'E', '{"n": "none"}');
SET enable_seqscan = off;
SELECT tenant_id FROM projector.events WHERE (payload->>'n')::int = 77;
RESET enable_seqscan;
DROP INDEX projector.by_number;
ALTER TABLE projector.events ADD CONSTRAINT has_type CHECK (event_type <> 'Bad');
SELECT projector_append('t3', 'a', 'Bad', '{}');
ALTER TABLE projector.events DROP CONSTRAINT has_type;

-- An index of the operator's in place of one of ours, by the same name.
ALTER TABLE projector.events DROP CONSTRAINT events_tenant_id_event_id_key;
CREATE UNIQUE INDEX events_tenant_id_event_id_key ON projector.events (tenant_id, event_id) INCLUDE (event_type, aggregate_id);
SELECT projector_append('t6', 'a', 'Covered', '{}');
VACUUM projector.events;
SET enable_seqscan = off;
SELECT event_type, aggregate_id FROM projector.events WHERE tenant_id = 't6' AND event_id IS NOT NULL;
RESET enable_seqscan;
DROP INDEX projector.events_tenant_id_event_id_key;
ALTER TABLE projector.events ADD UNIQUE (tenant_id, event_id);
SELECT projector_append('t6', 'a', 'Uncovered', '{}');

-- Without the triggers, as in every INSERT.
CREATE FUNCTION nothing(e projector.event) RETURNS void LANGUAGE sql AS '';
SELECT projector_create('queued', handler => 'nothing', mode => 'async');
SELECT projector_append('t4', 'a', 'E', '{}');
BEGIN;
ALTER TABLE projector.events DISABLE TRIGGER events_capture;
SELECT projector_append('t4', 'a', 'E', '{}');
ALTER TABLE projector.events ENABLE TRIGGER events_capture;
COMMIT;
SELECT projector_append('t4', 'a', 'E', '{}');
SELECT sequence_number FROM projector.apply_outbox WHERE tenant_id = 't4' ORDER BY 1;

-- The same in the outbox.
DROP INDEX projector.apply_outbox_claim_idx;
CREATE INDEX apply_outbox_claim_idx ON projector.apply_outbox (projection_id, tenant_id, log_seq) INCLUDE (event_type)
    WHERE status = 'pending' AND NOT held;
SELECT projector_append('t7', 'a', 'Covered', '{}');
VACUUM projector.apply_outbox;
SET enable_seqscan = off;
SELECT event_type FROM projector.apply_outbox WHERE projection_id > 0 AND tenant_id = 't7' AND status = 'pending' AND NOT held;
RESET enable_seqscan;
DROP INDEX projector.apply_outbox_claim_idx;
CREATE INDEX apply_outbox_claim_idx ON projector.apply_outbox (projection_id, tenant_id, log_seq)
    WHERE status = 'pending' AND NOT held;
SELECT projector_append('t7', 'a', 'Uncovered', '{}');

-- And in the offsets, which a rebuild inserts.
ALTER TABLE projector.projection_offsets DROP CONSTRAINT projection_offsets_pkey,
    ADD CONSTRAINT projection_offsets_pkey PRIMARY KEY (projection_id, tenant_id, aggregate_id) INCLUDE (last_sequence_number);
TRUNCATE seen;
SELECT projector_create('again', handler => 'see', targets => '{seen}', mode => 'off');
SELECT projector_append('t8', id, 'E', '{}') FROM unnest('{a,b,c}'::text[]) id;
SELECT projector_rebuild('again', 't8');
VACUUM projector.projection_offsets;
SET enable_seqscan = off;
SELECT aggregate_id, last_sequence_number FROM projector.projection_offsets WHERE projection_id > 0 AND tenant_id = 't8' ORDER BY 1;
RESET enable_seqscan;
ALTER TABLE projector.projection_offsets DROP CONSTRAINT projection_offsets_pkey,
    ADD CONSTRAINT projection_offsets_pkey PRIMARY KEY (projection_id, tenant_id, aggregate_id);
SELECT projector_rebuild('again', 't8');
SELECT projector_drop('again');

-- The sequence has been set back: readers would miss the event.
SELECT projector_drain();
BEGIN;
SELECT setval('projector.events_log_seq_seq', 1);
SELECT projector_append('t5', 'a', 'E', '{}');
ROLLBACK;
SELECT setval('projector.events_log_seq_seq', (SELECT max(log_seq) FROM projector.events)) > 1;
SELECT projector_append('t5', 'a', 'E', '{}');

-- A column of the operator's.  The table is never again as it was.
ALTER TABLE projector.events ADD region text DEFAULT 'north';
SELECT projector_append('t3', 'a', 'E', '{}');
SELECT region FROM projector.events WHERE tenant_id = 't3' AND sequence_number = 2;
ALTER TABLE projector.events DROP region;
SELECT projector_append('t3', 'a', 'E', '{}');

DROP EXTENSION projector CASCADE;
DROP TABLE documents, seen, heard;
DROP FUNCTION hear;
