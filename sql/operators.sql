-- What operators do with failed events: inspect, requeue, skip.
CREATE EXTENSION projector;
CREATE TABLE steps (tenant_id text, item_id text, path text NOT NULL, PRIMARY KEY (tenant_id, item_id));
-- collects the events it has applied; cannot apply one that says "bad"
CREATE FUNCTION note_step(e projector.event) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO public.steps AS s VALUES (e.tenant_id, e.aggregate_id, e.sequence_number)
    ON CONFLICT (tenant_id, item_id) DO UPDATE SET path = s.path || ' ' || excluded.path;
    IF e.payload = '"bad"' AND NOT EXISTS (SELECT FROM public.mended) THEN
        RAISE EXCEPTION 'cannot apply % of %', e.sequence_number, e.aggregate_id USING DETAIL = 'It is bad.';
    END IF;
END $$;
CREATE TABLE mended ();
SELECT projector_create('steps', handler => 'note_step', targets => '{steps}',
    options => '{"max_attempts": 2, "retry_base": "1 h", "retry_max": "1 h"}');
SELECT projector_append_batch(tenant, item, '[{"event_type": "F", "payload": 1}, {"event_type": "F", "payload": "bad"},
    {"event_type": "F", "payload": 3}, {"event_type": "G", "payload": 4}]')
FROM (VALUES ('acme', 'a'), ('acme', 'b'), ('beta', 'c')) AS x (tenant, item);
CREATE VIEW stats AS
    SELECT projection_name, tenant_id, count(*) FILTER (WHERE status = 'pending') AS pending, count(*) FILTER (WHERE status = 'held') AS held,
        count(*) FILTER (WHERE status = 'processing') AS processing, count(*) FILTER (WHERE status = 'failed') AS failed, count(*) FILTER (WHERE status = 'dead') AS dead
    FROM projector.outbox GROUP BY 1, 2 ORDER BY 1, 2;
CREATE VIEW work AS SELECT tenant_id, aggregate_id, sequence_number, status, attempt_count FROM projector.outbox;

--
-- Reports
--
SELECT projector_drain();
SELECT tenant_id, aggregate_id, sequence_number, event_type, status, attempt_count, last_error
FROM projector.outbox ORDER BY tenant_id, aggregate_id, sequence_number;
-- by status and tenant; machine-readable
SELECT tenant_id, aggregate_id FROM projector.outbox WHERE status = 'failed' AND projection_name = 'steps' AND tenant_id = 'beta';
SELECT jsonb_agg(jsonb_build_object('aggregate', aggregate_id, 'error', last_error))
FROM projector.outbox WHERE status = 'failed' AND tenant_id = 'beta';
SELECT * FROM stats;
SELECT projection_name, tenant_id, pending, held, failed, dead, lag_time >= '0' AS has_age, applied_count, failed_count
FROM projector.status_by_tenant;
SELECT tenant_id, held FROM projector.status_by_tenant WHERE tenant_id = 'beta';

--
-- Requeue
--
SET projector.clock_offset = '2 h';
SELECT projector_drain();
RESET projector.clock_offset;
SELECT * FROM work WHERE status = 'dead' ORDER BY 1, 2, 3;
SELECT tenant_id, dead, failed, held FROM stats;
-- not repaired: it fails again, and attempts are counted from the start
SELECT projector_requeue('steps', 'acme', 'a', 2);
SELECT * FROM work WHERE aggregate_id = 'a' ORDER BY 3;
SELECT projector_drain();
SELECT * FROM work WHERE aggregate_id = 'a' ORDER BY 3;
-- a failed one too; nothing to do for others
SELECT projector_requeue('steps', 'acme', 'a', 2);
SELECT projector_requeue('steps', 'acme', 'a', 2);
SELECT projector_requeue('steps', 'acme', 'a', 3);
SELECT projector_requeue('steps', 'acme', 'a', 9);
SELECT projector_requeue('steps', 'acme', NULL, 2);
SELECT projector_requeue('nothing', 'acme', 'a', 2);
-- repaired: its aggregate continues, in order
INSERT INTO mended DEFAULT VALUES;
SELECT projector_drain();
SELECT * FROM steps ORDER BY 1, 2;
-- at or below the offset
INSERT INTO projector.apply_outbox (projection_id, log_seq, tenant_id, aggregate_id, sequence_number, event_type, status)
SELECT projection_id, e.log_seq, 'acme', 'a', 2, 'F', 'dead' FROM projector.projections, projector.events e
WHERE (e.tenant_id, e.aggregate_id, e.sequence_number) = ('acme', 'a', 2);
SELECT projector_requeue('steps', 'acme', 'a', 2);
SELECT projector_requeue('steps', 'acme', 'a');
DELETE FROM projector.apply_outbox WHERE aggregate_id = 'a';
-- in bounded batches, the oldest first
SELECT projector_requeue(max_rows => 0);
SELECT * FROM projector_requeue(max_rows => 1);
SELECT * FROM projector_requeue('steps', 'acme');
SELECT * FROM projector_requeue();
SELECT * FROM projector_requeue();
-- unknown names are an error
SELECT * FROM projector_requeue('steps', 'acne');
SELECT * FROM projector_requeue('steps', 'acme', 'z');
SELECT * FROM projector_requeue(aggregate_id => 'a');
SELECT * FROM projector_requeue('steps', 'acme', 'a', 0);
SELECT projector_drain();
SELECT * FROM steps ORDER BY 1, 2;
SELECT count(*) FROM projector.outbox;
SELECT aggregate_id, sequence_number, resolution FROM projector.failures ORDER BY 1, 2;

--
-- Skip
--
TRUNCATE mended, steps;
SELECT projector_append_batch('acme', 'd', '[{"event_type": "F", "payload": 1}, {"event_type": "F", "payload": "bad"},
    {"event_type": "F", "payload": 3}, {"event_type": "F", "payload": "bad"}, {"event_type": "F", "payload": 5}]');
SELECT projector_drain();
SELECT * FROM work ORDER BY 3;
-- a reason is required; the event must exist and be above the offset
SELECT projector_skip('steps', 'acme', 'd', 2, NULL);
SELECT projector_skip('steps', 'acme', 'd', 2, '');
SELECT projector_skip('steps', 'acme', 'd', 9, 'why not');
SELECT projector_skip('steps', 'acme', 'd', 1, 'too late');
-- the failed one, and one that has not been reached yet
SELECT projector_skip('steps', 'acme', 'd', 2, 'test data');
SELECT projector_skip('steps', 'acme', 'd', 2, 'again');
SELECT projector_skip('steps', 'acme', 'd', 4, 'test data too');
SELECT projector_drain();
SELECT * FROM steps;
SELECT * FROM work;
SELECT aggregate_id, last_sequence_number FROM projector.offsets WHERE aggregate_id = 'd';
SELECT sequence_number, error_code, error_message, resolution, metadata->>'skip_reason' AS reason, metadata->>'skipped_by' = current_user AS by_me
FROM projector.failures WHERE aggregate_id = 'd' ORDER BY 1;
-- later events are applied, and a replay skips it too
SELECT projector_append('acme', 'd', 'F', '6');
SELECT projector_drain();
TRUNCATE steps;
SELECT projector_reset('steps', 'acme', force => true);
SELECT projector_drain() > 0 AS replayed;
SELECT * FROM steps WHERE item_id = 'd';
-- unskip: too late for the read model, and a notice says so
INSERT INTO mended DEFAULT VALUES;
SELECT projector_unskip('steps', 'acme', 'd', 4);
SELECT projector_unskip('steps', 'acme', 'd', 4);
SELECT projector_unskip('steps', 'acme', 'd', 3);
TRUNCATE steps;
SELECT projector_reset('steps', 'acme', force => true);
SELECT projector_drain() > 0 AS replayed;
SELECT * FROM steps WHERE item_id = 'd';
SELECT sequence_number, resolution FROM projector.failures WHERE aggregate_id = 'd' ORDER BY 1;
-- unskip in time: as if it had never been skipped
SELECT projector_append('acme', 'e', 'F', '1');
SELECT projector_skip('steps', 'acme', 'e', 1, 'a mistake');
SELECT projector_unskip('steps', 'acme', 'e', 1);
SELECT projector_drain();
SELECT * FROM steps WHERE item_id = 'e';
SELECT count(*) FROM projector.failures WHERE aggregate_id = 'e';
-- inline and strict: an append moves past the skipped event
SELECT projector_set_mode('steps', 'inline');
TRUNCATE mended;
SELECT projector_append('acme', 'e', 'F', '"bad"');
SELECT projector_skip('steps', 'acme', 'e', 2, 'bad');
SELECT projector_set_mode('steps', 'strict');
SELECT projector_append('acme', 'e', 'F', '3');
SELECT * FROM steps WHERE item_id = 'e';
SELECT * FROM work;
-- an event of a type the projection does not want
SELECT projector_alter('steps', '{"event_types": ["F"]}');
SELECT projector_append('acme', 'e', 'G', '4');
SELECT projector_skip('steps', 'acme', 'e', 4, 'why not');

-- a type that is removed and added again: its failed events were not skipped by
-- an operator, so a replay applies them, and they can fail and be skipped
SELECT projector_set_mode('steps', 'inline');
SELECT projector_alter('steps', '{"event_types": ["F", "G"]}');
SELECT projector_append('acme', 'g', 'F', '1');
SELECT projector_append('acme', 'g', 'G', '"bad"');
SELECT projector_alter('steps', '{"event_types": ["F"]}');
SELECT sequence_number, resolution FROM projector.failures WHERE aggregate_id = 'g';
SELECT projector_alter('steps', '{"event_types": ["F", "G"]}');
DELETE FROM steps WHERE item_id = 'g';
SELECT projector_reset('steps', 'acme', 'g', force => true);
SELECT projector_drain();
SELECT sequence_number, status FROM work WHERE aggregate_id = 'g';
SELECT projector_skip('steps', 'acme', 'g', 2, 'now it is');
SELECT projector_drain();
SELECT * FROM steps WHERE item_id = 'g';
SELECT sequence_number, resolution, metadata ? 'skip_reason' AS decided FROM projector.failures WHERE aggregate_id = 'g' ORDER BY id;
SELECT projector_alter('steps', '{"event_types": ["F"]}');

--
-- Notes
--
SELECT projector_note(id, '{"ticket": "OPS-1"}') FROM projector.failures WHERE aggregate_id = 'd' AND sequence_number = 2;
SELECT projector_note(id, '{"ticket": "OPS-2", "who": "me"}') FROM projector.failures WHERE aggregate_id = 'd' AND sequence_number = 2;
SELECT metadata - 'skipped_by' AS metadata FROM projector.failures WHERE aggregate_id = 'd' AND sequence_number = 2;
SELECT projector_note(0, '{}');
SELECT projector_note(1, '[]');
SELECT projector_note(1, NULL);
SELECT projector_note(1, '{"ticket": "OPS-3", "skip_reason": "none"}');
SELECT projector_note(1, '{"skipped_by": "somebody else"}');

--
-- Who may
--
SELECT projector_set_mode('steps', 'async');
SELECT projector_append('acme', 'f', 'F', '"bad"');
SELECT projector_drain();
SET projector.clock_offset = '2 h';
SELECT projector_drain();
RESET projector.clock_offset;
SELECT * FROM work;
CREATE ROLE regress_operator;
SELECT projector_grant('regress_operator', 'operator');
\set VERBOSITY terse
SET ROLE regress_operator;
SELECT projector_requeue('steps', 'acme', 'a', 1);
SELECT projector_skip('steps', 'acme', 'a', 1, 'x');
SELECT projector_unskip('steps', 'acme', 'a', 1);
SELECT projector_note(1, '{}');
SELECT * FROM projector_requeue('steps');
SELECT * FROM projector_requeue();
SELECT count(*) FROM projector.outbox;
SELECT count(*) > 0 FROM projector.status_by_tenant;
RESET ROLE;
\set VERBOSITY default
SET client_min_messages = warning;
DROP OWNED BY regress_operator;
DROP ROLE regress_operator;
DROP EXTENSION projector CASCADE;
DROP TABLE steps, mended;
