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

-- ---- progress, of 30_views.sql, 36_comments.sql and 90_privileges.sql ----
-- What sessions of this database are doing: rebuild, catch_up, reset, verify,
-- preview or drain.  Returns rows only to users who may read view progress.
-- Tables: none; it reads shared memory.
CREATE FUNCTION projector.session_progress(
    OUT pid integer, OUT operation text, OUT phase text,
    OUT projection_id integer, OUT tenant_id text,
    OUT events_done bigint, OUT events_total bigint,
    OUT tenants_done bigint, OUT tenants_total bigint,
    OUT since timestamptz)
RETURNS SETOF record
LANGUAGE C VOLATILE PARALLEL RESTRICTED ROWS 1
AS 'MODULE_PATHNAME', 'projector_session_progress';

-- Projections that read the log first, because they are new, were reset or
-- switched on.  Returns rows only to users who may read view progress.
-- Tables: projection_cursors, of which it reads no more than a part.
CREATE FUNCTION projector.backfills(
    OUT projection_id integer, OUT state text, OUT done float8,
    OUT tenants_done bigint, OUT tenants_total bigint)
RETURNS SETOF record
LANGUAGE C VOLATILE PARALLEL UNSAFE ROWS 1
AS 'MODULE_PATHNAME', 'projector_backfills';

-- The active runs, what sessions do, and backfills.  Totals are estimates: what
-- has exceeded its total is shown as almost done.
CREATE OR REPLACE VIEW projector.progress AS
SELECT a.run_id, a.projection_name, a.tenant_id, a.mode, a.state,
       coalesce(a.percent,
                round(100.0 * a.events_done / nullif(a.events_total, 0), 1)) AS percent,
       round(a.rate)::bigint AS per_second,
       CASE WHEN a.rate > 0
            THEN pg_catalog.make_interval(secs => pg_catalog.round(
                (a.events_total - a.events_done) / a.rate)::float8) END AS time_left,
       a.pid, a.phase, a.events_done, a.events_total, a.tenants_done, a.tenants_total,
       a.since
FROM (SELECT o.run_id, o.projection_name, o.tenant_id, o.mode, o.state, o.percent,
             o.pid, o.phase, o.events_done,
             CASE WHEN o.events_total IS NOT NULL
                  THEN greatest(o.events_total, o.events_done) END AS events_total,
             o.tenants_done,
             CASE WHEN o.tenants_total IS NOT NULL
                  THEN greatest(o.tenants_total, o.tenants_done) END AS tenants_total,
             o.since,
             o.events_done / nullif(extract(epoch FROM
                 clock_timestamp() - o.since), 0)::float8 AS rate
      FROM (SELECT r.id AS run_id, r.projection_name, r.tenant_id, r.mode, r.state,
                   NULL::numeric AS percent, NULL::integer AS pid, NULL::text AS phase,
                   r.processed_events AS events_done, r.total_events AS events_total,
                   NULL::bigint AS tenants_done, NULL::bigint AS tenants_total,
                   r.started_at AS since
            FROM projector.runs r
            WHERE r.state IN ('queued', 'running')
            UNION ALL
            SELECT NULL, p.name, s.tenant_id COLLATE "C", s.operation, 'running',
                   NULL, s.pid, s.phase, s.events_done, s.events_total,
                   s.tenants_done, s.tenants_total, s.since
            FROM projector.session_progress() s
            LEFT JOIN projector.projections p USING (projection_id)
            UNION ALL
            SELECT NULL, p.name, NULL, 'backfill', b.state,
                   CASE WHEN b.done IS NOT NULL
                        THEN least(round(100 * b.done::numeric, 1), 99.9) END,
                   NULL, NULL, NULL, NULL,
                   b.tenants_done, b.tenants_total, NULL
            FROM projector.backfills() b
            JOIN projector.projections p USING (projection_id)) o) a
ORDER BY a.state DESC, a.run_id;

COMMENT ON VIEW projector.progress IS
    'how far the active runs, the operations of sessions and new read models are';
COMMENT ON COLUMN projector.progress.run_id IS
    'the run: its row is in projector.runs; null for anything else';
COMMENT ON COLUMN projector.progress.projection_name IS
    'the projection';
COMMENT ON COLUMN projector.progress.tenant_id IS
    'the tenant, or the one that is processed now; null if it is of several at once';
COMMENT ON COLUMN projector.progress.mode IS
    'rebuild, catch_up, reset, verify, preview, drain or backfill';
COMMENT ON COLUMN projector.progress.state IS
    'queued, running or paused';
COMMENT ON COLUMN projector.progress.percent IS
    'how much is done, of an estimate';
COMMENT ON COLUMN projector.progress.per_second IS
    'events per second since it began';
COMMENT ON COLUMN projector.progress.time_left IS
    'how long the rest takes at that rate';
COMMENT ON COLUMN projector.progress.pid IS
    'the session that does it; null for runs and backfills, which workers do';
COMMENT ON COLUMN projector.progress.phase IS
    'what the session does now';
COMMENT ON COLUMN projector.progress.events_done IS
    'how many events it has processed';
COMMENT ON COLUMN projector.progress.events_total IS
    'how many there are: an estimate';
COMMENT ON COLUMN projector.progress.tenants_done IS
    'how many tenants are done, if there may be several';
COMMENT ON COLUMN projector.progress.tenants_total IS
    'how many there are: from 10000 on an estimate';
COMMENT ON COLUMN projector.progress.since IS
    'when it began, if that is known';

REVOKE ALL ON FUNCTION projector.session_progress, projector.backfills FROM PUBLIC;
GRANT EXECUTE ON FUNCTION projector.session_progress, projector.backfills TO PUBLIC;
