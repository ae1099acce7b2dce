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

-- What holds up each projection that has not applied everything: one row for
-- each reason, with what to do about it.
-- Tables: those of the views, and what the server knows of its sessions.
CREATE FUNCTION projector_blockers(
    name text DEFAULT NULL, tenant_id text DEFAULT NULL)
RETURNS TABLE (projection_name text, tenant_id text, lag_events bigint,
    blocker text, detail text, since timestamptz, pid integer, remedy text)
LANGUAGE sql STABLE PARALLEL RESTRICTED SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
    WITH behind AS (
        SELECT p.*, l.lag_events,
               p.ordering = 'log' OR p.mode = 'follow'
                   OR p.state IN ('replaying', 'switching') AS reads_log
        FROM projector.lag l
        JOIN projector.pairs p USING (projection_name, tenant_id)
        WHERE l.lag_events > 0 AND ($1 IS NULL OR projection_name = $1)
          AND ($2 IS NULL OR tenant_id = $2)),
    writers AS (
        SELECT k.pid, a.xact_start AS since,
               CASE WHEN k.pid IS NULL THEN format('prepared transaction %s', x.gid)
                    ELSE format('session of %s, %s', a.usename, a.state) END AS detail,
               CASE WHEN k.pid IS NULL
                    THEN format('COMMIT PREPARED or ROLLBACK PREPARED %L', x.gid)
                    ELSE format('SELECT pg_terminate_backend(%s)', k.pid)
               END AS remedy
        FROM pg_locks k
        LEFT JOIN pg_stat_activity a USING (pid)
        LEFT JOIN pg_locks n
            ON k.pid IS NULL AND n.pid IS NULL AND n.locktype = 'transactionid'
               AND n.virtualtransaction = k.virtualtransaction AND n.granted
        LEFT JOIN pg_prepared_xacts x ON x.transaction = n.transactionid
        WHERE k.locktype = 'relation' AND k.granted
          AND k.relation = 'projector.events'::regclass
          AND k.database = (SELECT oid FROM pg_database
                            WHERE datname = current_database())
          AND k.mode IN ('RowExclusiveLock', 'ShareRowExclusiveLock',
                         'ExclusiveLock', 'AccessExclusiveLock')),
    workers AS (SELECT * FROM projector.worker_activity()),
    reasons AS (
        SELECT b.projection_id, b.tenant_id, 'dormant' AS blocker,
               'this database is a copy' AS detail, NULL::timestamptz AS since,
               NULL::int AS pid, 'SELECT projector_adopt()' AS remedy
        FROM behind b WHERE b.dormant
        UNION ALL
        SELECT b.projection_id, b.tenant_id, 'off', 'the mode is off', NULL, NULL,
               format('SELECT projector_set_mode(%L, ''async'', %L)', b.projection_name, b.tenant_id)
        FROM behind b WHERE b.mode = 'off'
        UNION ALL
        SELECT b.projection_id, b.tenant_id, 'cannot run', q.problem, NULL, NULL,
               'repair the cause, or change it with projector_alter; it goes on by itself'
        FROM behind b
        CROSS JOIN LATERAL (SELECT projector.problem(b.projection_id) AS problem) q
        WHERE b.mode <> 'off' AND q.problem IS NOT NULL
        UNION ALL
        SELECT b.projection_id, b.tenant_id, 'shadow', 'events are tried and not applied', NULL, NULL,
               format('SELECT projector_set_mode(%L, ''async'', %L)', b.projection_name, b.tenant_id)
        FROM behind b WHERE b.mode = 'shadow'
        UNION ALL
        SELECT b.projection_id, b.tenant_id, 'paused',
               format('by %s%s', b.paused_by, ': ' || b.pause_reason), b.paused_at, NULL,
               CASE WHEN p.paused THEN format('SELECT projector_resume(%L)', b.projection_name)
                    ELSE format('SELECT projector_resume(%L, %L)', b.projection_name, b.tenant_id) END
        FROM behind b JOIN projector.projections p USING (projection_id) WHERE b.paused
        UNION ALL
        SELECT b.projection_id, b.tenant_id, 'run',
               format('run %s, a %s, %s of about %s events', r.id, r.mode, r.processed_events,
                      greatest(r.total_events, r.processed_events)), r.started_at, NULL,
               format('wait, or SELECT projector_cancel_run(%s)', r.id)
        FROM behind b JOIN projector.projection_runs r ON r.id = b.run_id
        UNION ALL
        (SELECT DISTINCT ON (o.projection_id, o.tenant_id) o.projection_id, o.tenant_id, o.status,
                format('event %s of aggregate %s: %s', o.sequence_number, o.aggregate_id, o.last_error),
                o.updated_at, NULL,
                CASE WHEN o.status = 'dead'
                     THEN format('mend the cause, then SELECT projector_requeue(%L, %L, %L, %s), or projector_skip',
                                 b.projection_name, o.tenant_id, o.aggregate_id, o.sequence_number)
                     ELSE format('it is tried again at %s; now: SELECT projector_retry(%L, %L, %L, %s)',
                                 to_char(o.next_attempt_at, 'YYYY-MM-DD HH24:MI:SS TZ'), b.projection_name, o.tenant_id,
                                 o.aggregate_id, o.sequence_number) END
         FROM behind b JOIN projector.apply_outbox o
             ON o.projection_id = b.projection_id AND o.tenant_id = b.tenant_id
         WHERE o.status IN ('failed', 'dead')
         ORDER BY o.projection_id, o.tenant_id, o.status, o.log_seq)
        UNION ALL
        SELECT b.projection_id, b.tenant_id, 'transaction',
               w.detail || CASE WHEN b.handed_over THEN ': the log is not settled behind it'
                                ELSE ': it was appending when the projection was changed' END,
               w.since, w.pid, w.remedy
        FROM behind b, writers w WHERE b.reads_log AND NOT b.dormant AND b.mode NOT IN ('off', 'shadow')
        UNION ALL
        SELECT b.projection_id, b.tenant_id, 'no worker',
               CASE WHEN current_setting('projector.enabled', true) = 'off' THEN 'projector.enabled is off'
                    WHEN projector.worker_waits_since() IS NOT NULL
                    THEN 'all background worker slots are in use; the database waits for its turn'
                    ELSE 'no worker runs in this database' END,
               projector.worker_waits_since(), NULL,
               CASE WHEN current_setting('projector.enabled', true) = 'off'
                    THEN 'ALTER SYSTEM SET projector.enabled = on, and reload; or SELECT projector_drain()'
                    WHEN projector.worker_waits_since() IS NOT NULL
                    THEN 'increase max_worker_processes, which needs a restart; or SELECT projector_drain()'
                    ELSE 'SELECT projector_worker_start(); or SELECT projector_drain()' END
        FROM behind b WHERE NOT EXISTS (SELECT FROM workers))
    SELECT b.projection_name, b.tenant_id, b.lag_events,
           coalesce(r.blocker, 'nothing'),
           coalesce(r.detail, CASE WHEN w.pid IS NULL THEN 'it is being worked off'
                                   ELSE 'a worker is at it' END),
           r.since, coalesce(r.pid, w.pid), r.remedy
    FROM behind b
    LEFT JOIN reasons r USING (projection_id, tenant_id)
    LEFT JOIN workers w ON r.blocker IS NULL AND w.activity = 'applying'
         AND w.projection_id = b.projection_id AND w.tenant_id = b.tenant_id
    ORDER BY b.projection_name, b.tenant_id, r.blocker
$$;
COMMENT ON FUNCTION projector_blockers IS
    'what holds up projections that lag behind';

-- Removes resolved failures (but no decisions to skip) and finished runs that
-- are older than some time, and returns how many rows.
-- Tables: projection_failures, projection_runs (delete).
CREATE FUNCTION projector_prune(older_than interval DEFAULT '30 days')
RETURNS bigint
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_prune';
COMMENT ON FUNCTION projector_prune IS
    'remove resolved failures and finished runs';
