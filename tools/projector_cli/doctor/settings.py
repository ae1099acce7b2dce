"""Checks of settings: those of the server, and those stored for databases and roles."""
from .finding import Finding, ok

RESET = "ALTER SYSTEM RESET {0}; SELECT pg_reload_conf()"

# name, value that is risky, level, what it means, what to do
RISKY = (
    ("fsync", "off", "fail", "a crash of the machine can destroy the database", RESET),
    ("full_page_writes", "off", "fail", "a crash of the machine can destroy pages", RESET),
    ("zero_damaged_pages", "on", "fail", "damaged pages are emptied without an error", RESET),
    ("autovacuum", "off", "fail", "the outbox is never vacuumed, and grows", RESET),
    ("track_counts", "off", "fail", "autovacuum does not know what to vacuum", RESET),
    ("synchronous_commit", "off", "info", "a crash can lose the last commits: events, and what was applied of them, "
     "together", RESET),
    ("session_replication_role", "replica", "fail", "triggers do not fire: what is appended is neither checked nor "
     "queued", RESET),
    ("default_transaction_isolation", "repeatable read", "warn", "rebuild, retry, verify and wait are refused", RESET),
    ("default_transaction_isolation", "serializable", "warn", "rebuild, retry, verify and wait are refused", RESET),
    ("idle_in_transaction_session_timeout", "0", "info", "a session that forgets to commit holds back vacuum, and "
     "projections in mode follow or log order", "ALTER SYSTEM SET {0} = '10 min'; SELECT pg_reload_conf()"),
    ("projector.enabled", "off", "warn", "no worker runs: events queue", RESET),
    ("projector.verify_payload", "off", "warn", "a changed payload is not noticed", RESET),
    ("projector.guard_ddl", "off", "warn", "DDL that breaks a projection is not refused", RESET),
    ("projector.retention", "0", "info", "failures and runs are kept permanently", RESET),
    ("projector.audit_retention", "0", "info", "the record of who did what is kept permanently", RESET),
    ("projector.progress_interval", "0", "info", "a rebuild in the foreground does not report its progress", RESET),
)


def check_settings(context):
    found = [Finding(level, "settings", f"{name} = {value}: {meaning}", remedy.format(name))
             for name, value, level, meaning, remedy in RISKY if context.setting(name) == value]
    offset = context.setting("projector.clock_offset")
    if offset not in (None, "0"):
        found.append(Finding("warn", "settings", f"projector.clock_offset = {offset}: the clock of retries is moved, "
                             "which is for tests", RESET.format("projector.clock_offset")))
    if not any(finding.level in ("warn", "fail") for finding in found):
        found = ok("settings", "no setting of the server is dangerous") + found
    return found


def check_stored_settings(context):
    """ALTER DATABASE or ROLE ... SET: what other sessions than this one get."""
    dangerous = {(name, value): (level, meaning) for name, value, level, meaning, _ in RISKY
                 if level in ("warn", "fail")}
    found = []
    for row in context.server.rows(
            "SELECT d.datname, r.rolname, unnest(s.setconfig) AS setting FROM pg_catalog.pg_db_role_setting s"
            " LEFT JOIN pg_catalog.pg_database d ON d.oid = s.setdatabase"
            " LEFT JOIN pg_catalog.pg_roles r ON r.oid = s.setrole"
            " WHERE s.setdatabase IN (0, (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database()))"):
        name, _, value = row["setting"].partition("=")
        known = dangerous.get((name, {"false": "off", "no": "off", "0": "off"}.get(value, value))) or \
            dangerous.get((name, value))
        if known is None:
            continue
        level, meaning = known
        whose = f"ROLE {context.quote(row['rolname'])}" if row["rolname"] else f"DATABASE {context.quote(row['datname'])}"
        if row["rolname"] and row["datname"]:
            whose += f" IN DATABASE {context.quote(row['datname'])}"
        found.append(Finding(level, "stored settings", f"{name} = {value} for {whose}: {meaning}",
                             f"ALTER {whose} RESET {name}"))
    return found
