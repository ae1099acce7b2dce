"""Owns what the page shows: a plain structure, which --json prints as it is.

Everything has a limit, and what is left out is counted.  So the page stays small
however many tenants there are, and however long their errors are.
"""
import datetime

from ..states import PRECEDENCE, URGENCY, place

PROJECTIONS = 50
PAIRS = 50
ERRORS = 20
ERROR_LENGTH = 500
PROBLEMS = 50
RUNS = 30
BARS = 48               # of the timeline, at most
NO_TIME = datetime.timedelta()

SETTINGS = """
SELECT name, current_setting(name) AS value, boot_val AS default_value, source FROM pg_catalog.pg_settings
WHERE setting IS DISTINCT FROM boot_val AND name <> 'projector.tenant_id'
  AND (name LIKE 'projector.%' OR name IN ('fsync', 'full_page_writes', 'synchronous_commit', 'autovacuum',
       'max_worker_processes', 'max_prepared_transactions', 'shared_preload_libraries', 'statement_timeout',
       'lock_timeout', 'idle_in_transaction_session_timeout', 'session_replication_role',
       'default_transaction_isolation', 'hot_standby_feedback', 'wal_level'))
ORDER BY name NOT LIKE 'projector.%', name"""


def limited(rows, limit, total=None):
    """The rows, and how many more there are."""
    total = len(rows) if total is None else total
    return {"rows": rows[:limit], "more": max(0, total - limit)}


def cut(text, length=ERROR_LENGTH):
    """At most that many characters, and how many were cut."""
    if text is None or len(text) <= length:
        return text
    return f"{text[:length]}... ({len(text) - length:,} more characters)"


def cut_columns(rows, *columns):
    for row in rows:
        for column in columns:
            row[column] = cut(row[column])
    return rows


def collect_problems(server):
    rows = server.rows("SELECT p.*, count(*) OVER () AS total, count(*) FILTER (WHERE p.level = 'critical') OVER ()"
                       " AS critical FROM projector.problems p LIMIT %s", PROBLEMS)
    total, critical = (rows[0]["total"], rows[0]["critical"]) if rows else (0, 0)
    found = limited(cut_columns(rows, "detail", "remedy"), PROBLEMS, total)
    return dict(found, critical=critical, warnings=total - critical)


def health_of(problems):
    """What projector_health() says: the first problem in one line.  Asking it would take as long again."""
    if not problems["rows"]:
        return {"level": "ok", "reason": ""}
    first = problems["rows"][0]
    parts = [first["problem"] + ":", first["projection_name"]]
    if first["tenant_id"] is not None:
        parts.append(f"tenant {first['tenant_id']}:")
    parts.append(first["detail"])
    return {"level": first["level"], "reason": " ".join(part for part in parts if part)}


def read_pairs(server):
    """Of each projection the pairs that are worst off, and the sums over all of its pairs.

    The view is read once, because that takes most of the time where there are many tenants.
    """
    return server.rows(f"""
        WITH pair AS (
            SELECT s.*, row_number() OVER (PARTITION BY s.projection_name
                       ORDER BY {place('s.state')}, s.lag_time DESC NULLS LAST, s.tenant_id) AS place,
                   count(*) OVER (PARTITION BY s.projection_name) AS pairs,
                   min({place('s.state', PRECEDENCE)}) OVER (PARTITION BY s.projection_name) AS worst,
                   count(*) FILTER (WHERE s.state <> 'ok') OVER (PARTITION BY s.projection_name) AS tenants_not_ok,
                   sum(s.lag_events) OVER (PARTITION BY s.projection_name) AS sum_lag_events,
                   max(s.lag_time) OVER (PARTITION BY s.projection_name) AS max_lag_time,
                   sum(s.dead) OVER (PARTITION BY s.projection_name) AS sum_dead
            FROM projector.status_by_tenant s)
        SELECT projection_name, tenant_id, state, left(why, %s) AS why, mode, lag_events, lag_time, pending, held,
               failed, dead, stale, applied_count, last_applied_at, digest, row_count, place, pairs, worst,
               tenants_not_ok, least(10000, sum_lag_events)::bigint AS sum_lag_events, max_lag_time,
               least(10000, sum_dead)::bigint AS sum_dead
        FROM pair WHERE place <= %s ORDER BY place, {place('state')}, lag_time DESC NULLS LAST,
                 projection_name, tenant_id""", ERROR_LENGTH, PAIRS)


SUMS = ("place", "pairs", "worst", "tenants_not_ok", "sum_lag_events", "max_lag_time", "sum_dead")


def read_projections(server, pairs):
    """All projections, worst first, with the state of their worst tenant."""
    rows = server.rows("SELECT name AS projection_name, kind, mode, owner, ordering, targets, created_at"
                       " FROM projector.projections")
    first = {}
    for pair in pairs:
        first.setdefault(pair["projection_name"], pair)
    missing = [row["projection_name"] for row in rows if row["projection_name"] not in first]
    alone = {row["projection_name"]: row for row in server.rows(
        "SELECT * FROM projector.status WHERE projection_name = ANY (%s)", missing)} if missing else {}
    for row in rows:
        name = row["projection_name"]
        if name in first:
            row.update(state=PRECEDENCE[first[name]["worst"] - 1], why=None, pairs_total=first[name]["pairs"],
                       tenants_not_ok=first[name]["tenants_not_ok"], lag_events=first[name]["sum_lag_events"],
                       lag_time=first[name]["max_lag_time"], dead=first[name]["sum_dead"])
        else:
            row.update({key: alone[name][key] for key in ("state", "why", "tenants_not_ok", "lag_events", "lag_time",
                                                          "dead")}, pairs_total=0)
    rows.sort(key=lambda row: (URGENCY.index(row["state"]), -(row["lag_time"] or NO_TIME).total_seconds(),
                               row["projection_name"]))
    return rows


def collect_projections(server):
    pairs = read_pairs(server)
    rows = read_projections(server, pairs)
    shown = rows[:PROJECTIONS]
    names = {row["projection_name"] for row in shown}
    # The pairs come from each projection in turn, so that one cannot fill the page.
    pairs = [pair for pair in pairs if pair["projection_name"] in names][:PAIRS]
    rebuilt = {row["projection_name"]: row["finished_at"] for row in server.rows(
        "SELECT projection_name, max(finished_at) AS finished_at FROM projector.runs"
        " WHERE state = 'completed' AND mode = 'rebuild' GROUP BY 1")}
    for pair in pairs:
        for name in SUMS:
            del pair[name]
    for row in shown:
        row["pairs"] = [pair for pair in pairs if pair["projection_name"] == row["projection_name"]]
        row["last_rebuilt"] = rebuilt.get(row["projection_name"])
    found = limited(shown, PROJECTIONS, len(rows))
    found["states"] = [{"state": state, "projections": sum(row["state"] == state for row in rows)}
                       for state in dict.fromkeys(row["state"] for row in rows)]
    found["lag_events"] = sum(row["lag_events"] or 0 for row in rows)
    found["dead"] = sum(row["dead"] or 0 for row in rows)
    return found


def collect_errors(server):
    """The open failures by error, each with an example, dead ones first."""
    rows = server.rows("""
        WITH open AS (
            SELECT f.*, left(f.error_message, %s) AS message, length(f.error_message) AS message_length
            FROM projector.failures f WHERE f.resolved_at IS NULL ORDER BY f.last_failed_at DESC LIMIT 10000),
        item AS (
            SELECT o.*, coalesce(x.status = 'dead', false) AS dead FROM open o
            LEFT JOIN LATERAL (SELECT q.status FROM projector.outbox q
                WHERE q.projection_name = o.projection_name AND q.log_seq = o.log_seq) x ON true)
        SELECT projection_name, error_code, message, max(message_length) AS message_length,
               count(*) AS events, count(*) FILTER (WHERE dead) AS dead,
               count(DISTINCT tenant_id) AS tenants, min(first_failed_at) AS first_failed_at,
               max(last_failed_at) AS last_failed_at,
               (array_agg(jsonb_build_object('tenant_id', tenant_id, 'aggregate_id', aggregate_id,
                   'sequence_number', sequence_number, 'event_type', event_type, 'event_id', event_id,
                   'context', left(error_context, %s), 'detail', left(error_detail, %s),
                   'traceparent', traceparent, 'correlation_id', left(correlation_id, 100))
                   ORDER BY log_seq))[1] AS example,
               count(*) OVER () AS total
        FROM item GROUP BY projection_name, error_code, message
        ORDER BY count(*) FILTER (WHERE dead) DESC, count(*) DESC, projection_name, message LIMIT %s""",
                       ERROR_LENGTH, ERROR_LENGTH, ERROR_LENGTH, ERRORS)
    total = rows[0]["total"] if rows else 0
    for row in rows:
        if row["message_length"] > ERROR_LENGTH:
            row["message"] += f"... ({row['message_length'] - ERROR_LENGTH:,} more characters)"
    return limited(rows, ERRORS, total)


def bucket_for(length):
    """The width of a bar: an hour, or so much that the timeline has at most BARS."""
    for hours in (1, 2, 3, 6, 12, 24, 48, 168, 720):
        if length <= datetime.timedelta(hours=hours * BARS):
            return hours
    return int(length.total_seconds() // 3600 // BARS) + 1


def collect_failures(server, begin, end):
    """How many events failed first in each interval.  Bars begin at whole intervals."""
    hours = bucket_for(end - begin)
    step = datetime.timedelta(hours=hours)
    rows = server.rows(
        "SELECT date_bin(%s, first_failed_at, 'epoch') AS bucket, count(*) AS failures FROM projector.failures"
        " WHERE first_failed_at >= date_bin(%s, %s, 'epoch') AND first_failed_at <= %s"
        "   AND resolution IS DISTINCT FROM 'skipped' GROUP BY 1", step, step, begin, end)
    found = {row["bucket"]: row["failures"] for row in rows}
    at = server.value("SELECT date_bin(%s, %s, 'epoch')", step, begin)
    bars = []
    while at <= end:
        bars.append({"at": at, "failures": found.get(at, 0)})
        at += step
    return {"hours": hours, "bars": bars}


def collect_runs(server, begin):
    rows = server.rows("""
        SELECT r.id, r.projection_name, r.tenant_id, r.mode, r.state, r.queued_at, r.started_at, r.finished_at,
               r.processed_events, r.total_events, r.error_code, r.error_message, r.requested_by,
               count(*) OVER () AS total
        FROM projector.runs r WHERE coalesce(r.finished_at, now()) >= %s
        ORDER BY r.state NOT IN ('running', 'failed'), r.id DESC LIMIT %s""", begin, RUNS)
    total = rows[0]["total"] if rows else 0
    rows.sort(key=lambda row: row["started_at"] or row["queued_at"])
    return limited(cut_columns(rows, "error_message"), RUNS, total)


def collect_workers(server):
    return server.rows("SELECT w.pid, w.activity, w.since, w.tenant_id, p.name AS projection_name"
                       " FROM projector.worker_activity() w LEFT JOIN projector.projections p"
                       " USING (projection_id) ORDER BY w.slot")


def collect(server, begin):
    """Everything on the page, in one snapshot."""
    with server.connection.transaction():
        server.connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        now = server.value("SELECT now()")
        begin = begin or now - datetime.timedelta(hours=24)
        problems = collect_problems(server)
        return {
            "database": server.database,
            "role": server.user,
            "created_at": now,
            "since": begin,
            "extension_version": server.version,
            "server_version": server.value("SELECT current_setting('server_version')"),
            "started_at": server.value("SELECT pg_postmaster_start_time()"),
            "health": health_of(problems),
            "problems": problems,
            "projections": collect_projections(server),
            "errors": collect_errors(server),
            "failures": collect_failures(server, begin, now),
            "runs": collect_runs(server, begin),
            "workers": collect_workers(server),
            "no_worker": server.row("SELECT reason, remedy FROM projector.no_worker()"),
            "settings": server.rows(SETTINGS),
        }
