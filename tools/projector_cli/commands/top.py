"""projector top: the live screen."""
import sys

from ..errors import ToolError
from ..output import print_json
from ..top.sample import look

HELP = {"top": "a live screen of projections, runs and workers, with keys to act"}


def arguments(_parser, _name):
    pass


def run(server, options):
    if options.json:
        sample, _ = look(server, False)
        print_json({"projections": sample.projections, "runs": sample.runs, "workers": sample.workers})
        return 0
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise ToolError("top needs a terminal (projector status does not)")
    from ..top.app import App   # curses is needed only here
    return App(server, options).run()
