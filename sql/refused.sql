-- Targets, expressions and defaults that are refused, because the read model
-- could differ from one rebuild to the next, or be lost.
\pset format unaligned
\pset tuples_only on
CREATE EXTENSION projector;
\i sql/include/try.sql
CREATE TABLE note (tenant_id text, id text);
CREATE FUNCTION note(e projector.event) RETURNS void LANGUAGE sql AS $$INSERT INTO note VALUES (e.tenant_id, e.aggregate_id)$$;
CREATE FUNCTION handler(t text, options jsonb DEFAULT '{}', name text DEFAULT 'p') RETURNS text LANGUAGE sql AS
    $$SELECT try(format('SELECT projector_create(%L, handler => ''note'', targets => ''{%s}'', options => %L)', name, t, options))$$;

--
-- unlogged and temporary tables
--
CREATE UNLOGGED TABLE unlogged (tenant_id text, id text, n int DEFAULT 0, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
CREATE TEMP TABLE temporary (LIKE unlogged INCLUDING ALL);
CREATE FUNCTION columns(t text, columns jsonb DEFAULT '{"n": "s.n + 1"}', options jsonb DEFAULT '{}', name text DEFAULT 'p') RETURNS text LANGUAGE sql AS
    $$SELECT try(format('SELECT projector_create(%L, fold_columns => %L, targets => ''{%s}'', options => %L)', name, columns, t, options))
    FROM (SELECT CASE name WHEN 'p' THEN try('SELECT projector_drop(''p'')') END) x$$;
SELECT handler('unlogged');
SELECT columns('unlogged');
SELECT handler('temporary');
SELECT columns('temporary');
-- a partition counts too
CREATE TABLE parted (tenant_id text, id text) PARTITION BY LIST (id);
CREATE UNLOGGED TABLE part PARTITION OF parted DEFAULT;
SELECT handler('parted');
DROP TABLE parted;
-- even one that becomes unlogged later
SET projector.guard_ddl = off;
CREATE TABLE folded (LIKE unlogged INCLUDING ALL);
SELECT handler('note', name => 'handled');
SELECT columns('folded', name => 'folded');
SELECT projector_append('t', 'a', 'E', '{}');
SELECT projector_drain();
ALTER TABLE folded SET UNLOGGED;
ALTER TABLE note SET UNLOGGED;
SELECT projector_append('t', 'a', 'E', '{}');
SELECT projector_drain();
SELECT projection_name, status, attempt_count FROM projector.outbox ORDER BY 1;
SELECT projector_drop('handled'), projector_drop('folded');
ALTER TABLE note SET LOGGED;

--
-- deferrable constraints, declared so or deferred later
--
CREATE TABLE keyed (tenant_id text, id text, PRIMARY KEY (tenant_id, id) DEFERRABLE);
ALTER TABLE folded SET LOGGED;
CREATE TABLE referring (tenant_id text, id text, FOREIGN KEY (tenant_id, id) REFERENCES folded DEFERRABLE INITIALLY IMMEDIATE);
SELECT handler('keyed');
SELECT handler('referring');
CREATE FUNCTION defer(e projector.event) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    SET CONSTRAINTS ALL DEFERRED;
END $$;
SELECT projector_create('defer', handler => 'defer', mode => 'strict', event_types => '{Defer}');
SELECT try($$SELECT projector_append('t', 'defer', 'Defer', '{}')$$);
SELECT projector_drop('defer');

--
-- two projections, one target
--
DROP TABLE referring;
SELECT columns('folded', name => 'first');
SELECT columns('folded', name => 'second');
SELECT columns('folded', options => '{"shared_targets": true}', name => 'second');
SELECT handler('folded', '{"shared_targets": true}', 'second');
SELECT handler('note', name => 'third');
SELECT handler('note', name => 'fourth');
SELECT columns('note', name => 'fourth');
SELECT handler('note', '{"shared_targets": true}', 'fourth');
-- both must say so
SELECT try($$SELECT projector_alter('third', '{"options": {"shared_targets": true}}')$$);
SELECT handler('note', '{"shared_targets": true}', 'fourth');
-- it is the table that counts, not its name
SELECT handler('public.note', name => 'fifth');
SELECT try($$SELECT projector_alter('third', '{"targets": ["note", "folded"]}')$$);
SELECT try($$SELECT projector_alter('third', '{"options": {"batch_size": 5}}')$$);
SELECT projector_drop('first'), projector_drop('third'), projector_drop('fourth');

--
-- a statement that does not read the events
--
CREATE TABLE totals (tenant_id text, n bigint);
CREATE FUNCTION statement(s text) RETURNS text LANGUAGE sql AS
    $$SELECT try(format('SELECT projector_create(''p'', statement => %L, targets => ''{totals}'')', s)) FROM (SELECT try('SELECT projector_drop(''p'')')) x$$;
SELECT statement('DELETE FROM totals');
SELECT statement('INSERT INTO totals SELECT tenant_id, 1 FROM totals AS batch');
SELECT statement('INSERT INTO totals SELECT tenant_id, 1 FROM batch');
SELECT statement('INSERT INTO totals SELECT tenant_id, (SELECT count(*) FROM batch) FROM totals');
SELECT statement('WITH b AS (SELECT * FROM batch) INSERT INTO totals SELECT tenant_id, 1 FROM b');
SELECT statement('DELETE FROM totals t USING batch b WHERE b.tenant_id = t.tenant_id');
SELECT statement('DELETE FROM totals t WHERE EXISTS (SELECT FROM batch b WHERE b.tenant_id = t.tenant_id)');
SELECT projector_drop('p');

--
-- expressions depend on the row and the event, and on nothing else
--
CREATE FUNCTION stable_one(int) RETURNS int STABLE LANGUAGE sql AS 'SELECT $1';
CREATE FUNCTION volatile_one(int) RETURNS int LANGUAGE sql AS 'SELECT $1';
CREATE FUNCTION immutable_one(int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT $1';
CREATE OPERATOR @@@ (RIGHTARG = int, FUNCTION = stable_one);
CREATE TABLE fold (tenant_id text, id text, n int DEFAULT 0, t text, at timestamptz, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
SELECT x || ': ' || split_part(columns('fold', jsonb_build_object('t', x)), E'\n', 1) FROM unnest(ARRAY[
    'now()', 'current_timestamp', 'localtime', 'clock_timestamp()', 'transaction_timestamp()', 'timeofday()', 'random()', 'gen_random_uuid()',
    'current_user', 'session_user', 'current_catalog', 'current_schema', 'current_database()', 'version()', 'pg_backend_pid()', 'txid_current()', 'inet_client_addr()',
    'current_setting(''TimeZone'')', 'current_setting(''x.y'', true)', 'current_schemas(true)', 'has_table_privilege(''fold'', ''SELECT'')', 'pg_has_role(''x'', ''USAGE'')',
    'age(e.recorded_at)', '''now''::timestamptz', '''today''::date', '''tomorrow 10:00''::timestamp', '''now''::text::timestamptz', 'coalesce(s.at, ''Yesterday'')', 'nextval(''projector.events_log_seq_seq'')', 'stable_one(1)', 'volatile_one(1)', '@@@ 1', 'coalesce(s.t, (CASE WHEN s.n > 1 THEN now() END)::text)',
    -- these depend on settings, which are fixed
    'immutable_one(s.n)', '''today''', 'coalesce(e.payload->>''now'', ''now'')', '''2024-01-01''::date', 'e.recorded_at', 'to_char(e.recorded_at, ''TZ'')', 'date_trunc(''day'', e.recorded_at)', '(e.payload->>''at'')::timestamptz',
    'to_jsonb(e.recorded_at)', 'age(e.recorded_at, ''2024-01-01'')', 'format(''%s'', e.payload)', 'concat(s.n, e.payload)', 'to_tsvector(''x'')'
    ]) WITH ORDINALITY u (x, n) ORDER BY n;
-- a key too
CREATE TABLE by_key (tenant_id text, id text, n int, last_event_id uuid, last_event_version bigint, last_log_seq bigint, PRIMARY KEY (tenant_id, id));
SELECT try($$SELECT projector_create('x', key => 'current_user::text', fold_columns => '{"n": "1"}', targets => '{by_key}')$$);
SELECT try($$SELECT projector_create('x', key => 'stable_one(1)::text', fold_columns => '{"n": "1"}', targets => '{by_key}')$$);

--
-- defaults that a row starts from
--
CREATE TABLE defaults (tenant_id text DEFAULT random(), id text DEFAULT random(), n int DEFAULT 0, x text, last_event_id uuid DEFAULT gen_random_uuid(), last_event_version bigint,
    PRIMARY KEY (tenant_id, id));
CREATE SEQUENCE numbers;
CREATE FUNCTION with_default(d text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE 'ALTER TABLE defaults DROP x, ADD x ' || d;
    RETURN d || ': ' || split_part(columns('defaults'), E'\n', 1) || '; ignored: ' || columns('defaults', options => '{"digest_ignore": ["x"]}');
END $$;
SELECT with_default(d) FROM unnest(ARRAY['text DEFAULT ''x''', 'text', 'uuid DEFAULT gen_random_uuid()', 'timestamptz DEFAULT now()', 'text DEFAULT current_user',
    'int GENERATED ALWAYS AS IDENTITY', 'bigint DEFAULT nextval(''numbers'')', 'int DEFAULT stable_one(1)', 'int DEFAULT immutable_one(1)',
    'int GENERATED ALWAYS AS (n + 1) STORED']) WITH ORDINALITY u (d, n) ORDER BY n;
-- a column whose first value nobody reads may have any default
ALTER TABLE defaults DROP x, ADD x timestamptz DEFAULT now();
SELECT columns('defaults', '{"x": "e.recorded_at"}'), columns('defaults', '{"x": "coalesce(s.x, e.recorded_at)"}'), columns('defaults', '{"x": "e.recorded_at", "n": "length(s::text)"}');
-- a fold's function starts from null: defaults do not matter
CREATE FUNCTION make(s defaults, e projector.event) RETURNS defaults IMMUTABLE LANGUAGE sql AS 'SELECT s';
ALTER TABLE defaults DROP x, ADD x timestamptz DEFAULT now();
SELECT try($$SELECT projector_create('made', fold => 'make', targets => '{defaults}')$$);
-- a domain's default counts as the column's
CREATE DOMAIN stamped AS timestamptz DEFAULT now();
CREATE TABLE domains (tenant_id text, id text, n int DEFAULT 0, at stamped, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
SELECT columns('domains');

SET client_min_messages = warning;
DROP EXTENSION projector CASCADE;
DROP TABLE note, unlogged, temporary, folded, keyed, totals, fold, by_key, defaults, domains CASCADE;
DROP DOMAIN stamped;
DROP SEQUENCE numbers;
DROP OPERATOR @@@ (NONE, int);
DROP FUNCTION try, handler, columns, statement, with_default, stable_one, volatile_one, immutable_one;
