-- Deletes resolved failures (except decisions to skip) and finished runs that
-- are older than a given time, and returns the number of rows.
-- Tables: projection_failures, projection_runs (delete).
CREATE FUNCTION projector_prune(older_than interval DEFAULT '30 days')
RETURNS bigint
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_prune';
COMMENT ON FUNCTION projector_prune IS
    'remove resolved failures and finished runs';
