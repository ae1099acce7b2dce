-- Code of users' types and tables (casts, output functions, operators) runs as the projection's owner only, for every reader of the rows.
\set VERBOSITY terse
CREATE EXTENSION projector;
CREATE ROLE regress_maker;
CREATE SCHEMA maker AUTHORIZATION regress_maker;
GRANT USAGE ON SCHEMA projector TO regress_maker;
GRANT EXECUTE ON FUNCTION projector_create, projector_alter, projector_append, projector_drain, projector_verify, projector_explain, projector_preview, projector_rebuild, projector_start_run, projector_digest TO regress_maker;
CREATE TABLE secret (n int);

SET SESSION AUTHORIZATION regress_maker;
SET search_path = maker, public;
-- reports if it runs as another role, or has another role's privileges
CREATE FUNCTION maker.spy(what text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF current_user <> 'regress_maker' THEN
        RAISE WARNING '% runs as %', what, current_user;
    END IF;
    BEGIN
        INSERT INTO public.secret VALUES (1);
        RAISE WARNING '% may write what its owner may not', what;
    EXCEPTION WHEN insufficient_privilege THEN NULL;
    END;
END $$;
CREATE TYPE maker.mood AS ENUM ('sad', 'ok', 'happy');
CREATE FUNCTION maker.mood_json(m maker.mood) RETURNS json LANGUAGE plpgsql IMMUTABLE AS $$BEGIN PERFORM maker.spy('cast to json'); RETURN to_json('is ' || concat(m)); END$$;
CREATE CAST (maker.mood AS json) WITH FUNCTION maker.mood_json(maker.mood);
CREATE FUNCTION maker.mood_text(m maker.mood) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$BEGIN PERFORM maker.spy('cast to text'); RETURN 'as text'; END$$;
CREATE CAST (maker.mood AS text) WITH FUNCTION maker.mood_text(maker.mood) AS ASSIGNMENT;
CREATE FUNCTION maker.checked(m maker.mood) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$BEGIN PERFORM maker.spy('check constraint'); RETURN true; END$$;
CREATE FUNCTION maker.derived(m maker.mood) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$BEGIN PERFORM maker.spy('generated column or index'); RETURN 1; END$$;
CREATE DOMAIN maker.some_mood AS maker.mood CHECK (maker.checked(VALUE));
CREATE FUNCTION maker.note() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN PERFORM maker.spy('trigger'); RETURN NULL; END$$;
CREATE TABLE maker.feelings (tenant_id text, id text, note text DEFAULT 'x', mood maker.some_mood DEFAULT 'sad', moods maker.mood[],
    derived int GENERATED ALWAYS AS (maker.derived(mood)) STORED, last_event_id uuid, last_event_version bigint, CHECK (maker.checked(mood)), PRIMARY KEY (tenant_id, id));
CREATE INDEX ON maker.feelings (maker.derived(mood));
CREATE TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON maker.feelings FOR EACH ROW EXECUTE FUNCTION maker.note();
ALTER TABLE maker.feelings ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE FUNCTION maker.policy() RETURNS boolean LANGUAGE plpgsql STABLE AS $$BEGIN PERFORM maker.spy('policy'); RETURN true; END$$;
CREATE POLICY everything ON maker.feelings USING (maker.policy());
CREATE TABLE maker.notes (LIKE maker.feelings INCLUDING ALL);
CREATE FUNCTION maker.handle(e projector.event) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO maker.notes (tenant_id, id, mood, moods) VALUES (e.tenant_id, e.aggregate_id, (e.payload->>'mood')::maker.mood, ARRAY[(e.payload->>'mood')::maker.mood])
    ON CONFLICT (tenant_id, id) DO UPDATE SET mood = excluded.mood, moods = notes.moods || excluded.moods;
END $$;
SELECT projector_create('feelings', targets => '{feelings}', fold_columns => '{"mood": "(e.payload->>''mood'')::maker.mood", "moods": "s.moods || (e.payload->>''mood'')::maker.mood"}');
SELECT projector_create('notes', handler => 'handle', targets => '{notes}');
SELECT count(projector_append('acme', a, 'Felt', jsonb_build_object('mood', m))) FROM (VALUES ('a', 'ok'), ('a', 'happy'), ('b', 'sad'), ('c', 'ok')) v (a, m);
RESET SESSION AUTHORIZATION;
SELECT projector_drain();
SET SESSION AUTHORIZATION regress_maker;
UPDATE maker.feelings SET mood = 'happy' WHERE id = 'b';
UPDATE maker.notes SET mood = 'happy' WHERE id = 'b';
RESET SESSION AUTHORIZATION;
-- the operator is a superuser, the code is not
SELECT matches, differing_rows, sample->0->>'key' AS key, sample->0->'live'->'mood' AS live, sample->0->'rebuilt'->'mood' AS rebuilt FROM projector_verify('feelings');
SELECT matches, differing_rows, sample->0->>'key' AS key, sample->0->'live'->'mood' AS live, sample->0->'rebuilt'->'mood' AS rebuilt FROM projector_verify('notes');
SELECT sequence_number, state->'mood' AS mood, state->'moods' AS moods FROM projector_explain('feelings', 'acme', 'a');
SELECT key, live->'mood' AS live, rebuilt->'mood' AS rebuilt FROM projector_preview('feelings', '{"fold_columns": {"mood": "''sad''"}}', 'acme');
SELECT length(projector_digest('feelings', 'acme')), length(projector_digest('notes', 'acme'));
SELECT projector_rebuild('feelings', 'acme', 'b'), projector_rebuild('notes', 'acme');
SELECT matches FROM projector_verify('feelings') UNION ALL SELECT matches FROM projector_verify('notes');
-- no call has written to this table (rolled back calls do not show here)
SELECT count(*) FROM secret;

DROP EXTENSION projector CASCADE;
DROP OWNED BY regress_maker CASCADE;
DROP TABLE secret;
DROP ROLE regress_maker;
