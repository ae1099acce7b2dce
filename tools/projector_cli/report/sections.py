"""Owns the parts of the page, from top to bottom.  Each returns HTML, or nothing."""
from ..text import capped, count, duration
from . import charts
from .markup import UTC, code, escape, more, say, tag, when

LEVELS = {"ok": "ok", "warning": "warn", "critical": "crit"}
STATES = {"ok": "ok", "blocked": "crit", "no_worker": "crit", "failing": "warn", "lagging": "warn", "waiting": "warn",
          "paused": "warn", "dormant": "warn"}
RUN_STATES = {"completed": "ok", "failed": "crit", "cancelled": "warn", "running": "info", "queued": "info"}


def section(identifier, title, content, note=""):
    head = tag("h2", title) + (tag("p", note, "note") if note else "")
    return f'<section id="{identifier}">{head}{content}</section>'


def badge(text, css):
    return f'<span class="badge {css}">{escape(text)}</span>'


def facts(pairs):
    """A list of names and values; empty values are left out."""
    return "<dl>" + "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in pairs if value) + "</dl>"


def health(data):
    """How it is, in a word and in figures."""
    level, reason = data["health"]["level"], data["health"]["reason"]
    titles = {"ok": "Healthy", "warning": "Warning", "critical": "Critical"}
    if len(reason) > 240:
        reason = reason[:240] + " ..."       # the whole is the first problem below
    what = say(reason) if reason else "No problems. Every projection is applied."
    return (f'<header class="health {LEVELS[level]}"><p class="over">projector &middot; database {say(data["database"])}'
            f' &middot; {when(data["created_at"])} UTC</p><h1>{titles[level]}</h1><p class="reason">{what}</p>'
            f'{summary(data)}</header>')


def summary(data):
    """The figures that an incident begins with."""
    projections, found = data["projections"], data["problems"]
    states = ", ".join(f"{row['projections']:,} {escape(row['state'])}" for row in projections["states"])
    return facts([("Critical", f"{found['critical']:,}"), ("Warnings", f"{found['warnings']:,}"),
                  ("Events waiting", capped(projections["lag_events"])), ("Dead events", capped(projections["dead"])),
                  ("Projections", states or "none"), ("Workers", f"{len(data['workers']):,}")])


def problems(data):
    found = data["problems"]
    if not found["rows"]:
        return ""
    items = []
    for row in found["rows"]:
        place = []
        if row["projection_name"] is not None:
            place.append(tag("strong", say(row["projection_name"])))
        if row["tenant_id"] is not None:
            place.append("tenant " + tag("strong", say(row["tenant_id"])))
        if row["events"]:
            place.append(f"{capped(row['events'])} waiting")
        if row["since"] is not None:
            place.append("since " + when(row["since"]))
        items.append(f'<li class="{LEVELS[row["level"]]}"><p>{badge(row["problem"], LEVELS[row["level"]])} '
                     f'{" &middot; ".join(place) or "all projections"}</p>'
                     f'<p class="detail">{say(row["detail"] or "")}</p><pre>{say(row["remedy"] or "")}</pre></li>')
    return section("problems", "Problems", tag("ol", "".join(items), "problems") + more(found["more"], "problem"),
                   "Worst first, with the command that helps.")


def backlog_row(pair, most_events, most_lag):
    parts = [(pair["dead"], "crit", "dead"), (pair["failed"], "warn", "failed"), (pair["held"], "held", "held")]
    rest = max(0, (pair["lag_events"] or 0) - sum(value or 0 for value, _, _ in parts))
    parts.append((rest, "info", "waiting"))
    lag = pair["lag_time"].total_seconds() if pair["lag_time"] else 0
    tenant = say(pair["tenant_id"])
    digest = ""
    if pair["digest"]:
        digest = f'<span class="digest" title="{escape(pair["digest"])}">{escape(pair["digest"][:8])}</span>'
    state = "" if pair["state"] == "ok" else badge(pair["state"], STATES.get(pair["state"], "info"))
    return (f'<tr><th scope="row">{tenant} {state}</th>'
            f'<td class="chart">{charts.share_bar(parts, most_events, "backlog")}</td>'
            f'<td class="n">{capped(pair["lag_events"])}</td>'
            f'<td class="chart">{charts.share_bar([(lag, "lag", "s")], most_lag, "lag")}</td>'
            f'<td class="n">{duration(pair["lag_time"]) or "&ndash;"}</td><td class="d">{digest}</td></tr>')


def pair_table(projection):
    pairs = projection["pairs"]
    if not pairs:
        return tag("p", "No tenant is listed here." if projection["pairs_total"] else "No tenants yet.", "more")
    most_events = max(pair["lag_events"] or 0 for pair in pairs)
    most_lag = max(pair["lag_time"].total_seconds() if pair["lag_time"] else 0 for pair in pairs)
    body = "".join(backlog_row(pair, most_events, most_lag) for pair in pairs)
    head = ('<thead><tr><th scope="col">Tenant</th><th scope="col" colspan="2">Backlog, events</th>'
            '<th scope="col" colspan="2">Lag</th><th scope="col" class="d">Digest</th></tr></thead>')
    return (f'<table class="pairs">{head}<tbody>{body}</tbody></table>'
            + more(projection["pairs_total"] - len(pairs), "tenant"))


def card(projection):
    state = projection["state"]
    numbers = facts([
        ("Lag", capped(projection["lag_events"]) + (" events" if projection["lag_events"] != 1 else " event")),
        ("Oldest", duration(projection["lag_time"]) or "&ndash;"),
        ("Dead", capped(projection["dead"])),
        ("Tenants not ok", f"{projection['tenants_not_ok']:,}"),
    ]).replace("<dl>", '<dl class="figures">', 1)
    about = facts([
        ("Kind", escape(projection["kind"])), ("Mode", escape(projection["mode"])),
        ("Order", escape(projection["ordering"])), ("Owner", say(projection["owner"])),
        ("Target", say(", ".join(projection["targets"] or []))),
        ("Last rebuilt", when(projection["last_rebuilt"])),
    ])
    stale = any(pair["stale"] for pair in projection["pairs"])
    why = projection["why"] or next((pair["why"] for pair in projection["pairs"] if pair["why"]), None)
    return (f'<article class="card {STATES.get(state, "info")}"><h3>{say(projection["projection_name"])}</h3>'
            f'<p class="badges">{badge(state, STATES.get(state, "info"))}{badge("stale", "warn") if stale else ""}</p>'
            f'{numbers}{tag("p", say(why), "detail") if why else ""}{pair_table(projection)}{about}</article>')


def projections(data):
    found = data["projections"]
    if not found["rows"]:
        return section("projections", "Projections", tag("p", "There are none.", "more"))
    cards = "".join(card(projection) for projection in found["rows"])
    return section("projections", "Projections", f'<div class="cards">{cards}</div>' + more(found["more"], "projection"),
                   "Worst first. Bars compare the tenants of one projection. Digests are of the rows projector wrote.")


def errors(data):
    found = data["errors"]
    if not found["rows"]:
        return ""
    items = []
    for row in found["rows"]:
        example = row["example"]
        dead = row["dead"]
        what = f"{dead:,} dead" + (f", {row['events'] - dead:,} failing" if row["events"] > dead else "") if dead \
            else f"{row['events']:,} failing"
        event = (f"event {example['sequence_number']} ({say(example['event_type'])}) of "
                 f"{say(example['aggregate_id'])}, tenant {say(example['tenant_id'])}")
        items.append(
            f'<li class="{"crit" if dead else "warn"}"><p>{badge(what, "crit" if dead else "warn")} '
            f'<strong>{say(row["projection_name"])}</strong> &middot; {count(row["tenants"], "tenant")} &middot; '
            f'SQLSTATE {code(row["error_code"])}</p><p class="error">{say(row["message"])}</p>'
            + facts([("Example", event), ("Event id", code(example["event_id"]) if example["event_id"] else ""),
                     ("Detail", say(example["detail"]) if example["detail"] else ""),
                     ("Where", say(example["context"]) if example["context"] else ""),
                     ("Trace", code(example["traceparent"]) if example["traceparent"] else ""),
                     ("Correlation", code(example["correlation_id"]) if example["correlation_id"] else ""),
                     ("First", when(row["first_failed_at"])), ("Last", when(row["last_failed_at"]))]) + "</li>")
    return section("errors", "Events that fail", tag("ol", "".join(items), "problems") + more(found["more"], "error"),
                   "By error, with the first event as an example.")


def axis(begin, end):
    middle = begin + (end - begin) / 2
    form = "%H:%M" if (end - begin).total_seconds() <= 26 * 3600 else "%b %d %H:%M"
    return tag("p", "".join(f"<span>{at.astimezone(UTC).strftime(form)}</span>" for at in (begin, middle, end)), "axis")


def failures(data):
    bars = data["failures"]["bars"]
    total = sum(bar["failures"] for bar in bars)
    hours = data["failures"]["hours"]
    unit = "hour" if hours == 1 else f"{hours} hours" if hours < 24 else "day" if hours == 24 else f"{hours // 24} days"
    most = max((bar["failures"] for bar in bars), default=0)
    label = f"{count(total, 'event')} failed for the first time, at most {most:,} per {unit}"
    return section("failures", f"Failures per {unit}",
                   f'<div class="chartbox">{charts.columns(bars, label)}{axis(data["since"], data["created_at"])}</div>',
                   f"{label}. Since {when(data['since'])} UTC.")


def run_row(run, begin, end):
    first = run["started_at"] or run["queued_at"]
    last = run["finished_at"] or end
    css = RUN_STATES.get(run["state"], "info")
    took = duration((last - first).total_seconds()) if run["started_at"] else "not started"
    share = ""
    if run["state"] == "running" and run["total_events"]:
        share = f", {100 * run['processed_events'] / max(run['total_events'], run['processed_events']):.0f} %"
    error = tag("p", say(run["error_message"]), "error") if run["error_message"] else ""
    drawing = charts.span(begin, end, first, last, css, f"run {run['id']}: {run['state']}, {took}")
    return (f'<li><p class="run"><span class="name">{say(run["projection_name"])} &middot; {say(run["tenant_id"])}</span> '
            f'<span class="what">{badge(run["state"], css)} {escape(run["mode"])} {run["id"]}, {took}{share}, '
            f'{count(run["processed_events"] or 0, "event")}</span></p>{drawing}{error}</li>')


def runs(data):
    found = data["runs"]
    if not found["rows"]:
        return ""
    begin, end = data["since"], data["created_at"]
    rows = "".join(run_row(run, begin, end) for run in found["rows"])
    return section("runs", "Runs", tag("ul", rows, "runs") + axis(begin, end) + more(found["more"], "run"),
                   "Rebuilds and catch-ups in the background.")


def workers(data):
    rows = data["workers"]
    if not rows:
        reason = data["no_worker"] or {}
        text = say(reason["reason"]) if reason.get("reason") else "No worker is busy. Idle workers leave."
        return section("workers", "Workers", tag("p", text) +
                       (f"<pre>{say(reason['remedy'])}</pre>" if reason.get("remedy") else ""))
    body = "".join(
        f"<tr><td>{row['pid']}</td><td>{escape(row['activity'])}</td>"
        f"<td>{say(row['projection_name']) if row['projection_name'] is not None else ''}</td>"
        f"<td>{say(row['tenant_id']) if row['tenant_id'] is not None else ''}</td><td>{when(row['since'])}</td></tr>"
        for row in rows)
    head = "<thead><tr><th>Process</th><th>Does</th><th>Projection</th><th>Tenant</th><th>Since</th></tr></thead>"
    return section("workers", "Workers", f'<div class="scroll"><table>{head}<tbody>{body}</tbody></table></div>')


def settings(data):
    body = "".join(f"<tr><td>{code(row['name'])}</td><td>{code(row['value'])}</td>"
                   f"<td>{code(row['default_value'] or '')}</td><td>{escape(row['source'])}</td></tr>"
                   for row in data["settings"])
    if not body:
        return section("settings", "Settings", tag("p", "All have their defaults."))
    head = "<thead><tr><th>Setting</th><th>Value</th><th>Default</th><th>From</th></tr></thead>"
    return section("settings", "Settings that differ from the defaults",
                   f'<div class="scroll"><table>{head}<tbody>{body}</tbody></table></div>')


def footer(data):
    return ("<footer>" + facts([
        ("Extension", "projector " + escape(data["extension_version"])),
        ("Server", "PostgreSQL " + escape(data["server_version"])),
        ("Server started", when(data["started_at"])), ("Database", say(data["database"])),
        ("Read by", say(data["role"])), ("Written", when(data["created_at"])),
        ("Timelines since", when(data["since"]))])
        + tag("p", "All times are UTC. Errors can quote the data of your users: treat this page as you treat the data.",
              "note") + "</footer>")


ALL = (health, problems, errors, projections, failures, runs, workers, settings, footer)
