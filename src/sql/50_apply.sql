-- Applies queued events in the calling session, in order, and returns how
-- many.  Tables: projection_offsets, projection_cursors, apply_outbox,
-- projection_failures, and what the projections write.
CREATE FUNCTION projector_drain(
    name text DEFAULT NULL, tenant_id text DEFAULT NULL,
    max_events bigint DEFAULT NULL)
RETURNS bigint
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_drain';
COMMENT ON FUNCTION projector_drain IS 'apply queued events in this session';

-- Applies one queued event now, whatever its back-off, and says what became
-- of it: applied, failed, held (behind an earlier one) or none (not queued).
-- Tables: as projector_drain.
CREATE FUNCTION projector_retry(
    name text, tenant_id text, aggregate_id text, sequence_number bigint)
RETURNS text
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_retry';
COMMENT ON FUNCTION projector_retry IS 'apply one queued event now';

-- Sets checkpoints back to 0 without touching the read model; the log is
-- read again.  Returns how many offsets were set back.
-- Tables: projections, projection_offsets, projection_cursors (update),
-- apply_outbox (delete, insert).
CREATE FUNCTION projector_reset(
    name text, tenant_id text DEFAULT NULL, aggregate_id text DEFAULT NULL,
    force boolean DEFAULT false)
RETURNS bigint
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_reset';
COMMENT ON FUNCTION projector_reset IS
    'set checkpoints back to 0 and read the log again';

-- Builds a read model anew from the log, in the calling transaction, and returns
-- how many events were applied: of one aggregate, one tenant, or all.  Tables:
-- as projector_drain.
CREATE FUNCTION projector_rebuild(
    name text, tenant_id text DEFAULT NULL, aggregate_id text DEFAULT NULL)
RETURNS bigint
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_rebuild';
COMMENT ON FUNCTION projector_rebuild IS 'build a read model anew from the log';

-- The same for all projections, those first that others depend on.
-- Tables: as projector_drain.
CREATE FUNCTION projector_rebuild_all(tenant_id text DEFAULT NULL)
RETURNS bigint
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_rebuild_all';
COMMENT ON FUNCTION projector_rebuild_all IS
    'build all read models anew from the log';

-- Applies what waits, and what the log has behind the cursor, up to a position
-- or to its settled end, whatever the mode; returns how many events.
-- Tables: as projector_drain.
CREATE FUNCTION projector_catch_up(
    name text, tenant_id text DEFAULT NULL, until_log_seq bigint DEFAULT NULL)
RETURNS bigint
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_catch_up';
COMMENT ON FUNCTION projector_catch_up IS
    'apply all that a projection has not applied yet';

-- Removes a tenant's rows from a read model and returns how many (0 if a
-- function of the projection does it).  Checkpoints stay as they are.
-- Tables: what the projection writes.
CREATE FUNCTION projector_clear(name text, tenant_id text) RETURNS bigint
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_clear';
COMMENT ON FUNCTION projector_clear IS 'empty a tenant''s read model';

-- Queues rebuilds or catch-ups to be done by workers, batch by batch, one for
-- each tenant, and returns their numbers; name null is all projections, those
-- first that others depend on.  Tables: projection_runs (insert), projections.
CREATE FUNCTION projector_start_run(
    name text, mode text DEFAULT 'rebuild', tenant_id text DEFAULT NULL,
    until_log_seq bigint DEFAULT NULL)
RETURNS SETOF bigint
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_start_run';
COMMENT ON FUNCTION projector_start_run IS
    'rebuild or catch up in the background';

-- Ends a run after its current batch; what it has committed is kept.  False if
-- it had ended before.  Tables: projection_runs, projection_cursors (update).
CREATE FUNCTION projector_cancel_run(run_id bigint) RETURNS boolean
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_cancel_run';
COMMENT ON FUNCTION projector_cancel_run IS 'end a run';

-- Waits until a projection has applied an event, and all of its aggregate
-- before it, and says what became of it: applied, timeout, blocked (by a dead
-- event) or paused.  To be called as a statement of its own.  Tables: none are
-- written.
CREATE FUNCTION projector_wait(
    name text, tenant_id text, aggregate_id text, sequence_number bigint,
    timeout interval DEFAULT '5 s')
RETURNS text
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_wait';
COMMENT ON FUNCTION projector_wait IS 'wait until an event has been applied';

-- The same for all events of a tenant up to a position in the log.
-- Tables: none are written.
CREATE FUNCTION projector_wait_log(
    name text, tenant_id text, log_seq bigint, timeout interval DEFAULT '5 s')
RETURNS text
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_wait_log';
COMMENT ON FUNCTION projector_wait_log IS
    'wait until the log has been applied up to a position';

-- For handlers: is the event one that has been read from the log again, by a
-- reset or for a new projection, and not just appended?  A handler with effects
-- beyond its read model leaves them out then.  Tables: none.
CREATE FUNCTION projector_is_replay() RETURNS boolean
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_is_replay';
COMMENT ON FUNCTION projector_is_replay IS
    'for handlers: is the event being replayed?';

-- Makes a failed or dead event pending again; what waited for it follows.
-- False if it is neither.  Tables: apply_outbox (update).
CREATE FUNCTION projector_requeue(
    name text, tenant_id text, aggregate_id text, sequence_number bigint)
RETURNS boolean
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_requeue';
COMMENT ON FUNCTION projector_requeue IS 'make a dead event pending again';

-- The same for many dead events, the oldest first, of the projections the
-- caller may look after; returns those.  Tables: apply_outbox (update).
CREATE FUNCTION projector_requeue_dead(
    max_rows integer DEFAULT 100, name text DEFAULT NULL,
    tenant_id text DEFAULT NULL)
RETURNS TABLE (projection_name text, tenant_id text, aggregate_id text,
    sequence_number bigint)
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_requeue_dead';
COMMENT ON FUNCTION projector_requeue_dead IS
    'make the oldest dead events pending again';

-- Passes over one event for good, now or when it is reached, and in every
-- replay.  False if that was decided already.
-- Tables: projection_failures, apply_outbox, projections.
CREATE FUNCTION projector_skip(
    name text, tenant_id text, aggregate_id text, sequence_number bigint,
    reason text)
RETURNS boolean
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_skip';
COMMENT ON FUNCTION projector_skip IS 'pass over one event for good';

-- Takes that back.  False if it was not to be passed over.
-- Tables: projection_failures, projections.
CREATE FUNCTION projector_unskip(
    name text, tenant_id text, aggregate_id text, sequence_number bigint)
RETURNS boolean
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_unskip';
COMMENT ON FUNCTION projector_unskip IS 'no longer pass over one event';

-- Adds an operator's remarks to a failure.  Tables: projection_failures.
CREATE FUNCTION projector_note(failure_id bigint, note jsonb) RETURNS void
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_note';
COMMENT ON FUNCTION projector_note IS 'add remarks to a failure';

-- Starts a worker for this database, unless it has projector.workers of them,
-- and returns how many it has.  Tables: none.
CREATE FUNCTION projector_worker_start() RETURNS integer
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_worker_start';
COMMENT ON FUNCTION projector_worker_start IS
    'start a worker for this database';

-- Stops this database's workers and returns how many there were.  None is
-- started again until projector_worker_start or a restart.  Tables: none.
CREATE FUNCTION projector_worker_stop() RETURNS integer
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_worker_stop';
COMMENT ON FUNCTION projector_worker_stop IS
    'stop this database''s workers';
