-- What the workers of this database do now.  Tables: none.
CREATE FUNCTION projector.worker_activity(
    OUT slot integer, OUT pid integer, OUT projection_id integer,
    OUT tenant_id text, OUT activity text, OUT since timestamptz)
RETURNS SETOF record
LANGUAGE sql STABLE PARALLEL RESTRICTED SECURITY DEFINER ROWS 1
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT NULL::integer, a.pid, p.projection_id,
           substring(a.query FROM '^projection ".*", tenant "(.*)"$'), a.query, a.query_start
    FROM pg_stat_activity a
    LEFT JOIN projector.projections p
        ON a.state = 'active' AND p.name = substring(a.query FROM '^projection "(.*)", tenant ".*"$')
    WHERE a.backend_type = 'projector worker' AND a.datname = current_database()
$$;

-- Since when this database waits for a worker that there is no room for; NULL
-- if it does not wait.  Tables: none.
CREATE FUNCTION projector.worker_waits_since() RETURNS timestamptz
LANGUAGE C VOLATILE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'projector_worker_waits_since';
