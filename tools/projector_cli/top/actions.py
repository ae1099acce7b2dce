"""Owns what keys do.  Each action is a question, and what happens after "y".

Actions use a connection of their own, because the other one belongs to the thread that
reads.  A failed action changes nothing: its error is the message on the screen.
"""
import psycopg

from ..errors import ToolError, from_database
from ..server import Server
from ..text import count


class Actions:
    def __init__(self, options, password):
        self.options, self.password = options, password
        self.server = None

    def call(self, *call):
        """Run a function of projector.  Returns its rows."""
        try:
            if self.server is None or self.server.connection.closed:
                self.server = Server(self.options, self.password)
            return self.server.call(*call)
        except psycopg.Error as error:
            raise from_database(error, self.server.user) from None

    def pause(self, name):
        return f'Pause "{name}" for all tenants?', lambda: (
            self.call("pause", name, None, "projector top"), f'paused "{name}"')[1]

    def resume(self, name):
        return f'Resume "{name}"?', lambda: (self.call("resume", name), f'resumed "{name}"')[1]

    def requeue(self, name):
        def act():
            return f"{count(len(self.call('requeue', name)), 'event')} will be tried again"
        return f'Try the failed and dead events of "{name}" again (100 at most)?', act

    def cancel(self, run):
        def act():
            ended = next(iter(self.call("cancel_run", run)[0].values()))
            return f"run {run} is cancelled" if ended else f"run {run} had ended already"
        return f"Cancel run {run}?", act

    def do(self, act):
        """The message for the screen."""
        try:
            return act()
        except ToolError as error:
            return str(error)

    def close(self):
        if self.server is not None:
            self.server.close()
