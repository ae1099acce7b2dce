"""Checks of our own tables."""
from ..text import count
from .finding import Finding, ok

TRIGGERS = ("events_before_statement", "events_before_insert", "events_capture", "events_append_only")

# The indexes that are not constraints, with the command that makes them again.
INDEXES = {
    "projection_cursors_behind_idx": "ON projector.projection_cursors (projection_id, tenant_id)"
                                     " WHERE state IN ('replaying', 'switching')",
    "apply_outbox_claim_idx": "ON projector.apply_outbox (projection_id, tenant_id, log_seq)"
                              " WHERE status = 'pending' AND NOT held",
    "apply_outbox_retry_idx": "ON projector.apply_outbox (projection_id, tenant_id, next_attempt_at)"
                              " WHERE status = 'failed'",
    "apply_outbox_due_idx": "ON projector.apply_outbox (projection_id, next_attempt_at) WHERE status = 'failed'",
    "apply_outbox_dead_idx": "ON projector.apply_outbox (projection_id, tenant_id, log_seq) WHERE status = 'dead'",
    "apply_outbox_blocked_idx": "ON projector.apply_outbox (projection_id, tenant_id, aggregate_id, sequence_number)"
                                " WHERE held OR status IN ('failed', 'dead')",
    "projection_failures_open_idx": "ON projector.projection_failures (projection_id, log_seq)"
                                    " WHERE resolved_at IS NULL",
    "projection_failures_tenant_idx": "ON projector.projection_failures (projection_id, tenant_id)"
                                      " WHERE resolved_at IS NULL",
    "projection_failures_resolved_idx": "ON projector.projection_failures (resolved_at) WHERE resolved_at IS NOT NULL",
    "projection_failures_skipped_idx": "ON projector.projection_failures (projection_id, log_seq)"
                                       " WHERE resolution = 'skipped' AND metadata ? 'skip_reason'",
    "projection_runs_active_idx": "ON projector.projection_runs (projection_id, tenant_id)"
                                  " WHERE state IN ('queued', 'running')",
    "projection_runs_next_idx": "ON projector.projection_runs (state, (-id)) WHERE state IN ('queued', 'running')",
    "projection_runs_finished_idx": "ON projector.projection_runs (finished_at) WHERE finished_at IS NOT NULL",
}
UNIQUE = {"projection_failures_open_idx", "projection_failures_skipped_idx", "projection_runs_active_idx"}
MANY_DEAD_ROWS = 10000


def check_triggers(context):
    """A disabled trigger of the log lets events in that no projection will see."""
    state = {row["tgname"]: row["tgenabled"] for row in context.server.rows(
        "SELECT tgname, tgenabled FROM pg_catalog.pg_trigger WHERE tgrelid = 'projector.events'::regclass"
        " AND NOT tgisinternal")}
    found = []
    for name in TRIGGERS:
        if name not in state:
            found.append(Finding("fail", "triggers", f"trigger {name} of projector.events is missing",
                                 "restore the extension from a backup, or dump and restore the database"))
        elif state[name] in ("D", b"D", "R", b"R"):
            found.append(Finding("fail", "triggers", f"trigger {name} of projector.events is disabled: events that "
                                 "are appended now are not checked or not queued",
                                 f"ALTER TABLE projector.events ENABLE TRIGGER {name}; then rebuild the projections"))
    return found or ok("triggers", "the triggers of the log are enabled")


def check_sequence(context):
    row = context.server.row("SELECT s.seqcache, s.seqincrement, s.seqcycle FROM pg_catalog.pg_sequence s"
                             " WHERE s.seqrelid = 'projector.events_log_seq_seq'::regclass")
    if row["seqcache"] != 1 or row["seqincrement"] < 1 or row["seqcycle"]:
        return [Finding("fail", "sequence", "the sequence of the log does not number events in their order",
                        "ALTER SEQUENCE projector.events_log_seq_seq CACHE 1 INCREMENT 1 NO CYCLE")]
    return ok("sequence", "the log is numbered one by one")


def check_indexes(context):
    state = {row["relname"]: row["valid"] for row in context.server.rows(
        "SELECT c.relname, i.indisvalid AND i.indisready AS valid FROM pg_catalog.pg_index i"
        " JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid"
        " WHERE c.relnamespace = 'projector'::regnamespace")}
    found = [Finding("fail", "indexes", f"index {name} is missing: work slows down, or stops",
                     f"CREATE {'UNIQUE ' if name in UNIQUE else ''}INDEX {name} {definition}")
             for name, definition in INDEXES.items() if name not in state]
    found += [Finding("fail", "indexes", f"index {name} is not valid", f"REINDEX INDEX projector.{context.quote(name)}")
              for name, valid in state.items() if not valid]
    return found or ok("indexes", f"{count(len(state), 'index', 'indexes')} of projector are in place")


def check_autovacuum(context):
    rows = context.server.rows(
        "SELECT c.relname FROM pg_catalog.pg_class c CROSS JOIN LATERAL pg_catalog.pg_options_to_table(c.reloptions) o"
        " WHERE c.relnamespace = 'projector'::regnamespace AND c.relkind IN ('r', 'p')"
        "   AND o.option_name = 'autovacuum_enabled' AND NOT o.option_value::boolean ORDER BY 1")
    found = [Finding("fail" if row["relname"] == "apply_outbox" else "warn", "autovacuum",
                     f"autovacuum is disabled for projector.{row['relname']}: it grows",
                     f"ALTER TABLE projector.{context.quote(row['relname'])} RESET (autovacuum_enabled)") for row in rows]
    return found or ok("autovacuum", "it is enabled for the tables of projector")


def check_dead_rows(context):
    row = context.server.row(
        "SELECT n_dead_tup, n_live_tup, last_autovacuum FROM pg_catalog.pg_stat_all_tables"
        " WHERE relid = 'projector.apply_outbox'::regclass")
    if row is not None and row["n_dead_tup"] > max(MANY_DEAD_ROWS, 2 * row["n_live_tup"]):
        return [Finding("warn", "outbox", f"projector.apply_outbox has {row['n_dead_tup']:,} dead rows for "
                        f"{row['n_live_tup']:,} live ones: vacuum does not keep up, or an old snapshot prevents it",
                        "VACUUM projector.apply_outbox; if that removes nothing, see the lines on transactions")]
    return ok("outbox", "the outbox has few dead rows")
