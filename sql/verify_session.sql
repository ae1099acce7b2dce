-- Results of verify, and digests, do not depend on the caller or its settings; and what explain lists.
\pset format unaligned
\pset tuples_only on
SET client_min_messages = warning;
CREATE EXTENSION projector;
CREATE SCHEMA "other place";
CREATE TYPE "other place".kind AS ENUM ('a');
CREATE TABLE "other place".thing (n int);
CREATE TABLE t (tenant_id text, id text, t text DEFAULT 'column t', t_ float8 DEFAULT 0, at timestamptz, span interval, cash money, raw bytea, relation regclass, type regtype,
    last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
SELECT projector_create('t', targets => '{t}', fold_columns => '{"t_": "0.1::float8 + (e.payload->>''x'')::float8", "at": "''2020-01-01 00:00+00''", "span": "''1 day 2 hours''", "cash": "12.5::numeric::money", "raw": "''\\x0102''",
    "relation": "''\"other place\".thing''::regclass", "type": "''\"other place\".kind''::regtype"}');
SELECT count(projector_append('acme', a, 'Made', '{"x": 0.2}')) FROM unnest('{a,b}'::text[]) a;
SELECT projector_drain();
SELECT projector_digest('t', 'acme') AS digest \gset
CREATE FUNCTION verdict() RETURNS text LANGUAGE sql AS
    $$SELECT concat_ws(' ', matches, live_digest = rebuilt_digest, differing_rows, (SELECT string_agg(k || '=' || (sample->0->'live'->>k), ' ' ORDER BY k) FROM unnest('{t_,at,span,raw,relation,type}'::text[]) k)) FROM projector_verify('t')$$;
SELECT verdict(), (SELECT bool_and(matches) FROM projector_check_digests());
-- a difference in the last digit is found, with any session settings
UPDATE t SET t_ = t_ + 0.00000000000000001 * 5 WHERE id = 'a';
SELECT verdict();
SET extra_float_digits = -8;
SELECT verdict();
SET DateStyle = 'German'; SET TimeZone = 'Asia/Tokyo'; SET IntervalStyle = 'iso_8601'; SET bytea_output = 'escape'; SET search_path = "other place", public; SET quote_all_identifiers = on;
SELECT verdict(), projector_digest('t', 'acme') <> :'digest';
SELECT s->>'key', s->'live'->>'t', s->'live'->>'at', s->'live'->>'relation' FROM projector_verify('t') v, jsonb_array_elements(v.sample) s;
SELECT state->>'t', state->>'t_', state->>'at', state->>'relation', state->>'type' FROM projector_explain('t', 'acme', 'a');
SELECT rebuilt->>'t', rebuilt->>'t_', live->>'t_' FROM projector_preview('t', '{"fold_columns": {"t": "''x''"}}', 'acme', 'a');
SELECT projector_rebuild('t', 'acme', 'a');
SELECT verdict(), projector_digest('t', 'acme') = :'digest', (SELECT bool_and(matches) FROM projector_check_digests());
RESET ALL;
SET client_min_messages = warning;
SELECT verdict(), projector_digest('t', 'acme') = :'digest', (SELECT bool_and(matches) FROM projector_check_digests());
SELECT projector_drop('t');

-- an ignored key: rows are matched by their other columns
CREATE TABLE entries (no bigserial PRIMARY KEY, tenant_id text, id text);
CREATE FUNCTION handle(e projector.event) RETURNS void LANGUAGE sql AS 'INSERT INTO entries (tenant_id, id) VALUES (e.tenant_id, e.aggregate_id)';
SELECT projector_create('entries', handler => 'handle', targets => '{entries}', options => '{"digest_ignore": ["no"], "shared_targets": true}');
SELECT projector_append('acme', 'a', 'Made', '{}');
SELECT projector_drain();
SELECT matches, live_digest = rebuilt_digest AS same, differing_rows FROM projector_verify('entries');
DELETE FROM entries WHERE ctid = (SELECT min(ctid) FROM entries WHERE id = 'a');
INSERT INTO entries (tenant_id, id) VALUES ('acme', 'c'), ('acme', 'c');
SELECT matches, live_digest = rebuilt_digest AS same, differing_rows FROM projector_verify('entries');
SELECT s->>'key' AS key, s->'live'->>'id' AS live, s->'rebuilt'->>'id' AS rebuilt FROM projector_verify('entries') v, jsonb_array_elements(v.sample) s ORDER BY 1;

-- skipped events of a handler are not listed
CREATE FUNCTION fail(e projector.event) RETURNS void LANGUAGE plpgsql AS $$BEGIN IF e.payload ? 'fails' THEN RAISE 'fails'; END IF; END$$;
SELECT projector_create('fails', handler => 'fail', targets => '{entries}', event_types => '{F}', options => '{"shared_targets": true}');
SELECT projector_append('acme', 'f', 'F', p::jsonb) FROM unnest('{"{}","{\"fails\": 1}","{}"}'::text[]) p;
SELECT projector_drain('fails');
SELECT projector_skip('fails', 'acme', 'f', 2, 'a test');
SELECT projector_drain('fails');
SELECT sequence_number FROM projector_explain('fails', 'acme', 'f');

-- a row of many events, folded in memory
CREATE TABLE lanes (tenant_id text, lane int, n int DEFAULT 0, last_event_id uuid, last_event_version bigint, last_log_seq bigint, PRIMARY KEY (tenant_id, lane));
SELECT projector_create('lanes', targets => '{lanes}', key => '(payload->>''lane'')::int', event_types => '{Lane}', fold_columns => '{"n": "s.n + 1"}');
INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
    SELECT 'acme', 'l' || i % 10, i / 10 + 1, 'Lane', jsonb_build_object('lane', i % 3) FROM generate_series(0, 2999) i;
SELECT projector_drain('lanes');
SELECT count(*), min((state->>'n')::int), max((state->>'n')::int), count(DISTINCT state->>'n') FROM projector_explain('lanes', 'acme', '1');
SELECT count(*) FROM projector_explain('lanes', 'acme', '7');
SELECT projector_append('acme', 'l0', 'Lane', '{"lane": 1}');
SELECT count(*) FROM projector_explain('lanes', 'acme', '1');
-- a trigger that changes rows is part of it
CREATE FUNCTION double() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN new.n := new.n * 2; RETURN new; END$$;
CREATE TABLE doubled (tenant_id text, id text, n int DEFAULT 0, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
CREATE TRIGGER double BEFORE INSERT OR UPDATE ON doubled FOR EACH ROW EXECUTE FUNCTION double();
SELECT projector_create('doubled', targets => '{doubled}', event_types => '{D}', fold_columns => '{"n": "s.n + 1"}');
SELECT projector_append('acme', 'd', 'D', '{}') FROM generate_series(1, 3);
SELECT projector_drain('doubled');
SELECT state->>'n' AS n FROM projector_explain('doubled', 'acme', 'd');

DROP EXTENSION projector CASCADE;
DROP TABLE t, entries, lanes, doubled;
DROP FUNCTION verdict, double;
DROP SCHEMA "other place" CASCADE;
