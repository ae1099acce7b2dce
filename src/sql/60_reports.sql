-- Reports.  They run as the extension's owner, so that EXECUTE is all an
-- operator needs.

-- Refuses what is no status of an outbox item; null is any.
CREATE FUNCTION projector.is_status(status text) RETURNS boolean
LANGUAGE C IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'projector_is_status';

-- The oldest items of the work list.  Tables: apply_outbox, projections.
CREATE FUNCTION projector_outbox_report(
    status text DEFAULT NULL, max_rows integer DEFAULT 100,
    name text DEFAULT NULL, tenant_id text DEFAULT NULL)
RETURNS SETOF projector.outbox
LANGUAGE sql STABLE PARALLEL RESTRICTED SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT o.* FROM projector.outbox o
    WHERE projector.is_status($1) AND ($1 IS NULL OR o.status = $1)
      AND ($3 IS NULL OR o.projection_name = $3)
      AND ($4 IS NULL OR o.tenant_id = $4)
    ORDER BY o.next_attempt_at, o.log_seq
    LIMIT $2
$$;
COMMENT ON FUNCTION projector_outbox_report IS 'the oldest items of the work list';

-- The work list counted by projection and tenant.
-- Tables: apply_outbox, projections, projection_cursors.
CREATE FUNCTION projector_outbox_stats(
    name text DEFAULT NULL, tenant_id text DEFAULT NULL)
RETURNS TABLE (projection_name text, tenant_id text, pending bigint,
    held bigint, processing bigint, failed bigint, dead bigint,
    oldest_pending_age interval, applied_count bigint, failed_count bigint)
LANGUAGE sql STABLE PARALLEL RESTRICTED SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
    WITH items AS (
        SELECT o.projection_name, o.tenant_id,
               count(*) FILTER (WHERE o.status = 'pending') AS pending,
               count(*) FILTER (WHERE o.status = 'held') AS held,
               count(*) FILTER (WHERE o.status = 'processing') AS processing,
               count(*) FILTER (WHERE o.status = 'failed') AS failed,
               count(*) FILTER (WHERE o.status = 'dead') AS dead,
               clock_timestamp() - min(e.recorded_at) AS oldest_pending_age
        FROM projector.outbox o
        LEFT JOIN projector.events e
             ON e.tenant_id = o.tenant_id AND e.log_seq = o.log_seq
        WHERE ($1 IS NULL OR o.projection_name = $1)
          AND ($2 IS NULL OR o.tenant_id = $2)
        GROUP BY 1, 2),
    cursors AS (
        SELECT p.name AS projection_name, c.tenant_id, c.applied_count,
               c.failed_count
        FROM projector.projection_cursors c
        JOIN projector.projections p USING (projection_id)
        WHERE ($1 IS NULL OR p.name = $1) AND ($2 IS NULL OR c.tenant_id = $2))
    SELECT projection_name, tenant_id, coalesce(i.pending, 0),
           coalesce(i.held, 0), coalesce(i.processing, 0),
           coalesce(i.failed, 0), coalesce(i.dead, 0), i.oldest_pending_age,
           coalesce(c.applied_count, 0), coalesce(c.failed_count, 0)
    FROM items i FULL JOIN cursors c USING (projection_name, tenant_id)
    ORDER BY projection_name, tenant_id
$$;
COMMENT ON FUNCTION projector_outbox_stats IS
    'the work list counted by projection and tenant';
