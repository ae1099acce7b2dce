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

-- Applies one queued event now, regardless of its next attempt time, and
-- returns the result: applied, failed, held (it waits for an earlier event) or
-- none (not queued).
-- Tables: as projector_drain.
CREATE FUNCTION projector_retry(
    name text, tenant_id text, aggregate_id text, sequence_number bigint)
RETURNS text
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_retry';
COMMENT ON FUNCTION projector_retry IS 'apply one queued event now';

-- Sets checkpoints back to 0 without changing the read model; the log is read
-- again.  Returns the number of offsets.
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

-- Clears a read model and rebuilds it from the log, in the calling
-- transaction: for one aggregate, one tenant, or all.  If name is null, all
-- projections are rebuilt, each after those it depends on.  Returns how many
-- events were applied.
-- Tables: as projector_drain.
CREATE FUNCTION projector_rebuild(
    name text, tenant_id text DEFAULT NULL, aggregate_id text DEFAULT NULL)
RETURNS bigint
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_rebuild';
COMMENT ON FUNCTION projector_rebuild IS 'build a read model from the log again';

-- Applies queued events and those in the log after the cursor, up to a
-- position or to the settled end of the log, whatever the mode.  Returns how
-- many events.
-- Tables: as projector_drain.
CREATE FUNCTION projector_catch_up(
    name text, tenant_id text DEFAULT NULL, until_log_seq bigint DEFAULT NULL)
RETURNS bigint
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_catch_up';
COMMENT ON FUNCTION projector_catch_up IS
    'apply all that a projection has not applied yet';

-- Queues rebuilds or catch-ups for workers, one for each tenant, and returns
-- their ids.  If name is null, it does so for all projections, each after
-- those it depends on.
-- Tables: projection_runs (insert), projections.
CREATE FUNCTION projector_start_run(
    name text, tenant_id text DEFAULT NULL, mode text DEFAULT 'rebuild',
    until_log_seq bigint DEFAULT NULL)
RETURNS SETOF bigint
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_start_run';
COMMENT ON FUNCTION projector_start_run IS
    'rebuild or catch up in the background';

-- Ends a run after its current batch; what it has committed is kept.  Returns
-- false if it had already ended.
-- Tables: projection_runs, projection_cursors (update).
CREATE FUNCTION projector_cancel_run(run_id bigint) RETURNS boolean
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_cancel_run';
COMMENT ON FUNCTION projector_cancel_run IS 'end a run';

-- Waits until a projection has applied an event and all earlier ones of its
-- aggregate, and returns the result: applied, timeout, blocked (by a dead
-- event) or paused.  Call it as a statement of its own.
-- Tables: none are written.
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

-- For row-level security policies: the tenant of the event that a projection's
-- code is applying; null in all other code.  Unlike a setting, a session
-- cannot choose it.
-- Tables: none.
CREATE FUNCTION projector_tenant_id() RETURNS text
LANGUAGE C STABLE PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'projector_tenant_id';
COMMENT ON FUNCTION projector_tenant_id IS
    'the tenant whose event is being applied; null outside of a projection''s code';

-- For handlers: was the event read from the log again, by a reset or for a new
-- projection, and not just appended?  Then a handler should leave out effects
-- outside its read model.
-- Tables: none.
CREATE FUNCTION projector_is_replay() RETURNS boolean
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_is_replay';
COMMENT ON FUNCTION projector_is_replay IS
    'for handlers: is the event being replayed?';

-- Makes failed and dead events pending again, oldest first, and returns them.
-- Events that waited for them are released.  Null means all: all projections
-- that the caller may manage, all tenants, aggregates or events.
-- Tables: apply_outbox (update).
CREATE FUNCTION projector_requeue(
    name text DEFAULT NULL, tenant_id text DEFAULT NULL,
    aggregate_id text DEFAULT NULL, sequence_number bigint DEFAULT NULL,
    max_rows integer DEFAULT 100)
RETURNS TABLE (projection_name text, tenant_id text, aggregate_id text,
    sequence_number bigint)
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_requeue';
COMMENT ON FUNCTION projector_requeue IS
    'make failed and dead events pending again';

-- Skips one event permanently, now or when it is reached, and in every replay.
-- Returns false if that was decided already.
-- Tables: projection_failures, apply_outbox, projections.
CREATE FUNCTION projector_skip(
    name text, tenant_id text, aggregate_id text, sequence_number bigint,
    reason text)
RETURNS boolean
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_skip';
COMMENT ON FUNCTION projector_skip IS 'skip one event permanently';

-- Undoes projector_skip.  Returns false if the event was not skipped.
-- Tables: projection_failures, projections.
CREATE FUNCTION projector_unskip(
    name text, tenant_id text, aggregate_id text, sequence_number bigint)
RETURNS boolean
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_unskip';
COMMENT ON FUNCTION projector_unskip IS 'no longer skip one event';

-- Adds an operator's remarks to a failure.  Tables: projection_failures.
CREATE FUNCTION projector_note(failure_id bigint, note jsonb) RETURNS void
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_note';
COMMENT ON FUNCTION projector_note IS 'add remarks to a failure';

-- Starts a worker for this database, unless it already has projector.workers
-- of them, and returns how many it has.
-- Tables: none.
CREATE FUNCTION projector_worker_start() RETURNS integer
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_worker_start';
COMMENT ON FUNCTION projector_worker_start IS
    'start a worker for this database';

-- Stops this database's workers and returns how many there were.  None is
-- started again until projector_worker_start is called or the server restarts.
-- Tables: none.
CREATE FUNCTION projector_worker_stop() RETURNS integer
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_worker_stop';
COMMENT ON FUNCTION projector_worker_stop IS
    'stop this database''s workers';

-- Stops this database's workers before the extension is dropped.
CREATE FUNCTION projector.before_drop_extension() RETURNS event_trigger
LANGUAGE C AS 'MODULE_PATHNAME', 'projector_before_drop_extension';
CREATE EVENT TRIGGER projector_before_drop_extension ON ddl_command_start
    WHEN TAG IN ('DROP EXTENSION', 'DROP SCHEMA', 'DROP OWNED')
    EXECUTE FUNCTION projector.before_drop_extension();
