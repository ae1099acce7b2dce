-- Stored digests stay right when owners alter their tables.
\pset format unaligned
\pset tuples_only on
SET client_min_messages = warning;
CREATE EXTENSION projector;
CREATE TYPE mood AS ENUM ('sad', 'happy');
CREATE TABLE f (tenant_id text, id text, n int DEFAULT 0, price numeric(10,2) DEFAULT 1.5, code char(4) DEFAULT 'x', mood mood DEFAULT 'sad', moods mood[] DEFAULT '{happy}',
    last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
SELECT projector_create('f', targets => '{f}', fold_columns => '{"n": "s.n + 1"}');
CREATE FUNCTION append(VARIADIC tenants text[]) RETURNS bigint LANGUAGE sql AS
    $$SELECT count(projector_append(t, a, 'Made', '{}')) FROM unnest($1) t, unnest('{a,b}'::text[]) a$$;
CREATE FUNCTION checked() RETURNS text LANGUAGE sql AS
    $$SELECT string_agg(concat_ws(' ', tenant_id, coalesce(matches::text, 'unknown')), ', ' ORDER BY tenant_id) FROM projector_check_digests('f')$$;
SELECT append('t', 'u');
SELECT projector_drain();
SELECT checked();
-- changes by hand are found
UPDATE f SET n = 7 WHERE (tenant_id, id) = ('t', 'a');
SELECT checked();
UPDATE f SET n = 1 WHERE (tenant_id, id) = ('t', 'a');
SELECT checked();

--
-- alterations that change the text of values: unknown until the next batch, then right
--
ALTER TABLE f ALTER price TYPE numeric(10,4);
SELECT checked();
SELECT append('t');
SELECT projector_drain();
SELECT checked();
SELECT projector_set_mode('f', 'inline');
SELECT projector_drain();
ALTER TABLE f ALTER code TYPE char(8);
SELECT checked();
SELECT append('t');
SELECT projector_drain();
SELECT checked();
SELECT projector_set_mode('f', 'async');
SELECT projector_drain();
ALTER TYPE mood RENAME VALUE 'sad' TO 'gloomy';
SELECT checked();
SELECT append('t');
SELECT projector_drain();
SELECT checked();
SELECT projector_set_mode('f', 'inline');
SELECT projector_drain();
ALTER TYPE mood RENAME VALUE 'happy' TO 'glad';
SELECT checked();
SELECT append('t');
SELECT projector_drain();
SELECT checked();
SELECT projector_set_mode('f', 'async');
SELECT projector_drain();
ALTER TABLE f DROP COLUMN price, ADD COLUMN price numeric(10,4) DEFAULT 7;
SELECT checked();
SELECT append('t');
SELECT projector_drain();
SELECT checked();
-- two alterations between two appends: deltas of different layouts are not added up
SELECT projector_set_mode('f', 'inline');
SELECT projector_drain();
SELECT append('t');
ALTER TABLE f ALTER price TYPE numeric(10,1);
SELECT append('t');
SELECT checked();
SELECT count(DISTINCT layout) FROM projector.projection_deltas;
SELECT projector_drain();
SELECT checked();
SELECT count(*) FROM projector.projection_deltas WHERE digest IS NOT NULL;

--
-- another target of the same shape
--
CREATE TABLE g (LIKE f INCLUDING ALL);
INSERT INTO g SELECT * FROM f WHERE tenant_id = 't';
UPDATE g SET n = 1000 WHERE id = 'a';
SELECT projector_set_mode('f', 'async');
SELECT projector_drain();
SELECT projector_alter('f', '{"targets": ["g"]}');
SELECT checked();
SELECT append('t', 'w');
SELECT projector_drain();
SELECT checked();
SELECT projector_alter('f', '{"targets": ["f"]}');
SELECT checked();

--
-- policies do not hide tenants and rows from digests, verify and rebuilds
--
CREATE ROLE regress_digests;
ALTER TABLE f OWNER TO regress_digests;
GRANT USAGE ON SCHEMA projector TO regress_digests;
GRANT EXECUTE ON FUNCTION projector_create TO regress_digests;
SELECT projector_drop('f');
TRUNCATE f;
ALTER TABLE f ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON f USING (tenant_id = current_setting('projector.tenant_id', true) AND n < 50);
SET ROLE regress_digests;
SELECT projector_create('f', targets => '{f}', fold_columns => '{"n": "s.n + 1"}', event_types => '{Later}');
RESET ROLE;
SELECT projector_append('t', 'a', 'Later', '{}'), projector_append('u', 'a', 'Later', '{}');
SELECT projector_drain();
INSERT INTO f (tenant_id, id, n) VALUES ('t', 'hidden', 99), ('nobody', 'hidden', 1);
SELECT checked();
SELECT tenant_id, matches, differing_rows FROM projector_verify('f') WHERE tenant_id IN ('t', 'u', 'nobody') ORDER BY 1;
SELECT projector_rebuild('f');
SELECT tenant_id, id, n FROM f ORDER BY 1, 2;
SELECT checked();

DROP EXTENSION projector CASCADE;
DROP TABLE f, g;
DROP TYPE mood;
DROP FUNCTION append, checked;
DROP OWNED BY regress_digests;
DROP ROLE regress_digests;
