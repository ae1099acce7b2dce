-- Descriptions of the views and their columns.  A test compares them with the
-- reference manual.

COMMENT ON VIEW projector.status IS
    'how each projection is: one row each';
COMMENT ON COLUMN projector.status.projection_name IS
    'the projection';
COMMENT ON COLUMN projector.status.mode IS
    'how it is applied, unless a tenant has a mode of its own';
COMMENT ON COLUMN projector.status.state IS
    'the state of the tenant that is worst off: dormant, off, paused, blocked, failing, rebuilding, starting, no_worker, waiting, lagging, shadow or ok';
COMMENT ON COLUMN projector.status.tenants_not_ok IS
    'how many tenants are in another state than ok';
COMMENT ON COLUMN projector.status.lag_events IS
    'how many events are unapplied; 10000 means that many or more';
COMMENT ON COLUMN projector.status.lag_time IS
    'how long ago the oldest unapplied event was recorded';
COMMENT ON COLUMN projector.status.dead IS
    'how many events are dead: tried max_attempts times and given up; at most 10000';
COMMENT ON COLUMN projector.status.why IS
    'the reason for the state, shortened; the whole is in status_by_tenant';

COMMENT ON VIEW projector.status_by_tenant IS
    'how each projection is for each tenant';
COMMENT ON COLUMN projector.status_by_tenant.projection_name IS
    'the projection';
COMMENT ON COLUMN projector.status_by_tenant.tenant_id IS
    'the tenant';
COMMENT ON COLUMN projector.status_by_tenant.state IS
    'the first that holds of dormant, off, paused, blocked, failing, rebuilding, starting, no_worker, waiting, lagging, shadow and ok';
COMMENT ON COLUMN projector.status_by_tenant.why IS
    'the reason for the state; null if it is ok';
COMMENT ON COLUMN projector.status_by_tenant.kind IS
    'handler, fold, fold_columns or statement';
COMMENT ON COLUMN projector.status_by_tenant.mode IS
    'how it is applied for this tenant';
COMMENT ON COLUMN projector.status_by_tenant.cursor_state IS
    'live, or replaying, switching (the log is being read) or stopped (at a dead event, in log order)';
COMMENT ON COLUMN projector.status_by_tenant.last_log_seq IS
    'the cursor: every event up to this position is applied, skipped, not wanted or queued';
COMMENT ON COLUMN projector.status_by_tenant.lag_events IS
    'how many events are unapplied; 10000 means that many or more';
COMMENT ON COLUMN projector.status_by_tenant.lag_time IS
    'how long ago the oldest unapplied event was recorded';
COMMENT ON COLUMN projector.status_by_tenant.oldest_log_seq IS
    'the position of that event';
COMMENT ON COLUMN projector.status_by_tenant.pending IS
    'queued events that wait for a worker';
COMMENT ON COLUMN projector.status_by_tenant.held IS
    'queued events that wait for a failed or dead event of their aggregate';
COMMENT ON COLUMN projector.status_by_tenant.failed IS
    'queued events that failed and will be tried again';
COMMENT ON COLUMN projector.status_by_tenant.dead IS
    'queued events that were given up';
COMMENT ON COLUMN projector.status_by_tenant.error_count IS
    'how often events failed that are not applied yet';
COMMENT ON COLUMN projector.status_by_tenant.last_error IS
    'the message of the latest of these errors';
COMMENT ON COLUMN projector.status_by_tenant.last_failed_at IS
    'when it happened';
COMMENT ON COLUMN projector.status_by_tenant.paused_by IS
    'who paused it';
COMMENT ON COLUMN projector.status_by_tenant.paused_at IS
    'when it was paused';
COMMENT ON COLUMN projector.status_by_tenant.run_id IS
    'the active run of this tenant';
COMMENT ON COLUMN projector.status_by_tenant.worker_pid IS
    'the worker that applies events of this tenant now';
COMMENT ON COLUMN projector.status_by_tenant.stale IS
    'the definition has changed since the read model was built: rebuild it';
COMMENT ON COLUMN projector.status_by_tenant.applied_count IS
    'how many events have been applied, replays included';
COMMENT ON COLUMN projector.status_by_tenant.failed_count IS
    'how many attempts failed';
COMMENT ON COLUMN projector.status_by_tenant.dead_count IS
    'how many events have become dead';
COMMENT ON COLUMN projector.status_by_tenant.batch_count IS
    'how many batches applied something';
COMMENT ON COLUMN projector.status_by_tenant.apply_time IS
    'how long these batches took';
COMMENT ON COLUMN projector.status_by_tenant.last_applied_at IS
    'when the latest of them was applied';
COMMENT ON COLUMN projector.status_by_tenant.digest IS
    'the kept digest of the read model; folds have one';
COMMENT ON COLUMN projector.status_by_tenant.row_count IS
    'how many rows it covers';

COMMENT ON VIEW projector.problems IS
    'everything that needs somebody, the worst first';
COMMENT ON COLUMN projector.problems.level IS
    'critical or warning';
COMMENT ON COLUMN projector.problems.problem IS
    'cannot_run, dead, run_failed, no_worker, failing, open_transaction, locked, dormant, paused, lagging or stale';
COMMENT ON COLUMN projector.problems.projection_name IS
    'the projection; null if all are concerned';
COMMENT ON COLUMN projector.problems.tenant_id IS
    'the tenant; null if all are concerned';
COMMENT ON COLUMN projector.problems.since IS
    'since when, if that is known';
COMMENT ON COLUMN projector.problems.events IS
    'how many events wait because of it; at most 10000';
COMMENT ON COLUMN projector.problems.detail IS
    'what has happened';
COMMENT ON COLUMN projector.problems.remedy IS
    'the command that helps';

COMMENT ON VIEW projector.progress IS
    'how far the active runs are';
COMMENT ON COLUMN projector.progress.run_id IS
    'the run: its row is in projector.runs';
COMMENT ON COLUMN projector.progress.projection_name IS
    'the projection';
COMMENT ON COLUMN projector.progress.tenant_id IS
    'the tenant';
COMMENT ON COLUMN projector.progress.mode IS
    'rebuild or catch_up';
COMMENT ON COLUMN projector.progress.state IS
    'queued or running';
COMMENT ON COLUMN projector.progress.percent IS
    'how much is done, of an estimate';
COMMENT ON COLUMN projector.progress.per_second IS
    'events per second since it began';
COMMENT ON COLUMN projector.progress.time_left IS
    'how long the rest takes at that rate';

COMMENT ON VIEW projector.outbox IS
    'the work list: events that are to be applied';
COMMENT ON COLUMN projector.outbox.projection_name IS
    'the projection';
COMMENT ON COLUMN projector.outbox.tenant_id IS
    'the tenant';
COMMENT ON COLUMN projector.outbox.aggregate_id IS
    'the aggregate';
COMMENT ON COLUMN projector.outbox.sequence_number IS
    'the event''s number in its aggregate';
COMMENT ON COLUMN projector.outbox.log_seq IS
    'its position in the log';
COMMENT ON COLUMN projector.outbox.event_type IS
    'its type';
COMMENT ON COLUMN projector.outbox.status IS
    'pending, processing (a worker applies it now), held (it waits for a failed or dead event), failed or dead';
COMMENT ON COLUMN projector.outbox.attempt_count IS
    'how often it was tried';
COMMENT ON COLUMN projector.outbox.next_attempt_at IS
    'when it is tried next';
COMMENT ON COLUMN projector.outbox.last_error IS
    'the message of its latest error';
COMMENT ON COLUMN projector.outbox.updated_at IS
    'when its status changed';
COMMENT ON COLUMN projector.outbox.shadow IS
    'in mode shadow: passed, failed or untested';

COMMENT ON VIEW projector.offsets IS
    'the last event applied, by projection and aggregate';
COMMENT ON COLUMN projector.offsets.projection_name IS
    'the projection';
COMMENT ON COLUMN projector.offsets.tenant_id IS
    'the tenant';
COMMENT ON COLUMN projector.offsets.aggregate_id IS
    'the aggregate';
COMMENT ON COLUMN projector.offsets.last_sequence_number IS
    'the number of the last event applied';
COMMENT ON COLUMN projector.offsets.last_event_id IS
    'that event';
COMMENT ON COLUMN projector.offsets.error_count IS
    'errors in a row since then';
COMMENT ON COLUMN projector.offsets.last_error IS
    'the latest of them';
COMMENT ON COLUMN projector.offsets.updated_at IS
    'when the offset changed';

COMMENT ON VIEW projector.failures IS
    'the events that failed, with their errors';
COMMENT ON COLUMN projector.failures.projection_name IS
    'the projection';
COMMENT ON COLUMN projector.failures.id IS
    'the failure, for projector_note';
COMMENT ON COLUMN projector.failures.projection_id IS
    'the projection''s number';
COMMENT ON COLUMN projector.failures.tenant_id IS
    'the tenant';
COMMENT ON COLUMN projector.failures.aggregate_id IS
    'the aggregate';
COMMENT ON COLUMN projector.failures.sequence_number IS
    'the event''s number in its aggregate';
COMMENT ON COLUMN projector.failures.log_seq IS
    'its position in the log';
COMMENT ON COLUMN projector.failures.event_id IS
    'its id';
COMMENT ON COLUMN projector.failures.event_type IS
    'its type';
COMMENT ON COLUMN projector.failures.error_code IS
    'the SQLSTATE';
COMMENT ON COLUMN projector.failures.error_message IS
    'the error''s message';
COMMENT ON COLUMN projector.failures.error_detail IS
    'its detail';
COMMENT ON COLUMN projector.failures.error_hint IS
    'its hint';
COMMENT ON COLUMN projector.failures.error_context IS
    'where it was raised';
COMMENT ON COLUMN projector.failures.retry_count IS
    'how often it failed again';
COMMENT ON COLUMN projector.failures.recoverable IS
    'it may go away by itself: four times as many attempts are made';
COMMENT ON COLUMN projector.failures.metadata IS
    'remarks of operators, and why it was skipped';
COMMENT ON COLUMN projector.failures.first_failed_at IS
    'when it failed first';
COMMENT ON COLUMN projector.failures.last_failed_at IS
    'when it failed last';
COMMENT ON COLUMN projector.failures.resolved_at IS
    'when that was resolved; null while it is open';
COMMENT ON COLUMN projector.failures.traceparent IS
    'the trace of the event: metadata traceparent (W3C trace context)';
COMMENT ON COLUMN projector.failures.correlation_id IS
    'metadata correlation_id of the event';
COMMENT ON COLUMN projector.failures.resolution IS
    'applied, skipped or rebuilt';

COMMENT ON VIEW projector.runs IS
    'rebuilds and catch-ups in the background';
COMMENT ON COLUMN projector.runs.projection_name IS
    'the projection';
COMMENT ON COLUMN projector.runs.id IS
    'the run, for projector_cancel_run';
COMMENT ON COLUMN projector.runs.tenant_id IS
    'the tenant';
COMMENT ON COLUMN projector.runs.mode IS
    'rebuild or catch_up';
COMMENT ON COLUMN projector.runs.state IS
    'queued, running, completed, failed or cancelled';
COMMENT ON COLUMN projector.runs.since_log_seq IS
    'the position it began behind';
COMMENT ON COLUMN projector.runs.until_log_seq IS
    'the last position it reads';
COMMENT ON COLUMN projector.runs.total_events IS
    'how many events it has to read: an estimate until it has completed';
COMMENT ON COLUMN projector.runs.processed_events IS
    'how many it has read';
COMMENT ON COLUMN projector.runs.last_log_seq IS
    'the position of the last of them';
COMMENT ON COLUMN projector.runs.error_code IS
    'the SQLSTATE it failed with';
COMMENT ON COLUMN projector.runs.error_message IS
    'the message it failed with';
COMMENT ON COLUMN projector.runs.error_context IS
    'where that was raised';
COMMENT ON COLUMN projector.runs.requested_by IS
    'who asked for it';
COMMENT ON COLUMN projector.runs.queued_at IS
    'when it was asked for';
COMMENT ON COLUMN projector.runs.started_at IS
    'when it began';
COMMENT ON COLUMN projector.runs.finished_at IS
    'when it ended';

COMMENT ON VIEW projector.missing_events IS
    'gaps in the log: events that were removed from it';
COMMENT ON COLUMN projector.missing_events.tenant_id IS
    'the tenant';
COMMENT ON COLUMN projector.missing_events.aggregate_id IS
    'the aggregate';
COMMENT ON COLUMN projector.missing_events.first_sequence_number IS
    'the first event that is missing';
COMMENT ON COLUMN projector.missing_events.last_sequence_number IS
    'the last one before the next that is there';

COMMENT ON VIEW projector.audit IS
    'what users have done with projections: one row per call';
COMMENT ON COLUMN projector.audit.id IS
    'the number of the row';
COMMENT ON COLUMN projector.audit.happened_at IS
    'when the call ended';
COMMENT ON COLUMN projector.audit.role IS
    'the role that called the function';
COMMENT ON COLUMN projector.audit.session_role IS
    'the role that the session was opened with';
COMMENT ON COLUMN projector.audit.action IS
    'the function, without projector_ in front';
COMMENT ON COLUMN projector.audit.projection_name IS
    'the projection as it was called then; null if the call was for all';
COMMENT ON COLUMN projector.audit.tenant_id IS
    'the tenant; null if the call was for all, or for none';
COMMENT ON COLUMN projector.audit.arguments IS
    'the arguments that were not null, never the content of events';
COMMENT ON COLUMN projector.audit.result IS
    'what the function returned, or how many rows';
