-- Only the extension's owner has privileges at first; projector_grant() grants
-- what a role needs.
REVOKE ALL ON ALL TABLES IN SCHEMA projector FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA projector FROM PUBLIC;
REVOKE ALL ON FUNCTION
    projector_append, projector_append_batch,
    projector_create, projector_alter, projector_drop, projector_definitions,
    projector_set_mode, projector_pause, projector_resume,
    projector_wait, projector_wait_log,
    projector_rebuild, projector_catch_up, projector_reset,
    projector_start_run, projector_cancel_run,
    projector_retry, projector_requeue, projector_skip, projector_unskip,
    projector_note,
    projector_verify, projector_digest, projector_digest_all,
    projector_check_digests, projector_preview, projector_explain,
    projector_health, projector_openmetrics,
    projector_drain, projector_adopt, projector_prune, projector_worker_start,
    projector_worker_stop, projector_grant, projector_is_replay
    FROM PUBLIC;

-- Policies and triggers on users' tables call these, as any user who writes
-- the tables.
GRANT EXECUTE ON FUNCTION
    projector_tenant_id, projector.in_projection, projector.guard_tenant
    TO PUBLIC;
-- Views call these, as any user who reads the views.
GRANT EXECUTE ON FUNCTION
    projector.is_home, projector.definition_now, projector.problem,
    projector.no_worker, projector.appenders, projector.worker_activity,
    projector.worker_waits_since, projector.item_waits,
    projector.metrics_of_projections, projector.metrics_of_tenants
    TO PUBLIC;

-- A dump includes the data, and the sequences that number it.
SELECT pg_catalog.pg_extension_config_dump('projector.events', '');
SELECT pg_catalog.pg_extension_config_dump('projector.events_log_seq_seq', '');
SELECT pg_catalog.pg_extension_config_dump('projector.projections', '');
SELECT pg_catalog.pg_extension_config_dump('projector.projections_projection_id_seq', '');
SELECT pg_catalog.pg_extension_config_dump('projector.projection_offsets', '');
SELECT pg_catalog.pg_extension_config_dump('projector.projection_cursors', '');
SELECT pg_catalog.pg_extension_config_dump('projector.projection_deltas', '');
SELECT pg_catalog.pg_extension_config_dump('projector.projection_digests', '');
SELECT pg_catalog.pg_extension_config_dump('projector.apply_outbox', '');
SELECT pg_catalog.pg_extension_config_dump('projector.projection_failures', '');
SELECT pg_catalog.pg_extension_config_dump('projector.projection_failures_id_seq', '');
SELECT pg_catalog.pg_extension_config_dump('projector.projection_runs', '');
SELECT pg_catalog.pg_extension_config_dump('projector.projection_runs_id_seq', '');
SELECT pg_catalog.pg_extension_config_dump('projector.projection_run_slices', '');
SELECT pg_catalog.pg_extension_config_dump('projector.audit_log', '');
SELECT pg_catalog.pg_extension_config_dump('projector.audit_log_id_seq', '');
