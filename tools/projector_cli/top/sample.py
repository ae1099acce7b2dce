"""Owns reading: a thread that looks at the database and keeps the latest sample.

Invariant: the server works for us at most a tenth of the time.  After a look that took
t seconds the next one begins after 9 t, and never within a second.  A lost connection
is part of the sample; the thread connects again until it succeeds.
"""
import threading
import time

import psycopg

from ..errors import ToolError, first_line, from_database

INTERVAL = 1.0
SHARE = 0.1
RETRY = 1.0


class Sample:
    """What the screen shows."""

    def __init__(self):
        self.error = None           # why there is nothing newer
        self.taken = None           # time of the last good look
        self.cost = 0.0             # seconds it took
        self.projections = []
        self.runs = []
        self.workers = []
        self.rates = {}             # events per second by projection


def look(server, has_metrics):
    sample = Sample()
    sample.projections = server.rows("SELECT projection_name, mode, state, tenants_not_ok, lag_events, lag_time, dead,"
                                     " why FROM projector.status")
    sample.runs = server.rows("SELECT * FROM projector.progress LIMIT 500")
    sample.workers = server.rows("SELECT w.pid, w.activity, w.tenant_id, p.name AS projection_name,"
                                 " clock_timestamp() - w.since AS time FROM projector.worker_activity() w"
                                 " LEFT JOIN projector.projections p USING (projection_id) ORDER BY w.slot")
    applied = {}
    if has_metrics:
        applied = {row["projection_name"]: row["events_applied_total"] for row in server.rows(
            "SELECT projection_name, events_applied_total FROM projector.metrics WHERE projection_name IS NOT NULL")}
    return sample, applied


def rates(before, after, seconds):
    """Events per second.  A counter that is smaller than before was reset."""
    if not before or seconds <= 0:
        return {}
    return {name: (value - before[name]) / seconds for name, value in after.items()
            if value is not None and before.get(name) is not None and value >= before[name]}


class Sampler(threading.Thread):
    def __init__(self, server):
        super().__init__(daemon=True)
        self.server = server
        self.wake = threading.Event()
        self.stopped = False
        self.sample = Sample()
        self.counted = None             # (time, counters)
        self.has_metrics = None

    def stop(self):
        self.stopped = True
        self.wake.set()

    def hurry(self):
        """Look again soon: something was done."""
        self.wake.set()

    def take(self):
        begin = time.monotonic()
        if self.server.connection.closed:
            self.server.connect()
            self.has_metrics = None
        if self.has_metrics is None:
            self.has_metrics = self.server.has("metrics")
        sample, applied = look(self.server, self.has_metrics)
        now = time.monotonic()
        if self.counted is not None:
            sample.rates = rates(self.counted[1], applied, now - self.counted[0])
        self.counted = (now, applied)
        sample.taken = time.time()
        sample.cost = now - begin
        return sample

    def fail(self, error):
        """Keep what was seen last, and say why it is old."""
        old, self.sample = self.sample, Sample()
        self.sample.__dict__.update(old.__dict__)
        self.sample.error = first_line(error)
        self.counted = None

    def run(self):
        while not self.stopped:
            pause = RETRY
            try:
                self.sample = self.take()
                pause = max(INTERVAL, self.sample.cost * (1 / SHARE - 1))
            except ToolError as error:
                self.fail(error)
            except psycopg.Error as error:
                self.fail(from_database(error, self.server.user))
            except Exception as error:  # the screen says it; a dead thread would say nothing
                self.fail(f"{type(error).__name__}: {error}")
            self.wake.wait(pause)
            self.wake.clear()
