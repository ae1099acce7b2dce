-- Functions that check read models and change nothing in them.

-- The digest of a tenant's read model, computed from its rows.  For folds a
-- digest is also updated with every batch (projector.status_by_tenant), and
-- both must agree.  For other kinds the computed digest is stored.
-- Tables: projection_digests.
CREATE FUNCTION projector_digest(name text, tenant_id text) RETURNS text
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_digest';
COMMENT ON FUNCTION projector_digest IS 'the digest of a tenant''s read model';

-- One digest for all projections of a tenant.
-- Tables: projection_digests.
CREATE FUNCTION projector_digest_all(tenant_id text) RETURNS text
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_digest_all';
COMMENT ON FUNCTION projector_digest_all IS
    'the digest of all read models of a tenant';

-- Compares the stored digests of folds' read models with the rows, both as one
-- snapshot sees them, without locks.  matches is false if rows have been
-- changed from outside, and null while a digest is being recomputed after the
-- table was altered.
-- Tables: none are changed.
CREATE FUNCTION projector_check_digests(
    name text DEFAULT NULL, tenant_id text DEFAULT NULL)
RETURNS TABLE (projection_name text, tenant_id text, matches boolean,
    kept_digest text, found_digest text)
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_check_digests';
COMMENT ON FUNCTION projector_check_digests IS
    'compare kept digests with the rows';

-- Replays what a projection has applied, compares the result with the read
-- model, and rolls it back.  Returns one row for each tenant, with some of the
-- rows that differ.
-- Tables: none are changed.
CREATE FUNCTION projector_verify(name text, tenant_id text DEFAULT NULL)
RETURNS TABLE (tenant_id text, matches boolean, live_digest text,
    rebuilt_digest text, differing_rows bigint, sample jsonb)
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_verify';
COMMENT ON FUNCTION projector_verify IS
    'compare a read model with what the log implies';

-- The rows that would change if the projection were altered in this way and
-- rebuilt.
-- Tables: none are changed.
CREATE FUNCTION projector_preview(
    name text, changes jsonb, tenant_id text, aggregate_id text DEFAULT NULL,
    max_rows integer DEFAULT 100)
RETURNS TABLE (key text, live jsonb, rebuilt jsonb)
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_preview';
COMMENT ON FUNCTION projector_preview IS
    'which rows a changed definition would change';

-- The events that have produced one row, in order, and for folds the row after
-- each.
-- Tables: none are changed.
CREATE FUNCTION projector_explain(name text, tenant_id text, key text)
RETURNS TABLE (log_seq bigint, aggregate_id text, sequence_number bigint,
    event_type text, recorded_at timestamptz, payload jsonb, state jsonb)
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'projector_explain';
COMMENT ON FUNCTION projector_explain IS 'the events that built one row';
