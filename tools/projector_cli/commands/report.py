"""projector report: a page for a browser."""
import sys

from .. import since
from ..errors import ToolError
from ..output import print_json
from ..report.collect import collect
from ..report.page import render

HELP = {"report": "a page for a browser, to look at or to attach to a ticket"}


def arguments(parser, _name):
    parser.add_argument("--since", metavar="TIME", help='where the timelines begin: "7d" or a timestamp (24 hours)')


def run(server, options):
    if sys.stdout.isatty() and not options.json:
        raise ToolError("the page would go to your terminal: projector report > report.html")
    data = collect(server, since.resolve(server, options.since))
    if options.json:
        print_json(data)
    else:
        sys.stdout.buffer.write(render(data).encode("utf-8", "backslashreplace"))
    return 0
