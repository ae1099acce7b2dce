-- What the workers of this database are doing, and since when: "idle",
-- "looking" (for work), "applying" (a batch of a projection and tenant), "run"
-- (a batch of a run) or "chores".  Returns rows only to users who may read a
-- status view.
-- Tables: none; it reads shared memory.
CREATE FUNCTION projector.worker_activity(
    OUT slot integer, OUT pid integer, OUT projection_id integer,
    OUT tenant_id text, OUT activity text, OUT since timestamptz)
RETURNS SETOF record
LANGUAGE C VOLATILE PARALLEL RESTRICTED ROWS 1
AS 'MODULE_PATHNAME', 'projector_worker_activity';
COMMENT ON FUNCTION projector.worker_activity IS
    'what each worker of this database does now';

-- Since when this database has waited for a worker because no worker process
-- is free; NULL if it does not wait.
-- Tables: none.
CREATE FUNCTION projector.worker_waits_since() RETURNS timestamptz
LANGUAGE C VOLATILE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'projector_worker_waits_since';
