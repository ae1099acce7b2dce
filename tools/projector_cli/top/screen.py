"""Owns the layout: a sample and a size become lines of text.

Nothing here touches the terminal, so that any size can be tested.  A line is a list of
(text, style) pieces whose widths add up to the width of the screen at most.  Text of
users goes through visible(), so that no line holds a control character.
"""
import time

from ..states import URGENCY
from ..text import bar, capped, duration, fit, visible, width

STYLES = {"blocked": "bad", "no_worker": "bad", "dormant": "bad", "failing": "warn", "paused": "warn",
          "lagging": "warn", "waiting": "warn", "ok": "good"}
KEYS = "p pause  r resume  u requeue  c cancel run  Tab list  o order  q quit"
SMALLEST = (40, 10)


def rank(row):
    state = row["state"]
    return URGENCY.index(state) if state in URGENCY else len(URGENCY)


def ordered(projections, by_name):
    """Worst first, or by name."""
    if by_name:
        return sorted(projections, key=lambda row: row["projection_name"])
    return sorted(projections, key=lambda row: (rank(row), row["projection_name"]))


def summary(sample):
    counts = {}
    for row in sample.projections:
        counts[row["state"]] = counts.get(row["state"], 0) + 1
    parts = [f"{counts[state]:,} {state}" for state in URGENCY if counts.get(state)]
    total = len(sample.projections)
    return f"{total:,} projection{'' if total == 1 else 's'}" + (": " + ", ".join(parts) if parts else "")


def header(view, columns):
    sample = view.sample
    place = f"projector top  {visible(view.place)}"
    clock = time.strftime("%H:%M:%S", time.localtime(sample.taken)) if sample.taken else "--:--:--"
    lines = [[(fit(place, columns - 9), "title"), (" " + clock, "title")]]
    if sample.error:
        lines.append([(fit("NO CONNECTION, trying again: " + visible(sample.error), columns), "bad")])
    elif sample.taken is None:
        lines.append([(fit("reading ...", columns), "dim")])
    else:
        lines.append([(fit(summary(sample), columns), "plain")])
    return lines


def window(length, room, chosen):
    """The first row to show so that the chosen one is visible."""
    if length <= room:
        return 0
    return max(0, min(chosen - room // 2, length - room))


def per_second(rate):
    """A rate; nothing if it is 0 or not known."""
    if not rate:
        return ""
    return f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.1f}/s"


def projection_line(row, sample, columns, chosen):
    name_width = max(14, min(40, columns - 62))
    rate = sample.rates.get(row["projection_name"])
    pieces = [
        (fit(visible(row["projection_name"]), name_width), "plain"),
        (" " + fit(row["mode"], 7), "dim"),
        (" " + fit(row["state"], 10), STYLES.get(row["state"], "plain")),
        (" " + fit(capped(row["lag_events"]), 7, right=True), "plain"),
        (" " + fit(duration(row["lag_time"]), 11, right=True), "plain"),
        (" " + fit(per_second(rate), 9, right=True), "plain"),
        (" " + fit(capped(row["dead"]) if row["dead"] else "", 7, right=True), "bad"),
    ]
    left = columns - sum(width(text) for text, _ in pieces)
    if left > 1:
        pieces.append((" " + fit(visible(row["why"] or ""), left - 1), "dim"))
    return [(text, "chosen") for text, _ in pieces] if chosen else pieces


def projection_head(columns):
    name_width = max(14, min(40, columns - 62))
    text = " ".join([fit("PROJECTION", name_width), fit("MODE", 7), fit("STATE", 10), fit("LAG", 7, True),
                     fit("OLDEST", 11, True), fit("RATE", 9, True), fit("DEAD", 7, True), "WHY"])
    return [(fit(text, columns), "head")]


def run_line(row, columns, chosen):
    what = visible(row["projection_name"] or "all")
    if row["tenant_id"] is not None:
        what += ", " + visible(row["tenant_id"])
    number = "" if row["run_id"] is None else str(row["run_id"])
    percent = float(row["percent"] or 0)
    name_width = max(16, columns - 62)
    bar_width = 20
    pieces = [
        (fit(number, 6, right=True), "plain"),
        (" " + fit(what, name_width), "plain"),
        (" " + fit(row["mode"] or "", 9), "dim"),
        (" " + bar(percent / 100, bar_width), "good"),
        (fit("queued" if row["state"] == "queued" else f"{percent:.0f} %", 7, right=True), "plain"),
        (fit("" if row["per_second"] is None else f"{row['per_second']:,}/s", 9, right=True), "plain"),
        (fit(duration(row["time_left"]), 9, right=True), "plain"),
    ]
    return [(text, "chosen") for text, _ in pieces] if chosen else pieces


def clip(pieces, columns):
    """Cut the pieces at the edge of the screen."""
    kept, used = [], 0
    for text, style in pieces:
        if used + width(text) > columns:
            text = fit(text, columns - used)
        if text:
            kept.append((text, style))
            used += width(text)
    return kept


def worker_line(row, columns):
    what = row["activity"]
    if row["projection_name"] is not None:
        what += f" {visible(row['projection_name'])}"
    if row["tenant_id"] is not None:
        what += f", tenant {visible(row['tenant_id'])}"
    return [(fit(f"{row['pid']:>8}", 8), "plain"), (" " + fit(duration(row["time"]), 11, right=True), "dim"),
            (" " + fit(what, columns - 21), "plain")]


def heading(text, columns):
    return [(fit(text, columns), "head")]


def sections(view, columns, rows):
    """The three lists.  Workers and runs get a part of the screen; projections get the rest."""
    sample = view.sample
    listed = view.listed()
    room = rows - 3         # without the two lines of the header and the last line
    runs_room = min(len(sample.runs), max(2, room // 4))
    workers_room = min(max(1, len(sample.workers)), max(1, room // 6))
    projections_room = room - 2 - workers_room - (runs_room + 1 if sample.runs else 0)

    lines = [projection_head(columns)]
    first = window(len(listed), projections_room, view.chosen)
    for i, row in enumerate(listed[first:first + projections_room], first):
        lines.append(clip(projection_line(row, sample, columns, view.focus == "projections" and i == view.chosen), columns))
    lines += [[]] * (projections_room + 1 - len(lines))
    if sample.runs:
        more = f", {len(sample.runs) - runs_room} more" if len(sample.runs) > runs_room else ""
        lines.append(heading(f"   RUN {len(sample.runs)} active{more}", columns))
        first = window(len(sample.runs), runs_room, view.chosen_run)
        for i, row in enumerate(sample.runs[first:first + runs_room], first):
            lines.append(clip(run_line(row, columns, view.focus == "runs" and i == view.chosen_run), columns))
    more = f", {len(sample.workers) - workers_room} more" if len(sample.workers) > workers_room else ""
    lines.append(heading(f"  WORKER        TIME DOES{more}", columns))
    if sample.workers:
        lines += [worker_line(row, columns) for row in sample.workers[:workers_room]]
    else:
        lines.append([(fit("no worker runs" + (" (idle workers leave)" if not sample.error else ""), columns), "dim")])
    return lines


def footer(view, columns):
    if view.question:
        return [[(fit(visible(view.question) + "  y/n", columns), "ask")]]
    listed, place = view.listed(), ""
    if listed:
        place = f"{view.chosen + 1:,}/{len(listed):,}"
    if view.message:
        return [[(fit(visible(view.message), columns - len(place) - 1), "warn"), (" " + place, "dim")]]
    return [[(fit(KEYS, columns - len(place) - 1), "dim"), (" " + place, "dim")]]


def layout(view, columns, rows):
    """All lines of the screen, from top to bottom."""
    if columns < SMALLEST[0] or rows < SMALLEST[1]:
        return [[(fit(f"needs {SMALLEST[0]} x {SMALLEST[1]}", columns), "bad")]]
    lines = header(view, columns) + sections(view, columns, rows)
    lines = lines[:rows - 1]
    lines += [[]] * (rows - 1 - len(lines))
    return lines + footer(view, columns)
