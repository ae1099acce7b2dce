-- Errors, hints and notices of the functions that change the registry.
\pset format unaligned
\pset tuples_only on
\set SHOW_CONTEXT never
\i sql/include/try.sql
CREATE EXTENSION projector;
CREATE TABLE cnt (tenant_id text, id text, n bigint NOT NULL DEFAULT 0, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
CREATE TABLE seen (tenant_id text, id bigint);
CREATE TABLE logged (LIKE seen);

-- a name in a hint is quoted
INSERT INTO cnt VALUES ('acme', 'old');
SELECT projector_create('O''Brien', fold_columns => '{"n": "s.n + 1"}', targets => '{cnt}');
SELECT projector_append('acme', 'a', 'E', '{}');
SELECT projector_pause('O''Brien', 'acme');
SELECT projector_resume('O''Brien');
SELECT projector_pause('O''Brien');
SELECT projector_resume('O''Brien', 'acme');
SELECT try('DROP TABLE cnt');
SELECT projector_resume('O''Brien');

-- an expression that is wrong is named
SELECT try($$SELECT projector_alter('O''Brien', '{"fold_columns": {"n": ""}}')$$);
SELECT try($$SELECT projector_alter('O''Brien', '{"fold_columns": {"n": "s.n +"}}')$$);

-- or_replace leaves the mode alone
SELECT projector_create('O''Brien', fold_columns => '{"n": "s.n + 1"}', targets => '{cnt}', mode => 'inline', or_replace => true);
SELECT projector_create('O''Brien', fold_columns => '{"n": "s.n + 1"}', targets => '{cnt}', mode => 'async', or_replace => true);

-- or_replace if the owner is gone
CREATE ROLE regress_gone;
SELECT projector_grant('regress_gone', 'modeller');
ALTER TABLE seen OWNER TO regress_gone;
SET ROLE regress_gone;
SELECT projector_create('seen', statement => 'INSERT INTO seen SELECT tenant_id, log_seq FROM batch', targets => '{seen}');
RESET ROLE;
REASSIGN OWNED BY regress_gone TO CURRENT_USER;
DROP OWNED BY regress_gone;
DROP ROLE regress_gone;
SELECT try($$SELECT projector_create('seen', statement => 'INSERT INTO seen SELECT tenant_id, log_seq FROM batch', targets => '{seen}', or_replace => true)$$);
SELECT projector_drop('seen');

-- a timeout beyond the last possible time
SELECT try($$SELECT projector_wait('O''Brien', 'acme', 'a', 1, '178000000 years')$$);
SELECT try($$SELECT projector_wait_log('O''Brien', 'acme', 1, '2000000000 days')$$);

SELECT try($$SELECT projector_catch_up('O''Brien', 'acme', -1)$$);

-- options that would have no effect, or not the one that was meant
CREATE FUNCTION note(e projector.event) RETURNS void LANGUAGE sql AS '';
CREATE FUNCTION with_options(options jsonb, kind text DEFAULT 'fold') RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RETURN try(format(CASE kind
        WHEN 'fold' THEN $f$SELECT projector_create('O''Brien', fold_columns => '{"n": "s.n + 1"}', targets => '{cnt}', options => %L, or_replace => true)$f$
        WHEN 'statement' THEN $f$SELECT projector_create('seen', statement => 'INSERT INTO seen SELECT tenant_id, log_seq FROM batch', targets => '{seen}', options => %L, or_replace => true)$f$
        ELSE $f$SELECT projector_create('handler', handler => 'note', targets => '{logged}', options => %L, or_replace => true)$f$ END, options));
END $$;
SELECT with_options('{"shared_targets": true}');
SELECT with_options('{"may_append": true}');
SELECT with_options('{"checkpoint": "check"}');
SELECT with_options('{"may_append": true}', 'statement');
SELECT with_options('{"checkpoint": "check"}', 'statement');
SELECT with_options('{"retry_base": "10 min", "retry_max": "5 min"}');
SELECT with_options('{"digest_ignore": ["m"]}');
SELECT with_options('{"digest_ignore": ["n", "tenant_id"]}');
SELECT with_options('{"writes": ["projector.events"]}', 'handler');
SELECT with_options('{"writes": ["pg_class"]}', 'handler');
SELECT with_options('{"writes": ["seen", "public.seen"]}', 'handler');
SELECT name, options FROM projector.projections ORDER BY 1;
SELECT with_options('{"may_append": true, "writes": ["seen"]}', 'handler');
-- null is the default
SELECT with_options('{"batch_size": null, "digest_ignore": ["n"], "may_append": false}');
SELECT name, options FROM projector.projections ORDER BY 1;
SELECT projector_drop('handler');
-- only true means that the rows are those of another projection
INSERT INTO seen VALUES ('acme', 1);
SELECT projector_create('seen', statement => 'INSERT INTO seen SELECT tenant_id, log_seq FROM batch', targets => '{seen}', options => '{"shared_targets": false}');

-- event types are a set
SELECT projector_alter('seen', '{"event_types": ["B", "A"]}');
SELECT projector_create('seen', statement => 'INSERT INTO seen SELECT tenant_id, log_seq FROM batch', targets => '{seen}', options => '{"shared_targets": false}', event_types => '{A,B}', or_replace => true);
SELECT try($$SELECT projector_alter('seen', '{"event_types": ["A", "A"]}')$$);
SELECT try($$SELECT projector_create('seen', statement => 'INSERT INTO seen SELECT tenant_id, log_seq FROM batch', targets => '{seen}', event_types => '{{A},{B}}', or_replace => true)$$);
SELECT redefinitions, event_types FROM projector.projections WHERE name = 'seen';
SELECT projector_alter('seen', '{"event_types": ["A", "B"]}');
SELECT redefinitions, event_types FROM projector.projections WHERE name = 'seen';

\pset format aligned
\pset tuples_only off
SET client_min_messages = warning;
DROP EXTENSION projector CASCADE;
DROP TABLE cnt, seen, logged;
DROP FUNCTION with_options, try(text);
RESET client_min_messages;
