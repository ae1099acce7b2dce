-- Names in options "writes" and "clear" are resolved when the option is set, not
-- with the search_path that the code runs with.
\pset format unaligned
\pset tuples_only on
\set SHOW_CONTEXT never
CREATE EXTENSION projector;
CREATE SCHEMA "Back office";
CREATE SCHEMA hidden;
\set try_shows 'bare detail hint'
\i sql/include/try.sql
CREATE TABLE model (tenant_id text, id text, PRIMARY KEY (tenant_id, id));
CREATE TABLE trail (tenant_id text, id text);
CREATE TABLE "Back office".trail (tenant_id text, id text);
CREATE FUNCTION obey(e projector.event) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE e.payload->>'do';
END $$;
CREATE FUNCTION attempt(command text) RETURNS text LANGUAGE sql AS $$
    SELECT public.try(format('SELECT public.projector_append(''acme'', gen_random_uuid()::text, ''E'', jsonb_build_object(''do'', %L::text))', command))
$$;

--
-- "writes"
--
SELECT projector_create('obey', handler => 'obey', targets => '{model}', mode => 'strict', options => '{"writes": ["trail"], "batch_size": 7}');
SELECT options FROM projector.projections;
SELECT attempt('INSERT INTO public.trail VALUES (''acme'', ''a'')');
SELECT attempt('INSERT INTO "Back office".trail VALUES (''acme'', ''a'')');
-- declared with a search_path that finds another table of that name
SET search_path = "Back office", public;
SELECT projector_alter('obey', '{"options": {"writes": ["trail"]}}');
RESET search_path;
SELECT options FROM projector.projections;
SELECT attempt('INSERT INTO public.trail VALUES (''acme'', ''b'')');
SELECT attempt('INSERT INTO "Back office".trail VALUES (''acme'', ''b'')');
-- a change of something else does not change that
SELECT projector_alter('obey', '{"options": {"batch_size": 8}}');
SELECT options FROM projector.projections;
SELECT attempt('INSERT INTO "Back office".trail VALUES (''acme'', ''c'')');
SELECT try($$SELECT projector_alter('obey', '{"options": {"writes": ["Trail"]}}')$$);
SELECT try($$SELECT projector_alter('obey', '{"options": {"writes": ["nothing", "trail"]}}')$$);
SELECT try($$SELECT projector_alter('obey', '{"options": {"writes": ["a..b"]}}')$$);
SELECT try($$SELECT projector_alter('obey', '{"options": {"writes": ["model"]}}')$$);
SELECT projector_alter('obey', '{"options": {"writes": []}}');
SELECT attempt('INSERT INTO "Back office".trail VALUES (''acme'', ''d'')');
-- a foreign key of another table of that name is still refused
DELETE FROM trail;
ALTER TABLE trail ADD FOREIGN KEY (tenant_id, id) REFERENCES model ON DELETE CASCADE;
SELECT try($$SELECT projector_alter('obey', '{"options": {"writes": ["\"Back office\".trail"]}}')$$);
SET search_path = "Back office", public;
SELECT try($$SELECT projector_alter('obey', '{"options": {"writes": ["trail"]}}')$$);
SELECT try($$SELECT projector_alter('obey', '{"options": {"writes": ["public.trail"]}}')$$);
RESET search_path;
ALTER TABLE trail DROP CONSTRAINT trail_tenant_id_id_fkey;
SELECT projector_alter('obey', '{"options": {"writes": ["trail", "\"Back office\".trail"]}}');

--
-- "clear"
--
SELECT try($$SELECT projector_alter('obey', '{"options": {"clear": "wipe"}}')$$);
SELECT try($$SELECT projector_create('more', handler => 'obey', options => '{"clear": "wipe"}')$$);
CREATE FUNCTION "Back office".wipe(tenant_id text) RETURNS void LANGUAGE sql AS 'DELETE FROM public.model m WHERE m.tenant_id = $1';
CREATE FUNCTION hidden.wipe(tenant_id text, aggregate_id text) RETURNS void LANGUAGE sql AS '';
CREATE FUNCTION wipe(tenant_id int) RETURNS void LANGUAGE sql AS '';
CREATE FUNCTION wiped(tenant_id text) RETURNS int LANGUAGE sql AS 'SELECT 1';
SELECT try($$SELECT projector_alter('obey', '{"options": {"clear": "wipe"}}')$$);
SELECT try($$SELECT projector_alter('obey', '{"options": {"clear": "wiped"}}')$$);
SELECT try($$SELECT projector_alter('obey', '{"options": {"clear": "a..b"}}')$$);
SELECT try($$SELECT projector_alter('obey', '{"options": {"clear": "hidden.wipe"}}')$$);
SET search_path = "Back office", hidden, public;
SELECT projector_alter('obey', '{"options": {"clear": "wipe"}}');
RESET search_path;
SELECT options FROM projector.projections;
INSERT INTO model VALUES ('acme', 'left over');
SELECT projector_rebuild('obey', 'acme');
SELECT count(*) FROM model;
-- with the owner's privileges
CREATE ROLE regress_clearer;
GRANT USAGE, CREATE ON SCHEMA public TO regress_clearer;
SET ROLE regress_clearer;
CREATE FUNCTION own_wipe(tenant_id text) RETURNS void LANGUAGE sql AS '';
RESET ROLE;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO regress_clearer;
REVOKE EXECUTE ON FUNCTION own_wipe FROM PUBLIC, regress_clearer;
SET ROLE regress_clearer;
SELECT try($$SELECT projector_create('own', handler => 'obey', options => '{"clear": "own_wipe"}')$$);
RESET ROLE;
-- dropped later: an error when it is needed
DROP FUNCTION "Back office".wipe;
SELECT try($$SELECT projector_rebuild('obey', 'acme')$$);
SELECT projector_alter('obey', '{"options": {"clear": null}}');

-- an unreadable value, written by hand
UPDATE projector.projections SET options = '{"writes": ["a..b"]}';
SELECT attempt('INSERT INTO public.model VALUES (''acme'', ''e'')');
SELECT DISTINCT why FROM projector.status_by_tenant;
UPDATE projector.projections SET options = '{"clear": "a.b.c.d"}';
SELECT DISTINCT why FROM projector.status_by_tenant;
SELECT projector_alter('obey', '{"options": {"clear": null}}');
SELECT projector_drain();

\pset format aligned
\pset tuples_only off
SET client_min_messages = warning;
DROP EXTENSION projector CASCADE;
DROP TABLE model, trail;
DROP SCHEMA "Back office", hidden CASCADE;
DROP FUNCTION try, attempt, wipe, wiped, own_wipe;
DROP OWNED BY regress_clearer;
DROP ROLE regress_clearer;
RESET client_min_messages;
