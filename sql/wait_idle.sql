-- Waiting where nothing is applied: mode "off" and dormant copies.  Events that
-- were applied before return "applied"; for the others, waiting would never end,
-- so it is an error.
SET client_min_messages = warning;
CREATE EXTENSION projector;
\set try_shows 'answer'
\i sql/include/try.sql
CREATE TABLE model (tenant_id text, id text, n int DEFAULT 0, last_event_id uuid, last_event_version bigint,
    PRIMARY KEY (tenant_id, id));
SELECT projector_create('model', fold_columns => '{"n": "s.n+1"}', targets => '{model}', event_types => '{E}');
SELECT projector_append('acme', 'a', 'E', '{}');
SELECT projector_drain();
-- an event that is applied, but that the cursor has not passed
SELECT projector_append('acme', 'b', 'E', '{}');
SELECT projector_drain('model', 'acme', 1);
UPDATE projector.projection_cursors SET last_log_seq = 1;
SELECT projector_set_mode('model', 'off');
SELECT projector_append('acme', 'a', 'E', '{}');
SELECT projector_append('acme', 'a', 'Other', '{}');

CREATE VIEW answers AS
SELECT l AS log_seq, try(format('SELECT projector_wait_log(%L, %L, %s, %L)', 'model', 'acme', l, '0')) AS wait_log
FROM generate_series(1, 4) l;
CREATE VIEW event_answers AS
SELECT s AS sequence_number, try(format('SELECT projector_wait(%L, %L, %L, %s, %L)', 'model', 'acme', 'a', s, '0')) AS wait
FROM generate_series(1, 3) s;
TABLE answers;
TABLE event_answers;

-- off for one tenant
SELECT projector_set_mode('model', 'async');
SELECT projector_drain();
TABLE answers;
SELECT projector_set_mode('model', 'off', 'acme');
SELECT projector_append('acme', 'a', 'E', '{}');
SELECT try($$SELECT projector_wait_log('model', 'acme', 4, '0')$$);
SELECT try($$SELECT projector_wait_log('model', 'acme', 5, '0')$$);
SELECT projector_set_mode('model', NULL, 'acme');
SELECT projector_drain();
SELECT try($$SELECT projector_wait_log('model', 'acme', 5, '0')$$);

-- a copy
UPDATE projector.projections SET home = 'elsewhere';
SELECT projector_append('acme', 'a', 'E', '{}');
SELECT try($$SELECT projector_wait_log('model', 'acme', 5, '0')$$);
SELECT try($$SELECT projector_wait_log('model', 'acme', 6, '0')$$);
SELECT try($$SELECT projector_wait('model', 'acme', 'a', 4, '0')$$);
SELECT try($$SELECT projector_wait('model', 'acme', 'a', 5, '0')$$);

DROP EXTENSION projector CASCADE;
DROP VIEW IF EXISTS answers, event_answers;
DROP TABLE model;
DROP FUNCTION try;
