\echo Use "ALTER EXTENSION projector UPDATE TO '1.0'" to load this file. \quit
-- Every change of the parts in src/sql since 0.9, in an order in which it can
-- be made while there is data.  A test compares the result with a fresh 1.0.

-- ---- 85_update.sql ----
CREATE FUNCTION projector.begin_update() RETURNS void
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_begin_update';
COMMENT ON FUNCTION projector.begin_update IS
    'the first call of every upgrade script';
REVOKE ALL ON FUNCTION projector.begin_update FROM PUBLIC;

-- Wait for appends.  The changes of tables come after this.
SELECT projector.begin_update();
