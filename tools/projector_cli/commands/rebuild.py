"""projector rebuild: start runs in the background, and watch them.

The runs belong to the server: watching changes nothing, and Ctrl-C only ends watching.
"""
import sys
import time

from ..errors import ToolError
from ..output import print_json
from ..text import bar, count, duration, visible

HELP = {"rebuild": "rebuild a read model in the background; --watch shows its progress"}

ACTIVE = ("queued", "running")
POLL_SECONDS = 0.5
LINE_SECONDS = 5        # without a terminal: a line that often


def arguments(parser, _name):
    parser.add_argument("projection", metavar="PROJECTION")
    parser.add_argument("--tenant", metavar="T", help="only this tenant")
    parser.add_argument("--watch", action="store_true", help="show progress until it ends; Ctrl-C stops watching only")


def look(server, ids):
    """The runs together: how many are in each state, and how far they are."""
    found = server.rows("SELECT state, count(*) AS runs, sum(processed_events)::bigint AS processed,"
                        " sum(greatest(total_events, processed_events))::bigint AS total"
                        " FROM projector.runs WHERE id = ANY (%s) GROUP BY state", ids)
    states = {row["state"]: row["runs"] for row in found}
    processed = sum(row["processed"] or 0 for row in found)
    total = sum(row["total"] or 0 for row in found)
    return states, processed, total


class Rate:
    """Events per second over the last few looks."""

    def __init__(self):
        self.looks = []

    def add(self, processed):
        self.looks = (self.looks + [(time.monotonic(), processed)])[-20:]
        (begin, before), (end, now) = self.looks[0], self.looks[-1]
        return (now - before) / (end - begin) if end > begin and now >= before else None


def line(states, processed, total, rate):
    active = [f"{states[name]:,} {name}" for name in ACTIVE if states.get(name)]
    if not states.get("running") and not processed:
        return f"{', '.join(active)}: waits for a worker"
    share = processed / total if total else 0
    parts = [f"{bar(share, 32)} {min(100, share * 100):5.1f} %", f"{processed:,} of about {total:,} events"]
    if rate:
        parts.append(f"{rate:,.0f}/s")
        parts.append(f"{duration((total - processed) / rate)} left")
    if sum(states.values()) > 1:
        parts.append(", ".join(active))
    return "  ".join(parts)


def watch(server, ids, quiet):
    """Until all runs have ended.  Returns how many are in each state."""
    rate, last_line = Rate(), 0.0
    terminal = sys.stderr.isatty()
    while True:
        states, processed, total = look(server, ids)
        if not any(states.get(name) for name in ACTIVE):
            break
        speed = rate.add(processed)
        now = time.monotonic()
        if quiet:
            pass
        elif terminal:
            print("\r\033[K" + line(states, processed, total, speed), end="", file=sys.stderr, flush=True)
        elif now - last_line >= LINE_SECONDS:
            print(line(states, processed, total, speed), file=sys.stderr, flush=True)
            last_line = now
        time.sleep(POLL_SECONDS)
    if terminal and not quiet:
        print("\r\033[K", end="", file=sys.stderr, flush=True)
    return states, processed


def cancel_command(ids):
    if len(ids) == 1:
        return f"SELECT projector_cancel_run({ids[0]})"
    return f"SELECT projector_cancel_run(id) FROM projector.runs WHERE id BETWEEN {ids[0]} AND {ids[-1]}"


def start(server, options):
    ids = sorted(next(iter(row.values())) for row in server.call("start_run", options.projection, options.tenant))
    if not ids and not options.json:
        print("There is nothing to rebuild: it has no tenants.")
    return ids


def finish(server, options, ids, states, processed):
    failed = server.rows("SELECT id, tenant_id, state, error_code, error_message FROM projector.runs"
                         " WHERE id = ANY (%s) AND state IN ('failed', 'cancelled') ORDER BY id LIMIT 20", ids)
    if options.json:
        print_json(server.rows("SELECT * FROM projector.runs WHERE id = ANY (%s) ORDER BY id", ids))
    else:
        print(f"{', '.join(f'{number:,} {state}' for state, number in sorted(states.items()))}: "
              f"{count(processed, 'event')}")
        for run_row in failed:
            print(f"run {run_row['id']}, tenant {visible(run_row['tenant_id'])}: {run_row['state']}"
                  + (f": {visible(run_row['error_message'])}" if run_row["error_message"] else ""))
    return 0 if sum(states.values()) == states.get("completed", 0) else 1


def run(server, options):
    ids = start(server, options)
    if not ids:
        if options.json:
            print_json([])
        return 0
    if not options.json:
        print(f"started {count(len(ids), 'run')}. To cancel: {cancel_command(ids)}")
    if not options.watch:
        if options.json:
            print_json(server.rows("SELECT * FROM projector.runs WHERE id = ANY (%s) ORDER BY id", ids))
        else:
            print("To see how far: SELECT * FROM projector.progress, or projector top")
        return 0
    sys.stdout.flush()
    try:
        states, processed = watch(server, ids, options.json)
    except KeyboardInterrupt:
        raise ToolError(f"stopped watching; the run goes on. To cancel: {cancel_command(ids)}", 130) from None
    return finish(server, options, ids, states, processed)
