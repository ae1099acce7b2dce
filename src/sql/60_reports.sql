-- Removes resolved failures (but no decisions to skip) and finished runs that
-- are older than some time, and returns how many rows.
-- Tables: projection_failures, projection_runs (delete).
CREATE FUNCTION projector_prune(older_than interval DEFAULT '30 days')
RETURNS bigint
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_prune';
COMMENT ON FUNCTION projector_prune IS
    'remove resolved failures and finished runs';
