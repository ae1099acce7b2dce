"""projector audit: who did what."""
from .. import since
from ..limit import add_limit
from ..output import print_json, print_table

HELP = {"audit": "who did what, latest first"}

COLUMNS = [("happened_at", "WHEN"), ("role", "ROLE"), ("action", "ACTION"), ("projection_name", "PROJECTION"),
           ("tenant_id", "TENANT"), ("result", "RESULT"), ("arguments", "ARGUMENTS")]


def arguments(parser, _name):
    parser.add_argument("--since", metavar="TIME", help='"2 hours", "7d" or a timestamp')
    add_limit(parser)


def run(server, options):
    begin = since.resolve(server, options.since)
    rows = server.rows("SELECT * FROM projector.audit WHERE happened_at >= coalesce(%s, '-infinity'::timestamptz)"
                       " ORDER BY id DESC LIMIT %s", begin, options.limit)
    if options.json:
        print_json(rows)
    elif not rows:
        print("Nothing is recorded.")
    else:
        print_table(rows, COLUMNS, wide=("arguments",))
    return 0
