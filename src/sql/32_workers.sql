-- What the workers of this database do now: "idle", "looking" (for work),
-- "applying" (a batch of a projection and tenant), "run" (a batch of their run)
-- or "chores", and since when.  Only those who may read a status view get rows.
-- Tables: none; it is in shared memory.
CREATE FUNCTION projector.worker_activity(
    OUT slot integer, OUT pid integer, OUT projection_id integer,
    OUT tenant_id text, OUT activity text, OUT since timestamptz)
RETURNS SETOF record
LANGUAGE C VOLATILE PARALLEL RESTRICTED ROWS 1
AS 'MODULE_PATHNAME', 'projector_worker_activity';
COMMENT ON FUNCTION projector.worker_activity IS
    'what each worker of this database does now';

-- Since when this database waits for a worker that there is no room for; NULL
-- if it does not wait.  Tables: none.
CREATE FUNCTION projector.worker_waits_since() RETURNS timestamptz
LANGUAGE C VOLATILE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'projector_worker_waits_since';
