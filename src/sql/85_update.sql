-- Every upgrade script begins with a call of this function.  It waits for the
-- transactions that are appending events and keeps others from beginning, and
-- at commit it tells all sessions and workers that the version has changed.
-- Tables: events (lock).
CREATE FUNCTION projector.begin_update() RETURNS void
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_begin_update';
COMMENT ON FUNCTION projector.begin_update IS
    'the first call of every upgrade script';
