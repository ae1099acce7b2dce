"""Checks of what stays open: transactions and slots that hold back vacuum or the end of the log."""
from ..text import duration
from .finding import Finding, ok


def literal(context, value):
    return context.server.value("SELECT pg_catalog.quote_literal(%s)", value)


def check_prepared(context):
    rows = context.server.rows(
        "SELECT gid, owner, now() - prepared AS age FROM pg_catalog.pg_prepared_xacts"
        " WHERE database = current_database() AND now() - prepared >= %s ORDER BY prepared", context.old)
    found = [Finding("warn", "transactions", f"prepared transaction {literal(context, row['gid'])} of {row['owner']} is "
                     f"{duration(row['age'])} old: it keeps its locks and holds back vacuum",
                     f"COMMIT PREPARED {literal(context, row['gid'])}, or ROLLBACK PREPARED") for row in rows]
    return found or ok("transactions", "no prepared transaction is forgotten")


def check_appenders(context):
    """Projections in mode follow and in log order wait for these."""
    rows = context.server.rows(
        "SELECT pid, gid, role, state, clock_timestamp() - since AS age FROM projector.appenders()"
        " WHERE pid IS NOT NULL AND clock_timestamp() - since >= %s", context.old)
    found = [Finding("warn", "log", f"process {row['pid']} ({row['role']}, {row['state']}) appended "
                     f"and has not ended for {duration(row['age'])}: readers of the log wait for it",
                     f"SELECT pg_terminate_backend({row['pid']})") for row in rows]
    return found or ok("log", "no open transaction holds back the end of the log")


def check_old_snapshots(context):
    """Roles that may not see other sessions see none here."""
    rows = context.server.rows(
        "SELECT pid, usename, state, now() - xact_start AS age FROM pg_catalog.pg_stat_activity"
        " WHERE backend_xmin IS NOT NULL AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
        "   AND now() - xact_start >= %s ORDER BY xact_start LIMIT 5", context.old)
    return [Finding("warn", "vacuum", f"process {row['pid']} ({row['usename']}, {row['state']}) has had a snapshot "
                    f"for {duration(row['age'])}: vacuum cannot remove rows that were deleted since",
                    f"SELECT pg_terminate_backend({row['pid']})") for row in rows]


def check_slots(context):
    rows = context.server.rows(
        "SELECT slot_name, slot_type FROM pg_catalog.pg_replication_slots"
        " WHERE NOT active AND (xmin IS NOT NULL OR catalog_xmin IS NOT NULL OR restart_lsn IS NOT NULL)"
        " AND NOT temporary ORDER BY 1")
    return [Finding("warn", "slots", f"{row['slot_type']} replication slot \"{row['slot_name']}\" is not in use: it keeps "
                    "WAL, and may hold back vacuum",
                    f"SELECT pg_drop_replication_slot({literal(context, row['slot_name'])})") for row in rows]
