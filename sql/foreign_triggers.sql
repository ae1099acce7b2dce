-- Trigger functions of the extension refuse every table but their own, and
-- every other kind of call.
SET client_min_messages = warning;
CREATE EXTENSION projector;
CREATE TABLE other (a int, b text);
CREATE FUNCTION try_trigger(definition text, query text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE 'CREATE TRIGGER t ' || definition;
    EXECUTE query;
    RAISE 'accepted' USING ERRCODE = 'UE001';
EXCEPTION
    WHEN OTHERS THEN
        RETURN SQLSTATE || ': ' || SQLERRM;
END $$;
INSERT INTO other VALUES (0, 'zero');

SELECT f AS function, d AS fires, try_trigger(d || ' EXECUTE FUNCTION projector.' || f || '()', q) AS result
FROM unnest('{events_before_insert,events_capture,events_append_only,projections_changed,runs_check_state}'::text[]) f,
     (VALUES ('BEFORE INSERT ON other FOR EACH ROW', 'INSERT INTO other VALUES (1)'),
             ('BEFORE UPDATE ON other FOR EACH ROW', 'UPDATE other SET a = 2'),
             ('AFTER INSERT ON other FOR EACH ROW', 'INSERT INTO other VALUES (1)'),
             ('AFTER INSERT ON other REFERENCING NEW TABLE AS n FOR EACH STATEMENT', 'INSERT INTO other VALUES (1)'),
             ('BEFORE TRUNCATE ON other', 'TRUNCATE other')) w (d, q)
ORDER BY f, d;

-- on the right table, at the wrong time
SELECT d AS trigger, try_trigger(d, $$INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
    VALUES ('a', 'b', 1, 'c', '{}')$$) AS result
FROM unnest(ARRAY[
    'BEFORE INSERT ON projector.events FOR EACH STATEMENT EXECUTE FUNCTION projector.events_before_insert()',
    'AFTER INSERT ON projector.events FOR EACH ROW EXECUTE FUNCTION projector.events_before_insert()',
    'AFTER INSERT ON projector.events FOR EACH ROW EXECUTE FUNCTION projector.events_capture()',
    'BEFORE INSERT ON projector.events FOR EACH ROW EXECUTE FUNCTION projector.events_capture()']) d;

-- our own ones work
SELECT projector_append('acme', 'a', 'E', '{}');
DROP TABLE other;
DROP FUNCTION try_trigger;
DROP EXTENSION projector;
