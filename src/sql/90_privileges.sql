-- Nobody but the extension's owner may do anything; the README says what to
-- grant to an appender, a reader and a projection's owner.
REVOKE ALL ON ALL TABLES IN SCHEMA projector FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA projector FROM PUBLIC;
REVOKE ALL ON FUNCTION
    projector_append, projector_append_batch,
    projector_create, projector_alter, projector_set_mode,
    projector_pause, projector_resume, projector_drop, projector_adopt,
    projector_drain, projector_retry, projector_reset, projector_is_replay,
    projector_requeue, projector_requeue_dead, projector_skip,
    projector_unskip, projector_note, projector_outbox_report,
    projector_outbox_stats, projector_worker_start, projector_worker_stop,
    projector_rebuild, projector_rebuild_all, projector_catch_up,
    projector_clear, projector_start_run, projector_cancel_run,
    projector_wait, projector_wait_log, projector_blockers, projector_prune,
    projector_digest, projector_digest_all, projector_check_digests,
    projector_verify,
    projector_preview, projector_explain
    FROM PUBLIC;

-- Policies and triggers on users' tables call these, whoever writes the tables.
GRANT EXECUTE ON FUNCTION
    projector_tenant_id, projector.in_projection, projector.guard_tenant
    TO PUBLIC;

-- The views call this, whoever reads them; it shows nothing to others.
GRANT EXECUTE ON FUNCTION projector.worker_activity TO PUBLIC;

-- A dump carries the data along, and the sequences that number it.
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
