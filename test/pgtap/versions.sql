-- What depends on the version of PostgreSQL: features of newer servers must not
-- break a guarantee. A test of a feature that this server lacks is skipped.
CREATE EXTENSION projector;
SELECT plan(47);

SELECT current_setting('server_version_num')::int >= 150000 AS has_15,
    current_setting('server_version_num')::int >= 160000 AS has_16,
    current_setting('server_version_num')::int >= 170000 AS has_17,
    current_setting('server_version_num')::int >= 180000 AS has_18 \gset

CREATE FUNCTION result_of(command text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE command;
    RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
    RETURN sqlstate;
END $$;

-- the read model equals the one that is computed from the log
CREATE FUNCTION proven(name text) RETURNS boolean LANGUAGE sql AS $$
    SELECT bool_and(matches) FROM projector_verify(name)
$$;

-- ---- settings ----

\if :has_15
SELECT throws_ok('SET projector.typo = 1', '42602', NULL, 'the prefix of the settings is reserved');
\else
SELECT lives_ok('SET projector.typo = 1', 'before 15 the prefix of the settings is not reserved');
\endif

CREATE TABLE done (tenant_id text, id text, n bigint, PRIMARY KEY (tenant_id, id));
CREATE FUNCTION act(e projector.event) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE e.payload ->> 'do';
END $$;
SELECT projector_create('act', handler => 'act', targets => '{done}', mode => 'inline',
    event_types => '{Do}', options => '{"max_attempts": 1}');
SELECT projector_drain();

-- what became of a command of a handler
CREATE FUNCTION act(command text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    seq bigint := projector_append('t', md5(command), 'Do', jsonb_build_object('do', command));
BEGIN
    RETURN coalesce((SELECT f.error_code || ': ' || f.error_message FROM projector.failures f
        WHERE f.aggregate_id = md5(command) AND f.resolved_at IS NULL), 'applied');
END $$;

\if :has_17
SELECT is(act('SET LOCAL transaction_timeout = 1'),
    '22023: a projection''s code cannot set "transaction_timeout"', 'a handler cannot end the session by a timeout');
SELECT is(act('SELECT set_config(''transaction_timeout'', ''0'', true)'),
    '22023: a projection''s code cannot set "transaction_timeout"', 'nor lift that of the session');
SELECT throws_ok($$SELECT projector_alter('act', '{"settings": {"transaction_timeout": "1"}}')$$, '22023', NULL,
    'nor can its settings');
SELECT lives_ok('SET transaction_timeout = 0', 'the session itself can');
\else
SELECT skip('transaction_timeout needs 17', 4);
\endif

-- ---- MERGE ----

\if :has_15
SELECT is(act($$MERGE INTO done d USING (VALUES ('t', 'm')) v (t, i) ON d.tenant_id = v.t AND d.id = v.i
    WHEN MATCHED THEN UPDATE SET n = d.n + 1 WHEN NOT MATCHED THEN INSERT VALUES (v.t, v.i, 1)$$),
    'applied', 'a handler can use MERGE');
SELECT is((SELECT n FROM done WHERE id = 'm'), 1::bigint, 'and its row is there');
SELECT matches(act($$MERGE INTO done d USING (VALUES ('u')) v (t) ON false
    WHEN NOT MATCHED THEN INSERT VALUES (v.t, 'm', 1)$$), '^PJ004: ', 'but not insert a row of another tenant');
INSERT INTO done VALUES ('u', 'other', 1);
SELECT matches(act($$MERGE INTO done d USING (VALUES ('u')) v (t) ON d.tenant_id = v.t
    WHEN MATCHED THEN UPDATE SET n = 2$$), '^PJ004: ', 'nor update one');
SELECT matches(act($$MERGE INTO done d USING (VALUES ('u')) v (t) ON d.tenant_id = v.t
    WHEN MATCHED THEN DELETE$$), '^PJ004: ', 'nor delete one');
CREATE TABLE undeclared (tenant_id text, id text);
SELECT matches(act($$MERGE INTO undeclared d USING (VALUES ('t')) v (t) ON false
    WHEN NOT MATCHED THEN INSERT VALUES (v.t, 'm')$$), '^PJ009: ', 'nor write a table that was not declared');
CREATE TABLE merges (LIKE done INCLUDING ALL);
SELECT lives_ok($$SELECT projector_create('merged', statement => $s$
    MERGE INTO merges d USING (SELECT tenant_id, 'all' AS id, count(*) AS n FROM batch GROUP BY tenant_id) b
    ON d.tenant_id = b.tenant_id AND d.id = b.id
    WHEN MATCHED THEN UPDATE SET n = d.n + b.n WHEN NOT MATCHED THEN INSERT VALUES (b.tenant_id, b.id, b.n) $s$,
    targets => '{merges}')$$, 'a statement can be a MERGE');
SELECT projector_drop('merged');

SELECT lives_ok($$MERGE INTO projector.events e USING (VALUES (1), (2)) v (n)
    ON e.tenant_id = 'm' AND e.aggregate_id = 'm-1' AND e.sequence_number = v.n
    WHEN NOT MATCHED THEN INSERT (tenant_id, aggregate_id, sequence_number, event_type, payload)
        VALUES ('m', 'm-1', v.n, 'A', '{}')$$, 'MERGE appends like INSERT');
SELECT throws_ok($$MERGE INTO projector.events e USING (VALUES (4)) v (n)
    ON e.tenant_id = 'm' AND e.aggregate_id = 'm-1' AND e.sequence_number = v.n
    WHEN NOT MATCHED THEN INSERT (tenant_id, aggregate_id, sequence_number, event_type, payload)
        VALUES ('m', 'm-1', v.n, 'A', '{}')$$, 'PJ002',
    'event 4 of aggregate "m-1" of tenant "m" is out of sequence', 'in sequence');
SELECT throws_ok($$MERGE INTO projector.events e USING (VALUES (1)) v (n) ON e.aggregate_id = 'm-1'
    WHEN MATCHED THEN DELETE$$, '0A000', 'events are append-only', 'and cannot delete events');
SELECT is((SELECT count(*) FROM projector.events WHERE tenant_id = 'm'), 2::bigint, 'those two are in the log');
\else
SELECT skip('MERGE needs 15', 11);
\endif

\if :has_17
SELECT is(act($$WITH m AS (MERGE INTO done d USING (VALUES ('t', 'w')) v (t, i) ON d.tenant_id = v.t AND d.id = v.i
    WHEN NOT MATCHED THEN INSERT VALUES (v.t, v.i, 1) RETURNING merge_action(), d.id) SELECT count(*) FROM m$$),
    'applied', 'MERGE in WITH, with RETURNING');
SELECT is((SELECT n FROM done WHERE id = 'w'), 1::bigint, 'and its row is there');
SELECT matches(act($$WITH m AS (MERGE INTO done d USING (VALUES ('u')) v (t) ON d.tenant_id = v.t
    WHEN MATCHED THEN DELETE RETURNING d.id) SELECT count(*) FROM m$$), '^PJ004: ', 'is restricted to the tenant');
SELECT matches(act($$MERGE INTO done d USING (VALUES ('x')) v (i) ON d.id = v.i
    WHEN NOT MATCHED BY SOURCE THEN DELETE$$), '^PJ004: ', 'WHEN NOT MATCHED BY SOURCE, too');
SELECT matches(act($$WITH m AS (MERGE INTO undeclared d USING (VALUES ('t')) v (t) ON false
    WHEN NOT MATCHED THEN INSERT VALUES (v.t, 'm') RETURNING d.id) SELECT count(*) FROM m$$), '^PJ009: ',
    'and to the declared tables');
CREATE VIEW done_view AS SELECT * FROM done;
SELECT matches(act($$MERGE INTO done_view d USING (VALUES ('u')) v (t) ON d.tenant_id = v.t
    WHEN MATCHED THEN UPDATE SET n = 2$$), '^PJ004: ', 'MERGE into a view writes its table');
SELECT lives_ok($$SELECT projector_create('merged', statement => $s$
    WITH m AS (MERGE INTO merges d USING (SELECT tenant_id, 'all' AS id, count(*) AS n FROM batch GROUP BY tenant_id) b
    ON d.tenant_id = b.tenant_id AND d.id = b.id
    WHEN NOT MATCHED THEN INSERT VALUES (b.tenant_id, b.id, b.n) RETURNING d.n) SELECT sum(n) FROM m $s$,
    targets => '{merges}')$$, 'a statement can have a MERGE in its WITH clause');
SELECT projector_drop('merged');
\else
SELECT skip('MERGE with RETURNING needs 17', 7);
\endif
SELECT is((SELECT n FROM done WHERE tenant_id = 'u'), CASE WHEN :'has_15' THEN 1::bigint END, 'the other tenant''s row is as it was');

-- ---- RETURNING OLD and NEW ----

\if :has_18
SELECT is(act($$WITH d AS (UPDATE done SET n = 7 WHERE tenant_id = 't' AND id = 'm' RETURNING old.n AS was, new.n)
    INSERT INTO done SELECT 't', 'returned', was * 10 + n FROM d$$), 'applied', 'RETURNING old and new');
SELECT is((SELECT n FROM done WHERE id = 'returned'), 17::bigint, 'have the values before and after');
SELECT matches(act($$UPDATE done SET n = 7 WHERE tenant_id = 'u' RETURNING old.n, new.n$$), '^PJ004: ',
    'and the tenant is checked');
\else
SELECT skip('RETURNING OLD and NEW need 18', 3);
\endif

-- ---- virtual generated columns ----

\if :has_18
CREATE TABLE stock (tenant_id text, id text, n bigint NOT NULL DEFAULT 0, seen text,
    twice bigint GENERATED ALWAYS AS (n * 2) VIRTUAL CHECK (twice < 1000),
    label text GENERATED ALWAYS AS (id || ':' || n) VIRTUAL,
    last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
CREATE FUNCTION stock_fold(s stock, e projector.event) RETURNS stock LANGUAGE plpgsql AS $$
BEGIN
    IF s IS NULL OR s.tenant_id IS NULL THEN
        s.tenant_id := e.tenant_id;
        s.id := e.aggregate_id;
        s.n := 0;
    END IF;
    s.seen := concat_ws(',', s.seen, s.twice, s.label);
    s.n := s.n + e.payload::bigint;
    RETURN s;
END $$;
CREATE TABLE counted (LIKE stock INCLUDING ALL);
SELECT projector_create('stock', fold => 'stock_fold', targets => '{stock}', event_types => '{Added}');
SELECT projector_create('counted', targets => '{counted}', event_types => '{Added}',
    fold_columns => '{"n": "s.n + e.payload::bigint", "seen": "concat_ws('','', s.seen, s.twice, s.label)"}');
SELECT projector_append('t', 'v', 'Added', '1');
SELECT projector_append('t', 'v', 'Added', '2');
SELECT is(projector_drain(), 4::bigint, 'events are folded into tables with virtual columns');
SELECT projector_append('t', 'v', 'Added', '4');
SELECT projector_append('t', 'w', 'Added', '5');
SELECT is(projector_drain(), 4::bigint, 'and again, into rows that are read');
SELECT results_eq('SELECT id, n, twice, label, seen FROM stock ORDER BY id',
    $$VALUES ('v', 7::bigint, 14::bigint, 'v:7', ',2,v:1,6,v:3'), ('w', 5, 10, 'w:5', '')$$,
    'a fold function sees the values of virtual columns');
SELECT results_eq('SELECT id, n, twice, label, seen FROM counted ORDER BY id',
    $$VALUES ('v', 7::bigint, 14::bigint, 'v:7', ',2,v:1,6,v:3'), ('w', 5, 10, 'w:5', '')$$,
    'and so do expressions');
SELECT ok(proven('stock') AND proven('counted'), 'a dry run gives the same rows');
SELECT ok(bool_and(projector_digest(name, 't') = d.digest), 'the digest that batches keep is that of the rows')
    FROM projector.projection_digests d JOIN projector.projections p USING (projection_id)
    WHERE p.kind LIKE 'fold%';
SELECT is((SELECT count(*) FROM projector.projection_digests d JOIN projector.projections p USING (projection_id)
    WHERE p.kind LIKE 'fold%'), 2::bigint, 'of both');
SELECT is(projector_rebuild('stock', 't'), 4::bigint, 'a rebuild');
SELECT ok(proven('stock'), 'gives the same');
SELECT projector_append('t', 'v', 'Added', '900');
SELECT projector_drain();
SELECT is((SELECT min(error_code) || max(error_code) FROM projector.failures WHERE event_type = 'Added'), '2351423514',
    'a constraint on a virtual column is checked');
SELECT throws_ok($$SELECT projector_alter('counted', '{"fold_columns": {"twice": "1"}}')$$, '22023', NULL,
    'an expression for a virtual column is refused');
CREATE TABLE guessed (id text PRIMARY KEY, tenant_id text GENERATED ALWAYS AS (split_part(id, '/', 1)) VIRTUAL);
SELECT throws_ok($$SELECT projector_create('guessed', handler => 'act', targets => '{guessed}')$$, '42P16',
    'column "tenant_id" of target table "guessed" is a virtual generated column', 'tenant_id must be stored');
CREATE TABLE stamped (tenant_id text, id text, last_event_id uuid,
    last_event_version bigint GENERATED ALWAYS AS (7) VIRTUAL, PRIMARY KEY (tenant_id, id));
SELECT throws_ok($$SELECT projector_create('stamped', fold_columns => '{}', targets => '{stamped}')$$, '42P16', NULL,
    'and so must the stamps');
\else
SELECT skip('virtual generated columns need 18', 13);
\endif

-- ---- temporal keys ----

\if :has_18
CREATE TABLE during (tenant_id int4range, at int4range, last_event_id uuid, last_event_version bigint,
    PRIMARY KEY (tenant_id, at WITHOUT OVERLAPS));
SELECT throws_ok($$SELECT projector_create('during', fold_columns => '{}', targets => '{during}')$$, '42P16', NULL,
    'a fold''s key cannot be WITHOUT OVERLAPS');
\else
SELECT skip('WITHOUT OVERLAPS needs 18', 1);
\endif

-- ---- constraints that are not enforced, or not valid ----

\if :has_18
CREATE TABLE lax (tenant_id text, id text, n bigint DEFAULT 0, m bigint,
    last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id),
    CHECK (n < 3) NOT ENFORCED, CONSTRAINT m_given NOT NULL m);
ALTER TABLE lax DROP CONSTRAINT m_given, ADD CONSTRAINT m_given NOT NULL m NOT VALID;
SELECT throws_ok($$SELECT projector_create('lax', fold_columns => '{"n": "s.n + 1"}', targets => '{lax}')$$, '23502', NULL,
    'NOT NULL NOT VALID holds for new rows');
SELECT projector_create('lax', targets => '{lax}', event_types => '{Added}',
    fold_columns => '{"n": "s.n + e.payload::bigint", "m": "1"}');
SELECT projector_drain();
SELECT is((SELECT max(n) FROM lax), 907::bigint, 'a constraint that is not enforced is not checked');
SELECT ok(proven('lax'), 'and a dry run gives the same');
\else
SELECT skip('NOT ENFORCED and NOT VALID need 18', 3);
\endif

-- ---- roles ----

\if :has_16
CREATE ROLE pgtap_modeller;
CREATE ROLE pgtap_other;
SELECT projector_grant('pgtap_modeller', 'modeller');
SELECT projector_grant('pgtap_other', 'modeller');
GRANT pgtap_other TO pgtap_modeller WITH INHERIT TRUE, SET FALSE;
CREATE TABLE owned (tenant_id text);
ALTER TABLE owned OWNER TO pgtap_other;
ALTER FUNCTION act(projector.event) OWNER TO pgtap_modeller;
SET ROLE pgtap_modeller;
CREATE TEMPORARY TABLE IF NOT EXISTS nothing ();
SELECT is(result_of($$SELECT projector_create('owned', handler => 'act', targets => '{owned}')$$),
    'no error', 'who inherits the privileges of a role can write its tables');
SELECT throws_ok($$SELECT projector_alter('owned', '{"owner": "pgtap_other"}')$$, '42501', NULL,
    'but cannot have code run as a role that it cannot become');
RESET ROLE;
GRANT pgtap_other TO pgtap_modeller WITH SET TRUE;
SET ROLE pgtap_modeller;
SELECT is(result_of($$SELECT projector_alter('owned', '{"owner": "pgtap_other"}')$$), 'no error', 'only with SET');
RESET ROLE;
SELECT projector_drop('owned');
DROP TABLE owned;
\else
SELECT skip('membership WITH SET FALSE needs 16', 3);
\endif

SELECT * FROM finish();
\if :has_16
DROP OWNED BY pgtap_modeller, pgtap_other;
DROP ROLE pgtap_modeller, pgtap_other;
\endif
